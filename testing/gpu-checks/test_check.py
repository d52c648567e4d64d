"""check.py without a GPU: parts that pass, fail, hang and are skipped; what is kept; how it refuses to run."""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import check
import pytest
import steps
from check import FAILED, PASSED, SKIPPED, Runner
from steps import Part

from bench import record


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    return Runner(tmp_path, {"PATH": "", "SHARED": "1"}, time.monotonic() + 60)


def test_parts_pass_fail_hang_and_are_skipped(
    runner: Runner, capsys: pytest.CaptureFixture
) -> None:
    show = "import os; print(os.environ['SHARED'], os.environ.get('OWN'))"
    parts = {
        "right": (Part("right", python(show), 20, env=(("OWN", "2"),)), PASSED),
        "wrong": (Part("wrong", python("print('a reason'); raise SystemExit(3)"), 20), FAILED),
        "hung": (Part("hung", python("import time; time.sleep(50)"), 1), FAILED),
        "absent": (Part("absent", ["/nowhere/at/all"], 20), FAILED),
        "alone": (Part("alone", python(""), 20, ("no_such_module",)), SKIPPED),
        "needed": (Part("needed", python(""), 20, ("no_such_module",), required=True), FAILED),
    }
    states = {name: runner.run(part).state for name, (part, _) in parts.items()}
    assert states == {name: state for name, (_, state) in parts.items()}
    printed = capsys.readouterr().out
    for piece in [
        "1 2",
        "exit status 3",
        "a reason",
        "stopped after 1 s",
        "without no_such_module",
    ]:
        assert piece in printed
    log = runner.log.read_text()
    assert log.count("== ") == len(parts) and "a reason" in log


def test_lanes_run_side_by_side_and_fail_together(runner: Runner, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    wait = f"import pathlib, time\nwhile not pathlib.Path({str(mark)!r}).exists(): time.sleep(0.01)"
    first, second = (
        Part("first", python(wait), 20),
        Part("second", python(f"open({str(mark)!r}, 'w')"), 20),
    )
    assert runner.run_lanes([[first], [second]])
    assert not runner.run_lanes([[first], [Part("third", python("1 / 0"), 20)]])


def test_no_part_begins_when_no_time_is_left(tmp_path: Path) -> None:
    late = Runner(tmp_path, {}, time.monotonic())
    assert late.run(Part("late", python(""), 20)).text == "not begun: no time was left"


def test_figures_wait_for_correctness(
    runner: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    def lanes(code: str, name: str):
        return lambda out: [[Part(name, python(code), 20)]]

    details = "import json, sys; print(json.load(open(sys.argv[sys.argv.index('--details') + 1])))"
    right = {
        "correctness": steps.Step("", 1, lanes("", "kit")),
        "figures": steps.Step("", 1, lanes(details, "figures")),
    }
    monkeypatch.setattr(check, "STEPS", right)
    assert check.run_steps(["correctness", "figures"], runner, tmp_path) == []
    assert "'name': 'kit', 'state': 'passed'" in capsys.readouterr().out
    wrong = {**right, "correctness": steps.Step("", 1, lanes("1 / 0", "kit"))}
    monkeypatch.setattr(check, "STEPS", wrong)
    assert check.run_steps(["correctness", "figures"], runner, tmp_path) == ["correctness"]
    assert "SKIPPED  figures" in capsys.readouterr().out


def test_only_figures_of_correct_runs_are_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    out, history = tmp_path / "out", tmp_path / "history"
    path = record.write(record.document([record.Figure("g", "n", "ultramarine", 1.0, "ms")]), out)
    check.keep(out, history, {path}, True)
    assert capsys.readouterr().out == ""
    check.keep(out, history, set(), False)
    assert "not kept" in capsys.readouterr().out and not history.exists()
    check.keep(out, history, set(), True)
    assert (history / path.name).read_text() == path.read_text()


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, str(steps.HERE / "check.py"), *arguments]
    return subprocess.run(words, capture_output=True, text=True)


def test_help_lists_steps_and_minutes() -> None:
    printed = run("--help").stdout
    for name, step in steps.STEPS.items():
        assert f"{name:14} {step.minutes:7g}" in printed
    assert sum(step.minutes for step in steps.STEPS.values() if step.usual) < 8


def test_a_dry_run_prints_the_commands() -> None:
    printed = run("--dry-run").stdout
    assert (
        "-m ops --backend=" in printed
        and "--strict-for=cuda" in printed
        and "bench.run gpu" in printed
    )
    assert (
        "endurance" not in printed and "endurance.py 100000" in run("--dry-run", "endurance").stdout
    )
    assert run("--dry-run", "kit").stdout.startswith("kit (at most")


def test_commands_name_files_that_exist() -> None:
    for step in steps.STEPS.values():
        for part in (part for lane in step.lanes(Path("out")) for part in lane):
            files = [Path(word) for word in part.command if word.startswith(str(steps.ROOT))]
            files = [file for file in files if steps.BUNDLE not in file.parents]
            assert all(file.exists() for file in files), files


def test_programs_are_unpacked_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(steps, "BUNDLE", tmp_path)
    steps.unpack_programs()
    program = tmp_path / "bin" / "program"
    for content in ("first", "second"):
        with tarfile.open(tmp_path / "programs.tar.gz", "w:gz") as archive:
            entry = tarfile.TarInfo("bin/program")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content.encode()))
        steps.unpack_programs()
        assert program.read_text() == content
        program.write_text("changed")
        steps.unpack_programs()
        assert program.read_text() == "changed"


def test_it_refuses_unknown_steps_and_missing_bundles(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    done = run("nonsense")
    assert done.returncode == 2 and "no step nonsense" in done.stdout
    monkeypatch.setattr(check, "PLUGIN", tmp_path / "missing.so")
    monkeypatch.setattr(sys, "argv", ["check.py", "--out", str(tmp_path / "out")])
    assert check.main() == 2


def test_it_refuses_a_machine_without_a_gpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    package = tmp_path / "site" / "ultramarine"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("gpu = 0\ndef is_available(device): return False\n")
    (package / "__main__.py").write_text("print('cuda: score 0, no driver')\n")
    plugin = tmp_path / "plugin.so"
    plugin.touch()
    monkeypatch.setattr(check, "PLUGIN", plugin)
    monkeypatch.setattr(steps, "BUNDLE", tmp_path)
    monkeypatch.setattr(sys, "argv", ["check.py", "--out", str(tmp_path / "out")])
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert check.main() == 2
    printed = capsys.readouterr().out
    assert "no GPU" in printed and "cuda: score 0, no driver" in printed
