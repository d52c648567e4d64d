//! Derivatives of the decompositions.
//!
//! Sources: M. Giles, "Collected matrix derivative results for forward and reverse mode algorithmic
//! differentiation" (2008); I. Murray, "Differentiation of the Cholesky decomposition" (2016); J. Townsend,
//! "Differentiating the singular value decomposition" (2016); S. Walter and L. Lehmann, "Algorithmic differentiation
//! of linear algebra functions" (2010), for QR and LU; C. Boeddeker et al., "On the computation of complex-valued
//! gradients" (2017), for eigenvectors. Reverse rules are the adjoints of the forward rules in the
//! inner product `Re tr(x^H y)`.
//!
//! What a matrix does not determine has no derivative: signs and phases of vectors are held, and so is the choice
//! among vectors of equal singular values or eigenvalues. Functions that do not depend on it have theirs.
//! Symmetric matrices stay symmetric: tangents are made so, and cotangents are.

use super::{
    Cotangents, Jvp, Vjp,
    eig::Eig,
    eigh::Eigh,
    lean::{bin, like, plus, un, with_axis},
    many::{ManyJvp, ManyVjp},
    matmul::adjoint,
    matrices::{real_of, sizes},
    select::where_,
    svd::Svd,
    triangular::SolveTriangular,
};
use crate::{array::Array, dtype::Dtype, error::Result};
use smallvec::smallvec;
use ultramarine_abi::schema::{binary, unary};

/// One triangle without the diagonal.
fn below(a: &Array) -> Result<Array> {
    a.tril(-1)
}

fn minus(a: &Array, b: &Array) -> Result<Array> {
    bin(binary::SUBTRACT, a, b)
}

fn negated(a: &Array) -> Array {
    un(unary::NEGATIVE, a)
}

/// Half of each: the Hermitian part.
fn hermitian(a: &Array) -> Result<Array> {
    let sum = a.add(&adjoint(a)?)?;
    sum.multiply(&like(&sum, 0.5))
}

/// The main diagonals, `(..., k)`.
pub(crate) fn diagonal(a: &Array) -> Result<Array> {
    a.diagonal(0, -2, -1)
}

/// Square matrices with these diagonals, and zeros.
fn with_diagonal(d: &Array) -> Result<Array> {
    let n = d.shape()[d.ndim() - 1];
    with_axis(d, d.ndim())?.multiply(&Array::identity(n, d.dtype())?)
}

/// The real part, in the dtype of `a`.
fn real(a: &Array) -> Result<Array> {
    if a.dtype().is_complex() { Ok(a.real()?.astype(a.dtype())) } else { Ok(a.clone()) }
}

/// `i` times the imaginary part; zero for real matrices.
fn imaginary(a: &Array) -> Result<Option<Array>> {
    if a.dtype().is_complex() { minus(a, &real(a)?).map(Some) } else { Ok(None) }
}

/// Columns from `start` on.
fn columns(a: &Array, start: usize, stop: usize) -> Result<Array> {
    a.along(a.ndim() - 1, start, stop, 1)
}

fn rows(a: &Array, start: usize, stop: usize) -> Result<Array> {
    a.along(a.ndim() - 2, start, stop, 1)
}

/// The vectors as factors of the columns.
fn of_columns(d: &Array) -> Result<Array> {
    with_axis(d, d.ndim() - 1)
}

/// `1 / x`, and 0 for zero.
pub(crate) fn safe_inverse(x: &Array) -> Result<Array> {
    let zero = bin(binary::EQUAL, x, &like(x, 0.0))?;
    let inverse = un(unary::RECIPROCAL, &where_(&zero, &like(x, 1.0), x)?);
    where_(&zero, &like(x, 0.0), &inverse)
}

/// `1 / (w_j - w_i)` in row i, column j; 0 where they are equal.
fn gaps(w: &Array) -> Result<Array> {
    safe_inverse(&minus(&of_columns(w)?, &with_axis(w, w.ndim())?)?)
}

/// Zeros for no cotangent.
fn or_zeros(a: &Option<Array>, output: &Array) -> Array {
    a.clone().unwrap_or_else(|| output.zeros_like())
}

/// `x t^-1` for triangular `t`.
fn divided(x: &Array, t: &Array, upper: bool) -> Result<Array> {
    adjoint(&SolveTriangular { upper: !upper }.of(&adjoint(t)?, &adjoint(x)?)?)
}

/// `t^-1 x`.
fn solved(t: &Array, x: &Array, upper: bool) -> Result<Array> {
    SolveTriangular { upper }.of(t, x)
}

fn one(a: Array) -> Result<Cotangents> {
    Ok(smallvec![Some(a)])
}

// --- Triangular systems -------------------------------------------------------------------

/// Of `a x = b`: `b' = a^-H x'`, `a' = -b' x^H` in the triangle.
pub(crate) fn solve_triangular_vjp(v: &Vjp<'_>, upper: bool) -> Result<Cotangents> {
    let b = solved(&adjoint(&v.primals[0])?, v.cotangent, !upper)?;
    let a = if v.wanted[0] {
        let full = negated(&b.matmul(&adjoint(v.output)?)?);
        Some(if upper { full.triu(0)? } else { full.tril(0)? })
    } else {
        None
    };
    Ok(smallvec![a, Some(b)])
}

/// `dx = a^-1 (db - da x)`.
pub(crate) fn solve_triangular_jvp(j: &Jvp<'_>, upper: bool) -> Result<Option<Array>> {
    let from_a = match &j.tangents[0] {
        Some(t) => {
            let t = if upper { t.triu(0)? } else { t.tril(0)? };
            Some(negated(&t.matmul(j.output)?))
        }
        None => None,
    };
    let right = plus(j.tangents[1].clone(), from_a)?;
    right.map(|r| solved(&j.primals[0], &r, upper)).transpose()
}

// --- Cholesky -----------------------------------------------------------------------------

/// The lower triangle with half of the diagonal.
fn half_lower(a: &Array) -> Result<Array> {
    let half = like(a, 0.5);
    a.tril(0)?.add(&below(a)?)?.multiply(&half)
}

/// `a' = L^-H half_lower(L^H L') L^-1`, made Hermitian.
pub(crate) fn cholesky_vjp(v: &Vjp<'_>, upper: bool) -> Result<Cotangents> {
    let lower = |x: &Array| if upper { adjoint(x) } else { Ok(x.clone()) };
    let (l, ct) = (lower(v.output)?, lower(v.cotangent)?);
    let middle = half_lower(&adjoint(&l)?.matmul(&ct)?)?;
    let left = solved(&adjoint(&l)?, &middle, true)?;
    one(hermitian(&divided(&left, &l, false)?)?)
}

/// `dL = L half_lower(L^-1 da L^-H)`.
pub(crate) fn cholesky_jvp(j: &Jvp<'_>, upper: bool) -> Result<Option<Array>> {
    let Some(t) = &j.tangents[0] else { return Ok(None) };
    let l = if upper { adjoint(j.output)? } else { j.output.clone() };
    let inner = divided(&solved(&l, &hermitian(t)?, false)?, &adjoint(&l)?, true)?;
    let d = l.matmul(&half_lower(&inner)?)?;
    Ok(Some(if upper { adjoint(&d)? } else { d }))
}

// --- LU -----------------------------------------------------------------------------------

/// The leading square factors of packed ones: L with its ones, and U.
fn square_factors(lu: &Array, k: usize) -> Result<(Array, Array)> {
    let head = columns(&rows(lu, 0, k)?, 0, k)?;
    let l = below(&head)?.add(&Array::identity(k, lu.dtype())?)?;
    Ok((l, head.triu(0)?))
}

/// The rows in another order.
fn ordered(a: &Array, order: &Array) -> Result<Array> {
    let index = with_axis(order, order.ndim())?.broadcast_to(a.shape())?;
    a.take_along_axis(&index, Some(-2))
}

/// For square factors `P a = L U`: `(P a)' = L^-H (below(L^H L') + above(U' U^H)) U^-H`; what lies beyond the leading
/// square belongs to L or U alone.
pub(crate) fn lu_vjp(v: &ManyVjp<'_>) -> Result<Cotangents> {
    let Some(ct) = &v.cotangents[0] else { return Ok(smallvec![None]) };
    let lu = &v.outputs[0];
    let ((m, n), order) = (sizes(lu), v.outputs[2].argsort(Some(-1))?);
    let k = m.min(n);
    let (l, u) = square_factors(lu, k)?;
    let head = columns(&rows(ct, 0, k)?, 0, k)?;
    let (mut dl, mut du) = (below(&head)?, head.triu(0)?);
    let mut rest = None;
    if m > n {
        // L2 = A2 U^-1.
        let tail = divided(&rows(ct, k, m)?, &adjoint(&u)?, false)?;
        du = minus(&du, &adjoint(&rows(lu, k, m)?)?.matmul(&tail)?)?;
        rest = Some((tail, -2));
    } else if n > m {
        // U2 = L^-1 A2.
        let tail = solved(&adjoint(&l)?, &columns(ct, k, n)?, true)?;
        dl = minus(&dl, &tail.matmul(&adjoint(&columns(lu, k, n)?)?)?)?;
        rest = Some((tail, -1));
    }
    let left = below(&adjoint(&l)?.matmul(&dl)?)?;
    let middle = left.add(&du.matmul(&adjoint(&u)?)?.triu(0)?)?;
    let right = divided(&solved(&adjoint(&l)?, &middle, true)?, &adjoint(&u)?, false)?;
    let all = match rest {
        Some((tail, axis)) => crate::concatenate(&[right, tail], axis)?,
        None => right,
    };
    one(ordered(&all, &order)?)
}

/// `dL = L below(F)`, `dU = above(F) U` with `F = L^-1 P da U^-1`, packed.
pub(crate) fn lu_jvp(j: &ManyJvp<'_>) -> Result<Vec<Option<Array>>> {
    let Some(t) = &j.tangents[0] else { return Ok(vec![None; 3]) };
    let lu = &j.outputs[0];
    let (m, n) = sizes(lu);
    let k = m.min(n);
    let (l, u) = square_factors(lu, k)?;
    let t = ordered(t, &j.outputs[2])?;
    let head = columns(&rows(&t, 0, k)?, 0, k)?;
    let f = divided(&solved(&l, &head, false)?, &u, true)?;
    let (dl, du) = (l.matmul(&below(&f)?)?, f.triu(0)?.matmul(&u)?);
    let mut out = dl.add(&du)?;
    if m > n {
        let gone = rows(lu, k, m)?.matmul(&du)?;
        let tail = divided(&minus(&rows(&t, k, m)?, &gone)?, &u, true)?;
        out = crate::concatenate(&[out, tail], -2)?;
    } else if n > m {
        let gone = dl.matmul(&columns(lu, k, n)?)?;
        let tail = solved(&l, &minus(&columns(&t, k, n)?, &gone)?, false)?;
        out = crate::concatenate(&[out, tail], -1)?;
    }
    Ok(vec![Some(out), None, None])
}

// --- QR -----------------------------------------------------------------------------------

/// `a' = (Q' + Q T) R^-H`, where T is Hermitian with the upper triangle of `R' R^H - Q^H Q'`. Of wide
/// matrices that is the leading square; the other columns are `Q^H a`.
pub(crate) fn qr_vjp(v: &ManyVjp<'_>) -> Result<Cotangents> {
    let (q, r, a) = (&v.outputs[0], &v.outputs[1], &v.primals[0]);
    let (mut dq, dr) = (or_zeros(&v.cotangents[0], q), or_zeros(&v.cotangents[1], r));
    let (m, n) = sizes(a);
    let k = m.min(n);
    let (mut head, mut d_head, mut tail) = (r.clone(), dr.clone(), None);
    if n > m {
        let beyond = columns(&dr, k, n)?;
        dq = dq.add(&columns(a, k, n)?.matmul(&adjoint(&beyond)?)?)?;
        tail = Some(q.matmul(&beyond)?);
        (head, d_head) = (columns(r, 0, k)?, columns(&dr, 0, k)?);
    }
    let inner = minus(&d_head.triu(0)?.matmul(&adjoint(&head)?)?, &adjoint(q)?.matmul(&dq)?)?;
    let upper = inner.triu(1)?;
    let middle = upper.add(&adjoint(&upper)?)?.add(&with_diagonal(&real(&diagonal(&inner)?)?)?)?;
    let left = divided(&dq.add(&q.matmul(&middle)?)?, &adjoint(&head)?, false)?;
    one(match tail {
        Some(tail) => crate::concatenate(&[left, tail], -1)?,
        None => left,
    })
}

/// `dQ = Q (W - M) + C`, `dR = (M - W) R` with `C = da R^-1`, `M = Q^H C`, and the W that is skew like
/// M below its diagonal.
pub(crate) fn qr_jvp(j: &ManyJvp<'_>) -> Result<Vec<Option<Array>>> {
    let Some(t) = &j.tangents[0] else { return Ok(vec![None; 2]) };
    let (q, r, a) = (&j.outputs[0], &j.outputs[1], &j.primals[0]);
    let (m, n) = sizes(a);
    let k = m.min(n);
    let head = columns(r, 0, k)?;
    let c = divided(&columns(t, 0, k)?, &head, true)?;
    let inner = adjoint(q)?.matmul(&c)?;
    let lower = below(&inner)?;
    let mut skew = minus(&lower, &adjoint(&lower)?)?;
    if let Some(i) = imaginary(&diagonal(&inner)?)? {
        skew = skew.add(&with_diagonal(&i)?)?;
    }
    let turn = minus(&inner, &skew)?;
    let dq = minus(&c, &q.matmul(&turn)?)?;
    let mut dr = turn.matmul(&head)?.triu(0)?;
    if n > m {
        let beyond = adjoint(&dq)?
            .matmul(&columns(a, k, n)?)?
            .add(&adjoint(q)?.matmul(&columns(t, k, n)?)?)?;
        dr = crate::concatenate(&[dr, beyond], -1)?;
    }
    Ok(vec![Some(dq), Some(dr)])
}

// --- Symmetric eigenvalues ----------------------------------------------------------------

/// `a' = V (diag(w') + F * (V^H V')) V^H`, made Hermitian, `F_ij = 1 / (w_j - w_i)`.
pub(crate) fn eigh_vjp(v: &ManyVjp<'_>) -> Result<Cotangents> {
    let (w, vectors) = (&v.outputs[0], &v.outputs[1]);
    let from_w = v.cotangents[0].as_ref().map(|c| with_diagonal(&c.astype(vectors.dtype())));
    let from_v = v.cotangents[1].as_ref().map(|c| -> Result<Array> {
        gaps(w)?.astype(vectors.dtype()).multiply(&adjoint(vectors)?.matmul(c)?)
    });
    let inner = plus(from_w.transpose()?, from_v.transpose()?)?;
    let Some(inner) = inner else { return Ok(smallvec![None]) };
    one(hermitian(&vectors.matmul(&inner)?.matmul(&adjoint(vectors)?)?)?)
}

/// `dw = diag(V^H da V)`, `dV = V (F * (V^H da V))`.
pub(crate) fn eigh_jvp(j: &ManyJvp<'_>) -> Result<Vec<Option<Array>>> {
    let Some(t) = &j.tangents[0] else { return Ok(vec![None; 2]) };
    let (w, v) = (&j.outputs[0], &j.outputs[1]);
    let inner = adjoint(v)?.matmul(&hermitian(t)?)?.matmul(v)?;
    let turn = gaps(w)?.astype(v.dtype()).multiply(&inner)?;
    let dw = real_diagonal(&inner)?;
    Ok(vec![Some(dw), Some(v.matmul(&turn)?)])
}

/// The real parts of the diagonal, in a real dtype.
fn real_diagonal(a: &Array) -> Result<Array> {
    let d = diagonal(a)?;
    if a.dtype().is_complex() { d.real() } else { Ok(d) }
}

/// As [`eigh_vjp`], of eigenvalues alone; the vectors are computed for it.
pub(crate) fn eigvalsh_vjp(v: &Vjp<'_>, upper: bool) -> Result<Cotangents> {
    let [_, vectors] = Eigh { upper }.of(&v.primals[0])?;
    let weights = of_columns(&v.cotangent.astype(vectors.dtype()))?;
    one(hermitian(&vectors.multiply(&weights)?.matmul(&adjoint(&vectors)?)?)?)
}

/// As [`eigh_jvp`], of eigenvalues alone.
pub(crate) fn eigvalsh_jvp(j: &Jvp<'_>, upper: bool) -> Result<Option<Array>> {
    let Some(t) = &j.tangents[0] else { return Ok(None) };
    let [_, v] = Eigh { upper }.of(&j.primals[0])?;
    Ok(Some(real_diagonal(&adjoint(&v)?.matmul(&hermitian(t)?)?.matmul(&v)?)?))
}

// --- Eigenvalues --------------------------------------------------------------------------

/// A complex gradient as one of an operand of this dtype.
fn as_operand(a: &Array, dtype: Dtype) -> Result<Array> {
    if dtype.is_complex() { Ok(a.clone()) } else { Ok(a.real()?.astype(dtype)) }
}

/// `a' = V^-H (diag(w') + conj(F) * (V^H V' - V^H V diag(Re(V^H V')))) V^H`: vectors keep norm 1.
pub(crate) fn eig_vjp(v: &ManyVjp<'_>) -> Result<Cotangents> {
    let (w, vectors) = (&v.outputs[0], &v.outputs[1]);
    let turned = adjoint(vectors)?;
    let from_w = v.cotangents[0].as_ref().map(with_diagonal);
    let from_v = v.cotangents[1].as_ref().map(|c| -> Result<Array> {
        let inner = turned.matmul(c)?;
        let length = of_columns(&real(&diagonal(&inner)?)?)?;
        let inner = minus(&inner, &turned.matmul(vectors)?.multiply(&length)?)?;
        un(unary::CONJUGATE, &gaps(w)?).multiply(&inner)
    });
    let inner = plus(from_w.transpose()?, from_v.transpose()?)?;
    let Some(inner) = inner else { return Ok(smallvec![None]) };
    let a = crate::linalg::solve(&turned, &inner.matmul(&turned)?)?;
    one(as_operand(&a, v.primals[0].dtype())?)
}

/// `dw = diag(V^-1 da V)`, `dV = V (F * (V^-1 da V))` less what would change the vectors' norms.
pub(crate) fn eig_jvp(j: &ManyJvp<'_>) -> Result<Vec<Option<Array>>> {
    let Some(t) = &j.tangents[0] else { return Ok(vec![None; 2]) };
    let (w, v) = (&j.outputs[0], &j.outputs[1]);
    let inner = crate::linalg::solve(v, &t.astype(v.dtype()).matmul(v)?)?;
    let dv = v.matmul(&gaps(w)?.multiply(&inner)?)?;
    let length = un(unary::CONJUGATE, v).multiply(&dv)?.sum(Some(&[-2]), true)?;
    let dv = minus(&dv, &v.multiply(&real(&length)?)?)?;
    Ok(vec![Some(diagonal(&inner)?), Some(dv)])
}

/// As [`eig_vjp`], of eigenvalues alone; the vectors are computed for it.
pub(crate) fn eigvals_vjp(v: &Vjp<'_>) -> Result<Cotangents> {
    let a = &v.primals[0];
    let [_, vectors] = Eig.of(a)?;
    let turned = adjoint(&vectors)?;
    let inner = with_axis(v.cotangent, v.cotangent.ndim())?.multiply(&turned)?;
    one(as_operand(&crate::linalg::solve(&turned, &inner)?, a.dtype())?)
}

/// As [`eig_jvp`], of eigenvalues alone.
pub(crate) fn eigvals_jvp(j: &Jvp<'_>) -> Result<Option<Array>> {
    let Some(t) = &j.tangents[0] else { return Ok(None) };
    let [_, v] = Eig.of(&j.primals[0])?;
    let inner = crate::linalg::solve(&v, &t.astype(v.dtype()).matmul(&v)?)?;
    Ok(Some(diagonal(&inner)?))
}

// --- Singular values ----------------------------------------------------------------------

/// The parts of a decomposition that belong to singular values, and what is left.
struct Parts {
    u: Array,
    v: Array,
    /// The other columns of U and V, where they are computed.
    u_rest: Option<Array>,
    v_rest: Option<Array>,
    s: Array,
    /// `1 / s`, and 0 for zero; in the vectors' dtype.
    inverse: Array,
    /// `1 / (s_j^2 - s_i^2)`.
    gaps: Array,
}

impl Parts {
    fn of(outputs: &[Array]) -> Result<Parts> {
        let (u, s, v) = (&outputs[0], &outputs[1], adjoint(&outputs[2])?);
        let k = s.shape()[s.ndim() - 1];
        let rest = |x: &Array| -> Result<Option<Array>> {
            let n = sizes(x).1;
            (n > k).then(|| columns(x, k, n)).transpose()
        };
        let dtype = u.dtype();
        Ok(Parts {
            u_rest: rest(u)?,
            v_rest: rest(&v)?,
            inverse: safe_inverse(s)?.astype(dtype),
            gaps: gaps(&un(unary::SQUARE, s))?.astype(dtype),
            s: s.astype(dtype),
            u: columns(u, 0, k)?,
            v: columns(&v, 0, k)?,
        })
    }
}

/// What the cotangent of vectors `x` (with others, `rest`, or without) says outside of their span.
fn outside(x: &Array, rest: &Option<Array>, ct: &Array) -> Result<Array> {
    let k = sizes(x).1;
    let own = columns(ct, 0, k)?;
    match rest {
        Some(rest) => {
            let others = columns(ct, k, sizes(ct).1)?;
            let turn = adjoint(rest)?.matmul(&own)?;
            rest.matmul(&minus(&turn, &adjoint(&others)?.matmul(x)?)?)
        }
        None => minus(&own, &x.matmul(&adjoint(x)?.matmul(&own)?)?),
    }
}

/// With `P = U^H da V` and `F_ij = 1 / (s_j^2 - s_i^2)`: `dU = U (F * (P S + S P^H))`,
/// `dV = V (F * (S P + P^H S))`, `ds = Re diag(P)`, and outside of the spans `da V S^-1`, `da^H U S^-1`. The reverse
/// rule is the adjoint. A phase that U and V share is held in V.
pub(crate) fn svd_vjp(v: &ManyVjp<'_>) -> Result<Cotangents> {
    let p = Parts::of(v.outputs)?;
    let s = of_columns(&p.s)?;
    let inverse = of_columns(&p.inverse)?;
    let from_s = v.cotangents[1].as_ref().map(|c| with_diagonal(&c.astype(p.u.dtype())));
    let mut inner = from_s.transpose()?;
    let mut beyond = None;
    if let Some(ct) = &v.cotangents[0] {
        let turn = adjoint(&p.u)?.matmul(&columns(ct, 0, sizes(&p.u).1)?)?;
        let f = p.gaps.multiply(&turn)?;
        inner = plus(inner, Some(f.add(&adjoint(&f)?)?.multiply(&s)?))?;
        if let Some(i) = imaginary(&diagonal(&turn)?)? {
            inner = plus(inner, Some(with_diagonal(&i.multiply(&p.inverse)?)?))?;
        }
        let out = outside(&p.u, &p.u_rest, ct)?.multiply(&inverse)?;
        beyond = plus(beyond, Some(out.matmul(&adjoint(&p.v)?)?))?;
    }
    if let Some(ct) = &v.cotangents[2] {
        let ct = adjoint(ct)?;
        let turn = adjoint(&p.v)?.matmul(&columns(&ct, 0, sizes(&p.v).1)?)?;
        let f = p.gaps.multiply(&turn)?;
        let scaled = with_axis(&p.s, p.s.ndim())?.multiply(&f.add(&adjoint(&f)?)?)?;
        inner = plus(inner, Some(scaled))?;
        let out = outside(&p.v, &p.v_rest, &ct)?.multiply(&inverse)?;
        beyond = plus(beyond, Some(p.u.matmul(&adjoint(&out)?)?))?;
    }
    let Some(inner) = inner else { return Ok(smallvec![None]) };
    let inside = p.u.matmul(&inner)?.matmul(&adjoint(&p.v)?)?;
    Ok(smallvec![plus(Some(inside), beyond)?])
}

/// The forward rule; see [`svd_vjp`].
pub(crate) fn svd_jvp(j: &ManyJvp<'_>) -> Result<Vec<Option<Array>>> {
    let Some(t) = &j.tangents[0] else { return Ok(vec![None; 3]) };
    let p = Parts::of(j.outputs)?;
    let (s, inverse) = (of_columns(&p.s)?, of_columns(&p.inverse)?);
    let (left, right) = (t.matmul(&p.v)?, adjoint(t)?.matmul(&p.u)?);
    let inner = adjoint(&p.u)?.matmul(&left)?;
    let (scaled, turned) = (inner.multiply(&s)?, with_axis(&p.s, p.s.ndim())?.multiply(&inner)?);
    let mut in_u = p.gaps.multiply(&scaled.add(&adjoint(&scaled)?)?)?;
    let in_v = p.gaps.multiply(&turned.add(&adjoint(&turned)?)?)?;
    if let Some(i) = imaginary(&diagonal(&inner)?)? {
        in_u = in_u.add(&with_diagonal(&i.multiply(&p.inverse)?)?)?;
    }
    let du = moved(&p.u, &p.u_rest, &in_u, &left.multiply(&inverse)?)?;
    let dv = moved(&p.v, &p.v_rest, &in_v, &right.multiply(&inverse)?)?;
    Ok(vec![Some(du), Some(real_diagonal(&inner)?), Some(adjoint(&dv)?)])
}

/// The tangents of vectors `x` that turn by `inside` among each other, and by what of `along` is outside of their
/// span; others turn against them.
fn moved(x: &Array, rest: &Option<Array>, inside: &Array, along: &Array) -> Result<Array> {
    let own = x.matmul(inside)?;
    match rest {
        Some(rest) => {
            let turn = adjoint(rest)?.matmul(along)?;
            let own = own.add(&rest.matmul(&turn)?)?;
            crate::concatenate(&[own, negated(&x.matmul(&adjoint(&turn)?)?)], -1)
        }
        None => own.add(&minus(along, &x.matmul(&adjoint(x)?.matmul(along)?)?)?),
    }
}

/// `a' = U diag(s') V^H`; the vectors are computed for it.
pub(crate) fn singular_values_vjp(v: &Vjp<'_>) -> Result<Cotangents> {
    let [u, _, vt] = Svd { full: false }.of(&v.primals[0])?;
    one(u.multiply(&of_columns(&v.cotangent.astype(u.dtype()))?)?.matmul(&vt)?)
}

/// `ds = Re diag(U^H da V)`.
pub(crate) fn singular_values_jvp(j: &Jvp<'_>) -> Result<Option<Array>> {
    let Some(t) = &j.tangents[0] else { return Ok(None) };
    let [u, _, vt] = Svd { full: false }.of(&j.primals[0])?;
    let inner = adjoint(&u)?.matmul(t)?.matmul(&adjoint(&vt)?)?;
    Ok(Some(real_diagonal(&inner)?.astype(real_of(t.dtype()))))
}
