//! Slices whose start is an array.

use ultramarine::transforms::vmap;
use ultramarine::{Array, Dtype, Error, Result};

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
    assert!(matches!(x.slice_at(&Array::scalar(1.0f32), [0], &[2, 4]), Err(Error::Value(_))));
    let write = |shape: &[usize], start: &[i32], axes: &[isize]| {
        let update = counted(shape).add(Array::scalar(100i32))?;
        x.slice_update_at(&update, &at(start), axes)?.to_vec::<i32>()
    };
    assert_eq!(write(&[2, 2], &[1, 2], &[0, 1])?, [0, 1, 2, 3, 4, 5, 100, 101, 8, 9, 102, 103]);
    assert_eq!(write(&[4], &[1], &[0])?, [0, 1, 2, 3, 100, 101, 102, 103, 8, 9, 10, 11]);
    assert_eq!(write(&[3, 1], &[1], &[1])?, [0, 100, 2, 3, 4, 101, 6, 7, 8, 102, 10, 11]);
    assert_eq!(write(&[1], &[1], &[0])?, [0, 1, 2, 3, 100, 5, 6, 7, 8, 9, 10, 11]);
    assert!(value(write(&[2, 5], &[1], &[0])) && value(write(&[1, 2, 2], &[1], &[0])));
    Ok(())
}

#[test]
fn windows_without_a_place_to_choose() -> Result<()> {
    let x = counted(&[3, 4]);
    let none = Array::from_slice::<i32>(&[], &[0])?;
    let at = |v: &[i32]| Array::from_slice(v, &[v.len()]).expect("the shape fits");
    // No starts, starts along axes that are covered whole, and a 0-d start.
    assert_eq!(x.slice_at(&none, [0; 0], &[2, 3])?.to_vec::<i32>()?, [0, 1, 2, 4, 5, 6]);
    assert_eq!(x.slice_at(&at(&[2]), [0], &[3, 1])?.to_vec::<i32>()?, [0, 4, 8]);
    assert_eq!(x.slice_at(&at(&[2]), [0], &[3, 4])?.to_vec::<i32>()?, x.to_vec::<i32>()?);
    assert_eq!(x.slice_at(&Array::scalar(2u8), [0], &[1, 2])?.to_vec::<i32>()?, [8, 9]);
    let nine = Array::scalar(9i32);
    let written = x.slice_update_at(&nine, &none, [0; 0])?.to_vec::<i32>()?;
    assert_eq!(written[..2], [9, 1]);
    // Of 0-d arrays, and empty ones.
    let scalar = Array::scalar(5i32);
    assert_eq!(scalar.slice_at(&none, [0; 0], &[])?.item::<i32>()?, 5);
    assert_eq!(scalar.slice_update_at(&nine, &none, [0; 0])?.item::<i32>()?, 9);
    let empty = x.slice_at(&at(&[1]), [0], &[0, 4])?;
    assert_eq!((empty.shape(), empty.to_vec::<i32>()?.len()), (&[0, 4][..], 0));
    let same = x.slice_update_at(&empty, &at(&[1]), [0])?;
    assert_eq!(same.to_vec::<i32>()?, x.to_vec::<i32>()?);
    assert_eq!(empty.slice_at(&at(&[1]), [1], &[0, 2])?.shape(), [0, 2]);
    Ok(())
}

#[test]
fn windows_of_every_dtype_and_layout() -> Result<()> {
    let start = Array::from_slice(&[1i64, 2], &[2])?.slice(&[1], &[isize::MIN], &[-1])?;
    for dtype in Dtype::ALL {
        let x = counted(&[4, 5]).astype(dtype).transpose_axes([1, 0])?;
        let plain = x.contiguous();
        let window = x.slice_at(&start, [0, 1], &[3, 2])?;
        let wanted = plain.slice(&[2, 1], &[5, 3], &[1, 1])?;
        assert!(window.array_equal(&wanted, true)?.item::<bool>()?, "{dtype}");
        let update = window.flip(None)?;
        let got = x.slice_update_at(&update, &start, [0, 1])?;
        let wanted = plain.slice_update(&update, &[2, 1], &[5, 3], &[1, 1])?;
        assert!(got.array_equal(&wanted, true)?.item::<bool>()?, "{dtype}");
        // A constant is written as often as the window is large.
        let ones = Array::ones(&[3, 2], dtype)?;
        let got = x.slice_update_at(&ones, &start, [0, 1])?;
        let wanted = plain.slice_update(&ones, &[2, 1], &[5, 3], &[1, 1])?;
        assert!(got.array_equal(&wanted, true)?.item::<bool>()?, "{dtype}");
    }
    Ok(())
}

#[test]
fn mapped_windows_are_those_of_a_loop() -> Result<()> {
    type F = fn(&[Array]) -> Result<Array>;
    let functions: [F; 4] = [
        |a| a[0].slice_at(&a[1], [2, 0], &[2, 3, 4]),
        |a| a[0].slice_update_at(&a[2], &a[1], [2, 0]),
        // All of the window's axes are cut; one has no start.
        |a| a[0].slice_at(&a[1], [2, 0], &[2, 1, 4]),
        |a| a[0].slice_update_at(&a[2].slice(&[0, 1, 0], &[2, 3, 4], &[1; 3])?, &a[1], [2, 0]),
    ];
    let whole = [
        counted(&[3, 4, 3, 6]),
        Array::from_slice(&[1i16, 0, -3, 1, 9, 2], &[3, 2])?,
        counted(&[3, 2, 3, 4]).add(Array::scalar(1000i32))?,
    ];
    for f in functions {
        for mapped in 1..8 {
            let axes: Vec<Option<isize>> =
                (0..3).map(|k| (mapped >> k & 1 == 1).then_some(0)).collect();
            let row = |k: usize, i: usize| -> Result<Array> {
                let i = if axes[k].is_some() { i } else { 1 };
                whole[k].take(Array::scalar(i as i32), Some(0))
            };
            let given: Vec<Array> = (0..3)
                .map(|k| if axes[k].is_some() { Ok(whole[k].clone()) } else { row(k, 0) })
                .collect::<Result<_>>()?;
            let mapped = vmap(|a: &[Array]| Ok(vec![f(a)?]), &given, &axes, 0)?;
            for i in 0..3 {
                let one = f(&[row(0, i)?, row(1, i)?, row(2, i)?])?;
                // What depends on nothing that is mapped is not mapped either, but repeated.
                let got = mapped[0].take(Array::scalar(i as i32), Some(0))?;
                assert_eq!(got.to_vec::<i32>()?, one.to_vec::<i32>()?, "{axes:?} {i}");
            }
        }
    }
    Ok(())
}
