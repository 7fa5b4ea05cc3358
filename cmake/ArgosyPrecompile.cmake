# argosy_precompile(PROGRAM...): these programs share one precompiled <argosy/argosy.h> and <torch/torch.h>,
# so that each of their files compiles in seconds. It takes half a minute to make, once, and 750 MB of disk.
# With GCC it also gives them -fno-devirtualize, which takes a quarter off each compilation: without it GCC compiles the
# virtual functions of all of libtorch's modules for each unit that touches one. Virtual calls of the program's own are
# then never replaced by direct ones.
# All of them must have the same compiler options and definitions; the compiler says where they do not.
function(argosy_precompile)
  foreach(program IN LISTS ARGN)
    target_compile_options(${program} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fno-devirtualize>)
    get_property(first GLOBAL PROPERTY ARGOSY_PRECOMPILED_BY)
    if(first)
      target_precompile_headers(${program} REUSE_FROM ${first})
    else()
      target_precompile_headers(${program} PRIVATE <torch/torch.h> <argosy/argosy.h>)
      set_property(GLOBAL PROPERTY ARGOSY_PRECOMPILED_BY ${program})
    endif()
  endforeach()
endfunction()
