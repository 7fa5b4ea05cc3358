"""Compiles the process group against the Paddle that is installed. See pyproject.toml for the rest."""

import re
import sys
from pathlib import Path

from setuptools import Extension, setup

HERE = Path(__file__).resolve().parent
SOURCES = "argosy/paddle"
sys.path.insert(0, str(HERE / SOURCES))
import _compiled

try:
    import paddle
    from paddle.base import libpaddle
except ImportError as error:
    sys.exit(
        f"argosy.paddle is compiled against Paddle, which is not to be seen here ({error}): install paddlepaddle first, and call "
        "pip with --no-build-isolation"
    )

_compiled.check("argosy.paddle")
MODULE = _compiled.module_name(paddle.__version__)
INCLUDE, LIBRARIES = Path(paddle.sysconfig.get_include()), Path(paddle.sysconfig.get_lib())


def pybind_abi():
    """What pybind11 calls the compiler that Paddle was made with: only under that name it finds Paddle's classes."""
    found = re.search(rb"__pybind11_internals_v\d+_\w*?(_cxxabi\d+)\w*__", Path(libpaddle.__file__).read_bytes())
    return [("PYBIND11_BUILD_ABI", f'"{found[1].decode()}"')] if found else []


setup(
    ext_modules=[
        Extension(
            f"argosy.paddle.{MODULE}",
            [f"{SOURCES}/module.cpp", f"{SOURCES}/process_group.cpp"],
            depends=[*map(str, HERE.glob("argosy/*/*.h"))],
            include_dirs=[str(HERE)],
            library_dirs=[str(LIBRARIES)],
            # Which of them has what is used changes with the version; all are there when Paddle is.
            libraries=[name for name in ("phi_core", "phi", "common") if (LIBRARIES / f"lib{name}.so").exists()],
            define_macros=[("ARGOSY_MODULE", MODULE), *pybind_abi()],
            # -isystem: what the compiler has to say of Paddle's headers is for Paddle.
            extra_compile_args=["-std=c++17", "-O2", "-g0", "-fvisibility=hidden", "-isystem", str(INCLUDE)]
            + ["-isystem", str(INCLUDE / "third_party")],
            extra_link_args=["-ldl", "-Wl,--as-needed"],
            language="c++",
        )
    ],
)
