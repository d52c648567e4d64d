"""Functions as files: every public function comes back with the same bits; calls and errors as in mlx; damaged files."""

from __future__ import annotations

import gc
import io
import json
from pathlib import Path
from typing import Any

import mlx.core as mlx
import numpy as np
import pytest
from rules.case import Case
from support.harness import um
from support.mutations import cuts, mutations, survives

from .test_rules import CASES, SMOOTH, arrays, given, reals, with_reals

BOTH = pytest.mark.parametrize("mx", [um, mlx], ids=["ultramarine", "mlx"])


def content(outputs: Any) -> list[tuple[Any, ...]]:
    """Types and bytes, so that every bit counts."""
    return [(x.shape, str(x.dtype), bytes(memoryview(um.contiguous(x)))) for x in outputs]


def imported(path: Path, function: Any, *args: Any, **options: Any) -> Any:
    um.export_function(str(path), function, *args, **options)
    return um.import_function(str(path))


def same(path: Path, function: Any, *args: Any) -> None:
    """The function gives the same bits when it has been in a file."""
    wanted = content(function(*args))
    assert content(imported(path, function, *args)(*args)) == wanted


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_every_function(case: Case, tmp_path: Path) -> None:
    x = [given(a) for a in arrays(case)]
    same(tmp_path / "f", lambda *x: case(um, *x), *x)


@pytest.mark.parametrize("case", SMOOTH, ids=lambda c: c.name)
def test_every_gradient(case: Case, tmp_path: Path) -> None:
    """Inside of the function, and of it."""
    x = [given(a) for a in arrays(case)]
    values = [x[i] for i in reals(case)]

    def loss(*values: Any) -> Any:
        outputs = case(um, *with_reals(case, x, values))
        return sum((o.astype(um.float32).square().sum() for o in outputs), um.array(0.0))

    def gradients(loss: Any) -> Any:
        gradient = um.grad(loss, tuple(range(len(values))))

        def flat(*values: Any) -> list[Any]:
            found = gradient(*values)
            return [found] if isinstance(found, um.array) else list(found)

        return flat

    gradient = gradients(loss)
    same(tmp_path / "gradient", gradient, *values)
    function = imported(tmp_path / "loss", loss, *values)
    of_file = gradients(lambda *values: function(*values)[0])
    assert content(of_file(*values)) == content(gradient(*values))


@pytest.mark.parametrize("case", [c for c in CASES if not c.no_vmap], ids=lambda c: c.name)
def test_every_batch(case: Case, tmp_path: Path) -> None:
    if not case.operands:
        pytest.skip("no operands")
    x, batch = ([given(a) for a in arrays(case, n)] for n in ((), (3,)))
    mapped = um.vmap(lambda *x: case(um, *x))
    same(tmp_path / "mapped", mapped, *batch)
    function = imported(tmp_path / "f", lambda *x: case(um, *x), *x)
    assert content(um.vmap(lambda *x: function(*x))(*batch)) == content(mapped(*batch))


@BOTH
def test_arguments(mx: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "f.mlxfn")
    x, y = mx.array([1.0, 2.0]), mx.array([3.0, 5.0])
    mx.export_function(path, lambda x, *, y: (x + y, x), x, y=y)
    f = mx.import_function(path)
    for outputs in (f(x, y=y), f((x,), {"y": y}), f([x], {"y": y})):
        assert isinstance(outputs, tuple)
        assert [o.tolist() for o in outputs] == [[4, 7], [1, 2]]
    for wrong in (
        lambda: f(x),
        lambda: f(x, y=y, z=y),
        lambda: f(x.astype(mx.int32), y=y),
        lambda: f(mx.ones(3), y=y),
        lambda: f(1.0, y=y),
        lambda: f((x,), y=y),
        lambda: f(((x,),)),
        lambda: f(x, {"y": y}),
        lambda: f(None),
        lambda: mx.export_function(path, lambda x: {"a": x}, x),
        lambda: mx.export_function(path, lambda x: None, x),
        lambda: mx.export_function(path, lambda x: x, 1.0),
        lambda: mx.export_function(path, lambda x: x.item(), x),
        lambda: mx.export_function(lambda d: None, lambda x: x, x, metadata="a text"),
    ):
        with pytest.raises(ValueError):
            wrong()
    for wrong in (
        lambda: mx.export_function(path, 3, x),
        lambda: mx.export_function(path, lambda: x, x),
        lambda: mx.exporter(path, 3),
        lambda: mx.FunctionExporter(),
        lambda: mx.import_function(3),
    ):
        with pytest.raises(TypeError):
            wrong()
    with pytest.raises(ZeroDivisionError):
        mx.export_function(path, lambda x: 1 / 0, x)
    with pytest.raises(RuntimeError, match="Failed to open"):
        mx.import_function(str(tmp_path / "missing"))
    with pytest.raises(RuntimeError, match="Failed to open"):
        mx.export_function(str(tmp_path / "no" / "folder"), lambda x: x, x)


@BOTH
def test_exporter(mx: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "f.mlxfn")
    x = mx.array([1.0, 2.0])
    with mx.exporter(path, lambda *a: sum(a), metadata="notes") as trace:
        assert isinstance(trace, mx.FunctionExporter)
        trace(x)
        trace(x, x)
        trace(mx.ones((2, 2)))
        with pytest.raises(RuntimeError, match="twice"):
            trace(x)
        with pytest.raises(ValueError):
            trace("x")
    with pytest.raises(RuntimeError, match="closed"):
        trace(mx.ones(5))
    trace.close()
    f, metadata = mx.import_function(path, return_metadata=True)
    assert metadata == "notes"
    assert f(x)[0].tolist() == [1, 2]
    assert f(x, x)[0].tolist() == [2, 4]
    assert f(mx.ones((2, 2)))[0].tolist() == [[1, 1], [1, 1]]
    with pytest.raises(ValueError, match="No imported function found"):
        f(mx.ones(3))
    # Without `with` and `close` it is written when it goes.
    trace = mx.exporter(path, lambda x: x + 1)
    trace(x)
    del trace
    gc.collect()
    assert mx.import_function(path)(x)[0].tolist() == [2, 3]


@BOTH
def test_shapeless(mx: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "f.mlxfn")
    mx.export_function(path, lambda x: mx.exp(x).sum(axis=-1), mx.ones((2, 3)), shapeless=True)
    f = mx.import_function(path)
    assert np.allclose(np.array(f(mx.zeros((4, 5)))[0]), 5)
    with pytest.raises(ValueError):
        f(mx.ones(3))


@BOTH
def test_callback(mx: Any) -> None:
    parts: list[dict[str, Any]] = []
    constant, x = mx.array([5.0, 6.0]), mx.array([1.0, 2.0])
    mx.export_function(parts.append, lambda x, *, y: mx.exp(x + y) * constant, x, y=x)
    assert parts[0] == {
        "type": "inputs",
        "inputs": [("A", (2,), mx.float32), ("B", (2,), mx.float32)],
    }
    assert parts[1] == {"type": "keyword_inputs", "keywords": [("y", "B")]}
    assert parts[2] == {"type": "outputs", "outputs": [("C", (2,), mx.float32)]}
    ((name, value),) = parts[3]["constants"]
    assert (name, value.tolist()) == ("D", [5, 6])
    operations = [(p["name"].lower(), p["inputs"], p["outputs"]) for p in parts[4:]]
    typed = lambda *names: [(n, (2,), mx.float32) for n in names]
    assert operations == [
        ("add", typed("A", "B"), typed("E")),
        ("exp", typed("E"), typed("F")),
        ("multiply", typed("F", "D"), typed("C")),
    ]
    with pytest.raises(KeyError):
        mx.export_function(lambda part: {}["a"], lambda x: x, x)


def test_rules_of_the_callers_own(tmp_path: Path) -> None:
    @um.custom_function
    def f(x: Any) -> Any:
        return x * x

    @f.vjp
    def _(primals: Any, cotangents: Any, outputs: Any) -> Any:
        return cotangents * 100

    x = um.array([1.0, 2.0])
    of_file = imported(tmp_path / "f", lambda x: [f(x)], x)
    assert of_file(x)[0].tolist() == [1, 4]
    with pytest.raises(ValueError, match="it uses custom_function"):
        um.grad(lambda x: of_file(x)[0].sum())(x)
    gradient = um.grad(lambda x: f(x).sum())
    assert imported(tmp_path / "f", gradient, x)(x)[0].tolist() == [100, 100]
    same(tmp_path / "f", lambda x: [um.checkpoint(lambda x: um.exp(x) * x)(x)], x)


def test_functions_in_functions(tmp_path: Path) -> None:
    x = um.array([1.0, 2.0])
    inner = imported(tmp_path / "inner", lambda x: um.exp(x) + 1, x)
    compiled = um.compile(lambda x: inner(x)[0] * 2)
    same(tmp_path / "outer", lambda x: [compiled(x)], x)
    key = um.random.key(7)
    same(tmp_path / "random", lambda key: [um.random.normal((3,), key=key)], key)


def test_kernels_are_code(tmp_path: Path) -> None:
    kernel = um.fast.foreign_kernel(lambda inputs, outputs: None, name="twice")

    def call(x: Any) -> Any:
        return kernel(inputs=[x], output_shapes=[(1,)], output_dtypes=[um.float32])

    with pytest.raises(ValueError, match="twice cannot be exported"):
        um.export_function(str(tmp_path / "f"), call, um.ones(1))


def test_paths_and_failures(tmp_path: Path) -> None:
    path, x = tmp_path / "f", um.ones(2)
    um.export_function(path, lambda x: x + 1, x)

    def fails(x: Any) -> Any:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        um.export_function(path, fails, x)
    assert um.import_function(path)(x)[0].tolist() == [2, 2]
    assert [p.name for p in tmp_path.iterdir()] == ["f"]


@pytest.mark.parametrize("file", ["", "12345678", "\x08" + "\0" * 7 + "{}      "])
def test_no_function(file: str, tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(file.encode("latin-1"))
    with pytest.raises(RuntimeError, match="f: "):
        um.import_function(path)


def test_files_of_mlx_are_refused(tmp_path: Path) -> None:
    path = str(tmp_path / "f.mlxfn")
    mlx.export_function(path, lambda x: x + 1, mlx.ones(2))
    with pytest.raises(RuntimeError, match=r"f\.mlxfn: "):
        um.import_function(path)


def network(path: Path) -> bytes:
    """A file with many kinds of operations and two traces."""
    w, b = um.random.normal((8, 8), key=um.random.key(1)), um.arange(8) * 0.1

    def f(x: Any, mask: Any = None) -> Any:
        y = um.fast.layer_norm(x @ w + b, b, None, 1e-5)
        y = um.softmax(um.where(y > 0, y, -1.0), axis=-1)[:, ::2]
        q, _ = um.linalg.qr(y[:4])
        y = um.concatenate([y, q], axis=0).cumsum(axis=0).T
        return (y if mask is None else y * mask), um.argsort(x, axis=1), x.at[:, 0].add(1.0)

    with um.exporter(path, f, metadata="text") as trace:
        trace(um.ones((4, 8)))
        trace(um.ones((6, 8)), mask=um.ones(10))
    return path.read_bytes()


def called(path: str) -> Any:
    """The results of a file's function for the arguments of `network`."""
    f = um.import_function(path)
    return f(um.ones((4, 8))), f(um.ones((6, 8)), mask=um.ones(10))


def test_damaged_files(tmp_path: Path) -> None:
    """Bytes anywhere. The structure of programs is changed by a test in Rust: integration/export/hostile.rs."""
    path = tmp_path / "f"
    data = network(path)
    # A call may be of a function that is no longer there, which names no file.
    outcomes = survives(path, mutations(data, 26), read=um.import_function, room=1 << 20)
    assert outcomes["refused"] > outcomes["read"] > 0
    for cut in cuts(data):
        path.write_bytes(cut)
        with pytest.raises(RuntimeError, match="f: "):
            um.import_function(path)


def test_damaged_files_are_called(tmp_path: Path) -> None:
    """A function of a damaged file can be called: it gives arrays or an error."""
    path = tmp_path / "f"
    for data in mutations(network(path), 27):
        path.write_bytes(data)
        try:
            um.eval(called(str(path)))
        except (RuntimeError, ValueError, MemoryError):
            pass
    assert (um.arange(3) + 1).tolist() == [1, 2, 3]


def test_the_file_is_safetensors(tmp_path: Path) -> None:
    path = tmp_path / "f.safetensors"
    w = um.array([1.0, 2.0])
    um.export_function(path, lambda x: x * w, w, metadata="text")
    loaded, metadata = um.load(str(path), return_metadata=True)
    assert metadata == {"format": "ultramarine.function", "metadata": "text"}
    assert loaded["constant.0"].tolist() == [1, 2]
    program = json.loads(bytes(memoryview(loaded["program"])))
    assert program["version"] == 1
    assert [next(iter(step)) for step in program["traces"][0]["steps"]] == ["constant", "op"]


@BOTH
def test_graphs(mx: Any) -> None:
    def drawn(*args: Any, **names: Any) -> list[str]:
        file = io.StringIO()
        mx.export_to_dot(file, *args, **names)
        lines = file.getvalue().lower().strip().split("\n")
        assert (lines[0], lines[-1]) == ("digraph {", "}")
        return lines[1:-1]

    x, y = mx.array([1.0, 2.0]), mx.array([3.0, 4.0])
    z = mx.exp(x + y) * x
    lines = drawn(z, x=x, z=z)
    assert lines[:2] == ['{ rank=source; "x"; }', '{ rank=source; "c"; }']
    assert [line.split('"')[1] for line in lines if "label" in line] == ["add", "exp", "multiply"]
    assert lines[-2] == '{ rank=sink; "z"; }'
    assert drawn(x, [y]) == ['{ rank=source; "a"; }', '{ rank=source; "b"; }']
    assert drawn() == []
    with pytest.raises(ValueError):
        mx.export_to_dot(3, x)
    with pytest.raises(ValueError):
        drawn(1)


def test_names_in_graphs_are_text() -> None:
    file, x = io.StringIO(), um.array([1.0])
    um.export_to_dot(file, um.exp(x), **{'a"; \\': x})
    assert '{ rank=source; "a\\"; \\\\"; }' in file.getvalue()
