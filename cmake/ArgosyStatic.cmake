# gRPC and what it needs, as rooms link them: shared libraries, except in programs with the property
# ARGOSY_STATIC (argosy_link_statically). Those are without libtorch, which brings a shared protobuf of
# its own. 59 shared libraries with 16,500 symbols to look up are half of what such a program costs
# from start to end; see docs/design/launcher.md. Where Debian's archives are missing, all is shared.
add_library(argosy_grpc INTERFACE)
add_library(argosy_symbolize INTERFACE)
set_target_properties(argosy_grpc PROPERTIES EXPORT_NAME grpc)
set_target_properties(argosy_symbolize PROPERTIES EXPORT_NAME symbolize)

option(ARGOSY_LINK_STATIC "Link the command's gRPC from archives where they are there" ON)
set(_argosy_archives "")
set(_absl "")
# Beside the shared libraries whose headers are used: others would be of another version.
get_target_property(_configurations gRPC::grpc IMPORTED_CONFIGURATIONS)
list(GET _configurations 0 _configuration)
get_target_property(_grpc gRPC::grpc IMPORTED_LOCATION_${_configuration})
get_filename_component(_folder "${_grpc}" DIRECTORY)
if(ARGOSY_LINK_STATIC AND NOT ARGOSY_SANITIZE) # whose suppressions name shared libraries
  set(_names grpc++ grpc gpr upb address_sorting re2 cares protobuf z ssl crypto)
  if(OPENSSL_VERSION VERSION_GREATER_EQUAL 3.2) # Debian 13's is built with it
    list(APPEND _names zstd)
  endif()
  foreach(_name IN LISTS _names)
    find_library(_argosy_archive_${_name} NAMES lib${_name}.a PATHS ${_folder} NO_DEFAULT_PATH)
    mark_as_advanced(_argosy_archive_${_name})
    list(APPEND _argosy_archives ${_argosy_archive_${_name}})
  endforeach()
  file(GLOB _absl ${_folder}/libabsl_*.a)
  list(FILTER _absl EXCLUDE REGEX "test|mock|flags_(parse|usage)")
  list(APPEND _argosy_archives ${_absl})
endif()
if(NOT _absl OR "${_argosy_archives}" MATCHES "NOTFOUND")
  set(_argosy_archives "")
  if(ARGOSY_STATIC_LAUNCHER)
    message(FATAL_ERROR "ARGOSY_STATIC_LAUNCHER needs the archives of gRPC and of what it needs in ${_folder}")
  endif()
endif()

if(_argosy_archives)
  set(_static "$<BOOL:$<BUILD_INTERFACE:$<TARGET_PROPERTY:ARGOSY_STATIC>>>")
  list(JOIN _argosy_archives "," _group)
  foreach(_target IN ITEMS argosy_grpc argosy_symbolize)
    target_link_libraries(${_target} INTERFACE "$<${_static}:$<LINK_GROUP:RESCAN,${_group}>>"
      "$<${_static}:Threads::Threads>" "$<${_static}:${CMAKE_DL_LIBS}>")
  endforeach()
else()
  set(_static 0)
endif()
foreach(_library IN ITEMS gRPC::grpc++ absl::synchronization protobuf::libprotobuf
                          OpenSSL::SSL OpenSSL::Crypto)
  target_link_libraries(argosy_grpc INTERFACE "$<$<NOT:${_static}>:${_library}>")
endforeach()
target_link_libraries(argosy_symbolize INTERFACE "$<$<NOT:${_static}>:absl::symbolize>")
if(NOT ARGOSY_SHARED)
  install(TARGETS argosy_grpc argosy_symbolize EXPORT argosyTargets)
endif()

# At a fixed address as well: 34,000 places in gRPC's tables would else be relocated at each start.
function(argosy_link_statically target)
  set_target_properties(${target} PROPERTIES ARGOSY_STATIC ON)
  if(_argosy_archives)
    target_link_options(${target} PRIVATE -no-pie)
  endif()
  if(ARGOSY_STATIC_LAUNCHER)
    # The linker warns of getaddrinfo(): apps/argosy.cpp tells it to load no libraries.
    target_link_options(${target} PRIVATE -static)
    target_compile_definitions(${target} PRIVATE ARGOSY_STATIC_LAUNCHER=1)
  endif()
endfunction()
