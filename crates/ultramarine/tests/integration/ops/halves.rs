//! Functions of halves that are made of others: what is between is float32, and the result is rounded once.

use crate::support::arrays::f64s;
use ultramarine::linalg::{NormOrder, norm};
use ultramarine::transforms::grad;
use ultramarine::{Array, Dtype, KeepDims, Result, addmm};

const HALVES: [(Dtype, f64); 2] = [(Dtype::Float16, 1.0 / 1024.0), (Dtype::Bfloat16, 1.0 / 128.0)];

/// Compares with a number, to one rounding of a half.
#[track_caller]
fn rounded(what: &str, got: &Array, want: f64, epsilon: f64) {
    for got in f64s(got) {
        assert!((got - want).abs() <= 0.51 * epsilon * want.abs(), "{what}: {got}, not {want}");
    }
}

#[test]
fn sums_beyond_what_a_half_holds() -> Result<()> {
    for (dtype, epsilon) in HALVES {
        let zeros = Array::zeros(&[100_000], dtype)?;
        rounded("logsumexp", &zeros.logsumexp(None)?, 100_000f64.ln(), epsilon);
        let columns = Array::zeros(&[100_000, 2], dtype)?;
        rounded("over rows", &columns.logsumexp(KeepDims(0))?, 100_000f64.ln(), epsilon);

        let x = Array::full(&[4, 1000], 300.0f32)?.astype(dtype);
        let signs = Array::from_slice(&[1.0f32, -1.0], &[2])?.astype(dtype).tile(&[500])?;
        let y = x.multiply(&signs)?;
        for (axes, n) in [(None, 4000f64), (Some(&[-1isize][..]), 1000.0)] {
            rounded("mean", &x.mean(axes)?, 300.0, epsilon);
            if dtype == Dtype::Bfloat16 {
                rounded("var", &y.var(axes, 0)?, 90_000.0, epsilon);
            }
            rounded("std", &y.std(axes, 0)?, 300.0, epsilon);
            rounded("norm", &norm(&y, None, axes)?, 300.0 * n.sqrt(), epsilon);
        }
        let cubes = norm(&x, Some(NormOrder::Number(3.0)), [1])?;
        rounded("cubes", &cubes, 3000.0, epsilon);
        let large = Array::from_slice(&[60_000.0f32, 60_000.0], &[2])?.astype(dtype);
        let own = f64s(&large)[0];
        rounded("median", &large.median(None)?, own, epsilon);
        // Squares below what a half holds.
        let small = Array::full(&[16], 2f32.powi(-15))?.astype(dtype);
        rounded("small norm", &norm(&small, None, ..)?, 2f64.powi(-13), epsilon);
    }
    Ok(())
}

#[test]
fn factors_of_a_sum_of_products_are_rounded_once() -> Result<()> {
    for (dtype, epsilon) in HALVES {
        // What is scaled cancels, and leaves what a rounding of each would have lost.
        for (a, b, c) in [(4.0f32, 7.0, -14.0), (5.0, 5.0, -9.0)] {
            let [x, y, z] = [a, b, c].map(|v| Array::full(&[1, 1], v));
            let [x, y, z] = [x?, y?, z?].map(|v| v.astype(dtype));
            let want = 0.3 * f64::from(a * b) + 0.7 * f64::from(c);
            rounded("addmm", &addmm(&z, &x, &y, 0.3, 0.7)?, want, epsilon);
        }
    }
    Ok(())
}

#[test]
fn the_derivative_of_logsumexp_is_softmax() -> Result<()> {
    for (dtype, epsilon) in HALVES {
        let x = Array::zeros(&[3000], dtype)?;
        let slope = grad(|x: &Array| x.logsumexp(None))(&x)?;
        assert_eq!(slope.dtype(), dtype);
        rounded("logsumexp", &slope, 1.0 / 3000.0, epsilon);
    }
    Ok(())
}
