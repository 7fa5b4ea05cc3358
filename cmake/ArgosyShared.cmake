# ARGOSY_SHARED: what is installed is one libargosy.so, made of all rooms, in the place of their archives. Both have the
# same names for find_package(argosy): argosy::argosy and argosy::<room>. Programs of this tree link archives in any
# case, so that they need no libargosy.so.
option(ARGOSY_SHARED "Install the library as one libargosy.so instead of an archive for each room" OFF)

set(ARGOSY_ROOMS_OF_COMMANDS recipes launch datasets) # which are not in it
# Installs an archive with its headers; of libargosy.so the headers alone.
function(argosy_install_archive target)
  if(target MATCHES "^argosy_(.*)$" AND ARGOSY_SHARED)
    if(NOT CMAKE_MATCH_1 IN_LIST ARGOSY_ROOMS_OF_COMMANDS)
      install(TARGETS ${target} ARCHIVE EXCLUDE_FROM_ALL FILE_SET HEADERS)
    endif()
  else()
    install(TARGETS ${target} EXPORT argosyTargets FILE_SET HEADERS)
  endif()
endfunction()

# Of the rooms that a training program uses, parts included. Called when all rooms are there.
function(argosy_add_shared_library)
  get_property(rooms GLOBAL PROPERTY ARGOSY_ROOMS)
  list(TRANSFORM rooms REPLACE "[|].*" "")
  list(REMOVE_ITEM rooms ${ARGOSY_ROOMS_OF_COMMANDS})
  list(TRANSFORM rooms PREPEND argosy_ OUTPUT_VARIABLE archives)
  list(TRANSFORM archives REPLACE "(.+)" "$<TARGET_OBJECTS:\\1>" OUTPUT_VARIABLE objects)
  add_library(argosy_shared SHARED ${objects})
  set_target_properties(argosy_shared PROPERTIES OUTPUT_NAME argosy EXPORT_NAME argosy
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
  # The archives bring what they are linked with; of their members, all are there already.
  target_link_options(argosy_shared PRIVATE -Wl,--no-undefined -Wl,--as-needed)
  target_link_libraries(argosy_shared PRIVATE ${archives}
    INTERFACE argosy::torch fmt::fmt nlohmann_json::nlohmann_json Threads::Threads)
  target_compile_features(argosy_shared INTERFACE cxx_std_20)
  target_include_directories(argosy_shared INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  install(TARGETS argosy_shared EXPORT argosyTargets)
  set(ARGOSY_ROOM_NAMES ${rooms} PARENT_SCOPE)
endfunction()
