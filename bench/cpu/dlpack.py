"""How long arrays take from one library to another, beside the same between others, in one run.

All libraries run in this process, on one core, in turns, with the same four floats; figures are
medians. A library that cannot be imported is left out and named. Options: ``--rounds N``, ``--core N``.
"""

import argparse
import ctypes
import importlib
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import timeit
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bench import record, table

Figures = dict[str, float]  # nanoseconds by path
CALLS = 2000
VERSION = "max_version=(1, 3)"


class Target(NamedTuple):
    """What a path is held to, in nanoseconds."""

    most: Callable[[Figures], float]
    means: str


# Statements by path: who gives -> who takes. Those whose names are missing are left out.
PATHS = {
    "numpy -> ours": "mx.from_dlpack(of_numpy)",
    "numpy -> numpy": "np.from_dlpack(of_numpy)",
    "numpy -> tvm-ffi": "tvm_ffi.from_dlpack(of_numpy)",
    "numpy -> mlx (copies)": "mlx.array(of_numpy)",
    "numpy -> torch": "torch.from_dlpack(of_numpy)",
    "ours -> numpy": "np.from_dlpack(ours)",
    "ours -> tvm-ffi": "tvm_ffi.from_dlpack(ours)",
    "ours -> torch": "torch.from_dlpack(ours)",
    "ours -> ours": "mx.from_dlpack(ours)",
    "torch -> ours": "mx.from_dlpack(of_torch)",
    "torch -> tvm-ffi": "tvm_ffi.from_dlpack(of_torch)",
    "torch -> numpy": "np.from_dlpack(of_torch)",
    "torch -> torch": "torch.from_dlpack(of_torch)",
    "mlx -> ours": "mx.from_dlpack(of_mlx)",
    "mlx -> numpy": "np.from_dlpack(of_mlx)",
    "tvm-ffi -> ours": "mx.from_dlpack(of_tvm)",
    "ours.__dlpack__()": "ours.__dlpack__()",
    "numpy.__dlpack__()": "of_numpy.__dlpack__()",
    "tvm-ffi.__dlpack__()": "of_tvm.__dlpack__()",
    "mlx.__dlpack__()": "of_mlx.__dlpack__()",
    "torch.__dlpack__()": "of_torch.__dlpack__()",
    "ours.__dlpack__(max_version)": f"ours.__dlpack__({VERSION})",
    "numpy.__dlpack__(max_version)": f"of_numpy.__dlpack__({VERSION})",
}
TABLES = {
    "C: our table, tensor and deleter": "ours",
    "C: torch's table, the same": "of_torch",
}
TARGETS = {
    "numpy -> ours": Target(lambda f: f["numpy -> numpy"], "numpy -> numpy"),
    "ours.__dlpack__(max_version)": Target(
        lambda f: 1.3 * f["numpy.__dlpack__(max_version)"], "1.3 x numpy's"
    ),
    "torch -> ours": Target(lambda f: f["torch -> tvm-ffi"] + 100, "torch -> tvm-ffi + 100 ns"),
    "C: our table, tensor and deleter": Target(
        lambda f: f["C: torch's table, the same"], "torch's"
    ),
}


def libraries() -> tuple[dict[str, Any], list[str]]:
    """The names that statements use, and complaints."""
    names: dict[str, Any] = {"np": np, "of_numpy": np.arange(4, dtype=np.float32)}
    complaints = []
    makers: dict[str, tuple[str, str, Callable[[Any], Any]]] = {
        "mx": ("ultramarine", "ours", lambda mx: mx.array([0.0, 1.0, 2.0, 3.0])),
        "torch": ("torch", "of_torch", lambda torch: torch.arange(4.0)),
        "tvm_ffi": ("tvm_ffi", "of_tvm", lambda tvm_ffi: tvm_ffi.from_dlpack(names["of_numpy"])),
        "mlx": ("mlx.core", "of_mlx", lambda mlx: mlx.array([0.0, 1.0, 2.0, 3.0])),
    }
    for name, (module, value, make) in makers.items():
        try:
            library = importlib.import_module(module)
            names |= {name: library, value: make(library)}
        except ImportError as error:
            complaints.append(f"{module} left out: {error}")
    for name in ("mx", "mlx"):
        if name in names:
            names[name].eval(names["ours" if name == "mx" else "of_mlx"])
    return names, complaints


def exchange() -> Callable[[int, Any, int], int]:
    """The function of exchange.c."""
    here = Path(__file__).parent
    compiler = next((c for c in ("cc", "gcc", "clang") if shutil.which(c)), None)
    if compiler is None:
        raise OSError("there is no C compiler")
    with tempfile.TemporaryDirectory() as folder:
        library = str(Path(folder) / "exchange.so")
        words = [compiler, "-O2", "-shared", "-fPIC", "-o", library, str(here / "exchange.c")]
        subprocess.run(words, check=True)
        function = ctypes.PyDLL(library).export_and_delete
    function.restype = ctypes.c_int64
    function.argtypes = [ctypes.c_void_p, ctypes.py_object, ctypes.c_int64]
    return function


def table_of(value: Any) -> int:
    """The address of a type's table."""
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return pointer(type(value).__dlpack_c_exchange_api__, b"dlpack_exchange_api")


def measured(rounds: int) -> tuple[Figures, list[str]]:
    """Medians of all paths, each measured once in every round, and complaints."""
    names, complaints = libraries()
    work: dict[str, Callable[[], float]] = {}

    def of(statement: str) -> Callable[[], float]:
        timer = timeit.Timer(statement, globals=names)
        return lambda: timer.timeit(CALLS)

    for path, statement in PATHS.items():
        try:
            exec(statement, names)
        except NameError:
            continue
        except Exception as error:
            complaints.append(f"{path} left out: {type(error).__name__}: {error}")
            continue
        work[path] = of(statement)
    try:
        function = exchange()
        for path, name in TABLES.items():
            if name in names:
                address, value = table_of(names[name]), names[name]
                work[path] = lambda a=address, v=value: function(a, v, CALLS) / 1e9
    except (AttributeError, OSError, subprocess.CalledProcessError) as error:
        complaints.append(f"tables left out: {error}")
    times: dict[str, list[float]] = {path: [] for path in work}
    for _ in range(rounds):
        for path, run in work.items():
            times[path].append(run() / CALLS * 1e9)
    return {path: statistics.median(t) for path, t in times.items()}, complaints


def show(figures: Figures) -> bool:
    """Prints the table; whether every target that could be judged is met."""
    lines = [["nanoseconds, medians", "", "target", "", ""]]
    good = True
    for path in [*PATHS, *TABLES]:
        line = [path, f"{figures[path]:.0f}" if path in figures else "-", "", "", ""]
        if path in TARGETS:
            target = TARGETS[path]
            try:
                most = target.most(figures)
                met = figures[path] <= most
                good &= met
                line[2:] = [f"{most:.0f}", f"({target.means})", "met" if met else "NOT MET"]
            except KeyError:
                line[2:] = ["?", f"({target.means})", ""]
        lines.append(line)
    table.show(lines, left=(0, 3, 4))
    return good


def figure_of(path: str, value: float, figures: Figures, rounds: int) -> record.Figure:
    """A median, with its target where that can be computed."""
    target = None
    if path in TARGETS:
        try:
            target = TARGETS[path].most(figures)
        except KeyError:
            target = None
    ours = "ours" in path or "our table" in path
    library = "ultramarine" if ours else "others"
    return record.Figure("dlpack", path, library, value, "ns", target=target, samples=rounds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=101)
    parser.add_argument("--core", type=int)
    parser.add_argument("--figures", type=Path, help="file for the figures")
    args = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        core = args.core if args.core in cores else cores[-1]
        os.sched_setaffinity(0, {core})
        load = os.getloadavg()[0]
        print(f"on core {core} of {len(cores)}; load {load:.1f}" + (
            ": too much for figures to be trusted" if load > 1.5 else ""))  # fmt: skip
    figures, complaints = measured(args.rounds)
    show(figures)
    for line in complaints:
        print(line)
    if args.figures:
        record.save(
            args.figures,
            [figure_of(path, ns, figures, args.rounds) for path, ns in figures.items()],
        )


if __name__ == "__main__":
    sys.exit(main())
