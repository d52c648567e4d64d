"""The DLPack conformance suite: Ultramarine passes all of it, and what is broken fails."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import broken_library
import pytest

from ultramarine_dlpack_check import report
from ultramarine_dlpack_check.case import CASES
from ultramarine_dlpack_check.runner import Result, Run, run

HERE = Path(__file__).resolve().parent
# Enough that a leak of a struct in each round is seen (ALLOWED in cases/lifetime.py).
LOOPS = 100_000
FEW = 3_000

# What each defect of the mock has to be caught by.
CAUGHT: dict[str, list[str]] = {
    "takes any major version": ["reject/major version 2"],
    "runs deleters twice": ["lifetime/import dropped, legacy", "valid/version 1.0"],
    "runs no deleters": ["lifetime/import dropped, versioned"],
    "leaves capsules unused": ["reject/capsule used twice"],
    "ignores strides": ["valid/transposed"],
    "ignores byte_offset": ["valid/byte_offset"],
    "ignores READ_ONLY": ["flags/read-only is not written"],
    "copies always": ["valid/zero copy", "copy/False imports in place"],
    "copies never": ["copy/True of a producer without the argument"],
    "asks with keywords only": ["valid/keywords refused"],
    "asks for no version": ["valid/max_version is asked for"],
    "asks for a stream": ["valid/no stream for the CPU"],
    "hides exceptions of producers": ["reject/producer raises BufferError"],
    "takes negative sizes": ["reject/negative size"],
    "takes any type code": ["reject/unknown type code", "reject/float6 of 8 bits"],
    "takes any device": ["reject/device type 99", "reject/Vulkan memory"],
    "needs strides": ["valid/strides NULL in legacy"],
    "reads one element too many": ["valid/reads no further"],
    "writes one element too many": ["valid/version 1.3"],
    "loses memory": ["lifetime/flat memory: imports"],
    "hangs without elements": ["valid/size 0, NULL data"],
    "changes types": ["types/int64 there and back"],
    "gives versions unasked": ["export/no arguments", "export/max_version (0, 8)"],
    "gives no versions": ["export/versions are offered"],
    "gives no strides": ["export/strides are there"],
    "gives wrong strides": ["export/view: transposed", "export/view: steps"],
    "does not keep its memory": ["lifetime/source first"],
    "gives copies without the flag": ["copy/True exports a copy"],
    "gives no copies": ["copy/a copy is free", "copy/True exports a copy in legacy"],
    "gives copies unasked": ["copy/None exports in place", "copy/False exports in place"],
    "ignores dl_device": ["copy/dl_device that is not there"],
    "takes unknown keywords": ["export/unknown keyword"],
    "forgets READ_ONLY": ["flags/read-only travels on", "flags/read-only through legacy"],
    "clears exceptions": ["lifetime/pending exception, capsule unused"],
    "leaks references": ["lifetime/references return"],
    "says another device": ["export/device"],
    "aborts at exit": ["lifetime/import held at exit", "lifetime/capsule held at exit"],
    "has a table that lies": ["exchange/version", "exchange/slots", "exchange/import"],
}


def messages(results: list[Result]) -> str:
    return "\n".join(f"{r.outcome}: {r.case}: {r.message}" for r in results)


@pytest.fixture
def mock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers find the mock."""
    path = os.environ.get("PYTHONPATH")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(HERE), *([path] if path else [])]))


def test_ultramarine_passes() -> None:
    done = run("ultramarine", loops=LOOPS)
    assert done.missing == ""
    assert len(done.results) == len(CASES) > 300
    assert done.failed(strict=True) == [], "\n" + messages(done.failed(strict=True))


def test_the_mock_is_right_without_a_defect(mock: None) -> None:
    done = run("broken_library", loops=FEW)
    assert done.missing == ""
    assert done.failed(strict=False) == [], "\n" + messages(done.failed(strict=False))


def test_every_defect_is_tried() -> None:
    assert set(CAUGHT) == broken_library.DEFECTS


@pytest.mark.parametrize("defect", CAUGHT)
def test_defects_are_caught(defect: str, mock: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BROKEN_LIBRARY", defect)
    limit = 5 if defect.startswith("hangs") else None
    done = run("broken_library", CAUGHT[defect], loops=FEW, limit=limit)
    bad = {r.case for r in done.failed(strict=False)} | {r.case for r in done.results if r.bad}
    missed = [name for name in CAUGHT[defect] if name not in bad]
    assert not missed, "\n" + messages(done.results)


def test_numpy_runs_all_cases(tmp_path: Path) -> None:
    file = tmp_path / "numpy.json"
    command = [sys.executable, "-m", "ultramarine_dlpack_check", "numpy", "--loops", str(FEW)]
    done = subprocess.run(
        [*command, "--json", str(file)], capture_output=True, text=True, timeout=600
    )
    (numpy,) = json.loads(file.read_text())
    outcomes = {r["case"]: r["outcome"] for r in numpy["results"]}
    assert set(outcomes) >= set(CASES)
    for name in CASES:
        assert f"\n{name} " in "\n" + done.stdout
    # What NumPy is known to do.
    assert outcomes["valid/version 1.3"] == outcomes["valid/zero copy"] == "pass"
    assert outcomes["flags/read-only is not written"] == "pass"
    assert outcomes["valid/bare capsule"] == "fail"
    assert outcomes["exchange/slots"] == "n.a."
    assert outcomes["threads/deleters do not wait for the interpreter"] == "fail"
    assert "numpy" in done.stdout.splitlines()[-1]


def test_crashes_are_results(mock: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BROKEN_LIBRARY", "takes any major version")
    done = run("broken_library", ["reject/major version 2", "valid/legacy"], loops=FEW)
    outcomes = {r.case: (r.outcome, r.message) for r in done.results}
    assert outcomes["reject/major version 2"] == ("crash", "SIGSEGV")
    assert outcomes["valid/legacy"] == ("pass", "")


def test_a_failed_import_is_reported() -> None:
    done = run("no_such_library_anywhere")
    assert "ModuleNotFoundError" in done.missing
    assert "cannot be judged" in report.totals(done)


def test_own_rules_count_for_this_library_only() -> None:
    ours = Result("valid/bare capsule", "fail", optional=True)
    assert Run("other", results=[ours]).failed(strict=False) == []
    assert Run("other", results=[ours]).failed(strict=True) == [ours]
    assert Run("ultramarine", results=[ours]).failed(strict=False) == [ours]


def test_reports() -> None:
    right, wrong = Result("valid/legacy", "pass"), Result("valid/legacy", "crash", "SIGSEGV")
    runs = [Run("one", "1.0", results=[right]), Run("other", "2.0", results=[wrong])]
    assert "crash (SIGSEGV)" in report.table(runs)
    assert "| valid/legacy | required |  | crash (SIGSEGV) |" in report.markdown(runs)
    assert json.loads(report.to_json(runs))[1]["results"][0]["outcome"] == "crash"
    assert "An unversioned capsule" in report.findings(runs[1])


def test_every_case_has_a_rule() -> None:
    for case in CASES.values():
        assert case.rule.endswith("."), case.name
        assert case.source, case.name
