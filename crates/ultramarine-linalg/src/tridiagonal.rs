//! Eigenvalues and eigenvectors of symmetric tridiagonal matrices, and singular values of bidiagonal ones.

use crate::{
    Number, Real, Work,
    work::{matrix_mut, power_of_two, zeros},
};
use faer::{
    Par,
    diag::{DiagMut, DiagRef},
    linalg::evd::{ComputeEigenvectors, self_adjoint_evd_scratch, tridiagonal_self_adjoint_evd},
};

const NO_END: &str = "the iteration for the eigenvalues did not converge";
/// Sweeps for each eigenvalue, at most; fewer than two are usual.
const SWEEPS: usize = 30;

pub(crate) fn tridiagonal<T: Number>(
    d: &mut [f64],
    e: &mut [f64],
    w: &mut [T::Norm],
    v: Option<&mut [T]>,
    work: &mut Work,
) -> Result<(), String> {
    let n = d.len();
    let w = &mut w[..n];
    if n == 0 {
        return Ok(());
    }
    let Some(v) = v else {
        eigenvalues(d, &mut e[..n - 1])?;
        w.iter_mut().zip(d).for_each(|(w, d)| *w = Real::from_f64(*d));
        return Ok(());
    };
    let required =
        self_adjoint_evd_scratch::<T>(n, ComputeEigenvectors::Yes, Par::Seq, Default::default());
    let stack = work.stack(required)?;
    // Elements of about 1, which faer compares with machine precision in places.
    let by = power_of_two(d.iter().chain(&*e).fold(0.0, |most: f64, v| most.max(v.abs())), 1.0);
    let (mut diagonal, mut below, mut values) = (zeros::<T>(n)?, zeros::<T>(n)?, zeros::<T>(n)?);
    diagonal.iter_mut().zip(d).for_each(|(to, from)| *to = T::of_parts([*from * by, 0.0]));
    below.iter_mut().zip(&e[..n - 1]).for_each(|(to, from)| *to = T::of_parts([*from * by, 0.0]));
    v[..n * n].fill(T::default());
    tridiagonal_self_adjoint_evd(
        DiagRef::from_slice(&diagonal),
        DiagRef::from_slice(&below),
        DiagMut::from_slice_mut(&mut values),
        Some(matrix_mut(v, n, n)),
        Par::Seq,
        stack,
        Default::default(),
    )
    .map_err(|_| NO_END)?;
    w.iter_mut().zip(values).for_each(|(w, v)| *w = Real::from_f64(v.parts()[0] / by));
    Ok(())
}

pub(crate) fn bidiagonal<T: Number>(
    d: &mut [f64],
    e: &mut [f64],
    s: &mut [T::Norm],
) -> Result<(), String> {
    let n = d.len();
    let roots = match size_of::<T::Norm>() {
        // Those of B^T B: what squares lose in double precision is less than what the result has.
        4 => {
            let squares = |i: usize| d[i] * d[i] + if i > 0 { e[i - 1] * e[i - 1] } else { 0.0 };
            let mut on: Vec<f64> = (0..n).map(squares).collect();
            let mut beside: Vec<f64> = (0..n.max(1) - 1).map(|i| d[i] * e[i]).collect();
            eigenvalues(&mut on, &mut beside)?;
            on.into_iter().map(|v| v.max(0.0).sqrt()).collect()
        }
        // The positive half of those of a matrix of twice the size with zeros on its diagonal (Golub and Kahan, 1965).
        _ => {
            let mut on = vec![0.0; 2 * n];
            let pairs = d.iter().zip(&*e).flat_map(|(d, e)| [*d, *e]);
            let mut beside: Vec<f64> = pairs.take((2 * n).max(1) - 1).collect();
            eigenvalues(&mut on, &mut beside)?;
            on.split_off(n)
        }
    };
    let descending = roots.into_iter().rev();
    s.iter_mut().zip(descending).for_each(|(s, v)| *s = Real::from_f64(v.max(0.0)));
    Ok(())
}

/// Replaces the diagonal by the eigenvalues, in ascending order; `e` lies below it. The QL algorithm without square roots, of
/// Pal, Walker and Kahan (Parlett, The Symmetric Eigenvalue Problem, 1998, section 8.15).
fn eigenvalues(d: &mut [f64], e: &mut [f64]) -> Result<(), String> {
    let norm = d.iter().chain(&*e).fold(0.0f64, |most, v| most.max(v.abs()));
    e.iter_mut().for_each(|e| *e *= *e);
    let small = Negligible { least: (norm * f64::EPSILON / 16.0).powi(2) };
    let mut first = 0;
    while first < d.len() {
        let last = small.after(d, e, first);
        unreduced(&mut d[first..=last], &mut e[first..last], small)?;
        first = last + 1;
    }
    d.sort_unstable_by(f64::total_cmp);
    Ok(())
}

/// The test for elements beside the diagonal, whose squares are given, that may count as zero.
#[derive(Clone, Copy)]
struct Negligible {
    least: f64,
}

impl Negligible {
    /// The first index from `first` on with nothing below it.
    fn after(self, d: &[f64], e: &[f64], first: usize) -> usize {
        let unit = f64::EPSILON * f64::EPSILON;
        let ends = |i: &usize| e[*i] <= self.least.max(unit * (d[*i] * d[*i + 1]).abs());
        (first..e.len()).find(ends).unwrap_or(e.len())
    }
}

/// The eigenvalues of a matrix with no zero beside its diagonal.
fn unreduced(d: &mut [f64], e: &mut [f64], small: Negligible) -> Result<(), String> {
    let n = d.len();
    // The smaller end comes first: rounding errors are as small as what they are added to.
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
