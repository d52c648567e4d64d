//! Repeated, tiled and rolled arrays; the Kronecker product.

use super::ints;
use Dtype::*;
use ultramarine::{Array, Dtype, Error, Result};

#[test]
fn repeated_and_rolled() -> Result<()> {
    let x = ints(&[1, 2, 3, 4], &[2, 2]);
    assert_eq!(x.repeat(2, Some(0))?.to_vec::<i32>()?, [1, 2, 1, 2, 3, 4, 3, 4]);
    assert_eq!(x.repeat(2, None)?.to_vec::<i32>()?, [1, 1, 2, 2, 3, 3, 4, 4]);
    assert_eq!(x.repeat(0, Some(1))?.shape(), [2, 0]);
    assert!(matches!(x.repeat(2, Some(7)), Err(Error::Index(_))));
    assert!(matches!(x.repeat(usize::MAX, Some(0)), Err(Error::Value(_))));
    assert_eq!(x.tile(&[2, 1])?.to_vec::<i32>()?, [1, 2, 3, 4, 1, 2, 3, 4]);
    assert_eq!(x.tile(&[2])?.to_vec::<i32>()?, [1, 2, 1, 2, 3, 4, 3, 4]);
    assert_eq!(x.tile(&[2, 1, 3])?.shape(), [2, 2, 6]);
    assert_eq!(Array::scalar(1i32).tile(&[2])?.to_vec::<i32>()?, [1, 1]);
    assert_eq!(x.tile(&[])?.shape(), [2, 2]);
    let r = ints(&[0, 1, 2, 3, 4, 5], &[6]);
    assert_eq!(r.roll(&[1, 2], None)?.to_vec::<i32>()?, [3, 4, 5, 0, 1, 2]);
    assert_eq!(r.roll(&[-7], [0])?.to_vec::<i32>()?, [1, 2, 3, 4, 5, 0]);
    assert_eq!(x.roll(&[1, 1], [0, 1])?.to_vec::<i32>()?, [4, 3, 2, 1]);
    // Shifts along one axis add up, whether it is named once or several times.
    for axes in [&[0][..], &[-1], &[0, 0], &[0, -1]] {
        assert_eq!(r.roll(&[1, 2], Some(axes))?.to_vec::<i32>()?, [3, 4, 5, 0, 1, 2], "{axes:?}");
    }
    assert_eq!(r.roll(&[], [0])?.to_vec::<i32>()?, [0, 1, 2, 3, 4, 5]);
    let far = [isize::MAX, isize::MAX, 2, isize::MIN, isize::MIN];
    assert_eq!(r.roll(&far, [0])?.to_vec::<i32>()?, r.to_vec::<i32>()?);
    assert_eq!(r.roll(&far, None)?.to_vec::<i32>()?, r.to_vec::<i32>()?);
    assert!(matches!(x.roll(&[1], [0, 1]), Err(Error::Value(_))));
    assert!(matches!(x.roll(&[1], [7]), Err(Error::Index(_))));
    assert_eq!(Array::zeros(&[0, 3], Int32)?.roll(&[1], None)?.shape(), [0, 3]);
    assert_eq!(Array::scalar(3i32).roll(&[1], None)?.item::<i32>()?, 3);
    let k = ints(&[1, 2], &[2]).kron(&ints(&[1, 10], &[2, 1]))?;
    assert_eq!((k.shape(), k.to_vec::<i32>()?), (&[2usize, 2][..], vec![1, 2, 10, 20]));
    Ok(())
}
