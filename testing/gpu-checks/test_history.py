"""The JSON of a run, and its comparison with the device's last run, on made-up figures."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bench import compare, record
from bench.record import Figure

GPU = {"name": "NVIDIA Test 80GB", "driver": "580.1", "clocks": {"sm": 1980, "sm_max": 1980}}


def run_of(date: str, figures: list[Figure], **changes: object) -> dict:
    made = record.document(figures, GPU)
    return {**made, "commit": "abc", "date": date, "cpu": {"model": "x", "cores": 16}, **changes}


def figures(sort: float, matmul: float, tiny: float) -> list[Figure]:
    return [
        Figure("rows", "sort", "ultramarine", sort, "ms", on="gpu", limit=1.0),
        Figure("rows", "sort", "torch", 2 * sort, "ms", on="gpu"),
        Figure("matmul", "bfloat16 8192^3", "ultramarine", matmul, "TFLOP/s", on="gpu"),
        Figure("boundary", "tiny op", "ultramarine", tiny, "ns"),
    ]


def test_a_run_is_read_as_it_was_written(tmp_path: Path) -> None:
    made = record.document(figures(1.0, 700.0, 300.0), GPU, checks=[{"name": "kit", "a": {"b": 1}}])
    path = record.write(made, tmp_path)
    assert record.read(path) == json.loads(path.read_text()) == made
    assert record.figures(made) == figures(1.0, 700.0, 300.0)
    assert path.name.startswith("nvidia-test-80gb-2") and path.name.endswith(
        f"-{made['commit']}.json"
    )
    assert made["driver"] == "580.1" and made["clocks"]["sm"] == 1980
    assert made["cpu"]["cores"] >= 1 and made["cpu"]["model"]


def test_a_run_without_a_gpu_is_of_its_processor(tmp_path: Path) -> None:
    made = record.document([Figure("g", "n", "ultramarine", 1.0, "ms")])
    assert made["device"] == made["cpu"]["model"] and made["driver"] is None
    assert record.read(record.write(made, tmp_path)) == made
    empty = record.document([])
    assert record.read(record.write(empty, tmp_path)) == empty


def test_files_and_figures_that_are_none_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    path.write_text('{"device": "x"}')
    with pytest.raises(ValueError, match="without commit, date, cpu, results"):
        record.read(path)
    with pytest.raises(ValueError, match="unknown unit 'h'"):
        Figure("g", "n", "ultramarine", 1.0, "h")
    with pytest.raises(ValueError, match="on 'tpu'"):
        Figure("g", "n", "ultramarine", 1.0, "ms", on="tpu")


def test_only_drops_by_more_than_the_share_count() -> None:
    old = run_of("2026-01-01T00:00:00Z", figures(1.0, 700.0, 300.0))
    for now, worse in [
        (figures(1.04, 668.0, 314.0), []),
        (figures(1.06, 700.0, 300.0), ["sort"]),
        (figures(1.0, 650.0, 300.0), ["bfloat16 8192^3"]),
        (figures(1.2, 650.0, 330.0), ["sort", "tiny op", "bfloat16 8192^3"]),
        (figures(0.5, 900.0, 200.0), []),
    ]:
        pairs = compare.drops(old, run_of("2026-01-02T00:00:00Z", now))
        assert [new.name for _, new in pairs] == worse
    elsewhere = run_of(
        "2026-01-02T00:00:00Z", figures(1.2, 700.0, 900.0), cpu={"model": "y", "cores": 2}
    )
    assert [new.name for _, new in compare.drops(old, elsewhere)] == ["sort"]
    assert compare.drops(old, run_of("2026-01-02T00:00:00Z", figures(1.2, 700.0, 300.0)), 25) == []


def test_the_last_run_of_the_device_is_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    new = run_of("2026-01-03T00:00:00Z", figures(1.1, 700.0, 300.0))
    assert compare.report(new, tmp_path) == 0
    assert "no earlier run of NVIDIA Test 80GB" in capsys.readouterr().out
    record.write(run_of("2026-01-01T00:00:00Z", figures(1.1, 700.0, 300.0)), tmp_path)
    record.write(run_of("2026-01-02T00:00:00Z", figures(1.0, 700.0, 300.0)), tmp_path)
    # Neither another device's, nor a later one, nor itself.
    record.write(run_of("2026-01-02T12:00:00Z", figures(0.1, 9e3, 3.0), device="other"), tmp_path)
    record.write(run_of("2026-01-04T00:00:00Z", figures(0.1, 9e3, 3.0)), tmp_path)
    path = record.write(new, tmp_path)
    assert compare.report(new, tmp_path) == 1
    printed = capsys.readouterr().out.splitlines()
    assert (
        printed[0]
        == "1 figures dropped by more than 5 % since nvidia-test-80gb-20260102T000000Z-abc.json"
    )
    assert printed[1].startswith("DROPPED rows: sort (gpu)") and printed[1].endswith("10.0 % worse")
    words = [sys.executable, "-m", "bench.compare", str(path), "--history", str(tmp_path)]
    done = subprocess.run(words, cwd=record.ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == printed


def test_the_runner_records_the_figures_of_programs(tmp_path: Path) -> None:
    line = Figure("boundary", "tiny op", "ultramarine", 300.0, "ns", target=250.0, samples=4)
    program = tmp_path / "boundary"
    program.write_text(f"#!/bin/sh\ntest $1 = --json && echo '{json.dumps(line.to_json())}'\n")
    program.chmod(0o755)
    words = [
        sys.executable,
        "-m",
        "bench.run",
        "boundary",
        "elementwise",
        "--native",
        str(tmp_path),
    ]
    details = tmp_path / "details.json"
    details.write_text('{"checks": [1]}')
    words += ["--out", str(tmp_path / "out"), "--details", str(details)]
    done = subprocess.run(words, cwd=record.ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "tiny op" in done.stdout and "target 250: NOT MET" in done.stdout
    assert "SKIPPED elementwise" in done.stdout
    (path,) = (tmp_path / "out").glob("*.json")
    made = record.read(path)
    assert record.figures(made) == [line] and made["checks"] == [1] and made["failed"] == []
    program.write_text(program.read_text() + "exit 3\n")
    done = subprocess.run(words, cwd=record.ROOT, capture_output=True, text=True)
    assert done.returncode == 1 and "FAILED boundary: exit status 3" in done.stdout
