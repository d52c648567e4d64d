"""Groups of one process."""

from __future__ import annotations

from support.harness import FLOATS

from ..draw import Entry, Gen, e

GROUPS = ("mx.distributed.init()", "None", "mx.distributed.init(False, 'ring')", "3", "'all'")


def group_of(g: Gen) -> str | None:
    return g.of(*GROUPS[:3]) if g.chance(0.3) else g.maybe(0.05, *GROUPS[3:])


def operand(g: Gen) -> str:
    """An array, or something else that operators take, or do not."""
    if g.chance(0.85):
        return g.arr()
    return g.of(
        "1", "2.5", "True", "1j", "[1, 2]", "(1.5,)", "'a'", "b'ab'", "np.ones(2)", "None", "{}"
    )


def draw_collective(g: Gen) -> str:
    how = g.of(*["call"] * 6, "grad", "vmap", "compile", "jvp")
    name = f"mx.{g.entry.name}"
    if how == "call":
        return g.call([operand(g)], kw=[("group", group_of(g))])
    x = g.arr(FLOATS, domain="few", specials=0)
    if how == "grad":
        return f"mx.grad(lambda x: ({name}(x) * x).sum())({x})"
    if how == "vmap":
        return f"mx.vmap({name}, in_axes={g.axis(x)})({x})"
    if how == "jvp":
        return f"mx.jvp(lambda x: {name}(x) * x, [{x}], [{x}])"
    return f"mx.compile(lambda x: {name}(x, stream=mx.cpu) + 1)({x})"


def rank(g: Gen) -> str:
    return g.of("0", "1", "-1", "7", "True", "np.int64(0)", "1.5", "None", "'a'")


def draw_send(g: Gen) -> str:
    rank_name = "dst" if g.entry.name.endswith("send") else "src"
    return g.call([operand(g)], pos=[(rank_name, rank(g))], kw=[("group", group_of(g))])


def draw_recv(g: Gen) -> str:
    shape = g.of("(2,)", "[2, 3]", "()", "(0,)", "2", "(1.5,)", "'ab'", "range(2)", "{1: 2}", "{2}")
    dtype = g.dtype() if g.chance(0.9) else g.of("None", "float", "'float32'")
    return g.call([shape, dtype], pos=[("src", rank(g))], kw=[("group", group_of(g))])


def draw_init(g: Gen) -> str:
    backend = g.of("'any'", "'mpi'", "'nccl'", "'jaccl'", "'ring'", "'xyz'", "''", "None", "3")
    factory = g.maybe(0.15, "lambda r, s: None", "None", "3")
    options = {
        "pos": [("strict", g.of("False", "False", "True", "1", "None")), ("backend", backend)],
        "kw": [("all_gather_factory", factory)],
    }
    if g.chance(0.1):
        options = {}
    made = g.call([], stream="", **options)
    return g.of(f"{made}.size()", f"{made}.rank()", f"type({made}).__name__")


def draw_available(g: Gen) -> str:
    backend = g.of("'any'", "'mpi'", "'nccl'", "'jaccl'", "'ring'", "'xyz'", "''", "None", "3")
    return g.call([], pos=[("backend", backend)] if g.chance(0.9) else [], stream="")


def draw_group(g: Gen) -> str:
    group = "mx.distributed.init()"
    color = g.of("0", "1", "-1", "1.5", "'a'", "None", "np.int64(1)", "True", "")
    key = g.of("", "", ", 1", ", key=2", ", key=None", ", 1.5") if color else ""
    return g.of(
        f"{group}.rank()",
        f"{group}.size()",
        f"{group}.split({color}{key})",
        f"{group}.split({color}{key})",
        f"isinstance({group}, mx.distributed.Group)",
        f"{group}.nothing",
        f"setattr({group}, 'a', 1)",
        f"{group}.rank(1)",
        f"pickle.dumps({group})",
        f"copy.copy({group})",
        f"mx.distributed.Group({g.of('', '1', 'a=1')})",
    )


ENTRIES: list[Entry] = [
    e("distributed.Group", draw_group, 0.4),
    e("distributed.init", draw_init, 0.5),
    e("distributed.is_available", draw_available, 0.3),
    *(
        e(f"distributed.{n}", draw_collective, 0.5)
        for n in ("all_gather", "all_max", "all_min", "all_sum", "sum_scatter")
    ),
    e("distributed.recv", draw_recv, 0.4),
    e("distributed.recv_like", draw_send, 0.4),
    e("distributed.send", draw_send, 0.4),
]
