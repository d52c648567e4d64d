"""Profiles: what evaluations ran, where, by which means, and for how long; as events, a table and a trace file."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path

import pytest
from support import plugins

# Head of every script: checks of what holds of all events of a profile.
HEAD = """
    import json, pathlib, threading, time

    def recorded(work):
        with mx.profile() as p:
            work()
        return checked(p)

    def checked(p):
        for e in p.events():
            assert e["dispatch"] in ("native", "decomposed", "fallback", "view", "compiled"), e
            assert type(e["part"]) is type(e["replayed"]) is bool and (e["depth"] > 0 or not e["part"]), e
            assert e["clock"] in ("device", "host", "submission"), e
            assert all(type(e[k]) is int and e[k] >= 0 for k in e if k.endswith("_ns")), e
            assert e["bytes_read"] >= 0 and e["bytes_written"] >= 0 and e["outputs"], e
            assert e["dispatch"] != "view" or e["commands"] == 0, e
            assert e["dispatch"] != "native" or e["commands"] > 0, e
            assert e["fused"] == [] or len(e["fused"]) > 1 and e["fused"][-1] == e["op"], e
        return p

    def brief(p, *keys):
        return [tuple(e[k] for k in keys) for e in p.events()]

    def raises(kind, words, work):
        try:
            work()
        except kind as error:
            assert words in str(error), error
        else:
            raise AssertionError("no error")
"""


def run(script: str, **environment: str) -> str:
    return plugins.run(textwrap.dedent(HEAD) + textwrap.dedent(script), **environment)


def rows_nest(trace: str) -> list[dict[str, object]]:
    """The complete events of a trace, of which those of a row are inside of each other or apart."""
    found = json.loads(trace)["traceEvents"]
    complete = [e for e in found if e["ph"] == "X"]
    assert all(e["ph"] in "XM" for e in found)
    rows: dict[tuple[int, int], list[tuple[int, int]]] = {}
    named = {(e["pid"], e["tid"]) for e in found if e["name"] == "thread_name"}
    for e in complete:
        start, length = round(1000 * e["ts"]), round(1000 * e["dur"])
        assert start >= 0 and length >= 0 and e["args"]
        rows.setdefault((e["pid"], e["tid"]), []).append((start, start + length))
    assert set(rows) == named
    for spans in rows.values():
        open_until: list[int] = []
        for start, end in sorted(spans, key=lambda s: (s[0], -s[1])):
            while open_until and open_until[-1] <= start:
                open_until.pop()
            assert not open_until or end <= open_until[-1]
            open_until.append(end)
    return complete


def test_events_on_the_cpu() -> None:
    run("""
        x, y = mx.random.normal((4, 8)), mx.random.normal((8, 4))
        mx.eval(x, y)
        p = recorded(lambda: mx.eval(mx.exp(x) * 2 + x, x @ y, mx.transpose(-x) + y))
        events = {tuple(e["fused"]) or e["op"]: e for e in p.events()}
        assert len(events) == len(p.events()) == 5, brief(p, "op", "fused")
        program = ("exp", "multiply", "add")
        assert set(events) == {program, "matmul", "negative", "transpose", "add"}, events.keys()
        e = events[program]
        assert e["inputs"] == e["outputs"] == [((4, 8), mx.float32)]
        assert (e["bytes_read"], e["bytes_written"], e["commands"]) == (128, 128, 1)
        assert e["device"] == mx.cpu and (e["backend"], e["clock"]) == ("cpu", "device")
        e = events["matmul"]
        assert e["inputs"] == [((4, 8), mx.float32), ((8, 4), mx.float32)]
        assert e["outputs"] == [((4, 4), mx.float32)] and e["dispatch"] == "native"
        e = events["transpose"]
        assert (e["dispatch"], e["commands"], e["bytes_read"]) == ("view", 0, 0)
        assert all(e["depth"] == 0 for e in events.values())
    """)


def test_dtypes_shapes_and_several_results() -> None:
    run("""
        a = mx.array([[2.0, 1.0], [1.0, 3.0]])
        mx.eval(a)
        p = recorded(lambda: mx.eval(mx.linalg.qr(a, stream=mx.cpu)))
        e = p.events()[0]
        assert e["outputs"] == [((2, 2), mx.float32)] * 2, e
        for dtype in (mx.bool_, mx.uint8, mx.int64, mx.float16, mx.bfloat16, mx.complex64):
            scalar, empty = mx.ones((), dtype), mx.ones((0, 3), dtype)
            p = recorded(lambda: mx.eval(mx.logical_not(scalar), mx.logical_not(empty)))
            kinds = {e["inputs"][0] if e["inputs"] else None: e["dispatch"] for e in p.events()
                     if e["op"] == "logical_not"}
            assert kinds.get(((0, 3), dtype), "view") == "view", kinds
        p = recorded(lambda: None)
        assert p.events() == [] and "0 tasks" in p.table()
        rows_of_both = recorded(lambda: [mx.eval(mx.sin(a)) for _ in range(5)]).table()
        line, = [line for line in rows_of_both.splitlines() if line.startswith("sin")]
        assert "float32[2,2] -> float32[2,2]" in line and "native" in line and " 5 " in line, line
    """)


def test_wrong_use() -> None:
    run("""
        p = mx.profile()
        for ask in (p.table, p.events, lambda: p.save("none.json")):
            raises(RuntimeError, "Nothing was recorded", ask)
        assert str(p) == repr(p) == "<ultramarine.Profile: not started>"
        raises(RuntimeError, "not running", lambda: p.__exit__(None, None, None))
        with p:
            for ask in (p.table, p.events, lambda: p.save("none.json")):
                raises(RuntimeError, "still running", ask)
            assert str(p) == "<ultramarine.Profile: running>"
            raises(RuntimeError, "is running already", mx.profile().__enter__)
            raises(RuntimeError, "can be used once", p.__enter__)
            mx.eval(mx.ones(3) + 1)
        assert len(p.events()) == 1 and str(p) == p.table() and repr(p).endswith("1 tasks>")
        raises(RuntimeError, "not running", lambda: p.__exit__(None, None, None))
        assert len(p.events()) == 1
        raises(RuntimeError, "can be used once", p.__enter__)
        raises(FileNotFoundError, "none", lambda: p.save("/none/there/trace.json"))
        try:
            with mx.profile() as q:
                mx.eval(mx.ones(3) + 1)
                raise KeyError("mine")
        except KeyError:
            pass
        assert len(q.events()) == 1
        # The exception has ended it.
        mx.eval(mx.ones(3) + 2)
        assert len(q.events()) == 1
    """)


def test_only_what_is_evaluated_inside() -> None:
    run("""
        before = mx.ones(3) + 1
        mx.eval(before)
        with mx.profile() as p:
            lazy = before * 3
            mx.eval(before - 1)
        mx.eval(lazy)
        assert brief(checked(p), "op") == [("subtract",)], p
    """)


def test_threads_streams_and_asynchronous_work() -> None:
    out = run("""
        streams = [mx.new_stream(mx.cpu) for _ in range(3)]
        x = mx.ones((64, 64))
        mx.eval(x)

        def work(stream):
            y = x
            for _ in range(20):
                y = mx.matmul(y, x, stream=stream) * 0.01
            mx.async_eval(y)

        with mx.profile() as p:
            threads = [threading.Thread(target=work, args=(s,)) for s in streams]
            [t.start() for t in threads]
            [t.join() for t in threads]
        checked(p)
        per = [sum(e["op"] == "matmul" for e in p.events() if e["stream"] == s.index) for s in streams]
        assert per == [20, 20, 20], per
        p.save("/dev/stdout")
    """)
    events = rows_nest(out)
    assert {e["cat"] for e in events} == {"host", "task"}


def test_compiled_functions_and_gradients() -> None:
    run("""
        x = mx.ones((16, 16))
        f = mx.compile(lambda x: mx.sum(mx.tanh(x @ x) * 2))
        mx.eval(f(x))
        p = recorded(lambda: mx.eval(f(x)))
        assert any(e["op"] == "matmul" for e in p.events()), p
        assert any(e["fused"] == ["tanh", "multiply", "sum"] for e in p.events()), brief(p, "op", "fused")
        p = recorded(lambda: mx.eval(mx.grad(f)(x)))
        assert sum(e["op"] == "matmul" for e in p.events()) == 3, p
    """)


# A function that is worth an executable, and what the events of its calls have in common.
CALLS = """
    def layers(x, w):
        for _ in range(3):
            x = mx.softmax(mx.tanh(x @ w) * 0.5 + x, axis=-1)
        return x, mx.sum(x, axis=0), mx.argmax(x, axis=1)

    def calls_of(x, w):
        f = mx.compile(layers)
        recorded_call = p = recorded(lambda: mx.eval(f(x, w)))
        # Kernels may be compiled beside the work: until they are there, calls are evaluated.
        deadline = time.monotonic() + 60
        while not all(e["replayed"] for e in p.events()):
            assert time.monotonic() < deadline, p
            p = recorded(lambda: mx.eval(f(x, w)))
        before = _core._stats()["commands"]
        mx.eval(f(x, w))
        commands = _core._stats()["commands"] - before
        p = recorded(lambda: [mx.eval(f(x, w)) for _ in range(4)])
        assert _core._stats()["commands"] - before == 5 * commands
        return recorded_call, p, commands
"""


def test_calls_of_compiled_functions() -> None:
    out = run(
        textwrap.dedent(CALLS)
        + textwrap.dedent("""
        from ultramarine import _core
        x, w = mx.random.normal((16, 32)), mx.random.normal((32, 32))
        mx.eval(x, w)
        first, p, commands = calls_of(x, w)
        keys = ("op", "fused", "inputs", "outputs", "dispatch", "depth", "part", "commands", "bytes_read", "bytes_written")
        inside = [e for e in brief(first, *keys) if e[4] not in ("view", "compiled")]
        assert not any(e["replayed"] for e in first.events()), first
        assert [e for e in brief(p, *keys) if e[4] != "compiled"] == 4 * inside, p
        assert all(e["replayed"] for e in p.events())
        calls = [e for e in p.events() if e["dispatch"] == "compiled"]
        assert [e["commands"] for e in calls] == 4 * [commands]
        assert {e["depth"] for e in calls} == {0} and {e[5] for e in inside} == {1}
        for key in ("commands", "bytes_read", "bytes_written"):
            assert sum(e[key] for e in calls) == sum(e[key] for e in p.events() if e["depth"] == 1), key
        # Each operation's row counts, and the call has none.
        matmul, = [line.split() for line in p.table().splitlines() if line.startswith("matmul")]
        assert ["native", "device", "12", "12"] == matmul[-8:-4], matmul
        assert "compiled" not in p.table(), p
        p.save("/dev/stdout")
    """)
    )
    events = rows_nest(out)
    assert sum(e["name"] == "compiled" for e in events) == 4
    assert all(e["args"].get("replayed") for e in events if e["cat"] == "task")  # type: ignore[attr-defined]


def test_results_and_counts_are_those_without_a_profile() -> None:
    run("""
        from ultramarine import _core
        x = mx.ones((33, 65))
        mx.eval(x)

        def work():
            y = mx.softmax(mx.exp(x) - 1, axis=1)
            return mx.sort(y @ mx.transpose(y), axis=0).tolist()

        counts = []
        for profiled in (False, True, False):
            before = _core._stats()
            if profiled:
                with mx.profile():
                    result = work()
            else:
                result = work()
            after = _core._stats()
            counts.append(({k: after[k] - before[k] for k in after}, result))
        assert counts[0] == counts[1] == counts[2]
    """)


@pytest.fixture(scope="module")
def minimal() -> Path:
    return plugins.minimal()


def test_a_backend_without_a_clock(minimal: Path) -> None:
    out = run(f"""
        backends.load("{minimal}")
        mx.set_default_device(mx.gpu)
        x = mx.ones((8, 8))
        mx.eval(x)
        p = recorded(lambda: mx.eval(mx.add(x, x), mx.sort(x), mx.expm1(x)))
        events = {{e["op"]: e for e in p.events() if e["depth"] == 0}}
        assert all(e["clock"] == "host" for e in p.events()), p
        assert events["add"]["dispatch"] == "native" and events["add"]["backend"] == "minimal"
        assert events["sort"]["dispatch"] == "fallback" and events["sort"]["device"] == mx.gpu
        assert events["sort"]["commands"] > 0
        p.save("/dev/stdout")
    """)
    assert {e["cat"] for e in rows_nest(out)} == {"host", "task"}


def test_parts_of_decompositions_are_inside(minimal: Path) -> None:
    out = run(f"""
        backends.load("{minimal}")
        mx.set_default_device(mx.gpu)
        x = mx.ones((8, 8))
        mx.eval(x)
        p = recorded(lambda: mx.eval(mx.cumsum(x, axis=1)))
        parts = [e for e in p.events() if e["depth"] == 1]
        whole, = [e for e in p.events() if e["op"] == "cumsum"]
        assert (whole["depth"], whole["dispatch"]) == (0, "decomposed"), whole
        assert len(parts) > 1 and whole["commands"] == sum(e["commands"] for e in parts), p.events()
        assert whole["bytes_read"] == sum(e["bytes_read"] for e in parts)
        end = whole["start_ns"] + whole["duration_ns"]
        for part in parts:
            assert whole["start_ns"] <= part["start_ns"]
            assert part["start_ns"] + part["duration_ns"] <= end
        # The parts are in the row of the whole, and nowhere else.
        assert "cumsum" in p.table() and "concatenate" not in p.table()
        assert ("concatenate",) in brief(p, "op")
        lowered = recorded(lambda: mx.eval(mx.softmax(x)))
        assert {{e["dispatch"] for e in lowered.events()}} == {{"decomposed", "view"}}, lowered
        p.save("/dev/stdout")
    """)
    rows_nest(out)


def test_commands_of_decompositions_in_compiled_functions(minimal: Path) -> None:
    out = run(
        textwrap.dedent(CALLS).replace("mx.argmax", "mx.cumsum")
        + textwrap.dedent(f"""
        from ultramarine import _core
        backends.load("{minimal}")
        mx.set_default_device(mx.gpu)
        x, w = mx.ones((8, 8)), mx.ones((8, 8))
        mx.eval(x, w)
        first, p, commands = calls_of(x, w)
        assert all(e["replayed"] and e["clock"] == "host" for e in p.events()), p
        whole = [e for e in p.events() if e["op"] == "cumsum" and e["depth"] == 1]
        assert len(whole) == 4 and not any(e["part"] for e in whole), p.events()
        assert {{e["dispatch"] for e in whole}} == {{"decomposed"}}
        parts = [e for e in p.events() if e["depth"] == 2]
        assert parts and all(e["part"] and e["commands"] == 1 and e["outputs"] for e in parts), p.events()
        of_several = [e for e in p.events() if e["depth"] == 1 and e["commands"] > 1]
        assert len(parts) == sum(e["commands"] for e in of_several)
        calls = [e["commands"] for e in p.events() if e["depth"] == 0]
        assert calls == 4 * [commands]
        assert sum(e["commands"] for e in p.events() if e["depth"] == 1) == 4 * commands
        p.save("/dev/stdout")
    """)
    )
    rows_nest(out)


def devices() -> list[object]:
    """Devices that run ahead and have clocks."""
    cases = []
    opencl, cuda = plugins.opencl(), plugins.emulated_cuda()
    environment = {} if cuda is None else cuda[1]
    for name, plugin, variables in [
        ("opencl", opencl, {}),
        ("cuda", cuda and cuda[0], environment),
    ]:
        missing = pytest.mark.skipif(plugin is None, reason=f"there is no {name} here")
        cases.append(pytest.param(plugin, variables, id=name, marks=missing))
    return cases


@pytest.mark.parametrize("validated", ["0", "1"])
@pytest.mark.parametrize(("plugin", "variables"), devices())
def test_a_device_that_runs_ahead(plugin: Path, variables: dict[str, str], validated: str) -> None:
    variables = {**variables, "ULTRAMARINE_VALIDATE": validated}
    out = run(
        textwrap.dedent(CALLS)
        + textwrap.dedent(f"""
        from ultramarine import _core
        backend = backends.load("{plugin}").name
        mx.set_default_device(mx.gpu)
        x = mx.ones((64, 64))
        mx.eval(x)

        def work():
            y = x
            for _ in range(40):
                y = mx.exp(y @ x * 0.001)
            mx.async_eval(y)
            with mx.stream(mx.new_stream(mx.gpu)):
                mx.eval(x @ x)
            return y

        p = recorded(work)
        events = p.events()
        assert all(e["clock"] == "device" and e["backend"] == backend for e in events), p
        assert sum(e["op"] == "matmul" for e in events) == 41, p
        assert len({{e["stream"] for e in events}}) == 2
        # One stream runs one after the other, and nothing before the host has begun to submit it.
        first = events[0]["stream"]
        own = [e for e in events if e["stream"] == first and e["depth"] == 0]
        for before, after in zip(own, own[1:]):
            assert before["start_ns"] + before["duration_ns"] <= after["start_ns"] + 2000
        for e in own:
            assert e["start_ns"] >= e["host_start_ns"] - 1_000_000, e
        assert max(e["duration_ns"] for e in own) > 0
        first, p, commands = calls_of(x, x)
        events = p.events()
        assert {{e["clock"] for e in events}} == {{"device"}} and all(e["replayed"] for e in events), p
        assert [e["commands"] for e in events if e["depth"] == 0] == 4 * [commands]
        for call in [e for e in events if e["depth"] == 0]:
            end = call["start_ns"] + call["duration_ns"]
            own = [e for e in events if e["depth"] == 1 and call["start_ns"] <= e["start_ns"] <= end]
            assert sum(e["duration_ns"] for e in own) <= call["duration_ns"] + 1000 * len(own), (call, own)
        # Times of long profiles are resolved while they run, and all of them at the end.
        p = recorded(lambda: [mx.eval(x + 1) for _ in range(1500)])
        assert all(e["clock"] == "device" for e in p.events()) and len(p.events()) >= 1500
        # In a long one clocks are compared again at the end.
        p = recorded(lambda: [(mx.eval(mx.exp(x @ x)), time.sleep(0.05)) for _ in range(25)])
        events = [e for e in p.events() if e["depth"] == 0]
        assert {{e["clock"] for e in events}} == {{"device"}}
        for before, after in zip(events, events[1:]):
            assert before["start_ns"] + before["duration_ns"] <= after["start_ns"]
            assert after["start_ns"] >= after["host_start_ns"] - 1_000_000, after
        assert backends.validation_findings() == 0
        p = recorded(work)
        p.save("/dev/stdout")
    """),
        **variables,
    )
    events = rows_nest(out)
    assert {e["cat"] for e in events} == {"host", "task", "submit"}


SCRIPT = """
import sys
import ultramarine as mx

print("arguments", sys.argv[1:], __name__)
mx.eval(mx.ones((3, 3)) @ mx.ones((3, 3)))
if sys.argv[1:] == ["exit"]:
    sys.exit(3)
"""


def test_command(tmp_path: Path) -> None:
    script, trace = tmp_path / "script.py", tmp_path / "trace.json"
    script.write_text(SCRIPT)
    status, out = plugins.command("profile", "--trace", str(trace), str(script), "one", "--two")
    assert status == 0, out
    assert "arguments ['one', '--two'] __main__" in out
    assert "matmul" in out and "float32[3,3], float32[3,3] -> float32[3,3]" in out
    assert any(e["name"] == "matmul" for e in rows_nest(trace.read_text()))
    status, out = plugins.command("profile", str(script), "exit")
    assert status == 3 and "matmul" in out
    status, out = plugins.command("profile", str(tmp_path / "none.py"))
    assert status == 2 and "does not exist" in out
    status, out = plugins.command("profile", "--limit", "0", str(script))
    assert status == 0 and "more rows" in out and "3,3" not in out
