"""The backends: what runs the arrays' operations, on which devices, and how they are found.

Nothing is loaded by the import. The first need of a GPU loads what can be found, once; `load_all`
in its place says what to take, `load` adds one file. What was not taken, and why, is in
the `report`, which `python -m ultramarine backends` prints.
"""

import os
from types import SimpleNamespace as _Record

from ultramarine import _core

__all__ = [
    "Backend",
    "OpCount",
    "device_count",
    "get",
    "include_dir",
    "is_available",
    "is_strict",
    "list",
    "op_counts",
    "reset_op_counts",
    "set_strict",
]

_list = list


class Backend(_Record):
    """A loaded backend: `name`, `variant` and `version`; its `score`; `device_type` and `devices`
    that it serves, with their `descriptions`; `path` of its file, `None` if it is built in."""


class OpCount(_Record):
    """How often the operation `op` ran on a `device`, by whose kernels (`backend`, `variant`), and
    how: `native`, `decomposed` into simpler operations there, or on the `cpu`."""


def list():
    """The loaded backends, the built-in CPU first. Loads nothing."""
    return [Backend(**facts) for facts in _core._backends()]


def get(device_or_name):
    """The backend of a device (a `Device` or a `DeviceType`), or the loaded one of a name.

    Raises `ValueError` where there is none. A GPU loads what can be found; a name loads nothing:
    see `load_best`."""
    if isinstance(device_or_name, str):
        for backend in list():
            if backend.name == device_or_name:
                return backend
        loaded = ", ".join(b.name for b in list())
        raise ValueError(f"No backend {device_or_name!r} is loaded; loaded: {loaded}.")
    return Backend(**_core._backend_of(device_or_name))


def is_available(device_type):
    """Whether there is a device of a type."""
    return device_count(device_type) > 0


def device_count(device_type):
    """The number of devices of a type, over all backends."""
    return _core.device_count(device_type)


def op_counts():
    """How often each operation ran on each device, and how, since the start or `reset_op_counts`.
    Operations that are only views of their operands reach no backend and are not counted."""
    return [OpCount(**row) for row in _core._op_counts()]


def reset_op_counts():
    """Sets the counts of `op_counts` to zero."""
    _core._reset_op_counts()


def set_strict(on, allow=()):
    """Switches strict mode: an operation that its device cannot run, not even by simpler ones,
    raises instead of running on the CPU. `allow` names operations, as `op_counts` does, that may
    run there even so. `ULTRAMARINE_STRICT=1` in the environment switches it on, too."""
    _core._set_strict(bool(on), _list(allow))


def is_strict():
    """Whether strict mode is on, see `set_strict`."""
    return _core._is_strict()


def include_dir():
    """The directory of the contract's C headers: what a compiler needs as `-I` to build a backend."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "include")
