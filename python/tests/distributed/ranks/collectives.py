"""Collectives and messages of all dtypes and layouts, against NumPy."""

import ml_dtypes
import numpy as np

import ultramarine as mx

group = mx.distributed.init(strict=True)
rank, size = group.rank(), group.size()
assert group is mx.distributed.init() is mx.distributed.init(backend="mpi")

INTEGERS = ["uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"]
FLOATS = ["float16", "bfloat16", "float32", "float64", "complex64"]
DTYPES = ["bool_", *INTEGERS, *FLOATS]
SHAPES = [(), (1,), (5,), (0,), (0, 3), (size * 2, 3), (2, 0), (3, 1, 4)]


def of(dtype, shape, rank):
    """The array of a rank, as NumPy's, with the extremes of its dtype."""
    rng = np.random.default_rng([rank, *shape])
    kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else np.dtype(dtype.rstrip("_"))
    if dtype == "bool_":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype in INTEGERS:
        info = np.iinfo(kind)
        return rng.integers(info.min, info.max, shape, dtype=kind, endpoint=True)
    x = rng.integers(-40, 40, shape) / 8
    if dtype == "complex64":
        x = x + 1j * rng.integers(-40, 40, shape) / 8
    return np.asarray(x).astype(kind)


def ours(x, dtype):
    """The same as an array of ours."""
    if dtype == "bfloat16":
        return mx.array(x.astype(np.float32)).astype(mx.bfloat16)
    return mx.array(x, dtype=getattr(mx, dtype))


def numpy(x):
    return np.array(x.astype(mx.float32)) if x.dtype == mx.bfloat16 else np.array(x)


def same(found, wanted, what):
    wanted = np.asarray(wanted)
    found = numpy(found)
    if wanted.dtype == ml_dtypes.bfloat16:
        wanted = wanted.astype(np.float32)
    assert found.shape == wanted.shape and found.dtype == wanted.dtype, (what, found, wanted)
    assert np.array_equal(found, wanted, equal_nan=found.dtype.kind in "fc"), (what, found, wanted)


def reduced(name, all):
    """A reduction of the arrays of all ranks, halves by float32."""
    first = all[0].dtype
    half = first in (np.float16, ml_dtypes.bfloat16)
    stack = np.stack([x.astype(np.float32) if half else x for x in all])
    if name == "all_sum":
        total = stack.any(0) if first.kind == "b" else stack.sum(0, dtype=stack.dtype)
    else:
        total = (stack.max if name == "all_max" else stack.min)(0)
    return np.asarray(total).astype(first)


def check(dtype, shape):
    all = [of(dtype, shape, r) for r in range(size)]
    x = ours(all[rank], dtype)
    what = (dtype, shape)
    results = [
        (getattr(mx.distributed, n)(x), reduced(n, all)) for n in ("all_sum", "all_max", "all_min")
    ]
    gathered = mx.distributed.all_gather(x, group=group)
    results.append((gathered, np.concatenate([np.atleast_1d(a) for a in all])))
    if shape and shape[0] % size == 0:
        part = shape[0] // size
        total = reduced("all_sum", all)
        results.append((mx.distributed.sum_scatter(x), total[rank * part : (rank + 1) * part]))
    mx.eval([found for found, _ in results])
    for i, (found, wanted) in enumerate(results):
        same(found, wanted, (*what, i))


for dtype in DTYPES:
    for shape in SHAPES:
        check(dtype, shape)

# NaN wins; infinities and signed zeros of floats.
for dtype in ("float16", "bfloat16", "float32", "float64"):
    special = np.array([np.nan if rank == 1 else 1.0, -np.inf if rank == 0 else 2.0, np.inf])
    x = mx.array(special).astype(getattr(mx, dtype))
    for name, wanted in (("all_max", [np.nan, 2, np.inf]), ("all_min", [np.nan, -np.inf, np.inf])):
        found = np.array(getattr(mx.distributed, name)(x).astype(mx.float64, stream=mx.cpu))
        assert np.array_equal(found, wanted, equal_nan=True), (name, dtype, found)

# Halves are summed in float32 and rounded once.
small = np.array([1.0 if rank == 0 else 2.0**-11 * 1.5] * 3)
wanted = np.float32(1 + (size - 1) * 1.5 * 2.0**-11).astype(np.float16)
assert (np.array(mx.distributed.all_sum(mx.array(small).astype(mx.float16))) == wanted).all()

# Layouts: strided, reversed, transposed, broadcast, and a large array.
base = np.arange(60, dtype=np.float32).reshape(5, 12)
layouts = [
    lambda x, m: x[::2, 1::3],
    lambda x, m: x[::-1, ::-2],
    lambda x, m: x.T,
    lambda x, m: m.broadcast_to(x[:1], (7, 12)),
    lambda x, m: x[2:2],
    lambda x, m: x[3, 4],
]
for layout in layouts:
    x = layout(mx.array(base) + rank, mx)
    wanted = sum(layout(base + r, np) for r in range(size))
    same(mx.distributed.all_sum(x), wanted, "layout")
    parts = [np.atleast_1d(layout(base + r, np)) for r in range(size)]
    same(mx.distributed.all_gather(x), np.concatenate(parts), "layout")
large = mx.ones((1 << 20,)) * (rank + 1)
assert mx.all(mx.distributed.all_sum(large) == size * (size + 1) / 2).item()

# Messages around the ring, sent before they are received, larger than what libraries keep by themselves.
following, before = (rank + 1) % size, (rank - 1) % size
for dtype in DTYPES:
    x = ours(of(dtype, (3, 2), rank), dtype)
    sent = mx.distributed.send(x[:, ::-1], following)
    got = mx.distributed.recv_like(x, before)
    mx.eval(sent, got)
    same(got, of(dtype, (3, 2), before)[:, ::-1], ("ring", dtype))
    same(sent, of(dtype, (3, 2), rank)[:, ::-1], ("sent", dtype))
sent = mx.distributed.send(mx.full((1 << 20,), rank), following)
got = mx.distributed.recv((1 << 20,), mx.int32, before)
mx.eval(sent, got)
assert mx.all(got == before).item()
mx.eval(
    mx.distributed.send(mx.zeros((0, 4)), following),
    mx.distributed.recv((0, 4), mx.float32, before),
)
mx.eval(mx.distributed.send(mx.array(rank), following))
assert mx.distributed.recv((), mx.int32, before).item() == before

for call, text in [
    (lambda d: d.send(mx.ones(1), size), f"Invalid destination={size} for a group of size {size}"),
    (lambda d: d.send(mx.ones(1), -1), "Invalid destination=-1"),
    (lambda d: d.send(mx.ones(1), rank), "is the calling process itself"),
    (lambda d: d.recv((1,), mx.int8, 1 << 20), "Invalid source="),
    (lambda d: d.recv((-1,), mx.int8, before), r"Invalid shape (-1,)"),
    (lambda d: d.sum_scatter(mx.ones(size + 1)), "Invalid shape"),
    (lambda d: d.sum_scatter(mx.array(1.0)), "Invalid shape ()"),
    (lambda d: group.split(-1), "`color` is -1"),
]:
    try:
        call(mx.distributed)
    except ValueError as error:
        assert text in str(error), error
    else:
        raise AssertionError(text)

# Groups of even and of odd ranks, in the reverse order, at the same time as the group of all.
part = group.split(rank % 2, key=size - rank)
members = [r for r in range(size) if r % 2 == rank % 2][::-1]
assert (part.rank(), part.size()) == (members.index(rank), len(members))
a = mx.distributed.all_gather(mx.array([rank]), group=part)
b = mx.distributed.all_sum(mx.array([rank]))
mx.eval(*((b, a) if rank % 2 else (a, b)))
assert a.tolist() == members and b.item() == size * (size - 1) // 2
again = part.split(0)
assert mx.distributed.all_gather(mx.array([rank]), group=again).tolist() == members
print("done", flush=True)
