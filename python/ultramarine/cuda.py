"""Availability of CUDA."""

from ultramarine import _core, backends

__all__ = ["is_available"]


def is_available():
    """Tests whether a loaded backend serves devices of CUDA.

    Returns:
        bool: True if there is such a device.

    Example:
        >>> device = mx.gpu if mx.cuda.is_available() else mx.cpu
    """
    if _core.device_count(_core.gpu) == 0:  # the first need of a GPU loads backends
        return False
    return any(b.dlpack_device_type == 2 for b in backends.list())  # DLPack's number
