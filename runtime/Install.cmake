# What a runtime's user gets: headers, both libraries, descriptions for CMake and pkg-config, examples and texts.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/DeepstrideRuntime)
configure_package_config_file(cmake/DeepstrideRuntimeConfig.cmake.in
  ${CMAKE_CURRENT_BINARY_DIR}/DeepstrideRuntimeConfig.cmake INSTALL_DESTINATION ${config_dir})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/DeepstrideRuntimeConfigVersion.cmake
  VERSION ${PROJECT_VERSION} COMPATIBILITY SameMinorVersion)
install(TARGETS ds_runtime ds_runtime_static EXPORT DeepstrideRuntimeTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime)
install(EXPORT DeepstrideRuntimeTargets NAMESPACE Deepstride:: DESTINATION ${config_dir} COMPONENT runtime)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/DeepstrideRuntimeConfig.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/DeepstrideRuntimeConfigVersion.cmake DESTINATION ${config_dir} COMPONENT runtime)

install(FILES include/ds/engine.h include/ds/engine.hpp include/ds/runtime.h include/ds/runtime.hpp include/ds/trainer.h abi/ds_abi.h
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/ds COMPONENT runtime)

# Relative to where the file lies, since a prefix is chosen when installing, and may be moved.
set(pkgconfig_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH to_prefix /${pkgconfig_dir} /)
list(TRANSFORM system_libraries PREPEND "-l" OUTPUT_VARIABLE system_link_flags)
list(JOIN system_link_flags " " system_link_flags)
foreach(name deepstride-runtime deepstride-runtime-static)
  configure_file(cmake/${name}.pc.in ${name}.pc @ONLY)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/${name}.pc DESTINATION ${pkgconfig_dir} COMPONENT runtime)
endforeach()

set(doc_dir ${CMAKE_INSTALL_DATAROOTDIR}/doc/deepstride)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/docs/embedding.md
  DESTINATION ${doc_dir} COMPONENT runtime)
install(DIRECTORY example/ DESTINATION ${doc_dir}/examples COMPONENT runtime)
