"""Groups of one process. Calls are compared with mlx in parity/, groups of several processes are in distributed/."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mlx.core as mlx
import numpy as np
import pytest
from support.both import same

import ultramarine as mx

from .children import output

COLLECTIVES = ["all_gather", "all_max", "all_min", "all_sum", "sum_scatter"]


def test_backends_that_are_not_available() -> None:
    """mlx's wheel has the ring."""
    assert mlx.distributed.is_available() and mlx.distributed.is_available("ring")
    for backend in ("ring", "jaccl", "other"):
        assert not mx.distributed.is_available(backend)
        assert not mx.distributed.is_available(backend=backend)


def test_one_group() -> None:
    group = mx.distributed.init()
    assert group is mx.distributed.init() is mx.distributed.init(backend="mpi")
    assert (group.rank(), group.size()) == (0, 1)
    assert not hasattr(group, "__dict__")


@pytest.mark.parametrize("backend", ["ring", "jaccl"])
def test_strict(backend: str) -> None:
    with pytest.raises(RuntimeError, match=rf"\[init\].*'{backend}' is not available. Call init"):
        mx.distributed.init(strict=True, backend=backend)


@pytest.mark.parametrize("name", COLLECTIVES)
def test_results_are_new_arrays(name: str) -> None:
    """Writing into a result leaves the operand alone."""

    def case(m: Any) -> Any:
        x = m.arange(6).reshape(2, 3)
        y = getattr(m.distributed, name)(x)
        y[0] = 7
        return x is y, x, y

    assert same(case)[0] is False


@pytest.mark.parametrize("name", COLLECTIVES)
@pytest.mark.parametrize("dtype", ["float64", "bfloat16", "bool_", "uint8", "complex64"])
def test_dtype_and_values_stay(name: str, dtype: str) -> None:
    x = mx.array([0, 1, 1]).astype(getattr(mx, dtype), stream=mx.cpu)
    y = getattr(mx.distributed, name)(x, stream=mx.cpu)
    assert y.dtype == x.dtype and mx.array_equal(x, y, stream=mx.cpu).item()


@pytest.mark.parametrize("name", COLLECTIVES)
def test_transforms(name: str) -> None:
    def case(m: Any) -> Any:
        f = getattr(m.distributed, name)
        group = m.distributed.init()
        x = m.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        loss = lambda x: (f(x, group=group) * x).sum()
        return [
            m.value_and_grad(loss)(x),
            m.grad(m.compile(loss))(x),
            m.grad(lambda x: m.grad(loss)(x).sum())(x),
            m.vmap(f, in_axes=1, out_axes=1)(x),
            m.vmap(m.grad(loss))(x),
        ]

    assert same(case)[0][0] == 91


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda d: d.all_sum(mx.ones(2), group=1),
            TypeError,
            r"all_sum\(\): argument 'group': exp",
        ),
        (lambda d: d.all_max(mx.ones(2), stream="x"), TypeError, "argument 'stream': expected a S"),
        (lambda d: d.all_min([1, 2]), ValueError, "Invalid type list"),
        (lambda d: d.send(mx.ones(2), 3), ValueError, r"\[send\] No process 3 to send to: the gro"),
        (
            lambda d: d.send(mx.ones(2), 0.5),
            TypeError,
            "argument 'dst': expected an int, got float",
        ),
        (lambda d: d.recv((2,), mx.int8, 1), ValueError, r"\[recv\] No process 1 to receive from"),
        (lambda d: d.recv((2,), None, 1), TypeError, "argument 'dtype': expected a Dtype, got Non"),
        (lambda d: d.recv_like(mx.ones(2), 1), ValueError, r"\[recv_like\] No process 1"),
        (lambda d: d.Group(), TypeError, r"Group has no constructor. Call distributed.init\(\)"),
        (lambda d: d.init().split(0), RuntimeError, r"\[split\] A group of 1 process cannot be"),
        (lambda d: d.init(backend="x"), ValueError, "unknown backend 'x'. Choose one of 'any', "),
        (lambda d: d.init(all_gather_factory=print), ValueError, "backend is 'any'. Leave one"),
    ],
)
def test_messages(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call(mx.distributed)


LAUNCHED = """
import ultramarine as mx
try:
    print("size", mx.distributed.init().size())
except RuntimeError as error:
    print(error)
"""
HOSTS = {"one": [["127.0.0.1:5000"]], "two": [["127.0.0.1:5000"], ["127.0.0.1:5001"]]}


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({}, ""),
        ({"MLX_RANK": "0"}, ""),
        ({"MLX_RANK": "0", "MLX_WORLD_SIZE": "1"}, ""),
        ({"MLX_RANK": "0", "MLX_HOSTFILE": "one"}, ""),
        ({"MLX_HOSTFILE": "two"}, ""),
        ({"MLX_RANK": "1"}, "(MLX_RANK=1)"),
        ({"MLX_RANK": "0", "MLX_WORLD_SIZE": "4"}, "(MLX_WORLD_SIZE=4)"),
        ({"MLX_RANK": "1", "MLX_HOSTFILE": "two"}, "(MLX_RANK=1, MLX_HOSTFILE=two)"),
        ({"MLX_RANK": "0", "MLX_HOSTFILE": "two"}, "(MLX_HOSTFILE=two)"),
        ({"MLX_RANK": "0", "MLX_HOSTFILE": "missing"}, "(MLX_HOSTFILE=missing)"),
        ({"MLX_RANK": "0", "MLX_HOSTFILE": "broken"}, "(MLX_HOSTFILE=broken)"),
    ],
)
def test_launched_as_one_of_several(
    tmp_path: Path, environment: dict[str, str], message: str
) -> None:
    """Several processes that each took themselves for the only one would train apart, without a word."""
    for name, hosts in HOSTS.items():
        (tmp_path / name).write_text(json.dumps(hosts))
    (tmp_path / "broken").write_text("{")
    out = output("-c", LAUNCHED, cwd=tmp_path, **environment)
    assert (message in out and "Start one process" in out) if message else out == "size 1\n"


def test_array_like() -> None:
    """A type of annotations, which wraps what stands for an array."""

    class Stands:
        def __mlx_array__(self) -> mx.array:
            return mx.array([1.0, 2.0])

    def f(x: mx.ArrayLike | None) -> None: ...

    assert f.__annotations__["x"] == "mx.ArrayLike | None"
    assert (mx.ArrayLike | None).__args__ == (mx.ArrayLike, type(None))
    wrapped: Any = mx.ArrayLike(Stands())  # type: ignore[operator]
    assert mx.add(wrapped, 1).tolist() == [2, 3]
    assert mx.all(mx.array([1.0, 2.0]) == wrapped).item()
    for wrong in (1, [1], np.ones(2), wrapped):
        with pytest.raises(ValueError, match="Invalid type"):
            mx.add(mx.ArrayLike(wrong), 1)  # type: ignore[operator]
