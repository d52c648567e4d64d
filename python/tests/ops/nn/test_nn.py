"""Softmax, over shapes, layouts and axes, and the operations of layers in one trace for all devices."""

import numpy as np
import pytest
from support.harness import ALL, FLOATS, ROUNDED, Tally, by_dtype, given, sample, um

from ..axes import SHAPES, cases_over

# mlx adds exponentials of 16-bit floats up in their dtype, 1025 of them here, and takes those of float64 in float32:
# test_accuracy.py has ours.
SOFTMAX = by_dtype(ROUNDED, float16=32, bfloat16=16)


@pytest.mark.parametrize("dtype", ALL)
def test_softmax(tally: Tally, dtype: str) -> None:
    for shape, layout, axis in sample(cases_over(SHAPES), 60, dtype):
        x = given(dtype, shape, layout)
        for precise in (False, True):

            def case(mx, x, axis=axis, precise=precise):
                return mx.softmax(x, axis=axis, precise=precise)

            name = f"{shape} {layout.name} axis {axis} {precise}"
            if 0 in shape or axis not in (-1, len(shape) - 1):
                name += " not along the last"
            tally.same(name, case, x, ulps=SOFTMAX, scale="largest")


@pytest.mark.parametrize("dtype", FLOATS)
def test_softmax_of_infinities(tally: Tally, dtype: str) -> None:
    x = given(dtype, (3, 8), specials=True)
    tally.same(
        "softmax",
        lambda mx, x: mx.softmax(x, axis=-1),
        x,
        ulps=by_dtype(ROUNDED, float16=4, bfloat16=4),
    )
    tally.same("logsumexp", lambda mx, x: mx.logsumexp(x, axis=-1), x, ulps=ROUNDED)
    low = lambda mx, x: mx.softmax(mx.full((4,), -mx.inf, dtype=x.dtype))  # all masked
    tally.same("all minus infinity", low, x)


@pytest.mark.always
def test_one_trace_for_all_devices() -> None:
    """A trace that is recorded on the CPU runs on the device of other arguments, with what it makes itself."""
    device = um.default_device()
    if device == um.cpu:
        pytest.skip("there is the CPU only")
    traced = []

    @um.compile
    def block(x: um.array, w: um.array) -> list[um.array]:
        traced.append(x.shape)
        x = um.fast.rms_norm(x, w, 1e-5) * um.linspace(0.5, 1.5, 8)
        x = um.fast.rope(x, 8, traditional=False, base=1e4, scale=1.0, offset=2)
        x = um.fast.layer_norm(um.stop_gradient(x), w, None, 1e-5)
        return [um.softmax(x @ x.swapaxes(-1, -2), axis=-1), um.logsumexp(x, axis=-1)]

    values = np.cos(np.arange(48, dtype=np.float32)).reshape(2, 3, 8)
    um.set_default_device(um.cpu)
    try:
        x, w = um.array(values), um.array(values[0, 0])
        here = block(x, w)
        there = block(um.copy(x, device), um.copy(w, device))
        um.eval(here, there)
        assert len(traced) == 1
        for a, b in zip(here, there):
            assert (um.copy(a, um.cpu).device, b.device) == (um.cpu, device)
            np.testing.assert_allclose(
                np.array(um.copy(b, um.cpu)), np.array(a), rtol=2e-5, atol=2e-6
            )
    finally:
        um.set_default_device(device)
