"""Backends: the libraries that run operations on devices, their discovery, loading and counts."""

# Signatures are written by hand, because the module is Python and has no types: tests compare them with it.
# Docstrings are the module's, put here by python/tools/make_stubs.py.

import builtins
from collections.abc import Callable, Iterable, Iterator
from os import PathLike
from typing import Any

from ultramarine import Device, DeviceType

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

class Backend:
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

    Example:
        >>> mx.backends.get("cpu").name
        'cpu'
    """

    name: str
    variant: str
    version: str
    score: int
    device_type: DeviceType
    devices: builtins.list[Device]
    descriptions: builtins.list[str]
    dlpack_device_type: int
    path: str | None

class _OfferedDevice:
    name: str
    memory: int
    uuid: str | None
    pci: str | None

class Offer:
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

    Example:
        >>> mx.backends.load_all(filter=lambda offer: isinstance(offer, mx.backends.Offer) and offer.score < 0)
        []
    """

    name: str
    variant: str
    version: str
    score: int
    device_type: DeviceType
    devices: builtins.list[_OfferedDevice]
    path: str

class Candidate:
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

    Example:
        >>> remedies = [file.remedy for file in mx.backends.report() if file.outcome == "rejected"]
    """

    path: str
    rule: str
    name: str
    variant: str
    outcome: str
    stage: str
    code: str | None
    reason: str | None
    remedy: str | None
    properties: dict[str, Any] | None
    score: int | None
    found_devices: builtins.list[dict[str, Any]]
    winner: bool
    devices: builtins.list[str]
    milliseconds: float

class Report:
    """All files that were looked at. Printed, it is a table.

    Attributes:
        directories (list[dict]): Dictionaries with `path`, `rule`, and the number of files `found` or an
            `error`.
        candidates (list[Candidate]): The files, over which iteration runs.

    Example:
        >>> report = mx.backends.Report()
        >>> rejected = [file.path for file in report if file.outcome == "rejected"]
    """

    directories: builtins.list[dict[str, Any]]
    candidates: builtins.list[Candidate]
    def __init__(self) -> None: ...
    def __iter__(self) -> Iterator[Candidate]: ...
    def __len__(self) -> int: ...

class OpCount:
    """Counts of an operation on a device.

    Attributes:
        device (Device): Device.
        backend (str): Name of the backend whose kernels ran.
        variant (str): Variant of the backend.
        op (str): Name of the operation.
        native (int): Runs by a kernel of the operation.
        decomposed (int): Runs as simpler operations on the device.
        cpu (int): Runs on the CPU.

    Example:
        >>> mx.eval(mx.sort(mx.array([3, 1, 2])))
        >>> any(row.op == "sort" and row.native > 0 for row in mx.backends.op_counts())
        True
    """

    device: Device
    backend: str
    variant: str
    op: str
    native: int
    decomposed: int
    cpu: int

class Stats:
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

    Example:
        >>> mx.backends.stats().commands >= 0
        True
    """

    commands: int
    replays: int
    fused: int
    fused_operations: int
    bytes_read: int
    bytes_written: int
    donations: int
    contiguous_copies: int
    repeated: int
    mirrors: int
    transfers: int
    bytes_to_host: int
    bytes_to_devices: int

def load(path: str | PathLike[str]) -> Backend:
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

def load_best(name: str) -> Backend:
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

def load_all(
    allowed: str | Iterable[str] | None = None,
    blocked: str | Iterable[str] | None = None,
    filter: Callable[[Offer], object] | None = None,
    duplicates: bool = False,
    probe: bool | None = None,
    probe_timeout: float | None = None,
) -> builtins.list[Backend]:
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

def list() -> builtins.list[Backend]:
    """Lists the loaded backends, the built-in CPU first. Loads nothing.

    Returns:
        list[Backend]: The backends.

    Example:
        >>> mx.backends.list()[0].name
        'cpu'
    """

def get(device_or_name: Device | DeviceType | str) -> Backend:
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

def is_available(device_type: DeviceType) -> bool:
    """Tests whether there is a device of a kind.

    Args:
        device_type (DeviceType): Kind of the device.

    Returns:
        bool: True if there is one.

    Example:
        >>> mx.backends.is_available(mx.cpu)
        True
    """

def device_count(device_type: DeviceType) -> int:
    """Counts the devices of a kind, over all backends.

    Args:
        device_type (DeviceType): Kind of the devices.

    Returns:
        int: Number of devices.

    Example:
        >>> mx.backends.device_count(mx.cpu)
        1
    """

def report() -> Report:
    """Reports the outcome of every file that was looked at so far. Loads nothing.

    Returns:
        Report: The files, with the reason and the remedy of those that were left out.

    Example:
        >>> rejected = {file.path: file.reason for file in mx.backends.report() if file.outcome == "rejected"}
    """

def report_json() -> str:
    """Returns the `report` as JSON text.

    Example:
        >>> import json
        >>> sorted(json.loads(mx.backends.report_json()))[:2]
        ['candidates', 'directories']
    """

def search_paths() -> builtins.list[tuple[str, str]]:
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

def set_search_paths(paths: Iterable[str | PathLike[str]] | None) -> None:
    """Sets the directories that are searched from now on, and no others.

    Args:
        paths (Iterable[str | PathLike[str]] | None): Directories; None goes back to the rules.

    Example:
        >>> mx.backends.set_search_paths(["/opt/backends"])
        >>> [path for path, rule in mx.backends.search_paths()]
        ['/opt/backends']
        >>> mx.backends.set_search_paths(None)
    """

class OpCounts(builtins.list[OpCount]):
    """List of `OpCount`. Printed, it is a table.

    Example:
        >>> mx.eval(mx.sort(mx.array([3, 1, 2])))
        >>> "sort" in str(mx.backends.op_counts())
        True
    """

    def __str__(self) -> str: ...

def op_counts() -> OpCounts:
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

def reset_op_counts() -> None:
    """Sets the counts of `op_counts` to zero.

    Example:
        >>> mx.backends.reset_op_counts()
        >>> print(mx.backends.op_counts())
        no operation has run yet
    """

def stats() -> Stats:
    """Counts what evaluation did since the start or `reset_stats`.

    Returns:
        Stats: Counts.

    Example:
        >>> mx.backends.reset_stats()
        >>> mx.eval(mx.sort(mx.array([3, 1, 2])))
        >>> mx.backends.stats().commands >= 1
        True
    """

def reset_stats() -> None:
    """Sets the counts of `stats` to zero.

    Example:
        >>> mx.backends.reset_stats()
        >>> mx.backends.stats().commands
        0
    """

def set_fusion(on: bool) -> None:
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

def is_fusing() -> bool:
    """Tests whether elementwise operations are fused; see `set_fusion`.

    Returns:
        bool: True if they are.

    Example:
        >>> mx.backends.is_fusing()
        True
    """

def set_executables(on: bool) -> None:
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

def uses_executables() -> bool:
    """Tests whether evaluations run the commands of earlier ones again; see `set_executables`.

    Returns:
        bool: True if they do.

    Example:
        >>> mx.backends.uses_executables()
        True
    """

def set_strict(on: bool, allow: Iterable[str] = ()) -> None:
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

def is_strict() -> bool:
    """Tests whether strict mode is on; see `set_strict`.

    Returns:
        bool: True if it is.

    Example:
        >>> mx.backends.is_strict()
        False
    """

def set_poison(on: bool) -> None:
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

def is_poison() -> bool:
    """Tests whether unwritten outputs are looked for; see `set_poison`.

    Returns:
        bool: True if they are.

    Example:
        >>> mx.backends.is_poison()
        False
    """

def validation_findings() -> int:
    """Counts the calls and answers that broke the contract's rules so far.

    Only backends that started while `ULTRAMARINE_VALIDATE` was `1` are watched. Each finding is also written to
    standard error.

    Returns:
        int: Number of findings.

    Example:
        >>> mx.backends.validation_findings()
        0
    """

def include_dir() -> str:
    """Returns the directory of the contract's C headers, which a compiler needs as `-I` to build a backend.

    Example:
        >>> import os
        >>> os.listdir(mx.backends.include_dir())
        ['ultramarine']
    """

def cmake_dir() -> str:
    """Returns the directory of CMake's package `Ultramarine`, which `find_package` takes as `Ultramarine_DIR`.

    Example:
        >>> import os
        >>> os.path.basename(mx.backends.cmake_dir())
        'Ultramarine'
    """
