"""Lets PyTorch's own tests, which ask for Gloo on the CPU, run on another backend without a change to their files.

ARGOSY_TEST_BACKEND names the backend (default gloo: nothing is changed). ARGOSY_TEST_MODULE names the module whose
import registers it (default: argosy.torch for argosy). Wherever a test asks for "gloo" or "cpu:gloo", the group is made
by that backend, through the public way of Backend.register_backend. site/sitecustomize.py calls watch() in every
process that has that folder on PYTHONPATH, and so in those that tests spawn.
"""

import contextlib
import importlib
import importlib.abc
import os
import sys

GLOO = "gloo"
_PATCHED = "torch.distributed.distributed_c10d"
_PACKAGE = "torch.distributed"


def backend():
    return os.environ.get("ARGOSY_TEST_BACKEND", GLOO)


def active():
    return backend() != GLOO


def stand_in(asked):
    """What is made in place of the backends asked for: on the CPU the backend under test for Gloo."""
    if asked is None or ":" not in asked:
        return backend() if asked is not None and asked.lower() == GLOO else asked
    pairs = [pair.split(":") for pair in asked.lower().split(",")]
    return ",".join(f"{device}:{backend() if (device, name) == ('cpu', GLOO) else name}" for device, name in pairs)


class Name(str):
    """The backend's name as tests are told it: equal to itself, and to the Gloo that they asked for."""

    def __eq__(self, other):
        return str.__eq__(self, other) or other == GLOO

    def __ne__(self, other):
        return not self == other

    __hash__ = str.__hash__


def register():
    module = os.environ.get("ARGOSY_TEST_MODULE", f"{backend()}.torch")
    importlib.import_module(module)


def witness():
    """One byte for each group made by the backend under test, so that a run can show that it was not Gloo's."""
    path = os.environ.get("ARGOSY_TEST_WITNESS")
    if path:
        with open(path, "ab") as file:
            file.write(b".")


@contextlib.contextmanager
def default_of_the_cpu(c10d):
    """What a group gets that asks for no backend. Tests that ask for the CPU's default are told Gloo, as ever."""
    defaults = c10d.Backend.default_device_backend_map
    before = defaults["cpu"]
    defaults["cpu"] = backend()
    try:
        yield
    finally:
        defaults["cpu"] = before


def make_groups_of_the_backend(c10d):
    original = c10d._new_process_group_helper

    def make(group_size, group_rank, global_ranks, asked, *others, **named):
        register()
        wanted = stand_in(asked)
        with default_of_the_cpu(c10d):
            made = original(group_size, group_rank, global_ranks, wanted, *others, **named)
            if backend() in c10d.BackendConfig(wanted).get_device_backend_map().values():
                witness()
        return made

    c10d._new_process_group_helper = make


def direct_group(c10d, store, rank, size, *options, timeout=None, **_):
    """A backend made without a group, as unit tests make ProcessGroupGloo."""
    register()
    asked = c10d._DistributedBackendOptions()
    asked.store, asked.group_rank, asked.group_size = store, rank, size
    asked.group_id = "direct"
    asked.timeout = timeout or getattr(options[0] if options else None, "_timeout", c10d.default_pg_timeout)
    made = c10d.Backend._plugins[backend().upper()].creator_fn(asked, None)
    witness()
    return made


def substitute_class(c10d):
    """ProcessGroupGloo as tests see it. PyTorch's own modules keep the real one."""
    real = c10d.ProcessGroupGloo

    class Meta(type):
        def __call__(cls, *arguments, **named):
            caller = sys._getframe(1).f_globals.get("__name__", "")
            if caller.startswith(_PACKAGE):
                return real(*arguments, **named)
            return direct_group(c10d, *arguments, **named)

        def __getattr__(cls, name):
            return getattr(real, name)

        def __instancecheck__(cls, made):
            return isinstance(made, real)

    return Meta("ProcessGroupGloo", (), {})


def name_as_asked(package):
    original = package.get_backend
    package.get_backend = lambda group=None: _as_asked(original(group))


def _as_asked(name):
    return Name(name) if name == backend() else name


def on_import(module):
    if module.__name__ == _PATCHED:
        make_groups_of_the_backend(module)
    elif module.__name__ == _PACKAGE:
        c10d = sys.modules[_PATCHED]
        module.ProcessGroupGloo = substitute_class(c10d)
        name_as_asked(module)


class _Watcher(importlib.abc.MetaPathFinder):
    """Calls on_import as soon as one of the two modules has been executed, before others take names from them."""

    def find_spec(self, name, path=None, target=None):
        if name not in (_PATCHED, _PACKAGE):
            return None
        spec = next(filter(None, (self._ask(finder, name, path) for finder in sys.meta_path)), None)
        if spec is not None:
            execute = spec.loader.exec_module
            spec.loader.exec_module = lambda module: (execute(module), on_import(module))
        return spec

    def _ask(self, finder, name, path):
        return None if finder is self else finder.find_spec(name, path)


def watch():
    if active():
        sys.meta_path.insert(0, _Watcher())
