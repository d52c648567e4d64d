"""Index arrays that point outside: mlx reads and writes what is there. Ours are held to the array, and an error under
ULTRAMARINE_VALIDATE=1."""

from __future__ import annotations

import numpy as np
import pytest
from support.plugins import minimal, opencl, run

import ultramarine as mx

INDICES = [0, 3, 4, 100, -1, -4, -5, -100]
DTYPES = ["int8", "int16", "int32", "int64"]


def nearest(i: int, n: int = 4) -> int:
    return min(max(i + n if i < 0 else i, 0), n - 1)


@pytest.mark.parametrize("dtype", DTYPES)
def test_reads_are_held_to_the_axis(dtype: str) -> None:
    x = mx.array([[10, 11], [20, 21], [30, 31], [40, 41]])
    data = np.array(x)
    at = mx.array(INDICES, getattr(mx, dtype))
    want = data[[nearest(i) for i in INDICES]]
    assert mx.take(x, at, axis=0).tolist() == x[at].tolist() == want.tolist()
    assert mx.take(x.T, at, axis=1).tolist() == x.T[:, at].tolist() == want.T.tolist()
    assert mx.take_along_axis(x[:, :1], at[:, None], axis=0).tolist() == want[:, :1].tolist()
    last = np.iinfo(dtype)
    extremes = mx.array([last.min, last.max], getattr(mx, dtype))
    assert x[extremes, 0].tolist() == [10, 40]
    beyond = mx.array([2**64 - 1, 4], mx.uint64)
    assert x[beyond, 1].tolist() == [41, 41]
    rows = x.astype(mx.float32).reshape(4, 1, 2)
    for chosen in (at, extremes, beyond):
        products = mx.gather_mm(mx.ones((1, 1)), rows, None, chosen)
        assert products.tolist() == rows[chosen].tolist()


@pytest.mark.parametrize("dtype", DTYPES)
def test_writes_beyond_are_dropped(dtype: str) -> None:
    at = mx.array([100, -5, 1, -1], getattr(mx, dtype))
    x = mx.zeros((4,))
    assert x.at[at].add(mx.array([1.0, 2, 3, 4])).tolist() == [0, 3, 0, 4]
    assert mx.put_along_axis(x, at, mx.array([1.0, 2, 3, 4]), axis=0).tolist() == [0, 3, 0, 4]
    x[at] = mx.array([1.0, 2, 3, 4])
    assert x.tolist() == [0, 3, 0, 4]


SCRIPT = """
import os
if os.environ.get("PLUGIN"):
    backends.load(os.environ["PLUGIN"])
    mx.set_default_device(mx.gpu)

def refused(f, *parts):
    try:
        mx.eval(f())
    except IndexError as e:
        assert all(p in str(e) for p in parts), e
    else:
        raise AssertionError("no error")

x, v = mx.arange(12).reshape(4, 3), mx.ones((2, 3), mx.int32)
m, words = mx.ones((4, 2, 2)), mx.quantize(mx.ones((4, 2, 64)))
for dtype in (mx.int8, mx.uint8, mx.int32, mx.uint32, mx.int64, mx.uint64):
    good, bad = mx.array([0, 3], dtype), mx.array([0, 4], dtype)
    mx.eval(x[good], mx.take(x, good, 0), x.at[good].add(v), x.at[good, good - good].add(1))
    refused(lambda: x[bad], "index 4", "axis 0", "size 4")
    refused(lambda: mx.take(x, bad, axis=0), "index 4")
    refused(lambda: mx.take_along_axis(x, bad[:, None], axis=0), "index 4")
    refused(lambda: mx.put_along_axis(x, bad[:, None], v, axis=0), "index 4")
    refused(lambda: x.at[bad].add(v), "index 4")
    refused(lambda: x[:, bad], "index 4", "size 3")
    refused(lambda: x[good, bad], "index 4", "axis 1", "size 3")
    refused(lambda: mx.gather_mm(m[:1], m, None, bad), "index 4", "size 4")
    refused(lambda: mx.gather_mm(m, m, bad, good), "index 4", "gather_mm")
    refused(lambda: mx.gather_qmm(mx.ones((1, 64)), *words, None, bad), "index 4", "size 4")
    mx.eval(mx.gather_mm(m, m, good, good), mx.gather_qmm(mx.ones((1, 64)), *words, None, good))
    refused(lambda: mx.vmap(lambda i: x[i])(bad), "index 4")
    refused(lambda: mx.compile(lambda i: x[i] + 1)(bad), "index 4")
    def assign():
        y = x * 1
        y[bad] = v
        return y
    refused(assign, "index 4")
mx.eval(x[mx.array([-4, -1])])
refused(lambda: x[mx.array([-5])], "index -5")
big = mx.array([1 << 63], mx.uint64)
refused(lambda: x[big], "index 9223372036854775808")
# Strided, broadcast, empty and 0-d indices; a bad one that a view leaves out.
six = mx.array([0, 9, 1, 9, 2, 9])
mx.eval(x[six[::2]], x[mx.broadcast_to(mx.array(3), (2, 2))], x[six[:0]], x[mx.array(2)])
refused(lambda: x[six[1::2]], "index 9")
refused(lambda: x[mx.array(4)], "index 4")
# What is made of reads and writes inside stays within.
y = mx.random.normal((5, 7))
def inside(y):
    return [mx.sort(y, 0), mx.cummax(y, 1), mx.cummax(y, 1, inclusive=False), mx.pad(y, 3, mode="edge"),
            mx.roll(y, 2, 0), mx.cumprod(y, 0), mx.median(y, 0), mx.topk(y, 2), mx.max(y, 0)]
mx.eval(inside(y))
mx.eval(mx.grad(lambda y: sum(a[mx.isfinite(mx.stop_gradient(a)).astype(mx.int32)].sum()
                              for a in inside(y)[:1]))(y))
for f in (lambda y: mx.cummax(y, 1, inclusive=False), lambda y: mx.cummin(y, 0, reverse=True, inclusive=False),
          lambda y: mx.sort(y, 1), lambda y: mx.max(y, 1)):
    mx.eval(mx.vjp(f, [y], [mx.ones_like(f(y))]), mx.jvp(f, [y], [mx.ones_like(y)]))
z = mx.zeros((4,))
z[mx.array([True, False, True, False])] = mx.array([1.0, 2.0])
assert z.tolist() == [1, 0, 2, 0]
mx.random.seed(0)
mx.eval(mx.random.permutation(5), mx.random.categorical(mx.zeros((1, 4)), num_samples=8))
mx.eval(mx.searchsorted(mx.arange(5), mx.array([0, 9, -1])))
mx.eval(mx.slice(x, mx.array([99]), (0,), (2, 3)))
"""


@pytest.mark.parametrize("plugin", ["", "minimal", "opencl"])
def test_an_error_where_validated(plugin: str) -> None:
    path = {"": None, "minimal": minimal(), "opencl": opencl()}[plugin]
    if plugin and path is None:
        pytest.skip("no such device")
    run(SCRIPT, ULTRAMARINE_VALIDATE="1", PLUGIN=str(path or ""))
