# argosy_protobuf(OUT [GRPC] PROTO ...): generates the code of the room's .proto files into the build folder, never
# committed. OUT: the sources that come of it; OUT_folders: where their headers are looked for. GRPC: with the stubs of
# their services. protobuf ends a process in which two files have one name, so ours are called argosy/<room>/<file>.
# The target argosy_generated makes all of it, for those who read sources and build none of them (make lint-all).
function(argosy_protobuf out)
  cmake_parse_arguments(A "GRPC" "" "" ${ARGN})
  set(root ${CMAKE_CURRENT_BINARY_DIR}/generated)
  file(RELATIVE_PATH inside ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  set(folder ${root}/${inside})
  file(MAKE_DIRECTORY ${folder})
  set(kinds pb)
  set(options --cpp_out=${root})
  if(A_GRPC)
    list(APPEND kinds grpc.pb)
    list(APPEND options --grpc_out=${root} --plugin=protoc-gen-grpc=$<TARGET_FILE:gRPC::grpc_cpp_plugin>)
  endif()
  foreach(proto IN LISTS A_UNPARSED_ARGUMENTS)
    get_filename_component(name ${proto} NAME_WE)
    list(TRANSFORM kinds PREPEND "${folder}/${name}." OUTPUT_VARIABLE sources)
    list(TRANSFORM sources APPEND ".cc")
    list(TRANSFORM sources REPLACE "[.]cc$" ".h" OUTPUT_VARIABLE headers)
    add_custom_command(OUTPUT ${sources} ${headers}
      COMMAND protobuf::protoc --proto_path=${PROJECT_SOURCE_DIR} ${options} ${CMAKE_CURRENT_SOURCE_DIR}/${proto}
      DEPENDS ${proto}
      VERBATIM)
    list(APPEND all_sources ${sources})
    list(APPEND all_headers ${headers})
  endforeach()
  set_source_files_properties(${all_sources} PROPERTIES COMPILE_OPTIONS "-w") # not ours to mend
  get_filename_component(room ${CMAKE_CURRENT_SOURCE_DIR} NAME)
  add_custom_target(argosy_generated_${room} DEPENDS ${all_headers})
  if(NOT TARGET argosy_generated)
    add_custom_target(argosy_generated)
  endif()
  add_dependencies(argosy_generated argosy_generated_${room})
  set(${out} ${all_sources} PARENT_SCOPE)
  set(${out}_folders ${root} ${folder} PARENT_SCOPE)
endfunction()
