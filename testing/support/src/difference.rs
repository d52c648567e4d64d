//! Finite differences: references for derivatives.

/// Gradient of a scalar function at `x` by central differences with step `step`, one number of `x`
/// after the other: `(f(x + step) - f(x - step)) / (2 * step)`. The error is of order `step^2`.
///
/// # Errors
/// What `f` gives.
pub fn gradient<E>(
    mut f: impl FnMut(&[f64]) -> Result<f64, E>,
    x: &[f64],
    step: f64,
) -> Result<Vec<f64>, E> {
    (0..x.len())
        .map(|i| {
            let along: Vec<f64> = (0..x.len()).map(|j| f64::from(i == j)).collect();
            let slope = directional(|x| Ok(vec![f(x)?]), x, &along, step)?;
            Ok(slope[0])
        })
        .collect()
}

/// Derivative of a function with several results at `x` in the direction `along`, by a central difference:
/// the reference for a Jacobian-vector product.
///
/// # Errors
/// What `f` gives.
pub fn directional<E>(
    mut f: impl FnMut(&[f64]) -> Result<Vec<f64>, E>,
    x: &[f64],
    along: &[f64],
    step: f64,
) -> Result<Vec<f64>, E> {
    assert_eq!(x.len(), along.len(), "a direction has as many numbers as the point");
    let mut moved = |by: f64| {
        let point: Vec<f64> = x.iter().zip(along).map(|(x, t)| x + by * t).collect();
        f(&point)
    };
    let (up, down) = (moved(step)?, moved(-step)?);
    Ok(up.iter().zip(&down).map(|(u, d)| (u - d) / (2.0 * step)).collect())
}

#[cfg(test)]
mod tests {
    use super::{directional, gradient};
    use crate::{Tolerance, assert_close};
    use std::convert::Infallible;

    #[test]
    fn derivatives_of_a_polynomial() {
        let f = |x: &[f64]| Ok::<_, Infallible>(x[0] * x[0] * x[1]);
        let Ok(slope) = gradient(f, &[3.0, 2.0], 1e-5);
        assert_close("gradient", &slope, &[12.0, 9.0], Tolerance::mixed(1e-8));
        let g = |x: &[f64]| Ok::<_, Infallible>(vec![x[0] * x[1], x[0] + x[1]]);
        let Ok(slope) = directional(g, &[3.0, 2.0], &[1.0, -1.0], 1e-5);
        assert_close("direction", &slope, &[-1.0, 0.0], Tolerance::mixed(1e-8));
    }
}
