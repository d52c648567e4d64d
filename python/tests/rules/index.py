"""Taking, putting and assigning by indices."""

from typing import Any

from .case import Case, case, flat, real, whole


def assigned(x: Any, i: Any, y: Any) -> Any:
    """The array after an assignment by index and one by slice."""
    x = x * 1
    x[i] = y[:1]
    x[2:] = y * x[:2]
    return x


CASES: list[Case] = [
    case("take", lambda um, x, i: um.take(x, i, 0), real(4, 3), whole(2, 2, high=4)),
    case("take, of all", lambda um, x, i: um.take(x, i), real(4, 3), whole(3, high=12)),
    case("take_along_axis", lambda um, x, i: um.take_along_axis(x, i, 0), real(3, 2), whole(2, 2, high=3)),
    case("put_along_axis", lambda um, x, y: um.put_along_axis(x, um.array([[0, 2], [1, 1]]), y, 0), real(3, 2), real(2, 2)),
    flat("put_along_axis, mapped indices", lambda um, x, i, y: um.put_along_axis(x, i, y, 0), real(3, 2), whole(1, 2, high=3), real(1, 2)),
    case("array.at, add", lambda um, x, y: x.at[um.array([0, 0, 2])].add(y), real(4, 3), real(3, 3)),
    case("array.at, subtract", lambda um, x, y: x.at[1:3, um.array([0, 2])].subtract(y), real(4, 3), real(2, 2)),
    case("array.at, multiply", lambda um, x, y: x.at[um.array([0, 2])].multiply(y), real(4, 3), real(2, 3, low=0.5)),
    case("array.at, divide", lambda um, x, y: x.at[um.array([0, 2])].divide(y), real(4, 3), real(2, 3, low=0.5)),
    case("array.at, maximum", lambda um, x, y: x.at[um.array([0, 2])].maximum(y), real(4, 3), real(2, 3)),
    case("array.at, minimum", lambda um, x, y: x.at[1:].minimum(y), real(4, 3), real(3, 3)),
    case("array.__getitem__", lambda um, x, i: x[i, 1:] * x[0, ..., None, :2], real(4, 3), whole(3, high=4)),
    case("array.__getitem__, of pairs", lambda um, x, i, j: x[i, j], real(4, 3), whole(3, high=4), whole(3, high=3)),
    case("array.__setitem__", lambda um, x, y, i: assigned(x, i, y), real(4, 3), real(2, 3), whole(1, high=2)),
]  # fmt: skip
