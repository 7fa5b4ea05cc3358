"""Compiles the backend against the PyTorch that is installed. See pyproject.toml for the rest."""

import sys
from pathlib import Path

from setuptools import setup

HERE = Path(__file__).resolve().parent
SOURCES = "argosy/torch"
sys.path.insert(0, str(HERE / SOURCES))
import _compiled

try:
    import torch
    from torch.utils.cpp_extension import BuildExtension, CppExtension
except ImportError as error:
    sys.exit(
        f"argosy.torch is compiled against PyTorch, which is not to be seen here ({error}): install torch first, and call pip "
        "with --no-build-isolation"
    )

_compiled.check("argosy.torch")
setup(
    ext_modules=[
        CppExtension(
            f"argosy.torch.{_compiled.module_name(torch.__version__)}",
            [f"{SOURCES}/module.cpp", f"{SOURCES}/process_group.cpp"],
            depends=[*map(str, HERE.glob("argosy/*/*.h"))],
            include_dirs=[str(HERE)],
            extra_compile_args=["-std=c++20", "-O2", "-g0", "-fvisibility=hidden", "-DUSE_DISTRIBUTED"],
            extra_link_args=["-ldl"],
        )
    ],
    cmdclass={"build_ext": BuildExtension},
)
