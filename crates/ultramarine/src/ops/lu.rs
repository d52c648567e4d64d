//! LU factors with partial pivoting.

use super::matrices;
use crate::{array::Array, dtype::Dtype, error::Result, placement::follow, shape::Shape};
use smallvec::smallvec;
use ultramarine_abi::schema::{NoAttrs, op};

/// LU factors with partial pivoting, packed, and the pivots.
///
/// `a` is `(..., m, n)` of float32, float64 or complex64. The first result, of the same shape and
/// dtype, holds U in and above the diagonal, and below it L, whose diagonal of ones is not stored. The
/// pivots are uint32 `(..., min(m, n))`: row `i` was swapped with row `pivots[i]`, in turn, before
/// `a = L U`. A matrix without an inverse is no error: U has a zero on its diagonal.
///
/// ```
/// use ultramarine::{Array, linalg};
/// let a = Array::from_slice(&[1.0f32, 2.0, 4.0, 4.0], &[2, 2])?;
/// let (lu, pivots) = linalg::lu_factor(&a)?;
/// assert_eq!(lu.to_vec::<f32>()?, [4.0, 4.0, 0.25, 1.0]);
/// assert_eq!(pivots.to_vec::<u32>()?, [1, 1]);
/// # Ok::<(), ultramarine::Error>(())
/// ```
///
/// # Errors
/// [`crate::Error::Value`] for other dtypes or fewer than two dimensions.
pub fn lu_factor(a: &Array) -> Result<(Array, Array)> {
    matrices::check("linalg::lu_factor", a)?;
    let [lu, pivots, _] = Lu.of(a)?;
    Ok((lu, pivots))
}

/// Packed factors, pivots, and the rows: row `i` of `L U` is row `rows[i]` of the matrix.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lu;

impl Lu {
    /// The three results for matrices.
    pub fn of(self, a: &Array) -> Result<[Array; 3]> {
        let (m, n) = matrices::sizes(a);
        let k = m.min(n);
        let rows = matrices::with_last(a, &[m]);
        if k == 0 {
            let _home = follow(&[a]);
            let order = Array::arange(0.0, m as f64, 1.0, Dtype::Uint32)?;
            let pivots = matrices::nothing(a, &[0], Dtype::Uint32)?;
            let lu = matrices::nothing(a, &[m, n], a.dtype())?;
            return Ok([lu, pivots, order.broadcast_to(&rows)?]);
        }
        let results = smallvec![
            (Shape::from_slice(a.shape()), a.dtype()),
            (matrices::with_last(a, &[k]), Dtype::Uint32),
            (rows, Dtype::Uint32),
        ];
        matrices::exactly("lu", Array::many(self, &[a], results)?)
    }
}

matrices::decomposition! {
    impl ManyRules for Lu = "lu": LU, |_| NoAttrs::new(), lu_vjp, lu_jvp
}
