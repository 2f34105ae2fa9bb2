# Everything that is built against MLIR. Libraries are object files gathered into tools; they link the shared libMLIR
# and libLLVM, which keeps links short.
find_package(MLIR 22.1 REQUIRED CONFIG HINTS /usr/lib/llvm-22)
list(APPEND CMAKE_MODULE_PATH ${MLIR_CMAKE_DIR} ${LLVM_CMAKE_DIR})
set(MLIR_LINK_MLIR_DYLIB ON)
set(LLVM_LINK_LLVM_DYLIB ON)
include(TableGen)
include(AddLLVM)
include(AddMLIR)
include_directories(SYSTEM ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
separate_arguments(DS_LLVM_DEFINITIONS NATIVE_COMMAND "${LLVM_DEFINITIONS}")
add_definitions(${DS_LLVM_DEFINITIONS})

# The headers that nearly every compiler source includes; that of the ds dialect takes a third of the time of most.
ds_precompile(ds_compiler_pch DEPENDS ds_dialect_tablegen HEADERS
  <mlir/Dialect/Func/IR/FuncOps.h> <mlir/IR/Builders.h> <mlir/IR/BuiltinOps.h> <mlir/IR/Matchers.h>
  <mlir/IR/PatternMatch.h> <mlir/Pass/Pass.h> <mlir/Pass/PassManager.h> <mlir/Dialect/SCF/IR/SCF.h>
  <mlir/Dialect/Arith/IR/Arith.h> <mlir/Dialect/MemRef/IR/MemRef.h> <mlir/Dialect/Linalg/IR/Linalg.h>
  <mlir/Dialect/Vector/IR/VectorOps.h> <mlir/Dialect/LLVMIR/LLVMDialect.h>
  <mlir/Dialect/Math/IR/Math.h> <mlir/Dialect/Tensor/IR/Tensor.h> ${PROJECT_SOURCE_DIR}/dialects/ds/DsBuilder.h)

set(DS_COVERED "" CACHE STRING "folders whose executed lines are to be measured, as a regular expression; for utils/check-mutants")

# ds_add_compiler_library(<name> <sources...> [DEPENDS <tablegen targets...>] [LINK <libraries...>])
function(ds_add_compiler_library name)
  cmake_parse_arguments(ARG "" "" "DEPENDS;LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  ds_reuse_headers(ds_compiler_pch ${name})
  target_link_libraries(${name} PUBLIC ${ARG_LINK} MLIR LLVM)
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
  file(RELATIVE_PATH folder ${CMAKE_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  if(DS_COVERED AND folder MATCHES "${DS_COVERED}")
    target_compile_options(${name} PRIVATE -fprofile-instr-generate -fcoverage-mapping)
    target_link_options(${name} INTERFACE -fprofile-instr-generate)
  endif()
endfunction()
