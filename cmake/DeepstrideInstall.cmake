# What is installed is what users measure: a tree for development says how to get the other one.
option(DS_INSTALL_DEBUG "allow cmake --install of a tree without optimisation" OFF)
# Where there is one build type, --config says nothing about what was built.
get_property(is_multi_config GLOBAL PROPERTY GENERATOR_IS_MULTI_CONFIG)
set(built_type "\${CMAKE_INSTALL_CONFIG_NAME}")
if(NOT is_multi_config)
  set(built_type "${CMAKE_BUILD_TYPE}")
endif()
install(CODE "
  set(built_type \"${built_type}\")
  if(NOT \"${DS_INSTALL_DEBUG}\" AND NOT built_type MATCHES \"^(Release|RelWithDebInfo|MinSizeRel)$\")
    message(FATAL_ERROR \"this tree is built for development (build type '\${built_type}': assertions, \"
      \"little optimisation) and is not installed; install a release: cmake --preset release, \"
      \"cmake --build --preset release, cmake --install build-release (-DDS_INSTALL_DEBUG=ON installs this one)\")
  endif()" ALL_COMPONENTS)
