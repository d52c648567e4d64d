"""Finding and loading backends: each test in an interpreter of its own, with real plugins."""

import json
from pathlib import Path

import pytest
from support.plugins import command, make, make_opaque, run


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with one backend that behaves."""
    return make(tmp_path_factory.mktemp("good")).parent


def test_load(good: Path) -> None:
    run(f"""
        path = "{good}/libultramarine-good.so"
        b = backends.load(path)
        assert (b.name, b.variant, b.version, b.score) == ("good", "", "1.2.3", 10)
        assert b.device_type == mx.gpu and b.devices == [mx.Device(mx.gpu, 0)]
        assert b.path == path and b.descriptions == ["good device"]
        assert backends.load(path) == b == backends.get(mx.gpu) == backends.get("good")
        assert backends.list() == [backends.get(mx.cpu), b]
        assert backends.device_count(mx.gpu) == 1 and backends.is_available(mx.gpu)

        x = mx.array([1.0, 2.0])
        y = mx.add(x, x, stream=mx.gpu)
        assert y.tolist() == [2.0, 4.0]
        counts = [c for c in backends.op_counts() if c.device == mx.gpu]
        assert [(c.backend, c.op, c.native, c.cpu) for c in counts] == [("good", "add", 1, 0)]
        backends.reset_op_counts()
        assert backends.op_counts() == []
    """)


@pytest.mark.parametrize(
    ("flags", "kind", "words"),
    [
        (None, "FileNotFoundError", ["no such file"]),
        ("text", "OSError", ["not a shared library", "text file", "-shared"]),
        ("-DON_INIT=extern void nowhere(void); nowhere()", "OSError", ["nowhere"]),
        ("-DINFO=.abi_major = 99,", "RuntimeError", ["99", "0."]),
        ("-DSCORE=0", "RuntimeError", ["score"]),
        ('-DON_INIT=return complain(error, 1, "on fire")', "RuntimeError", ["on fire"]),
    ],
)
def test_load_that_fails(tmp_path: Path, flags: str | None, kind: str, words: list[str]) -> None:
    path = tmp_path / "libultramarine-bad.so"
    if flags == "text":
        path.write_text("no library")
    elif flags is not None:
        make(tmp_path, "bad", flags)
    printed = run(f"""
        try:
            backends.load("{path}")
        except (OSError, RuntimeError) as error:
            print(type(error).__name__, error)
        assert (mx.ones(2) + 1).tolist() == [2, 2]
        line = backends.report().candidates[0]
        assert line.path == "{path}" and line.outcome != "loaded" and line.reason and line.remedy
    """)
    assert printed.startswith(kind + " "), printed
    assert [word for word in words if word not in printed] == []


def test_nothing_is_loaded_before_a_gpu_is_needed(good: Path) -> None:
    run(
        """
        mx.eval(mx.ones(3) + 1)
        assert len(backends.report()) == 0 and backends.report().directories == []
        assert mx.is_available(mx.gpu)
        assert [c.outcome for c in backends.report()] == ["loaded"]
        assert backends.get("good").devices == [mx.Device(mx.gpu, 0)]
        """,
        ULTRAMARINE_BACKEND_PATH=str(good),
    )


@pytest.mark.parametrize("need", ["mx.default_stream(mx.gpu)", "mx.add(1, 2, stream=mx.gpu)"])
def test_every_way_to_need_a_gpu(good: Path, need: str) -> None:
    run(f"mx.eval({need})", ULTRAMARINE_BACKEND_PATH=str(good))


def test_the_import_imports_little() -> None:
    run("""
        import sys
        found = {"json", "importlib.metadata", "argparse", "typing", "dataclasses"} & set(sys.modules)
        assert not found, found
    """)


def test_without_autoload(good: Path) -> None:
    run(
        """
        assert not mx.is_available(mx.gpu) and len(backends.report()) == 0
        try:
            mx.default_stream(mx.gpu)
        except ValueError as error:
            assert "gpu:0" in str(error) and "AUTOLOAD" in str(error), error
        else:
            assert False
        assert [b.name for b in backends.load_all()] == ["good"]
        assert mx.is_available(mx.gpu)
        """,
        ULTRAMARINE_BACKEND_PATH=str(good),
        ULTRAMARINE_BACKEND_AUTOLOAD="0",
    )


def test_filters(tmp_path: Path) -> None:
    make(tmp_path, "fast", "-DSCORE=30", "-DDEVICES=2")
    make(tmp_path, "slow", "-DSCORE=20")
    make(tmp_path, "slow-debug", "-DSCORE=5")
    make(tmp_path, "other")
    for options, loaded in {
        "": ["fast", "slow", "other"],
        "allowed='*w*'": ["slow"],
        "allowed=('fast', 'oth*')": ["fast", "other"],
        "blocked=['slow']": ["fast", "other"],
        "blocked='slow-*'": ["fast", "slow", "other"],
        "filter=lambda b: b.score < 25": ["slow", "other"],
        "filter=lambda b: b.variant": ["slow"],
        "filter=lambda b: b.device_type == mx.cpu": [],
        "allowed=[]": [],
    }.items():
        printed = run(
            f"""
            print([b.name for b in backends.load_all({options})])
            print([c.code for c in backends.report() if c.outcome != "loaded"])
            """,
            ULTRAMARINE_BACKEND_PATH=str(tmp_path),
        )
        assert printed.splitlines()[0] == str(loaded), options


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="the system shows no mappings")
def test_code_that_ran_stays_mapped(tmp_path: Path) -> None:
    """A constructor or a score may have left threads in it: of a loser, of what the filter did not take."""
    for variant in ("good", "good-slow"):
        make(tmp_path, variant, *(["-DSCORE=1"] if "slow" in variant else []))
    run(
        """
        def mapped():
            return {line.split("/")[-1].strip() for line in open("/proc/self/maps") if "good" in line}
        both = {"libultramarine-good.so", "libultramarine-good-slow.so"}
        assert backends.load_all(filter=lambda offer: False) == [] and mapped() == both
        assert [b.variant for b in backends.load_all()] == [""] and mapped() == both
        assert {c.code for c in backends.report() if c.outcome != "loaded"} == {"outscored"}
        """,
        ULTRAMARINE_BACKEND_PATH=str(tmp_path),
    )


def test_a_filter_sees_everything_and_may_raise(good: Path) -> None:
    run(f"""
        backends.set_search_paths(["{good}"])
        seen = []
        def look(offer):
            seen.append(offer)
            raise KeyError("mine")
        try:
            backends.load_all(filter=look)
        except KeyError as error:
            assert error.args == ("mine",)
        else:
            assert False
        assert len(seen) == 1 and isinstance(seen[0], backends.Offer)
        assert (seen[0].name, seen[0].version, seen[0].score) == ("good", "1.2.3", 10)
        assert seen[0].device_type == mx.gpu and seen[0].path.endswith("libultramarine-good.so")
        assert [c.code for c in backends.report()] == ["filter_failed"]
        assert backends.device_count(mx.gpu) == 0
        for wrong in ["[", "a**b"]:
            try:
                backends.load_all(allowed=wrong)
            except ValueError as error:
                assert wrong in str(error)
            else:
                assert False
        assert len(backends.load_all()) == 1
    """)


def test_search_paths(good: Path, tmp_path: Path) -> None:
    run(
        f"""
        assert backends.search_paths() == [("{good}", "ULTRAMARINE_BACKEND_PATH")]
        backends.set_search_paths(["{tmp_path}", "/"])
        assert [p for p, _ in backends.search_paths()] == ["{tmp_path}", "/"]
        backends.set_search_paths([])
        assert backends.search_paths() == [] and backends.load_all() == []
        backends.set_search_paths(None)
        assert [b.name for b in backends.load_all()] == ["good"]
        """,
        ULTRAMARINE_BACKEND_PATH=str(good),
    )
    beside = run("print([p for p, _ in backends.search_paths()])")
    assert "ultramarine/backends'" in beside


def test_load_best(tmp_path: Path) -> None:
    make(tmp_path, "twice", "-DSCORE=7", "-DON_INIT=return UM_ERROR")
    make(tmp_path, "twice-b", "-DSCORE=5")
    make(tmp_path, "never", "-DSCORE=0")
    run(
        """
        assert backends.load_best("twice").variant == "b"
        assert backends.load_best("twice").variant == "b"
        for name, words in {"never": "score", "nobody": "nobody"}.items():
            try:
                backends.load_best(name)
            except RuntimeError as error:
                assert words in str(error), error
            else:
                assert False
        try:
            backends.get("nobody")
        except ValueError as error:
            assert "twice" in str(error)
        """,
        ULTRAMARINE_BACKEND_PATH=str(tmp_path),
    )


def test_report(tmp_path: Path) -> None:
    make(tmp_path, "good")
    make(tmp_path, "bad", "-DINFO=.abi_major = 99,")
    printed = run(
        """
        backends.load_all()
        report = backends.report()
        bad, good = sorted(report, key=lambda c: c.name)
        assert len(report) == 2 and good.outcome == "loaded" and good.reason is None
        assert good.devices == ["gpu:0"] and good.winner and good.score == 10
        assert good.properties["version"] == "1.2.3" and good.milliseconds > 0
        assert (bad.outcome, bad.code, bad.stage) == ("rejected", "abi_version", "note")
        assert "99" in bad.reason and bad.remedy and bad.devices == []
        assert report.directories[0]["found"] == 2
        assert repr(report) == "Report(2 candidates, 1 loaded)"
        print(report)
        """,
        ULTRAMARINE_BACKEND_PATH=str(tmp_path),
    )
    for words in ["libultramarine-bad.so", "99", "remedy", "1.2.3", "gpu:0"]:
        assert words in printed


def test_command(tmp_path: Path) -> None:
    path = make(tmp_path, "good")
    bad = make(tmp_path, "bad", "-DSCORE=0")
    place = str(tmp_path)
    status, printed = command("backends", ULTRAMARINE_BACKEND_PATH=place)
    assert status == 0
    for words in ["cpu:0", "gpu:0", "good 1.2.3", str(path), str(bad), "why:", "remedy:"]:
        assert words in printed, printed
    for arguments in [["--json"], ["--json", place], ["--json", str(path), str(bad)]]:
        status, printed = command("backends", *arguments, ULTRAMARINE_BACKEND_PATH=place)
        assert status == (1 if str(bad) in arguments else 0)
        found = {c["name"]: c["outcome"] for c in json.loads(printed)["candidates"]}
        assert found == {"good": "loaded", "bad": "skipped"}
    assert command()[0] == 2 and command("nothing")[0] == 2


def test_threads_and_a_filter(tmp_path: Path) -> None:
    """A filter runs in Python while others want devices: no lock waits for the interpreter."""
    make(tmp_path, "slow", "-DON_INIT=struct timespec t = {0, 200000000}; nanosleep(&t, 0)")
    run(
        """
        import threading, time
        inside = threading.Event()

        def ask(offer):
            inside.set()
            time.sleep(0.2)
            return mx.ones(3).sum().item() == 3

        def use():
            inside.wait(20)
            while not mx.is_available(mx.gpu):
                backends.list(), backends.report(), mx.eval(mx.ones(10) * 2)

        threads = [threading.Thread(target=use, daemon=True) for _ in range(4)]
        threads.append(threading.Thread(target=lambda: backends.load_all(filter=ask), daemon=True))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
            assert not thread.is_alive()
        assert mx.add(mx.ones(2), 1, stream=mx.gpu).tolist() == [2, 2]
        """,
        ULTRAMARINE_BACKEND_PATH=str(tmp_path),
    )


def test_first_needs_of_many_threads(good: Path) -> None:
    """All threads wait for one load, and none holds the interpreter meanwhile."""
    run(
        """
        import threading
        gate = threading.Barrier(8)
        found = []

        def need():
            gate.wait()
            found.append(mx.add(mx.ones(2), 1, stream=mx.gpu).tolist())

        threads = [threading.Thread(target=need, daemon=True) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert found == [[2, 2]] * 8 and backends.device_count(mx.gpu) == 1
        """,
        ULTRAMARINE_BACKEND_PATH=str(good),
    )


def test_probing_costs_the_candidate_only(tmp_path: Path) -> None:
    make(tmp_path, "good")
    make(tmp_path, "crash", "-DON_LOAD=__builtin_trap()")
    make(tmp_path, "score", "-DON_SCORE=*(volatile int *)0 = 1")
    make(tmp_path, "leave", "-DON_INIT=exit(0)")
    for options, environment in {
        "probe=True": {},
        "": {"ULTRAMARINE_BACKEND_PROBE": "1"},
    }.items():
        run(
            f"""
            assert [b.name for b in backends.load_all({options})] == ["good"]
            codes = {{c.name: (c.stage, c.code) for c in backends.report() if c.code}}
            assert codes == dict.fromkeys(["crash", "score", "leave"], ("probe", "probe_crashed"))
            assert mx.add(mx.ones(2), 1, stream=mx.gpu).tolist() == [2, 2]
            """,
            ULTRAMARINE_BACKEND_PATH=str(tmp_path),
            XDG_CACHE_HOME=str(tmp_path / "cache"),
            **environment,
        )


def test_probing_gives_up_on_what_hangs(tmp_path: Path) -> None:
    make(tmp_path, "good")
    make(tmp_path, "hang", "-DON_INIT=extern unsigned sleep(unsigned); for (;;) sleep(1)")
    run(
        """
        for wrong in [0, -1, float("nan"), float("inf")]:
            try:
                backends.load_all(probe=True, probe_timeout=wrong)
                raise AssertionError(wrong)
            except ValueError as error:
                assert "probe_timeout" in str(error)
        assert [b.name for b in backends.load_all(probe=True, probe_timeout=5)] == ["good"]
        [hung] = [c for c in backends.report() if c.name == "hang"]
        assert (hung.stage, hung.code) == ("probe", "probe_hung"), hung
        """,
        ULTRAMARINE_BACKEND_PATH=str(tmp_path),
        XDG_CACHE_HOME=str(tmp_path / "cache"),
    )


def test_what_the_validation_layer_finds(good: Path) -> None:
    """Nothing, in a backend that keeps to the rules."""
    run(
        """
        assert backends.validation_findings() == 0
        assert mx.add(mx.ones(2), 1, stream=mx.gpu).tolist() == [2, 2]
        assert backends.validation_findings() == 0
        """,
        ULTRAMARINE_BACKEND_PATH=str(good),
        ULTRAMARINE_VALIDATE="1",
    )


def test_buffers_of_memory_without_an_address(tmp_path: Path) -> None:
    """NumPy reads a copy, which it cannot write to; the array stays what it is."""
    run(f"""
        import numpy as np
        backends.load("{make_opaque(tmp_path)}")
        x = mx.add(mx.array([[1.0, 2.0], [3.0, 4.0]]), 1, stream=mx.gpu)
        for view in [np.asarray(x), np.asarray(x.T).T, np.array(memoryview(x))]:
            assert view.tolist() == [[2, 3], [4, 5]]
        assert not np.asarray(x).flags.writeable
        copy = np.array(x)
        copy[0, 0] = 9
        assert mx.add(x, x, stream=mx.gpu).tolist() == [[4, 6], [8, 10]]
        assert bytes(x) == np.array([2, 3, 4, 5], np.float32).tobytes()
    """)


def test_headers_are_where_a_compiler_looks() -> None:
    printed = run("print(backends.include_dir())").strip()
    assert (Path(printed) / "ultramarine/backend.h").is_file()
