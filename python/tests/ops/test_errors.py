"""Wrong calls: the exception type is mlx's. Calls that mlx survives by accident stand in
beyond_mlx/test_wrong_calls.py."""

from typing import Any

import pytest
from support.harness import Tally, attempt, mlx, um

CALLS: dict[str, Any] = {
    "add of shapes": lambda mx: mx.ones((2, 3)) + mx.ones((4,)),
    "add of None": lambda mx: mx.ones((2,)) + None,
    "add of text": lambda mx: mx.ones((2,)) + "a",
    "add of list": lambda mx: mx.ones((2,)) + [1, 2],
    "add of one": lambda mx: mx.add(mx.ones(2)),
    "add of unknown keyword": lambda mx: mx.add(mx.ones(2), 1, foo=1),
    "exp of text": lambda mx: mx.exp("a"),
    "exp of float": lambda mx: mx.exp(1.0),
    "uniform of shape None": lambda mx: mx.random.uniform(shape=None),
    "uniform of low None": lambda mx: mx.random.uniform(None),
    "normal of shape None": lambda mx: mx.random.normal(None),
    "randint of shape None": lambda mx: mx.random.randint(0, 5, None),
    "gumbel of shape None": lambda mx: mx.random.gumbel(None),
    "laplace of shape None": lambda mx: mx.random.laplace(None),
    "multivariate_normal of shape None": lambda mx: mx.random.multivariate_normal(
        mx.zeros(2), mx.eye(2), None
    ),
    "bernoulli of None": lambda mx: mx.random.bernoulli(None),
    "issubdtype of None": lambda mx: mx.issubdtype(None, mx.int32),
    "issubdtype in None": lambda mx: mx.issubdtype(mx.int32, None),
    "arange of bools": lambda mx: mx.arange(True, False, True),
    "beta of several elements": lambda mx: mx.addmm(
        mx.ones(2), mx.eye(2), mx.eye(2), beta=mx.array([1.0, 2.0])
    ),
    "eps of several elements": lambda mx: mx.fast.rms_norm(
        mx.ones(2), mx.ones(2), mx.array([1.0, 2.0])
    ),
    "float of several elements": lambda mx: float(mx.array([1.0, 2.0])),
    "index array on an empty axis": lambda mx: mx.zeros((3, 0, 2))[:, mx.array([0])],
    "sum of axis 2": lambda mx: mx.sum(mx.ones((2, 3)), axis=2),
    "sum of axis -3": lambda mx: mx.sum(mx.ones((2, 3)), axis=-3),
    "sum of axes twice": lambda mx: mx.sum(mx.ones((2, 3)), axis=(0, 0)),
    "sum of axis text": lambda mx: mx.sum(mx.ones((2, 3)), axis="a"),
    "sum of list": lambda mx: mx.sum([1, 2]),
    "argmax of axis": lambda mx: mx.argmax(mx.ones((2, 3)), axis=5),
    "cumsum of axis": lambda mx: mx.cumsum(mx.ones((2, 3)), axis=5),
    "sort of axis": lambda mx: mx.sort(mx.ones((2, 3)), axis=5),
    "softmax of axis": lambda mx: mx.softmax(mx.ones((2, 3)), axis=5),
    "matmul of shapes": lambda mx: mx.ones((2, 3)) @ mx.ones((4, 5)),
    "matmul of batches": lambda mx: mx.ones((2, 2, 3)) @ mx.ones((3, 3, 5)),
    "matmul of scalar": lambda mx: mx.ones((2, 3)) @ mx.array(1.0),
    "matmul of number": lambda mx: mx.ones((2, 3)) @ 2,
    "matmul of text": lambda mx: mx.matmul(mx.ones((2, 3)), "a"),
    "addmm of shapes": lambda mx: mx.addmm(mx.ones((9, 9)), mx.ones((2, 3)), mx.ones((3, 4))),
    "tensordot of axes": lambda mx: mx.tensordot(mx.ones((2, 3)), mx.ones((2, 3)), 1),
    "inner of shapes": lambda mx: mx.inner(mx.ones((2,)), mx.ones((3,))),
    "reshape": lambda mx: mx.reshape(mx.ones((2, 3)), (4, 2)),
    "reshape by two -1": lambda mx: mx.reshape(mx.ones((2, 3)), (-1, -1)),
    "reshape by -2": lambda mx: mx.reshape(mx.ones((2, 3)), (-2, 3)),
    "reshape by float": lambda mx: mx.reshape(mx.ones((2, 3)), (2.0, 3)),
    "transpose of axes": lambda mx: mx.transpose(mx.ones((2, 3)), (0, 2)),
    "transpose of few axes": lambda mx: mx.transpose(mx.ones((2, 3)), (0,)),
    "swapaxes": lambda mx: mx.swapaxes(mx.ones((2, 3)), 0, 2),
    "moveaxis": lambda mx: mx.moveaxis(mx.ones((2, 3)), 0, 2),
    "squeeze": lambda mx: mx.squeeze(mx.ones((2, 3)), 0),
    "squeeze of axis": lambda mx: mx.squeeze(mx.ones((2, 3)), 7),
    "expand_dims twice": lambda mx: mx.expand_dims(mx.ones((2,)), (0, 0)),
    "broadcast_to": lambda mx: mx.broadcast_to(mx.ones((2, 3)), (3, 2)),
    "broadcast_to fewer": lambda mx: mx.broadcast_to(mx.ones((2, 3)), (3,)),
    "broadcast_to negative": lambda mx: mx.broadcast_to(mx.ones((1, 3)), (-2, 3)),
    "concatenate of nothing": lambda mx: mx.concatenate([]),
    "concatenate of shapes": lambda mx: mx.concatenate([mx.ones((2, 3)), mx.ones((2, 4))]),
    "concatenate of axis": lambda mx: mx.concatenate([mx.ones((2, 3))], axis=2),
    "concatenate of array": lambda mx: mx.concatenate(mx.ones((2, 3))),
    "stack of nothing": lambda mx: mx.stack([]),
    "stack of shapes": lambda mx: mx.stack([mx.ones(2), mx.ones(3)]),
    "stack of axis": lambda mx: mx.stack([mx.ones(2)], axis=4),
    "split unevenly": lambda mx: mx.split(mx.ones(5), 2),
    "split of axis": lambda mx: mx.split(mx.ones(5), 1, axis=1),
    "flatten": lambda mx: mx.flatten(mx.ones((2, 3)), 1, 0),
    "unflatten": lambda mx: mx.unflatten(mx.ones((2, 3)), 1, (2, 2)),
    "diagonal": lambda mx: mx.diagonal(mx.ones(3)),
    "take of axis": lambda mx: mx.take(mx.ones((2, 3)), mx.array([0]), axis=2),
    "take by floats": lambda mx: mx.take(mx.ones((2, 3)), mx.array([0.5])),
    "take of nothing": lambda mx: mx.take(mx.ones((0,)), mx.array([0])),
    "take_along_axis": lambda mx: mx.take_along_axis(mx.ones((2, 3)), mx.array([0]), 0),
    "item of many": lambda mx: mx.ones((2,)).item(),
    "bool of many": lambda mx: bool(mx.ones((2,))),
    "float of many": lambda mx: float(mx.ones((2,))),
    "len of scalar": lambda mx: len(mx.array(1)),
    "iterate scalar": lambda mx: list(mx.array(1)),
    "index by text": lambda mx: mx.ones((2,))["a"],
    "index by float": lambda mx: mx.ones((2,))[0.5],
    "too many indices": lambda mx: mx.ones((2,))[0, 0],
    "index of scalar": lambda mx: mx.array(1)[0],
    "assign shape": lambda mx: mx.ones((2, 3)).__setitem__(0, mx.ones(5)),
    "assign text": lambda mx: mx.ones((2, 3)).__setitem__(0, "a"),
    "astype of text": lambda mx: mx.ones(2).astype("float32"),
    "astype of None": lambda mx: mx.ones(2).astype(None),
    "view uneven": lambda mx: mx.ones((3,), mx.uint8).view(mx.int16),
    "zeros of text": lambda mx: mx.zeros("a"),
    "zeros of dtype text": lambda mx: mx.zeros((2,), "float32"),
    "zeros too large": lambda mx: mx.zeros((2**40, 2**40)),
    "clip of Nones": lambda mx: mx.clip(mx.ones(2), None, None),
    "where of shapes": lambda mx: mx.where(mx.ones(2), mx.ones(3), mx.ones(4)),
    "negative of bools": lambda mx: -mx.array([True]),
    "bitwise of floats": lambda mx: mx.ones(2) & mx.ones(2),
    "invert of floats": lambda mx: ~mx.ones(2),
    "in-place division of ints": lambda mx: mx.array([1, 2]).__itruediv__(2),
    "as_strided": lambda mx: mx.as_strided(mx.ones(4), (2, 2), (1,)),
    "finfo of int": lambda mx: mx.finfo(mx.int32),
    "iinfo of float": lambda mx: mx.iinfo(mx.float32),
    "grad of non-function": lambda mx: mx.grad(1),
    "grad of int": lambda mx: mx.grad(lambda x: x.sum())(mx.array([1, 2])),
    "grad of vector": lambda mx: mx.grad(lambda x: x * 2)(mx.ones(3)),
    "grad of argnums": lambda mx: mx.grad(lambda x: x.sum(), argnums=2)(mx.ones(3)),
    "grad of negative argnums": lambda mx: mx.grad(lambda x: x.sum(), argnums=-1)(mx.ones(3)),
    "grad of argnums twice": lambda mx: mx.grad(lambda x: x.sum(), argnums=(0, 0))(mx.ones(3)),
    "grad of argnames": lambda mx: mx.grad(lambda x: x.sum(), argnames="y")(mx.ones(3)),
    "grad of nothing returned": lambda mx: mx.grad(lambda x: None)(mx.ones(3)),
    "grad of text argument": lambda mx: mx.grad(lambda x: x)("a"),
    "vjp of shapes": lambda mx: mx.vjp(lambda x: x * 2, [mx.ones(3)], [mx.ones(2)]),
    "vjp of too many": lambda mx: mx.vjp(lambda x: x, [mx.ones(3)], [mx.ones(3), mx.ones(3)]),
    "jvp of shapes": lambda mx: mx.jvp(lambda x: x * 2, [mx.ones(3)], [mx.ones(2)]),
    "jvp of too few": lambda mx: mx.jvp(lambda x, y: x, [mx.ones(3), mx.ones(3)], [mx.ones(3)]),
    "vmap of sizes": lambda mx: mx.vmap(lambda x, y: x + y)(mx.ones(3), mx.ones(2)),
    "vmap of axes": lambda mx: mx.vmap(lambda x: x, in_axes=3)(mx.ones((3,))),
    "vmap of axes count": lambda mx: mx.vmap(lambda x: x, in_axes=(0, 0))(mx.ones((3,))),
    "vmap of scalars": lambda mx: mx.vmap(lambda x: x)(mx.array(1.0)),
    "vmap of no axis": lambda mx: mx.vmap(lambda x: x, in_axes=None)(mx.ones(3)),
    "vmap of output axis": lambda mx: mx.vmap(lambda x: x, out_axes=5)(mx.ones((3,))),
    "error inside grad": lambda mx: mx.grad(lambda x: {}["missing"])(mx.ones(3)),
    "error inside vmap": lambda mx: mx.vmap(lambda x: 1 / 0)(mx.ones(3)),
    "eval inside grad": lambda mx: mx.grad(lambda x: (mx.eval(x), x.sum())[1])(mx.ones(3)),
    "item inside vmap": lambda mx: mx.vmap(lambda x: x.item())(mx.ones(3)),
    "eval of text": lambda mx: mx.eval("a"),
    "set_default_device of text": lambda mx: mx.set_default_device("cpu"),
    "stream of text": lambda mx: mx.add(mx.ones(2), 1, stream="cpu"),
    "a gpu that is not there": lambda mx: mx.add(mx.ones(2), 1, stream=mx.Device(mx.gpu, 999)),
    "new_stream on such": lambda mx: mx.new_stream(mx.Device(mx.gpu, 999)),
    "negative memory limit": lambda mx: mx.set_memory_limit(-1),
    "load of nothing": lambda mx: mx.load("/no/such/file.npy"),
    "load of unknown kind": lambda mx: mx.load("/no/such/file.xyz"),
    "save to nowhere": lambda mx: mx.save("/no/such/dir/file.npy", mx.ones(2)),
    "save_safetensors of list": lambda mx: mx.save_safetensors("/tmp/x.safetensors", [1]),
    "hash": lambda mx: isinstance(hash(mx.ones(2)), int),
    "subclass": lambda mx: isinstance(type("A", (mx.array,), {})([1]), mx.array),
    "Dtype()": lambda mx: mx.Dtype(),
    "attribute": lambda mx: mx.ones(2).missing,
    "attribute set": lambda mx: setattr(mx.ones(2), "missing", 1),
}


@pytest.mark.parametrize("call", CALLS)
def test_same_exception_type(tally: Tally, call: str) -> None:
    tally.same(call, CALLS[call])


WITH_VALUES = {
    "add of shapes": ["2,3", "4"],
    "sum of axis 2": ["2"],
    "matmul of shapes": ["matmul", "2,3", "4,5"],
    "reshape": ["reshape", "6", "4,2"],
    "concatenate of shapes": ["concatenate", "3", "4"],
    "zeros of text": [],
    "take of axis": ["take", "2"],
    "split unevenly": ["split", "5"],
}


@pytest.mark.parametrize("call", WITH_VALUES)
def test_the_text_names_operation_and_values(call: str) -> None:
    kind, error = attempt(um, CALLS[call], ())
    assert kind == "raises"
    text = str(error).replace(" ", "").lower()
    assert [word for word in WITH_VALUES[call] if word not in text] == []


def test_nothing_is_lost_by_an_error() -> None:
    """After every wrong call the library works as before."""
    device = um.default_device()
    for call in CALLS.values():
        attempt(um, call, ())
        assert (um.arange(4) + 1).tolist() == [1, 2, 3, 4]
    assert um.default_device() == device
    assert mlx.default_device().type == mlx.cpu
