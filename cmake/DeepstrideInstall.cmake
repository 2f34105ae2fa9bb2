# What is installed is what users measure: a tree for development says how to get the other one.
option(DS_INSTALL_DEBUG "allow cmake --install of a tree without optimisation" OFF)
install(CODE "
  if(NOT \"${DS_INSTALL_DEBUG}\" AND NOT CMAKE_INSTALL_CONFIG_NAME MATCHES \"^(Release|RelWithDebInfo|MinSizeRel)$\")
    message(FATAL_ERROR \"this tree is built for development (build type '\${CMAKE_INSTALL_CONFIG_NAME}': assertions, \"
      \"little optimisation) and is not installed; install a release: cmake --preset release, \"
      \"cmake --build --preset release, cmake --install build-release (-DDS_INSTALL_DEBUG=ON installs this one)\")
  endif()" ALL_COMPONENTS)
