# Headers compiled once. Most of the time that a source takes goes into the same few headers: the standard library with
# nlohmann/json, CLI11 in the tools, GoogleTest in the tests, MLIR and the ds dialect in the compiler.
set(DS_STANDARD_HEADERS
  <algorithm> <array> <chrono> <cmath> <cstring> <filesystem> <fstream> <functional> <map> <memory> <mutex> <optional>
  <set> <sstream> <string> <thread> <vector>)

# ds_precompile(<name> LINK <libraries...> HEADERS <headers...> [DEPENDS <targets...>])
function(ds_precompile name)
  cmake_parse_arguments(ARG "" "" "LINK;HEADERS;DEPENDS" ${ARGN})
  set(empty ${CMAKE_BINARY_DIR}/precompiled/${name}.cpp)
  if(NOT EXISTS ${empty})
    file(WRITE ${empty} "")
  endif()
  add_library(${name} OBJECT ${empty})
  target_link_libraries(${name} PRIVATE ${ARG_LINK})
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${name} PRIVATE -fPIC)
  target_precompile_headers(${name} PRIVATE ${ARG_HEADERS})
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
endfunction()

# ds_reuse_headers(<name of ds_precompile> <targets...>); programs are compiled as libraries are, since clang takes headers
# that were compiled with -fPIC for nothing that is compiled with -fPIE.
function(ds_reuse_headers name)
  foreach(target ${ARGN})
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${target} PRIVATE -fPIC)
    target_precompile_headers(${target} REUSE_FROM ${name})
  endforeach()
endfunction()

find_package(nlohmann_json REQUIRED)
ds_precompile(ds_standard_pch LINK nlohmann_json::nlohmann_json HEADERS ${DS_STANDARD_HEADERS} <nlohmann/json.hpp>)
find_package(CLI11 REQUIRED)
ds_precompile(ds_tool_pch LINK nlohmann_json::nlohmann_json CLI11::CLI11
  HEADERS ${DS_STANDARD_HEADERS} <nlohmann/json.hpp> <CLI/CLI.hpp>)
if(DS_BUILD_TESTS)
  find_package(GTest REQUIRED)
  # Most unit tests run for a shorter time than they are compiled for, half of which is the optimizer's.
  set(DS_TEST_OPTIONS "" CACHE STRING "options of the compiler for unit tests that need no MLIR")
  ds_precompile(ds_test_pch LINK nlohmann_json::nlohmann_json GTest::gtest
    HEADERS ${DS_STANDARD_HEADERS} <nlohmann/json.hpp> <gtest/gtest.h>)
  target_compile_options(ds_test_pch PRIVATE ${DS_TEST_OPTIONS})
endif()

# ds_reuse_test_headers(<targets...>)
function(ds_reuse_test_headers)
  ds_reuse_headers(ds_test_pch ${ARGN})
  foreach(target ${ARGN})
    target_compile_options(${target} PRIVATE ${DS_TEST_OPTIONS})
  endforeach()
endfunction()
