"""The wheel's program has no shared library, so it runs with any libc and any Python on Linux 5.4 or newer on x86-64. Tags
name a libc: that of the first systems with such a kernel."""

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Tag(BuildHookInterface):
    def initialize(self, version, build_data):
        build_data["pure_python"] = False
        build_data["tag"] = "py3-none-manylinux_2_31_x86_64"
