"""Compiles the backend against the PyTorch that is installed. See pyproject.toml for the rest."""

from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension

setup(
    ext_modules=[
        CppExtension(
            "argosy.torch._C",
            ["argosy/torch/module.cpp", "argosy/torch/process_group.cpp"],
            depends=["argosy/torch/library.h", "argosy/torch/process_group.h", "argosy/torch/work.h", "argosy/torch/comm.h"],
            extra_compile_args=["-std=c++20", "-O2", "-g0", "-fvisibility=hidden", "-DUSE_DISTRIBUTED", "-DUSE_C10D_GLOO"],
            extra_link_args=["-ldl"],
        )
    ],
    cmdclass={"build_ext": BuildExtension},
)
