"""Products of matrices, einsum, convolutions, linalg and fft."""

from __future__ import annotations

import numpy as np
from support.harness import COMPLEX, FLOATS

from .draw import Case, Entry, Gen
from .shapes import e

MOSTLY_FLOATS = [*FLOATS, *FLOATS, *FLOATS, *COMPLEX, "int32", "bool_", "uint8"]
COMPUTED = ["float32", "float32", "float64", "complex64", "float16", "bfloat16"]


def product_size(c: Case) -> float:
    """The size of a product's terms together."""
    size = 1.0
    for i in c.inputs.values():
        data = np.abs(np.asarray(i.data).astype(np.complex128))
        data = data[np.isfinite(data)]
        size *= max(1.0, float(data.max(initial=1)))
    longest = max((max(s, default=1) for s in c.shapes), default=1)
    return size * max(4, longest)


# --- products ---


def matrices(g: Gen, dtypes=MOSTLY_FLOATS) -> tuple[str, str]:
    m, k, n = (g.of(1, 2, 3, 4, 7) for _ in range(3))
    if g.chance(0.06):
        m, k, n = g.of((0, 3, 2), (2, 0, 3), (2, 3, 0), (33, 40, 20), (1, 300, 1))
    batch = g.of((), (), (), (2,), (1,), (3, 2), (0,))
    a, b = (*batch, m, k), (*g.partner(batch), k, n)
    if g.chance(0.12):
        a = a[-1:]
    if g.chance(0.12):
        b = (k,)
    if g.chance(0.04):
        b = g.shape(small=True)
    kind = [g.of(*dtypes)] if g.chance(0.6) else dtypes
    return g.arr(kind, a, "few", 0.05), g.arr(kind, b, g.of("few", "any"), 0.05)


def draw_matmul(g: Gen) -> str:
    a, b = matrices(g)
    name = g.entry.name
    if name.startswith("array."):
        which = name.removeprefix("array.__").removesuffix("__")
        if which == "imatmul":
            return f"updated({a}, operator.__imatmul__, {b})"
        if g.chance(0.05):
            b = g.of("2", "'a'", "None", "[1, 2]")
        return f"operator.__matmul__({a}, {b})"
    return g.call([a, b])


def draw_addmm(g: Gen) -> str:
    a, b = matrices(g)
    try:
        out = np.matmul(np.zeros(g.size(a)), np.zeros(g.size(b))).shape
    except ValueError:
        out = (2, 2)
    c = g.arr([g.dtype_of(a)] if g.chance(0.7) else MOSTLY_FLOATS, g.partner(out), "few", 0)
    number = lambda: g.maybe(0.4, "0", "1.0", "2", "-0.5")
    return g.call([c, a, b], pos=[("alpha", number()), ("beta", number())])


def draw_inner(g: Gen) -> str:
    k = g.of(1, 3, 5)
    a = g.arr(MOSTLY_FLOATS, g.of((k,), (2, k), (2, 3, k), ()), "few", 0)
    b = g.arr(MOSTLY_FLOATS, g.of((k,), (4, k), (), (k + 1,)), "few", 0)
    return g.call([a, b])


def draw_outer(g: Gen) -> str:
    a = g.arr(shape=g.of((3,), (), (0,), (2, 2), (5,)), specials=0)
    b = g.arr(shape=g.of((4,), (), (1,), (2, 3)), specials=0)
    return g.call([a, b])


def draw_vecdot(g: Gen) -> str:
    shape = g.shape(1, small=True)
    a = g.arr(shape=shape, domain="few", specials=0)
    b = g.arr(shape=g.of(shape, g.partner(shape)), domain="few", specials=0)
    return g.call([a, b], kw=[("axis", g.maybe(0.5, g.axis(a)))])


def draw_kron(g: Gen) -> str:
    a = g.arr(shape=g.of((), (3,), (2, 2), (0,), (2, 1, 2)), specials=0)
    b = g.arr(shape=g.of((), (2,), (3, 2), (1, 4)), specials=0)
    return g.call([a, b])


def draw_tensordot(g: Gen) -> str:
    a = g.arr(MOSTLY_FLOATS, (2, 3, 4), "few", 0)
    axes, shape = g.of(
        ("0", (2, 2)),
        ("1", (4, 2)),
        ("2", (3, 4, 2)),
        ("3", (2, 3, 4)),
        ("[[0], [1]]", (5, 2)),
        ("[[-1], [0]]", (4, 5)),
        ("[[2, 1], [0, 1]]", (4, 3)),
        ("([1], [0])", (3,)),
        ("[[0, 1], [0]]", (2, 3)),
        ("[[0], [7]]", (2, 3)),
        ("4", (2, 3, 4)),
        ("-1", (4, 2)),
        ("[[0], [0]]", (3, 2)),
    )
    b = g.arr(MOSTLY_FLOATS, shape, "few", 0)
    return g.call([a, b], pos=[("axes", axes if axes != "2" or g.chance(0.5) else None)])


EINSUMS = [
    ("ij,jk->ik", (2, 3), (3, 4)),
    ("ij,jk", (2, 3), (3, 4)),
    ("ij->ji", (2, 3)),
    ("ij->", (2, 3)),
    ("ii->i", (3, 3)),
    ("ii", (3, 3)),
    ("i,j->ij", (2,), (3,)),
    ("i,i->", (3,), (3,)),
    ("bij,bjk->bik", (2, 3, 2), (2, 2, 3)),
    ("...ij,...jk->...ik", (2, 2, 3), (3, 2)),
    ("...i->...", (2, 3)),
    ("ij,jk,kl->il", (2, 3), (3, 2), (2, 4)),
    ("ij,ij,ij->j", (2, 3), (2, 3), (2, 3)),
    ("a b, b c -> a c", (2, 3), (3, 2)),
    ("ijk,ilm,njm,nlk,abc->", (2, 2, 2), (2, 2, 2), (2, 2, 2), (2, 2, 2), (2, 2, 2)),
    ("iij->ij", (2, 2, 3)),
    ("i", (3,)),
    ("", ()),
    ("ij,jk->ikz", (2, 3), (3, 4)),
    ("ij,jk->ii", (2, 3), (3, 4)),
    ("ij,jk", (2, 3), (4, 4)),
    ("ijk->ij", (2, 3)),
    ("i1->i", (2, 3)),
    ("ij,jk->ik", (2, 3)),
    ("ij->i->j", (2, 3)),
    ("i...,...->i...", (2, 3), (3,)),
]


def draw_einsum(g: Gen) -> str:
    subscripts, *shapes = g.of(*EINSUMS)
    kind = [g.of(*MOSTLY_FLOATS)] if g.chance(0.7) else MOSTLY_FLOATS
    args = [g.arr(kind, s, "few", 0) for s in shapes]
    stream = "" if g.entry.name == "einsum_path" else "keyword"
    return g.call([repr(subscripts), *args], stream=stream)


# --- convolutions ---


def draw_convolve(g: Gen) -> str:
    kind = [g.of(*MOSTLY_FLOATS)] if g.chance(0.7) else MOSTLY_FLOATS
    a = g.arr(kind, g.of((5,), (1,), (9,), (2,), (0,), (2, 2)), "few", 0)
    v = g.arr(kind, g.of((3,), (1,), (5,), (8,)), "few", 0)
    return g.call([a, v], pos=[("mode", g.maybe(0.7, "'full'", "'same'", "'valid'", "'none'"))])


def conv(dims: int, transposed: bool):
    def draw(g: Gen) -> str:
        groups = g.of(1, 1, 1, 2)
        c_in, c_out = groups * g.of(1, 2, 3), groups * g.of(1, 2)
        spatial = tuple(g.of(1, 4, 5, 7) if dims < 3 else g.of(3, 4) for _ in range(dims))
        kernel = tuple(g.of(1, 2, 3) for _ in range(dims))
        weight = (c_out, *kernel, c_in // groups)
        if g.chance(0.04):
            weight = (*weight[:-1], weight[-1] + 1)
        kind = [g.of("float32", "float32", "float16", "bfloat16", "float64", "int32", "complex64")]
        x = g.arr(kind, (g.of(1, 2), *spatial, c_in), "few", 0)
        w = g.arr(kind if g.chance(0.9) else COMPUTED, weight, "few", 0)

        def number(*choices: int) -> str:
            if dims == 1 or g.chance(0.5):
                return str(g.of(*choices))
            return repr(tuple(g.of(*choices) for _ in range(dims if g.chance(0.95) else 4)))

        pos = [
            ("stride", g.maybe(0.5, number(1, 2, 3))),
            ("padding", g.maybe(0.6, number(0, 1, 2))),
            ("dilation", g.maybe(0.4, number(1, 2))),
        ]
        if transposed:
            pos.append(("output_padding", g.maybe(0.3, number(0, 1))))
        pos.append(("groups", str(groups) if groups > 1 else g.maybe(0.1, "1", "3", "0")))
        return g.call([x, w], pos=pos)

    return draw


def draw_conv_general(g: Gen) -> str:
    dims = g.of(1, 2, 2, 3)
    groups = g.of(1, 1, 1, 2)
    c_in, c_out = groups * g.of(1, 2), groups * g.of(1, 2)
    x = g.arr(
        ["float32", "float32", "float16", "float64"],
        (g.of(1, 2), *(g.of(4, 5) for _ in range(dims)), c_in),
        "few",
        0,
    )
    w = g.arr(
        [g.dtype_of(x)], (c_out, *(g.of(1, 2, 3) for _ in range(dims)), c_in // groups), "few", 0
    )
    each = lambda *c: g.of(str(g.of(*c)), repr([g.of(*c) for _ in range(dims)]))
    padding = g.of(
        each(0, 1, 2),
        repr(([g.of(0, 1, 2) for _ in range(dims)], [g.of(0, 1) for _ in range(dims)])),
    )
    return g.call(
        [x, w],
        pos=[
            ("stride", g.maybe(0.5, each(1, 2))),
            ("padding", g.maybe(0.6, padding)),
            ("kernel_dilation", g.maybe(0.4, each(1, 2))),
            ("input_dilation", g.maybe(0.4, each(1, 2))),
            ("groups", str(groups) if groups > 1 else None),
            ("flip", g.maybe(0.3, "True", "False")),
        ],
    )


# --- linalg ---

MATRICES = ["float32", "float32", "float32", "float64", "complex64", "float16", "int32"]


def square(g: Gen) -> str:
    """A matrix, or several, that is not close to singular."""
    n = g.of(1, 2, 3, 4, 6)
    shape = (*g.of((), (), (2,), (2, 2)), n, n)
    if g.chance(0.06):
        shape = g.of((3,), (), (2, 3), (0, 0), (0, 2, 2))
    x = g.arr(MATRICES, shape, "unit", 0)
    if len(shape) > 1 and shape[-1] == shape[-2] and g.dtype_of(x).startswith(("f", "c")):
        return f"({x} + {2 * n} * mx.eye({n}, dtype={x}.dtype))"
    return x


def positive(g: Gen) -> str:
    """Symmetric and positive definite."""
    n = g.of(1, 2, 3, 5)
    shape = (*g.of((), (), (2,)), n, n)
    x = g.arr(["float32", "float32", "float64", "float16", "int32"], shape, "unit", 0)
    return f"(mx.matmul({x}, mx.swapaxes({x}, -1, -2)) + {n + 1} * mx.eye({n}, dtype={x}.dtype))"


def any_matrix(g: Gen) -> str:
    shape = g.of((3, 3), (2, 4), (5, 2), (2, 3, 3), (2, 2, 3), (1, 1), (4, 4))
    if g.chance(0.06):
        shape = g.of((3,), (), (0, 3), (3, 0))
    return g.arr(MATRICES, shape, "unit", 0)


def lin(make, *pos):
    return lambda g: g.call([make(g)], pos=[(n, g.maybe(0.4, *c)) for n, *c in pos])


def rebuilt(text: str):
    """Factors are unique up to signs and order: what they multiply to is compared."""

    def draw(g: Gen) -> str:
        x = any_matrix(g) if "sym" not in text else positive(g)
        call = g.call([x])
        return f"(lambda {text.removeprefix('sym ')})({call})"

    return draw


def draw_solve(g: Gen) -> str:
    a = square(g)
    n = next(iter(g.inputs.values())).shape
    rows = n[-1] if n else 1
    b = g.arr(
        ["float32", "float64"], (*n[:-2], rows, g.of(1, 2)) if g.chance(0.7) else (rows,), "unit", 0
    )
    if g.entry.name.endswith("triangular"):
        up = g.flag()
        return g.call(
            [f"mx.tri{'u' if up == 'True' else 'l'}({a})", b],
            kw=[("upper", up if up == "True" else g.of(up, None))],
        )
    return g.call([a, b])


def draw_triangle(g: Gen) -> str:
    a = square(g)
    up = g.flag()
    return g.call([f"mx.tri{'u' if up == 'True' else 'l'}({a})"], pos=[("upper", up)])


def draw_cholesky(g: Gen) -> str:
    return g.call([positive(g)], pos=[("upper", g.maybe(0.5, "True", "False"))])


def draw_cholesky_inv(g: Gen) -> str:
    a = positive(g)
    up = g.flag()
    return g.call([f"mx.linalg.cholesky({a}, {up})"], pos=[("upper", up)])


def draw_norm(g: Gen) -> str:
    x = g.arr(specials=0, shape=g.of((), (3,), (0,), (2, 3), (3, 3), (2, 3, 4), (2, 2, 3, 2)))
    order = g.maybe(
        0.7, "1", "2", "-1", "-2", "0", "3", "2.5", "inf", "-inf", "'fro'", "'nuc'", "'up'", "None"
    )
    axis = g.axes(x) if g.chance(0.5) else None
    return g.call(
        [x], pos=[("ord", order), ("axis", axis), ("keepdims", g.maybe(0.4, "True", "False"))]
    )


def draw_cross(g: Gen) -> str:
    shape = g.of((3,), (2, 3), (3, 2), (2, 2), (2,), (4, 3), (3, 3), (4,))
    a = g.arr(shape=shape, domain="few", specials=0)
    b = g.arr(shape=g.of(shape, g.partner(shape), (3,), (2,)), domain="few", specials=0)
    return g.call([a, b], pos=[("axis", g.maybe(0.4, g.axis(a)))])


# --- fft ---


def size_of_sum(c: Case) -> float:
    first = next(iter(c.inputs.values()), None)
    return (
        max(1.0, float(np.abs(first.data).sum())) if first is not None and first.data.size else 1.0
    )


def fft_one(g: Gen) -> str:
    x = g.arr(
        shape=g.of((8,), (7,), (1,), (3, 8), (2, 5, 4), (16,), (30,), (4, 0), (), (13,)), specials=0
    )
    return g.call(
        [x],
        pos=[
            ("n", g.maybe(0.4, "4", "1", "5", "12", "0", "None", "-1")),
            ("axis", g.maybe(0.5, g.axis(x))),
            ("norm", g.maybe(0.3, "'backward'", "'ortho'", "'forward'", "'up'", "None")),
        ],
        stream="positional",
    )


def fft_many(g: Gen) -> str:
    x = g.arr(shape=g.of((4, 6), (3, 5), (2, 4, 3), (8, 1), (5,), (2, 2, 2, 4)), specials=0)
    n = g.rank(x)
    count = g.r.randrange(1, n + 1)
    axes = repr([a - n if g.chance(0.5) else a for a in g.r.sample(range(n), count)])
    if g.chance(0.05):
        axes = g.of("[9]", "[]", "[0, 0]", "None")
    s = repr([g.of(1, 3, 4, 6) for _ in range(count)])
    with_axes = g.chance(0.6)
    with_s = g.chance(0.4)
    if with_s and not with_axes and "2" in g.entry.name:
        s = repr([g.of(2, 4, 5) for _ in range(2)])
    return g.call(
        [x],
        pos=[
            ("s", s if with_s else None),
            ("axes", axes if with_axes else None),
            ("norm", g.maybe(0.3, "'backward'", "'ortho'", "'forward'", "'up'")),
        ],
        stream="positional",
    )


def draw_shift(g: Gen) -> str:
    x = g.arr()
    return g.call([x], pos=[("axes", g.maybe(0.6, g.axes(x)))], stream="positional")


def draw_freq(g: Gen) -> str:
    return g.call(
        [g.of("0", "1", "2", "5", "8", "9", "-1")],
        pos=[("d", g.maybe(0.5, "0.5", "2", "0.1", "0"))],
        stream="positional",
    )


def draw_stft(g: Gen) -> str:
    n = g.of(4, 8, 16)
    x = g.arr(["float32"], g.of((40,), (2, 33)), specials=0)
    hop = g.of(2, 4)
    options = f"n_fft={n}, hop_length={hop}, center={g.flag()}, norm={g.of(repr('backward'), repr('ortho'))}"
    if g.chance(0.3):
        options += f", window=mx.hanning({n})"
    if g.entry.name.endswith("istft"):
        return f"mx.fft.istft(mx.fft.stft({x}, n_fft={n}, hop_length={hop}), n_fft={n}, hop_length={hop})"
    return f"mx.fft.stft({x}, {options})"


P = {"ulps": 64, "scale": product_size}
L = {"ulps": 2048, "scale": product_size}
F = {"ulps": 64, "scale": size_of_sum}

ENTRIES: list[Entry] = [
    e("matmul", draw_matmul, 1.3, **P),
    e("array.__matmul__", draw_matmul, 0.5, **P),
    e("array.__imatmul__", draw_matmul, 0.4, **P),
    e("addmm", draw_addmm, **P),
    e("inner", draw_inner, 0.8, **P),
    e("outer", draw_outer, 0.8, ulps=4),
    e("vecdot", draw_vecdot, 0.8, **P),
    e("kron", draw_kron, 0.8, ulps=4),
    e("tensordot", draw_tensordot, **P),
    e("einsum", draw_einsum, 1.2, **P),
    e("einsum_path", draw_einsum, 0.4),
    e("convolve", draw_convolve, 0.8, **P),
    *(e(f"conv{d}d", conv(d, False), 0.9, **P) for d in (1, 2, 3)),
    *(e(f"conv_transpose{d}d", conv(d, True), 0.9, **P) for d in (1, 2, 3)),
    e("conv_general", draw_conv_general, 1.0, **P),
    e("linalg.cholesky", draw_cholesky, 0.6, **L),
    e("linalg.cholesky_inv", draw_cholesky_inv, 0.4, **L),
    e("linalg.cross", draw_cross, 0.8, **P),
    e("linalg.det", lin(square), 0.6, ulps=2048, scale="largest"),
    e("linalg.slogdet", lin(square), 0.6, **L),
    e("linalg.inv", lin(square), 0.6, **L),
    e("linalg.tri_inv", draw_triangle, 0.5, **L),
    e("linalg.pinv", lin(any_matrix), 0.5, ulps=2**16, scale=product_size),
    e("linalg.solve", draw_solve, 0.6, **L),
    e("linalg.solve_triangular", draw_solve, 0.6, **L),
    e("linalg.lu", lin(square), 0.5, **L),
    e("linalg.lu_factor", lin(square), 0.5, **L),
    e("linalg.qr", rebuilt("r: (r[0] @ r[1], mx.abs(r[1]))"), 0.5, **L),
    e(
        "linalg.svd",
        rebuilt(
            "r: (r[1], (r[0][..., :, :r[1].shape[-1]] * r[1][..., None, :]) @ r[2][..., :r[1].shape[-1], :])"
        ),
        0.6,
        **L,
    ),
    e(
        "linalg.eigh",
        rebuilt("sym r: (r[0], (r[1] * r[0][..., None, :]) @ mx.swapaxes(r[1], -1, -2))"),
        0.5,
        **L,
    ),
    e(
        "linalg.eigvalsh",
        lambda g: g.call([positive(g)], pos=[("UPLO", g.maybe(0.5, "'L'", "'U'", "'l'"))]),
        0.5,
        **L,
    ),
    e("linalg.eig", rebuilt("sym r: (mx.sort(mx.real(r[0]), -1), [q.shape for q in r])"), 0.4, **L),
    e("linalg.eigvals", lambda g: f"mx.sort(mx.real({g.call([positive(g)])}), -1)", 0.4, **L),
    e("linalg.norm", draw_norm, 1.2, ulps=256, scale=product_size),
    e("matrix_norm", draw_norm, 0.3, ulps=256, scale=product_size),
    *(e(f"fft.{n}", fft_one, 0.7, **F) for n in ("fft", "ifft", "rfft", "irfft")),
    *(
        e(f"fft.{n}", fft_many, 0.6, **F)
        for n in ("fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn")
    ),
    e("fft.fftshift", draw_shift, 0.5),
    e("fft.ifftshift", draw_shift, 0.5),
    e("fft.fftfreq", draw_freq, 0.2, ulps=4),
    e("fft.rfftfreq", draw_freq, 0.2, ulps=4),
    e("fft.stft", draw_stft, 0.3, **F),
    e("fft.istft", draw_stft, 0.3, ulps=512, scale=size_of_sum),
]
