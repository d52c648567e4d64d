//! Updates of slices.

use Dtype::*;
use ultramarine::{Array, Dtype, Result};

fn ints(data: &[i32], shape: &[usize]) -> Array {
    Array::from_slice(data, shape).expect("the shape fits")
}

#[test]
fn updates_of_slices() -> Result<()> {
    for (start, stop, step) in
        [(1isize, 6isize, 2isize), (-1, isize::MIN, -3), (2, 2, 1), (0, 7, 1)]
    {
        let x = ints(&[0, 1, 2, 3, 4, 5, 6], &[7]);
        let n = x.slice(&[start], &[stop], &[step])?.size();
        let update = Array::arange(10.0, 10.0 + n as f64, 1.0, Int64)?;
        let y = x.slice_update(&update, &[start], &[stop], &[step])?;
        let mut naive: Vec<i32> = (0..7).collect();
        let mut at = if start < 0 { start + 7 } else { start };
        for v in 0..n {
            naive[at as usize] = 10 + v as i32;
            at += step;
        }
        assert_eq!(y.to_vec::<i32>()?, naive, "{start}:{stop}:{step}");
        // The source is as it was.
        assert_eq!(x.to_vec::<i32>()?, [0, 1, 2, 3, 4, 5, 6]);
    }
    let x = Array::zeros(&[2, 3], Int32)?;
    let y = x.slice_update(&ints(&[1, 2], &[2, 1]), &[0, 1], &[2, 3], &[1, 1])?;
    assert_eq!(y.to_vec::<i32>()?, [0, 1, 1, 0, 2, 2]);
    assert!(x.slice_update(&ints(&[1, 2, 3, 4], &[4]), &[0, 0], &[2, 3], &[1, 1]).is_err());
    // A chain of updates writes into one buffer.
    let mut chain = x.add(&Array::ones(&[2, 3], Int32)?)?;
    for i in 0..3 {
        chain = chain.slice_update(
            &ints(&[10 * i], &[1]),
            &[0, i as isize],
            &[2, i as isize + 1],
            &[1, 1],
        )?;
    }
    assert_eq!(chain.to_vec::<i32>()?, [0, 10, 20, 0, 10, 20]);
    Ok(())
}
