"""Reading, assigning and updating by every kind of index."""

from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from support.harness import ALL, LAYOUTS, Tally, exactly, given, sample

import ultramarine as um

# Indices into an array of shape (5, 4, 6), as functions since arrays belong to a library.
INDICES: dict[str, Any] = {
    "2": lambda mx: 2,
    "-1": lambda mx: -1,
    "1, 2": lambda mx: (1, 2),
    "1, 2, 3": lambda mx: (1, 2, 3),
    "-5, -4, -6": lambda mx: (-5, -4, -6),
    "...": lambda mx: ...,
    "None": lambda mx: None,
    ":": lambda mx: slice(None),
    "1:3": lambda mx: slice(1, 3),
    "::2": lambda mx: slice(None, None, 2),
    "::-1": lambda mx: slice(None, None, -1),
    "4:0:-2": lambda mx: slice(4, 0, -2),
    "-3:": lambda mx: slice(-3, None),
    "3:1": lambda mx: slice(3, 1),
    "9:": lambda mx: slice(9, None),
    "-99:99": lambda mx: slice(-99, 99),
    "..., 1": lambda mx: (..., 1),
    "..., ::-2": lambda mx: (..., slice(None, None, -2)),
    "1, ..., 2": lambda mx: (1, ..., 2),
    "None, 1, None": lambda mx: (None, 1, None),
    "::2, 1, ::-1": lambda mx: (slice(None, None, 2), 1, slice(None, None, -1)),
    ":, None, 1:3, 2": lambda mx: (slice(None), None, slice(1, 3), 2),
    "empty tuple": lambda mx: (),
    "array": lambda mx: mx.array([0, 3, 1]),
    "array of negatives": lambda mx: mx.array([-1, -5, 0]),
    "array with repeats": lambda mx: mx.array([1, 1, 3, 1]),
    "uint8 array": lambda mx: mx.array([4, 0], mx.uint8),
    "int64 array": lambda mx: mx.array([4, 0], mx.int64),
    "0-d array": lambda mx: mx.array(3),
    "empty array": lambda mx: mx.array([], mx.int32),
    "2-d array": lambda mx: mx.array([[0, 1], [2, 4]]),
    "array, array": lambda mx: (mx.array([0, 2]), mx.array([1, 3])),
    "array, array broadcast": lambda mx: (mx.array([[0], [2]]), mx.array([1, 3, 0])),
    "array, int": lambda mx: (mx.array([0, 2]), 1),
    "int, array": lambda mx: (1, mx.array([0, 2])),
    "array, slice": lambda mx: (mx.array([0, 2]), slice(1, 3)),
    "slice, array": lambda mx: (slice(None), mx.array([0, 2])),
    "slice, array, slice": lambda mx: (slice(1, 4), mx.array([0, 2]), slice(None, None, 2)),
    "array, slice, array": lambda mx: (mx.array([0, 2]), slice(None), mx.array([1, 3])),
    "slice, array, array": lambda mx: (slice(None), mx.array([0, 2]), mx.array([1, 3])),
    "..., array": lambda mx: (..., mx.array([0, 5])),
    "None, array": lambda mx: (None, mx.array([0, 2])),
    "array, None, array": lambda mx: (mx.array([0, 2]), None, mx.array([1, 3])),
    "list": lambda mx: [0, 2],
    "list of lists": lambda mx: [[0, 2], [1, 1]],
    "mask": lambda mx: mx.array([True, False, True, True, False]),
    "True": lambda mx: True,
    "False": lambda mx: False,
    "float": lambda mx: 1.5,
    "string": lambda mx: "a",
    "float array": lambda mx: mx.array([0.0, 1.0]),
    "too many": lambda mx: (0, 0, 0, 0),
    "5 out of bounds": lambda mx: 5,
    "-6 out of bounds": lambda mx: -6,
    "two ellipses": lambda mx: (..., ...),
    "step of zero": lambda mx: slice(None, None, 0),
    "shapes that do not broadcast": lambda mx: (mx.array([0, 1]), mx.array([0, 1, 2])),
}

# In mlx these read undefined memory or kill the process; beyond_mlx/test_wrong_calls.py says what ours do.
UNDEFINED = {"5 out of bounds", "-6 out of bounds", "step of zero"}

SHAPE = (5, 4, 6)


@pytest.mark.parametrize("index", [i for i in INDICES if i not in UNDEFINED])
def test_get(tally: Tally, index: str) -> None:
    for dtype, layout in sample([(d, lay) for d in ALL for lay in LAYOUTS], 30, index):
        x = given(dtype, SHAPE, layout)
        tally.same(f"{dtype} {layout.name}", lambda mx, x: x[INDICES[index](mx)], x)


def set_and_return(mx: Any, x: Any, index: Any, value: Any) -> Any:
    before = x
    alias = mx.array(x)
    x[index] = value
    return x, before, alias


VALUES: dict[str, Any] = {
    "scalar": lambda mx, x: 7,
    "float": lambda mx, x: 2.5,
    "bool": lambda mx, x: True,
    "array of x": lambda mx, x: x + x,
    "row": lambda mx, x: mx.arange(1, x.shape[-1] + 1, dtype=mx.float32) if x.ndim else 1,
    "0-d array": lambda mx, x: mx.array(3),
    "with leading 1": lambda mx, x: x[None],
    "wrong shape": lambda mx, x: mx.zeros((9, 9, 9)),
    "list": lambda mx, x: [1, 2],
}


@pytest.mark.parametrize("index", [i for i in INDICES if i not in UNDEFINED])
def test_set(tally: Tally, index: str) -> None:
    picks = [(v, d, lay) for v in VALUES for d in ("float32", "int32", "bool_", "bfloat16")
             for lay in LAYOUTS]  # fmt: skip
    for value, dtype, layout in sample(picks, 60, index):
        if "repeats" in index and value in ("array of x", "row"):
            continue  # the order of writes to one place is not defined
        x = given(dtype, SHAPE, layout)

        def case(mx, x, value=value):
            i = INDICES[index](mx)
            target = x[i]
            return set_and_return(mx, x, i, VALUES[value](mx, target))

        tally.same(f"{value} {dtype} {layout.name}", case, x)


@pytest.mark.parametrize("method", ["add", "subtract", "multiply", "divide", "maximum", "minimum"])
@pytest.mark.parametrize("index", [i for i in INDICES if i not in UNDEFINED])
def test_at(tally: Tally, index: str, method: str) -> None:
    """x.at[index] applies every update, also of repeated indices."""
    for dtype in ("float32", "int32", "float16", "complex64", "uint8"):
        x = given(dtype, SHAPE, domain="few")
        for value in ("scalar", "array of x", "row"):

            def case(mx, x, value=value):
                i = INDICES[index](mx)
                return getattr(x.at[i], method)(VALUES[value](mx, x[i]))

            tally.same(f"{dtype} {value}", case, x, ulps=4)


def test_masks(tally: Tally) -> None:
    for dtype, layout in [(d, lay) for d in ALL for lay in LAYOUTS]:
        x = given(dtype, (4, 5), layout)

        def rows(mx, x):
            x[mx.array([True, False, True, False])] = 1
            return x

        def whole(mx, x):
            x[x == x] = 0
            return x

        def part(mx, x):
            x[mx.zeros((4, 5), mx.bool_)] = 1
            return x

        for name, case in (("rows", rows), ("whole", whole), ("part", part)):
            tally.same(f"{name} {dtype} {layout.name}", case, x)


@pytest.mark.parametrize("dtype", ALL)
def test_take_and_put(tally: Tally, dtype: str) -> None:
    for layout in LAYOUTS:
        x = given(dtype, (4, 6), layout)
        n = layout.name

        def index(mx):
            return mx.array([[0, 2, 1], [3, 3, -1]])

        tally.same(f"take flat {n}", lambda mx, x: mx.take(x, index(mx)), x)
        for axis in (0, 1, -1):
            tally.same(f"take {axis} {n}", lambda mx, x: mx.take(x, index(mx), axis), x)
            tally.same(f"take one {axis} {n}", lambda mx, x: mx.take(x, 2, axis), x)
        tally.same(
            f"take_along 1 {n}",
            lambda mx, x: mx.take_along_axis(x, mx.array([[0], [1], [2], [5]]), 1),
            x,
        )
        tally.same(
            f"take_along 0 {n}",
            lambda mx, x: mx.take_along_axis(x, mx.array([[3, 2, 1, 0, 0, 1]]), 0),
            x,
        )
        tally.same(
            f"take_along flat {n}",
            lambda mx, x: mx.take_along_axis(x, mx.array([7, 0, 23]), None),
            x,
        )

        def put(mx, x):
            return mx.put_along_axis(x, mx.array([[0], [1], [2], [5]]), mx.array(3), 1)

        tally.same(f"put_along {n}", put, x)


@pytest.mark.parametrize("dtype", ALL)
def test_slices_by_arrays(tally: Tally, dtype: str) -> None:
    for layout in LAYOUTS:
        x, u = given(dtype, (5, 6), layout), given(dtype, (2, 2), layout)
        n = layout.name
        tally.same(f"slice {n}", lambda mx, x: mx.slice(x, mx.array([1, 2]), (0, 1), (2, 3)), x)
        tally.same(f"slice one {n}", lambda mx, x: mx.slice(x, mx.array([4]), (1,), (5, 2)), x)
        tally.same(
            f"slice_update {n}",
            lambda mx, x, u: mx.slice_update(x, u, mx.array([1, 3]), (0, 1)),
            x,
            u,
        )
        # Along one axis of those that are cut, and by a value that is broadcast.
        tally.same(
            f"slice_update one {n}",
            lambda mx, x, u: mx.slice_update(x, u, mx.array([4]), (1,)),
            x,
            u,
        )
        tally.same(
            f"slice_update constant {n}",
            lambda mx, x: mx.slice_update(x, mx.ones((3, 6)), mx.array([2]), (0,)),
            x,
        )


@pytest.mark.parametrize("dtype", [d for d in ALL if "int" in d])
def test_slices_by_arrays_of_any_integers(tally: Tally, dtype: str) -> None:
    x = given("float32", (2, 9, 3))

    def at(mx, *starts):
        # Not next to each other, too.
        return mx.array([v for s in starts for v in (s, 100)]).astype(getattr(mx, dtype))[::2]

    tally.same("slice", lambda mx, x: mx.slice(x, at(mx, 5), (1,), (2, 2, 3)), x)
    tally.same("slices", lambda mx, x: mx.slice(x, at(mx, 1, 7, 0), (2, 1, 0), (1, 2, 2)), x)
    tally.same(
        "slice_update",
        lambda mx, x: mx.slice_update(x, x[:, :2] * 2, at(mx, 7), (1,)),
        x,
    )
    tally.same(
        "computed",
        lambda mx, x, i: mx.slice_update(x, x[:, :1] * 2, i[:1] + i[1:], (1,)),
        x,
        exactly([1, 2], dtype),
    )


def test_augmented_assignment_through_an_index(tally: Tally) -> None:
    x = given("float32", (4, 5))

    def case(mx, x):
        kept = mx.array(x)
        x[1] += 2
        x[:, 2] *= x[:, 0]
        x[mx.array([0, 0])] += 1
        return x, kept

    tally.same("x[i] += y", case, x)


MASKS = {
    (6,): [[True, False, True, True, False, False]],
    (3, 2): [[True, False, True], [[True, False], [False, True], [False, True]]],
    (2, 3, 2): [[True, False], [[True, False, False], [False, False, True]]],
    (): [True, False],
}


@pytest.mark.parametrize("shape", MASKS)
def test_masks_take_rows(tally: Tally, shape: tuple[int, ...]) -> None:
    """One update for all true positions, or one for each; too few are an error."""
    counts = range(1, 5)
    forms = [(), *((n,) for n in counts), *((n, m) for n in counts for m in (1, 2, 3))]
    forms += [(1, 2, 2), (1, 3, 2), (2, 3, 2), (1, 1, 1), (2, 1, 2), (1, 1, 3, 2)]
    x = given("float32", shape)
    for i, mask in enumerate(MASKS[shape]):
        for form in forms:
            updates = given("float32", form, key="updates")

            def case(mx, x, updates, mask=mask):
                x = x * 1
                x[mx.array(mask)] = updates
                return x

            tally.same(f"mask {i} of {shape} from {form}", case, x, updates)


def test_too_few_updates_of_a_mask_are_reported_when_evaluated() -> None:
    x, mask = um.zeros((4,)), um.array([True, True, False, True])
    y = x * 1
    y[mask] = um.array([1.0, 2.0])
    for made in (y, y + 1):
        with pytest.raises(RuntimeError, match=r"3 positions .* 2"):
            um.eval(made)
    z = x * 1
    z[mask] = um.zeros((0,))
    with pytest.raises(RuntimeError, match=r"3 positions .* 0"):
        um.eval(z)
    z = x * 1
    z[mask & False] = um.zeros((0,))
    assert z.tolist() == [0, 0, 0, 0]

    def filled(values: um.array) -> um.array:
        out = x * 1
        out[mask] = values * values
        return out.sum()

    assert um.grad(filled)(um.array([1.0, 2.0, 3.0])).tolist() == [2, 4, 6]
    rows = um.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    assert um.vmap(filled)(rows).tolist() == [14, 77]


@pytest.mark.parametrize("flag", [True, False])
def test_set_by_a_bool(tally: Tally, flag: bool) -> None:
    """True is all of the array, False nothing, in assignments alone."""
    values: dict[str, Any] = {
        "number": lambda mx: 5,
        "float": lambda mx: 2.5,
        "row": lambda mx: mx.array([1.0, 2.0, 3.0]),
        "with leading axes": lambda mx: mx.array([[[1.0, 2.0, 3.0]]]),
        "wrong shape": lambda mx: mx.zeros((4,)),
    }
    for shape in ((2, 3), (0, 3), (3,), ()):
        for dtype in ("float32", "int32", "bool_", "complex64"):
            x = given(dtype, shape)
            for name, value in values.items():
                if not shape and name != "number":
                    continue  # numbers alone fit
                tally.same(
                    f"{shape} {dtype} {name}",
                    lambda mx, x, value=value: set_and_return(mx, x, flag, value(mx))[0],
                    x,
                )
    x = given("float32", (2, 3))
    tally.same("get", lambda mx, x: x[flag], x)
    tally.same("in a tuple", lambda mx, x: set_and_return(mx, x, (flag, 0), 5), x)
    tally.same("at", lambda mx, x: x.at[flag].add(1), x)


class AsComplex:
    def __complex__(self) -> complex:
        return 1.5 + 2j

    def __float__(self) -> float:
        return 7.0


class AsFloat:
    def __float__(self) -> float:
        return 2.5


class AsIndex:
    def __index__(self) -> int:
        return 3


def test_set_to_what_converts_itself_to_a_number(tally: Tally) -> None:
    given_ = [AsComplex(), AsFloat(), AsIndex(), Decimal("1.5"), Fraction(1, 2)]
    for value in given_:
        for dtype in ("float32", "complex64", "int32", "uint8", "bool_", "float16"):
            x = given(dtype, (3, 2))
            name = f"{type(value).__name__} {dtype}"
            tally.same(name, lambda mx, x, v=value: set_and_return(mx, x, 1, v)[0], x)
            tally.same(
                f"{name} whole", lambda mx, x, v=value: set_and_return(mx, x, x == x, v)[0], x
            )
    x = given("float32", (3,))
    for value in given_:
        name = type(value).__name__
        tally.same(f"{name} at", lambda mx, x, v=value: x.at[0].add(v), x)
    for odd in ("1.5", None, object(), {}):
        tally.same(f"{odd!r}", lambda mx, x, odd=odd: set_and_return(mx, x, 0, odd), x)


def test_a_conversion_that_fails_says_why() -> None:
    class Fails:
        def __float__(self) -> float:
            raise ZeroDivisionError

    class Lies:
        def __complex__(self) -> Any:
            return 1.0

    x = um.zeros(2)
    with pytest.raises(ZeroDivisionError):
        x[0] = Fails()
    with pytest.raises(TypeError, match="__complex__"):
        x[0] = Lies()
    assert x.tolist() == [0, 0]


def test_index_arrays_on_empty_axes(tally: Tally) -> None:
    """A result without elements needs none of the axis."""
    for name, index in {
        "rows of nothing": lambda mx: (slice(0, 0), mx.array([0, 0])),
        "a cut of no rows": lambda mx: (slice(-2, 0, 2), mx.array([[0], [7]])),
        "a row of no columns": lambda mx: (slice(0, 0), mx.array(0), 0),
        "nothing of nothing": lambda mx: (mx.array([], mx.int32), mx.array([], mx.int32)),
    }.items():
        tally.same(name, lambda mx, index=index: mx.zeros((3, 0, 2))[index(mx)])
