//! Singular value decomposition.

use super::{Call, Cotangents, Jvp, Rules, Vjp, Vmap, linalg_rules, matrices};
use crate::{array::Array, backend::Exec, dtype::Dtype, error::Result, node::Value, shape::Shape};
use smallvec::smallvec;
use ultramarine_abi::schema::{NoAttrs, op};

/// The full singular value decomposition `a = u diag(s) vt`: `(u, s, vt)`.
///
/// `a` is `(..., m, n)` of float32, float64 or complex64; u `(..., m, m)` and vt `(..., n, n)`, unitary,
/// have its dtype, s `(..., min(m, n))` is real and descending. Of u's columns, or vt's rows, the
/// first `min(m, n)` belong to singular values.
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

/// The singular values of `(..., m, n)` matrices alone: `(..., min(m, n))`, real, descending.
///
/// # Errors
/// As [`svd`].
pub fn svdvals(a: &Array) -> Result<Array> {
    matrices::check("linalg::svd", a)?;
    SingularValues.of(a)
}

/// `u`, `s` and `vt`; not `full`: of the first `min(m, n)` singular vectors only.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Svd {
    pub full: bool,
}

impl Svd {
    /// The three results for matrices.
    pub fn of(self, a: &Array) -> Result<[Array; 3]> {
        let (m, n) = matrices::sizes(a);
        let k = m.min(n);
        let real = matrices::real_of(a.dtype());
        let (left, right) = if self.full { (m, n) } else { (k, k) };
        if k == 0 {
            // Kernels see no empty matrices.
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
        matrices::exactly("svd", Array::many(self, &[a], results)?)
    }
}

// The results' shapes tell the kernel whether to make all singular vectors.
matrices::decomposition! {
    impl ManyRules for Svd = "svd": SVD, |_| NoAttrs::new(), svd_vjp, svd_jvp
}

/// The singular values alone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SingularValues;

impl SingularValues {
    /// Those of matrices.
    pub fn of(self, a: &Array) -> Result<Array> {
        let (m, n) = matrices::sizes(a);
        let shape = matrices::with_last(a, &[m.min(n)]);
        Array::open(self, &[a], shape, matrices::real_of(a.dtype()))
    }
}

impl Rules for SingularValues {
    fn name(&self) -> &'static str {
        "singular_values"
    }

    fn eval(&self, exec: &Exec, call: &Call<'_>) -> Result<Value> {
        call.run(exec, op::SINGULAR_VALUES, &NoAttrs::new(), &[])
    }

    fn vjp(&self, v: &Vjp<'_>) -> Result<Cotangents> {
        linalg_rules::singular_values_vjp(v)
    }

    fn jvp(&self, j: &Jvp<'_>) -> Result<Option<Array>> {
        linalg_rules::singular_values_jvp(j)
    }

    fn vmap(&self, v: &Vmap<'_>) -> Result<(Array, Option<usize>)> {
        Ok((self.of(&matrices::mapped(v)?)?, Some(0)))
    }
}
