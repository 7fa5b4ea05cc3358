#!/usr/bin/env bash
# check_breach.sh SAYS COMMAND...: a check, run on a tree that breaks its rule, fails and names the breach.
# SAYS: an extended regular expression in which . also stands for the end of a line.
set -euo pipefail
says=$1
shift
code=0
output=$("$@" 2>&1) || code=$?
echo "$output"
((code != 0)) || { echo "check_breach: expected the check to fail, it ended with 0"; exit 1; }
[[ $output =~ $says ]] || { echo "check_breach: expected the words: $says"; exit 1; }
