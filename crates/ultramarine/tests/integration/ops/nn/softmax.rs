//! Softmax and logsumexp at infinities and NaN.

use ultramarine::{Array, Result};

#[test]
fn infinities_and_nans() -> Result<()> {
    let (inf, nan) = (f32::INFINITY, f32::NAN);
    let of = |v: &[f32]| Array::from_slice(v, &[v.len()]);
    let lse = |v: &[f32]| of(v)?.logsumexp(None)?.item::<f32>();
    assert_eq!(lse(&[inf, 1.0])?, inf);
    assert_eq!(lse(&[inf, -inf])?, inf);
    assert_eq!(lse(&[-inf, -inf])?, -inf);
    assert!(lse(&[nan, -inf])?.is_nan());
    assert_eq!(lse(&[1000.0, 1000.0])?, 1000.0 + 2f32.ln());
    assert!(of(&[inf, 1.0])?.softmax(None, false)?.to_vec::<f32>()?[0].is_nan());
    Ok(())
}
