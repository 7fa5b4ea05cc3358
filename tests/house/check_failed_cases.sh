#!/usr/bin/env bash
# check_failed_cases.sh SCRIPT: of what ctest prints, the cases that passed are left out, and nothing else.
set -euo pipefail
printed=$(cat <<'LINES'
 9/11 Test #1: a ........   Passed    0.01 sec
10/11 Test #2: b ........***Failed    0.01 sec
[ RUN      ] A.passes
what it prints
[       OK ] A.passes (1 ms)
[----------] 1 test from A
[ RUN      ] A.fails
why
[  FAILED  ] A.fails (2 ms)
[ RUN      ] A.hangs
how far it came
11/11 Test #3: c ........   Passed    0.01 sec
[ RUN      ] A.crashes
LINES
)
expected=$(sed '/passes/d; /what it prints/d; /----/d' <<<"$printed")
said=$("$1" <<<"$printed")
[[ $said == "$expected" ]] || { printf 'expected\n%s\ngot\n%s\n' "$expected" "$said"; exit 1; }
