//! Arrays one after the other.

use super::ints;
use Dtype::*;
use ultramarine::{Array, Dtype, Error, Result, concatenate, stack};

#[test]
fn joined() -> Result<()> {
    let x = ints(&[0, 1, 2, 3, 4, 5], &[2, 3]);
    let y = concatenate(
        &[
            x.clone(),
            ints(&[6, 7], &[2, 1]),
            x.transpose()?.slice(&[-1, 0], &[isize::MIN, 2], &[-1, 1])?.transpose()?,
        ],
        1,
    )?;
    assert_eq!(y.to_vec::<i32>()?, [0, 1, 2, 6, 2, 1, 0, 3, 4, 5, 7, 5, 4, 3]);
    let empty = Array::zeros(&[0, 3], Int32)?;
    assert_eq!(concatenate(&[empty.clone(), x.clone()], 0)?.to_vec::<i32>()?, [0, 1, 2, 3, 4, 5]);
    assert_eq!(concatenate(&[empty.clone(), empty], 0)?.shape(), [0, 3]);
    let mixed = concatenate(&[x.clone(), x.astype(Float16)], -2)?;
    assert_eq!((mixed.dtype(), mixed.shape()), (Float16, &[4usize, 3][..]));
    let value = |r: Result<Array>| matches!(r, Err(Error::Value(_)));
    let index = |r: Result<Array>| matches!(r, Err(Error::Index(_)));
    assert!(value(concatenate(&[] as &[Array], 0)));
    assert!(value(concatenate(&[x.clone(), ints(&[1, 2], &[2, 1])], 0)));
    assert!(value(concatenate(&[x.clone(), ints(&[1, 2], &[2])], 0)));
    assert!(index(concatenate(&[x.clone(), x.clone()], 2)));
    assert!(index(concatenate(&[Array::scalar(1i32), Array::scalar(2i32)], 0)));
    let s = stack(&[x.clone(), x.clone()], -1)?;
    assert_eq!((s.shape(), &s.to_vec::<i32>()?[..4]), (&[2usize, 3, 2][..], &[0, 0, 1, 1][..]));
    assert!(value(stack(&[] as &[Array], 0)) && value(stack(&[x.clone(), ints(&[1], &[1])], 0)));
    assert!(index(stack(&[x.clone(), x], 4)));
    Ok(())
}
