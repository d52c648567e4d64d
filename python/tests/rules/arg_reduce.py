"""Indices of extrema."""

from .case import Case, flat
from .reduce import POSITIVE

CASES: list[Case] = [
    flat("argmax", lambda um, x: um.argmax(x, 1), POSITIVE),
    flat("argmin", lambda um, x: um.argmin(x, 0, keepdims=True), POSITIVE),
]  # fmt: skip
