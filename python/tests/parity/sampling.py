"""Comparing a sample of cases with the counts that docs/parity.md has."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

# One right comparison in so many is refused; there are 3,000 a run.
ODDS = 1e8
# Standard deviations of a kind's sum over all names.
DEVIATIONS = 6.0


def chosen(n: int, k: int) -> float:
    """Logarithm of the binomial coefficient."""
    if not 0 <= k <= n:
        return -math.inf
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def chance(cases: int, hits: int, drawn: int, found: int) -> float:
    """Probability that `drawn` of `cases` cases, of which `hits` are of a kind, have as few or as many of it as
    `found` (hypergeometric)."""

    def probability(k: int) -> float:
        return math.exp(chosen(hits, k) + chosen(cases - hits, drawn - k) - chosen(cases, drawn))

    few = sum(probability(k) for k in range(found + 1))
    many = sum(probability(k) for k in range(found, min(hits, drawn) + 1))
    return min(few, many)


def disagreements(
    page: Mapping[str, Sequence[int]],
    sample: Mapping[str, Counter[str]],
    kinds: Sequence[str],
    part: bool,
) -> Iterator[str]:
    """Statements of the page that a sample speaks against; `part`: its cases are among the page's."""
    above = dict.fromkeys(kinds, 0.0)
    variance = dict.fromkeys(kinds, 0.0)
    for name in sorted(sample):
        counts = dict(zip(kinds, page.get(name, (0,) * len(kinds))))
        cases, drawn = sum(counts.values()), sum(sample[name][kind] for kind in kinds)
        if part and drawn > cases:
            yield f"{name}: {cases} cases on the page, {drawn} in its sample"
            continue
        for kind in kinds:
            hits, found = counts[kind], sample[name][kind]
            whole, marked = (cases, hits) if part else (cases + drawn, hits + found)
            told = f"{name}: {hits} of {cases} cases are `{kind}` on the page, {found} of {drawn} in the sample"
            impossible = part and (found > hits or drawn - found > cases - hits)
            if impossible or chance(whole, marked, drawn, found) < 1 / ODDS:
                yield told
            if whole > 1:
                share = marked / whole
                above[kind] += found - drawn * share
                variance[kind] += drawn * share * (1 - share) * (whole - drawn) / (whole - 1)
    for kind in kinds:
        if abs(above[kind]) > DEVIATIONS * math.sqrt(variance[kind]) + 1e-6:
            yield f"all names: {above[kind]:+.0f} cases of `{kind}` beyond what the page lets expect"
