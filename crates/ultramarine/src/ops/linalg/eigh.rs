//! Eigenvalues and eigenvectors of symmetric and Hermitian matrices.

use crate::ops::linalg::derivatives::{
    gaps, hermitian, of_columns, one, real_diagonal, with_diagonal,
};
use crate::ops::rules::multi_output::{MultiOutputJvp, MultiOutputVjp};
use crate::ops::{
    Cotangents, Jvp, Rules, Vjp, attributes, linalg::matrices, matmul::adjoint,
    rules::builders::plus,
};
use crate::{array::Array, error::Result, shape::Shape};
use smallvec::smallvec;
use ultramarine_abi::schema::{TriangleAttrs, op};

/// Returns eigenvalues and eigenvectors `(w, v)` of symmetric (Hermitian) matrices: `a v = v
/// diag(w)`.
///
/// `a` is `(..., n, n)` of float32, float64 or complex64; only its lower triangle, or with `upper`
/// the upper one, is read. w, `(..., n)`, is real and ascending. Columns of v, `(..., n, n)` in the
/// dtype of `a`, are orthonormal.
///
/// ```
/// use ultramarine::{Array, linalg};
/// let a = Array::from_slice(&[2.0f32, 0.0, 0.0, 1.0], &[2, 2])?;
/// let (w, v) = linalg::eigh(&a, false)?;
/// assert_eq!(w.to_vec::<f32>()?, [1.0, 2.0]);
/// assert_eq!(v.shape(), [2, 2]);
/// # Ok::<(), ultramarine::Error>(())
/// ```
///
/// # Errors
/// [`crate::Error::Value`] for other dtypes, fewer than two dimensions, or matrices that are not
/// square. Evaluation fails with [`crate::Error::Runtime`] if an element is infinite or NaN.
pub fn eigh(a: &Array, upper: bool) -> Result<(Array, Array)> {
    matrices::check_square("linalg::eigh", a)?;
    let [w, v] = Eigh { upper }.of(a)?;
    Ok((w, v))
}

/// Returns the eigenvalues of [`eigh`] alone: real, ascending, of shape `(..., n)`.
///
/// # Errors
/// As [`eigh`].
pub fn eigvalsh(a: &Array, upper: bool) -> Result<Array> {
    matrices::check_square("linalg::eigvalsh", a)?;
    EigvalsH { upper }.of(a)
}

attributes! {
    /// Eigenvalues and eigenvectors, from one triangle.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct Eigh {
        pub upper: bool,
    }
}

impl Eigh {
    /// The eigenvalues and eigenvectors of square matrices.
    pub fn of(self, a: &Array) -> Result<[Array; 2]> {
        let results = smallvec![
            (matrices::with_last(a, &[matrices::sizes(a).0]), matrices::real_of(a.dtype())),
            (Shape::from_slice(a.shape()), a.dtype()),
        ];
        matrices::exactly("eigh", Array::multi_output(self, &[a], results)?)
    }
}

matrices::decomposition! {
    impl MultiOutputRules for Eigh = "eigh": EIGH, |by| TriangleAttrs::new(by.upper as u32), |_, node| {
        let (batch, [m, n], dtype) = matrices::operand(node)?;
        let of = |last: &[usize]| matrices::stacked(batch, last);
        let results = [(of(&[n]), matrices::real_of(dtype)), (of(&[n, n]), dtype)];
        Some(m == n && node.gives_all(&results))
    }, eigh_vjp, eigh_jvp
}

attributes! {
    /// Eigenvalues alone, from one triangle.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct EigvalsH {
        pub upper: bool,
    }
}

impl EigvalsH {
    /// The eigenvalues of square matrices.
    pub fn of(self, a: &Array) -> Result<Array> {
        let shape = matrices::with_last(a, &[matrices::sizes(a).0]);
        Array::try_of(self, &[a], shape, matrices::real_of(a.dtype()))
    }
}

impl Rules for EigvalsH {
    matrices::kernel!("eigvalsh": EIGVALSH, |by| TriangleAttrs::new(by.upper as u32), |_, node| {
        let (batch, [m, n], dtype) = matrices::operand(node)?;
        Some(m == n && node.gives(&matrices::stacked(batch, &[n]), matrices::real_of(dtype)))
    });

    fn vjp(&self, v: &Vjp<'_>) -> Result<Cotangents> {
        // As [`eigh_vjp`], for eigenvalues alone. The rule computes the vectors itself.
        let [_, vectors] = Eigh { upper: self.upper }.of(&v.primals[0])?;
        let weights = of_columns(&v.cotangent.astype(vectors.dtype()))?;
        one(hermitian(&vectors.multiply(&weights)?.matmul(&adjoint(&vectors)?)?)?)
    }

    fn jvp(&self, j: &Jvp<'_>) -> Result<Option<Array>> {
        // As [`eigh_jvp`], for eigenvalues alone.
        let Some(t) = &j.tangents[0] else { return Ok(None) };
        let [_, v] = Eigh { upper: self.upper }.of(&j.primals[0])?;
        Ok(Some(real_diagonal(&adjoint(&v)?.matmul(&hermitian(t)?)?.matmul(&v)?)?))
    }
}

/// `a' = V (diag(w') + F * (V^H V')) V^H`, made Hermitian, `F_ij = 1 / (w_j - w_i)`.
fn eigh_vjp(v: &MultiOutputVjp<'_>) -> Result<Cotangents> {
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
fn eigh_jvp(j: &MultiOutputJvp<'_>) -> Result<Vec<Option<Array>>> {
    let Some(t) = &j.tangents[0] else { return Ok(vec![None; 2]) };
    let (w, v) = (&j.outputs[0], &j.outputs[1]);
    let inner = adjoint(v)?.matmul(&hermitian(t)?)?.matmul(v)?;
    let rotation = gaps(w)?.astype(v.dtype()).multiply(&inner)?;
    let dw = real_diagonal(&inner)?;
    Ok(vec![Some(dw), Some(v.matmul(&rotation)?)])
}
