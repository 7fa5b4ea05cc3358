#!/usr/bin/env bash
# check_skipped.sh SCRIPT: what the script says after a run of ctest counts each skipped test once, by its reason.
set -euo pipefail
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cat >"$scratch/CTestTestfile.cmake" <<'TESTS'
add_test(cases sh -c "echo 'a_test.cpp:1: Skipped'; echo 'no CUDA device'; echo 'b_test.cpp:2: Skipped'; echo 'one CPU'; exit 77")
add_test(device sh -c "echo 'b_test.cpp:2: Skipped'; echo 'no CUDA device'; exit 77")
add_test(peer sh -c "echo 'skipped: no Python with torch (/venv/python): make peers'; exit 77")
add_test(passes sh -c "echo 'skipping nothing'")
set_tests_properties(cases device peer PROPERTIES SKIP_RETURN_CODE 77)
TESTS
(cd "$scratch" && ctest >/dev/null)
expected=$'Skipped: 3 tests, because\n    2  no CUDA device\n    1  no Python with torch'
said=$("$1" "$scratch")
[[ $said == "$expected" ]] || { printf 'expected\n%s\ngot\n%s\n' "$expected" "$said"; exit 1; }
