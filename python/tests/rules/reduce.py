"""Reductions."""

from .case import Case, case, flat, real, truth

POSITIVE = real(2, 3, 2, low=0.3, high=1.5)


CASES: list[Case] = [
    case("sum", lambda um, x: um.sum(x, (0, 2)), POSITIVE),
    case("sum, of all", lambda um, x: um.sum(x), POSITIVE),
    case("prod", lambda um, x: um.prod(x, 1, keepdims=True), POSITIVE),
    case("min", lambda um, x: um.min(x, 1), POSITIVE),
    case("max", lambda um, x: um.max(x, (0, 1), keepdims=True), POSITIVE),
    case("minmax", lambda um, x: um.minmax(x, 1), POSITIVE),
    case("mean", lambda um, x: um.mean(x, 1), POSITIVE),
    case("var", lambda um, x: um.var(x, 1, ddof=1), POSITIVE),
    case("std", lambda um, x: um.std(x, 1, keepdims=True), POSITIVE),
    case("median", lambda um, x: um.median(x, 0), real(5, 2)),
    case("logsumexp", lambda um, x: um.logsumexp(x, 1), POSITIVE),
    flat("all", lambda um, x: um.all(x, 1), truth(2, 3)),
    flat("any", lambda um, x: um.any(x, 0), truth(2, 3)),
    flat("count_nonzero", lambda um, x: um.count_nonzero(x, axis=1), truth(2, 3)),
]  # fmt: skip


EXEMPT = {
    "unique": "the shape of its result depends on values",
    "cumulative_sum": "the same function as cumsum",
    "cumulative_prod": "the same function as cumprod",
    "matrix_norm": "the same function as linalg.norm",
}
