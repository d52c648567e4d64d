from typing import Any

from ultramarine import Device, DeviceType, Stream, ThreadLocalStream, array

def axpby(
    x: Any,
    y: Any,
    alpha: float,
    beta: float,
    *,
    stream: Stream | ThreadLocalStream | Device | DeviceType | None = None,
) -> array:
    """alpha * x + beta * y, in one pass."""
