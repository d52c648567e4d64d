"""Generated calls of the whole surface, here and in mlx.

A fixed sample runs by default, and in a full run a fresh one. ULTRAMARINE_PARITY_CASES=100000 runs that many,
ULTRAMARINE_PARITY_SEED=1 the fresh sample of that seed.
"""

import os
import secrets
import sys
from collections import Counter
from dataclasses import dataclass

import pytest
from support.differences import SIGNATURES
from support.harness import FULL
from support.paths import TOOLS

from parity import running, sampling, signatures, surface, table
from parity.crashes import CRASHES
from parity.purpose import PARITY

CASES = int(os.environ.get("ULTRAMARINE_PARITY_CASES", "6000"))

sys.path.insert(0, str(TOOLS))


# Cases of the page are numbered from 0; fresh samples begin far beyond.
FRESH = 1_000_000


def seed() -> int | None:
    """The seed of a fresh sample; None for the fixed one."""
    given = os.environ.get("ULTRAMARINE_PARITY_SEED")
    if given is not None:
        return int(given)
    return 1 + secrets.randbelow(10**6) if FULL else None


@dataclass(frozen=True)
class Sample:
    """A run, and whether its cases are the first ones, which are among the page's."""

    outcome: running.Outcome
    seed: int | None

    def how(self) -> str:
        return (
            "" if self.seed is None else f"ULTRAMARINE_PARITY_SEED={self.seed} runs this sample\n"
        )


@pytest.fixture(scope="module")
def sample() -> Sample:
    """The sample that the tests share."""
    fresh = seed()
    if fresh is not None:
        print(f"ULTRAMARINE_PARITY_SEED={fresh}")
    return Sample(running.run(CASES, first=FRESH * (fresh or 0)), fresh)


def test_generated_cases_agree_with_mlx(sample: Sample) -> None:
    outcome = sample.outcome
    assert outcome.total >= CASES * 0.9
    if outcome.wrong:
        pytest.fail(sample.how() + outcome.report(), pytrace=False)


def test_counts_of_the_page_are_those_of_the_sample(sample: Sample) -> None:
    import parity_page

    # One kind: where mlx rounds otherwise than NumPy depends on the processor.
    right = {"same", "numpy"}
    kinds = ("right", *(c for c in parity_page.COLUMNS if c not in right))

    def merged(counts: dict[str, int]) -> Counter[str]:
        others = {kind: counts[kind] for kind in kinds[1:]}
        return Counter(right=sum(counts[kind] for kind in right), **others)

    page = {
        name: tuple(merged(dict(zip(parity_page.COLUMNS, numbers)))[kind] for kind in kinds)
        for name, numbers in parity_page.counts_of_page().items()
    }
    found = {name: merged(counts) for name, counts in sample.outcome.counts.items()}
    wrong = sampling.disagreements(page, found, kinds, part=sample.seed is None)
    told = "\n".join(wrong)
    if told:
        remedy = "if that is meant: PYTHONPATH=python python python/tools/parity_page.py 100000"
        pytest.fail(f"{sample.how()}{told}\n{remedy}", pytrace=False)


KINDS = ("same", "error")


@pytest.mark.parametrize("part", [True, False])
@pytest.mark.parametrize(
    "found", [(0, 30), (9, 21)], ids=["none of the usual", "too few of the usual"]
)
def test_a_page_with_other_counts_is_found_out(found: tuple[int, int], part: bool) -> None:
    counted = {"f": Counter(dict(zip(KINDS, found)))}
    assert [*sampling.disagreements({"f": (290, 10)}, counted, KINDS, part)]
    assert not [
        *sampling.disagreements({"f": (90, 210)}, {"f": Counter(same=9, error=21)}, KINDS, part)
    ]


def test_a_fixed_sample_is_a_part_of_the_page() -> None:
    one = {"f": Counter(same=29, error=1)}
    assert [*sampling.disagreements({"f": (300, 0)}, one, KINDS, part=True)]
    assert not [*sampling.disagreements({"f": (300, 0)}, one, KINDS, part=False)]
    assert [*sampling.disagreements({"f": (20, 0)}, one, KINDS, part=True)]


def test_many_small_deviations_are_one_large_one() -> None:
    pages = {f"f{i}": (200, 100) for i in range(100)}
    counted = {name: Counter(same=12) for name in pages}
    told = [*sampling.disagreements(pages, counted, KINDS, part=True)]
    assert told and all(line.startswith("all names") for line in told)


def test_every_name_of_mlx_is_in_the_table() -> None:
    assert surface.unlisted() == []


def test_names_that_are_left_for_later_are_not_there_yet() -> None:
    assert [n for n in surface.LATER if table.present(n)] == []


@pytest.mark.parametrize("name", signatures.names())
def test_parameters_are_those_that_mlx_documents(name: str) -> None:
    difference = signatures.difference(name)
    assert not difference or name in SIGNATURES, difference


def test_cases_depend_on_name_and_number_alone() -> None:
    entry = next(e for e in table.TABLE if e.name == "take")
    once, again = entry.case(17), entry.case(17)
    assert once.reproducer() == again.reproducer()
    assert len({entry.case(i).reproducer() for i in range(50)}) > 40


def test_reasons_have_names() -> None:
    names = {e.name for e in table.TABLE}
    for row in [*PARITY, *CRASHES]:
        unknown = [n for n in row.names.split() if "*" not in n and n not in names]
        assert unknown == [], row.reason


def test_the_page_is_what_the_table_says() -> None:
    """Names, presence, reasons and sums; the counts are the sample's to judge."""
    import parity_page

    assert parity_page.PAGE.read_text() == parity_page.page(parity_page.counts_of_page()), (
        "docs/parity.md is out of date: PYTHONPATH=python python python/tools/parity_page.py"
    )
