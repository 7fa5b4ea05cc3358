# argosy_room(NAME [TORCH] HEADERS ... SOURCES ... DEPS ... [PRIVATE_DEPS ...])
#   A room: folder argosy/NAME, target argosy::NAME, namespace argosy::NAME. TORCH: it sees libtorch;
#   every other room must never link it (tests/house checks).
#   A header stands alone: clang-tidy compiles each by itself (scripts/lint.sh).
# argosy_part(ROOM PART HEADERS ... SOURCES ... DEPS ... [PRIVATE_DEPS ...])
#   Some files of a room as an archive of their own, argosy::ROOM.PART, for programs that must not wait for the
#   rest of it. The room links its parts, so that users need to know of none.
# argosy_test(NAME SOURCES ... DEPS ... [LABELS ...] [TIMEOUT s] [PROCESSORS n] [PER_CASE] [APART])
#   One ctest per binary; PER_CASE: one ctest per test case (cheap torch-free binaries).
#   APART: each file by itself, where several of them have things of one name.
#   A skipped case of a test without PER_CASE would count as passed, so it fails: see argosy_optional_test.
# argosy_test_program(NAME [UNITY] SOURCES ... DEPS ...): a program that tests start.
# argosy_bench(NAME SOURCES ... DEPS ...): a Google Benchmark binary beside its room.
include(GNUInstallDirs)
include(GoogleTest)
set_property(GLOBAL PROPERTY ARGOSY_ROOMS "")
# Reading headers (torch's, gRPC's, JSON's) and making their templates is most of the work, so rooms and tests
# are compiled several files at a time, and all share precompiled headers. OFF: each file by
# itself, for clang-tidy and for those who edit one file again and again.
# Real data sets beside the repository; elsewhere tests make small ones of the same formats, and what can
# only be said of the real files is not compiled.
set(ARGOSY_REAL_SETS ${PROJECT_SOURCE_DIR}/../shared/data CACHE PATH "Real data sets for tests; empty: none")
if(NOT EXISTS "${ARGOSY_REAL_SETS}/flowers102")
  set(ARGOSY_REAL_SETS "")
else()
  set(ARGOSY_REAL_SETS_DEFINITION ARGOSY_SHARED_DATA="${ARGOSY_REAL_SETS}")
endif()
# These rooms start, watch and steer, and other rooms compute for them: with less optimization no run is slower
# (docs/design/architecture.md has the figures), and GCC spends a third of its time on it. With less inlining GCC takes
# an empty std::optional for an uninitialized one.
set(ARGOSY_STEERING_ROOMS "program|rendezvous|launch|events[.]core|runs|engine|fleet|train|recipes")
set(ARGOSY_STEERING_OPTIONS "$<$<CONFIG:Release>:-O1;-Wno-maybe-uninitialized>"
  CACHE STRING "Options of what steers and does not compute; empty: as all else")
# For what a test compiles itself, templates in headers included. Of an inline function that a room compiles too, the
# linker may take either copy.
set(ARGOSY_TEST_OPTIONS "$<$<CONFIG:Release>:-O0>")
option(ARGOSY_UNITY "Compile several files of a room as one unit" ON)

# Parts of at most `most` files and of equal size: eight files and one more are not eight and one but five and four.
function(_argosy_unity target most)
  list(LENGTH ARGN files)
  math(EXPR parts "(${files} + ${most} - 1) / ${most}")
  if(ARGOSY_UNITY AND files GREATER 1)
    math(EXPR size "(${files} + ${parts} - 1) / ${parts}")
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${size})
  endif()
endfunction()

# The precompiled headers. Which one a program takes is read from its sources when CMake runs:
#   everything  <argosy/argosy.h> and <torch/torch.h>
#   torch       <torch/torch.h>
#   modules     <torch/types.h> and <torch/nn/module.h>
#   plain       the standard library's
# Tests have theirs without optimization and with GoogleTest. What each costs is in docs/design/architecture.md.
set(_argosy_pch_everything <torch/torch.h> <argosy/argosy.h> <fmt/ranges.h>)
set(_argosy_pch_torch <torch/torch.h> <fmt/format.h> <fmt/ranges.h>)
set(_argosy_pch_modules <torch/types.h> <torch/nn/cloneable.h> <torch/nn/module.h> <torch/nn/pimpl.h> <fmt/format.h>
  <fmt/ranges.h>)
set(_argosy_pch_plain <algorithm> <chrono> <filesystem> <fstream> <functional> <future> <map> <memory> <optional>
  <regex> <set> <span> <sstream> <string> <thread> <unordered_map> <variant> <vector> <fmt/format.h> <fmt/ranges.h>)

# Making a header costs more than a few programs save by it. So only tests take `torch`, and only other programs take
# `modules`.
function(_argosy_pch_for out target)
  set(kind modules)
  if(ARGN STREQUAL FOR_TESTS)
    set(kind torch)
  endif()
  get_target_property(sources ${target} SOURCES)
  foreach(source IN LISTS sources)
    if(source MATCHES "[.]cpp$")
      file(STRINGS ${source} everything LIMIT_COUNT 1 REGEX "^#include .argosy/(argosy[.]h|fleet/|recipes/|train/)")
      file(STRINGS ${source} torch LIMIT_COUNT 1 REGEX "^#include .(torch/(torch[.]h|nn[.]h|optim)|argosy/vision/)")
      if(torch AND NOT ARGN STREQUAL FOR_TESTS)
        set(everything ${torch})
      endif()
      if(everything AND TARGET argosy_fleet)
        set(kind everything)
        break()
      elseif(torch)
        set(kind torch)
      endif()
    endif()
  endforeach()
  set(${out} ${kind} PARENT_SCOPE)
endfunction()

# No room includes more than modules; where ARGOSY_UNITY is off every file shows that it includes what it needs.
function(_argosy_room_pch target torch)
  if(ARGOSY_UNITY)
    if(torch)
      _argosy_use_pch(${target} modules)
    else()
      _argosy_use_pch(${target} plain)
    endif()
  endif()
endfunction()

# _argosy_use_pch(TARGET KIND [FOR_TESTS])
# A unit that touches one module of libtorch would get the virtual functions of all: 10,000 instead of 100 to gimplify,
# 3 s of 11, while who is called is known to libtorch alone. Both the header and its users must say so. (Rooms see few
# modules: they would win a tenth, and GCC warns of a guard of c10 that it then takes for uninitialized.)
function(_argosy_use_pch target kind)
  set(pch argosy_pch_${kind})
  set(headers ${_argosy_pch_${kind}})
  set(options)
  if(kind MATCHES "^(everything|torch)$")
    set(options "$<$<CXX_COMPILER_ID:GNU>:-fno-devirtualize>")
  endif()
  if(ARGN STREQUAL FOR_TESTS)
    string(APPEND pch _for_tests)
    list(APPEND headers <gmock/gmock.h> <gtest/gtest.h>)
    target_link_libraries(${target} PRIVATE GTest::gtest GTest::gmock)
    list(APPEND options ${ARGOSY_TEST_OPTIONS})
  endif()
  if(NOT TARGET ${pch})
    file(WRITE ${PROJECT_BINARY_DIR}/${pch}.cpp "// holds the precompiled header\n")
    add_library(${pch} OBJECT ${PROJECT_BINARY_DIR}/${pch}.cpp)
    target_link_libraries(${pch} PRIVATE fmt::fmt)
    if(kind STREQUAL "everything")
      target_link_libraries(${pch} PRIVATE argosy::argosy)
    elseif(NOT kind STREQUAL "plain")
      target_link_libraries(${pch} PRIVATE argosy::torch)
    endif()
    if(ARGN STREQUAL FOR_TESTS)
      target_link_libraries(${pch} PRIVATE GTest::gtest GTest::gmock)
    endif()
    target_compile_options(${pch} PRIVATE "${options}")
    target_precompile_headers(${pch} PRIVATE ${headers})
    # GCC asks whether a header of now is, byte for byte, the one that was precompiled, so a cached one must not differ
    # in a comment either.
    if(CMAKE_CXX_COMPILER_LAUNCHER)
      string(REPLACE "CCACHE_NOHASHDIR=1" "CCACHE_NOHASHDIR=1;CCACHE_COMMENTS=1" launcher "${CMAKE_CXX_COMPILER_LAUNCHER}")
      set_target_properties(${pch} PROPERTIES CXX_COMPILER_LAUNCHER "${launcher}")
    endif()
  endif()
  target_link_libraries(${target} PRIVATE fmt::fmt)
  target_compile_options(${target} PRIVATE "${options}")
  # GCC warns of the insides of a header that is precompiled, std::string's too, as it does not of a system's header.
  # With ARGOSY_UNITY=OFF the rooms are compiled without, and with these warnings.
  target_compile_options(${target} PRIVATE
    "$<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds;-Wno-stringop-overflow;-Wno-stringop-overread>")
  target_precompile_headers(${target} REUSE_FROM ${pch})
endfunction()

function(argosy_part room part)
  argosy_room(${room}.${part} ${ARGN})
endfunction()

function(argosy_room name)
  cmake_parse_arguments(A "TORCH" "" "HEADERS;SOURCES;DEPS;PRIVATE_DEPS" ${ARGN})
  add_library(argosy_${name} STATIC ${A_SOURCES})
  add_library(argosy::${name} ALIAS argosy_${name})
  target_sources(argosy_${name} PUBLIC FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR} FILES ${A_HEADERS})
  target_compile_features(argosy_${name} PUBLIC cxx_std_20)
  set_target_properties(argosy_${name} PROPERTIES EXPORT_NAME ${name} ARGOSY_TORCH "${A_TORCH}")
  target_link_libraries(argosy_${name} PUBLIC ${A_DEPS} PRIVATE ${A_PRIVATE_DEPS})
  if(A_TORCH)
    target_link_libraries(argosy_${name} PUBLIC argosy::torch)
  endif()
  _argosy_unity(argosy_${name} 12 ${A_SOURCES})
  _argosy_room_pch(argosy_${name} ${A_TORCH})
  if(name MATCHES "^(${ARGOSY_STEERING_ROOMS})(\\.|$)")
    target_compile_options(argosy_${name} PRIVATE "${ARGOSY_STEERING_OPTIONS}")
  endif()
  argosy_install_archive(argosy_${name})
  list(JOIN A_DEPS "," deps) # a semicolon would split the entry
  list(JOIN A_PRIVATE_DEPS "," private_deps)
  set(files ${A_HEADERS} ${A_SOURCES})
  list(FILTER files EXCLUDE REGEX "^/") # made by the build
  list(JOIN files "," files)
  set_property(GLOBAL APPEND PROPERTY ARGOSY_ROOMS
    "${name}|${A_TORCH}|${deps},${private_deps}|${files}")
endfunction()

# Does any of these targets reach libtorch? Sets OUT to TRUE or FALSE.
function(_argosy_sees_torch out)
  set(${out} FALSE PARENT_SCOPE)
  foreach(dep IN LISTS ARGN)
    if(dep STREQUAL "argosy::torch")
      set(${out} TRUE PARENT_SCOPE)
    elseif(TARGET ${dep})
      get_target_property(torch ${dep} ARGOSY_TORCH)
      if(torch STREQUAL "TRUE")
        set(${out} TRUE PARENT_SCOPE)
      endif()
    endif()
  endforeach()
endfunction()

# argosy_program(NAME [UNITY] [FOR_TESTS] SOURCES ... DEPS ...): an executable in build/<preset>/bin.
#   UNITY: several of its files as one unit. FOR_TESTS: with ARGOSY_TEST_OPTIONS and GoogleTest.
function(argosy_program name)
  cmake_parse_arguments(A "UNITY;FOR_TESTS" "" "SOURCES;DEPS" ${ARGN})
  set(for_tests)
  if(A_FOR_TESTS)
    set(for_tests FOR_TESTS)
  endif()
  add_executable(${name} ${A_SOURCES})
  target_link_libraries(${name} PRIVATE ${A_DEPS})
  _argosy_sees_torch(torch ${A_DEPS})
  if(A_UNITY)
    _argosy_unity(${name} 10 ${A_SOURCES})
  endif()
  if(torch)
    _argosy_pch_for(kind ${name} ${for_tests})
    _argosy_use_pch(${name} ${kind} ${for_tests})
  elseif(A_FOR_TESTS)
    _argosy_use_pch(${name} plain FOR_TESTS)
  endif()
endfunction()

function(argosy_test_program name)
  argosy_program(${name} FOR_TESTS ${ARGN})
endfunction()

function(argosy_test name)
  if(NOT ARGOSY_BUILD_TESTS)
    return()
  endif()
  cmake_parse_arguments(A "PER_CASE;APART" "TIMEOUT;PROCESSORS" "SOURCES;DEPS;LABELS;ENVIRONMENT" ${ARGN})
  if(NOT A_TIMEOUT)
    set(A_TIMEOUT 60)
  endif()
  if(NOT A_PROCESSORS)
    set(A_PROCESSORS 1)
  endif()
  if(NOT A_LABELS)
    set(A_LABELS unit)
  endif()
  foreach(source IN LISTS A_SOURCES)
    file(STRINGS ${source} skips LIMIT_COUNT 1 REGEX "GTEST_SKIP")
    if(skips AND NOT A_PER_CASE AND NOT "${A_ENVIRONMENT}" MATCHES "GTEST_FILTER=-")
      message(FATAL_ERROR "${name}: a skipped case of ${source} would count as passed. PER_CASE, or take it "
        "out by GTEST_FILTER and name it in argosy_optional_test()")
    endif()
  endforeach()
  set(unity UNITY)
  if(A_APART)
    set(unity)
  endif()
  argosy_test_program(${name} ${unity} SOURCES ${A_SOURCES} DEPS ${A_DEPS})
  target_link_libraries(${name} PRIVATE GTest::gtest_main)
  set(properties TIMEOUT ${A_TIMEOUT} PROCESSORS ${A_PROCESSORS})
  if(A_PER_CASE)
    # gtest_discover_tests takes its properties apart three times on their way into ctest's file.
    string(REPEAT "\\" 8 escape)
    string(REPLACE ";" "${escape};" labels "${A_LABELS}")
    string(REPLACE ";" "${escape};" environment "${A_ENVIRONMENT}")
    if(A_ENVIRONMENT)
      list(APPEND properties ENVIRONMENT "${environment}")
    endif()
    gtest_discover_tests(${name} TEST_PREFIX "${name}." DISCOVERY_TIMEOUT 60
      PROPERTIES ${properties} LABELS "${labels}")
  else()
    add_test(NAME ${name} COMMAND ${name})
    set_tests_properties(${name} PROPERTIES ${properties} LABELS "${A_LABELS}"
      ENVIRONMENT "${A_ENVIRONMENT}" FAIL_REGULAR_EXPRESSION "\\[  SKIPPED \\]")
  endif()
endfunction()

# argosy_optional_test(NAME TEST CASE LABELS ...): one case of TEST that skips itself where hardware or
# data is absent, as a ctest of its own: ctest counts it as skipped. TEST itself leaves it out with
# ENVIRONMENT GTEST_FILTER=-CASE.
function(argosy_optional_test name test case)
  if(NOT ARGOSY_BUILD_TESTS)
    return()
  endif()
  cmake_parse_arguments(A "" "" "LABELS" ${ARGN})
  add_test(NAME ${name} COMMAND ${test} --gtest_filter=${case})
  set_tests_properties(${name} PROPERTIES TIMEOUT 120 LABELS "${A_LABELS}"
    SKIP_REGULAR_EXPRESSION "\\[  SKIPPED \\]" FAIL_REGULAR_EXPRESSION "\\[==========\\] 0 tests")
endfunction()

function(argosy_bench name)
  if(NOT ARGOSY_BUILD_BENCHMARKS)
    return()
  endif()
  cmake_parse_arguments(A "" "" "SOURCES;DEPS" ${ARGN})
  argosy_program(${name} SOURCES ${A_SOURCES} DEPS ${A_DEPS} benchmark::benchmark
    benchmark::benchmark_main)
endfunction()
