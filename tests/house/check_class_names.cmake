cmake_minimum_required(VERSION 3.25)
# cmake -DROOT=... -DROOMS="name|TORCH flag|dep,dep|file,file;..." -P check_class_names.cmake
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
  if(NOT entry MATCHES "^([a-z_]+)[a-z_.]*[|][^|]*[|][^|]*[|](.*)$")
    message(FATAL_ERROR "cannot read the room \"${entry}\"")
  endif()
  set(room ${CMAKE_MATCH_1}) # archives of one room share its names
  string(REPLACE "," ";" files "${CMAKE_MATCH_2}")
  list(FILTER files INCLUDE REGEX "\\.h$")
  math(EXPR rooms "${rooms} + 1")
  foreach(file IN LISTS files)
    file(READ ${ROOT}/argosy/${room}/${file} text)
    # A definition has no semicolon before its brace or the end of its line; a declaration has.
    string(REGEX MATCHALL "\n(class|struct|enum class|enum) [^\n;{]+[\n{]" definitions "${text}")
    foreach(definition IN LISTS definitions)
      string(REGEX REPLACE "^\n(class|struct|enum class|enum) (\\[\\[[a-z]+\\]\\] )?" "" definition "${definition}")
      if(NOT definition MATCHES "^([A-Za-z0-9_]+)( final)?( :.*)?[ \n]*{?$" OR CMAKE_MATCH_1 IN_LIST allowed)
        continue()
      endif()
      set(name ${CMAKE_MATCH_1})
      if(DEFINED room_of_${name} AND NOT room_of_${name} STREQUAL room)
        message(SEND_ERROR "class '${name}' has two meanings: ${file_of_${name}} and ${room}/${file}")
      endif()
      set(room_of_${name} ${room})
      set(file_of_${name} ${room}/${file})
    endforeach()
  endforeach()
endforeach()
if(rooms EQUAL 0)
  message(FATAL_ERROR "no rooms were given")
endif()
