#!/usr/bin/env bash
# fit.sh PROGRAM: TensorBoard and VisualDL read what callbacks of a real fit() wrote, and the run's metrics
# agree. READERS, or .venv-readers (make readers), is a Python that has both.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
python=${READERS:-$here/../../.venv-readers/bin/python}
"$python" -c 'import tensorboard, visualdl' 2>/dev/null ||
  { echo "skipped: no Python with tensorboard and visualdl ($python): make readers, or READERS=<python>"; exit 77; }
timeout 150 "$python" "$here/fit.py" "$1"
