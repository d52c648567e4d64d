"""The first operation in C, `examples/extensions/huber-c`, and with it `extension_helper.h`."""

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from support import extensions
from support.memory import active

import ultramarine as mx

SOURCE = extensions.ROOT / "examples/extensions/huber-c/huber.c"


@pytest.fixture(scope="module")
def huber(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = extensions.build(tmp_path_factory.mktemp("huber"), str(SOURCE), name="_native")
    module: ModuleType = extensions.load(path)
    return module.huber


def expected(x: Any, delta: float) -> Any:
    x = np.abs(x)
    return np.where(x <= delta, x * x / 2, delta * (x - delta / 2))


@pytest.mark.parametrize("dtype", [mx.float32, mx.float64])
@pytest.mark.parametrize("shape", [(), (1,), (7,), (3, 4), (2, 1, 5), (300, 700), (0,), (3, 0, 2)])
def test_values(huber: Any, dtype: mx.Dtype, shape: tuple[int, ...]) -> None:
    numbers = np.random.default_rng(3).normal(size=shape) * 3
    x = mx.array(numbers).astype(dtype)
    y = huber(x, 1.5)
    assert y.shape == shape and y.dtype == dtype
    wanted = expected(np.array(x).astype(np.float64), 1.5)
    bound = 1e-6 if dtype == mx.float32 else 1e-14
    np.testing.assert_allclose(np.array(y), wanted, rtol=bound, atol=bound)


def test_strides(huber: Any) -> None:
    """Transposed, reversed, with gaps, broadcast: also rows that threads share."""
    base = mx.array(np.random.default_rng(4).normal(size=(400, 600)).astype(np.float32))
    views = [
        base.T,
        base[::-1],
        base[:, ::-3],
        base[::2, 1::5],
        mx.broadcast_to(base[:1], (300, 600)),
        mx.broadcast_to(base[:, :1], (400, 500)),
        mx.broadcast_to(mx.array(2.0), (5, 6)),
        base.reshape(40, 10, 20, 30).transpose(2, 0, 3, 1),
    ]
    for view in views:
        wanted = expected(np.array(view).astype(np.float64), 1.0)
        np.testing.assert_allclose(np.array(huber(view)), wanted, rtol=1e-6, atol=1e-7)


def test_objects(huber: Any) -> None:
    assert huber([1, -3], 2.0).tolist() == [0.5, 4.0]
    assert huber(mx.array([1, -3]), 2.0).dtype == mx.float32
    assert huber(True).item() == 0.5
    assert huber(3.0, delta=1.0, stream=mx.cpu).item() == 2.5
    with pytest.raises(ValueError, match=r"\[huber\] takes float32 and float64"):
        huber(mx.array(1.0, dtype=mx.float16))
    with pytest.raises(ValueError, match="huber"):
        huber(mx.array(1j))
    with pytest.raises(ValueError, match="Invalid type object"):
        huber(object())
    with pytest.raises(TypeError):
        huber(1.0, stream="cpu")


def test_transforms(huber: Any) -> None:
    x = mx.array([-2.0, -0.5, 0.25, 3.0])
    slope = mx.grad(lambda x: huber(x, 1.0).sum())(x)
    np.testing.assert_allclose(np.array(slope), [-1, -0.5, 0.25, 1], rtol=1e-6)
    (_,), (tangent,) = mx.jvp(lambda x: huber(x, 1.0), [x], [mx.ones(4)])
    np.testing.assert_allclose(np.array(tangent), [-1, -0.5, 0.25, 1], rtol=1e-6)
    batch = mx.vmap(lambda x: huber(x, 1.0), in_axes=1, out_axes=0)(
        mx.stack([x, -x, 2 * x], axis=1)
    )
    np.testing.assert_allclose(np.array(batch[0]), expected(np.array(x), 1.0), rtol=1e-6)
    compiled = mx.compile(lambda x: huber(x, 1.0) + huber(x, 2.0))
    np.testing.assert_allclose(
        np.array(compiled(x)), expected(np.array(x), 1.0) + expected(np.array(x), 2.0), rtol=1e-6
    )


def test_nothing_is_left_over(huber: Any) -> None:
    x = mx.zeros((1 << 18,)) + 1
    mx.eval(x)

    def calls() -> None:
        mx.eval(huber(x), mx.grad(lambda x: huber(x).sum())(x))
        for wrong in (mx.array(1j), object()):
            with pytest.raises((TypeError, ValueError)):
                huber(wrong)

    calls()
    memory, references = active(), sys.getrefcount(x)
    for _ in range(50):
        calls()
    assert (active(), sys.getrefcount(x)) == (memory, references)


def test_its_length() -> None:
    assert len(Path(SOURCE).read_text().splitlines()) <= 60
