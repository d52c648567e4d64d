"""The mistakes of a first hour: what `python -m ultramarine backends FILE` and the conformance kit say of each, and do to it.

A message names what is wrong and what to do about it, once: no line is printed twice, and a mistake that keeps a backend from its
first device is one failure of the kit."""

import subprocess
from pathlib import Path

import pytest
from support.plugins import HEADERS, ROOT, command, kit, start

SOURCE = ROOT / "testing/broken-backends/broken.c"
CC = [
    "cc",
    "-std=gnu11",
    "-O1",
    "-w",
    "-fPIC",
    "-fvisibility=hidden",
    "-pthread",
    "-I",
    str(HEADERS),
]
DEFINE = "write UM_DEFINE_BACKEND(...)"

# By name: the flags of the compiler, what the report says (the reason and the remedy), the kit's exit status and words.
BROKEN: dict[str, tuple[list[str], list[str], int, list[str]]] = {
    "forgets UM_DEFINE_BACKEND": (
        ["-DVARIANT=1"],
        ["it does not export ultramarine_backend_abi_info", DEFINE],
        1,
        ["ultramarine_backend_abi_info is not exported", DEFINE],
    ),
    "lacks submit": (
        ["-DVARIANT=2"],
        ["its table lacks the required function submit", "t.submit = ..."],
        1,
        ["the table lacks submit", "t.submit = submit"],
    ),
    "scores 0": (
        ["-DVARIANT=3"],
        [
            "it cannot run on this machine: there is no device file /dev/accelerator0",
            "none needed if",
        ],
        3,
        ["cannot run here (score 0): there is no device file /dev/accelerator0"],
    ),
    "scores 0 silently": (
        ["-DVARIANT=4"],
        [
            "it cannot run on this machine (score 0), and gives no reason",
            "score function set `reason`",
        ],
        3,
        ["cannot run here (score 0): it gives no reason: fill in `reason`"],
    ),
    "for another contract": (
        ["-DVARIANT=5"],
        ["0.99", "install the build of the backend for this version"],
        1,
        ["contract 0.99, the kit's is"],
    ),
    "init fails": (
        ["-DVARIANT=6"],
        ["init: the driver answers with code 7", "follow its message"],
        1,
        ["init returned ERROR (the driver answers with code 7)"],
    ),
    "undefined symbol": (
        ["-DVARIANT=7"],
        [
            "undefined symbol: accelerator_open",
            "link it against the library that defines the symbol",
        ],
        1,
        ["undefined symbol: accelerator_open"],
    ),
    "init crashes": (
        ["-DVARIANT=8"],
        ["it was ended by signal 11 (SIGSEGV), at the stage init", "report it to"],
        1,
        ["FAILED load/init", "was ended by signal 11"],
    ),
    "has no devices": (
        ["-DVARIANT=9"],
        ["it found no device", "check its driver"],
        1,
        ["device_count is 0: fail in init, or return a score of 0"],
    ),
    "another device type": (
        ["-DVARIANT=10"],
        ["device type", "fill in the same name, device type and version"],
        1,
        ["device type"],
    ),
    "text file": (
        [],
        ["not a shared library, but a text file", "-shared -fPIC"],
        1,
        ["a text file of", "not a shared library"],
    ),
    "object file": (
        ["-DVARIANT=0", "-c"],
        ["an ELF object or program, not a shared library", "link it with cc -shared"],
        1,
        ["an ELF object or program, not a shared library"],
    ),
    "another file name": (
        ["-DVARIANT=0"],
        ["minimal", "rename the file"],
        1,
        ["the file is called libultramarine-other.so, its note asks for libultramarine-minimal.so"],
    ),
}


def build(directory: Path, flags: list[str], name: str = "minimal") -> Path:
    """A broken backend."""
    path = directory / f"libultramarine-{name}.so"
    if not flags:
        path.write_text(SOURCE.read_text())
        return path
    shared = [] if "-c" in flags else ["-shared"]
    libraries = [] if "-c" in flags else ["-lm"]
    command = [*CC, *shared, *flags, "-o", str(path), str(SOURCE), *libraries]
    subprocess.run(command, check=True)
    return path


@pytest.fixture(params=BROKEN, scope="module")
def broken(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Path]:
    name: str = request.param
    file = "other" if name == "another file name" else "minimal"
    return name, build(tmp_path_factory.mktemp("broken"), BROKEN[name][0], file)


def test_the_report_says_what_to_do(broken: tuple[str, Path]) -> None:
    name, path = broken
    # The log as users have it, not as other tests do.
    status, printed = command("backends", str(path), ULTRAMARINE_LOG="warning")
    assert status == 1, printed
    for words in BROKEN[name][1]:
        assert words in printed, (words, printed)
    assert printed.count("why:") == printed.count("remedy:") == 1, printed
    lines = [line for line in printed.splitlines() if line.strip()]
    assert len(set(lines)) == len(lines), printed
    assert printed.count(BROKEN[name][1][1]) == 1, printed


def test_the_log_has_one_level_for_equal_harm(tmp_path: Path) -> None:
    levels = {}
    for name in ("lacks submit", "text file", "undefined symbol", "for another contract"):
        path = build(tmp_path, BROKEN[name][0])
        process = start(
            ["-c", "from ultramarine import backends; backends.load_all()"],
            ULTRAMARINE_LOG="info",
            ULTRAMARINE_BACKEND_PATH=str(tmp_path),
        )
        _, printed = process.communicate(timeout=60)
        (line,) = [line for line in printed.splitlines() if str(path) in line]
        levels[name] = line.split(":")[1].strip()
    assert set(levels.values()) == {"warning"}, levels


def test_the_kit_says_it_once(broken: tuple[str, Path]) -> None:
    name, path = broken
    # These load, and everything else about them is right: the groups that can see it are enough.
    loads = name in ("for another contract", "another device type", "another file name")
    groups = ["--group", "file", "--group", "abi"] if loads else []
    status, printed = kit(*groups, str(path))
    _, _, expected, words = BROKEN[name]
    assert status == expected, printed
    for text in words:
        assert text in printed, (text, printed)
    if expected == 3:
        assert len(printed.splitlines()) == 1, printed
    else:
        # The note and the entry point are two places that say a version.
        most = 2 if name == "for another contract" else 1
        assert printed.count("FAILED") <= most, printed
        assert f"breaks the contract: {printed.count('FAILED')} check" in printed, printed


def test_attributes_that_are_ignored_break_the_contract(tmp_path: Path) -> None:
    path = build(tmp_path, ["-DVARIANT=12"])
    for op in ("copy", "fill", "select", "reduce", "matmul"):
        check = f"{op}/attributes of a later version"
        status, printed = kit("--group", f"ops.{op}", "--check", check, str(path))
        assert status == 1, printed
        assert f"FAILED {check}" in printed and "um_read_attributes" in printed, printed
        assert f"again: python -m ultramarine conform --group ops.{op} " in printed, printed


def test_the_validating_layer_names_the_last_command(tmp_path: Path) -> None:
    path = build(tmp_path, ["-DVARIANT=11"])
    script = f"""
import ultramarine as mx
device = mx.backends.load({str(path)!r}).devices[0]
with mx.stream(device):
    x = mx.ones((2, 3))
    mx.eval(mx.exp(x).T)
    mx.eval(mx.sin(x.T))
"""
    process = start(["-c", script], ULTRAMARINE_VALIDATE="1", ULTRAMARINE_FUSION="0")
    _, printed = process.communicate(timeout=60)
    assert process.returncode == -11, printed
    (line,) = [line for line in printed.splitlines() if "validation:" in line]
    assert "SIGSEGV in submit of minimal: unary sin (float32 [3, 2] strides [" in line, line


def test_the_kit_names_the_last_command(tmp_path: Path) -> None:
    path = build(tmp_path, ["-DVARIANT=11"])
    status, printed = kit("--group", "ops.unary", "--check", "unary/sin/float32", str(path))
    assert status == 1, printed
    assert "signal 11" in printed and "last call: submit, unary of (float32 [" in printed, printed
