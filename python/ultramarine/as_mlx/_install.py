"""Installs the names, and takes them back."""

from __future__ import annotations

import sys
import threading
from types import TracebackType

import ultramarine
from ultramarine.as_mlx import _children
from ultramarine.as_mlx._finder import Finder, is_mlx

MLX_VERSION = "0.32.4"
"""Version of MLX whose interface Ultramarine has; docs/parity.md compares the two."""

_lock = threading.RLock()
_finder: Finder | None = None
_own_version = ultramarine.__version__


class Installation:
    """Result of `install`: as a context manager, it calls `uninstall` at the end of its block."""

    def __enter__(self) -> Installation:
        """Returns the object itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Takes the names back."""
        uninstall()


def installed() -> bool:
    """Tests whether MLX's names stand for Ultramarine's modules.

    Returns:
        bool: True between `install` and `uninstall`.
    """
    return _finder is not None


def install() -> Installation:
    """Makes MLX's module names stand for Ultramarine's modules; has no effect where they do already.

    Returns:
        Installation: Context manager that calls `uninstall` at the end of a `with` block.

    Raises:
        ImportError: If another `mlx` is imported already: its arrays would meet Ultramarine's.
    """
    global _finder
    with _lock:
        if _finder is None:
            _refuse_imported()
            _finder = Finder(MLX_VERSION, _children.HOOKS)
            sys.meta_path.insert(0, _finder)
            ultramarine.__version__ = MLX_VERSION
            _children.install()
    return Installation()


def uninstall() -> None:
    """Takes MLX's names back: the next `import mlx` looks for an installed MLX. Has no effect where they are not installed.

    Modules that imported the names before keep Ultramarine's.
    """
    global _finder
    with _lock:
        if _finder is None:
            return
        if _finder in sys.meta_path:
            sys.meta_path.remove(_finder)
        _finder = None
        for name in filter(is_mlx, list(sys.modules)):
            del sys.modules[name]
        ultramarine.__version__ = _own_version
        _children.uninstall()


def _refuse_imported() -> None:
    """Raises where another `mlx` is imported."""
    found = [name for name in sys.modules if is_mlx(name) and sys.modules[name] is not None]
    if not found:
        return
    found.sort(key=lambda name: name != "mlx.core")  # the file of that one first
    files = [file for name in found if (file := getattr(sys.modules[name], "__file__", None))]
    where = files[0] if files else ", ".join(getattr(sys.modules[found[0]], "__path__", []))
    raise ImportError(
        f"[as_mlx] mlx is imported already, from {where or 'an unknown place'}, so its names cannot stand for "
        "Ultramarine's modules. Import ultramarine.as_mlx before mlx, or run the program with "
        "`python -m ultramarine.as_mlx`.",
        name="mlx",
    )
