#!/usr/bin/env bash
set -euo pipefail
cd "$(dirname "$0")/../.."
command -v clang-format-14 >/dev/null || { echo "clang-format-14 is missing: scripts/install_deps.sh test" >&2; exit 1; }
scripts/sources.sh | xargs clang-format-14 --dry-run -Werror
