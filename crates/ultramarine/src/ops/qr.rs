//! QR decomposition.

use super::matrices;
use crate::{array::Array, dtype::Dtype, error::Result, shape::Shape};
use smallvec::smallvec;
use ultramarine_abi::schema::{NoAttrs, op};

/// The reduced QR decomposition `a = q r` of matrices: q has orthonormal columns, r is upper
/// triangular.
///
/// `a` is `(..., m, n)` of float32, float64 or complex64, q `(..., m, k)` and r `(..., k, n)` of
/// the same dtype, `k = min(m, n)`. Signs of r's diagonal are as Householder's reflections make them.
///
/// ```
/// use ultramarine::{Array, linalg};
/// let a = Array::from_slice(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], &[3, 2])?;
/// let (q, r) = linalg::qr(&a)?;
/// assert_eq!((q.shape(), r.shape()), (&[3, 2][..], &[2, 2][..]));
/// # Ok::<(), ultramarine::Error>(())
/// ```
///
/// # Errors
/// [`crate::Error::Value`] for other dtypes or fewer than two dimensions.
pub fn qr(a: &Array) -> Result<(Array, Array)> {
    matrices::check("linalg::qr", a)?;
    let [q, r] = Qr.of(a)?;
    Ok((q, r))
}

/// Both factors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Qr;

impl Qr {
    /// Both factors of matrices.
    pub fn of(self, a: &Array) -> Result<[Array; 2]> {
        let (m, n) = matrices::sizes(a);
        let k = m.min(n);
        let results = smallvec![
            (matrices::with_last(a, &[m, k]), a.dtype()),
            (matrices::with_last(a, &[k, n]), a.dtype()),
        ];
        matrices::exactly("qr", Array::many(self, &[a], results)?)
    }
}

matrices::decomposition! {
    impl ManyRules for Qr = "qr": QR, |_| NoAttrs::new(), qr_vjp, qr_jvp
}
