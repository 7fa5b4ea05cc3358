"""The wheel's program has no shared library, so it runs wherever pip knows Linux on x86-64, with any Python."""

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Tag(BuildHookInterface):
    def initialize(self, version, build_data):
        build_data["pure_python"] = False
        build_data["tag"] = "py3-none-manylinux_2_17_x86_64.manylinux2014_x86_64"
