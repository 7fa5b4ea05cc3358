# Target argosy::torch: the libtorch that CMAKE_PREFIX_PATH selects, else the system's.
#
# libtorch's own TorchConfig.cmake is not used: its find_library finds the *system's* libtorch.so
# even when it was reached through another prefix, so that headers and library disagree silently.
# Here headers and libraries come from one prefix, or the configuration fails.
include_guard(GLOBAL)
find_path(ARGOSY_TORCH_INCLUDE_DIR torch/csrc/api/include/torch/torch.h
  DOC "Folder that holds torch/csrc/api/include/torch/torch.h")
if(NOT ARGOSY_TORCH_INCLUDE_DIR)
  message(FATAL_ERROR "libtorch not found. Run: scripts/install_deps.sh build   (Debian's "
    "libtorch-dev), or give another one: -DCMAKE_PREFIX_PATH=/path/to/libtorch")
endif()
get_filename_component(_argosy_torch_prefix ${ARGOSY_TORCH_INCLUDE_DIR} DIRECTORY)
foreach(_lib IN ITEMS torch torch_cpu c10)
  find_library(ARGOSY_TORCH_LIB_${_lib} ${_lib}
    PATHS ${_argosy_torch_prefix}/lib ${_argosy_torch_prefix}/lib/${CMAKE_LIBRARY_ARCHITECTURE}
    NO_DEFAULT_PATH)
  if(NOT ARGOSY_TORCH_LIB_${_lib})
    message(FATAL_ERROR "lib${_lib}.so not found beside ${ARGOSY_TORCH_INCLUDE_DIR} "
      "(looked in ${_argosy_torch_prefix}/lib): headers and library must be of one libtorch")
  endif()
endforeach()
file(STRINGS ${ARGOSY_TORCH_INCLUDE_DIR}/torch/csrc/api/include/torch/version.h _argosy_torch_version
  REGEX "TORCH_VERSION_(MAJOR|MINOR|PATCH) ")
if(NOT _argosy_torch_version) # moved to torch/headeronly in newer versions
  file(GLOB_RECURSE _argosy_version_headers ${ARGOSY_TORCH_INCLUDE_DIR}/torch/headeronly/version.h)
  if(_argosy_version_headers)
    file(STRINGS ${_argosy_version_headers} _argosy_torch_version
      REGEX "TORCH_VERSION_(MAJOR|MINOR|PATCH) ")
  endif()
endif()
string(REGEX REPLACE "[^0-9]+" "." ARGOSY_TORCH_VERSION "${_argosy_torch_version}")
string(REGEX REPLACE "^\\.|\\.$" "" ARGOSY_TORCH_VERSION "${ARGOSY_TORCH_VERSION}")
get_filename_component(_argosy_torch_lib_dir ${ARGOSY_TORCH_LIB_torch} DIRECTORY)
set(_argosy_torch_computes "on the CPU only")
if(EXISTS ${_argosy_torch_lib_dir}/libtorch_cuda.so)
  set(_argosy_torch_computes "with CUDA")
elseif(EXISTS ${_argosy_torch_lib_dir}/libtorch_hip.so)
  set(_argosy_torch_computes "with ROCm")
endif()
message(STATUS "libtorch ${ARGOSY_TORCH_VERSION} by its own headers, ${_argosy_torch_computes}: ${ARGOSY_TORCH_LIB_torch}")
set(_argosy_torch_taken "libtorch ${ARGOSY_TORCH_VERSION} was found at ${_argosy_torch_prefix}, ${_argosy_torch_computes}")
foreach(_prefix IN LISTS CMAKE_PREFIX_PATH)
  if(NOT IS_DIRECTORY ${_prefix})
    message(WARNING "CMAKE_PREFIX_PATH names a folder that is not there: ${_prefix}. "
      "${_argosy_torch_taken}")
  endif()
  if(EXISTS ${_prefix}/torch/include/torch/csrc/api/include/torch/torch.h) # the folder above
    message(WARNING "CMAKE_PREFIX_PATH should name ${_prefix}/torch and not ${_prefix}. "
      "${_argosy_torch_taken}")
  endif()
endforeach()

if(NOT TARGET argosy_torch)
  add_library(argosy_torch INTERFACE IMPORTED GLOBAL)
  add_library(argosy::torch ALIAS argosy_torch)
  set_target_properties(argosy_torch PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES
      "${ARGOSY_TORCH_INCLUDE_DIR};${ARGOSY_TORCH_INCLUDE_DIR}/torch/csrc/api/include"
    # Some of the official libtorch's libraries export a std::filesystem in which remove_all() calls address 0, so the
    # loader has to meet the C++ library's before.
    INTERFACE_LINK_LIBRARIES
      "stdc++;${ARGOSY_TORCH_LIB_torch};${ARGOSY_TORCH_LIB_torch_cpu};${ARGOSY_TORCH_LIB_c10}")
  # libtorch registers CUDA or ROCm when one of these is loaded; nothing refers to it by symbol.
  foreach(_lib IN ITEMS cuda hip)
    if(EXISTS ${_argosy_torch_lib_dir}/libtorch_${_lib}.so)
      set_property(TARGET argosy_torch APPEND PROPERTY INTERFACE_LINK_LIBRARIES
        "-Wl,--no-as-needed,${_argosy_torch_lib_dir}/libtorch_${_lib}.so,--as-needed")
    endif()
  endforeach()
  get_target_property(_argosy_fmt_dirs fmt::fmt INTERFACE_INCLUDE_DIRECTORIES)
  if(EXISTS ${ARGOSY_TORCH_INCLUDE_DIR}/fmt/format.h
      AND NOT ARGOSY_TORCH_INCLUDE_DIR IN_LIST _argosy_fmt_dirs)
    # The official libtorch brings its own, newer fmt headers without the library. They hide the
    # system's, so units that see libtorch take theirs whole; fmt's versioned namespace keeps the two
    # apart. (Elsewhere fmt is linked: header-only it costs 2 s in every unit.)
    set_property(TARGET argosy_torch APPEND PROPERTY INTERFACE_COMPILE_DEFINITIONS FMT_HEADER_ONLY=1)
  endif()
endif()
