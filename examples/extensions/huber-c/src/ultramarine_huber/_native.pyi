from typing import Any

from ultramarine import Device, DeviceType, Stream, ThreadLocalStream, array

def huber(
    x: Any,
    delta: float = 1.0,
    *,
    stream: Stream | ThreadLocalStream | Device | DeviceType | None = None,
) -> array:
    """The Huber function of x."""
