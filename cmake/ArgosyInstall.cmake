# find_package(argosy): targets argosy::<room> and argosy::argosy (all of them).
include(CMakePackageConfigHelpers)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs/guides ${PROJECT_SOURCE_DIR}/docs/reference
  DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs) # as README and messages name them
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/README.md
  DESTINATION ${CMAKE_INSTALL_DOCDIR})
set(_dir ${CMAKE_INSTALL_LIBDIR}/cmake/argosy)
install(EXPORT argosyTargets NAMESPACE argosy:: DESTINATION ${_dir})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/argosyConfig.cmake.in
  ${PROJECT_BINARY_DIR}/argosyConfig.cmake INSTALL_DESTINATION ${_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/argosyConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/argosyConfig.cmake
  ${PROJECT_BINARY_DIR}/argosyConfigVersion.cmake ${PROJECT_SOURCE_DIR}/cmake/ArgosyTorch.cmake
  ${PROJECT_SOURCE_DIR}/cmake/ArgosyPrefix.cmake ${PROJECT_SOURCE_DIR}/cmake/argosyPackages.cmake
  DESTINATION ${_dir})
