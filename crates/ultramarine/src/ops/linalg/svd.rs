//! Singular value decomposition.

use crate::ops::linalg::derivatives::{
    columns, diagonal, gaps, imaginary, minus, negated, of_columns, one, real_diagonal,
    safe_inverse, with_diagonal,
};
use crate::ops::linalg::matrices::{self, real_of, sizes};
use crate::ops::rules::builders::{plus, un, with_axis};
use crate::ops::rules::multi_output::{MultiOutputJvp, MultiOutputVjp};
use crate::ops::{
    Cotangents, Jvp, Rules, Vjp, attributes, matmul::adjoint, shape::concatenate::concatenate,
};
use crate::{array::Array, error::Result, shape::Shape};
use smallvec::smallvec;
use ultramarine_abi::schema::{NoAttrs, op, unary};

/// Returns the full singular value decomposition `(u, s, vt)` of matrices: `a = u diag(s) vt`.
///
/// `a` is `(..., m, n)` of float32, float64 or complex64. u, `(..., m, m)`, and vt, `(..., n, n)`,
/// are unitary and have its dtype; s, `(..., min(m, n))`, is real and descending. The first `min(m,
/// n)` columns of u, and rows of vt, belong to singular values.
///
/// ```
/// use ultramarine::{Array, linalg};
/// let a = Array::from_slice(&[0.0f32, 2.0, 0.0, 3.0, 0.0, 0.0], &[2, 3])?;
/// let (u, s, vt) = linalg::svd(&a)?;
/// assert_eq!(s.to_vec::<f32>()?, [3.0, 2.0]);
/// assert_eq!((u.shape(), vt.shape()), (&[2, 2][..], &[3, 3][..]));
/// # Ok::<(), ultramarine::Error>(())
/// ```
///
/// # Errors
/// [`crate::Error::Value`] for other dtypes or fewer than two dimensions. Evaluation fails with
/// [`crate::Error::Runtime`] if an element is infinite or NaN.
pub fn svd(a: &Array) -> Result<(Array, Array, Array)> {
    matrices::check("linalg::svd", a)?;
    let [u, s, vt] = Svd { full: true }.of(a)?;
    Ok((u, s, vt))
}

/// Returns the singular values of matrices `(..., m, n)` alone: `(..., min(m, n))`, real,
/// descending.
///
/// # Errors
/// As [`svd`].
pub fn svdvals(a: &Array) -> Result<Array> {
    matrices::check("linalg::svd", a)?;
    SingularValues.of(a)
}

attributes! {
    /// `u`, `s` and `vt`. Unless `full`, only the first `min(m, n)` singular vectors are computed.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct Svd {
        pub full: bool,
    }
}

impl Svd {
    /// The three results for matrices.
    pub fn of(self, a: &Array) -> Result<[Array; 3]> {
        let (m, n) = matrices::sizes(a);
        let k = m.min(n);
        let real = matrices::real_of(a.dtype());
        let (left, right) = if self.full { (m, n) } else { (k, k) };
        if k == 0 {
            // Kernels are not called for empty matrices.
            let vectors = |n: usize, k: usize| match k {
                0 => matrices::nothing(a, &[n, k], a.dtype()),
                _ => matrices::identities(a, n),
            };
            let vt =
                if right == 0 { matrices::nothing(a, &[0, n], a.dtype()) } else { vectors(n, n) };
            return Ok([vectors(m, left)?, matrices::nothing(a, &[0], real)?, vt?]);
        }
        let results = smallvec![
            (matrices::with_last(a, &[m, left]), a.dtype()),
            (matrices::with_last(a, &[k]), real),
            (matrices::with_last(a, &[right, n]), a.dtype()),
        ];
        matrices::exactly("svd", Array::multi_output(self, &[a], results)?)
    }
}

// The results' shapes tell the kernel whether to make all singular vectors.
matrices::decomposition! {
    impl MultiOutputRules for Svd = "svd": SVD, |_| NoAttrs::new(), |by, node| {
        let (batch, [m, n], dtype) = matrices::operand(node)?;
        let k = m.min(n);
        let of = |last: &[usize]| matrices::stacked(batch, last);
        let (left, right) = if by.full { (m, n) } else { (k, k) };
        let results =
            [(of(&[m, left]), dtype), (of(&[k]), real_of(dtype)), (of(&[right, n]), dtype)];
        Some(k > 0 && node.gives_all(&results))
    }, svd_vjp, svd_jvp
}

attributes! {
    /// The singular values alone.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct SingularValues;
}

impl SingularValues {
    /// The singular values of matrices.
    pub fn of(self, a: &Array) -> Result<Array> {
        let (m, n) = matrices::sizes(a);
        let shape = matrices::with_last(a, &[m.min(n)]);
        Array::try_of(self, &[a], shape, matrices::real_of(a.dtype()))
    }
}

impl Rules for SingularValues {
    matrices::kernel!("singular_values": SINGULAR_VALUES, |_| NoAttrs::new(), |_, node| {
        let (batch, [m, n], dtype) = matrices::operand(node)?;
        Some(node.gives(&matrices::stacked(batch, &[m.min(n)]), real_of(dtype)))
    });

    fn vjp(&self, v: &Vjp<'_>) -> Result<Cotangents> {
        // `a' = U diag(s') V^H`. The rule computes the vectors itself.
        let [u, _, vt] = Svd { full: false }.of(&v.primals[0])?;
        one(u.multiply(&of_columns(&v.cotangent.astype(u.dtype()))?)?.matmul(&vt)?)
    }

    fn jvp(&self, j: &Jvp<'_>) -> Result<Option<Array>> {
        // `ds = Re diag(U^H da V)`.
        let Some(t) = &j.tangents[0] else { return Ok(None) };
        let [u, _, vt] = Svd { full: false }.of(&j.primals[0])?;
        let inner = adjoint(&u)?.matmul(t)?.matmul(&adjoint(&vt)?)?;
        Ok(Some(real_diagonal(&inner)?.astype(real_of(t.dtype()))))
    }
}

/// The parts of a decomposition that belong to singular values, and the remaining vectors.
struct Parts {
    u: Array,
    v: Array,
    /// The other columns of U and V, if they were computed.
    u_rest: Option<Array>,
    v_rest: Option<Array>,
    s: Array,
    /// `1 / s`, and 0 where s is zero, in the vectors' dtype.
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

/// The part of the cotangent of vectors `x` that lies outside of their span. `rest` are the other vectors, if there are
/// any.
fn outside(x: &Array, rest: &Option<Array>, ct: &Array) -> Result<Array> {
    let k = sizes(x).1;
    let own = columns(ct, 0, k)?;
    match rest {
        Some(rest) => {
            let others = columns(ct, k, sizes(ct).1)?;
            let rotation = adjoint(rest)?.matmul(&own)?;
            rest.matmul(&minus(&rotation, &adjoint(&others)?.matmul(x)?)?)
        }
        None => minus(&own, &x.matmul(&adjoint(x)?.matmul(&own)?)?),
    }
}

/// With `P = U^H da V` and `F_ij = 1 / (s_j^2 - s_i^2)`: `dU = U (F * (P S + S P^H))`, `dV = V (F * (S P + P^H S))`,
/// `ds = Re diag(P)`. Outside of the spans the tangents are `da V S^-1` and `da^H U S^-1`. The reverse rule is the
/// adjoint. A phase that U and V share is held fixed in V.
fn svd_vjp(v: &MultiOutputVjp<'_>) -> Result<Cotangents> {
    let p = Parts::of(v.outputs)?;
    let s = of_columns(&p.s)?;
    let inverse = of_columns(&p.inverse)?;
    let from_s = v.cotangents[1].as_ref().map(|c| with_diagonal(&c.astype(p.u.dtype())));
    let mut inner = from_s.transpose()?;
    let mut beyond = None;
    if let Some(ct) = &v.cotangents[0] {
        let rotation = adjoint(&p.u)?.matmul(&columns(ct, 0, sizes(&p.u).1)?)?;
        let f = p.gaps.multiply(&rotation)?;
        inner = plus(inner, Some(f.add(&adjoint(&f)?)?.multiply(&s)?))?;
        if let Some(i) = imaginary(&diagonal(&rotation)?)? {
            inner = plus(inner, Some(with_diagonal(&i.multiply(&p.inverse)?)?))?;
        }
        let out = outside(&p.u, &p.u_rest, ct)?.multiply(&inverse)?;
        beyond = plus(beyond, Some(out.matmul(&adjoint(&p.v)?)?))?;
    }
    if let Some(ct) = &v.cotangents[2] {
        let ct = adjoint(ct)?;
        let rotation = adjoint(&p.v)?.matmul(&columns(&ct, 0, sizes(&p.v).1)?)?;
        let f = p.gaps.multiply(&rotation)?;
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
fn svd_jvp(j: &MultiOutputJvp<'_>) -> Result<Vec<Option<Array>>> {
    let Some(t) = &j.tangents[0] else { return Ok(vec![None; 3]) };
    let p = Parts::of(j.outputs)?;
    let (s, inverse) = (of_columns(&p.s)?, of_columns(&p.inverse)?);
    let (left, right) = (t.matmul(&p.v)?, adjoint(t)?.matmul(&p.u)?);
    let inner = adjoint(&p.u)?.matmul(&left)?;
    let (by_column, by_row) = (inner.multiply(&s)?, with_axis(&p.s, p.s.ndim())?.multiply(&inner)?);
    let mut in_u = p.gaps.multiply(&by_column.add(&adjoint(&by_column)?)?)?;
    let in_v = p.gaps.multiply(&by_row.add(&adjoint(&by_row)?)?)?;
    if let Some(i) = imaginary(&diagonal(&inner)?)? {
        in_u = in_u.add(&with_diagonal(&i.multiply(&p.inverse)?)?)?;
    }
    let du = moved(&p.u, &p.u_rest, &in_u, &left.multiply(&inverse)?)?;
    let dv = moved(&p.v, &p.v_rest, &in_v, &right.multiply(&inverse)?)?;
    Ok(vec![Some(du), Some(real_diagonal(&inner)?), Some(adjoint(&dv)?)])
}

/// The tangents of vectors `x`. Within their span they rotate by `inside`; outside of it they move by the part of
/// `along` outside the span. The other vectors rotate the opposite way.
fn moved(x: &Array, rest: &Option<Array>, inside: &Array, along: &Array) -> Result<Array> {
    let own = x.matmul(inside)?;
    match rest {
        Some(rest) => {
            let rotation = adjoint(rest)?.matmul(along)?;
            let own = own.add(&rest.matmul(&rotation)?)?;
            concatenate(&[own, negated(&x.matmul(&adjoint(&rotation)?)?)], -1)
        }
        None => own.add(&minus(along, &x.matmul(&adjoint(x)?.matmul(along)?)?)?),
    }
}
