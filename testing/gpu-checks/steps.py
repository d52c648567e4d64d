"""The steps of check.py: commands, time limits and the environment that they run in."""

from __future__ import annotations

import importlib.util
import os
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUNDLE = ROOT / "target" / "gpu"
PLUGIN = BUNDLE / "backends" / "libultramarine-cuda.so"
VULKAN = BUNDLE / "vulkan" / "libultramarine-vulkan.so"
TESTS = ROOT / "python" / "tests"

# Where jax is the other side.
JAX_ON_GPU = (("JAX_PLATFORMS", "cuda,cpu"),)
# Fused programs are compiled before their first call instead of beside it.
WAIT = (("ULTRAMARINE_CUDA_FUSE", "wait"),)
# Groups of bench/run.py that are timed on a GPU machine, and libraries of the CPU's workloads there.
FIGURES = ("gpu", "limits", "dlpack", "workloads")
COLUMNS = "ours,unfused,torch"


@dataclass(frozen=True)
class Part:
    """A command with its time limit in seconds. Without the modules that it `needs` it is skipped, or fails if `required`."""

    name: str
    command: Sequence[str]
    limit: int
    needs: Sequence[str] = ()
    # Lines of its output's end that are printed.
    lines: int = 3
    # Beyond the environment of all parts.
    env: Sequence[tuple[str, str]] = ()
    required: bool = False


@dataclass(frozen=True)
class Step:
    """Parts that run in lanes side by side, each lane in order. `minutes` is what a run usually takes."""

    about: str
    minutes: float
    lanes: Callable[[Path], Sequence[Sequence[Part]]]
    usual: bool = False


def has(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def pytest(*arguments: str, workers: int = 0) -> list[str]:
    """A run of pytest, in worker processes if pytest-xdist is there."""
    parallel = ["-n", str(workers)] if workers and has("xdist") else []
    words = [sys.executable, "-m", "pytest", "-q", "-rfE", "-p", "no:cacheprovider"]
    return [*words, *parallel, *arguments]


def script(name: str, *arguments: str) -> list[str]:
    return [sys.executable, str(HERE / name), *arguments]


def kit() -> Part:
    program = str(BUNDLE / "bin" / "ultramarine-conform")
    how = ["--grade", "complete", "--jobs", "8", "--time-limit", "400", "--large"]
    return Part("kit", [program, *how, str(PLUGIN)], 420, lines=30)


def ops() -> Part:
    device = [f"--backend={PLUGIN}", "--device=gpu:0", "--strict-for=cuda"]
    command = pytest("-m", "ops", *device, str(TESTS), workers=8)
    return Part("ops", command, 420, ("mlx", "pytest"), 12, required=True)


def random_cases() -> Part:
    return Part("random", script("random_cases.py", "24200"), 420, ("mlx",), 6, WAIT, True)


def small_parts() -> list[Part]:
    """The parts that take seconds each."""
    backends = [sys.executable, "-m", "ultramarine", "backends"]
    suite = [sys.executable, "-m", "ultramarine_dlpack_check", "--verbose"]
    digits = [sys.executable, str(ROOT / "examples" / "digits.py"), "--device", "gpu"]
    triton = [sys.executable, str(ROOT / "examples" / "triton_kernel.py")]
    interchange = pytest(str(TESTS / "interchange" / "test_cuda.py"))
    authors = pytest("-rs", str(TESTS / "interchange" / "test_kernel_authors.py"))
    compiled = pytest("--noconftest", str(TESTS / "backends" / "precompiled_on_cuda.py"))
    axpby = pytest(str(ROOT / "examples" / "extensions" / "axpby" / "tests"), "-k", "gpu")
    return [
        Part("report", backends, 60, lines=12),
        Part("interchange", interchange, 200, ("mlx", "pytest", "torch"), 8, JAX_ON_GPU),
        Part(
            "dlpack",
            [*suite, "--only", "cuda*", "--strict", "ultramarine"],
            200,
            ("torch", "ultramarine_dlpack_check"),
            30,
            JAX_ON_GPU,
        ),
        Part("kernels", script("user_kernels.py", str(PLUGIN)), 120, lines=10),
        Part("compiled", compiled, 120, ("pytest",), 4, (("PLUGIN", str(PLUGIN)),)),
        Part("authors", authors, 240, ("mlx", "pytest", "torch"), 8),
        Part("axpby", axpby, 200, ("pytest", "ultramarine_axpby"), 4),
        Part("triton", triton, 120, ("triton", "torch")),
        Part("digits", digits, 240),
    ]


def correctness(out: Path) -> list[list[Part]]:
    return [[kit()], [ops()], [random_cases()], small_parts()]


def figures(out: Path) -> list[list[Part]]:
    command = [sys.executable, "-m", "bench.run", *FIGURES, "--native", str(BUNDLE / "bin")]
    command += ["--out", str(out), "--seconds", "0.3", "--columns", COLUMNS]
    return [[Part("figures", command, 400, lines=100, env=WAIT)]]


def vulkan(out: Path) -> list[list[Part]]:
    """The Vulkan backend: the kit, the operation suite and examples side by side. Times come after."""
    env = (("ULTRAMARINE_BACKEND_PATH", str(VULKAN.parent)),)
    program = str(BUNDLE / "bin" / "ultramarine-conform")
    kit = [program, "--grade", "complete", "--jobs", "4", "--time-limit", "300", str(VULKAN)]
    device = [f"--backend={VULKAN}", "--device=gpu:0", "--strict-for=vulkan"]
    suite = pytest("-m", "ops", *device, str(TESTS), workers=6)
    report = [sys.executable, "-m", "ultramarine", "backends"]
    digits = [sys.executable, str(ROOT / "examples" / "digits.py"), "--device", "gpu"]
    text = [sys.executable, str(ROOT / "examples" / "text.py"), "--device", "gpu"]
    both = (
        ("ULTRAMARINE_BACKEND_PATH", os.pathsep.join(map(str, (PLUGIN.parent, VULKAN.parent)))),
    )
    return [
        [Part("vulkan: kit", kit, 320, lines=30)],
        [Part("vulkan: ops", suite, 500, ("mlx", "pytest"), 12, required=True)],
        [
            Part("vulkan: report", report, 60, lines=12, env=env),
            Part("vulkan: digits", digits, 240, env=env),
            Part("vulkan: text", text, 240, ("tqdm",), env=env),
            Part("vulkan: and CUDA", script("two_backends.py"), 120, lines=8, env=both),
        ],
    ]


def beside(out: Path) -> list[list[Part]]:
    """Times of the Vulkan backend beside those of the CUDA backend."""
    words = [sys.executable, "-m", "bench.gpu.backends", str(PLUGIN), str(VULKAN)]
    return [[Part("vulkan: figures", words, 300, lines=40)]]


def alone(
    name: str, command: list[str], limit: int, lines: int
) -> Callable[[Path], list[list[Part]]]:
    return lambda out: [[Part(name, command, limit, lines=lines)]]


STEPS: dict[str, Step] = {
    "correctness": Step(
        "kit, op suite (strict), random cases; interchange, kernels, examples: side by side",
        5,
        correctness,
        usual=True,
    ),
    "figures": Step("figures of the GPU and the CPU, as JSON", 2, figures, usual=True),
    "vulkan": Step("the Vulkan backend: kit, op suite (strict), examples", 3, vulkan),
    "beside": Step("times of the Vulkan backend beside the CUDA backend", 1.5, beside),
    "endurance": Step(
        "100,000 training steps in constant memory",
        0.7,
        alone("endurance", script("endurance.py", "100000"), 540, 6),
    ),
    "faults": Step(
        "out of memory, faulting kernels, kernels that do not compile",
        0.2,
        alone("faults", script("faults.py"), 300, 12),
    ),
    "two_gpus": Step(
        "two GPUs of one host: arrays, copies, memory, streams, a training step on each at once",
        0.7,
        alone("two_gpus", script("two_gpus.py"), 240, 12),
    ),
    "two_ranks": Step(
        "two processes with a GPU each, through NCCL: collectives, faults, training, rates beside torch's",
        3,
        alone("two_ranks", script("two_ranks.py"), 420, 40),
    ),
    "sanitize": Step(
        "compute-sanitizer's four tools over every family of kernels",
        0.5,
        alone("sanitize", script("sanitize.py"), 540, 16),
    ),
}


def parts() -> dict[str, Part]:
    """The parts of the step `correctness`, which can be run by name."""
    return {part.name: part for lane in correctness(Path()) for part in lane}


# Wheels of the bundle whose module has another name.
MODULES = {"mlx_cpu": "mlx", "pytest_xdist": "xdist"}


def unpack_wheels() -> list[str]:
    """Unpacks the bundle's wheels of modules that this Python lacks. Returns the folders for PYTHONPATH."""
    wheels = sorted((BUNDLE / "wheels").glob("*.whl"))
    names = {wheel: wheel.name.split("-")[0] for wheel in wheels}
    missing = [wheel for wheel, name in names.items() if not has(MODULES.get(name, name))]
    if not missing:
        return []
    folder = Path(tempfile.gettempdir()) / "ultramarine-wheels"
    for wheel in missing:
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder)
    return [str(folder)]


def unpack_programs() -> None:
    """Unpacks the bundle's programs beside their file, where that was not done before."""
    programs, done = BUNDLE / "programs.tar.gz", BUNDLE / "unpacked"
    state = str(programs.stat().st_mtime_ns) if programs.is_file() else ""
    if state and (not done.is_file() or done.read_text() != state):
        with tarfile.open(programs) as archive:
            archive.extractall(BUNDLE, filter="data")
        done.write_text(state)


def environment() -> dict[str, str]:
    """The environment of all parts: the bundle's packages, its plugin, and wheels where modules are missing."""
    paths = [str(BUNDLE / "site"), *unpack_wheels()]
    sys.path.extend(paths)
    given = os.environ.get("PYTHONPATH")
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([*paths, *([given] if given else [])]),
        "PYTHONUNBUFFERED": "1",
        "ULTRAMARINE_BACKEND_PATH": str(PLUGIN.parent),
        # jax shares the GPU's memory with the other processes.
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
    }
