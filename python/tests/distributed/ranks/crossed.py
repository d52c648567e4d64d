"""Operations of two groups that each rank evaluates in another order, between computations on one stream of each. The argument
is "gpu" for arrays of a GPU, which are copied to the host and back on its stream."""

import sys
import threading

import numpy as np

import ultramarine as mx

group = mx.distributed.init(strict=True, backend="mpi")
rank, size = group.rank(), group.size()
if sys.argv[1] == "gpu":
    mx.set_default_device(mx.Device(mx.gpu, 0))
groups = [group.split(0), group.split(0)]
# Neighbours begin with another group.
order = [0, 1] if rank % 2 == 0 else [1, 0]


def start(factor):
    return mx.arange(6, dtype=mx.float32).reshape(2, 3) * factor + rank


def net(x, group):
    """Operations one behind the other, with computations before, between and behind them."""
    y = mx.distributed.all_sum(x.T * 2, group=group) + 1
    z = mx.distributed.all_gather(y[::-1] - x.T[::-1], group=group)
    return mx.distributed.all_max(z * 3, group=group) - 1


def of_numpy(factor):
    every = [np.arange(6, dtype=np.float32).reshape(2, 3).T * factor + r for r in range(size)]
    total = sum(every) * 2 + 1
    return np.concatenate([(total - x)[::-1] for x in every]) * 3 - 1


def same(found, factor, what):
    assert np.array_equal(np.array(found), of_numpy(factor)), (what, factor, found)


def together(step):
    """One evaluation for both."""
    made = [net(start(step + k), groups[k]) for k in (0, 1)]
    mx.eval([made[k] for k in order])
    return made


def one_by_one(step):
    """One for each."""
    made = [net(start(step + k), groups[k]) for k in (0, 1)]
    for k in order:
        mx.async_eval(made[k])
    return made


def in_part(step):
    """What is behind an operation of an earlier evaluation, before the other group's first."""
    made = [net(start(step + k), groups[k]) for k in (0, 1)]
    for k in order:
        half = mx.distributed.all_sum(start(step), group=groups[k])
        mx.async_eval(half)
        mx.async_eval(half * 2 + made[k].sum())
    return made


def called(step):
    """Calls, too, in another order."""
    made = [None, None]
    for k in order:
        made[k] = net(start(step + k), groups[k])
        mx.async_eval(made[k])
    return made


compiled = [mx.compile(lambda x, group=group: net(x, group)) for group in groups]


def of_compiled(step):
    made = [None, None]
    for k in order:
        made[k] = compiled[k](start(step + k))
    mx.async_eval(made[order[0]])
    mx.async_eval(made[order[1]])
    return made


def in_threads(step):
    """A thread for each group. They share the default stream."""
    made = [None, None]

    def work(k):
        for _ in range(3):
            made[k] = net(start(step + k), groups[k])
            mx.eval(made[k])

    threads = [threading.Thread(target=work, args=(k,)) for k in order]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return made


for way in (together, one_by_one, in_part, called, of_compiled, in_threads):
    for step in range(12):
        for k, found in enumerate(way(step)):
            same(found, step + k, f"{way.__name__} {step}")

# Long chains: no job of one group's stands before the other's.
made = [start(k) for k in (0, 1)]
for _ in range(30):
    made = [mx.distributed.all_sum(x, group=g) / size + 0.5 for x, g in zip(made, groups)]
for k in order:
    mx.async_eval(made[k])
for k in (0, 1):
    mean = np.arange(6, dtype=np.float32).reshape(2, 3) * k + (size - 1) / 2
    assert np.allclose(np.array(made[k]), mean + 15, atol=1e-4), made[k]

# Gradients of one group beside sums of another.
w = mx.ones((3, 3))
for step in range(6):
    x = start(step) / 10

    def loss(w):
        return (mx.distributed.all_sum(mx.tanh(x @ w), group=groups[0]) ** 2).mean()

    gradient = mx.grad(loss)(w)
    mean = mx.distributed.all_sum(gradient, group=groups[1]) / size
    other = mx.distributed.all_sum(w.sum(), group=groups[0])
    after = w - 0.01 * mean
    mx.async_eval(*([after, other] if rank % 2 == 0 else [other, after]))
    assert abs(other.item() - size * w.sum().item()) < 1e-2
    w = after
every = np.array(mx.distributed.all_gather(w[None], group=group))
assert np.array_equal(every, np.broadcast_to(every[:1], every.shape))
print("done", flush=True)
