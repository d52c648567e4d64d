"""Parameters and states after several updates are mlx's, with all options and in all floating-point dtypes."""

from __future__ import annotations

from typing import Any

import pytest
from support.compare import assert_close

from .trees import OURS, THEIRS, Make, run

# Element by element, in the same order of operations: the same numbers.
EXACT: dict[str, Make] = {
    "sgd": lambda o: o.SGD(0.1),
    "sgd decay": lambda o: o.SGD(0.1, weight_decay=0.1),
    "sgd momentum": lambda o: o.SGD(0.1, momentum=0.9),
    "sgd all": lambda o: o.SGD(0.1, 0.9, 0.01, 0.3),
    "sgd dampening alone": lambda o: o.SGD(0.1, dampening=0.3),
    "sgd nesterov": lambda o: o.SGD(0.1, momentum=0.9, weight_decay=0.01, nesterov=True),
    "rmsprop": lambda o: o.RMSprop(0.01),
    "rmsprop options": lambda o: o.RMSprop(0.01, 0.9, 1e-3),
    "adagrad": lambda o: o.Adagrad(0.1),
    "adagrad eps": lambda o: o.Adagrad(0.1, 1e-2),
    "adadelta": lambda o: o.AdaDelta(1.0),
    "adadelta options": lambda o: o.AdaDelta(1.0, 0.8, 1e-3),
    "adam": lambda o: o.Adam(0.01),
    "adam options": lambda o: o.Adam(0.01, [0.8, 0.9], 1e-5),
    "adam correction": lambda o: o.Adam(0.01, bias_correction=True),
    "adamw": lambda o: o.AdamW(0.01),
    "adamw options": lambda o: o.AdamW(0.01, (0.8, 0.9), 1e-5, 0.3, True),
    "adamax": lambda o: o.Adamax(0.01),
    "adamax options": lambda o: o.Adamax(0.01, [0.8, 0.9], 1e-3),
    "lion": lambda o: o.Lion(0.01),
    "lion options": lambda o: o.Lion(0.01, [0.8, 0.7], 0.1),
    "adam schedule": lambda o: o.Adam(o.linear_schedule(0.1, 0.01, 6)),
    "lion schedule": lambda o: o.Lion(o.exponential_decay(0.1, 0.5), weight_decay=0.1),
}

# Means, norms and products, whose sums other orders round otherwise.
ROUNDED: dict[str, Make] = {
    "adafactor": lambda o: o.Adafactor(),
    "adafactor warmup": lambda o: o.Adafactor(warmup_init=True),
    "adafactor momentum": lambda o: o.Adafactor(beta_1=0.9),
    "adafactor decay": lambda o: o.Adafactor(weight_decay=0.5),
    "adafactor unscaled": lambda o: o.Adafactor(scale_parameter=False),
    "adafactor rate": lambda o: o.Adafactor(0.1, relative_step=False),
    "adafactor schedule": lambda o: o.Adafactor(o.step_decay(0.1, 0.5, 2), relative_step=False),
    "adafactor ignored rate": lambda o: o.Adafactor(0.5),
    "adafactor options": lambda o: o.Adafactor(None, (1e-6, 1e-1), 0.3, -0.5, 0.5, 0.1),
    "muon": lambda o: o.Muon(0.02),
    "muon plain": lambda o: o.Muon(0.02, nesterov=False, weight_decay=0.0),
    "muon options": lambda o: o.Muon(0.02, 0.5, 0.3, True, 2),
    "muon schedule": lambda o: o.Muon(o.linear_schedule(0.01, 0.1, 4)),
}

DTYPES = ["float32", "bfloat16", "float16"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("case", EXACT)
def test_elementwise(case: str, dtype: str) -> None:
    assert_close(run(OURS, EXACT[case], dtype), run(THEIRS, EXACT[case], dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("case", ROUNDED)
def test_with_sums(case: str, dtype: str) -> None:
    # Newton and Schulz's iteration triples small errors in each of its steps.
    ulps = 8 if dtype == "float32" else 4
    got, want = run(OURS, ROUNDED[case], dtype), run(THEIRS, ROUNDED[case], dtype)
    assert_close(got, want, ulps=ulps)


@pytest.mark.parametrize(
    "dtypes", [("float32", "bfloat16"), ("bfloat16", "float32"), ("float16", "bfloat16")]
)
@pytest.mark.parametrize("case", ["sgd", "sgd all", "rmsprop", "adadelta", "adam correction"])
def test_gradients_of_other_dtypes(case: str, dtypes: tuple[str, str]) -> None:
    make, (dtype, grads) = EXACT[case], dtypes
    assert_close(run(OURS, make, dtype, grads), run(THEIRS, make, dtype, grads))


@pytest.mark.parametrize(
    "dtypes", [("float32", "bfloat16"), ("bfloat16", "float32"), ("float16", "bfloat16")]
)
@pytest.mark.parametrize("case", ["adafactor options", "adafactor rate", "muon"])
def test_sums_of_other_dtypes(case: str, dtypes: tuple[str, str]) -> None:
    make, (dtype, grads) = ROUNDED[case], dtypes
    got, want = run(OURS, make, dtype, grads), run(THEIRS, make, dtype, grads)
    # Means of gradients are rounded to the gradients' dtype.
    assert_close(got, want, rtol=1e-2, atol=2e-3)


@pytest.mark.parametrize("case", ["adamw", "lion options"])
def test_decay_in_other_dtypes(case: str) -> None:
    make = EXACT[case]
    got, want = run(OURS, make, "float32", "bfloat16"), run(THEIRS, make, "float32", "bfloat16")
    assert_close(got, want)


def test_long_run() -> None:
    """Differences, of powers in the bias correction, do not grow over a hundred updates."""
    make = EXACT["adamw options"]
    assert_close(run(OURS, make, steps=100), run(THEIRS, make, steps=100), ulps=4)


def test_alone_and_in_a_tree() -> None:
    """`apply_single`, called outside of an update, computes the same."""
    mx, optim = OURS
    for make in [*EXACT.values(), *ROUNDED.values()]:
        optimizer, single = make(optim), make(optim)
        parameter, gradient = mx.array([1.0, -2.0, 3.0]), mx.array([0.5, 0.25, -1.0])
        want = optimizer.apply_gradients({"w": gradient}, {"w": parameter})["w"]
        own: dict[str, Any] = {}
        single.init_single(parameter, own)
        single.state["step"] = single.state["step"] + 1
        assert_close(single.apply_single(gradient, parameter, own), want, rtol=1e-6)
        assert_close(own, optimizer.state["w"])
