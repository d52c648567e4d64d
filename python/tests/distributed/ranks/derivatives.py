"""Transforms of collectives."""

import numpy as np

import ultramarine as mx

group = mx.distributed.init(strict=True)
rank, size = group.rank(), group.size()
d = mx.distributed
rng = np.random.default_rng(0)
everywhere = rng.normal(size=(size, 2 * size, 3)).astype(np.float32)
x = mx.array(everywhere[rank])
total = everywhere.sum(0)


def close(found, wanted):
    found, wanted = np.array(found), np.asarray(wanted)
    assert found.shape == wanted.shape and np.allclose(found, wanted, atol=1e-5), (found, wanted)


# The gradient of one loss, which all ranks compute: the cotangent of a sum is the same in all of them.
close(mx.grad(lambda x: (d.all_sum(x) ** 2).sum())(x), 2 * total)
gathered = everywhere.reshape(-1, 3)
weight = mx.array(rng.normal(size=gathered.shape).astype(np.float32))
close(
    mx.grad(lambda x: (d.all_gather(x) * weight).sum())(x),
    np.array(weight).reshape(everywhere.shape)[rank],
)
share = (everywhere == everywhere.max(0))[rank]
close(mx.grad(lambda x: (d.all_max(x) ** 2).sum())(x), 2 * everywhere.max(0) * share)
close(
    mx.grad(lambda x: d.all_min(mx.ones_like(x) * x).sum())(x),
    (everywhere == everywhere.min(0))[rank],
)
ties = mx.grad(lambda x: d.all_max(x).sum())(mx.array([1.0, float(rank)]))
close(ties, [1 / size, float(rank == size - 1)])
own = 2.0 + rank
cotangents = np.repeat(2.0 + np.arange(size), 2)[:, None] * np.ones((1, 3))
close(mx.grad(lambda x: (d.sum_scatter(x) * own).sum())(x), cotangents)
close(mx.grad(lambda x: (d.all_gather(x) * mx.arange(size)).sum())(mx.array(1.0)), rank)

# Forward mode.
t = mx.array(everywhere[rank] * (rank + 1))
tangents = sum(everywhere[r] * (r + 1) for r in range(size))
close(mx.jvp(d.all_sum, [x], [t])[1][0], tangents)
close(
    mx.jvp(d.all_gather, [x], [t])[1][0],
    np.concatenate([everywhere[r] * (r + 1) for r in range(size)]),
)
at = everywhere.argmax(0)
moved = everywhere * (np.arange(size) + 1)[:, None, None]
close(mx.jvp(d.all_max, [x], [t])[1][0], np.take_along_axis(moved, at[None], 0)[0])
close(mx.jvp(d.sum_scatter, [x], [t])[1][0], tangents[2 * rank : 2 * rank + 2])

# Batches: as if the function were called for each example.
for axis in (0, 1):
    rows = [np.moveaxis(everywhere[r], axis, 0) for r in range(size)]
    close(mx.vmap(d.all_sum, in_axes=axis)(x), sum(rows))
    wanted = np.stack(
        [np.concatenate([rows[r][i] for r in range(size)]) for i in range(len(rows[0]))]
    )
    close(mx.vmap(d.all_gather, in_axes=axis)(x), wanted)
    close(mx.vmap(d.all_gather, in_axes=axis, out_axes=1)(x), wanted.T)
close(
    mx.vmap(d.all_gather)(mx.array([1.0 + rank, 2.0])),
    [[1.0 + r for r in range(size)], [2.0] * size],
)
close(mx.vmap(d.sum_scatter, in_axes=1)(x), total.T[:, 2 * rank : 2 * rank + 2])
both = mx.vmap(lambda x, y: d.all_sum(x) + d.all_max(y), in_axes=(0, None))(x, x[0])
close(both, total + everywhere[:, 0].max(0))
following, before = (rank + 1) % size, (rank - 1) % size
sent = mx.vmap(lambda x: d.send(x, following))(x)
got = d.recv_like(x, before)
mx.eval(sent, got)
close(got, everywhere[before])
close(mx.vmap(mx.grad(lambda x: (d.all_sum(x) ** 2).sum()))(x), 2 * total)

# The part that each example needs of the others is not mapped.
close(mx.vmap(lambda x: x + d.all_sum(mx.array(1.0)))(x), everywhere[rank] + size)

# Nested, compiled and computed again.
f = lambda x: (d.all_sum(mx.sin(x)) * x).sum()
wanted = mx.grad(f)(x)
close(mx.compile(mx.grad(f))(x), wanted)
close(mx.grad(mx.compile(f))(x), wanted)
close(mx.grad(mx.checkpoint(f))(x), wanted)
close(mx.compile(mx.grad(mx.checkpoint(f)))(x), wanted)
close(mx.compile(mx.vmap(mx.grad(f)))(x), wanted)
close(mx.vmap(mx.compile(mx.grad(f)))(x), wanted)
second = mx.grad(lambda x: (mx.grad(f)(x) ** 2).sum())
close(mx.compile(second)(x), second(x))


@mx.custom_function
def doubled(x):
    return d.all_sum(x) * 2


close(mx.grad(lambda x: doubled(x).sum())(x), np.full(everywhere[0].shape, 2.0))
close(mx.vmap(doubled)(x), 2 * total)
close(mx.compile(doubled)(x), 2 * total)


@doubled.vjp
def doubled_vjp(primal, cotangent, output):
    return d.all_sum(cotangent)


close(mx.grad(lambda x: doubled(x).sum())(x), np.full(everywhere[0].shape, float(size)))


# A trace that fails leaves the group as it was.
def fails(x):
    d.all_sum(x)
    raise KeyError("on purpose")


for transform in (mx.compile, mx.vmap):
    try:
        transform(fails)(x)
    except KeyError:
        pass
close(d.all_sum(x), total)

try:
    mx.export_function("unused.mlxfn", lambda x: d.all_sum(x), x)
except ValueError as error:
    assert "a file cannot hold a group" in str(error), error
else:
    raise AssertionError("exported")
print("done", flush=True)
