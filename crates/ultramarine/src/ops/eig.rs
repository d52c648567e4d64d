//! Eigenvalues and eigenvectors of square matrices.

use super::{Call, Cotangents, Jvp, Rules, Vjp, Vmap, linalg_rules, matrices};
use crate::{array::Array, backend::Exec, dtype::Dtype, error::Result, node::Value, shape::Shape};
use smallvec::smallvec;
use ultramarine_abi::schema::{NoAttrs, op};

/// Eigenvalues and eigenvectors `(w, v)` of square matrices: `a v = v diag(w)`.
///
/// `a` is `(..., n, n)` of float32, float64 (computed in float64) or complex64; w `(..., n)`, in no
/// particular order, and v `(..., n, n)` are complex64. The columns of v have norm 1, and their largest
/// element is real.
///
/// ```
/// use ultramarine::{Array, Complex32, linalg};
/// let quarter_turn = Array::from_slice(&[0.0f32, -1.0, 1.0, 0.0], &[2, 2])?;
/// let (w, _v) = linalg::eig(&quarter_turn)?;
/// let w = w.to_vec::<Complex32>()?;
/// assert!(w.iter().all(|w| (w.im.abs() - 1.0).abs() < 1e-6));
/// # Ok::<(), ultramarine::Error>(())
/// ```
///
/// # Errors
/// [`crate::Error::Value`] for other dtypes, fewer than two dimensions, or matrices that are not
/// square. Evaluation fails with [`crate::Error::Runtime`] if an element is infinite or NaN.
pub fn eig(a: &Array) -> Result<(Array, Array)> {
    matrices::check_square("linalg::eig", a)?;
    let [w, v] = Eig.of(a)?;
    Ok((w, v))
}

/// The eigenvalues of [`eig`] alone.
///
/// # Errors
/// As [`eig`].
pub fn eigvals(a: &Array) -> Result<Array> {
    matrices::check_square("linalg::eigvals", a)?;
    Eigvals.of(a)
}

/// Eigenvalues and eigenvectors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Eig;

impl Eig {
    /// Those of square matrices.
    pub fn of(self, a: &Array) -> Result<[Array; 2]> {
        let results = smallvec![
            (matrices::with_last(a, &[matrices::sizes(a).0]), Dtype::Complex64),
            (Shape::from_slice(a.shape()), Dtype::Complex64),
        ];
        matrices::exactly("eig", Array::many(self, &[a], results)?)
    }
}

matrices::decomposition! {
    impl ManyRules for Eig = "eig": EIG, |_| NoAttrs::new(), eig_vjp, eig_jvp
}

/// Eigenvalues alone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Eigvals;

impl Eigvals {
    /// Those of square matrices.
    pub fn of(self, a: &Array) -> Result<Array> {
        let shape = matrices::with_last(a, &[matrices::sizes(a).0]);
        Array::open(self, &[a], shape, Dtype::Complex64)
    }
}

impl Rules for Eigvals {
    fn name(&self) -> &'static str {
        "eigvals"
    }

    fn eval(&self, exec: &Exec, call: &Call<'_>) -> Result<Value> {
        call.run(exec, op::EIGVALS, &NoAttrs::new(), &[])
    }

    fn vjp(&self, v: &Vjp<'_>) -> Result<Cotangents> {
        linalg_rules::eigvals_vjp(v)
    }

    fn jvp(&self, j: &Jvp<'_>) -> Result<Option<Array>> {
        linalg_rules::eigvals_jvp(j)
    }

    fn vmap(&self, v: &Vmap<'_>) -> Result<(Array, Option<usize>)> {
        Ok((self.of(&matrices::mapped(v)?)?, Some(0)))
    }
}
