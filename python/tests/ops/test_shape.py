"""Operations that move or join elements and compute nothing."""

import pytest
from support.harness import ALL, LAYOUTS, Tally, given, sample

SHAPES = [(), (1,), (6,), (0,), (4, 5), (1, 3, 1), (2, 3, 4), (3, 0, 2), (2, 3, 4, 5)]

# Each works on an array of any rank; where mlx raises for a rank, so must we.
OPS = {
    "reshape -1": lambda mx, x: mx.reshape(x, (-1,)),
    "reshape (2, -1)": lambda mx, x: mx.reshape(x, (2, -1)),
    "reshape (3, 4, -1)": lambda mx, x: mx.reshape(x, (3, 4, -1)),
    "reshape (7, 7)": lambda mx, x: mx.reshape(x, (7, 7)),
    "x.reshape by numbers": lambda mx, x: x.reshape(x.size, 1),
    "flatten": lambda mx, x: mx.flatten(x),
    "flatten from 1": lambda mx, x: mx.flatten(x, 1),
    "flatten 0 to 1": lambda mx, x: mx.flatten(x, 0, 1),
    "flatten -2": lambda mx, x: x.flatten(-2),
    "unflatten": lambda mx, x: mx.unflatten(x, -1, (2, -1)),
    "transpose": lambda mx, x: mx.transpose(x),
    "T": lambda mx, x: x.T,
    "transpose by axes": lambda mx, x: mx.transpose(x, [1, 0, *range(2, x.ndim)]),
    "x.transpose": lambda mx, x: x.transpose(*reversed(range(x.ndim))),
    "transpose twice the same": lambda mx, x: mx.transpose(x, [0] * x.ndim),
    "swapaxes": lambda mx, x: mx.swapaxes(x, 0, -1),
    "moveaxis": lambda mx, x: mx.moveaxis(x, 0, -1),
    "moveaxis back": lambda mx, x: mx.moveaxis(x, -1, 0),
    "permute_dims": lambda mx, x: mx.permute_dims(x),
    "squeeze": lambda mx, x: mx.squeeze(x),
    "squeeze 0": lambda mx, x: mx.squeeze(x, 0),
    "squeeze (0, -1)": lambda mx, x: mx.squeeze(x, (0, -1)),
    "expand_dims 0": lambda mx, x: mx.expand_dims(x, 0),
    "expand_dims -1": lambda mx, x: mx.expand_dims(x, -1),
    "expand_dims (0, 2)": lambda mx, x: mx.expand_dims(x, (0, 2)),
    "expand_dims 9": lambda mx, x: mx.expand_dims(x, 9),
    "broadcast_to": lambda mx, x: mx.broadcast_to(x, (2, *x.shape)),
    "broadcast_to wrong": lambda mx, x: mx.broadcast_to(x, (*x.shape, 9)),
    "broadcast_arrays": lambda mx, x: mx.broadcast_arrays(x, mx.zeros((2,) + (1,) * x.ndim)),
    "atleast_1d": lambda mx, x: mx.atleast_1d(x),
    "atleast_2d": lambda mx, x: mx.atleast_2d(x, x),
    "atleast_3d": lambda mx, x: mx.atleast_3d(x),
    "concatenate": lambda mx, x: mx.concatenate([x, x[1:], x]),
    "concatenate last": lambda mx, x: mx.concatenate([x, x], axis=-1),
    "concatenate flat": lambda mx, x: mx.concatenate([x, x], axis=None),
    "concatenate other dtype": lambda mx, x: mx.concatenate([x, x.astype(mx.float16)]),
    "concatenate wrong": lambda mx, x: mx.concatenate([x, x[None]]),
    "stack": lambda mx, x: mx.stack([x, x]),
    "stack last": lambda mx, x: mx.stack([x, x, x], axis=-1),
    "split in 2": lambda mx, x: mx.split(x, 2),
    "split at": lambda mx, x: mx.split(x, [1, 2], axis=-1),
    "split past the end": lambda mx, x: mx.split(x, [1, 9]),
    "unstack": lambda mx, x: mx.unstack(x),
    "tile": lambda mx, x: mx.tile(x, (2, 3)),
    "repeat": lambda mx, x: mx.repeat(x, 3),
    "repeat on axis": lambda mx, x: mx.repeat(x, 2, axis=-1),
    "roll": lambda mx, x: mx.roll(x, 2),
    "roll on axis": lambda mx, x: mx.roll(x, -1, 0),
    "roll by several": lambda mx, x: mx.roll(x, (1, 2)),
    "roll on axis by several": lambda mx, x: mx.roll(x, (1, 2, -7), -1),
    "roll on axis by none": lambda mx, x: mx.roll(x, (), 0),
    "roll on axis twice": lambda mx, x: mx.roll(x, (1, 2), (0, 0)),
    "roll on several axes": lambda mx, x: mx.roll(x, (1, -2), (0, -1)),
    "flip": lambda mx, x: mx.flip(x),
    "flip last": lambda mx, x: mx.flip(x, -1),
    "diagonal": lambda mx, x: mx.diagonal(x),
    "diagonal off": lambda mx, x: mx.diagonal(x, 1, -1, -2),
    "diag": lambda mx, x: mx.diag(x),
    "diag below": lambda mx, x: mx.diag(x, -1),
    "tril": lambda mx, x: mx.tril(x, -1),
    "triu": lambda mx, x: mx.triu(x, 1),
    "pad": lambda mx, x: mx.pad(x, 1),
    "pad by edge": lambda mx, x: mx.pad(x, (1, 2), mode="edge"),
    "pad with 3": lambda mx, x: mx.pad(x, [(0, 1)] * x.ndim, constant_values=3),
    "contiguous": lambda mx, x: mx.contiguous(x),
    "view as bytes": lambda mx, x: x.view(mx.uint8),
    "view as int16": lambda mx, x: mx.view(x, mx.int16),
    "view as int32": lambda mx, x: mx.view(x, mx.int32),
    "meshgrid": lambda mx, x: mx.meshgrid(x.flatten()[:3], x.flatten()[:2]),
    "meshgrid ij": lambda mx, x: mx.meshgrid(x.flatten()[:3], x.flatten()[:2], indexing="ij"),
    "kron": lambda mx, x: mx.kron(x, x[:1]) if x.size else None,
    "properties": lambda mx, x: (x.shape, x.size, x.ndim, x.itemsize, x.nbytes, x.dtype),
    "tolist": lambda mx, x: x.tolist(),
    "iterate": lambda mx, x: list(x),
    "len": lambda mx, x: len(x),
}

# These belong to the long tail of mlx.core: compared as soon as they are there.
LATER = {"kron", "pad by edge", "roll", "roll on axis", "meshgrid", "meshgrid ij"}


@pytest.mark.parametrize("dtype", ["float32", "int8", "bool_", "complex64", "bfloat16", "uint64"])
@pytest.mark.parametrize("op", OPS)
def test_shape_ops(tally: Tally, op: str, dtype: str) -> None:
    import ultramarine as um

    if op in LATER and not hasattr(um, op.split()[0]):
        pytest.skip("not there yet")
    cases = [(s, lay) for s in SHAPES for lay in (LAYOUTS if s else LAYOUTS[:1])]
    for shape, layout in sample(cases, 25, op, dtype):
        x = given(dtype, shape, layout)
        tally.same(f"{shape} {layout.name}", OPS[op], x)


@pytest.mark.parametrize("dtype", ALL)
def test_as_strided(tally: Tally, dtype: str) -> None:
    x = given(dtype, (30,), domain="few")
    for shape, strides, offset in [
        ((4, 5), (5, 1), 0),
        ((4, 3), (2, 3), 5),
        ((3, 4), (0, 1), 2),
        ((3,), (-1,), 9),
        ((2, 0), (1, 1), 0),
        ((), (), 3),
    ]:

        def case(mx, x, shape=shape, strides=strides, offset=offset):
            return mx.as_strided(x, shape, strides, offset)

        tally.same(f"{shape} {strides} {offset}", case, x)
    tally.same("defaults", lambda mx, x: mx.as_strided(x), x)


def test_broadcast_shapes(tally: Tally) -> None:
    for shapes in ([(3,), (2, 1)], [()], [(0,), (1,)], [(2,), (3,)], [(4, 1, 3), (2, 1), (1,)]):
        tally.same(f"{shapes}", lambda mx, s=shapes: mx.broadcast_shapes(*s))


def test_views_of_views(tally: Tally) -> None:
    """A dozen views stacked in random order."""
    from support.harness import rng

    steps = [
        lambda mx, x: x[::-1],
        lambda mx, x: x[1:] if x.shape[0] > 1 else x,
        lambda mx, x: x[..., ::2],
        lambda mx, x: x.T,
        lambda mx, x: mx.swapaxes(x, 0, -1),
        lambda mx, x: x.reshape(-1, x.shape[0]),
        lambda mx, x: x[None],
        lambda mx, x: x[:, -1] if x.ndim > 2 else x,
        lambda mx, x: mx.broadcast_to(x, (2, *x.shape)) if x.size < 500 and x.ndim < 5 else x,
        lambda mx, x: mx.flatten(x, 0, 1) if x.ndim > 2 else x,
    ]
    for trial in range(200):
        picks = rng("views", trial).integers(0, len(steps), 8)

        def case(mx, x, picks=picks):
            for i in picks:
                x = steps[i](mx, x)
            return x, x + x, x.sum(), mx.contiguous(x).flatten()

        tally.same(f"{list(picks)}", case, given("float32", (6, 4, 5), domain="few"))
