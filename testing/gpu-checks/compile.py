"""Compiles kernels of the CUDA backend by the real NVRTC, without a GPU: what CI knows of them beyond the emulator.

    python compile.py DIRECTORY [--arch sm_75 --arch sm_90] [--each 1] [--all] [--again] [--accept]

DIRECTORY holds the sources that `ULTRAMARINE_CUDA_SOURCES=DIRECTORY` made a run keep. Thousands are instances of a few templates:
of those whose names differ in dtypes and numbers alone `--each` are compiled, unless `--all` is given. Sources in accepted.txt passed before
under the same compiler, options and architectures, and are compiled with `--again` only; `--accept` writes that file. An architecture named
`compute_75` stops before machine code; sources of warpgroups are compiled for sm_90a alone. NVRTC comes from the package nvidia-cuda-nvrtc, or is the system's.
"""

from __future__ import annotations

import argparse
import ctypes
import hashlib
import re
import sys
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

# Those of `src/program`.
OPTIONS = [
    "--std=c++17",
    "--fmad=false",
    "--device-as-default-execution-space",
    "--diag-suppress=177",
]
# The sources that passed: their digests, after a line with the conditions.
ACCEPTED = Path(__file__).with_name("accepted.txt")
DTYPE = re.compile(
    r"(?<![A-Za-z0-9])(Bool|[UI](8|16|32|64)|B?F(16|32|64)|C64|[iu](8|16|32|64))(?![A-Za-z0-9])"
)


def library() -> Any:
    names = [
        *Path(sys.prefix).glob("lib/python*/site-packages/nvidia/*/lib/libnvrtc.so.1?"),
        "libnvrtc.so.13",
        "libnvrtc.so.12",
    ]
    for name in names:
        try:
            return ctypes.CDLL(str(name))
        except OSError:
            continue
    return None


def family(path: Path) -> str:
    """The name of a kernel without dtypes, numbers and the hash of its text."""
    name = path.stem.rsplit("-", 1)[0].replace("_", " ")
    return re.sub(r"\d+", "#", DTYPE.sub("*", name))


def compile_one(nvrtc: Any, path: Path, arch: str) -> str:
    """The log of a text that does not compile, or nothing."""
    program = ctypes.c_void_p()
    nvrtc.nvrtcCreateProgram(
        ctypes.byref(program), path.read_bytes(), path.name.encode(), 0, None, None
    )
    options = [o.encode() for o in [f"--gpu-architecture={arch}", *OPTIONS]]
    status = nvrtc.nvrtcCompileProgram(
        program, len(options), (ctypes.c_char_p * len(options))(*options)
    )
    size = ctypes.c_size_t()
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(max(1, size.value))
    nvrtc.nvrtcGetProgramLog(program, log)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return (
        f"{path.name} for {arch}: status {status}\n{log.value.decode(errors='replace')[:2000]}"
        if status
        else ""
    )


def targets(path: Path, archs: list[str]) -> list[str]:
    """The architectures that a source is compiled for: no other has the products of warpgroups."""
    return ["sm_90a"] if b"wgmma.mma_async" in path.read_bytes() else archs


def conditions(nvrtc: Any, archs: list[str]) -> str:
    """What an accepted source was compiled with."""
    major, minor = ctypes.c_int(), ctypes.c_int()
    nvrtc.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    return " ".join([f"NVRTC {major.value}.{minor.value}:", *archs, *OPTIONS])


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def accepted_under(conditions: str) -> set[str]:
    """The digests of the sources that were accepted under these conditions."""
    if not ACCEPTED.exists():
        return set()
    lines = ACCEPTED.read_text().splitlines()
    return {line.split()[0] for line in lines[1:]} if lines[:1] == [conditions] else set()


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("directory", type=Path)
    parser.add_argument("--arch", action="append", default=[], help="default: compute_75 and sm_90")
    parser.add_argument("--each", type=int, default=1)
    parser.add_argument("--all", action="store_true", help="every instance of every template")
    parser.add_argument("--again", action="store_true", help="accepted sources, too")
    parser.add_argument("--accept", action="store_true", help=f"write {ACCEPTED.name}")
    asked = parser.parse_args()
    nvrtc = library()
    if nvrtc is None:
        print("SKIPPED: there is no NVRTC (pip install nvidia-cuda-nvrtc)")
        return 0
    families: dict[str, list[Path]] = defaultdict(list)
    sources = sorted(asked.directory.glob("*.cu"))
    for path in sources:
        families[family(path)].append(path)
    chosen = {
        digest(path): path
        for paths in families.values()
        for path in (paths if asked.all else paths[:: max(1, len(paths) // asked.each)])
    }
    if not chosen:
        print(f"there are no kernel sources in {asked.directory}")
        return 1
    archs = asked.arch or ["compute_75", "sm_90"]
    under = conditions(nvrtc, archs)
    accepted = set() if asked.again else accepted_under(under)
    work = [
        (path, arch)
        for key, path in chosen.items()
        if key not in accepted
        for arch in targets(path, archs)
    ]
    begun = time.monotonic()
    with ThreadPoolExecutor() as pool:
        logs = [log for log in pool.map(lambda w: compile_one(nvrtc, *w), work) if log]
    print("\n".join(logs[:10]))
    if asked.accept and not logs:
        rows = sorted(f"{key} {family(path)}" for key, path in chosen.items())
        ACCEPTED.write_text("\n".join([under, *rows]) + "\n")
    unchanged = len(chosen.keys() & accepted)
    print(
        f"{len(sources)} sources of {len(families)} kinds: {unchanged} accepted before, "
        f"{len(work)} compiled in {time.monotonic() - begun:.0f} s, {len(logs)} failed"
    )
    return 1 if logs else 0


if __name__ == "__main__":
    sys.exit(main())
