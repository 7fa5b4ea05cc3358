# argosy_ignore_libtorch_prefixes(): until argosy_heed_libtorch_prefixes(), find_package does not look
# into prefixes that hold a libtorch. The official one brings headers and programs of other libraries
# (fmt, protobuf with its compiler) without the libraries themselves: found first, they disagree with
# the system's at the link. One that has them with what CMake asks for, as Argosy's bundle, is no such prefix.
macro(argosy_ignore_libtorch_prefixes)
  set(_argosy_ignored ${CMAKE_IGNORE_PREFIX_PATH})
  foreach(_prefix IN LISTS CMAKE_PREFIX_PATH)
    file(GLOB _argosy_fmt ${_prefix}/lib*/cmake/fmt ${_prefix}/lib/*/cmake/fmt)
    if(NOT _prefix MATCHES "^/usr(/local)?/?$" AND NOT _argosy_fmt
        AND EXISTS ${_prefix}/include/torch/csrc/api/include/torch/torch.h)
      list(APPEND CMAKE_IGNORE_PREFIX_PATH ${_prefix})
    endif()
  endforeach()
endmacro()

macro(argosy_heed_libtorch_prefixes)
  set(CMAKE_IGNORE_PREFIX_PATH ${_argosy_ignored})
endmacro()
