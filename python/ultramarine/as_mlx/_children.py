"""Processes that `multiprocessing` starts afresh, by `spawn` and `forkserver`, have names and default device of this one.

Such a process unpickles data that its parent prepared, and then imports the main module. One more item in the data
installs the names, and sets the device, where it is unpickled.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import ultramarine as mx

_SPAWN = "multiprocessing.spawn"
_FORKSERVER = "multiprocessing.forkserver"


# Default device with which the program was started; "" if none was given.
_device = ""


def set_device(name: str) -> None:
    """Sets the default device, of processes to come, too.

    Args:
        name (str): "cpu", "gpu", or with a number, "gpu:1".

    Raises:
        ValueError: If the name is none of a device, or there is no such device.
    """
    global _device
    kind, _, index = name.partition(":")
    if kind not in ("cpu", "gpu") or not (index.isdecimal() or name == kind):
        raise ValueError(
            f"{name!r} is not a device. Use cpu, gpu, or one with its number, such as gpu:1."
        )
    mx.set_default_device(mx.Device(getattr(mx, kind), int(index or 0)))
    _device = name


class _InChild:
    """Installs the names in the process that unpickles it."""

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        # The item is unpickled before the parent's search path is set, but ultramarine may be found only on that path.
        source = f"import sys; sys.path[:] = {sys.path!r}; import ultramarine.as_mlx"
        if _device:
            source += f"; from {__name__} import set_device; set_device({_device!r})"
        return exec, (source, {})


class _GetPreparationData:
    """`multiprocessing.spawn.get_preparation_data`, whose data installs the names, too."""

    def __init__(self, original: Callable[[str], dict[str, Any]]) -> None:
        self.original = original

    def __call__(self, name: str) -> dict[str, Any]:
        return self.original(name) | {"ultramarine_as_mlx": _InChild()}


def _spawn(module: Any) -> None:
    module.get_preparation_data = _GetPreparationData(module.get_preparation_data)


def _forkserver(module: Any) -> None:
    # Preload this module instead of the main module, which the server would import without the MLX names. Each child
    # imports the main module anyway.
    module.set_forkserver_preload(["ultramarine.as_mlx"])


HOOKS: dict[str, Callable[[ModuleType], None]] = {_SPAWN: _spawn, _FORKSERVER: _forkserver}


def install() -> None:
    """Changes the modules that are imported already; the finder calls the hooks of others."""
    for name, hook in HOOKS.items():
        if name in sys.modules:
            hook(sys.modules[name])


def uninstall() -> None:
    """Takes the changes back."""
    spawn: Any = sys.modules.get(_SPAWN)
    ours = getattr(spawn, "get_preparation_data", None)
    if isinstance(ours, _GetPreparationData):
        spawn.get_preparation_data = ours.original
    forkserver = sys.modules.get(_FORKSERVER)
    if forkserver is not None:
        forkserver.set_forkserver_preload(["__main__"])
