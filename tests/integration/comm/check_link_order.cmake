# cmake -DREADELF=readelf -DPROGRAM=file -P check_link_order.cmake
# In the program's list of libraries, libgloo stands before every library of libtorch.
execute_process(COMMAND ${READELF} -d -W ${PROGRAM} OUTPUT_VARIABLE dynamic
  COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "\\(NEEDED\\)[^\n]*\\[[^]]*\\]" needed "${dynamic}")
set(gloo -1)
set(torch -1)
set(i 0)
foreach(entry IN LISTS needed)
  if(entry MATCHES "\\[libgloo\\.so" AND gloo EQUAL -1)
    set(gloo ${i})
  elseif(entry MATCHES "\\[lib(torch|torch_cpu|c10)\\.so" AND torch EQUAL -1)
    set(torch ${i})
  endif()
  math(EXPR i "${i} + 1")
endforeach()
if(gloo EQUAL -1 OR torch EQUAL -1)
  message(FATAL_ERROR "expected libgloo and libtorch among the libraries of ${PROGRAM}: ${needed}")
endif()
if(gloo GREATER torch)
  message(FATAL_ERROR "libgloo must be linked before libtorch (put argosy::transport or "
    "argosy::comm first in DEPS): ${needed}")
endif()
message(STATUS "libgloo is number ${gloo}, libtorch number ${torch}")
