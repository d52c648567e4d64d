"""Pickles with damage: an error, or arrays that can be computed."""

import io
import pickle
from collections import Counter
from random import Random
from typing import Any

import numpy as np
import pytest
from support.mutations import COUNT, mutations

import ultramarine as mx

TREE: dict[str, Any] = {
    "weight": mx.arange(24, dtype=mx.float32).reshape(2, 3, 4),
    "half": mx.ones((3, 1), dtype=mx.bfloat16),
    "mask": [mx.array([True, False]), (mx.array(3, dtype=mx.uint64), mx.zeros((0, 4)))],
    "complex": mx.array([1 + 2j]),
    "dtype": mx.int8,
    "device": mx.cpu,
}


class Careful(pickle._Unpickler):  # type: ignore[name-defined, misc]
    """Finds what these pickles name and nothing else; in Python, as that in C makes room for any number of an object."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("__builtin__", "bytes"):
            # Empty ones alone: of a number they would be as many.
            return lambda: b""
        if not module.startswith("ultramarine") and (module, name) != ("_codecs", "encode"):
            raise pickle.UnpicklingError(f"{module}.{name}")
        return super().find_class(module, name)


def arrays(found: Any) -> list[mx.array]:
    if isinstance(found, mx.array):
        return [found]
    parts = found.values() if isinstance(found, dict) else found
    return [a for p in parts for a in arrays(p)] if isinstance(found, dict | list | tuple) else []


@pytest.mark.parametrize("protocol", [0, 2, 4, 5])
def test_mutated_pickles(protocol: int) -> None:
    data = pickle.dumps(TREE, protocol)
    assert len(arrays(Careful(io.BytesIO(data)).load())) == 6
    outcomes: Counter[str] = Counter()
    for number, damaged in enumerate(mutations(data, seed=protocol, count=COUNT // 4)):
        mx.reset_peak_memory()
        before = mx.get_active_memory()
        try:
            found = arrays(Careful(io.BytesIO(damaged)).load())
            mx.eval(found)
            for a in found:
                # Its bytes are all there.
                assert len(bytes(a)) == a.nbytes
            outcomes["read"] += 1
        except AssertionError:
            raise
        except Exception as error:
            outcomes["refused"] += 1
            assert "panicked" not in str(error), number
        assert mx.get_peak_memory() - before < 64 << 20, number
    assert outcomes["refused"] > 0.2 * sum(outcomes.values()), outcomes
    assert (mx.arange(3) + 1).tolist() == [1, 2, 3]


def states(random: Random) -> tuple[Any, Any, Any]:
    """Bytes, shape and dtype, some of which lie."""
    content = random.choice(
        [b"", bytes(24), bytes(23), bytearray(24), "text", None, 3, np.zeros(3)]
    )
    shape = random.choice(
        [
            [2, 3],
            [6],
            [],
            [0],
            [-1],
            [2**62, 4],
            [2**63],
            [2**32, 2**32],
            [1] * 70,
            [2.5],
            "ab",
            None,
            (2, 3),
            6,
        ]
    )
    dtype = random.choice(
        [
            "float32",
            "int8",
            "bool",
            "bool_",
            "complex64",
            "float128",
            "",
            "__class__",
            None,
            mx.float32,
            3,
            "f" * 10**4,
        ]
    )
    return content, shape, dtype


def test_states_that_lie() -> None:
    load, (kind, *good) = mx.array([1.0]).__reduce__()
    assert load(kind, *good).tolist() == [1]
    outcomes: Counter[str] = Counter()
    for number in range(COUNT):
        random = Random(f"state {number}")
        content, shape, dtype = states(random)
        of = kind if random.random() < 0.8 else random.choice([int, None, list, mx.Dtype])
        target = mx.array([1.0, 2.0])
        for restore in (
            lambda: load(of, content, shape, dtype),
            lambda: target.__setstate__((content, shape, dtype)),
        ):
            try:
                made = restore()
                made = target if made is None else made
                assert len(bytes(made)) == made.nbytes
                outcomes["read"] += 1
            except (TypeError, ValueError, OverflowError, AttributeError, BufferError, MemoryError):
                outcomes["refused"] += 1
                assert len(bytes(target)) == target.nbytes
    assert outcomes["read"] > 0 and outcomes["refused"] > COUNT, outcomes
