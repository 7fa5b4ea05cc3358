# find_package(argosy): targets argosy::<room> and argosy::argosy (all of them).
include(CMakePackageConfigHelpers)
# What `cmake --install` copies, and nothing else: make install builds no tests and no examples.
add_custom_target(argosy_installed)
get_property(_rooms GLOBAL PROPERTY ARGOSY_ROOMS)
foreach(_room IN LISTS _rooms)
  string(REGEX REPLACE "[|].*" "" _room "${_room}")
  add_dependencies(argosy_installed argosy_${_room})
endforeach()
if(ARGOSY_SHARED)
  add_dependencies(argosy_installed argosy_shared)
  # What argosy::torch says to CMake.
  file(RELATIVE_PATH ARGOSY_FROM_PC_TO_PREFIX ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
  get_target_property(ARGOSY_PC_FLAGS argosy_torch INTERFACE_COMPILE_DEFINITIONS)
  list(TRANSFORM ARGOSY_PC_FLAGS PREPEND -D)
  string(REPLACE "-DARGOSY_PC_FLAGS-NOTFOUND" "" ARGOSY_PC_FLAGS "${ARGOSY_PC_FLAGS}")
  string(REPLACE ";" " " ARGOSY_PC_FLAGS "${ARGOSY_PC_FLAGS}")
  get_target_property(ARGOSY_PC_LIBS argosy_torch INTERFACE_LINK_LIBRARIES)
  string(REGEX REPLACE "^stdc" "-lstdc" ARGOSY_PC_LIBS "${ARGOSY_PC_LIBS}")
  string(REPLACE ";" " " ARGOSY_PC_LIBS "${ARGOSY_PC_LIBS}")
  configure_file(${PROJECT_SOURCE_DIR}/cmake/argosy.pc.in ${PROJECT_BINARY_DIR}/argosy.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/argosy.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endif()
# As README and messages name them, with all that they link to (install.consumer looks).
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/examples DESTINATION ${CMAKE_INSTALL_DOCDIR}
  FILES_MATCHING PATTERN "*.cpp")
install(DIRECTORY ${PROJECT_SOURCE_DIR}/packaging/kubernetes ${PROJECT_SOURCE_DIR}/packaging/slurm
  DESTINATION ${CMAKE_INSTALL_DOCDIR}/packaging)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/benchmarks/results DESTINATION ${CMAKE_INSTALL_DOCDIR}/benchmarks
  FILES_MATCHING PATTERN "*.md" PATTERN "*.html")
install(FILES ${PROJECT_SOURCE_DIR}/benchmarks/README.md DESTINATION ${CMAKE_INSTALL_DOCDIR}/benchmarks)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/CHANGELOG.md
  ${PROJECT_SOURCE_DIR}/CONTRIBUTING.md ${PROJECT_SOURCE_DIR}/SECURITY.md
  DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(PROGRAMS ${PROJECT_SOURCE_DIR}/tests/data/mnist_to_json.py
  DESTINATION ${CMAKE_INSTALL_DATADIR}/argosy)
set(_dir ${CMAKE_INSTALL_LIBDIR}/cmake/argosy)
install(EXPORT argosyTargets NAMESPACE argosy:: DESTINATION ${_dir})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/argosyConfig.cmake.in
  ${PROJECT_BINARY_DIR}/argosyConfig.cmake INSTALL_DESTINATION ${_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/argosyConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/argosyConfig.cmake
  ${PROJECT_BINARY_DIR}/argosyConfigVersion.cmake ${PROJECT_SOURCE_DIR}/cmake/ArgosyTorch.cmake
  ${PROJECT_SOURCE_DIR}/cmake/ArgosyPrefix.cmake ${PROJECT_SOURCE_DIR}/cmake/ArgosyPrecompile.cmake
  ${PROJECT_SOURCE_DIR}/cmake/argosyPackages.cmake
  DESTINATION ${_dir})
