"""Checkpoints that one number of processes writes and another reads, under Open MPI and MPICH."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
from support.paths import DOCS, ROOT

import ultramarine as mx
from ultramarine import _core  # type: ignore[attr-defined]

from .launching import LAUNCHERS, mpirun, passes


@pytest.mark.parametrize("library", LAUNCHERS)
def test_any_number_of_processes_reads(library: str, tmp_path: Path) -> None:
    passes(library, 1, "checkpoints.py", "write", str(tmp_path))
    # Each writes the model again, for the next one.
    for size in (2, 3, 1):
        passes(library, size, "checkpoints.py", "read", str(tmp_path))


@pytest.mark.parametrize(("library", "sizes"), [("openmpi", (3, 2)), ("mpich", (2, 4))])
def test_several_processes_write(library: str, sizes: tuple[int, int], tmp_path: Path) -> None:
    passes(library, sizes[0], "checkpoints.py", "write", str(tmp_path))
    for size in (sizes[1], 1):
        passes(library, size, "checkpoints.py", "read", str(tmp_path))


@pytest.mark.parametrize("library", LAUNCHERS)
@pytest.mark.parametrize("size", [2, 3])
def test_faults(library: str, size: int, tmp_path: Path) -> None:
    passes(library, size, "checkpoints.py", "faults", str(tmp_path))


def test_the_example(tmp_path: Path) -> None:
    """Changes of the number of processes change nothing of the training."""
    ends = []
    for sizes in ((1, 1, 1), (2, 3, 1)):
        folder = tmp_path / str(sizes[0])
        for size in sizes:
            program = str(ROOT / "examples" / "distributed_checkpoint.py")
            ended = mpirun("mpich", size, program, str(folder))
            assert ended.status == 0, ended
        found = re.fullmatch(r"step 150 of 1 processes, loss ([\d.]+)\n", ended.out)
        assert found, ended
        ends.append(float(found[1]))
    assert abs(ends[0] - ends[1]) < 1e-3


def bytes_read() -> int:
    """Bytes that this process has read from files so far."""
    found = re.search(r"rchar: (\d+)", Path("/proc/self/io").read_text())
    assert found
    return int(found[1])


@pytest.mark.parametrize("dtype", [mx.float32, mx.bfloat16, mx.bool_, mx.complex64])
def test_parts_are_cut_from_files(dtype: mx.Dtype, tmp_path: Path) -> None:
    """Of arrays that were not read yet, for each axis, with short pieces and long ones, several ranges and none."""
    whole = (mx.arange(6 * 40 * 700) % 251).reshape(6, 40, 700).astype(dtype)
    path = str(tmp_path / "w.safetensors")
    mx.save_safetensors(path, {"before": mx.ones(3), "w": whole})
    for axis, ranges in [
        *((0, [(2, 5)]), (0, [(5, 6), (0, 1)]), (1, [(0, 40)]), (1, [(10, 30), (31, 39)])),
        *(
            (2, [(3, 4)]),
            (2, [(0, 350), (350, 700)]),
            (1, [(7, 7)]),
            (0, []),
            (0, [(1, 1), (2, 3)]),
        ),
    ]:
        lazy: Any = mx.load(path)
        part = _core._part(lazy["w"], axis, ranges)
        index = [i for start, stop in ranges for i in range(start, stop)]
        wanted = mx.take(whole, mx.array(index, mx.int32), axis)
        assert part.shape == wanted.shape and part.dtype == dtype, (axis, ranges)
        assert mx.array_equal(part, wanted).item(), (axis, ranges)
        # The same of one that has its values.
        assert mx.array_equal(_core._part(whole, axis, ranges), wanted).item(), (axis, ranges)
    for axis, ranges in [(3, [(0, 1)]), (1, [(0, 41)]), (1, [(3, 2)])]:
        with pytest.raises(ValueError, match="part"):
            _core._part(whole, axis, ranges)


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="not Linux")
def test_a_part_alone_is_read(tmp_path: Path) -> None:
    path = str(tmp_path / "w.safetensors")
    mx.save_safetensors(path, {"w": mx.arange(4 << 20, dtype=mx.float32).reshape(1024, 4096)})
    for axis, ranges in ((0, [(512, 768)]), (1, [(0, 1024), (2048, 3072)])):
        lazy: Any = mx.load(path)
        before = bytes_read()
        part = _core._part(lazy["w"], axis, ranges)
        mx.eval(part)
        read = bytes_read() - before
        assert part.nbytes <= read < part.nbytes + (1 << 20), (axis, read, part.nbytes)


RUST = """
import sys

import ultramarine as mx
from ultramarine.nn.checkpoints import load_sharded, save_sharded

folder, action = sys.argv[1:]
index = f"{folder}/model.safetensors.index.json"
group = mx.distributed.init(strict=True)
split = lambda name, _: 1 if name.startswith("weight") else None
arrays = load_sharded(index, split)
assert sorted(arrays) == ["bias", "weight"], arrays
even = [12 // group.size() + (r < 12 % group.size()) for r in range(group.size())]
assert arrays["weight"].shape == (3, even[group.rank()]), arrays["weight"].shape
whole = mx.load(index)
first = sum(even[: group.rank()])
own = whole["weight"][:, first : first + even[group.rank()]]
assert mx.array_equal(arrays["weight"], own).item()
if action == "write":
    optimizer = next(
        text
        for text in __import__("json").load(open(index))["metadata"].values()
        if str(text).startswith("optimizer-")
    )
    more = {"step": "100", "optimizer": optimizer}
    save_sharded(f"{folder}/new.safetensors.index.json", arrays, split, metadata=more)
print("done", flush=True)
"""


def test_rust_reads_and_writes_the_same_files(tmp_path: Path) -> None:
    """The example of the Rust crate, whose checkpoints Python reads, and the reverse."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    names = [target / profile / "examples/checkpoints" for profile in ("checked", "release")]
    program = next((name for name in names if name.is_file()), None)
    if program is None:
        pytest.skip("the example is not built: cargo build -p ultramarine-nn --example checkpoints")
    ends = []
    for sizes in ((1, 1, 1), (2, 3, 1)):
        folder = tmp_path / str(sizes[0])
        for size in sizes:
            ended = mpirun("mpich", size, str(program), str(folder), interpreter=False)
            assert ended.status == 0, ended
        found = re.fullmatch(r"step 150 of 1 processes, loss ([\d.]+)\n", ended.out)
        assert found, ended
        ends.append(float(found[1]))
    assert abs(ends[0] - ends[1]) < 1e-3 and ends[0] < 0.5
    script = tmp_path / "python.py"
    script.write_text(RUST)
    passes("mpich", 3, str(script), str(folder), "read")
    passes("mpich", 2, str(script), str(folder), "write")
    (folder / "new.safetensors.index.json").replace(folder / "model.safetensors.index.json")
    ended = mpirun("mpich", 2, str(program), str(folder), interpreter=False)
    assert re.fullmatch(r"step 150 of 2 processes, loss [\d.]+\n", ended.out), ended


def test_the_page_shows_the_example() -> None:
    page = (DOCS / "distributed.md").read_text()
    shown = page.partition("```python file=examples/distributed_checkpoint.py\n")[2]
    program = (ROOT / "examples" / "distributed_checkpoint.py").read_text()
    assert shown.partition("```")[0] == program
