#!/usr/bin/env bash
# Reads what ctest --output-on-failure prints, and leaves out each case of a googletest program that passed. What a case
# prints is held back until its end is known; of a program that hangs or crashes it is the last thing to be shown.
held="" holding=""
show() {
  printf '%s' "$held"
  held="" holding=""
}
while IFS= read -r line || [[ -n $line ]]; do
  case $line in
    "[ RUN      ]"*) show; holding=1 ;;
    "[       OK ]"*) held="" holding=""; continue ;;
    "[----------]"*) continue ;;
    "[  FAILED  ]"* | "[  SKIPPED ]"*) show ;;
  esac
  [[ $line =~ ^\ *[0-9]+/[0-9]+\ Test ]] && show
  if [[ -n $holding ]]; then held+=$line$'\n'; else printf '%s\n' "$line"; fi
done
show
