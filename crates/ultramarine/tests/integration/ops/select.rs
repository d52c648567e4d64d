//! Choices between elements: `where_`, `clip`.

use Dtype::*;
use ultramarine::{Array, Dtype, Error, Result, where_};

#[test]
fn choice_and_bounds() -> Result<()> {
    let c = Array::from_slice(&[1i32, 0, -3], &[3])?;
    let y = where_(&c, Array::scalar(1i32), &Array::ones(&[2, 1], Float16)?)?;
    assert_eq!((y.dtype(), y.shape()), (Float16, &[2usize, 3][..]));
    let (a, b) = (Array::from_slice(&[1.0f32, 2.0, f32::NAN], &[3])?, Array::scalar(9.0f32));
    assert_eq!(where_(&c, &a, &b)?.to_vec::<f32>()?[..2], [1.0, 9.0]);
    assert!(where_(&c, &Array::ones(&[4], Int8)?, &b).is_err());
    let x = Array::from_slice(&[1.0f32, 5.0, f32::NAN], &[3])?;
    let (low, high) = (x.scalar_like(3)?, x.scalar_like(2)?);
    let clipped = x.clip(Some(&low), Some(&high))?.to_vec::<f32>()?;
    assert!(clipped[..2] == [2.0, 2.0] && clipped[2].is_nan());
    assert!(matches!(x.clip(None, None), Err(Error::Value(_))));
    let ints = Array::from_slice(&[1i32, 2], &[2])?;
    assert_eq!(ints.clip(Some(&ints.scalar_like(0.5)?), None)?.dtype(), Float32);
    Ok(())
}
