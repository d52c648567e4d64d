"""Availability of Metal, and old names of functions that are in the package itself."""

import warnings

from ultramarine import _core, backends

__all__ = [
    "clear_cache",
    "device_info",
    "get_active_memory",
    "get_cache_memory",
    "get_peak_memory",
    "is_available",
    "reset_peak_memory",
    "set_cache_limit",
    "set_memory_limit",
    "set_wired_limit",
    "start_capture",
    "stop_capture",
]


def is_available():
    """Tests whether a loaded backend serves devices of Metal.

    Returns:
        bool: True if there is such a device.

    Example:
        >>> device = mx.gpu if mx.metal.is_available() else mx.cpu
    """
    if _core.device_count(_core.gpu) == 0:  # the first need of a GPU loads backends
        return False
    return any(b.dlpack_device_type == 8 for b in backends.list())  # DLPack's number


def start_capture(path):
    """Has no effect: no backend captures commands for Metal's tools.

    Args:
        path (str): File that MLX would write to.

    Example:
        >>> mx.metal.start_capture("trace.gputrace")
        >>> mx.metal.stop_capture()
    """


def stop_capture():
    """Has no effect: see `start_capture`.

    Example:
        >>> mx.metal.stop_capture()
    """


def _old(name):
    message = f"metal.{name} is deprecated: use {name} of the package itself."
    function = getattr(_core, name)

    def call(*args):
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        return function(*args)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = (
        f"Calls `{name}` of the package, of which this is the old name.\n\n"
        f"Args:\n    *args (Any): Arguments as of `{name}`.\n"
    )
    if "Returns:" in function.__doc__:
        call.__doc__ += f"\nReturns:\n    int: As of `{name}`.\n"
    return call


clear_cache = _old("clear_cache")
get_active_memory = _old("get_active_memory")
get_cache_memory = _old("get_cache_memory")
get_peak_memory = _old("get_peak_memory")
reset_peak_memory = _old("reset_peak_memory")
set_cache_limit = _old("set_cache_limit")
set_memory_limit = _old("set_memory_limit")
set_wired_limit = _old("set_wired_limit")


def device_info():
    """Describes the first accelerator: the old name of `device_info` of the package.

    Returns:
        dict[str, str | int]: As of `device_info`.

    Example:
        >>> import warnings
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")
        ...     info = mx.metal.device_info()
        >>> isinstance(info, dict)
        True
    """
    message = "metal.device_info is deprecated: use device_info of the package itself."
    warnings.warn(message, DeprecationWarning, stacklevel=2)
    return _core.device_info(_core.gpu)
