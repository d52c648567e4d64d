"""Sorts and searches."""

from .case import Case, case, flat, real
from .reduce import POSITIVE

CASES: list[Case] = [
    case("sort", lambda um, x: um.sort(x, 1), POSITIVE),
    case("partition", lambda um, x: um.sort(um.partition(x, 1, 1), 1), POSITIVE),
    case("topk", lambda um, x: um.sort(um.topk(x, 2, 1), 1), POSITIVE),
    flat("argsort", lambda um, x: um.argsort(x, 1), POSITIVE),
    flat("argpartition", lambda um, x: um.argpartition(x, 1, 1)[:, 1], POSITIVE),
    flat("searchsorted", lambda um, x, v: um.searchsorted(um.sort(x), v), real(5), real(2, 3)),
]  # fmt: skip
