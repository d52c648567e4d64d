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

# The group of entry points by which packages declare directories with backends.
_GROUP = "ultramarine.backends"


class Backend(_Record):
    """Loaded backend.

    Attributes:
        name (str): Name.
        variant (str): Variant of the name; several may exist of one backend.
        version (str): Version.
        score (int): Suitability for this machine; the highest score of a name is loaded.
        device_type (DeviceType): Kind of the devices that it serves.
        devices (list[Device]): Devices that it serves.
        descriptions (list[str]): Descriptions of the devices.
        dlpack_device_type (int): DLPack's number for the devices.
        path (str | None): Path of its file; None if it is built in.
    """


class Offer(_Record):
    """Backend as a filter of `load_all` sees it, before it is initialised.

    Attributes:
        name (str): Name.
        variant (str): Variant of the name.
        version (str): Version.
        score (int): Suitability for this machine.
        device_type (DeviceType): Kind of the devices that it serves.
        devices (list): What is known of each device: its `name`, `memory` in bytes (0 if unknown), `uuid`
            and `pci` address (or None).
        path (str): Path of its file.
    """


class Candidate(_Record):
    """File that was looked at, and its outcome.

    Attributes:
        path (str): Path of the file.
        rule (str): Rule by which it was found.
        name (str): Name of the backend.
        variant (str): Variant of the name.
        outcome (str): "loaded", "skipped" (nothing is wrong with it) or "rejected".
        stage (str): Last stage that it reached.
        code (str | None): Reason of being left out, as a word.
        reason (str | None): Reason of being left out, as text.
        remedy (str | None): Remedy.
        properties (dict | None): Properties that it declares, as far as they are known.
        score (int | None): Suitability for this machine, if it is known.
        winner (bool): True for the one of its name that is loaded.
        devices (list[str]): Names of its devices.
        milliseconds (float): Time that it took.
    """


class Report:
    """All files that were looked at. Printed, it is a table.

    Attributes:
        directories (list[dict]): Dictionaries with `path`, `rule`, and the number of files `found` or an
            `error`.
        candidates (list[Candidate]): The files, over which iteration runs.
    """

    def __init__(self):
        import json

        self._table = _core._report_table()
        report = json.loads(_core._report_json())
        self.directories = report["directories"]
        self.candidates = [_candidate(c) for c in report["candidates"]]

    def __iter__(self):
        return iter(self.candidates)

    def __len__(self):
        return len(self.candidates)

    def __str__(self):
        return self._table

    def __repr__(self):
        loaded = sum(c.outcome == "loaded" for c in self.candidates)
        return f"Report({len(self.candidates)} candidates, {loaded} loaded)"


def _candidate(fields):
    why = fields.pop("reason") or {}
    return Candidate(
        code=why.get("code"), reason=why.get("text"), remedy=why.get("remedy"), **fields
    )


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
    """
    return device_count(device_type) > 0


def device_count(device_type):
    """Counts the devices of a kind, over all backends.

    Args:
        device_type (DeviceType): Kind of the devices.

    Returns:
        int: Number of devices.
    """
    return _core.device_count(device_type)


def report():
    """Reports the outcome of every file that was looked at so far. Loads nothing.

    Returns:
        Report: The files, with the reason and the remedy of those that were left out.
    """
    return Report()


def report_json():
    """Returns the `report` as JSON text."""
    return _core._report_json()


def search_paths():
    """Lists the directories that are searched, in order.

    Installed packages name theirs by an entry point of the group `ultramarine.backends`, whose value is a
    package (or a module): backends are looked for in `backends` in the package (beside the module). It is found
    without running code of the package; of a dotted name, only the first part is looked up, and the others are
    taken for directories.

    Returns:
        list[tuple[str, str]]: Path of each directory, and the rule that names it.
    """
    return _core._search_paths()


def set_search_paths(paths):
    """Sets the directories that are searched from now on, and no others.

    Args:
        paths (Iterable[str | PathLike[str]] | None): Directories; None goes back to the rules.
    """
    _core._set_search_paths(None if paths is None else [os.fspath(p) for p in paths])


def op_counts():
    """Counts how often each operation ran on each device since the start or `reset_op_counts`.

    Operations that are only views of their operands reach no backend and are not counted.

    Returns:
        OpCounts: List of counts, which prints as a table.
    """
    return OpCounts(OpCount(**row) for row in _core._op_counts())


class OpCount(_Record):
    """Counts of an operation on a device.

    Attributes:
        device (Device): Device.
        backend (str): Name of the backend whose kernels ran.
        variant (str): Variant of the backend.
        op (str): Name of the operation.
        native (int): Runs by a kernel of the operation.
        decomposed (int): Runs as simpler operations on the device.
        cpu (int): Runs on the CPU.
    """


class OpCounts(_list):
    """List of `OpCount`. Printed, it is a table."""

    def __str__(self):
        titles = ("device", "backend", "op", "native", "decomposed", "cpu")
        rows = [
            (
                f"{row.device.type.name}:{row.device.index}",
                "-".join(filter(None, [row.backend, row.variant])),
                row.op,
                *map(str, (row.native, row.decomposed, row.cpu)),
            )
            for row in self
        ]
        if not rows:
            return "no operation has run yet"
        widths = [max(map(len, column)) for column in zip(titles, *rows)]
        # Names to the left, numbers to the right.
        lines = [
            "  ".join(f"{c:{'<' if i < 3 else '>'}{w}}" for i, (c, w) in enumerate(zip(r, widths)))
            for r in [titles, *rows]
        ]
        return "\n".join(line.rstrip() for line in lines)


def reset_op_counts():
    """Sets the counts of `op_counts` to zero."""
    _core._reset_op_counts()


class Stats(_Record):
    """Counts of evaluation in the whole process.

    Attributes:
        commands (int): Commands given to backends.
        replays (int): Recordings of commands that backends replayed at once.
        fused (int): Fused programs among them.
        fused_operations (int): Operations in these programs.
        bytes_read (int): Bytes that all commands read; a broadcast operand counts once, registers do not.
        bytes_written (int): Bytes that all commands wrote.
        donations (int): Results that took over the memory of an operand.
        contiguous_copies (int): Copies for backends that need contiguous operands.
        repeated (int): Evaluations and calls of compiled functions that ran the commands of an earlier one.
        mirrors (int): Copies between the host and a device.
        transfers (int): Copies between accelerators.
        bytes_to_host (int): Bytes that were copied from devices to the host.
        bytes_to_devices (int): Bytes that were copied to devices, from the host or from another accelerator.
    """


def stats():
    """Counts what evaluation did since the start or `reset_stats`.

    Returns:
        Stats: Counts.
    """
    return Stats(**_core._stats())


def reset_stats():
    """Sets the counts of `stats` to zero."""
    _core._reset_stats()


def set_fusion(on):
    """Switches the fusion of elementwise operations on or off.

    It is on, unless the environment variable `ULTRAMARINE_FUSION` is `0`. Results are bitwise identical; off is
    for comparisons.

    Args:
        on (bool): Fuses operations.
    """
    _core._set_fusion(bool(on))


def is_fusing():
    """Tests whether elementwise operations are fused; see `set_fusion`.

    Returns:
        bool: True if they are.
    """
    return _core._fusion()


def set_executables(on):
    """Switches executables on or off: commands of earlier evaluations that are run again.

    They are on, unless the environment variable `ULTRAMARINE_EXECUTABLES` is `0`. Results are bitwise identical; off
    is for comparisons. The calling thread looks at all its evaluations again, also where those before were always new.

    Args:
        on (bool): Has evaluations and calls of compiled functions run them.
    """
    _core._set_executables(bool(on))


def uses_executables():
    """Tests whether evaluations run the commands of earlier ones again; see `set_executables`.

    Returns:
        bool: True if they do.
    """
    return _core._executables()


def set_strict(on, allow=()):
    """Switches strict mode on or off.

    In strict mode an operation that its device cannot run, natively or decomposed, raises instead of running on
    the CPU. `ULTRAMARINE_STRICT=1` in the environment switches it on, too.

    Args:
        on (bool): Strict mode.
        allow (Iterable[str]): Operations, by their names in `op_counts`, that may run on the CPU all the same.
    """
    _core._set_strict(bool(on), _list(allow))


def is_strict():
    """Tests whether strict mode is on; see `set_strict`.

    Returns:
        bool: True if it is.
    """
    return _core._is_strict()


def set_poison(on):
    """Switches a debug mode for operations of extensions (docs/native-arrays.md) on or off.

    The memory of their outputs is filled with a pattern before evaluations, and an operation that leaves elements
    unwritten raises. It costs time and memory. `ULTRAMARINE_POISON=1` in the environment switches it on, too.

    Args:
        on (bool): Looks for unwritten outputs.
    """
    _core._set_poison(bool(on))


def is_poison():
    """Tests whether unwritten outputs are looked for; see `set_poison`.

    Returns:
        bool: True if they are.
    """
    return _core._is_poison()


def validation_findings():
    """Counts the calls and answers that broke the contract's rules so far.

    Only backends that started while `ULTRAMARINE_VALIDATE` was `1` are watched. Each finding is also written to
    standard error.

    Returns:
        int: Number of findings.
    """
    return _core._validation_findings()


def include_dir():
    """Returns the directory of the contract's C headers, which a compiler needs as `-I` to build a backend."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "include")


def cmake_dir():
    """Returns the directory of CMake's package `Ultramarine`, which `find_package` takes as `Ultramarine_DIR`."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "share", "cmake", "Ultramarine")


def _package_directories():
    """The directories that installed packages declare, each with the name of its package. Called by
    the core before its first load. A broken entry is warned of and does not affect the others."""
    from importlib.metadata import distributions

    # All distributions, not the first of each name: in a package's source directory the metadata that its build left
    # there comes before those of the installed package, and has no library.
    points = {}
    try:
        for distribution in distributions():
            for point in distribution.entry_points:
                if point.group == _GROUP:
                    places = points.setdefault((point.name, point.value), [])
                    places.append((point, distribution))
    except Exception as error:
        _warn(f"the entry points of installed packages cannot be read: {error}")
    found = []
    for (name, _), places in sorted(points.items()):
        package = places[0][1].metadata["Name"] or name
        try:
            found += [(path, package) for path in _declared(places)]
        except Exception as error:
            _warn(f"the entry point {name!r} of {package} cannot be followed: {error}")
    return found


def _declared(places):
    """The directories of an entry point that distributions declare: beside their files, or else where Python finds the
    module, which in an editable installation is elsewhere."""
    for point, distribution in places:
        path = os.path.join(distribution.locate_file(""), *point.module.split("."), "backends")
        if os.path.isdir(path):
            return [os.path.abspath(path)]
    return _directories(places[0][0].module)


def _warn(text):
    import warnings

    warnings.warn(text, RuntimeWarning, stacklevel=3)


def _directories(module):
    """The directories of a package's or module's backends, found without running any of it."""
    from importlib.util import find_spec

    # A dotted name would import what stands before the dot.
    top, *rest = module.split(".")
    spec = find_spec(top)
    if spec is None:
        raise ModuleNotFoundError(f"there is no module {top!r}")
    places = spec.submodule_search_locations
    if places is None:
        places = [os.path.dirname(spec.origin)]
    return [os.path.abspath(os.path.join(place, *rest, "backends")) for place in places]


def _probe_command():
    """The command that tries a file, named behind it, in a child process: this interpreter, if it is one."""
    import sys

    if not sys.executable:
        return None
    place = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    code = f"import sys; sys.path.insert(0, {place!r}); from ultramarine import _core; "
    return [sys.executable, "-c", code + "_core._probe(sys.argv[1])"]
