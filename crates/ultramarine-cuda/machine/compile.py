"""Compiles kernels of the CUDA backend by the real NVRTC, without a GPU: what CI knows of them beyond the emulator.

    python compile.py DIRECTORY [--arch sm_75 --arch sm_90] [--each 1] [--all]

DIRECTORY holds the texts that `ULTRAMARINE_CUDA_SOURCES=DIRECTORY` made a run keep. Thousands are instances of a few templates:
of those whose names differ in dtypes and numbers alone `--each` are compiled, unless `--all` is said. An architecture named
`compute_75` stops before machine code. NVRTC comes from the package nvidia-cuda-nvrtc, or is the system's.
"""

from __future__ import annotations

import argparse
import ctypes
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


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("directory", type=Path)
    parser.add_argument("--arch", action="append", default=[], help="default: compute_75 and sm_90")
    parser.add_argument("--each", type=int, default=1)
    parser.add_argument("--all", action="store_true")
    asked = parser.parse_args()
    nvrtc = library()
    if nvrtc is None:
        print("SKIPPED: there is no NVRTC (pip install nvidia-cuda-nvrtc)")
        return 0
    families: dict[str, list[Path]] = defaultdict(list)
    texts = sorted(asked.directory.glob("*.cu"))
    for path in texts:
        families[family(path)].append(path)
    chosen = (
        texts
        if asked.all
        else [p for paths in families.values() for p in paths[:: max(1, len(paths) // asked.each)]]
    )
    if not chosen:
        print(f"there are no texts in {asked.directory}")
        return 1
    work = [(path, arch) for arch in asked.arch or ["compute_75", "sm_90"] for path in chosen]
    begun = time.monotonic()
    with ThreadPoolExecutor() as pool:
        logs = [log for log in pool.map(lambda w: compile_one(nvrtc, *w), work) if log]
    print("\n".join(logs[:10]))
    print(
        f"{len(texts)} texts of {len(families)} kinds: {len(work)} compiled in {time.monotonic() - begun:.0f} s, {len(logs)} failed"
    )
    return 1 if logs else 0


if __name__ == "__main__":
    sys.exit(main())
