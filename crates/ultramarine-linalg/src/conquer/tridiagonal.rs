//! Eigenvectors of symmetric tridiagonal matrices.

use super::merge::{Merge, Room, Side};
use super::sweeps::eigenvalues;
use super::{Crew, LARGE, LEAST_VALUES, Threads, depth, parts, ranges};
use crate::work::{power_of_two, zeros};
use crate::{Real, Scalar, Work};
use std::sync::{Mutex, PoisonError};

/// Eigenvalues in ascending order, and eigenvectors.
pub struct Eigen<R> {
    /// The values.
    pub values: Vec<f64>,
    /// The column that contains each value's vector.
    pub order: Vec<usize>,
    /// Columns without gaps, in any order.
    pub vectors: Vec<R>,
}

/// Computes the eigenvalues and eigenvectors of the symmetric tridiagonal matrix with the diagonal `d` and the
/// subdiagonal `e`.
///
/// # Errors
/// A message; see the crate.
pub fn tridiagonal_vectors<R: Real>(
    d: &[f64],
    e: &[f64],
    threads: &dyn Threads<R>,
) -> Result<Eigen<R>, String> {
    solve(d, e, true, threads)
}

/// Computes only the eigenvalues, in ascending order.
///
/// # Errors
/// A message; see the crate.
pub fn tridiagonal_values(
    d: &[f64],
    e: &[f64],
    threads: &dyn Threads<f64>,
) -> Result<Vec<f64>, String> {
    if d.len() < LEAST_VALUES {
        let (mut d, mut e) = (d.to_vec(), e[..d.len().max(1) - 1].to_vec());
        eigenvalues(&mut d, &mut e)?;
        return Ok(d);
    }
    Ok(solve(d, e, false, threads)?.values)
}

fn solve<R: Real>(
    d: &[f64],
    e: &[f64],
    wanted: bool,
    threads: &dyn Threads<R>,
) -> Result<Eigen<R>, String> {
    let n = d.len();
    if n == 0 {
        return Ok(Eigen { values: Vec::new(), order: Vec::new(), vectors: Vec::new() });
    }
    let most = d.iter().chain(&e[..n - 1]).fold(0.0, |most: f64, v| most.max(v.abs()));
    let by = power_of_two(most, 1.0);
    let mut d: Vec<f64> = d.iter().map(|v| v * by).collect();
    let e: Vec<f64> = e[..n - 1].iter().map(|v| v * by).collect();
    let depth = depth(n);
    let leaves = ranges(n, depth, 0);
    // The part that joins the halves has rank one; the remainder is on the diagonal.
    for leaf in leaves.iter().skip(1) {
        let at = leaf.start;
        d[at - 1] -= e[at - 1].abs();
        d[at] -= e[at - 1].abs();
    }
    let rows = if wanted { n } else { 0 };
    let mut vectors = zeros::<R>(n * rows)?;
    let (mut packed, mut mix) = (zeros::<R>(n * rows)?, zeros::<R>(n * rows)?);
    let [mut first, mut last] = [vec![0.0; n], vec![0.0; n]];
    let failed = Mutex::new(None);
    let items = parts(&mut d, 1, &leaves)
        .into_iter()
        .zip(parts(&mut vectors, rows, &leaves))
        .zip(parts(&mut first, 1, &leaves).into_iter().zip(parts(&mut last, 1, &leaves)))
        .zip(&leaves);
    Crew { threads, together: true }.each(items, |_, (((d, vectors), (first, last)), rows)| {
        let result = leaf(d, &e[rows.start..rows.end - 1], |i, j, v| {
            if let Some(to) = vectors.get_mut(j * n + rows.start + i) {
                *to = R::from_f64(v);
            }
            if i == 0 {
                first[j] = v;
            }
            if i + 1 == rows.len() {
                last[j] = v;
            }
        });
        if let Err(text) = result {
            *failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(text);
        }
    });
    if let Some(text) = failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(text);
    }
    for depth in (0..depth).rev() {
        let problems = ranges(n, depth, 0);
        let halves = ranges(n, depth + 1, 0);
        // Solve large problems one after the other on all threads, and small ones with one thread each.
        let large = problems.iter().any(|p| p.len() >= LARGE);
        let crew = Crew { threads, together: large };
        let items = parts(&mut d, 1, &problems)
            .into_iter()
            .zip(parts(&mut vectors, rows, &problems))
            .zip(parts(&mut first, 1, &problems).into_iter().zip(parts(&mut last, 1, &problems)))
            .zip(
                parts(&mut packed, rows, &problems)
                    .into_iter()
                    .zip(parts(&mut mix, rows, &problems)),
            )
            .zip(halves.chunks_exact(2));
        Crew { threads, together: !large }.each(items, |_, (((memory, ends), room), halves)| {
            let ((d, vectors), (first, last), (packed, mix)) = (memory, ends, room);
            let rows = [halves[0].clone(), halves[1].clone()];
            let split = rows[0].len();
            let joint = e[rows[1].start - 1];
            let root = joint.abs().sqrt();
            let left = last[..split].iter().map(|v| v * root);
            let right = first[split..].iter().map(|v| v * root.copysign(joint));
            let z = left.chain(right).collect();
            last[..split].fill(0.0);
            first[split..].fill(0.0);
            let side = Side { vectors, rows, ends: Some([first, last]) };
            let room = Room { ld: n, packed, mix };
            // For the whole matrix, compute only the requested vectors.
            let sides = if wanted || depth > 0 { vec![side] } else { Vec::new() };
            Merge { d, z, split, centre: false, mixed: false, sides, room }.run(crew);
        });
    }
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|a, b| d[*a].total_cmp(&d[*b]));
    let values = order.iter().map(|j| d[*j] / by).collect();
    Ok(Eigen { values, order, vectors })
}

/// Replaces the diagonal by the eigenvalues, and passes the vectors' elements to `store`.
fn leaf(d: &mut [f64], e: &[f64], mut store: impl FnMut(usize, usize, f64)) -> Result<(), String> {
    let n = d.len();
    let (mut a, mut v) = (zeros(n * n)?, zeros(n * n)?);
    for i in 0..n {
        a[i + i * n] = d[i];
        if i + 1 < n {
            a[i + 1 + i * n] = e[i];
        }
    }
    f64::eigh(&mut a, n, d, Some(&mut v), &mut Work::default())?;
    v.iter().enumerate().for_each(|(at, v)| store(at % n, at / n, *v));
    Ok(())
}
