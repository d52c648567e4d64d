"""Plugins made for tests with the C compiler, and interpreters of their own to load them in."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest

from support.paths import ROOT

SOURCE = ROOT / "crates/ultramarine-runtime/tests/misbehaving/plugin.c"
HEADERS = ROOT / "crates/ultramarine-abi/include"
EXAMPLES = ROOT / "examples/backends"
BUILT = ROOT / "target/tmp/python-backends"
# The library of testing/vulkan-layer, if the Rust tests were built.
VULKAN_LAYER = ROOT / "target/checked/libultramarine_test_vulkan_layer.so"


@contextmanager
def building() -> Iterator[None]:
    """One process at a time builds there: tests may run in several."""
    BUILT.mkdir(parents=True, exist_ok=True)
    with (BUILT / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def make(directory: Path, name: str = "good", *flags: str) -> Path:
    """A backend in a directory, that behaves but for what the flags say (see plugin.c)."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"libultramarine-{name}.so"
    own, _, variant = name.partition("-")
    named = [f'-DNAME="{own}"', f'-DVARIANT="{variant}"', *flags]
    cc = ["cc", "-std=gnu11", "-O1", "-shared", "-fPIC", "-fvisibility=hidden", "-I", str(HEADERS)]
    subprocess.run([*cc, *named, "-o", str(path), str(SOURCE)], check=True)
    return path


def make_opaque(directory: Path) -> Path:
    """A backend called `throwing`, in whose memory the host has no addresses."""
    path = directory / "libultramarine-throwing.so"
    cxx = ["c++", "-std=c++17", "-O1", "-shared", "-fPIC", "-fvisibility=hidden"]
    source = SOURCE.with_name("throwing.cpp")
    subprocess.run([*cxx, "-I", str(HEADERS), "-o", str(path), str(source)], check=True)
    return path


def start(arguments: list[str], **environment: str) -> subprocess.Popen[str]:
    """An interpreter with arguments, in which no backend was loaded."""
    plain = {k: v for k, v in os.environ.items() if not k.startswith("ULTRAMARINE_")}
    return subprocess.Popen(
        [sys.executable, *arguments],
        env={**plain, "ULTRAMARINE_LOG": "off", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(script: str, **environment: str) -> str:
    """What a script prints, run in an interpreter of its own. It has `mx` and `backends`."""
    head = "import ultramarine as mx\nfrom ultramarine import backends\n"
    process = start(["-c", head + textwrap.dedent(script)], **environment)
    out, err = process.communicate(timeout=180)
    assert process.returncode == 0, err
    return out


def command(*arguments: str, **environment: str) -> tuple[int, str]:
    """Exit status and output of `python -m ultramarine`."""
    process = start(["-m", "ultramarine", *arguments], **environment)
    out, err = process.communicate(timeout=180)
    return process.returncode, out + err


def compiled(directory: Path, name: str, source: str) -> Path:
    """A backend of one file of C."""
    directory.mkdir(parents=True, exist_ok=True)
    out = directory / f"libultramarine-{name}.so"
    flags = ["-std=c11", "-O2", "-fPIC", "-fvisibility=hidden", "-pthread", "-I", str(HEADERS)]
    command = ["cc", *flags, "-shared", "-x", "c", "-", "-lm", "-o", str(out)]
    subprocess.run(command, input=source, text=True, check=True)
    return out


@cache
def conform() -> Path | None:
    """The conformance kit, where it was built."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    names = [target / profile / "ultramarine-conform" for profile in ("checked", "release")]
    return next((name for name in names if name.is_file()), None)


def kit(*arguments: str) -> tuple[int, str]:
    """Exit status and output of `python -m ultramarine conform`; the test is skipped where the kit was not built."""
    program = conform()
    if program is None:
        pytest.skip("the kit is not built: cargo build --release -p ultramarine-conform")
    return command("conform", *arguments, ULTRAMARINE_CONFORM=str(program))


@cache
def minimal() -> Path:
    """The minimal backend, which has two devices."""
    with building():
        return compiled(BUILT, "minimal", (EXAMPLES / "minimal/minimal.c").read_text())


@cache
def opencl() -> Path | None:
    """The OpenCL backend, where there is a device for it."""
    command = ["make", "-C", str(EXAMPLES / "opencl"), f"OUT={BUILT}"]
    with building():
        made = subprocess.run(command, capture_output=True, check=False)
    plugin = BUILT / "libultramarine-opencl.so"
    if made.returncode != 0:
        return None
    printed = run(f"""
        try:
            print(backends.load("{plugin}").name)
        except RuntimeError as error:
            print(error)
    """)
    return plugin if printed.strip() == "opencl" else None


@cache
def emulated_cuda() -> tuple[Path, dict[str, str]] | None:
    """The CUDA backend and the environment in which it finds the emulated driver, where `cargo xtask test` built them."""
    plugin, driver = ROOT / "target/backends/libultramarine-cuda.so", ROOT / "target/emulated-cuda"
    if not plugin.is_file() or not (driver / "libcuda.so.1").is_file():
        return None
    return plugin, {
        "ULTRAMARINE_CUDA_LIBRARIES": str(driver),
        "ULTRAMARINE_CUDA_DEVICES": "1",
        "ULTRAMARINE_CACHE_DIR": str(ROOT / "target/cuda-cache"),
    }


@cache
def vulkan() -> tuple[Path, dict[str, str]] | None:
    """The Vulkan backend and the environment of its driver, where `cargo xtask test` built it and there is a device."""
    plugin, kept = ROOT / "target/backends/vulkan/libultramarine-vulkan.so", ROOT / "target/mesa"
    if not plugin.is_file():
        return None
    # Mesa caches compiled kernels there, and prints a warning if the user has no such directory.
    kept.mkdir(parents=True, exist_ok=True)
    runtime = os.environ.get("XDG_RUNTIME_DIR", str(kept))
    environment = {"XDG_RUNTIME_DIR": runtime, "MESA_SHADER_CACHE_DIR": str(kept)}
    # llvmpipe spends more time on compiling than on running, so switch its optimisations off.
    environment["GALLIVM_PERF"] = "nopt"
    script = f"""
        try:
            print(backends.load("{plugin}").name)
        except RuntimeError as error:
            print(error)
    """
    return (plugin, environment) if run(script, **environment).strip() == "vulkan" else None
