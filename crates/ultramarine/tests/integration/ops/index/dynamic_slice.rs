//! Slices whose start is an array.

use ultramarine::{Array, Error, Result};

/// 0, 1, 2 ... in a shape.
fn counted(shape: &[usize]) -> Array {
    let data: Vec<i32> = (0..shape.iter().product::<usize>() as i32).collect();
    Array::from_slice(&data, shape).expect("the shape fits")
}

#[test]
fn slices_at_computed_positions() -> Result<()> {
    let x = counted(&[3, 4]);
    let at = |v: &[i32]| Array::from_slice(v, &[v.len()]).expect("the shape fits");
    let cut = |start: &[i32], axes: &[isize], size: &[usize]| {
        x.slice_at(&at(start), axes, size)?.to_vec::<i32>()
    };
    assert_eq!(cut(&[1, 1], &[0, 1], &[2, 2])?, [5, 6, 9, 10]);
    assert_eq!(cut(&[2, 1], &[1, 0], &[2, 2])?, [6, 7, 10, 11]);
    assert_eq!(cut(&[1], &[0], &[2, 2])?, [4, 5, 8, 9]);
    assert_eq!(cut(&[1], &[-1], &[3, 1])?, [1, 5, 9]);
    // Held inside.
    assert_eq!(cut(&[9], &[0], &[1, 4])?, [8, 9, 10, 11]);
    assert_eq!(cut(&[-9], &[0], &[1, 4])?, [0, 1, 2, 3]);
    let value = |r: Result<Vec<i32>>| matches!(r, Err(Error::Value(_)));
    assert!(value(cut(&[1, 1], &[0], &[2, 2])) && value(cut(&[1], &[0], &[2, 5])));
    assert!(value(cut(&[1], &[0], &[2])) && value(cut(&[1, 1], &[0, 0], &[2, 4])));
    assert!(matches!(cut(&[1], &[7], &[2, 4]), Err(Error::Index(_))));
    assert!(matches!(x.slice_at(&Array::scalar(1.0f32), &[0], &[2, 4]), Err(Error::Value(_))));
    let write = |shape: &[usize], start: &[i32], axes: &[isize]| {
        let update = counted(shape).add(&Array::scalar(100i32))?;
        x.slice_update_at(&update, &at(start), axes)?.to_vec::<i32>()
    };
    assert_eq!(write(&[2, 2], &[1, 2], &[0, 1])?, [0, 1, 2, 3, 4, 5, 100, 101, 8, 9, 102, 103]);
    assert_eq!(write(&[4], &[1], &[0])?, [0, 1, 2, 3, 100, 101, 102, 103, 8, 9, 10, 11]);
    assert_eq!(write(&[3, 1], &[1], &[1])?, [0, 100, 2, 3, 4, 101, 6, 7, 8, 102, 10, 11]);
    assert_eq!(write(&[1], &[1], &[0])?, [0, 1, 2, 3, 100, 5, 6, 7, 8, 9, 10, 11]);
    assert!(value(write(&[2, 5], &[1], &[0])) && value(write(&[1, 2, 2], &[1], &[0])));
    Ok(())
}
