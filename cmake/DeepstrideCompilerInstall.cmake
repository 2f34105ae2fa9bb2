# What passes out of tree are built with: headers, those that tablegen writes, too, and a package for CMake.
include(CMakePackageConfigHelpers)
set(compiler_include_dir ${CMAKE_INSTALL_INCLUDEDIR}/ds/compiler)
foreach(folder dialects passes)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/${folder} ${PROJECT_BINARY_DIR}/${folder}
    DESTINATION ${compiler_include_dir} COMPONENT compiler
    FILES_MATCHING PATTERN "*.h" PATTERN "*.def" PATTERN "*.td" PATTERN "*.inc" PATTERN CMakeFiles EXCLUDE)
endforeach()

add_library(ds_compiler_headers INTERFACE)
set_target_properties(ds_compiler_headers PROPERTIES EXPORT_NAME compiler)
target_include_directories(ds_compiler_headers INTERFACE $<INSTALL_INTERFACE:${compiler_include_dir}>)

set(compiler_config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/DeepstrideCompiler)
install(TARGETS ds-opt ds_compiler_headers EXPORT DeepstrideCompilerTargets RUNTIME COMPONENT compiler)
install(EXPORT DeepstrideCompilerTargets NAMESPACE Deepstride:: DESTINATION ${compiler_config_dir} COMPONENT compiler)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/DeepstrideCompilerConfig.cmake.in
  ${CMAKE_CURRENT_BINARY_DIR}/DeepstrideCompilerConfig.cmake INSTALL_DESTINATION ${compiler_config_dir})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/DeepstrideCompilerConfigVersion.cmake
  VERSION ${PROJECT_VERSION} COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/DeepstrideCompilerConfig.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/DeepstrideCompilerConfigVersion.cmake
  DESTINATION ${compiler_config_dir} COMPONENT compiler)
