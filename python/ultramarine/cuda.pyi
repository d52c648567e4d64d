"""Availability of CUDA."""

# Made by python/tools/make_stubs.py of the module's docstrings: change those.

def is_available() -> bool:
    """Tests whether a loaded backend serves devices of CUDA.

    Returns:
        bool: True if there is such a device.

    Example:
        >>> device = mx.gpu if mx.cuda.is_available() else mx.cpu
    """
