"""The backends: what runs the arrays' operations, on which devices, and how they are found."""

# Written by hand, unlike its neighbours: the module is Python, and its signatures have no types.
# The tests of the stubs compare it with the module.

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
    "Report",
    "Stats",
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
    "set_fusion",
    "set_poison",
    "set_search_paths",
    "set_strict",
    "stats",
    "validation_findings",
]

class Backend:
    """A loaded backend."""

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
    """What a filter sees of a backend before it is initialised."""

    name: str
    variant: str
    version: str
    score: int
    device_type: DeviceType
    devices: builtins.list[_OfferedDevice]
    path: str

class Candidate:
    """A file that was looked at, and what became of it."""

    path: str
    rule: str
    name: str
    variant: str
    outcome: str
    stage: str
    code: str | None
    reason: str | None
    remedy: str | None
    facts: dict[str, Any] | None
    score: int | None
    found_devices: builtins.list[dict[str, Any]]
    winner: bool
    devices: builtins.list[str]
    milliseconds: float

class Report:
    """All that was looked at."""

    directories: builtins.list[dict[str, Any]]
    candidates: builtins.list[Candidate]
    def __init__(self) -> None: ...
    def __iter__(self) -> Iterator[Candidate]: ...
    def __len__(self) -> int: ...

class OpCount:
    """How often an operation ran on a device, and how."""

    device: Device
    backend: str
    variant: str
    op: str
    native: int
    decomposed: int
    cpu: int

class Stats:
    """What evaluation did, in the whole process."""

    commands: int
    fused: int
    fused_operations: int
    bytes_read: int
    bytes_written: int
    donations: int
    contiguous_copies: int
    mirrors: int
    transfers: int

def load(path: str | PathLike[str]) -> Backend: ...
def load_best(name: str) -> Backend: ...
def load_all(
    allowed: str | Iterable[str] | None = None,
    blocked: str | Iterable[str] | None = None,
    filter: Callable[[Offer], object] | None = None,
    duplicates: bool = False,
    probe: bool | None = None,
    probe_timeout: float | None = None,
) -> builtins.list[Backend]: ...
def list() -> builtins.list[Backend]: ...
def get(device_or_name: Device | DeviceType | str) -> Backend: ...
def is_available(device_type: DeviceType) -> bool: ...
def device_count(device_type: DeviceType) -> int: ...
def report() -> Report: ...
def report_json() -> str: ...
def search_paths() -> builtins.list[tuple[str, str]]: ...
def set_search_paths(paths: Iterable[str | PathLike[str]] | None) -> None: ...
def op_counts() -> builtins.list[OpCount]: ...
def reset_op_counts() -> None: ...
def stats() -> Stats: ...
def reset_stats() -> None: ...
def set_fusion(on: bool) -> None: ...
def is_fusing() -> bool: ...
def set_strict(on: bool, allow: Iterable[str] = ()) -> None: ...
def is_strict() -> bool: ...
def set_poison(on: bool) -> None: ...
def is_poison() -> bool: ...
def validation_findings() -> int: ...
def include_dir() -> str: ...
