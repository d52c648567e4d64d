"""Availability of Metal, and old names of functions that are in the package itself."""

# Made by python/tools/make_stubs.py of the module's docstrings: change those.

from typing import Any

def clear_cache(*args: Any) -> None:
    """Calls `clear_cache` of the package, of which this is the old name.

    Args:
        *args (Any): Arguments as of `clear_cache`.
    """

def device_info() -> dict[str, str | int]:
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

def get_active_memory(*args: Any) -> int:
    """Calls `get_active_memory` of the package, of which this is the old name.

    Args:
        *args (Any): Arguments as of `get_active_memory`.

    Returns:
        int: As of `get_active_memory`.
    """

def get_cache_memory(*args: Any) -> int:
    """Calls `get_cache_memory` of the package, of which this is the old name.

    Args:
        *args (Any): Arguments as of `get_cache_memory`.

    Returns:
        int: As of `get_cache_memory`.
    """

def get_peak_memory(*args: Any) -> int:
    """Calls `get_peak_memory` of the package, of which this is the old name.

    Args:
        *args (Any): Arguments as of `get_peak_memory`.

    Returns:
        int: As of `get_peak_memory`.
    """

def is_available() -> bool:
    """Tests whether a loaded backend serves devices of Metal.

    Returns:
        bool: True if there is such a device.

    Example:
        >>> device = mx.gpu if mx.metal.is_available() else mx.cpu
    """

def reset_peak_memory(*args: Any) -> None:
    """Calls `reset_peak_memory` of the package, of which this is the old name.

    Args:
        *args (Any): Arguments as of `reset_peak_memory`.
    """

def set_cache_limit(*args: Any) -> int:
    """Calls `set_cache_limit` of the package, of which this is the old name.

    Args:
        *args (Any): Arguments as of `set_cache_limit`.

    Returns:
        int: As of `set_cache_limit`.
    """

def set_memory_limit(*args: Any) -> int:
    """Calls `set_memory_limit` of the package, of which this is the old name.

    Args:
        *args (Any): Arguments as of `set_memory_limit`.

    Returns:
        int: As of `set_memory_limit`.
    """

def set_wired_limit(*args: Any) -> int:
    """Calls `set_wired_limit` of the package, of which this is the old name.

    Args:
        *args (Any): Arguments as of `set_wired_limit`.

    Returns:
        int: As of `set_wired_limit`.
    """

def start_capture(path: str) -> None:
    """Has no effect: no backend captures commands for Metal's tools.

    Args:
        path (str): File that MLX would write to.

    Example:
        >>> mx.metal.start_capture("trace.gputrace")
        >>> mx.metal.stop_capture()
    """

def stop_capture() -> None:
    """Has no effect: see `start_capture`.

    Example:
        >>> mx.metal.stop_capture()
    """
