"""What a case is, and how it says what it found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ultramarine_dlpack_check.target import Target

# Where rules come from.
HEADER = "dlpack.h"
PYTHON = "DLPack's Python specification"
ARRAY_API = "array API"
EXCHANGE = "dlpack.h, C exchange API"
OURS = "Ultramarine's design"


class Failed(Exception):
    """The library did not do what the rule says; the text is what came."""


class NotApplicable(Exception):
    """The library does not have the feature."""


class Skipped(Exception):
    """This machine does not have what the case needs."""


@dataclass(frozen=True)
class Case:
    """A rule, and the function that finds out whether a library follows it."""

    name: str
    rule: str
    source: str
    run: Callable[[Target], None]
    optional: bool
    seconds: float

    @property
    def group(self) -> str:
        return self.name.partition("/")[0]


CASES: dict[str, Case] = {}

Check = Callable[["Target"], None]


def case(
    name: str, rule: str, source: str, *, optional: bool | None = None, seconds: float = 60
) -> Callable[[Check], Check]:
    """Registers a case. Rules of ours are optional for others."""

    def register(run: Check) -> Check:
        if name in CASES:
            raise ValueError(f"two cases are called {name}")
        ours = source == OURS if optional is None else optional
        CASES[name] = Case(name, rule, source, run, ours, seconds)
        return run

    return register


def expect(true: object, came: str) -> None:
    """Fails with what came, unless it is true."""
    if not true:
        raise Failed(came)


def expect_equal(came: object, wanted: object, what: str) -> None:
    """Fails unless both are equal."""
    if came != wanted:
        raise Failed(f"{what}: {came}, not {wanted}")


def described(error: BaseException) -> str:
    """An exception in a line."""
    text = (str(error).strip().splitlines() or [""])[0]
    return f"{type(error).__name__}: {text[:160]}"


def expect_refusal(
    work: Callable[[], Any],
    what: str,
    *kinds: type[BaseException],
) -> BaseException:
    """The exception that the work raises, which is of all of the kinds; without its frames."""
    try:
        came = work()
    except (NotApplicable, Skipped, Failed):
        raise
    except Exception as error:
        for kind in kinds:
            if not isinstance(error, kind):
                raise Failed(f"{what}: not a {kind.__name__}: {described(error)}") from None
        return error.with_traceback(None)
    shown = type(came).__name__
    del came
    raise Failed(f"{what}: accepted ({shown})")
