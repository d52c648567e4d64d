"""Import finder that answers MLX's names with Ultramarine's modules."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.abc import Loader
    from importlib.metadata import Distribution, DistributionFinder
else:
    Loader = object  # importlib.abc takes longer to import than everything here

MODULES = {
    "core": "ultramarine",
    "extension": "ultramarine.extension",
    "nn": "ultramarine.nn",
    "optimizers": "ultramarine.optimizers",
    "utils": "ultramarine.utils",
}
"""Our module for each module of MLX. Modules inside of them have the same names, but for those of `core`."""

CORE = ("cuda", "distributed", "fast", "fft", "linalg", "metal", "random")
"""Modules of `mlx.core`."""

Hooks = dict[str, Callable[[ModuleType], None]]


def is_mlx(name: str) -> bool:
    """Tests whether a module's name is `mlx` or inside of it."""
    return name == "mlx" or name.startswith("mlx.")


def counterpart(name: str) -> str | None:
    """Returns the name of our module for one inside of `mlx`; None if there is none."""
    _, first, *rest = name.split(".")
    if first not in MODULES or (first == "core" and rest and (rest[0] not in CORE or rest[1:])):
        return None
    ours = ".".join([MODULES[first], *rest])
    if ours not in sys.modules and importlib.util.find_spec(ours) is None:
        return None
    return ours


class Finder:
    """Finds `mlx` and everything inside of it, and nothing else.

    Args:
        version (str): Version of the distribution `mlx` that it reports.
        hooks (dict): Functions that are called with a module once it is imported, by its name.
    """

    def __init__(self, version: str, hooks: Hooks) -> None:
        self.version = version
        self.hooks = hooks

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Returns the spec of our module.

        Raises:
            ModuleNotFoundError: If the name is inside of `mlx`, and we have nothing for it. Finders of files must not
                go on: they would find the installed MLX, or a module of ours for a second time.
        """
        if fullname in self.hooks:
            return self._hooked(fullname, path)
        if not is_mlx(fullname):
            return None
        if fullname == "mlx":
            return ModuleSpec(fullname, _Package(), is_package=True)
        ours = counterpart(fullname)
        if ours is None:
            raise ModuleNotFoundError(_unknown(fullname), name=fullname)
        return ModuleSpec(fullname, _Alias(ours))

    def _hooked(self, fullname: str, path: Sequence[str] | None) -> ModuleSpec | None:
        spec = PathFinder.find_spec(fullname, path)
        if spec is not None and spec.loader is not None:
            spec.loader = _Hooked(spec.loader, self.hooks[fullname])
        return spec

    def find_distributions(self, context: DistributionFinder.Context) -> Iterator[Distribution]:
        """Finds the distribution `mlx`, for `importlib.metadata`."""
        named = context.name is None or context.name.lower() == "mlx"
        # A search in folders other than Python's own path does not concern this process.
        if named and list(context.path) == sys.path:
            # Import it only here: importlib.metadata takes longer to import than this whole
            # package, and callers of this method have imported it already.
            from ultramarine.as_mlx._metadata import MlxDistribution

            yield MlxDistribution(self.version)


def _unknown(name: str) -> str:
    have = ", ".join(f"mlx.{m}" for m in MODULES)
    return (
        f"No module named {name!r}. ultramarine.as_mlx stands for mlx, and has {have}, and their modules; "
        "an installed mlx is not looked into. Call ultramarine.as_mlx.uninstall() to import that one."
    )


class _Package(Loader):
    """Makes the package `mlx`, which contains nothing but modules."""

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        module.__doc__ = "MLX's names for Ultramarine's modules: see `ultramarine.as_mlx`."


class _Alias(Loader):
    """Puts a module of ours into `sys.modules` for the one that is being imported.

    A module may replace itself there, and the import returns the replacement. Ours keeps its own name, spec and loader.
    """

    def __init__(self, ours: str) -> None:
        self.ours = ours

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        sys.modules[module.__name__] = importlib.import_module(self.ours)


class _Hooked(Loader):
    """Loads a module with its own loader, then calls the hook."""

    def __init__(self, loader: Any, hook: Callable[[ModuleType], None]) -> None:
        self.loader = loader
        self.hook = hook

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        made: ModuleType | None = self.loader.create_module(spec)
        return made

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self.loader
        if module.__spec__ is not None:
            module.__spec__.loader = self.loader
        self.loader.exec_module(module)
        self.hook(module)
