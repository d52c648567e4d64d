"""custom_function, checkpoint and depends: against mlx, and what mlx gets wrong."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest
from support.harness import Tally, given

import ultramarine as um


def pair() -> tuple:
    return given("float32", (4,), key="cx"), given("float32", (4,), key="cy")


def product(mx: Any, rules: str) -> Any:
    """x * y + sin(x), whose rules say that they were used."""
    f = mx.custom_function(lambda x, y: x * y + mx.sin(x))
    if "v" in rules:
        f.vjp(lambda p, c, o: (c * p[1] * 3, c * o))
    if "j" in rules:
        f.jvp(lambda p, t: (t[0] if t[0] is not None else p[0] * 0) * 5)
    if "m" in rules:
        f.vmap(lambda i, a: (i[0] * 7, a[0] if a[0] is not None else None))
    return f


TRANSFORMS: dict[str, Any] = {
    "call": lambda mx, f, x, y: f(x, y),
    "grad": lambda mx, f, x, y: mx.grad(lambda *a: f(*a).sum(), argnums=(0, 1))(x, y),
    "grad of one": lambda mx, f, x, y: mx.grad(lambda x: (f(x, y) * y).sum())(x),
    "jvp": lambda mx, f, x, y: mx.jvp(f, [x, y], [y, x]),
    "jvp of one": lambda mx, f, x, y: mx.jvp(lambda x: f(x, y), [x], [y]),
    "vmap": lambda mx, f, x, y: mx.vmap(f)(x, y),
    "vmap of one": lambda mx, f, x, y: mx.vmap(f, in_axes=(0, None))(mx.stack([x, y]), y),
    "vmap elsewhere": lambda mx, f, x, y: mx.vmap(f, in_axes=1, out_axes=1)(
        mx.stack([x, y]), mx.stack([y, x])
    ),
    "vmap of grad": lambda mx, f, x, y: mx.vmap(mx.grad(lambda a, b: f(a, b).sum()))(x, y),
    "grad of vmap": lambda mx, f, x, y: mx.grad(lambda x: mx.vmap(f)(x, y).sum())(x),
    "grad of grad": lambda mx, f, x, y: mx.grad(
        lambda x: (mx.grad(lambda x: f(x, y).sum())(x) * x).sum()
    )(x),
    "grad of jvp": lambda mx, f, x, y: mx.grad(
        lambda x: mx.jvp(lambda x: f(x, y), [x], [y])[1][0].sum()
    )(x),
    "jvp of grad": lambda mx, f, x, y: mx.jvp(
        lambda x: mx.grad(lambda x: f(x, y).sum())(x), [x], [y]
    ),
}


@pytest.mark.parametrize("rules", ["", "v", "j", "m", "vj", "vm", "vjm"])
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_rules(tally: Tally, transform: str, rules: str) -> None:
    x, y = pair()
    case = lambda mx, x, y: TRANSFORMS[transform](mx, product(mx, rules), x, y)
    tally.same(f"{transform} with {rules}", case, x, y, ulps=64, scale="largest")


def test_trees(tally: Tally) -> None:
    """Structures, numbers and keyword arguments come to the rules as they were given."""
    x, y = pair()

    def case(mx, x, y):
        seen = []

        @mx.custom_function
        def f(tree, n=2, *, q=None):
            return {"o": tree["a"] * n + tree["b"][0], "p": [tree["a"]]}

        @f.vjp
        def f_vjp(primals, cotangents, outputs, **kwargs):
            seen.append((primals, cotangents, outputs, kwargs))
            tree = primals[0] if isinstance(primals, tuple) else primals
            grads = {"a": cotangents["o"] * tree["a"], "b": (cotangents["p"][0] * 6,)}
            return (grads, None) if isinstance(primals, tuple) else grads

        def run(call):
            g = lambda a, b: (lambda o: (o["o"] * o["p"][0]).sum())(call({"a": a, "b": (b,)}))
            return mx.grad(g, argnums=(0, 1))(x, y)

        return (
            run(f), run(lambda t: f(t, 3)), run(lambda t: f(t, n=3)), run(lambda t: f(t, q=y)),
            seen,
        )  # fmt: skip

    tally.same("vjp", case, x, y, ulps=8)

    def forward(mx, x, y):
        seen = []

        @mx.custom_function
        def f(x, n, tree):
            return [x * n * tree["a"]]

        @f.jvp
        def f_jvp(primals, tangents):
            seen.append((primals, tangents))
            return [tangents[0] * 5]

        @f.vmap
        def f_vmap(inputs, axes):
            # mlx says 0 of y, which is not mapped.
            assert mx is not um or axes[2] == {"a": None, "b": None, "c": None}
            seen.append((inputs[1:], axes[:2]))
            return [inputs[0] * 3], [axes[0]]

        g = lambda x, y: f(x, 3, {"a": y, "b": None, "c": "text"})
        both = mx.stack([x, y])
        return mx.jvp(lambda x: g(x, y), [x], [y]), mx.vmap(g, in_axes=(0, None))(both, y), seen

    tally.same("jvp and vmap", forward, x, y, ulps=8)


def test_decorator() -> None:
    @um.custom_function
    def f(x):
        """Doubles."""
        return x * 2

    assert f.__doc__ is not None and f.__name__ == "f" and f.__wrapped__(3) == 6
    assert isinstance(f, um.custom_function) and "custom_function" in repr(f)
    assert f.vjp(lambda p, c, o: c * 10) is f
    x = um.array([1.0, 2.0])
    assert um.grad(lambda x: f(x).sum())(x).tolist() == [10, 10]
    f.vjp(lambda p, c, o: (c * 20,))
    assert um.grad(lambda x: f(x).sum())(x).tolist() == [20, 20]
    for wrong in (lambda: um.custom_function(3), lambda: f.vjp(3), lambda: f.jvp(None)):
        with pytest.raises(TypeError, match="callable"):
            wrong()
    with pytest.raises(TypeError, match="callable"):
        um.checkpoint(3)


class Mine(Exception):
    pass


def test_exceptions_surface_as_they_are() -> None:
    x = um.array([1.0, 2.0])
    mine = Mine("here", 3)

    def fails(*args: Any) -> Any:
        raise mine

    def custom(rule: str) -> Any:
        f = um.custom_function(lambda x: x * 2)
        getattr(f, rule)(fails)
        return f

    runs = {
        "vjp": lambda f: um.grad(lambda x: f(x).sum())(x),
        "jvp": lambda f: um.jvp(f, [x], [x]),
        "vmap": lambda f: um.vmap(f)(x),
    }
    for rule, run in runs.items():
        with pytest.raises(Mine) as caught:
            run(custom(rule))
        assert caught.value is mine
        # Deeper down, too.
        inner = custom(rule)
        with pytest.raises(Mine) as caught:
            run(um.checkpoint(lambda x, f=inner: f(x) * 1))
        assert caught.value is mine
    f = um.custom_function(fails)
    f.vjp(lambda p, c, o: c)
    for call in (f, um.checkpoint(fails), um.grad(f), um.grad(um.checkpoint(fails))):
        with pytest.raises(Mine) as caught:
            call(x)
        assert caught.value is mine


def test_rules_that_do_not_fit() -> None:
    """In mlx they give wrong gradients, or end the process."""
    x, y = um.array([1.0, 2.0]), um.array([3.0, 4.0])

    def reverse(*made: Any) -> Any:
        f = um.custom_function(lambda x, y: x * y)
        f.vjp(lambda p, c, o: made[0])
        return um.grad(lambda x, y: f(x, y).sum(), argnums=(0, 1))(x, y)

    for made, words in {
        "few": ([x], "1 arrays for the 2"),
        "many": ([x, x, x], "3 arrays for the 2"),
        "nothing": (None, "0 arrays for the 2"),
        "shape": ((um.ones(3), x), r"\(3,\) for argument 0"),
        "number": ((1.0, x), "returned float for array 0"),
    }.values():
        with pytest.raises(ValueError, match=words):
            reverse(made)
    dx, dy = reverse((None, x.astype(um.int32)))
    assert (dx.tolist(), dy.tolist(), dy.dtype) == ([0, 0], [1, 2], um.float32)

    def forward(made: Any) -> Any:
        f = um.custom_function(lambda x: x * 2)
        f.jvp(lambda p, t: made)
        return um.jvp(f, [x], [y])

    for made in ([], [x, x], um.ones(3), 1.0, None):
        with pytest.raises(ValueError, match="jvp rule"):
            forward(made)

    def batched(made: Any) -> Any:
        f = um.custom_function(lambda x: x * 2)
        f.vmap(lambda i, a: made)
        return um.vmap(f)(um.stack([x, y]))

    for made in (
        x,
        (x, 0, 1),
        [x, 0],
        (um.ones((3, 2)), 0),
        (x, "a"),
        (um.ones(3), None),
        ([x, x], 0),
    ):
        with pytest.raises(ValueError, match="vmap"):
            batched(made)
    with pytest.raises(IndexError):
        batched((x, 5))
    assert batched((x, None)).tolist() == [x.tolist()] * 2
    with pytest.raises(ValueError, match="positional"):
        f = um.custom_function(lambda x, k: x * k)
        f.jvp(lambda p, t: t)
        um.jvp(lambda x: f(x, k=2), [x], [y])


def test_what_it_closes_over(tally: Tally) -> None:
    x, y = pair()

    def case(mx, x, y):
        def g(x, y):
            f = mx.custom_function(lambda x: x * y)
            f.vjp(lambda p, c, o: c * 2)
            return f(x).sum()

        return mx.grad(g, argnums=(0, 1))(x, y)

    tally.same("a constant", case, x, y)
    # A checkpoint has the whole gradient: mlx gives zeros for y.
    a, b = um.array([1.0, 2.0]), um.array([3.0, 4.0])
    f = lambda x, y: um.checkpoint(lambda x: x * um.sin(y))(x).sum()
    plain = lambda x, y: (x * um.sin(y)).sum()
    for got, want in zip(um.grad(f, argnums=(0, 1))(a, b), um.grad(plain, argnums=(0, 1))(a, b)):
        assert got.tolist() == want.tolist()
    assert (
        um.vmap(f, in_axes=(None, 0))(a, b).tolist()
        == um.vmap(plain, in_axes=(None, 0))(a, b).tolist()
    )
    assert um.jvp(f, [a, b], [b, a])[1][0].item() == um.jvp(plain, [a, b], [b, a])[1][0].item()


def block(mx: Any) -> Any:
    return lambda d, n, *, k=2: {"z": mx.sin(d["a"]) * n * k, "n": n, "l": [mx.exp(d["a"])]}


CHECKPOINTS: dict[str, Any] = {
    "call": lambda mx, f, x: {k: v for k, v in f({"a": x}, 3).items() if k != "n"},
    "grad": lambda mx, f, x: mx.grad(lambda x: (f({"a": x}, 3)["z"] * x).sum())(x),
    "both": lambda mx, f, x: mx.grad(lambda x: (f({"a": x}, 3)["z"] * f({"a": x}, 1)["l"][0]).sum())(x),
    "keyword": lambda mx, f, x: mx.grad(lambda k: f({"a": x}, 3, k=k)["z"].sum())(x),
    "in itself": lambda mx, f, x: mx.grad(
        lambda x: f({"a": f({"a": x}, 1)["z"]}, 2)["z"].sum()
    )(x),
    "grad of grad": lambda mx, f, x: mx.grad(
        lambda x: (mx.grad(lambda x: f({"a": x}, 3)["z"].sum())(x) * x).sum()
    )(x),
    "jvp": lambda mx, f, x: mx.jvp(lambda x: f({"a": x}, 3)["z"], [x], [x]),
    "vmap": lambda mx, f, x: mx.vmap(lambda x: f({"a": x}, 3)["z"])(x),
    "vmap of grad": lambda mx, f, x: mx.vmap(mx.grad(lambda x: f({"a": x}, 3)["z"].sum()))(x),
    "grad of vmap": lambda mx, f, x: mx.grad(
        lambda x: mx.vmap(lambda x: f({"a": x}, 3)["z"])(x).sum()
    )(x),
}  # fmt: skip


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_checkpoint(tally: Tally, name: str) -> None:
    x = pair()[0]
    run = CHECKPOINTS[name]
    tally.same(
        name, lambda mx, x: run(mx, mx.checkpoint(block(mx)), x), x, ulps=64, scale="largest"
    )
    at = um.array(x.data)
    got = run(um, um.checkpoint(block(um)), at)
    want = run(um, block(um), at)
    leaves = lambda t: [leaf for v in t.values() for leaf in leaves(v)] if isinstance(t, dict) else (
        [leaf for v in t for leaf in leaves(v)] if isinstance(t, (list, tuple)) else [t])  # fmt: skip
    for a, b in zip(leaves(got), leaves(want)):
        assert np.array_equal(np.array(a), np.array(b)), name


def test_checkpoint_takes_less_memory() -> None:
    def layers(f: Any) -> Any:
        def run(x):
            for _ in range(8):
                x = f(x)
            return x.sum()

        return run

    def layer(x):
        for _ in range(4):
            x = um.tanh(um.cumsum(x))
        return x

    x = um.full((1 << 18,), 0.5)
    um.eval(x)

    def peak(f: Any) -> tuple[int, np.ndarray]:
        start = um.get_active_memory()
        um.reset_peak_memory()
        value, gradient = um.value_and_grad(layers(f))(x)
        um.eval(value, gradient)
        return um.get_peak_memory() - start, np.array(gradient)

    less, got = peak(um.checkpoint(layer))
    more, want = peak(layer)
    assert np.array_equal(got, want)
    assert less < 0.65 * more, (less, more)


def test_nothing_is_kept() -> None:
    """Functions and arrays go when the last result does."""

    class Weights:
        pass

    def run() -> weakref.ref:
        w = Weights()
        w.x = um.array([1.0, 2.0])  # type: ignore[attr-defined]
        f = um.custom_function(lambda x: x * w.x)  # type: ignore[attr-defined]
        f.vjp(lambda p, c, o: c * w.x)  # type: ignore[attr-defined]
        g = um.checkpoint(f)
        um.eval(um.grad(lambda x: g(x).sum())(um.array([3.0, 4.0])))
        return weakref.ref(w)

    gone = run()
    gc.collect()
    um.eval(um.array(1.0) + 1)  # references that were dropped without the lock are let go here
    gc.collect()
    assert gone() is None


def test_depends(tally: Tally) -> None:
    x, y = pair()

    def case(mx, x, y):
        return (
            mx.depends(x, y),
            mx.depends([x, y * 2], [y]),
            mx.depends((x,), (x, y)),
            mx.depends([x], []),
            mx.grad(lambda a: (mx.depends(a * a, a * 3) * y).sum())(x),
            mx.grad(lambda a: mx.depends(y, a * 3).sum())(x),
        )

    tally.same("values and gradients", case, x, y)
    a, b = um.array([1.0, 2.0]), um.array([3.0, 4.0])
    assert um.depends([], [b]) == []
    # mlx has no rules for these.
    assert um.jvp(lambda a: um.depends(a * a, b), [a], [b])[1][0].tolist() == [6, 16]
    assert um.vmap(lambda a: um.depends(a * a, b))(a).tolist() == [1, 4]
    for wrong in (1.0, {"a": a}, [1.0]):
        with pytest.raises(TypeError):
            um.depends(wrong, b)
