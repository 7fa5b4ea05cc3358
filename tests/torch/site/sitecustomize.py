"""Python imports this by itself in every process that has the folder on PYTHONPATH: the shim reaches all ranks."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent.parent))
import shim  # noqa: E402

shim.watch()
