//! Eigenvalues and eigenvectors of symmetric and Hermitian matrices.

use super::{Call, Cotangents, Jvp, Rules, Vjp, Vmap, linalg_rules, matrices};
use crate::{array::Array, backend::Exec, dtype::Dtype, error::Result, node::Value, shape::Shape};
use smallvec::smallvec;
use ultramarine_abi::schema::{TriangleAttrs, op};

/// Eigenvalues and eigenvectors `(w, v)` of symmetric (Hermitian) matrices: `a v = v diag(w)`.
///
/// `a` is `(..., n, n)` of float32, float64 or complex64, of which the lower, or with `upper` the upper,
/// triangle is read. w `(..., n)` is real and ascending; the columns of v `(..., n, n)`, of `a`'s dtype, are
/// orthonormal.
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

/// The eigenvalues of [`eigh`] alone.
///
/// # Errors
/// As [`eigh`].
pub fn eigvalsh(a: &Array, upper: bool) -> Result<Array> {
    matrices::check_square("linalg::eigvalsh", a)?;
    EigvalsH { upper }.of(a)
}

/// Eigenvalues and eigenvectors, from one triangle.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Eigh {
    pub upper: bool,
}

impl Eigh {
    /// Those of square matrices.
    pub fn of(self, a: &Array) -> Result<[Array; 2]> {
        let results = smallvec![
            (matrices::with_last(a, &[matrices::sizes(a).0]), matrices::real_of(a.dtype())),
            (Shape::from_slice(a.shape()), a.dtype()),
        ];
        matrices::exactly("eigh", Array::many(self, &[a], results)?)
    }
}

matrices::decomposition! {
    impl ManyRules for Eigh = "eigh": EIGH, |by| TriangleAttrs::new(by.upper as u32), eigh_vjp, eigh_jvp
}

/// Eigenvalues alone, from one triangle.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EigvalsH {
    pub upper: bool,
}

impl EigvalsH {
    /// Those of square matrices.
    pub fn of(self, a: &Array) -> Result<Array> {
        let shape = matrices::with_last(a, &[matrices::sizes(a).0]);
        Array::open(self, &[a], shape, matrices::real_of(a.dtype()))
    }
}

impl Rules for EigvalsH {
    fn name(&self) -> &'static str {
        "eigvalsh"
    }

    fn eval(&self, exec: &Exec, call: &Call<'_>) -> Result<Value> {
        call.run(exec, op::EIGVALSH, &TriangleAttrs::new(self.upper as u32), &[])
    }

    fn vjp(&self, v: &Vjp<'_>) -> Result<Cotangents> {
        linalg_rules::eigvalsh_vjp(v, self.upper)
    }

    fn jvp(&self, j: &Jvp<'_>) -> Result<Option<Array>> {
        linalg_rules::eigvalsh_jvp(j, self.upper)
    }

    fn vmap(&self, v: &Vmap<'_>) -> Result<(Array, Option<usize>)> {
        Ok((self.of(&matrices::mapped(v)?)?, Some(0)))
    }
}
