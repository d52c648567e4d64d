from typing import Any

from ultramarine import Device, DeviceType, Stream, ThreadLocalStream, array

__version__: str

# Whatever `ultramarine.asarray` takes is an array here.
def axpby(
    x: Any,
    y: Any,
    alpha: float,
    beta: float,
    *,
    stream: Stream | ThreadLocalStream | Device | DeviceType | None = None,
) -> array:
    """alpha * x + beta * y, element by element, in one pass over memory."""
