"""Arguments that make no sense: an exception of Python's usual kinds says so, nothing dies."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ultramarine as mx

# What callers catch; a panic of Rust is a BaseException of another kind.
USUAL = (
    ValueError, TypeError, IndexError, OverflowError, MemoryError, RuntimeError, OSError, BufferError,
)  # fmt: skip

NONSENSE: list[Any] = [
    "text", b"bytes", None, True, -1, 0, 7, 2**31, 2**63, 2**70, 10**5000, -(2**63), 1.5,
    float("nan"), float("inf"), 1j, (), [], (0, 0), (-1, 2), (2**62, 4), [[1], [2, 3]], {}, {1: 2},
    object(), len, mx.float32, mx.cpu, slice(None, None, 0), ..., np.array(["a"]), np.zeros((0, 3)),
]  # fmt: skip

# Names whose arguments may be anything, or that change what other tests run on.
LEFT_OUT = {
    "array", "asarray", "compile", "disable_compile", "enable_compile", "set_default_device",
    "set_default_stream", "set_memory_limit", "set_cache_limit", "set_wired_limit", "save",
    "savez", "savez_compressed", "save_safetensors", "eval", "async_eval", "new_stream",
}  # fmt: skip


def functions() -> list[tuple[str, Callable[..., Any]]]:
    found = [
        (f"{prefix}{name}", getattr(place, name))
        for prefix, place in (("", mx), ("random.", mx.random), ("array.", mx.array))
        for name in dir(place)
        if not name.startswith("_") and name not in LEFT_OUT
    ]
    return [(name, f) for name, f in found if callable(f) and not isinstance(f, type)]


def tried(call: Callable[[], Any]) -> None:
    """Lets the call work or fail as calls fail; what it makes is not computed if large."""
    try:
        made = call()
        parts = made if isinstance(made, (list, tuple)) else [made]
        parts = [p for p in parts if isinstance(p, mx.array) and p.size < 10**5]
        mx.eval(parts)
    except USUAL as error:
        assert "panicked" not in str(error)


@pytest.fixture(autouse=True)
def folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some of the nonsense is the name of a file."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture(autouse=True)
def print_options_as_before() -> Iterator[None]:
    """`set_printoptions` takes some of the nonsense."""
    yield
    mx.set_printoptions()


@pytest.mark.parametrize("name, f", functions(), ids=[n for n, _ in functions()])
def test_nonsense(name: str, f: Callable[..., Any]) -> None:
    x = mx.arange(6.0).reshape(2, 3)
    tried(f)
    for odd in NONSENSE:
        tried(lambda: f(odd))
        tried(lambda: f(x, odd))
        tried(lambda: f(odd, x))
        tried(lambda: f(x, x, odd))
        tried(lambda: f(x, 0, odd))
        tried(lambda: f(x, (2, 3), odd))
        tried(lambda: f(x, axis=odd))
        tried(lambda: f(x, stream=odd))
    assert mx.array_equal(x, mx.array([[0.0, 1, 2], [3, 4, 5]])).item()


def test_nonsense_as_an_index() -> None:
    for odd in NONSENSE:
        x = mx.arange(6.0).reshape(2, 3)
        tried(lambda: x[odd])
        tried(lambda: x[0, odd])
        tried(lambda: x[odd:odd])
        tried(lambda: x.__setitem__(odd, 1))
        tried(lambda: x.__setitem__(0, odd))
        tried(lambda: x.at[odd].add(1))
        tried(lambda: x + odd)
        tried(lambda: odd / x)
        tried(lambda: mx.array(odd))
        tried(lambda: mx.array([1, odd]))
        tried(lambda: mx.array([1], odd))


# call, exception type, words of the text: the operation and the offending values
REPORTED: list[tuple[Callable[[], Any], type[Exception], list[str]]] = [
    (lambda: mx.reshape(mx.ones((2, 3)), (4,)), ValueError, ["reshape", "6", "4"]),
    (lambda: mx.sum(mx.ones(3), axis=4), IndexError, ["4", "1"]),
    (lambda: mx.ones((2, 3)) + mx.ones((4,)), ValueError, ["(2, 3)", "(4,)"]),
    (lambda: mx.ones((2, 3)) @ mx.ones((2, 3)), ValueError, ["matmul", "(2, 3)"]),
    (lambda: mx.zeros(-5), ValueError, ["full", "[-5]"]),
    (lambda: mx.reshape(mx.ones(1), (2**70,)), OverflowError, [str(2**70)]),
    (lambda: mx.random.split(mx.random.key(0), -2), ValueError, ["split", "-2"]),
    (lambda: mx.random.bits((2,), 3), ValueError, ["bits", "3"]),
    (lambda: mx.random.bits((2,), -1), ValueError, ["bits", "-1"]),
    (lambda: mx.random.categorical(mx.ones(3), num_samples=-3), ValueError, ["categorical", "-3"]),
    (lambda: mx.as_strided(mx.ones(3), (2,), (1,), -4), ValueError, ["as_strided", "-4"]),
    (lambda: mx.round(mx.ones(3), 2**40), ValueError, ["round", str(2**40)]),
    (lambda: mx.Device(mx.cpu, -5), ValueError, ["Device", "-5"]),
    (lambda: mx.load("/nonexistent/x.npy"), RuntimeError, ["load", "/nonexistent/x.npy"]),
]


@pytest.mark.parametrize("call, kind, words", REPORTED)
def test_the_text_has_operation_and_values(
    call: Callable[[], Any], kind: type[Exception], words: list[str]
) -> None:
    with pytest.raises(kind) as caught:
        call()
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_files_that_are_none(tmp_path: Path) -> None:
    contents = [b"", b"PK\x03\x04", b"\x93NUMPY", b"\x93NUMPY\x01\x00\xff\xff{", b"\xff" * 64]
    for i, content in enumerate(contents):
        for extension in (".npy", ".npz", ".safetensors", ".txt", ""):
            path = tmp_path / f"{i}{extension}"
            path.write_bytes(content)
            with pytest.raises(USUAL):
                mx.eval(mx.load(str(path)))
    with pytest.raises(USUAL):
        mx.load(str(tmp_path))
    with pytest.raises(USUAL):
        mx.save(str(tmp_path / "no" / "x.npy"), mx.ones(2))


def test_bytes_are_uint8() -> None:
    for lender in (b"abc", bytearray(b"abc"), memoryview(b"abc")):
        made = mx.array(lender)
        assert (made.dtype, made.tolist()) == (mx.uint8, [97, 98, 99])
    assert mx.array(b"").shape == (0,)


def test_random_bits() -> None:
    key = mx.random.key(3)
    for width, dtype in ((1, mx.uint8), (2, mx.uint16), (4, mx.uint32)):
        drawn = mx.random.bits((3, 50), width, key)
        assert (drawn.shape, drawn.dtype) == ((3, 50), dtype)
        assert mx.array_equal(drawn, mx.random.bits((3, 50), width, key=key)).item()
        assert len(set(drawn.flatten().tolist())) > 60
    assert mx.random.bits().shape == ()
    assert mx.array_equal(mx.random.split(key, 4), mx.random.bits((4, 2), key=key)).item()
