"""The backends that were found: what runs the arrays' operations, and on which devices."""

from collections import namedtuple

from ultramarine import _core

__all__ = ["Backend", "list"]

Backend = namedtuple("Backend", ["name", "device_type", "devices", "descriptions"])
Backend.__doc__ = """A backend: its name, the type of its devices, the devices, and what each
of them calls itself."""


def list():
    """The backends that were found, the linked-in CPU backend first."""
    found = []
    for name, served in _core._backends():
        devices = tuple(device for device, _ in served)
        kind = devices[0].type if devices else None
        found.append(Backend(name, kind, devices, tuple(text for _, text in served)))
    return found
