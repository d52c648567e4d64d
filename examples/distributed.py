"""Fit a line with the data of several processes, whose gradients are averaged.

Start it with ``mpirun -n 2 python examples/distributed.py`` or ``python -m ultramarine.launch -n 2
examples/distributed.py``; by itself it is one process with all data.
"""

import ultramarine as mx

group = mx.distributed.init()
rank, size = group.rank(), group.size()

# 64 points, of which this process has every size-th one.
points = mx.random.normal((64, 3), key=mx.random.key(0))
x, y = points[rank::size], (points @ mx.array([1.0, -2.0, 0.5]))[rank::size]


def loss(w: mx.array) -> mx.array:
    """Mean squared error on this process's points."""
    return mx.square(x @ w - y).mean()


@mx.compile
def step(w: mx.array) -> mx.array:
    """A step along the mean of all processes' gradients."""
    return w - 0.1 * mx.distributed.all_sum(mx.grad(loss)(w)) / size


w = mx.zeros(3)
for _ in range(200):
    w = step(w)
mx.eval(w)  # In all processes: what is not evaluated does not communicate.
if rank == 0:
    print("weights", [round(v, 3) for v in w.tolist()], "of", size, "processes")
