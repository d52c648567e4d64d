"""Drawing the arguments of a call: arrays, scalars, axes, keywords, and wrong ones.

A case is a piece of Python text over `mx` and a few arrays, so that what fails can be shown as
a line that anybody can run. Case number i of an entry depends on the entry's name and on i
alone: a longer run begins with the cases of a shorter one.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from support.harness import ALL, FLOATS, LAYOUTS, Input, Units, given

# Which shapes, and how often.
SHAPES: list[tuple[tuple[int, ...], int]] = [
    ((), 6),
    ((0,), 3),
    ((1,), 5),
    ((2,), 4),
    ((7,), 8),
    ((3, 0, 2), 2),
    ((0, 4), 1),
    ((1, 1), 2),
    ((4, 5), 14),
    ((5, 1), 4),
    ((3, 3), 8),
    ((2, 1, 3), 6),
    ((2, 3, 4), 12),
    ((1, 6, 2), 4),
    ((2, 3, 2, 2), 6),
    ((2, 1, 3, 1, 2), 2),
    ((130,), 2),
    ((37, 67), 1),
    ((3, 1025), 1),
]

# Python numbers as operands.
SCALARS = [
    "True",
    "False",
    "0",
    "1",
    "2",
    "3",
    "-1",
    "-3",
    "7",
    "0.5",
    "-1.25",
    "2.0",
    "1e10",
    "-0.0",
    "nan",
    "inf",
    "-inf",
    "2j",
    "(1-2j)",
]
BIG_INTEGERS = [
    "100",
    "200",
    "300",
    "-129",
    "40000",
    "70000",
    "2**31",
    "2**40",
    "-2**31-1",
    "2**63",
    "2**64",
    "-2**63",
]

# What a parameter does not want.
WRONG = (
    "None",
    "'a'",
    "1.5",
    "[1, 2]",
    "[]",
    "(0, 1)",
    "object()",
    "mx.float32",
    "{}",
    "True",
    "10**30",
    "mx.array([1.5, 2.5])",
    "mx.array(1)",
    "np.ones(2, np.float32)",
    "np.float32(1.5)",
    "np.int64(1)",
    "b'a'",
    "mx",
    "-1",
    "17",
)

STREAMS = (
    "mx.cpu",
    "mx.default_stream(mx.cpu)",
    "mx.Device(mx.cpu, 0)",
    "None",
    "mx.default_device()",
)
WRONG_STREAMS = ("'cpu'", "0", "mx.float32", "object()")


@dataclass(frozen=True)
class Case:
    """One call: the text, and the arrays that it names."""

    entry: Entry
    index: int
    code: str
    inputs: dict[str, Input]
    # Whether an argument was made wrong on purpose.
    bent: bool

    @property
    def name(self) -> str:
        return self.entry.name

    @property
    def dtypes(self) -> list[str]:
        return [i.dtype for i in self.inputs.values()]

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        return [i.shape for i in self.inputs.values()]

    def reproducer(self) -> str:
        """Lines that run in either library."""
        lines = [f"{name} = {given.source()}" for name, given in self.inputs.items()]
        text = "; ".join([*lines, *self.code.split("\n")])
        return text if len(text) < 2000 else f"{self.code}    # large: {self.how()}"

    def how(self) -> str:
        """The command that runs this one."""
        return f"python -m parity one {self.name} {self.index}"


@dataclass(frozen=True)
class Entry:
    """A name of the surface, how calls of it are drawn, and how results are compared."""

    name: str
    draw: Callable[[Gen], str]
    # Units in the last place that results may be apart, of each value or of `scale`.
    ulps: Units = 0
    scale: str | Callable[[Case], float] = "each"
    # NumPy's answer in float64 decides where the libraries differ in values.
    by_numpy: bool = False
    weight: float = 1.0
    # What in the results is compared; None: all of it.
    view: str = ""

    def case(self, index: int) -> Case:
        g = Gen(self, index)
        code = self.draw(g)
        return Case(self, index, code, g.inputs, g.bent)


@dataclass
class Gen:
    """Source of random choices for the drawing functions of the table."""

    entry: Entry
    index: int
    inputs: dict[str, Input] = field(default_factory=dict)
    bent: bool = False

    def __post_init__(self) -> None:
        self.r = random.Random(f"{self.entry.name}/{self.index}")

    # --- choices ---

    def chance(self, p: float) -> bool:
        return self.r.random() < p

    def of(self, *choices: Any) -> Any:
        return self.r.choice(choices)

    def maybe(self, p: float, *choices: Any) -> Any:
        """One of the choices, or None, which leaves the argument out."""
        return self.of(*choices) if self.chance(p) else None

    # --- arrays ---

    def shape(self, low: int = 0, high: int = 9, small: bool = False) -> tuple[int, ...]:
        fit = [
            (s, w)
            for s, w in SHAPES
            if low <= len(s) <= high and not (small and math.prod(s) > 200)
        ]
        return self.r.choices([s for s, _ in fit], [w for _, w in fit])[0]

    def arr(
        self,
        dtypes: Sequence[str] = ALL,
        shape: tuple[int, ...] | None = None,
        domain: str | Sequence[str] = "any",
        specials: float = 0.15,
        small: bool = False,
        low: int = 0,
    ) -> str:
        """The name of a new array."""
        name = "xyzuvw"[len(self.inputs)] if len(self.inputs) < 6 else f"a{len(self.inputs)}"
        if shape is None:
            shape = self.shape(low, small=small)
        layout = self.r.choice(LAYOUTS) if shape and self.chance(0.6) else LAYOUTS[0]
        self.inputs[name] = given(
            self.of(*dtypes),
            shape,
            layout,
            domain if isinstance(domain, str) else self.of(*domain),
            self.chance(specials),
            self.r.randrange(1000),
        )
        return name

    def rank(self, name: str) -> int:
        return len(self.inputs[name].shape)

    def size(self, name: str) -> tuple[int, ...]:
        return self.inputs[name].shape

    def dtype_of(self, name: str) -> str:
        return self.inputs[name].dtype

    def partner(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """A shape that broadcasts with this one; now and then one that does not."""
        if self.chance(0.05):
            return self.shape(small=True)
        out = [1 if self.chance(0.2) else n for n in shape]
        if self.chance(0.2):
            out = out[self.r.randrange(len(out) + 1) :]
        if self.chance(0.1) and len(out) < 5:
            out = [self.of(1, 2, 3), *out]
        # Where the first has a 1, more.
        out = [self.of(2, 3) if n == 1 and self.chance(0.3) else n for n in out]
        return tuple(out)

    def scalar(self, big: float = 0.1) -> str:
        return self.of(*BIG_INTEGERS) if self.chance(big) else self.of(*SCALARS)

    def few(self, dtypes: Sequence[str] = ALL, **how: Any) -> str:
        return self.arr(dtypes, domain="few", specials=0, **how)

    # --- other arguments ---

    def axis(self, name: str, beyond: float = 0.05) -> str:
        n = self.rank(name)
        if n == 0 or self.chance(beyond):
            return str(self.of(n, -n - 1, 9, -9, 0))
        return str(self.r.randrange(-n, n))

    def axes(self, name: str) -> str:
        """One axis, several as tuple or list, none of them, or None."""
        n = self.rank(name)
        how = self.r.random()
        if how < 0.4:
            return self.axis(name)
        if how < 0.5:
            return "None"
        if how < 0.55:
            return self.of("()", "[]")
        count = self.r.randrange(1, n + 1) if n else 1
        picked = self.r.sample(range(n), count) if n else [0]
        if self.chance(0.06):
            picked.append(self.of(picked[0], n, -n - 1))
        picked = [a - n if self.chance(0.3) else a for a in picked]
        return repr(tuple(picked)) if self.chance(0.6) else repr(picked)

    def dtype(self, dtypes: Sequence[str] = ALL) -> str:
        return f"mx.{self.of(*dtypes)}"

    def flag(self) -> str:
        return self.of("True", "False")

    def number(self, *choices: int) -> str:
        return str(self.of(*choices))

    # --- the call ---

    def call(
        self,
        args: Sequence[str],
        pos: Sequence[tuple[str, str | None]] = (),
        kw: Sequence[tuple[str, str | None]] = (),
        stream: str = "keyword",
        target: str | None = None,
        bend: float = 0.05,
    ) -> str:
        """The call of the entry with `args`; options (`pos`: also by position) that are None are left out.

        A method's first argument is what it is called on.
        """
        args = list(args)
        name = self.entry.name
        if target is None:
            if name.startswith("array."):
                target = f"{args.pop(0)}.{name.removeprefix('array.')}"
            else:
                target = f"mx.{name}"
        named = [(k, v) for k, v in kw if v is not None]
        by_place = self.chance(0.35)
        for k, v in pos:
            if v is None:
                by_place = False
            elif by_place:
                args.append(v)
            else:
                named.append((k, v))
        if stream and self.chance(0.06):
            value = self.of(*STREAMS) if self.chance(0.9) else self.of(*WRONG_STREAMS)
            if stream == "positional" and not named and len(args) and self.chance(0.5):
                args.append(value)
            else:
                named.append(("stream", value))
        if self.chance(bend):
            self.bent = True
            self.bend(args, named)
        return f"{target}({', '.join([*args, *(f'{k}={v}' for k, v in named)])})"

    def bend(self, args: list[str], named: list[tuple[str, str]]) -> None:
        """Makes a call wrong, most likely."""
        how = self.r.random()
        if how < 0.55 and (args or named):
            i = self.r.randrange(len(args) + len(named))
            wrong = self.of(*WRONG)
            if i < len(args):
                args[i] = wrong
            else:
                named[i - len(args)] = (named[i - len(args)][0], wrong)
        elif how < 0.65:
            named.append(("nonsense", "1"))
        elif how < 0.8 and args:
            args.pop(self.r.randrange(len(args)))
        elif how < 0.9:
            args.append(self.of(*WRONG))
        else:
            args.insert(0, self.of(*WRONG))


def floats(g: Gen) -> str:
    """A dtype of floats."""
    return g.dtype(FLOATS)


def e(name: str, draw, weight: float = 1.0, **how) -> Entry:
    """An entry of a table."""
    return Entry(name, draw, weight=weight, **how)
