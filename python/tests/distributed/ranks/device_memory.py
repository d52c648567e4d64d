"""GPUs' arrays under MPI: handed over as they are where MPI takes them (the first argument is "1"), else by way of the host. With a
second argument, messages are small."""

import sys

import numpy as np

import ultramarine as mx

group = mx.distributed.init(strict=True, backend="mpi")
rank, size = group.rank(), group.size()
direct = sys.argv[1] == "1"
# Larger than MPI takes before the receiver is there.
COUNT = 1 << (10 if sys.argv[2:] else 20)
gpu = mx.Device(mx.gpu, 0)
mx.set_default_device(gpu)

DTYPES = [
    *(mx.bool_, mx.uint8, mx.uint16, mx.uint32, mx.uint64, mx.int8, mx.int16, mx.int32, mx.int64),
    *(mx.float16, mx.bfloat16, mx.float32, mx.float64, mx.complex64),
]


def numbers(shape, rank, dtype):
    """An array that each rank has another of, computed on the GPU."""
    count = int(np.prod(shape))
    x = (mx.arange(count) % 7 + rank).reshape(shape).astype(mx.float32)
    return (x > 2) if dtype == mx.bool_ else (x + 0).astype(dtype)


def same(found, wanted):
    assert found.dtype == wanted.dtype and found.shape == wanted.shape, (found, wanted)
    assert mx.array_equal(found, wanted).item(), (found, wanted)


def layouts(x):
    """The same number of elements with several strides, of an array (4, 6)."""
    return [x, x.T, x[::-1, ::2], mx.broadcast_to(x[:1], (3, 6)), x[1:3, 2:], x[0, 0], x[:0]]


right, left = (rank + 1) % size, (rank - 1) % size
for dtype in DTYPES:
    wholes = [layouts(numbers((4, 6), r, dtype)) for r in range(size)]
    for i, x in enumerate(wholes[rank]):
        parts = [whole[i] if x.ndim else whole[i].reshape(1) for whole in wholes]
        gathered = mx.distributed.all_gather(x)
        same(gathered, mx.concatenate(parts))
        # Of large messages too, all may send before they receive.
        sent = mx.distributed.send(x, right)
        got = mx.distributed.recv_like(x, left)
        mx.eval(sent, got)
        same(got, wholes[left][i])
        # Work that follows on the GPU sees what was received.
        same(mx.where(got == got, got, got), wholes[left][i])
    # Sums are MPI's on the host, in order with the others.
    total = mx.distributed.all_sum(wholes[rank][0])
    same(mx.distributed.all_max(total), total)

# Messages that are larger than MPI takes unasked, in a ring in which all send first.
big = numbers((COUNT,), rank, mx.float32)
sent = mx.distributed.send(big, right)
got = mx.distributed.recv(big.shape, mx.float32, left, stream=gpu)
mx.eval(sent, got)
same(got, numbers((COUNT,), left, mx.float32))

# The memory of a message is used again when it was delivered, not before.
for i in range(30):
    x = mx.full((COUNT // 4,), float(i + rank))
    mx.eval(mx.distributed.send(x, right))
    del x
    y = mx.full((COUNT // 4,), -1.0) * 3
    mx.eval(y)
    got = mx.distributed.recv((COUNT // 4,), mx.float32, left, stream=gpu)
    same(got, mx.full((COUNT // 4,), float(i + left)))

# Transforms and compiled functions.
f = mx.compile(lambda x: mx.distributed.all_gather(x * 2).sum())
x = numbers((5,), rank, mx.float32)
wanted = sum(float((numbers((5,), r, mx.float32) * 2).sum()) for r in range(size))
assert f(x).item() == f(x).item() == wanted
same(mx.grad(lambda x: (mx.distributed.all_gather(x) ** 2).sum())(x), 2 * x)
both = [mx.distributed.all_gather(x), mx.distributed.all_gather(x + 1)]
same(mx.vmap(mx.distributed.all_gather)(mx.stack([x, x + 1])), mx.stack(both))

# Parts of the group, and a part of one process.
part = group.split(rank % 2)
members = [numbers((5,), r, mx.float32) for r in range(rank % 2, size, 2)]
same(mx.distributed.all_gather(x, group=part), mx.concatenate(members))
same(mx.distributed.all_gather(x, group=group.split(rank)), x)

# Operations of both ways in another order of evaluation in each rank.
results = [
    mx.distributed.all_gather(x + i) if i % 2 else mx.distributed.all_sum(x + i) for i in range(6)
]
for i in np.random.default_rng(rank).permutation(6):
    wholes = [numbers((5,), r, mx.float32) + int(i) for r in range(size)]
    same(results[i], mx.concatenate(wholes) if i % 2 else sum(wholes[1:], wholes[0]))

# Elements go to the host only where MPI does not take them.
x = numbers((3000,), rank, mx.float32)
mx.eval(x, mx.distributed.all_sum(mx.zeros(1)))
mx.backends.reset_stats()
sent = mx.distributed.send(x, right)
got = mx.distributed.recv_like(x, left)
mx.eval(mx.distributed.all_gather(x), sent, got)
stats = mx.backends.stats()
moved = (stats.bytes_to_host, stats.bytes_to_devices)
assert (moved == (0, 0)) if direct else (moved[0] >= 12000 and moved[1] >= 12000 * (size + 1)), (
    stats
)
print("done", flush=True)
