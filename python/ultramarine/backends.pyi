"""The backends: what runs the arrays' operations, on which devices, and how they are found."""

# Made by python/tools/make_stubs.py: change the tables there.

import builtins
from collections.abc import Iterable

from ultramarine import Device, DeviceType

class Backend:
    """A loaded backend."""

    name: str
    variant: str
    version: str
    score: int
    device_type: DeviceType
    devices: builtins.list[Device]
    descriptions: builtins.list[str]
    path: str | None

class OpCount:
    """How often an operation ran on a device, and how."""

    device: Device
    backend: str
    variant: str
    op: str
    native: int
    decomposed: int
    cpu: int

def list() -> builtins.list[Backend]: ...
def get(device_or_name: Device | DeviceType | str) -> Backend: ...
def is_available(device_type: DeviceType) -> bool: ...
def device_count(device_type: DeviceType) -> int: ...
def op_counts() -> builtins.list[OpCount]: ...
def reset_op_counts() -> None: ...
def set_strict(on: bool, allow: Iterable[str] = ()) -> None: ...
def is_strict() -> bool: ...
def include_dir() -> str: ...
