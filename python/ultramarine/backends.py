"""Backends: the libraries that run operations on devices, their discovery, loading and counts.

Nothing is loaded by the import. The first need of a GPU loads what can be found, once, unless the
program called `load_all` itself; `load` adds one file. Files that were left out, with reasons, are in
the `report`, which `python -m ultramarine backends` prints.

Backends are looked for in the directories of `ULTRAMARINE_BACKEND_PATH`, if that is set, and nowhere else; or
in the directory that was chosen when this package was built, then in `backends` beside it, then
where installed packages say: see `search_paths`.
"""

import os
from types import SimpleNamespace as _Record

from ultramarine import _core

# The core calls these two functions by name.
from ultramarine._backends.directories import package_directories as _package_directories  # noqa: F401
from ultramarine._backends.directories import probe_command as _probe_command  # noqa: F401
from ultramarine._backends.records import (
    Backend,
    Candidate,
    Offer,
    OpCount,
    OpCounts,
    Report,
    Stats,
)

__all__ = [
    "Backend",
    "Candidate",
    "Offer",
    "OpCount",
    "OpCounts",
    "Report",
    "Stats",
    "cmake_dir",
    "device_count",
    "get",
    "include_dir",
    "is_available",
    "is_fusing",
    "is_poison",
    "is_strict",
    "list",
    "load",
    "load_all",
    "load_best",
    "op_counts",
    "report",
    "report_json",
    "reset_op_counts",
    "reset_stats",
    "search_paths",
    "set_executables",
    "set_fusion",
    "set_poison",
    "set_search_paths",
    "set_strict",
    "stats",
    "uses_executables",
    "validation_findings",
]

_list = list


def load(path):
    """Loads the backend in one file.

    Its devices follow those that are there. A file that is loaded already is not loaded again.

    Args:
        path (str | PathLike[str]): Path of the file.

    Returns:
        Backend: The loaded backend.

    Raises:
        FileNotFoundError: If there is no such file; another `OSError` if it cannot be read.
        RuntimeError: If the library cannot be used here, with reason and remedy.

    Example:
        >>> try:
        ...     mx.backends.load("libultramarine-missing.so")
        ... except FileNotFoundError:
        ...     print("no such file")
        no such file
    """
    return Backend(**_core._load(os.fspath(path)))


def load_best(name):
    """Loads the variant with the highest score of a backend, unless one is loaded.

    Args:
        name (str): Name of the backend.

    Returns:
        Backend: The loaded backend.

    Raises:
        RuntimeError: If none can be loaded, with the reasons.

    Example:
        >>> try:
        ...     mx.backends.load_best("missing")
        ... except RuntimeError:
        ...     print("none of this name")
        none of this name
    """
    return Backend(**_core._load_best(name))


def load_all(
    allowed=None, blocked=None, filter=None, duplicates=False, probe=None, probe_timeout=None
):
    """Loads the best variant of each backend that is found.

    A backend that cannot be loaded is left out, which is no error: see `report`. Afterwards nothing is loaded
    automatically.

    Args:
        allowed (str | Iterable[str] | None): Globs for `name` or `name-variant`; others are left out.
        blocked (str | Iterable[str] | None): Globs for `name` or `name-variant` to leave out.
        filter (Callable[[Offer], object] | None): Function that decides about the `Offer` of each backend
            that can run here. An exception of it is raised, and then nothing is loaded.
        duplicates (bool): Lists a device that several backends serve under each, else under the highest
            score.
        probe (bool | None): Tries each candidate in a child process first, so that one that crashes or
            hangs is left out; by default as `ULTRAMARINE_BACKEND_PROBE` says.
        probe_timeout (float | None): Seconds that a child may take: 10, or what was given last.

    Returns:
        list[Backend]: Backends that were not loaded before.

    Example:
        >>> mx.backends.load_all(allowed="no-such-backend")
        []
    """
    ask = None if filter is None else lambda offer: filter(_offer(offer))
    found = _core._load_all(
        _globs(allowed), _globs(blocked) or [], ask, bool(duplicates), probe, probe_timeout
    )
    return [Backend(**fields) for fields in found]


def _offer(fields):
    devices = [_Record(**device) for device in fields.pop("devices")]
    return Offer(devices=devices, **fields)


def _globs(given):
    return [given] if isinstance(given, str) else None if given is None else _list(given)


def list():
    """Lists the loaded backends, the built-in CPU first. Loads nothing.

    Returns:
        list[Backend]: The backends.

    Example:
        >>> mx.backends.list()[0].name
        'cpu'
    """
    return [Backend(**fields) for fields in _core._backends()]


def get(device_or_name):
    """Returns the backend of a device, or the loaded one of a name.

    A name loads nothing: see `load_best`.

    Args:
        device_or_name (Device | DeviceType | str): Device, or name of a backend.

    Returns:
        Backend: The backend.

    Raises:
        ValueError: If there is none.

    Example:
        >>> mx.backends.get(mx.cpu).name
        'cpu'
    """
    if isinstance(device_or_name, str):
        return Backend(**_core._backend_named(device_or_name))
    return Backend(**_core._backend_of(device_or_name))


def is_available(device_type):
    """Tests whether there is a device of a kind.

    Args:
        device_type (DeviceType): Kind of the device.

    Returns:
        bool: True if there is one.

    Example:
        >>> mx.backends.is_available(mx.cpu)
        True
    """
    return device_count(device_type) > 0


def device_count(device_type):
    """Counts the devices of a kind, over all backends.

    Args:
        device_type (DeviceType): Kind of the devices.

    Returns:
        int: Number of devices.

    Example:
        >>> mx.backends.device_count(mx.cpu)
        1
    """
    return _core.device_count(device_type)


def report():
    """Reports the outcome of every file that was looked at so far. Loads nothing.

    Returns:
        Report: The files, with the reason and the remedy of those that were left out.

    Example:
        >>> rejected = {file.path: file.reason for file in mx.backends.report() if file.outcome == "rejected"}
    """
    return Report()


def report_json():
    """Returns the `report` as JSON text.

    Example:
        >>> import json
        >>> sorted(json.loads(mx.backends.report_json()))[:2]
        ['candidates', 'directories']
    """
    return _core._report_json()


def search_paths():
    """Lists the directories that are searched, in order.

    Installed packages name theirs by an entry point of the group `ultramarine.backends`, whose value is a
    package (or a module): backends are looked for in `backends` in the package (beside the module). It is found
    without running code of the package; of a dotted name, only the first part is looked up, and the others are
    taken for directories.

    Returns:
        list[tuple[str, str]]: Path of each directory, and the rule that names it.

    Example:
        >>> all(isinstance(path, str) for path, rule in mx.backends.search_paths())
        True
    """
    return _core._search_paths()


def set_search_paths(paths):
    """Sets the directories that are searched from now on, and no others.

    Args:
        paths (Iterable[str | PathLike[str]] | None): Directories; None goes back to the rules.

    Example:
        >>> mx.backends.set_search_paths(["/opt/backends"])
        >>> [path for path, rule in mx.backends.search_paths()]
        ['/opt/backends']
        >>> mx.backends.set_search_paths(None)
    """
    _core._set_search_paths(None if paths is None else [os.fspath(p) for p in paths])


def op_counts():
    """Counts how often each operation ran on each device since the start or `reset_op_counts`.

    Operations that are only views of their operands reach no backend and are not counted.

    Returns:
        OpCounts: List of counts, which prints as a table.

    Example:
        >>> mx.backends.reset_op_counts()
        >>> mx.eval(mx.sort(mx.array([3, 1, 2])))
        >>> [(row.op, row.native) for row in mx.backends.op_counts() if row.op == "sort"]
        [('sort', 1)]
    """
    return OpCounts(OpCount(**row) for row in _core._op_counts())


def reset_op_counts():
    """Sets the counts of `op_counts` to zero.

    Example:
        >>> mx.backends.reset_op_counts()
        >>> print(mx.backends.op_counts())
        no operation has run yet
    """
    _core._reset_op_counts()


def stats():
    """Counts what evaluation did since the start or `reset_stats`.

    Returns:
        Stats: Counts.

    Example:
        >>> mx.backends.reset_stats()
        >>> mx.eval(mx.sort(mx.array([3, 1, 2])))
        >>> mx.backends.stats().commands >= 1
        True
    """
    return Stats(**_core._stats())


def reset_stats():
    """Sets the counts of `stats` to zero.

    Example:
        >>> mx.backends.reset_stats()
        >>> mx.backends.stats().commands
        0
    """
    _core._reset_stats()


def set_fusion(on):
    """Switches the fusion of elementwise operations on or off.

    It is on, unless the environment variable `ULTRAMARINE_FUSION` is `0`. Results are bitwise identical; off is
    for comparisons.

    Args:
        on (bool): Fuses operations.

    Example:
        >>> mx.backends.set_fusion(False)
        >>> mx.backends.is_fusing()
        False
        >>> mx.backends.set_fusion(True)
    """
    _core._set_fusion(bool(on))


def is_fusing():
    """Tests whether elementwise operations are fused; see `set_fusion`.

    Returns:
        bool: True if they are.

    Example:
        >>> mx.backends.is_fusing()
        True
    """
    return _core._fusion()


def set_executables(on):
    """Switches executables on or off: commands of earlier evaluations that are run again.

    They are on, unless the environment variable `ULTRAMARINE_EXECUTABLES` is `0`. Results are bitwise identical; off
    is for comparisons. The calling thread looks at all its evaluations again, also where those before were always new.

    Args:
        on (bool): Has evaluations and calls of compiled functions run them.

    Example:
        >>> mx.backends.set_executables(False)
        >>> mx.backends.uses_executables()
        False
        >>> mx.backends.set_executables(True)
    """
    _core._set_executables(bool(on))


def uses_executables():
    """Tests whether evaluations run the commands of earlier ones again; see `set_executables`.

    Returns:
        bool: True if they do.

    Example:
        >>> mx.backends.uses_executables()
        True
    """
    return _core._executables()


def set_strict(on, allow=()):
    """Switches strict mode on or off.

    In strict mode an operation that its device cannot run, natively or decomposed, raises instead of running on
    the CPU. `ULTRAMARINE_STRICT=1` in the environment switches it on, too.

    Args:
        on (bool): Strict mode.
        allow (Iterable[str]): Operations, by their names in `op_counts`, that may run on the CPU all the same.

    Example:
        >>> mx.backends.set_strict(True, allow=["sort"])
        >>> mx.backends.is_strict()
        True
        >>> mx.backends.set_strict(False)
    """
    _core._set_strict(bool(on), _list(allow))


def is_strict():
    """Tests whether strict mode is on; see `set_strict`.

    Returns:
        bool: True if it is.

    Example:
        >>> mx.backends.is_strict()
        False
    """
    return _core._is_strict()


def set_poison(on):
    """Switches a debug mode for operations of extensions (docs/native-arrays.md) on or off.

    The memory of their outputs is filled with a pattern before evaluations, and an operation that leaves elements
    unwritten raises. It costs time and memory. `ULTRAMARINE_POISON=1` in the environment switches it on, too.

    Args:
        on (bool): Looks for unwritten outputs.

    Example:
        >>> mx.backends.set_poison(True)
        >>> mx.backends.is_poison()
        True
        >>> mx.backends.set_poison(False)
    """
    _core._set_poison(bool(on))


def is_poison():
    """Tests whether unwritten outputs are looked for; see `set_poison`.

    Returns:
        bool: True if they are.

    Example:
        >>> mx.backends.is_poison()
        False
    """
    return _core._is_poison()


def validation_findings():
    """Counts the calls and answers that broke the contract's rules so far.

    Only backends that started while `ULTRAMARINE_VALIDATE` was `1` are watched. Each finding is also written to
    standard error.

    Returns:
        int: Number of findings.

    Example:
        >>> mx.backends.validation_findings()
        0
    """
    return _core._validation_findings()


def include_dir():
    """Returns the directory of the contract's C headers, which a compiler needs as `-I` to build a backend.

    Example:
        >>> import os
        >>> os.listdir(mx.backends.include_dir())
        ['ultramarine']
    """
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "include")


def cmake_dir():
    """Returns the directory of CMake's package `Ultramarine`, which `find_package` takes as `Ultramarine_DIR`.

    Example:
        >>> import os
        >>> os.path.basename(mx.backends.cmake_dir())
        'Ultramarine'
    """
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "share", "cmake", "Ultramarine")
