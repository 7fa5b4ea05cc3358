# Installs the build into a scratch prefix, then configures, builds and runs the consumer against it,
# as a user's project would: nothing of the source tree is in its reach.
cmake_minimum_required(VERSION 3.25)
set(scratch ${BUILD}/install-test)
file(REMOVE_RECURSE ${scratch})
get_filename_component(torch_prefix ${TORCH} DIRECTORY)

function(step)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE rc)
  if(NOT rc EQUAL 0)
    list(JOIN ARGN " " words)
    message(FATAL_ERROR "exit code ${rc}: ${words}")
  endif()
endfunction()

step(${CMAKE_COMMAND} --install ${BUILD} --prefix ${scratch}/prefix)
file(GLOB readme_installed ${scratch}/prefix/share/doc/*/README.md)
get_filename_component(documentation "${readme_installed}" DIRECTORY)
step(${LINKS} ${documentation})
if(NOT EXISTS ${scratch}/prefix/share/argosy/mnist_to_json.py)
  message(FATAL_ERROR "share/argosy/mnist_to_json.py, which the guides name, is not installed")
endif()
file(COPY ${CONSUMER}/ DESTINATION ${scratch}/consumer)
# The README's program must compile as it stands there.
file(READ ${README} readme)
string(REGEX MATCH "```cpp\n(#include <torch/torch.h>.*)\n```\n\n    argosy launch" block "${readme}")
set(program "${CMAKE_MATCH_1}")
if(NOT block)
  message(FATAL_ERROR "no program found in ${README}")
endif()
string(REPLACE "epoch < 3" "epoch < 1" one_epoch "${program}") # says enough
file(WRITE ${scratch}/consumer/readme.cpp "${one_epoch}\n")
# Not a step(): a function's arguments would be taken apart at the semicolon.
execute_process(COMMAND ${CMAKE_COMMAND} -S ${scratch}/consumer -B ${scratch}/build -G ${GENERATOR}
  -DCMAKE_BUILD_TYPE=Release "-DCMAKE_CXX_FLAGS_RELEASE=-O0 -DNDEBUG" # faster to compile
  "-DCMAKE_PREFIX_PATH=${scratch}/prefix;${torch_prefix}" COMMAND_ERROR_IS_FATAL ANY)
step(${CMAKE_COMMAND} --build ${scratch}/build)
step(${CMAKE_CURRENT_LIST_DIR}/../house/check_library_order.sh ${scratch}/build/consumer)
step(${scratch}/build/consumer)
step(${scratch}/prefix/bin/argosy launch --nproc_per_node 2 ${scratch}/build/consumer)
# It says what the README says that it does, and its weights lie where it was started.
file(MAKE_DIRECTORY ${scratch}/elsewhere)
execute_process(COMMAND ${scratch}/prefix/bin/argosy launch --nproc_per_node 2 ${scratch}/build/readme
  WORKING_DIRECTORY ${scratch}/elsewhere OUTPUT_VARIABLE said COMMAND_ERROR_IS_FATAL ANY)
if(NOT said MATCHES "epoch 0: loss 0\\.[0-9][0-9][0-9][0-9]" OR NOT EXISTS ${scratch}/elsewhere/weights.pt)
  message(FATAL_ERROR "the README's program said: ${said}")
endif()
# A dependency that is missing must not break a project that can do without argosy.
file(WRITE ${scratch}/without/CMakeLists.txt "cmake_minimum_required(VERSION 3.20)
project(without LANGUAGES CXX)
find_package(argosy QUIET)
if(argosy_FOUND OR NOT \"\${CMAKE_IGNORE_PREFIX_PATH}\" STREQUAL \"\")
  message(FATAL_ERROR \"found: '\${argosy_FOUND}', still ignored: '\${CMAKE_IGNORE_PREFIX_PATH}'\")
endif()
")
execute_process(COMMAND ${CMAKE_COMMAND} -S ${scratch}/without -B ${scratch}/without/build
  -G ${GENERATOR} "-DCMAKE_PREFIX_PATH=${scratch}/prefix;${torch_prefix}"
  -DCMAKE_DISABLE_FIND_PACKAGE_ZLIB=ON COMMAND_ERROR_IS_FATAL ANY)
