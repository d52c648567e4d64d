"""Checks and times the CUDA backend on a machine with a GPU, from what `cargo xtask gpu` built: no Rust is needed there.

    python crates/ultramarine-cuda/machine/check.py [--steps kit,ops] [--out DIR] [--list]

Each step is a process of its own with a time limit; its output goes to DIR/STEP.log, and a line about it is printed at the
end. The exit status is 1 if a step failed. What a machine lacks is skipped, and said.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import subprocess
import sys
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
BUILT = ROOT / "target" / "gpu"
PLUGIN = BUILT / "backends" / "libultramarine-cuda.so"
PYTHON = sys.executable


# Where jax is the other side.
ON_GPU = (("JAX_PLATFORMS", "cuda,cpu"),)
# Fused programs run at their first call, where otherwise they would be compiled beside it.
WAIT = ("ULTRAMARINE_CUDA_FUSE", "wait")


@dataclass
class Step:
    """A command, how long it may take in seconds, and modules without which it is skipped."""

    name: str
    command: list[str]
    limit: int
    needs: tuple[str, ...] = ()
    lines: int = 3
    # Beyond the environment of all steps.
    env: tuple[tuple[str, str], ...] = ()


def has(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def pytest(*arguments: str, parallel: bool = True) -> list[str]:
    workers = ["-n", "8"] if parallel and has("xdist") else []
    usual = ["-q", "-x" if "--first" in sys.argv else "-rfE", "-p", "no:cacheprovider"]
    return [PYTHON, "-m", "pytest", *usual, *workers, *arguments]


def script(name: str, *arguments: str) -> list[str]:
    return [PYTHON, str(HERE / name), *arguments]


def steps() -> list[Step]:
    gpu = ["--backend", str(PLUGIN), "--device", "gpu:0"]
    tests = str(ROOT / "python" / "tests")
    return [
        Step("report", [PYTHON, "-m", "ultramarine", "backends"], 60, lines=12),
        Step(
            "kit",
            [
                str(BUILT / "bin" / "ultramarine-conform"),
                "--grade",
                "complete",
                "--jobs",
                "8",
                "--time-limit",
                "400",
                "--large",
                str(PLUGIN),
            ],
            580,
            lines=30,
        ),
        Step(
            "ops",
            pytest("-m", "ops", *gpu, "--strict-for", "cuda", tests),
            500,
            ("mlx", "pytest"),
            12,
        ),
        Step("random", script("random_cases.py", "24200"), 400, (), 6, (WAIT,)),
        Step(
            "dlpack",
            [
                PYTHON,
                "-m",
                "ultramarine.dlpack_check",
                "--verbose",
                "--only",
                "cuda*",
                "--strict",
                "ultramarine",
            ],
            200,
            ("torch",),
            30,
            ON_GPU,
        ),
        Step(
            "interchange",
            pytest(str(ROOT / "python" / "tests" / "interchange" / "test_cuda.py"), parallel=False),
            200,
            ("pytest", "torch"),
            8,
            ON_GPU,
        ),
        Step(
            "kernels",
            [PYTHON, str(ROOT / "examples" / "fast" / "check_cuda.py"), str(PLUGIN)],
            120,
            lines=8,
        ),
        Step(
            "axpby",
            pytest(str(ROOT / "examples" / "extensions" / "axpby" / "tests"), "-k", "gpu"),
            200,
            ("pytest",),
            8,
        ),
        Step(
            "triton",
            [PYTHON, str(ROOT / "examples" / "triton_kernel.py")],
            120,
            ("triton", "torch"),
            3,
        ),
        Step(
            "digits",
            [PYTHON, str(ROOT / "examples" / "digits.py"), "--device", "gpu"],
            240,
            lines=3,
        ),
        Step("endurance", script("endurance.py", "100000"), 400, lines=6),
        Step("faults", script("faults.py"), 120, lines=12),
        Step("sanitize", script("sanitize.py"), 300, lines=16),
        Step("speed", script("speed.py"), 300, (), 40, (WAIT,)),
    ]


def environment() -> dict[str, str]:
    """What the steps find: the package, the plugin's directory, mlx for comparison if it was brought."""
    paths = [str(BUILT / "site")]
    wheels = sorted((BUILT / "wheels").glob("*.whl"))
    if wheels and not has("mlx"):
        unpacked = Path("/tmp/ultramarine-wheels")
        for wheel in wheels:
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(unpacked)
        paths.append(str(unpacked))
        sys.path.append(str(unpacked))
    given = os.environ.get("PYTHONPATH")
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([*paths, *([given] if given else [])]),
        "PYTHONUNBUFFERED": "1",
        "ULTRAMARINE_BACKEND_PATH": str(PLUGIN.parent),
        # jax shares the GPU's memory with us.
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
    }


def run(step: Step, out: Path, env: dict[str, str]) -> tuple[str, str]:
    """What came of a step: ok, failed or skipped; and what to say of it."""
    missing = [module for module in step.needs if not has(module)]
    if missing:
        return "SKIPPED", f"without {', '.join(missing)}"
    log = out / f"{step.name}.log"
    begun = time.monotonic()
    with log.open("w") as file:
        try:
            status = subprocess.run(
                step.command,
                stdout=file,
                stderr=subprocess.STDOUT,
                env={**env, **dict(step.env)},
                cwd=ROOT,
                timeout=step.limit,
            ).returncode
        except subprocess.TimeoutExpired:
            status = -1000
        except OSError as error:
            return "FAILED", str(error)
    seconds = time.monotonic() - begun
    tail = log.read_text(errors="replace").rstrip().splitlines()[-step.lines :]
    how = (
        "ok"
        if status == 0
        else f"no end after {step.limit} s"
        if status == -1000
        else f"exit status {status}"
    )
    return "ok" if status == 0 else "FAILED", "\n    ".join([f"{how}, {seconds:.1f} s", *tail])


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", default="", help="names, separated by commas (default: all)")
    parser.add_argument(
        "--out", type=Path, default=Path("/tmp/ultramarine-gpu"), help="where logs go"
    )
    parser.add_argument("--list", action="store_true", help="only list the steps")
    arguments = parser.parse_args()
    env = environment()
    chosen = [s for s in steps() if not arguments.steps or s.name in arguments.steps.split(",")]
    if arguments.list:
        print("\n".join(s.name for s in chosen))
        return 0
    if not PLUGIN.is_file():
        print(
            f"{PLUGIN} is not there: run `cargo xtask gpu` where there is Rust, and bring target/gpu"
        )
        return 1
    arguments.out.mkdir(parents=True, exist_ok=True)
    failed = []
    for step in chosen:
        how, told = run(step, arguments.out, env)
        print(f"{how:8} {step.name}: {told}", flush=True)
        if how == "FAILED":
            failed.append(step.name)
    print(f"failed: {', '.join(failed)}" if failed else "all steps are well")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
