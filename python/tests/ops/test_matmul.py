"""Matrix products over shapes, batches, strides and dtypes."""

import pytest
from support.harness import ALL, INEXACT, LAYOUTS, Tally, given, sample, um

SHAPES = [
    ((3,), (3,)),
    ((3,), (3, 4)),
    ((2, 3), (3,)),
    ((2, 3), (3, 4)),
    ((1, 1), (1, 1)),
    ((0, 3), (3, 4)),
    ((2, 0), (0, 4)),
    ((2, 3), (3, 0)),
    ((65, 130), (130, 67)),
    ((1, 300), (300, 33)),
    ((33, 300), (300, 1)),
    ((5, 2, 3), (5, 3, 4)),
    ((5, 2, 3), (3, 4)),
    ((2, 3), (5, 3, 4)),
    ((4, 1, 2, 3), (5, 3, 4)),
    ((0, 2, 3), (3, 4)),
    ((7, 2, 3), (3,)),
    ((2, 3), (4, 3)),
    ((2, 2, 3), (3, 3, 4)),
    ((), (3,)),
    ((3,), ()),
]


@pytest.mark.parametrize("dtype", ALL)
def test_matmul(tally: Tally, dtype: str) -> None:
    cases = [(a, b, p, q) for a, b in SHAPES for p in LAYOUTS for q in LAYOUTS]
    for a, b, p, q in sample([c for c in cases if c[0] and c[1]], 300, dtype):
        x, y = given(dtype, a, p, key="x"), given(dtype, b, q, key="y")
        name = f"{a} {p.name} @ {b} {q.name}"
        tally.same(name, lambda mx, x, y: x @ y, x, y, ulps=64, scale="largest")
    for a, b in SHAPES:
        x, y = given(dtype, a, key="x"), given(dtype, b, key="y")
        tally.same(
            f"matmul {a} {b}", lambda mx, x, y: mx.matmul(x, y), x, y, ulps=64, scale="largest"
        )


@pytest.mark.parametrize("dtype", INEXACT)
def test_relatives(tally: Tally, dtype: str) -> None:
    def same(name, case, *inputs):
        tally.same(name, case, *inputs, ulps=64, scale="largest")

    a, b, c = (given(dtype, s, key=s) for s in ((6, 7), (7, 5), (6, 5)))
    v, w = given(dtype, (7,), key="v"), given(dtype, (7,), key="w")
    same("addmm", lambda mx, c, a, b: mx.addmm(c, a, b), c, a, b)
    same("addmm scaled", lambda mx, c, a, b: mx.addmm(c, a, b, 0.5, -2.0), c, a, b)
    same("addmm of a row", lambda mx, c, a, b: mx.addmm(c[0], a, b), c, a, b)
    same("inner", lambda mx, v, w: mx.inner(v, w), v, w)
    same("inner of matrices", lambda mx, a: mx.inner(a, a), a)
    same("outer", lambda mx, v, w: mx.outer(v, w), v, w)
    same("tensordot 1", lambda mx, a, b: mx.tensordot(a, b, 1), a, b)
    same("tensordot axes", lambda mx, a, b: mx.tensordot(a, b, [[1], [0]]), a, b)
    same("tensordot 2", lambda mx, a: mx.tensordot(a, a, 2), a)
    same("gram", lambda mx, a: a.T @ a, a)
    same("chain", lambda mx, a, b: (a @ b) @ (a @ b).T, a, b)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_gathered(tally: Tally, dtype: str) -> None:
    if not hasattr(um, "gather_mm"):
        pytest.skip("not there yet")
    a, b = given(dtype, (3, 4, 5), key="a"), given(dtype, (6, 5, 2), key="b")

    def case(mx, a, b):
        left, right = mx.array([0, 2, 1, 1], mx.uint32), mx.array([5, 0, 3, 3], mx.uint32)
        return mx.gather_mm(a, b, left, right), mx.gather_mm(a, b[:1], left, None)

    tally.same("gather_mm", case, a, b, ulps=64, scale="largest")
