# argosy_room(NAME [TORCH] HEADERS ... SOURCES ... DEPS ... [PRIVATE_DEPS ...])
#   A room: folder argosy/NAME, target argosy::NAME, namespace argosy::NAME. TORCH: it sees libtorch;
#   every other room must never link it (tests/house checks).
# argosy_test(NAME SOURCES ... DEPS ... [LABELS ...] [TIMEOUT s] [PROCESSORS n] [PER_CASE])
#   One ctest per binary; PER_CASE: one ctest per test case (cheap torch-free binaries).
# argosy_bench(NAME SOURCES ... DEPS ...): a Google Benchmark binary beside its room.
include(GNUInstallDirs)
include(GoogleTest)
set_property(GLOBAL PROPERTY ARGOSY_ROOMS "")
# fleet, which is compiled last, has two files: side by side they end earlier.
set(_argosy_demo_rooms base os events rendezvous transport comm_core launch doctor
  engine comm optim data vision metrics parallel)

# One precompiled <torch/torch.h> for all programs that see libtorch: 25 s once, 3 s to load, where
# the header costs 9 s. The rooms do without: their units include what they need, which takes 1 to
# 5 s. Not worth it for the one program of a build without tests.
function(_argosy_use_pch target)
  if(NOT ARGOSY_BUILD_TESTS AND NOT ARGOSY_BUILD_BENCHMARKS)
    return()
  endif()
  if(NOT TARGET argosy_pch)
    file(WRITE ${PROJECT_BINARY_DIR}/argosy_pch.cpp "// holds the precompiled header\n")
    add_library(argosy_pch OBJECT ${PROJECT_BINARY_DIR}/argosy_pch.cpp)
    target_link_libraries(argosy_pch PRIVATE argosy::torch fmt::fmt)
    target_precompile_headers(argosy_pch PRIVATE <torch/torch.h> <fmt/format.h> <fmt/ranges.h>)
  endif()
  target_precompile_headers(${target} REUSE_FROM argosy_pch)
endfunction()

# The headers that a unit of the same name includes before all else: they stand alone, or the room does
# not compile (a build with tests uses neither precompiled headers nor unity there), and house.layers sees
# to it that they use nothing private of the room. The others are compiled by house.headers_stand_alone.
# Which are which is seen when CMake runs, as `make` does each time, not when a unit is edited.
function(_argosy_headers_proven_by_units out headers sources)
  set(proven "")
  foreach(header IN LISTS headers)
    string(REGEX REPLACE "[.]h$" ".cpp" unit "${header}")
    if(unit IN_LIST sources)
      file(RELATIVE_PATH path ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR}/${header})
      file(STRINGS ${unit} first REGEX "^#" LIMIT_COUNT 1) # a #define before it would be part of the proof
      if(first STREQUAL "#include \"${path}\"")
        list(APPEND proven ${header})
      endif()
    endif()
  endforeach()
  set(${out} "${proven}" PARENT_SCOPE)
endfunction()

function(argosy_room name)
  cmake_parse_arguments(A "TORCH" "" "HEADERS;SOURCES;DEPS;PRIVATE_DEPS" ${ARGN})
  add_library(argosy_${name} STATIC ${A_SOURCES})
  add_library(argosy::${name} ALIAS argosy_${name})
  _argosy_headers_proven_by_units(proven "${A_HEADERS}" "${A_SOURCES}")
  set(others ${A_HEADERS})
  list(REMOVE_ITEM others ${proven})
  target_sources(argosy_${name} PUBLIC
    FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR} FILES ${others}
    FILE_SET proven TYPE HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR} FILES ${proven})
  target_compile_features(argosy_${name} PUBLIC cxx_std_20)
  set_target_properties(argosy_${name} PROPERTIES EXPORT_NAME ${name} ARGOSY_TORCH "${A_TORCH}"
    VERIFY_INTERFACE_HEADER_SETS ON INTERFACE_HEADER_SETS_TO_VERIFY HEADERS)
  target_link_libraries(argosy_${name} PUBLIC ${A_DEPS} PRIVATE ${A_PRIVATE_DEPS})
  if(A_TORCH)
    target_link_libraries(argosy_${name} PUBLIC argosy::torch)
  endif()
  # Reading headers (torch's, gRPC's, JSON's) is most of the work: eight files together take half the
  # time. Only where nobody works on them, for clang-tidy and rebuilds want each file alone; and only
  # in the rooms of `make demo`, which sees at once where names of two files collide.
  if(NOT ARGOSY_BUILD_TESTS AND name IN_LIST _argosy_demo_rooms)
    set_target_properties(argosy_${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
  endif()
  install(TARGETS argosy_${name} EXPORT argosyTargets FILE_SET HEADERS FILE_SET proven)
  list(JOIN A_DEPS "," deps) # a semicolon would split the entry
  list(JOIN A_PRIVATE_DEPS "," private_deps)
  file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR}/argosy ${CMAKE_CURRENT_SOURCE_DIR})
  set(files ${A_HEADERS} ${A_SOURCES})
  list(FILTER files EXCLUDE REGEX "^/") # made by the build
  list(JOIN files "," files)
  set_property(GLOBAL APPEND PROPERTY ARGOSY_ROOMS
    "${name}|${A_TORCH}|${deps},${private_deps}|${folder}|${files}")
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

# argosy_program(NAME SOURCES ... DEPS ...): an executable in build/<preset>/bin.
function(argosy_program name)
  cmake_parse_arguments(A "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${A_SOURCES})
  target_link_libraries(${name} PRIVATE ${A_DEPS})
  _argosy_sees_torch(torch ${A_DEPS})
  if(torch)
    _argosy_use_pch(${name})
  endif()
endfunction()

function(argosy_test name)
  if(NOT ARGOSY_BUILD_TESTS)
    return()
  endif()
  cmake_parse_arguments(A "PER_CASE" "TIMEOUT;PROCESSORS" "SOURCES;DEPS;LABELS;ENVIRONMENT" ${ARGN})
  if(NOT A_TIMEOUT)
    set(A_TIMEOUT 60)
  endif()
  if(NOT A_PROCESSORS)
    set(A_PROCESSORS 1)
  endif()
  if(NOT A_LABELS)
    set(A_LABELS unit)
  endif()
  argosy_program(${name} SOURCES ${A_SOURCES} DEPS ${A_DEPS} GTest::gtest GTest::gmock)
  target_link_libraries(${name} PRIVATE GTest::gtest_main)
  # The rooms keep -O3; what a test compiles itself, templates in headers included, takes three quarters
  # of the time. With less inlining GCC takes an empty std::optional for an uninitialized one.
  target_compile_options(${name} PRIVATE "$<$<CONFIG:Release>:-O1;-Wno-maybe-uninitialized>")
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
      ENVIRONMENT "${A_ENVIRONMENT}")
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
