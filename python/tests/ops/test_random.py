"""Random numbers: the bits are mlx's, so most numbers are too."""

from typing import Any

import numpy as np
import pytest
from support.harness import FLOATS, INTS, Tally, given, in_single, um

SHAPES = [(), (1,), (2,), (7,), (1000,), (33, 3), (2, 0), (5, 4, 3)]
KEYS = [0, 1, 42, 2**32 - 1, 2**32 + 5, 2**64 - 1]


@pytest.mark.parametrize("key", KEYS)
def test_exactly_mlx(tally: Tally, key: int) -> None:
    tally.same("key", lambda mx: mx.random.key(key))
    for n in (2, 3, 10):
        tally.same(f"split {n}", lambda mx: mx.random.split(mx.random.key(key), n))
    for shape in SHAPES:
        k = lambda mx: mx.random.key(key)
        tally.same(f"uniform {shape}", lambda mx: mx.random.uniform(shape=shape, key=k(mx)))
        tally.same(
            f"uniform bounds {shape}",
            lambda mx: mx.random.uniform(-3, 5.5, shape, key=k(mx)),
        )
        tally.same(f"randint {shape}", lambda mx: mx.random.randint(-7, 19, shape, key=k(mx)))
        tally.same(
            f"bernoulli {shape}",
            lambda mx: mx.random.bernoulli(0.3, shape, key=k(mx)),
        )


@pytest.mark.parametrize("dtype", FLOATS)
def test_float_dtypes(tally: Tally, dtype: str) -> None:
    for key in KEYS[:3]:

        def uniform(mx, key=key):
            return mx.random.uniform(0, 1, (50, 3), getattr(mx, dtype), mx.random.key(key))

        def normal(mx, key=key):
            return mx.random.normal((50, 3), getattr(mx, dtype), key=mx.random.key(key))

        def scaled(mx, key=key):
            return mx.random.normal((50,), getattr(mx, dtype), 2.0, 0.5, mx.random.key(key))

        tally.same(f"uniform {key}", uniform)
        tally.same(f"normal {key}", normal, ulps=in_single(64), scale="largest")
        tally.same(f"normal scaled {key}", scaled, ulps=in_single(64), scale="largest")


@pytest.mark.parametrize("dtype", INTS)
def test_integer_dtypes(tally: Tally, dtype: str) -> None:
    for low, high in ((0, 100), (0, 1), (3, 4), (5, 5), (9, 2)):

        def case(mx, low=low, high=high):
            return mx.random.randint(low, high, (200,), getattr(mx, dtype), mx.random.key(3))

        tally.same(f"{low} {high}", case)


def test_the_seed(tally: Tally) -> None:
    def sequence(mx):
        mx.random.seed(17)
        first = mx.random.uniform(shape=(5,))
        second = mx.random.normal((5,))
        third = mx.random.randint(0, 10, (5,))
        mx.random.seed(17)
        again = mx.random.uniform(shape=(5,))
        return first, second, third, again

    tally.same("sequence", sequence, ulps=64, scale="largest")


def test_broadcast_parameters(tally: Tally) -> None:
    p = given("float32", (3, 1), domain="unit")
    tally.same(
        "uniform",
        lambda mx, p: mx.random.uniform(p, p + mx.array([1.0, 2.0]), (3, 2), key=mx.random.key(5)),
        p,
    )
    tally.same(
        "randint",
        lambda mx, p: mx.random.randint(mx.array([0, 10]), 20, (3, 2), key=mx.random.key(5)),
        p,
    )
    tally.same(
        "bernoulli",
        lambda mx, p: mx.random.bernoulli(mx.abs(p), key=mx.random.key(5)),
        p,
    )
    tally.same(
        "normal",
        lambda mx, p: mx.random.normal((3, 2), loc=p, scale=mx.abs(p), key=mx.random.key(5)),
        p,
        ulps=64,
        scale="largest",
    )


def test_categorical(tally: Tally) -> None:
    logits = given("float32", (6, 10))
    for name, options in {
        "plain": {},
        "axis 0": {"axis": 0},
        "many": {"num_samples": 50},
        "shape": {"shape": (4, 6)},
        "both": {"shape": (4, 6), "num_samples": 3},
        "wrong shape": {"shape": (4, 5)},
    }.items():

        def case(mx, x, options=options):
            return mx.random.categorical(x, key=mx.random.key(11), **options)

        tally.same(name, case, logits)


def test_wrong_calls(tally: Tally) -> None:
    for name, case in {
        "uniform of ints": lambda mx: mx.random.uniform(0, 1, (3,), mx.int32),
        "randint of floats": lambda mx: mx.random.randint(0, 5, (3,), mx.float32),
        "uniform of bad shape": lambda mx: mx.random.uniform(mx.zeros((3,)), 1, (2,)),
        "negative shape": lambda mx: mx.random.uniform(shape=(-1,)),
        "key of wrong shape": lambda mx: mx.random.uniform(shape=(2,), key=mx.array([1, 2, 3])),
        "key of wrong dtype": lambda mx: mx.random.uniform(shape=(2,), key=mx.array([1.0, 2.0])),
        "bernoulli of ints": lambda mx: mx.random.bernoulli(mx.array([1, 2])),
        "normal of ints": lambda mx: mx.random.normal((2,), mx.int32),
        "categorical of scalar": lambda mx: mx.random.categorical(mx.array(1.0)),
        "split of bad key": lambda mx: mx.random.split(mx.array([1])),
        "negative seed": lambda mx: mx.random.key(-1),
        "seed of text": lambda mx: mx.random.seed("a"),
    }.items():
        tally.same(name, case)


def test_truncated_normal_of_bounds_in_the_wrong_order(tally: Tally) -> None:
    cases = {
        "numbers": lambda mx: mx.random.truncated_normal(2, -2),
        "a shape": lambda mx: mx.random.truncated_normal(3.0, 1.0, (3,)),
        "infinities": lambda mx: mx.random.truncated_normal(mx.inf, -mx.inf),
        "arrays": lambda mx: mx.random.truncated_normal(
            mx.array([2.0, 1.0]), mx.array([-2.0, 1.0]), (4, 2)
        ),
    }
    for name, case in cases.items():
        tally.same(name, case)


@pytest.mark.parametrize("n", [1, 3, 8, 9, 1000, 4099])
def test_numbers_of_compiled_functions(n: int) -> None:
    """A backend may make numbers of bits where it makes the bits: the numbers are those of separate evaluations."""

    @um.compile
    def all_of(key: Any, x: Any) -> Any:
        keys = um.random.split(key, 3)
        kept = um.random.bernoulli(0.6, (n, 2), key=keys[2])
        return (
            um.random.uniform(-3, 5, (n,), key=keys[0]),
            um.random.normal((n, 2), key=keys[1]),
            um.where(kept, x / 0.6, 0.0),
        )

    for i in range(6):
        key = um.random.key(i)
        x = um.random.uniform(1, 2, (n, 2), key=um.random.key(100 + i))
        um.eval(key, x)
        got = all_of(key, x)
        um.eval(got)
        keys = um.random.split(key, 3)
        um.eval(keys)
        bits = [um.random.bits(shape, key=k) for shape, k in zip(((n,), (n, 2), (n, 2)), keys)]
        um.eval(bits)
        units = [np.minimum(np.array(b).astype(np.float32) / 2**32, 1 - 2**-24) for b in bits]
        assert np.array_equal(np.array(got[0]), units[0] * np.float32(8) + np.float32(-3))
        normal = um.random.normal((n, 2), key=keys[1])
        um.eval(normal)
        assert np.array_equal(np.array(got[1]), np.array(normal))
        kept = np.where(units[2] < np.float32(0.6), np.array(x) / np.float32(0.6), 0)
        np.testing.assert_allclose(np.array(got[2]), kept, rtol=1e-6)
