"""Generated cases that mlx does not survive."""

from __future__ import annotations

from .rows import Row, empty, empty_diagonal, nothing_selected, written, zeros

# Calls that mlx does not survive: a crash, a hang, or memory without end. Ours is judged by NumPy, or by a rule of its own
# (parity/judging.py), and must survive what neither has an answer to.
CRASHES: list[Row] = [
    Row(
        "all any sum prod mean var std array.all array.any array.sum array.prod array.mean array.var "
        "array.std count_nonzero median fast.rms_norm fast.layer_norm",
        "over no elements it may never return",
        empty,
    ),
    Row(
        "array.__setitem__ array.at.*",
        "an update of no elements by index arrays may end the process",
        nothing_selected,
    ),
    Row("linalg.*", "matrices without elements end the process", empty),
    Row("trace", "of no elements it never returns", empty_diagonal),
    Row(
        "array.reshape",
        "reshape() without a shape reads what is not there",
        written(r"reshape\((stream.*)?\)"),
    ),
    Row(
        "addmm",
        "with alpha of 0 it leaves the product out, and reads c as if it had the result's shape",
        written(r"alpha=0\b|\b[a-z], [a-z], [a-z], 0\b"),
    ),
    Row(
        "unflatten",
        "it divides by a size of 0 beside -1",
        written(r"[\[(][^\[\]()]*(-1[^\[\]()]*\b0\b|\b0\b[^\[\]()]*-1)[^\[\]()]*[\])]"),
    ),
    Row("conv*", "it divides by a number of groups of 0", written(r"groups=0|, 0\)$")),
    Row(
        "slice slice_update",
        "a slice that begins too late reads and writes what is behind the array",
        lambda case: case.bent,
    ),
    Row(
        "array.__format__",
        "a format that its kind of number does not have ends the process",
        written("'[sdxe]'"),
    ),
    Row(
        "divmod floor_divide remainder array.__*floordiv__ array.__*mod__",
        "an integer divided by zero may end the process",
        zeros,
    ),
]
