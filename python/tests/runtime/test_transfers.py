"""Copies that operands need, counted: between the host and the device that the suite runs on (on the CPU none moves),
and of what a device takes contiguous alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.harness import rng

import ultramarine as mx
from ultramarine import array_api, backends

pytestmark = [pytest.mark.ops, pytest.mark.always]

ROWS, COLUMNS = 1024, 256
ROW = 4 * COLUMNS
WHOLE = ROWS * ROW


def numbers() -> np.ndarray:
    return rng("transfers").standard_normal((ROWS, COLUMNS), dtype=np.float32)


def moved(f: Callable[[], Any]) -> tuple[Any, int, int]:
    """What a function gives, and the bytes that it moves to the host and to the device."""
    before = backends.stats()
    out = f()
    after = backends.stats()
    return (
        out,
        after.bytes_to_host - before.bytes_to_host,
        after.bytes_to_devices - before.bytes_to_devices,
    )


def expected(count: int) -> int:
    """What should move, where there is a device to move it to."""
    return 0 if mx.default_device() == mx.Device(mx.cpu) else count


def computed(f: Callable[[], mx.array]) -> Callable[[], mx.array]:
    def run() -> mx.array:
        out = f()
        mx.eval(out)
        return out

    return run


def on_device() -> tuple[np.ndarray, mx.array]:
    data = numbers()
    x = mx.array(data) + mx.array(data)
    mx.eval(x)
    return data + data, x


def test_a_batch_of_a_host_array_moves_alone() -> None:
    data = numbers()
    host = mx.array(data)
    for i in (0, 96, 512):
        batch = host[i : i + 32]
        out, down, up = moved(computed(lambda: batch * batch + batch))
        assert (down, up) == (0, expected(32 * ROW))
        np.testing.assert_array_equal(
            np.array(out), data[i : i + 32] * data[i : i + 32] + data[i : i + 32]
        )


def test_a_training_step_moves_its_batch_once() -> None:
    host = mx.array(numbers())
    w = mx.ones((COLUMNS, 3)) * 0.5
    mx.eval(w)

    def loss(w: mx.array, x: mx.array) -> mx.array:
        return mx.mean(mx.square(x @ w))

    step = computed(lambda: mx.grad(loss)(w, host[64:96]))
    _, down, up = moved(step)
    assert down == 0
    # The batch, and a few numbers.
    assert expected(32 * ROW) <= up <= expected(32 * ROW + 64)


def test_one_element_comes_alone() -> None:
    want, x = on_device()
    value, down, up = moved(lambda: x[900, 3].item())
    assert (value, down, up) == (want[900, 3], expected(4), 0)
    # (The host may see the device's memory.)
    row, down, up = moved(lambda: np.array(x[5]))
    assert down in (0, expected(ROW)) and up == 0
    np.testing.assert_array_equal(row, want[5])


def test_sparse_views_are_packed_where_they_are() -> None:
    want, x = on_device()
    column, down, up = moved(lambda: np.array(x[:, 3]))
    assert down in (0, expected(4 * ROWS)) and up == 0
    np.testing.assert_array_equal(column, want[:, 3])
    data = numbers()
    host = mx.array(data)
    out, down, up = moved(computed(lambda: (part := host[::16, 7]) + part))
    assert (down, up) == (0, expected(4 * ROWS // 16))
    np.testing.assert_array_equal(np.array(out), data[::16, 7] + data[::16, 7])


def test_a_large_part_is_mirrored() -> None:
    data = numbers()
    host = mx.array(data)
    half = host[: ROWS // 2]
    out, down, up = moved(computed(lambda: half + half))
    assert (down, up) == (0, expected(WHOLE))
    np.testing.assert_array_equal(np.array(out), 2 * data[: ROWS // 2])
    assert moved(computed(lambda: host[3:5] + host[8:10]))[1:] == (0, 0)


@pytest.mark.parametrize(
    "view", ["rows", "backwards", "stepped", "transposed", "broadcast", "none"]
)
@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "bool_", "int64"])
def test_values_of_parts(view: str, dtype: str) -> None:
    views: dict[str, Callable[[Any], Any]] = {
        "rows": lambda a: a[17:40],
        "backwards": lambda a: a[40:17:-1, ::-1],
        "stepped": lambda a: a[3:90:3, 5:200:7],
        "transposed": lambda a: a[10:20].T,
        "broadcast": lambda a: (mx if isinstance(a, mx.array) else np).broadcast_to(
            a[4], (7, COLUMNS)
        ),
        "none": lambda a: a[4:4],
    }
    data = (numbers() * 8).astype(getattr(np, dtype))
    host = mx.array(data)
    want = views[view](data)
    there = mx.where(views[view](host) != 0, views[view](host), views[view](host))
    np.testing.assert_array_equal(np.array(there), want)
    device = mx.where(host != 0, host, host)
    mx.eval(device)
    np.testing.assert_array_equal(np.array(views[view](device)), want)


def test_counts_of_results_come_as_one_integer() -> None:
    def on_cpu() -> int:
        return sum(row.cpu for row in backends.op_counts())

    before = on_cpu()
    _, x = on_device()
    flat = mx.where(x > 1, x, 0).reshape(-1)
    mx.eval(flat)
    found, down, _ = moved(lambda: array_api.nonzero(flat))
    # What a device has no kernel for runs on the CPU, and its operands travel.
    assert down <= expected(16) or on_cpu() > before
    np.testing.assert_array_equal(np.array(found[0]), np.nonzero(np.array(flat))[0])
    whole = mx.floor(x)
    mx.eval(whole)
    values, down, _ = moved(lambda: array_api.unique_values(whole))
    assert down <= expected(16) or on_cpu() > before
    np.testing.assert_array_equal(np.array(values), np.unique(np.array(whole)))


@pytest.mark.parametrize("batch", [(), (3,), (2, 1)])
def test_a_product_with_one_row_or_column_copies_no_transposed_matrix(
    batch: tuple[int, ...],
) -> None:
    r = rng("one row")
    words = r.standard_normal((*batch, 70, 20), dtype=np.float32)
    state = r.standard_normal((*batch, 1, 20), dtype=np.float32)
    e, h, g = mx.array(words), mx.array(state), mx.array(words[..., :1])
    across = mx.swapaxes(e, -1, -2)
    mx.eval(e, h, g, across)
    before = backends.stats().contiguous_copies
    row, column = h @ across, across @ g
    mx.eval(row, column)
    assert backends.stats().contiguous_copies == before
    for got, want in (
        (row, state @ words.swapaxes(-1, -2)),
        (column, words.swapaxes(-1, -2) @ words[..., :1]),
    ):
        np.testing.assert_allclose(np.array(got), want, rtol=1e-4, atol=1e-4)
