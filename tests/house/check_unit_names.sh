#!/usr/bin/env bash
# check_unit_names.sh SOURCE: builds without tests compile several files of a room as one unit
# (cmake/ArgosyRoom.cmake), where two constants of one name collide. Builds with tests do not see it.
set -euo pipefail
cd "$1"
rooms=$(sed -n '/^set(_argosy_demo_rooms/,/)/p' cmake/ArgosyRoom.cmake | tr -d '()' | sed 's/^set_argosy_demo_rooms//')
[[ -n $rooms ]] || { echo "no rooms found in cmake/ArgosyRoom.cmake" >&2; exit 1; }
found=0
for room in $rooms; do
  [[ -d argosy/$room ]] || continue # comm_core lies in comm
  seen=$(find "argosy/$room" -name '*.cpp' ! -name '*_test.cpp' ! -name '*_bench.cpp' ! -path '*/kernels/*' \
    -exec grep -HoE '^(static |inline )?constexpr [^=({]*[ *]k[A-Za-z0-9_]+(\[[^]]*\])?( =|\{)' {} + |
    sed -E 's/^([^:]+):.*[ *](k[A-Za-z0-9_]+)(\[[^]]*\])?( =|\{)$/\2 \1/' | sort -u)
  for name in $(cut -d' ' -f1 <<< "$seen" | uniq -d); do
    echo "room $room: $name stands in several files, give each a name of its own:" \
      "$(awk -v name="$name" '$1 == name { printf " %s", $2 }' <<< "$seen")" >&2
    found=1
  done
done
exit $found
