# Flags for the whole tree. They are global because every unit that reuses the precompiled
# torch header must be compiled with identical flags.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
# -fPIC for programs too (not -fPIE): GCC refuses a precompiled header made with the other one.
add_compile_options(-fPIC -pthread) # likewise -pthread, which defines a macro
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
set_property(GLOBAL PROPERTY USE_FOLDERS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

# -fpch-preprocess lets ccache keep objects built with a precompiled header.
add_compile_options(-Wall -Wextra -fpch-preprocess -fno-math-errno)
# GCC collects garbage from 128 MB on, which costs units that read torch's headers 12 % of their time; they
# need 1 GB with it and 1.3 GB without.
add_compile_options("$<$<CXX_COMPILER_ID:GNU>:SHELL:--param ggc-min-heapsize=1000000>")
# GCC 12 sees overlapping copies in std::string where there are none (GCC bug 105651).
add_compile_options(-Wno-restrict)
# In a unit of several files GCC takes what each hides in a nameless namespace for a header's.
add_compile_options(-Wno-subobject-linkage)
option(ARGOSY_WERROR "Treat warnings as errors" ON)
if(ARGOSY_WERROR)
  add_compile_options(-Werror)
endif()

if(ARGOSY_SANITIZE)
  add_compile_options(-fsanitize=${ARGOSY_SANITIZE} -fno-omit-frame-pointer -g1 -O1)
  # GCC's sanitizers make -Wmaybe-uninitialized and friends report false positives in std headers.
  add_compile_options(-Wno-maybe-uninitialized -Wno-tsan)
  add_link_options(-fsanitize=${ARGOSY_SANITIZE})
endif()

# The 380 programs of a build with tests link in half of the time with gold, which Debian's binutils bring.
include(CheckLinkerFlag)
check_linker_flag(CXX -fuse-ld=gold ARGOSY_HAVE_GOLD)
set(chosen "${CMAKE_EXE_LINKER_FLAGS} ${CMAKE_SHARED_LINKER_FLAGS} ${CMAKE_CXX_FLAGS}")
if(ARGOSY_HAVE_GOLD AND NOT ARGOSY_SANITIZE AND NOT chosen MATCHES "-fuse-ld=")
  add_link_options(-fuse-ld=gold)
endif()

find_program(ARGOSY_CCACHE ccache)
if(ARGOSY_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER
    ${CMAKE_COMMAND} -E env
    CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
    CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}
    CCACHE_NOHASHDIR=1
    ${ARGOSY_CCACHE})
endif()
