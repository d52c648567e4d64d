"""Arrays whose data is read when they are evaluated: ordinary arrays, of files that change and of many files."""

import json
import os
import pickle
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.harness import um

FORMATS = ["a.npy", "a.npz", "packed.npz", "a.safetensors", "a.gguf"]
SIZE = 3_000_001


def saved(path: Path, values: Any) -> Path:
    if path.suffix == ".npy":
        um.save(str(path), values)
    elif path.suffix == ".npz":
        (um.savez_compressed if "packed" in path.name else um.savez)(str(path), w=values)
    elif path.suffix == ".gguf":
        um.save_gguf(str(path), {"w": values})
    else:
        um.save_safetensors(str(path), {"w": values})
    return path


def loaded(path: Path, **keywords: Any) -> Any:
    read = um.load(str(path), **keywords)
    return read if isinstance(read, um.array) else read["w"]


@pytest.mark.parametrize("name", FORMATS)
def test_what_evaluates_an_array_reads_it(tmp_path: Path, name: str) -> None:
    path = saved(tmp_path / name, um.arange(6, dtype=um.float32).reshape(2, 3))
    want = [[0, 1, 2], [3, 4, 5]]
    assert np.array(loaded(path)).tolist() == want
    assert np.from_dlpack(loaded(path)).tolist() == want
    assert "[3, 4, 5]" in repr(loaded(path))
    assert pickle.loads(pickle.dumps(loaded(path))).tolist() == want
    assert loaded(path)[1, 2].item() == 5
    assert loaded(path, stream=um.new_stream(um.cpu)).T.tolist() == [[0, 3], [1, 4], [2, 5]]
    x, w = um.ones((2, 3)), loaded(path)
    assert um.grad(lambda x: (x * w).sum())(x).tolist() == want
    assert um.vmap(lambda x: x + loaded(path))(um.zeros((4, 2, 3))).shape == (4, 2, 3)
    double = um.compile(lambda x: x * w + w)
    assert double(x).tolist() == (2 * np.array(want)).tolist()
    um.async_eval(read := loaded(path))
    um.synchronize()
    assert read.tolist() == want


@pytest.mark.parametrize("name", FORMATS)
def test_a_file_that_changes(tmp_path: Path, name: str) -> None:
    path = saved(tmp_path / name, um.arange(SIZE))
    before, cut = loaded(path), loaded(path)
    saved(path, um.zeros((SIZE,)))  # another file in its place
    assert um.array_equal(before, um.arange(SIZE))
    written = loaded(path)
    with open(path, "r+b") as file:
        file.seek(-8, os.SEEK_END)
        file.write(b"12345678")
    with pytest.raises(RuntimeError, match="changed after its header was read") as error:
        um.eval(written)
    assert str(path) in str(error.value)
    assert um.array_equal(cut, um.arange(SIZE)), "of the file before"
    cut = saved(path, um.arange(SIZE)) and loaded(path)
    os.truncate(path, 5000)
    with pytest.raises(RuntimeError, match="was truncated to 5000 bytes after its header was read"):
        um.eval(cut + 1)


@pytest.mark.parametrize("name", FORMATS)
def test_a_file_is_saved_from_itself(tmp_path: Path, name: str) -> None:
    path = saved(tmp_path / name, um.arange(SIZE))
    for round in range(1, 4):
        saved(path, loaded(path) + 1)
        assert loaded(path)[-1].item() == SIZE - 1 + round


def run(code: str) -> str:
    """The output of a process."""
    command = [sys.executable, "-c", textwrap.dedent(code)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="limits and forks of Unix")
def test_more_files_than_descriptors(tmp_path: Path) -> None:
    for i in range(300):
        um.save(str(tmp_path / f"{i}.npy"), um.full((1000,), i))
    run(f"""
        import os, resource
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
        import ultramarine as mx
        arrays = [mx.load(f"{tmp_path}/{{i}}.npy") for i in range(300)]
        # One is replaced by our own save, one by another program; both have no descriptor now.
        mx.save("{tmp_path}/3.npy", mx.array(0))
        os.replace("{tmp_path}/200.npy", "{tmp_path}/4.npy")
        os.remove("{tmp_path}/5.npy")
        gone = (4, 5, 200)
        for i, a in enumerate(arrays):
            try:
                assert a[-1].item() == i
            except RuntimeError as error:
                assert i in gone, (i, error)
                assert f"{{i}}.npy" in str(error), error
            else:
                assert i not in gone, i
        assert len(os.listdir("/proc/self/fd")) < 64 if os.path.exists("/proc/self/fd") else True
    """)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_reads_too(tmp_path: Path) -> None:
    path = saved(tmp_path / "a.safetensors", um.arange(SIZE))
    run(f"""
        import os
        import ultramarine as mx
        read = mx.load("{path}")["w"]
        mx.eval(mx.load("{path}"))  # there are threads now
        for _ in range(5):
            mx.async_eval(mx.load("{path}"))
            child = os.fork()
            fresh = mx.load("{path}")["w"]
            assert (read[-1].item(), fresh[-1].item()) == ({SIZE - 1}, {SIZE - 1})
            if child == 0:
                os._exit(7)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    """)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("name", ["a.npy", "a.npz", "a.safetensors", "a.gguf"])
def test_data_is_held_once(tmp_path: Path, name: str) -> None:
    size = 16 << 20
    path = saved(tmp_path / name, um.zeros((size,), dtype=um.float32))
    taken = run(f"""
        import re
        import ultramarine as mx
        def taken():
            return int(re.search(r"RssAnon:\\s+(\\d+)", open("/proc/self/status").read())[1]) << 10
        mx.eval(mx.zeros(1))
        before = taken()
        mx.reset_peak_memory()
        read = mx.load("{path}")
        mx.eval(read)
        print(mx.get_peak_memory(), taken() - before)
    """)
    peak, resident = map(int, taken.split())
    assert peak <= 4 * size + (1 << 20)
    assert resident <= 4 * size + (24 << 20), "threads and small memory aside"


def test_shards_with_their_index(tmp_path: Path) -> None:
    um.save_safetensors(str(tmp_path / "one.safetensors"), {"a": um.ones(3), "b": um.zeros(2)})
    um.save_safetensors(str(tmp_path / "two.safetensors"), {"c": um.arange(4)})
    shards = {"a": "one.safetensors", "b": "one.safetensors", "c": "two.safetensors"}
    path = tmp_path / "model.safetensors.index.json"
    path.write_text(json.dumps({"metadata": {"total_size": 36}, "weight_map": shards}))
    read, metadata = um.load(str(path), return_metadata=True)
    assert {name: array.tolist() for name, array in read.items()} == {
        "a": [1, 1, 1],
        "b": [0, 0],
        "c": [0, 1, 2, 3],
    }
    assert metadata == {"total_size": "36"}
    for bad in ("../one.safetensors", str(tmp_path / "one.safetensors"), "a/../../x"):
        path.write_text(json.dumps({"weight_map": {"a": bad}}))
        with pytest.raises(RuntimeError, match="is outside the index's folder"):
            um.load(path)
    path.write_text(json.dumps({"weight_map": {"z": "one.safetensors"}}))
    with pytest.raises(RuntimeError, match="has no tensor 'z'"):
        um.load(path)
    with open(path, "rb") as file, pytest.raises(ValueError, match="Load it by its path"):
        um.load(file, format="index.json")


@pytest.mark.parametrize(("name", "count"), [("files", 3), ("gguf", 3)])
def test_the_page_is_true(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, count: int
) -> None:
    page = (Path(__file__).parents[3] / f"docs/{name}.md").read_text()
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(blocks) == count
    exec("\n".join(blocks), {})
