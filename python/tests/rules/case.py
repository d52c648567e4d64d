"""What a row of the table is made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from support.harness import rng


@dataclass(frozen=True)
class Operand:
    """An argument: its shape, and what its elements are drawn from."""

    shape: tuple[int, ...]
    low: float
    high: float
    kind: str = "real"
    symmetric: bool = False

    def draw(self, rng: np.random.Generator, batch: tuple[int, ...] = ()) -> np.ndarray:
        shape = batch + self.shape
        if self.kind == "truth":
            return rng.integers(0, 2, shape).astype(bool)
        if self.kind == "whole":
            return rng.integers(int(self.low), int(self.high), shape).astype(np.int32)
        made = rng.uniform(self.low, self.high, shape)
        return made + np.swapaxes(made, -1, -2) if self.symmetric else made


def real(*shape: int, low: float = -1.0, high: float = 1.0, symmetric: bool = False) -> Operand:
    """Real numbers between two bounds, or a symmetric matrix of sums of two."""
    return Operand(shape, low, high, symmetric=symmetric)


def whole(*shape: int, low: int = 0, high: int = 8) -> Operand:
    """Integers (int32) from `low` to below `high`."""
    return Operand(shape, low, high, "whole")


def truth(*shape: int) -> Operand:
    """Booleans."""
    return Operand(shape, 0, 2, "truth")


@dataclass(frozen=True)
class Case:
    """A function with operands."""

    name: str
    function: Callable[..., Any]
    operands: tuple[Operand, ...]
    smooth: bool = True
    single: bool = False
    # What a rule that is known to be missing says; it has to fail so.
    no_vmap: str = ""

    @property
    def covers(self) -> str:
        """The public function that the case is about."""
        return self.name.split(",")[0]

    def rng(self) -> np.random.Generator:
        """The same numbers in each run."""
        return rng("rules", self.name)

    def __call__(self, um: Any, *arrays: Any) -> list[Any]:
        made = self.function(um, *arrays)
        return list(made) if isinstance(made, (list, tuple)) else [made]


def case(name: str, function: Callable[..., Any], *operands: Operand, **options: Any) -> Case:
    """A function that has derivatives at the operands."""
    return Case(name, function, operands, **options)


def flat(name: str, function: Callable[..., Any], *operands: Operand, **options: Any) -> Case:
    """A function without derivatives, or with none but zero."""
    return Case(name, function, operands, smooth=False, **options)


def parts(um: Any, array: Any) -> Any:
    """A complex array as a real one: real and imaginary parts."""
    return um.stack([um.real(array), um.imag(array)])
