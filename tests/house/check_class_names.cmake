cmake_minimum_required(VERSION 3.25)
# cmake -DROOT=... -DROOMS="base|TRUE|deps|folder|files;..." -P check_class_names.cmake
# A class name has one meaning: the installed headers of two rooms define no class, struct or enum of the same name.
# Only names outside classes count. clang-format begins their lines in the first column.
set(allowed
  # PyTorch's and Paddle's words for a schedule, and Paddle's for the callback that moves it.
  LRScheduler ReduceLROnPlateau ReduceLROnPlateauOptions
  ResizeOptions # options of the operation resize: of an image, and of what flows through transforms
  JoinOptions # options of join(): of a wrapper, and of a job
  Attempt) # an operation of a rank, and a start of all ranks
set(rooms 0)
foreach(entry IN LISTS ROOMS)
  string(REGEX REPLACE "^[^|]*\\|[^|]*\\|[^|]*\\|([^|]*)\\|(.*)$" "\\1;\\2" parts "${entry}")
  list(GET parts 0 folder)
  list(GET parts 1 files)
  string(REGEX REPLACE "/.*" "" room "${folder}") # rooms that share a folder share its names
  string(REPLACE "," ";" files "${files}")
  list(FILTER files INCLUDE REGEX "\\.h$")
  math(EXPR rooms "${rooms} + 1")
  foreach(file IN LISTS files)
    file(READ ${ROOT}/argosy/${folder}/${file} text)
    # A definition has no semicolon before its brace or the end of its line; a declaration has.
    string(REGEX MATCHALL "\n(class|struct|enum class|enum) [^\n;{]+[\n{]" definitions "${text}")
    foreach(definition IN LISTS definitions)
      string(REGEX REPLACE "^\n(class|struct|enum class|enum) (\\[\\[[a-z]+\\]\\] )?" "" definition "${definition}")
      if(NOT definition MATCHES "^([A-Za-z0-9_]+)( final)?( :.*)?[ \n]*{?$" OR CMAKE_MATCH_1 IN_LIST allowed)
        continue()
      endif()
      set(name ${CMAKE_MATCH_1})
      if(DEFINED room_of_${name} AND NOT room_of_${name} STREQUAL room)
        message(SEND_ERROR "class '${name}' has two meanings: ${file_of_${name}} and ${folder}/${file}")
      endif()
      set(room_of_${name} ${room})
      set(file_of_${name} ${folder}/${file})
    endforeach()
  endforeach()
endforeach()
if(rooms EQUAL 0)
  message(FATAL_ERROR "no rooms were given")
endif()
