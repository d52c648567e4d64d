"""einsum and einsum_path against mlx, and against NumPy in float64."""

import numpy as np
import pytest
from support.harness import ALL, INEXACT, LAYOUTS, Tally, given, rng, sample, um

Shapes = tuple[tuple[int, ...], ...]

# Subscripts, and the operands' shapes.
CASES: list[tuple[str, Shapes]] = [
    ("i->i", ((4,),)),
    ("i->", ((4,),)),
    ("ij", ((3, 2),)),
    ("ji", ((3, 2),)),
    ("ij->j", ((3, 2),)),
    ("ij->", ((3, 2),)),
    ("ii", ((3, 3),)),
    ("ii->i", ((3, 3),)),
    ("iij->j", ((2, 2, 3),)),
    ("ijij->ij", ((2, 3, 2, 3),)),
    ("ijij->ji", ((2, 3, 2, 3),)),
    ("iii->i", ((3, 3, 3),)),
    ("iii->", ((3, 3, 3),)),
    ("", ((),)),
    ("->", ((),)),
    (",->", ((), ())),
    ("i,->i", ((3,), ())),
    (",ij", ((), (3, 2))),
    ("...", ((3, 2),)),
    ("...i->...", ((3, 2),)),
    ("i...->...i", ((3, 2, 4),)),
    ("i...->...", ((3, 2, 4),)),
    ("b...a", ((2, 5, 3),)),
    ("...ii->...i", ((4, 2, 2),)),
    ("ij->i...", ((2, 3),)),
    ("i,i->", ((5,), (5,))),
    ("i,i->i", ((5,), (5,))),
    ("i,j->ij", ((5,), (3,))),
    ("i,j->ji", ((5,), (3,))),
    ("ij,jk->ik", ((2, 3), (3, 4))),
    ("ij,jk", ((2, 3), (3, 4))),
    ("i j , j k -> k i", ((2, 3), (3, 4))),
    ("ij,kj->ik", ((2, 3), (4, 3))),
    ("AB,Bc", ((2, 3), (3, 4))),
    ("aB,Bc", ((2, 3), (3, 4))),
    ("ij,jk->k", ((2, 3), (3, 4))),
    ("ij,jk->", ((2, 3), (3, 4))),
    ("ij,ij->ij", ((2, 3), (2, 3))),
    ("ij,ij->i", ((2, 3), (2, 3))),
    ("ij,ij->", ((2, 3), (2, 3))),
    ("ii,ij->j", ((3, 3), (3, 2))),
    ("ijk,jil->kl", ((3, 4, 5), (4, 3, 2))),
    ("bij,bjk->bik", ((4, 2, 3), (4, 3, 5))),
    ("bij,bjk->ikb", ((4, 2, 3), (4, 3, 5))),
    ("bhid,bhjd->bhij", ((2, 3, 4, 5), (2, 3, 6, 5))),
    ("bhij,bhjd->bihd", ((2, 3, 4, 6), (2, 3, 6, 5))),
    ("abcd,cdef->abef", ((2, 3, 2, 2), (2, 2, 3, 2))),
    ("abcd,dbxy->acxy", ((2, 3, 2, 4), (4, 3, 2, 2))),
    ("...ij,...jk->...ik", ((5, 2, 3), (3, 4))),
    ("...ij,...jk->...ik", ((5, 1, 2, 3), (6, 3, 4))),
    ("...a,...b", ((4, 2), (4, 3))),
    ("...,...->...", ((4, 1), (3,))),
    ("...,...", ((4, 1), (3,))),
    ("i...,i->...", ((3, 4, 2), (3,))),
    ("ij,jk->ik", ((2, 3), (1, 4))),
    ("ij,jk->ik", ((2, 1), (3, 4))),
    ("ij,ij->", ((2, 1), (1, 3))),
    ("ij,ij->ij", ((2, 1), (1, 3))),
    ("bi,bi->b", ((1, 3), (4, 3))),
    ("ij,jk->ik", ((2, 0), (0, 4))),
    ("ij,jk->ik", ((0, 2), (2, 4))),
    ("ij->i", ((2, 0),)),
    ("i,i,i->i", ((3,), (3,), (3,))),
    ("i,i,i->", ((3,), (3,), (3,))),
    ("i,j,k->ijk", ((2,), (3,), (4,))),
    ("i,j,k->", ((2,), (3,), (4,))),
    ("ij,jk,kl->il", ((2, 3), (3, 4), (4, 5))),
    ("ij,jk,ki->", ((2, 3), (3, 4), (4, 2))),
    ("ij,jk,jl->ikl", ((2, 3), (3, 4), (3, 5))),
    ("ij,jk,jl->ikl", ((2, 1), (1, 4), (3, 5))),
    ("ij,jk,kl,lm->im", ((2, 3), (3, 4), (4, 5), (5, 2))),
    ("ea,fb,abcd,gc,hd->efgh", ((5, 2), (3, 2), (2, 2, 2, 2), (4, 2), (2, 2))),
    ("bi,io,bo->b", ((4, 3), (3, 5), (4, 5))),
    ("...i,ij,...j->...", ((4, 2, 3), (3, 5), (2, 5))),
    ("ii,jj,ij->ij", ((3, 3), (4, 4), (3, 4))),
    ("abc,bcd,a,d->", ((2, 3, 4), (3, 4, 5), (2,), (5,))),
]

WRONG: list[tuple[str, Shapes]] = [
    ("ij,jk->ik", ((2, 3), (4, 4))),
    ("ij,jk->il", ((2, 3), (3, 4))),
    ("ij,jk->ii", ((2, 3), (3, 4))),
    ("ij", ((2,),)),
    ("ij,jk", ((2, 3),)),
    ("ij", ((2, 3), (2, 3))),
    ("ij", ()),
    ("i1->i", ((2, 3),)),
    ("ij-->i", ((2, 3),)),
    ("ij->i->", ((2, 3),)),
    ("i..->i", ((2, 3),)),
    ("......", ((2,),)),
    ("...i...->i", ((2, 3),)),
    ("...->i", ((2,),)),
    ("...ijk", ((2, 3),)),
    ("ii->", ((3, 1),)),
    ("ii->i", ((1, 3),)),
]


def named(case: tuple[str, Shapes]) -> str:
    return f"{case[0]} {case[1]}".replace("[", "").replace("*", "")


@pytest.mark.parametrize("dtype", ALL)
def test_einsum(tally: Tally, dtype: str) -> None:
    cases = [(case, layout) for case in CASES + WRONG for layout in LAYOUTS]
    # mlx may never return from a sum over an empty axis.
    cases = [case for case in cases if all(0 not in shape for shape in case[0][1])]
    for (subscripts, shapes), layout in sample(cases, 100, dtype):
        tally.same(
            f"{named((subscripts, shapes))} {layout.name}",
            lambda mx, *x, of=subscripts: mx.einsum(of, *x),
            *(given(dtype, s, layout, key=i) for i, s in enumerate(shapes)),
            ulps=64,
            scale="largest",
        )


@pytest.mark.parametrize("dtype", INEXACT)
def test_empty_operands(dtype: str) -> None:
    for subscripts, shapes in [case for case in CASES if any(0 in shape for shape in case[1])]:
        got = um.einsum(subscripts, *[um.zeros(shape, getattr(um, dtype)) for shape in shapes])
        want = np.einsum(subscripts, *[np.zeros(shape) for shape in shapes])
        assert got.dtype == getattr(um, dtype)
        np.testing.assert_array_equal(np.asarray(got.astype(um.complex64)), want)


def test_path(tally: Tally) -> None:
    for subscripts, shapes in CASES + WRONG:
        operands = [given("float32", s, key=i) for i, s in enumerate(shapes)]
        tally.same(
            named((subscripts, shapes)),
            lambda mx, *x, of=subscripts: mx.einsum_path(of, *x),
            *operands,
        )


def test_refused_everywhere() -> None:
    """An index of the output that is of no operand, which mlx's path lets pass."""
    for call in um.einsum, um.einsum_path:
        with pytest.raises(ValueError, match="output"):
            call("ij,jk->il", um.zeros((2, 3)), um.zeros((3, 4)))


@pytest.mark.parametrize("case", CASES, ids=named)
def test_numpy(case: tuple[str, Shapes]) -> None:
    """In float64, whose sums mlx does elsewhere with fewer digits."""
    subscripts, shapes = case
    data = [rng("einsum", i, s).standard_normal(s) for i, s in enumerate(shapes)]
    try:
        want = np.einsum(subscripts, *data)
    except ValueError:
        pytest.skip("NumPy does not take it")
    got = np.asarray(um.einsum(subscripts, *[um.array(d, um.float64) for d in data]))
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("seed", range(40))
def test_made_up(seed: int) -> None:
    """Random subscripts of up to five operands, with axes of size 1 here and there."""
    r = rng("made up", seed)
    letters = "abcdef"
    sizes = dict(zip(letters, (int(n) for n in r.integers(1, 5, len(letters)))))
    terms = ["".join(r.choice(list(letters), r.integers(0, 4))) for _ in range(r.integers(1, 6))]
    used = sorted({c for t in terms for c in t})
    output = "".join(c for c in r.permutation(used) if r.random() < 0.5) if used else ""
    data = []
    for term in terms:
        narrow = {c for c in term if r.random() < 0.15}
        shape = tuple(1 if c in narrow else sizes[c] for c in term)
        data.append(r.standard_normal(shape))
    subscripts = f"{','.join(terms)}->{output}"
    want = np.einsum(subscripts, *data)
    got = np.asarray(um.einsum(subscripts, *[um.array(d, um.float64) for d in data]))
    np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("case", [c for c in CASES if all(0 not in s for s in c[1])], ids=named)
def test_transforms(case: tuple[str, Shapes]) -> None:
    """Gradients, forward derivatives and vmap agree with each other and with a loop."""
    subscripts, shapes = case
    data = [rng("einsum", i, s).standard_normal(s) for i, s in enumerate(shapes)]
    x = [um.array(d, um.float64) for d in data]

    def f(*x):
        return um.einsum(subscripts, *x)

    shape = f(*x).shape
    weight = um.array(rng("weight", shape).standard_normal(shape), um.float64)
    _, gradients = um.vjp(f, x, [weight])
    for k, tangent in enumerate(x):
        alone = [t if i == k else um.zeros_like(t) for i, t in enumerate(x)]
        _, product = um.jvp(f, x, alone)
        # The sum is linear in each operand: its derivative along an operand is itself.
        np.testing.assert_allclose(np.asarray(product[0]), np.asarray(f(*x)), atol=1e-12)
        left = um.sum(gradients[k] * tangent).item()
        assert left == pytest.approx(um.sum(weight * f(*x)).item(), rel=1e-10, abs=1e-10)
    batch = [um.stack([a, 2 * a, -a]) for a in x]
    got = um.vmap(f)(*batch)
    want = um.stack([f(*(b[i] for b in batch)) for i in range(3)])
    np.testing.assert_allclose(np.asarray(got), np.asarray(want), atol=1e-11)
