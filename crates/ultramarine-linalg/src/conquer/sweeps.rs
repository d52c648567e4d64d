//! Eigenvalues of symmetric tridiagonal matrices that are too small for several threads.

use crate::work::power_of_two;

const NO_END: &str = "the iteration for the eigenvalues did not converge";
/// Largest number of sweeps for each eigenvalue; fewer than two are typical.
const SWEEPS: usize = 30;

/// Replaces the diagonal `d` by the eigenvalues, in ascending order; `e` is the subdiagonal. It is the QL algorithm
/// without square roots by Pal, Walker and Kahan (Parlett, The Symmetric Eigenvalue Problem, 1998, section 8.15).
pub fn eigenvalues(d: &mut [f64], e: &mut [f64]) -> Result<(), String> {
    let norm = d.iter().chain(&*e).fold(0.0f64, |most, v| most.max(v.abs()));
    // Scale the matrix so that squares neither overflow nor underflow.
    let by = power_of_two(norm, 1e60);
    d.iter_mut().chain(&mut *e).for_each(|v| *v *= by);
    let norm = norm * by;
    e.iter_mut().for_each(|e| *e *= *e);
    let small = Negligible { least: (norm * f64::EPSILON / 16.0).powi(2) };
    let mut first = 0;
    while first < d.len() {
        let last = small.after(d, e, first);
        unreduced(&mut d[first..=last], &mut e[first..last], small)?;
        first = last + 1;
    }
    d.iter_mut().for_each(|v| *v /= by);
    d.sort_unstable_by(f64::total_cmp);
    Ok(())
}

/// Decides whether off-diagonal elements, given by their squares, count as zero.
#[derive(Clone, Copy)]
struct Negligible {
    least: f64,
}

impl Negligible {
    /// The first index from `first` on that has a zero below it.
    fn after(self, d: &[f64], e: &[f64], first: usize) -> usize {
        let unit = f64::EPSILON * f64::EPSILON;
        let ends = |i: &usize| e[*i] <= self.least.max(unit * (d[*i] * d[*i + 1]).abs());
        (first..e.len()).find(ends).unwrap_or(e.len())
    }
}

/// The eigenvalues of a matrix without zeros on its subdiagonal.
fn unreduced(d: &mut [f64], e: &mut [f64], small: Negligible) -> Result<(), String> {
    let n = d.len();
    // Begin at the end with smaller elements: rounding errors are then as small as the elements to which they are
    // added.
    if d[n - 1].abs() < d[0].abs() {
        d.reverse();
        e.reverse();
    }
    let mut left = SWEEPS * n;
    let mut first = 0;
    while first < n {
        let last = small.after(d, e, first);
        if last < e.len() {
            e[last] = 0.0;
        }
        match last - first {
            0 => first += 1,
            1 => {
                let (mean, half) = ((d[first] + d[last]) / 2.0, (d[first] - d[last]) / 2.0);
                let root = (half * half + e[first]).sqrt();
                (d[first], d[last]) = (mean - root, mean + root);
                e[first] = 0.0;
                first += 2;
            }
            _ => {
                left = left.checked_sub(1).ok_or(NO_END)?;
                sweep(&mut d[first..=last], &mut e[first..last]);
            }
        }
    }
    Ok(())
}

/// One sweep with Wilkinson's shift.
fn sweep(d: &mut [f64], e: &mut [f64]) {
    let root = e[0].sqrt();
    let ratio = (d[1] - d[0]) / (2.0 * root);
    let shift = d[0] - root / (ratio + ratio.hypot(1.0).copysign(ratio));
    let last = e.len();
    let (mut c, mut s, mut gamma) = (1.0, 0.0, d[last] - shift);
    let mut p = gamma * gamma;
    for i in (0..last).rev() {
        let r = p + e[i];
        if i + 1 < last {
            e[i + 1] = s * r;
        }
        let before = c;
        let inverse = r / p;
        (c, s) = (p / r, e[i] / r);
        let old = gamma;
        gamma = c * (d[i] - shift) - s * old;
        d[i + 1] = old + (d[i] - gamma);
        p = if c == 0.0 { before * e[i] } else { gamma * gamma * inverse };
    }
    e[0] = s * p;
    d[0] = shift + gamma;
}
