"""The backends: what runs the arrays' operations, on which devices, and how they are found.

Nothing is loaded by the import. The first need of a GPU loads what can be found, once, unless the
program called `load_all` itself; `load` adds one file. What was left out, and why, is in
the `report`, which `python -m ultramarine backends` prints.

Looked for in the directories of `ULTRAMARINE_BACKEND_PATH`, if that is set, and nowhere else; or
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

_list = list

# The group of entry points by which packages declare directories with backends.
_GROUP = "ultramarine.backends"


class Backend(_Record):
    """A loaded backend: `name`, `variant` and `version`; its `score`; `device_type` and `devices`
    that it serves, with their `descriptions`; `dlpack_device_type`, DLPack's number for these; `path`
    of its file, `None` if it is built in."""


class Offer(_Record):
    """What a filter sees of a backend before it is initialised: `name`, `variant`, `version`,
    `score`, `device_type`, `path`, and in `devices` what is known of each: its `name`, `memory` in
    bytes (0 if unknown), `uuid` and `pci` address (or `None`)."""


class Candidate(_Record):
    """A file that was looked at: its `path`, the `rule` by which it was found, its `name` and
    `variant`; its `outcome`: "loaded", "skipped" (nothing is wrong with it) or "rejected"; the last
    `stage` that it reached; why it was left out: `code`, `reason` and `remedy`, or `None`; `facts`
    that it declares and `score`, as far as they are known; whether it is the `winner` of its name;
    names of its `devices`; the `milliseconds` that it took."""


class Report:
    """All that was looked at: `directories`, dictionaries with `path`, `rule`, and the number of
    files `found` or an `error`; and `candidates`. Printed, it is a table."""

    def __init__(self):
        import json

        self._table = _core._report_table()
        told = json.loads(_core._report_json())
        self.directories = told["directories"]
        self.candidates = [_candidate(c) for c in told["candidates"]]

    def __iter__(self):
        return iter(self.candidates)

    def __len__(self):
        return len(self.candidates)

    def __str__(self):
        return self._table

    def __repr__(self):
        loaded = sum(c.outcome == "loaded" for c in self.candidates)
        return f"Report({len(self.candidates)} candidates, {loaded} loaded)"


def _candidate(told):
    why = told.pop("reason") or {}
    return Candidate(code=why.get("code"), reason=why.get("text"), remedy=why.get("remedy"), **told)


def load(path):
    """Loads the backend in one file, whoever owns it, and returns it. Its devices follow those that
    are there; a file that is loaded already is not loaded again.

    Raises `FileNotFoundError` or another `OSError` if the file is to blame, `RuntimeError` if
    what is in it cannot be used here; the text says why and what to do."""
    return Backend(**_core._load(os.fspath(path)))


def load_best(name):
    """Loads the variant with the highest score of the backend `name`, unless one is loaded, and
    returns it. Raises `RuntimeError` with the reasons if none can be loaded."""
    return Backend(**_core._load_best(name))


def load_all(
    allowed=None, blocked=None, filter=None, duplicates=False, probe=None, probe_timeout=None
):
    """Loads the best variant of each backend that is found, and returns those that are new. What
    cannot be loaded is left out, see `report`; it is no error. After this nothing is loaded
    by itself.

    `allowed` and `blocked` are globs (or one), for `name` or `name-variant`. `filter` is called with the
    `Offer` of each backend that can run here, and says whether to take it; what it raises is raised,
    and then nothing is loaded. With `duplicates`, a device that several backends serve is listed
    under each, else under the highest score. With `probe`, each candidate is tried in a child
    process first, so that one that crashes or hangs is left out; the default is what
    `ULTRAMARINE_BACKEND_PROBE` says. A child may take `probe_timeout` seconds: 10, or what
    was given last."""
    ask = None if filter is None else lambda offer: filter(_offer(offer))
    found = _core._load_all(
        _globs(allowed), _globs(blocked) or [], ask, bool(duplicates), probe, probe_timeout
    )
    return [Backend(**facts) for facts in found]


def _offer(facts):
    devices = [_Record(**device) for device in facts.pop("devices")]
    return Offer(devices=devices, **facts)


def _globs(given):
    return [given] if isinstance(given, str) else None if given is None else _list(given)


def list():
    """The loaded backends, the built-in CPU first. Loads nothing."""
    return [Backend(**facts) for facts in _core._backends()]


def get(device_or_name):
    """The backend of a device (a `Device` or a `DeviceType`), or the loaded one of a name. Raises
    `ValueError` where there is none. A name loads nothing: see `load_best`."""
    if isinstance(device_or_name, str):
        return Backend(**_core._backend_named(device_or_name))
    return Backend(**_core._backend_of(device_or_name))


def is_available(device_type):
    """Whether there is a device of a type."""
    return device_count(device_type) > 0


def device_count(device_type):
    """The number of devices of a type, over all backends."""
    return _core.device_count(device_type)


def report():
    """What became of every file that was looked at so far, as a `Report`. Loads nothing."""
    return Report()


def report_json():
    """The `report` as JSON."""
    return _core._report_json()


def search_paths():
    """The directories that are searched, in order, each with the rule that names it, as
    `(path, rule)`.

    Installed packages name theirs by an entry point of the group `ultramarine.backends`, whose
    value is a package (or a module): backends are looked for in `backends` in the package (beside
    the module). It is found without running code of the package; of a dotted name, only the
    first part is looked up, and the others are taken for directories."""
    return _core._search_paths()


def set_search_paths(paths):
    """Searches these directories from now on, and no others. `None` goes back to the rules."""
    _core._set_search_paths(None if paths is None else [os.fspath(p) for p in paths])


def op_counts():
    """How often each operation ran on each device, and how, since the start or `reset_op_counts`.
    Operations that are only views of their operands reach no backend and are not counted."""
    return [OpCount(**row) for row in _core._op_counts()]


class OpCount(_Record):
    """How often the operation `op` ran on a `device`, by whose kernels (`backend`, `variant`), and
    how: `native`, `decomposed` into simpler operations there, or on the `cpu`."""


def reset_op_counts():
    """Sets the counts of `op_counts` to zero."""
    _core._reset_op_counts()


class Stats(_Record):
    """What evaluation did, in the whole process: `commands` given to backends, the `fused` programs among them and
    the `fused_operations` in these; `bytes_read` and `bytes_written` by all commands (what is broadcast counts once, what
    stays in registers not at all); `donations` of operands' memory to results, `contiguous_copies` that a
    backend asked for, `mirrors` copied between the host and a device, and `transfers` between accelerators."""


def stats():
    """Counts of what evaluation did, since the start or `reset_stats`."""
    return Stats(**_core._stats())


def reset_stats():
    """Sets the counts of `stats` to zero."""
    _core._reset_stats()


def set_fusion(on):
    """Switches the fusion of elementwise operations on or off. It is on, unless the environment variable
    `ULTRAMARINE_FUSION` is `0`. Results are the same to the bit; off is for comparisons."""
    _core._set_fusion(bool(on))


def is_fusing():
    """Whether elementwise operations are fused, see `set_fusion`."""
    return _core._fusion()


def set_strict(on, allow=()):
    """Switches strict mode: an operation that its device cannot run, not even by simpler ones,
    raises instead of running on the CPU. `allow` names operations, as `op_counts` does, that may
    run there even so. `ULTRAMARINE_STRICT=1` in the environment switches it on, too."""
    _core._set_strict(bool(on), _list(allow))


def is_strict():
    """Whether strict mode is on, see `set_strict`."""
    return _core._is_strict()


def set_poison(on):
    """Switches a debug mode for operations from outside (docs/native-arrays.md): the memory of their outputs is filled with a pattern
    before evaluations, and an operation that leaves elements unwritten raises. It costs time and memory.
    `ULTRAMARINE_POISON=1` in the environment switches it on, too."""
    _core._set_poison(bool(on))


def is_poison():
    """Whether unwritten outputs are looked for, see `set_poison`."""
    return _core._is_poison()


def validation_findings():
    """How many calls and answers broke the contract's rules so far. Only backends that started while
    `ULTRAMARINE_VALIDATE` was `1` are watched; each finding is also written to standard error."""
    return _core._validation_findings()


def include_dir():
    """The directory of the contract's C headers: what a compiler needs as `-I` to build a backend."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "include")


def _package_directories():
    """The directories that installed packages declare, each with the name of its package. Called by
    the core before its first load. What is broken is warned of, and no trouble of the others."""
    from importlib.metadata import entry_points

    found = []
    try:
        points = sorted(entry_points(group=_GROUP), key=lambda p: (p.name, p.value))
    except Exception as error:
        _warn(f"the entry points of installed packages cannot be read: {error}")
        points = []
    for point in points:
        package = point.dist.name if point.dist is not None else point.name
        try:
            found += [(path, package) for path in _directories(point.module)]
        except Exception as error:
            _warn(f"the entry point {point.name!r} of {package} cannot be followed: {error}")
    return found


def _warn(text):
    import warnings

    warnings.warn(text, RuntimeWarning, stacklevel=3)


def _directories(module):
    """Where the backends of a package or module lie, found without running any of it."""
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
    """What tries a file, named behind it, in a child process: this interpreter, if it is one."""
    import sys

    if not sys.executable:
        return None
    place = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    code = f"import sys; sys.path.insert(0, {place!r}); from ultramarine import _core; "
    return [sys.executable, "-c", code + "_core._probe(sys.argv[1])"]
