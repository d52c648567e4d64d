"""Functions as files."""

from __future__ import annotations

from ..draw import Entry, Gen, e

# Of one array, and of two.
ONE = (
    "lambda x: x + 1",
    "lambda x: (x, x * 2)",
    "lambda x: [mx.abs(x), x]",
    "lambda x: mx.concatenate([x.reshape(-1), mx.array([1, 2, 3])])",
    "lambda x: x.reshape(-1)[::2]",
    "lambda x: mx.sum(x, axis=0, keepdims=True)",
    "lambda x: mx.where(x > 0, x, mx.zeros_like(x))",
    "lambda x: mx.vmap(lambda y: y * 2)(x)",
    "mx.compile(lambda x: mx.maximum(x, 1) - x)",
    "lambda x: x.astype(mx.float32).sum()",
    "mx.grad(lambda x: (x.astype(mx.float32) ** 2).sum())",
)
WRONG = (
    "lambda x: None",
    "lambda x: 1.0",
    "lambda x: {'a': x}",
    "lambda x: (x, [x])",
    "lambda: mx.array(1)",
    "lambda x, y: x",
    "lambda x: x.tolist()",
    "lambda x: 1 / 0",
    "3",
)
TWO = (
    "lambda x, y: x + y",
    "lambda x, y: (x - y, x)",
    "lambda x, y: mx.maximum(x, y)",
    "lambda x, y=None: x if y is None else x * y",
)
# Forms of two arrays: when it is exported, and when it is called.
FORMS = (
    "{0}, {1}",
    "{0}, y={1}",
    "({0}, {1})",
    "[{0}, {1}]",
    "({0},), {{'y': {1}}}",
    "{{'x': {0}, 'y': {1}}}",
)


def draw_export(g: Gen) -> str:
    options = g.of("", "", "", ", shapeless=True", ", metadata='a text'")
    read = (
        "mx.import_function(p, return_metadata=True)[0]"
        if g.chance(0.2)
        else "mx.import_function(p)"
    )
    x = g.arr(small=True)
    if g.chance(0.5):
        f = g.of(*WRONG) if g.chance(0.2) else g.of(*ONE)
        given = (
            g.of(x, x, f"({x},)", f"[{x}]", f"{{'x': {x}}}", "1.0", "None") if g.chance(0.3) else x
        )
        called = g.of("1.0", f"({x},)", f"{x}, {x}", "mx.zeros((9, 9))", "") if g.chance(0.2) else x
        return f"stored(lambda p: mx.export_function(p, {f}, {given}{options}), lambda p: {read}({called}), '.mlxfn')"
    y = g.arr(shape=g.inputs[x].shape)
    form = g.of(*FORMS)
    again = form if g.chance(0.8) else g.of(*FORMS)
    return (
        f"stored(lambda p: mx.export_function(p, {g.of(*TWO)}, {form.format(x, y)}{options}), "
        f"lambda p: {read}({again.format(x, y)}), '.mlxfn')"
    )


def draw_import(g: Gen) -> str:
    x = g.arr(small=True)
    text = g.of("", ", metadata='text'", ", metadata=None")
    write = f"mx.export_function(p, {g.of(*ONE)}, {x}{text})"
    return g.of(
        f"stored(lambda p: {write}, lambda p: mx.import_function(p, True)[1], '.mlxfn')",
        f"stored(lambda p: {write}, lambda p: mx.import_function(p, return_metadata=False)({x}), '.mlxfn')",
        f"stored(lambda p: {write}, lambda p: mx.import_function(p)({x}, {x}), '.mlxfn')",
        f"stored(lambda p: {write}, lambda p: mx.import_function(p)(q={x}), '.mlxfn')",
        "stored(lambda p: open(p, 'wb').write(b'no file'), lambda p: mx.import_function(p), '.mlxfn')",
        "stored(lambda p: open(p, 'wb').write(b''), lambda p: mx.import_function(p), '.mlxfn')",
        "mx.import_function('/nonexistent/f.mlxfn')",
        "mx.import_function(1)",
        "mx.import_function()",
    )


def draw_exporter(g: Gen) -> str:
    x = g.arr(small=True)
    second = g.of(f"{x}, {x}", f"y={x}", f"({x}, {x})", "mx.zeros((1, 9))", x, "1")
    call = (
        x if g.chance(0.6) else g.of(f"{x}, {x}", f"y={x}", "mx.zeros((1, 9))", "mx.zeros((2, 9))")
    )
    f = "lambda *a, **k: sum(a) + sum(k.values())"
    options = g.of("", "", ", shapeless=True", ", metadata='text'")
    work = g.of(
        f"traced(mx.exporter(p, {f}{options}), lambda s: (s({x}), s({second})))",
        f"traced(mx.exporter(p, {f}{options}), lambda s: s({x}))",
        f"(lambda s: (s({x}), s.close(), s({second})))(mx.exporter(p, {f}{options}))",
        f"mx.exporter(p, {f}, True)",
        "mx.exporter(p, 1)",
    )
    return f"stored(lambda p: {work}, lambda p: mx.import_function(p)({call}), '.mlxfn')"


def draw_dot(g: Gen) -> str:
    # Views of arrays that have their values are made at once, without a node.
    x, y = "a", "b"
    made = "(lambda a, b: {})(mx.array([1.0, 2.0]), mx.array(3.0))"
    graph = g.of(
        f"mx.exp({x}) * {x}",
        f"{x} + {x}",
        f"mx.sin(mx.abs({x})) + mx.cos({x})",
        f"{x}",
        f"[{x}, mx.exp({x})]",
        f"mx.square({x}), mx.exp({y})",
        "mx.linalg.svd(mx.array([[1.0, 2.0], [3.0, 4.0]]), stream=mx.cpu)",
    )
    names = g.of("", "", f", x={x}", f", first={x}, second={y}")
    call = g.of(
        f"drawn(lambda f: mx.export_to_dot(f, {graph}{names}))",
        f"stored(lambda p: mx.export_to_dot(p, {graph}{names}), lambda p: canonical(open(p).read()), '.dot')",
        "drawn(lambda f: mx.export_to_dot(f))",
        "drawn(lambda f: mx.export_to_dot(f, 1))",
        f"drawn(lambda f: mx.export_to_dot(f, {x}, q=1))",
        f"mx.export_to_dot(3, {x})",
        f"mx.export_to_dot(None, {x})",
    )
    return made.format(call)


ENTRIES: list[Entry] = [
    e("export_function", draw_export, 0.6, ulps=64),
    e("import_function", draw_import, 0.3, ulps=64),
    e("exporter", draw_exporter, 0.4),
    e(
        "FunctionExporter",
        lambda g: g.of(
            "mx.FunctionExporter()", "mx.FunctionExporter.__name__", "mx.FunctionExporter(1)"
        ),
        0.05,
    ),
    e("export_to_dot", draw_dot, 0.4),
]
