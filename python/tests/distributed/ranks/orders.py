"""Operations run in the order of their calls, whatever each rank evaluates first."""

import random
import threading

import numpy as np

import ultramarine as mx

group = mx.distributed.init(strict=True)
rank, size = group.rank(), group.size()
total = size * (size + 1) // 2
shuffle = random.Random(rank).shuffle

# Plain calls of several kinds and sizes; half of the results are never evaluated by themselves.
for trial in range(10):
    results, wanted = [], []
    x = mx.arange(4, dtype=mx.float32) * (rank + 1)
    for i in range(12):
        if i % 3 == 0:
            results.append(mx.distributed.all_sum(x + i))
            wanted.append(np.arange(4) * total + i * size)
        elif i % 3 == 1:
            results.append(mx.distributed.all_gather(x[: i % 4]))
            wanted.append(np.concatenate([np.arange(4)[: i % 4] * (r + 1) for r in range(size)]))
        else:
            results.append(mx.distributed.all_max(mx.full((2, 2), rank * i)))
            wanted.append(np.full((2, 2), (size - 1) * i))
    order = list(range(12))
    shuffle(order)
    for i in order[:6]:
        assert np.array_equal(np.array(results[i]), wanted[i]), (trial, i, results[i], wanted[i])
    mx.async_eval(*[results[i] for i in order[6:9]])
    for i in order[9:]:
        results[i] = None
    del x

# The same in a compiled function, which is called between other operations.
state = {"w": mx.array([1.0, 2.0])}


def step(x):
    mx.distributed.all_max(x)  # Its result is not used.
    loss, gradient = mx.value_and_grad(lambda w: (w * x).sum())(state["w"])
    mean = mx.distributed.all_sum(gradient) / size
    state["w"] = state["w"] - 0.5 * mean
    return mx.distributed.all_sum(loss), mx.distributed.all_gather(x)


for compiled in (step, mx.compile(step, inputs=state, outputs=state)):
    state["w"] = mx.array([1.0, 2.0])
    results = []
    for i in range(5):
        loss, all_x = compiled(mx.array([rank + 1.0, i]))
        results += [loss, all_x, mx.distributed.all_sum(mx.array(i))]
    order = list(range(15))
    shuffle(order)
    for i in order:
        mx.eval(results[i])
    assert results[14].item() == 4 * size
    assert results[13].tolist() == [v for r in range(size) for v in (r + 1, 4)]
    w = np.array([1.0, 2.0])
    for i in range(5):
        w = w - 0.5 * np.array([(size + 1) / 2, i])
    assert np.allclose(np.array(state["w"]), w), (state["w"], w)

# A loop as in training, of which results are evaluated behind the next steps.
w = mx.zeros((64, 64))
update = mx.compile(lambda w, g: w - mx.distributed.all_sum(g) / size)
for _ in range(20):
    w = update(w, mx.full((64, 64), float(rank + 1)))
    mx.async_eval(w)
assert mx.allclose(w, mx.full((64, 64), -20 * (size + 1) / 2)).item()

# Shapeless.
f = mx.compile(lambda x: mx.distributed.all_gather(x * 2), shapeless=True)
for n in (2, 3, 5):
    assert f(mx.full((n,), rank)).tolist() == [2 * r for r in range(size) for _ in range(n)]

# One thread each for two groups.
other = group.split(0)
found = {}


def work(name, group):
    x = mx.array([rank + 1])
    for _ in range(20):
        found[name] = mx.distributed.all_sum(x, group=group).item()


threads = [threading.Thread(target=work, args=item) for item in (("a", group), ("b", other))]
[t.start() for t in threads]
[t.join() for t in threads]
assert found == {"a": total, "b": total}

# One rank alone evaluates the last ones: the others do when they end.
last = mx.distributed.all_sum(mx.array(rank)), mx.distributed.all_sum(mx.array(1), group=other)
if rank == 0:
    assert last[1].item() == size
print("done", flush=True)
