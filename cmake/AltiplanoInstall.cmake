# What `cmake --install` lays down, all of it relocatable: bin/altiplano, lib/libaltiplano.so, lib/altiplano/plugins (each plugin installs
# itself), share/altiplano/configs, include/altiplano, and the CMake package lib/cmake/Altiplano for plugins built elsewhere.
include(CMakePackageConfigHelpers)
set(package_folder lib/cmake/Altiplano)

install(TARGETS altiplano altiplano_cli EXPORT AltiplanoTargets RUNTIME DESTINATION bin LIBRARY DESTINATION lib)
install(EXPORT AltiplanoTargets NAMESPACE Altiplano:: DESTINATION ${package_folder})
install(DIRECTORY configs DESTINATION share/altiplano)

foreach(header ${ALTIPLANO_HEADERS})
  get_filename_component(folder ${header} DIRECTORY)
  install(FILES ${header} DESTINATION include/altiplano/${folder})
endforeach()
install(FILES ${CMAKE_BINARY_DIR}/generated/framework/api/fingerprint.hpp DESTINATION include/altiplano/framework/api)

configure_package_config_file(cmake/AltiplanoConfig.cmake.in ${CMAKE_BINARY_DIR}/generated/AltiplanoConfig.cmake
  INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/generated/AltiplanoConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/generated/AltiplanoConfig.cmake ${CMAKE_BINARY_DIR}/generated/AltiplanoConfigVersion.cmake
  cmake/AltiplanoPlugin.cmake cmake/plugin.map DESTINATION ${package_folder})
