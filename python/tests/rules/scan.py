"""Scans and differences."""

from .case import Case, case, real
from .reduce import POSITIVE

CASES: list[Case] = [
    case("cumsum", lambda um, x: um.cumsum(x, 1), POSITIVE),
    case("cumsum, from the end", lambda um, x: um.cumsum(x, 1, reverse=True, inclusive=False), POSITIVE),
    case("cumprod", lambda um, x: um.cumprod(x, 1), POSITIVE),
    case("cummax", lambda um, x: um.cummax(x, 1), POSITIVE),
    case("cummin", lambda um, x: um.cummin(x, 1, reverse=True), POSITIVE),
    case("logcumsumexp", lambda um, x: um.logcumsumexp(x, 1), POSITIVE),
    case("diff", lambda um, x: um.diff(x, 2), real(3, 4)),
]  # fmt: skip
