"""Compiles the backend against the PyTorch that is installed. See pyproject.toml for the rest."""

import sys
from pathlib import Path

from setuptools import setup

try:
    from torch.utils.cpp_extension import BuildExtension, CppExtension
except ImportError:
    sys.exit(
        "argosy.torch is compiled against PyTorch, which is not to be seen here: install torch first, and call pip "
        "with --no-build-isolation"
    )

HERE = Path(__file__).parent
SOURCES = "argosy/torch"

if not (HERE / SOURCES / "lib" / "libargosy_comm.so").exists():
    sys.exit(
        "argosy.torch: libargosy_comm.so is not here. This is its source without it: `make torch` in a checkout of "
        "Argosy puts both into build/packages/argosy_torch-<version>.tar.gz, and pip installs that"
    )

setup(
    ext_modules=[
        CppExtension(
            "argosy.torch._C",
            [f"{SOURCES}/module.cpp", f"{SOURCES}/process_group.cpp"],
            depends=[*map(str, HERE.glob("argosy/*/*.h"))],
            include_dirs=[str(HERE)],
            extra_compile_args=["-std=c++20", "-O2", "-g0", "-fvisibility=hidden", "-DUSE_DISTRIBUTED"],
            extra_link_args=["-ldl"],
        )
    ],
    cmdclass={"build_ext": BuildExtension},
)
