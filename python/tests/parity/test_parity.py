"""Generated calls of the whole surface, here and in mlx.

A sample runs by default. ULTRAMARINE_PARITY_CASES=100000 runs that many.
"""

import os
import sys

import pytest
from support.differences import CRASHES, PARITY, SIGNATURES
from support.paths import TOOLS

from parity import running, signatures, surface, table

CASES = int(os.environ.get("ULTRAMARINE_PARITY_CASES", "6000"))

sys.path.insert(0, str(TOOLS))


def test_generated_cases_agree_with_mlx() -> None:
    outcome = running.run(CASES)
    assert outcome.total >= CASES * 0.9
    if outcome.wrong:
        pytest.fail(outcome.report(), pytrace=False)


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
    """Counts are those of the run that wrote the page; names, presence and reasons are checked."""
    import parity_page

    assert parity_page.PAGE.read_text() == parity_page.page(parity_page.counts_of_page()), (
        "docs/parity.md is out of date: PYTHONPATH=python python python/tools/parity_page.py"
    )
