"""The table of special values of functions of complex numbers that the conformance kit has, too."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from support.paths import ROOT

TABLE = ROOT / "crates/ultramarine-conform/src/cases/complex_special.txt"

# Positive finite numbers that stand for those in the standard's table.
FINITE = [1.0, 2.5]

# Functions that are computed as another function of iz; the flag tells whether the result is
# multiplied by -i.
TURNED = {
    "sin": ("sinh", True),
    "cos": ("cosh", False),
    "tan": ("tanh", True),
    "arcsin": ("arcsinh", True),
    "arctan": ("arctanh", True),
}
BASES = {"log2": math.log(2), "log10": math.log(10)}
ANGLES = {"pi": math.pi, "pi/2": math.pi / 2, "pi/4": math.pi / 4, "3pi/4": 3 * math.pi / 4}


@dataclass(frozen=True)
class Part:
    value: float
    # Both signs are correct.
    any_sign: bool = False

    def times(self, factor: float) -> Part:
        return replace(self, value=self.value * factor)

    def matches(self, got: float) -> bool:
        if math.isnan(self.value) or math.isnan(got):
            return math.isnan(self.value) and math.isnan(got)
        near = math.isclose(abs(self.value), abs(got), rel_tol=1e-6)
        return near and (self.any_sign or math.copysign(1, self.value) == math.copysign(1, got))


@dataclass(frozen=True)
class Row:
    x: float
    y: float
    re: Part
    im: Part

    def conjugated(self) -> Row:
        return Row(self.x, -self.y, self.re, self.im.times(-1))

    def negated(self, sign: int) -> Row:
        return Row(-self.x, -self.y, self.re.times(sign), self.im.times(sign))


def _operands(text: str) -> list[float]:
    found: list[float] = []
    for word in text.split(","):
        sign = -1 if word == "-f" else 1
        found += (
            [sign * f for f in FINITE]
            if word.endswith("f") and word in ("f", "-f")
            else [float(word)]
        )
    return found


def _part(text: str, y: float) -> Part:
    any_sign, text = text.startswith("?"), text.removeprefix("?")
    for word, function in [
        ("cos", lambda: math.cos(y)),
        ("sin2", lambda: math.sin(2 * y)),
        ("sin", lambda: math.sin(y)),
    ]:
        if text.endswith(word):
            return Part(math.copysign(float(text.removesuffix(word)), function()), any_sign)
    return Part(ANGLES[text] if text in ANGLES else float(text), any_sign)


def _symmetric(row: Row, symmetry: str) -> list[Row]:
    if symmetry == "asymmetric":
        return [row]
    both = [row, row.conjugated()]
    if symmetry == "conjugate":
        return both
    other = row.negated({"odd": -1, "even": 1}[symmetry])
    return [*both, other, other.conjugated()]


def _section(name: str) -> Iterator[Row]:
    symmetry = ""
    for line in TABLE.read_text().splitlines():
        if line.startswith("["):
            section, _, kind = line.strip("[]").partition(" ")
            symmetry = kind if section == name else ""
        elif line and not line.startswith("#") and symmetry:
            xs, ys, re, im = line.split()
            for x in _operands(xs):
                for y in _operands(ys):
                    yield from _symmetric(Row(x, y, _part(re, y), _part(im, y)), symmetry)


def rows(name: str) -> list[Row]:
    """The rows of a function by its name in the core."""
    if name in BASES:
        scale = 1 / BASES[name]
        return [Row(r.x, r.y, r.re.times(scale), r.im.times(scale)) for r in _section("log")]
    if name == "expm1":
        return _less_one()
    if name not in TURNED:
        return list(_section(name))
    of, back = TURNED[name]
    if back:
        return [Row(r.y, -r.x, r.im, r.re.times(-1)) for r in _section(of)]
    return [Row(r.y, -r.x, r.re, r.im) for r in _section(of)]


def _less_one() -> list[Row]:
    """The rows of the exponential less one."""

    def less(part: Part) -> Part:
        return Part(part.value - 1, part.any_sign and math.isinf(part.value))

    return [Row(r.x, r.y, less(r.re), r.im) for r in _section("exp")]


NAMES = [
    *[
        "exp",
        "expm1",
        "log",
        "log1p",
        "log2",
        "log10",
        "sqrt",
        "sign",
        "sin",
        "cos",
        "tan",
        "sinh",
        "cosh",
    ],
    *["tanh", "arcsin", "arccos", "arctan", "arcsinh", "arccosh", "arctanh"],
]
