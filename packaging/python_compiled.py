"""What is compiled where argosy.torch or argosy.paddle is installed, for one version of PyTorch or Paddle: what that needs,
what it is called, and how it is loaded. packaging/python_backend.sh puts this into both, as _compiled.py."""

import atexit
import importlib
import importlib.util
import os
import platform
import shutil
import sys
import sysconfig
from pathlib import Path

LIBRARY = Path(__file__).parent / "lib" / "libargosy_comm.so"


def _machine(program):
    """For which processors a program or library is, as the head of an ELF file has it; None: it is no such file."""
    try:
        with program.open("rb") as file:
            head = file.read(20)
    except OSError:
        return None
    return head[18:] if head.startswith(b"\x7fELF") else None


def _lacks(include):
    import setuptools

    compiler = (os.environ.get("CXX") or "c++").split()[0]
    version = int(setuptools.__version__.split(".")[0])
    if version < 61:
        yield f"setuptools 61 or newer, and here is {setuptools.__version__}: pip install -U setuptools"
    elif version < 71 and "build_ext" not in sys.argv and importlib.util.find_spec("wheel") is None:
        yield f"wheel, which setuptools {setuptools.__version__} asks for: pip install wheel"
    if LIBRARY.exists() and _machine(Path(sys.executable)) not in (None, _machine(LIBRARY)):
        yield f"a package for {platform.machine()}: this one has been built on another kind of machine"
    if shutil.which(compiler) is None:
        yield f"a C++ compiler, and there is no {compiler}: GCC 11 or newer (Debian: apt install g++)"
    if not Path(include, "Python.h").exists():
        yield f"Python's headers, and there is no {include}/Python.h (Debian: apt install python3-dev)"
    if not LIBRARY.exists():
        yield (
            f"{LIBRARY.name}, which is not here: this is its source without it. `make torch paddle` in a checkout of "
            "Argosy puts it into the packages in build/packages, and pip installs those"
        )


def check(package):
    """Ends the installation with a line for each thing that is missing, before the compiler does with hundreds."""
    missing = [f"{package} needs {what}" for what in _lacks(sysconfig.get_path("include"))]
    if missing:
        sys.exit("\n".join(missing))


def module_name(version):
    """2.15.0+cpu: _C_2_15_0."""
    return "_C_" + "".join(c if c.isalnum() else "_" for c in version.split("+")[0])


def load(package, runtime, version):
    """The module that was compiled for this version. Another one would call wrong functions of its classes."""
    try:
        module = importlib.import_module(f"{package}.{module_name(version)}")
    except ModuleNotFoundError:
        names = (path.name.split(".")[0] for path in LIBRARY.parent.parent.glob("_C_*.so"))
        there = ", ".join(sorted(name[3:].replace("_", ".") for name in names)) or "(none)"
        raise ImportError(
            f"{package} was compiled for {runtime} {there}, and this is {version}, whose C++ classes differ. Install it "
            "again: pip install --no-cache-dir --force-reinstall --no-deps --no-build-isolation, and its .tar.gz"
        ) from None
    module.load(str(LIBRARY))
    atexit.register(module.close_all)
    return module
