"""The backends that were found: what runs the arrays' operations, and on which devices."""

# Made by python/tools/make_stubs.py: change the tables there.

import builtins
from typing import NamedTuple

from ultramarine import Device, DeviceType

class Backend(NamedTuple):
    """A backend: its name, the type of its devices, the devices, what each calls itself."""

    name: str
    device_type: DeviceType | None
    devices: tuple[Device, ...]
    descriptions: tuple[str, ...]

def list() -> builtins.list[Backend]: ...
