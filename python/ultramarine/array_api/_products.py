"""Matrix products and their relatives, for integers, too."""

from __future__ import annotations

from collections.abc import Sequence

import ultramarine as mx
from ultramarine import array

from ._dtypes import FLOATING, NUMERIC, axes_of, check_array, kind_of, pair


def matmul(x1: array, x2: array, /) -> array:
    """The matrix product over the last two axes, of stacks of matrices; vectors stand for a row on
    the left and a column on the right."""
    check_array("matmul", x1)
    check_array("matmul", x2)
    a, b = pair("matmul", x1, x2, NUMERIC)
    if a.ndim == 0 or b.ndim == 0:
        raise ValueError("[matmul] Expected at least one dimension. Use multiply for scalars.")
    if kind_of(a.dtype) in FLOATING:
        return mx.matmul(a, b)
    # The core multiplies only matrices of floats, as MLX does. Integers use one fused sum instead.
    row, column = a.ndim == 1, b.ndim == 1
    a = a.reshape(1, -1) if row else a
    b = b.reshape(-1, 1) if column else b
    if a.shape[-1] != b.shape[-2]:
        raise ValueError(
            f"[matmul] Shapes {x1.shape} and {x2.shape} do not match. Transpose or reshape one of them."
        )
    terms = mx.expand_dims(a, -2) * mx.expand_dims(mx.swapaxes(b, -1, -2), -3)
    out = mx.sum(terms, -1).astype(a.dtype)
    gone = [axis for axis, vector in ((-2, row), (-1, column)) if vector]
    return mx.squeeze(out, gone) if gone else out


def matrix_transpose(x: array, /) -> array:
    """The array with its last two axes exchanged."""
    check_array("matrix_transpose", x)
    if x.ndim < 2:
        raise ValueError("[matrix_transpose] Expected at least two dimensions. Reshape the array.")
    return mx.swapaxes(x, -1, -2)


def tensordot(
    x1: array, x2: array, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2
) -> array:
    """The sum of products over axes of both: over the last `axes` of `x1` and as many first ones of
    `x2`, or over those that are named."""
    a, b = pair("tensordot", x1, x2, NUMERIC)
    if isinstance(axes, int):
        if not 0 <= axes <= min(a.ndim, b.ndim):
            raise ValueError(
                f"[tensordot] {axes} axes of {a.ndim} and {b.ndim} dimensions. Pass fewer."
            )
        axes = (tuple(range(a.ndim - axes, a.ndim)), tuple(range(axes)))
    left = axes_of("tensordot", tuple(axes[0]), a.ndim)
    right = axes_of("tensordot", tuple(axes[1]), b.ndim)
    if [a.shape[i] for i in left] != [b.shape[i] for i in right]:
        raise ValueError(
            f"[tensordot] Shapes {x1.shape} and {x2.shape} do not match over {axes}. Name other axes."
        )
    rest_a = [i for i in range(a.ndim) if i not in left]
    rest_b = [i for i in range(b.ndim) if i not in right]
    shape = [a.shape[i] for i in rest_a] + [b.shape[i] for i in rest_b]
    inner = rows = columns = 1
    for i in left:
        inner *= a.shape[i]
    for i in rest_a:
        rows *= a.shape[i]
    for i in rest_b:
        columns *= b.shape[i]
    a = _moved(a, [*rest_a, *left]).reshape(rows, inner)
    b = _moved(b, [*right, *rest_b]).reshape(inner, columns)
    return matmul(a, b).reshape(shape)


def _moved(x: array, order: list[int]) -> array:
    return mx.transpose(x, order) if order else x


def vecdot(x1: array, x2: array, /, *, axis: int = -1) -> array:
    """The sum of conj(x1) * x2 along an axis, which counts from the end; of arrays of as many
    dimensions, from the front, too."""
    a, b = pair("vecdot", x1, x2, NUMERIC)
    if a.ndim == b.ndim and 0 <= axis < a.ndim:
        axis -= a.ndim
    if not -min(a.ndim, b.ndim) <= axis < 0:
        raise IndexError(
            f"[vecdot] Axis {axis} is not the same in both arrays. Count it from the end, by a negative number."
        )
    if a.shape[axis] != b.shape[axis]:
        raise ValueError(
            f"[vecdot] Shapes {x1.shape} and {x2.shape} do not match along {axis}. Name another axis."
        )
    if kind_of(a.dtype) == "complex floating":
        a = mx.conj(a)
    return mx.sum(a * b, axis).astype(a.dtype)
