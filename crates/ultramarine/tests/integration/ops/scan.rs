//! Scans against plain loops; differences of neighbours.

use super::reduce::{array, close, numbers, offset, positions};
use ultramarine::{Array, Error, Result};

#[test]
fn scans() -> Result<()> {
    let v = numbers(24, 2);
    let shape = [2, 3, 4];
    let x = array(&v, &shape)?;
    type Fold = fn(f64, f64) -> f64;
    let table: [(&str, f64, Fold); 5] = [
        ("cumsum", 0.0, |a, b| a + b),
        ("cumprod", 1.0, |a, b| a * b),
        ("cummax", f64::NEG_INFINITY, f64::max),
        ("cummin", f64::INFINITY, f64::min),
        ("logcumsumexp", f64::NEG_INFINITY, |a, b| (a.exp() + b.exp()).ln()),
    ];
    for (name, start, f) in table {
        for (axis, reverse, inclusive) in (0..3usize)
            .flat_map(|a| [(a, false, true), (a, true, true), (a, false, false), (a, true, false)])
        {
            let run = |a: &Array| {
                let axis = Some(axis as isize);
                match name {
                    "cumsum" => a.cumsum(axis, reverse, inclusive),
                    "cumprod" => a.cumprod(axis, reverse, inclusive),
                    "cummax" => a.cummax(axis, reverse, inclusive),
                    "cummin" => a.cummin(axis, reverse, inclusive),
                    _ => a.logcumsumexp(axis, reverse, inclusive),
                }
            };
            let mut wanted = vec![0.0; v.len()];
            for p in positions(&shape) {
                let n = shape[axis];
                let steps: Vec<usize> =
                    if reverse { (p[axis]..n).rev().collect() } else { (0..=p[axis]).collect() };
                let steps = &steps[..steps.len() - !inclusive as usize];
                let mut total = start;
                for s in steps {
                    let mut q = p.clone();
                    q[axis] = *s;
                    total = f(total, v[offset(&q, &shape)]);
                }
                wanted[offset(&p, &shape)] = total;
            }
            close(&run(&x)?, &wanted, 1e-12, name)?;
        }
    }
    assert_eq!(x.cumsum(None, false, true)?.shape(), [24]);
    assert_eq!(Array::scalar(2.0f32).cumsum(None, false, true)?.shape(), [1]);
    Ok(())
}

#[test]
fn differences() -> Result<()> {
    let x = Array::from_slice(&[1u8, 3, 0, 5, 5, 9], &[2, 3])?;
    assert_eq!(x.diff(1, -1)?.to_vec::<u8>()?, [2, 253, 0, 4]);
    assert_eq!(x.diff(1, 0)?.to_vec::<u8>()?, [4, 2, 9]);
    assert_eq!(x.diff(0, 0)?.to_vec::<u8>()?, x.to_vec::<u8>()?);
    assert_eq!(x.diff(usize::MAX, 1)?.shape(), [2, 0]);
    let bools = Array::from_slice(&[true, true, false, true], &[4])?;
    assert_eq!(bools.diff(1, 0)?.to_vec::<bool>()?, [false, true, true]);
    assert!(matches!(x.diff(1, 2), Err(Error::Index(_))));
    Ok(())
}
