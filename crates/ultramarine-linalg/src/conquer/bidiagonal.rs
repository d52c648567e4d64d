//! Singular vectors of bidiagonal matrices.

use super::deflate::{LEAST, Rotation};
use super::merge::{Merge, Room, Side};
use super::sweeps::eigenvalues;
use super::{Crew, LARGE, LEAST_VALUES, Threads, depth, parts, ranges};
use crate::work::{power_of_two, zeros};
use crate::{Real, Scalar, SingularVectors, Work};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// Singular values in descending order, and singular vectors.
pub struct Singular<R> {
    /// The values.
    pub values: Vec<f64>,
    /// The column that contains each value's vectors.
    pub order: Vec<usize>,
    /// Left singular vectors: columns without gaps, in any order.
    pub left: Vec<R>,
    /// Right singular vectors, stored in the same way.
    pub right: Vec<R>,
}

/// Number of rows between two halves: one row joins them.
const BETWEEN: usize = 1;

/// Computes the singular values and vectors of the upper bidiagonal matrix with the diagonal `d` and the superdiagonal
/// `e`.
///
/// # Errors
/// A message; see the crate.
pub fn bidiagonal_vectors<R: Real>(
    d: &[f64],
    e: &[f64],
    threads: &dyn Threads<R>,
) -> Result<Singular<R>, String> {
    solve(d, e, true, threads)
}

/// Computes only the singular values, in descending order. `single` is true if single precision is enough.
///
/// # Errors
/// A message; see the crate.
pub fn bidiagonal_values(
    d: &[f64],
    e: &[f64],
    single: bool,
    threads: &dyn Threads<f64>,
) -> Result<Vec<f64>, String> {
    let n = d.len();
    if single && n < LEAST_VALUES {
        // Use the eigenvalues of B^T B: squaring loses less in double precision than the single-precision result can
        // show.
        let squares = |i: usize| d[i] * d[i] + if i > 0 { e[i - 1] * e[i - 1] } else { 0.0 };
        let mut on: Vec<f64> = (0..n).map(squares).collect();
        let mut beside: Vec<f64> = (0..n.max(1) - 1).map(|i| d[i] * e[i]).collect();
        eigenvalues(&mut on, &mut beside)?;
        return Ok(on.into_iter().rev().map(|v| v.max(0.0).sqrt()).collect());
    }
    Ok(solve(d, e, false, threads)?.values)
}

fn solve<R: Real>(
    d: &[f64],
    e: &[f64],
    wanted: bool,
    threads: &dyn Threads<R>,
) -> Result<Singular<R>, String> {
    let n = d.len();
    if n == 0 {
        return Ok(Singular {
            values: Vec::new(),
            order: Vec::new(),
            left: Vec::new(),
            right: Vec::new(),
        });
    }
    let most = d.iter().chain(&e[..n - 1]).fold(0.0, |most: f64, v| most.max(v.abs()));
    let by = power_of_two(most, 1.0);
    let d: Vec<f64> = d.iter().map(|v| v * by).collect();
    let e: Vec<f64> = e[..n - 1].iter().map(|v| v * by).collect();
    // All problems except the last have one column more than rows.
    let columns = |rows: &[Range<usize>]| -> Vec<Range<usize>> {
        rows.iter().map(|r| r.start..n.min(r.end + 1)).collect()
    };
    let mut values = vec![0.0; n];
    let ld = if wanted { n } else { 0 };
    let (mut left, mut right) = (zeros::<R>(n * ld)?, zeros::<R>(n * ld)?);
    let (mut packed, mut mix) = (zeros::<R>(n * ld)?, zeros::<R>(n * ld)?);
    let [mut first, mut last] = [vec![0.0; n], vec![0.0; n]];
    let depth = depth(n);
    let rows = ranges(n, depth, BETWEEN);
    let wide = columns(&rows);
    let failed = Mutex::new(None);
    let items = parts(&mut values, 1, &rows)
        .into_iter()
        .zip(parts(&mut left, ld, &rows).into_iter().zip(parts(&mut right, ld, &wide)))
        .zip(parts(&mut first, 1, &wide).into_iter().zip(parts(&mut last, 1, &wide)))
        .zip(rows.iter().zip(&wide));
    Crew { threads, together: true }.each(
        items,
        |_, (((values, (left, right)), (first, last)), (rows, columns))| {
            let (d, e) = (&d[rows.clone()], &e[rows.start..columns.end - 1]);
            let (m, k, start) = (rows.len(), columns.len(), rows.start);
            match leaf(d, e, values) {
                Ok([u, v]) => {
                    for (to, u) in left.chunks_mut(n).zip(u.chunks_exact(m)) {
                        let to = to[start..].iter_mut();
                        to.zip(u).for_each(|(to, v)| *to = R::from_f64(*v));
                    }
                    for (to, v) in right.chunks_mut(n).zip(v.chunks_exact(k)) {
                        let to = to[start..].iter_mut();
                        to.zip(v).for_each(|(to, v)| *to = R::from_f64(*v));
                    }
                    for (j, v) in v.chunks_exact(k).enumerate() {
                        (first[j], last[j]) = (v[0], v[k - 1]);
                    }
                }
                Err(text) => *failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(text),
            }
        },
    );
    if let Some(text) = failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(text);
    }
    for depth in (0..depth).rev() {
        let (rows, halves) = (ranges(n, depth, BETWEEN), ranges(n, depth + 1, BETWEEN));
        let wide = columns(&rows);
        // Solve large problems one after the other on all threads, and small ones with one thread each.
        let large = rows.iter().any(|r| r.len() >= LARGE);
        let crew = Crew { threads, together: large };
        let items = parts(&mut values, 1, &rows)
            .into_iter()
            .zip(parts(&mut left, ld, &rows).into_iter().zip(parts(&mut right, ld, &wide)))
            .zip(parts(&mut first, 1, &wide).into_iter().zip(parts(&mut last, 1, &wide)))
            .zip(parts(&mut packed, ld, &rows).into_iter().zip(parts(&mut mix, ld, &rows)))
            .zip(halves.chunks_exact(2).zip(&wide));
        Crew { threads, together: !large }.each(
            items,
            |_, (((memory, ends), room), (halves, columns))| {
                let ((values, (left, right)), (first, last), (packed, mix)) = (memory, ends, room);
                let (m, split, row) = (values.len(), halves[0].len(), halves[0].end);
                let (on, beside) = (d[row], e.get(row).copied().unwrap_or(0.0));
                let mut z: Vec<f64> = last[..=split].iter().map(|v| v * on).collect();
                z.extend(first[split + 1..].iter().map(|v| v * beside));
                last[..=split].fill(0.0);
                first[split + 1..].fill(0.0);
                values[split] = 0.0;
                let mut right = Side {
                    vectors: right,
                    rows: [columns.start..row + 1, row + 1..columns.end],
                    ends: Some([first, last]),
                };
                let left = Side {
                    vectors: left,
                    rows: [halves[0].clone(), halves[1].clone()],
                    ends: None,
                };
                // Each half has a right vector without a singular value. One combination of the two belongs to the
                // centre, the other to the whole matrix.
                let mixed = z.len() > m && z[m] != 0.0;
                if mixed {
                    let both = z[split].hypot(z[m]);
                    let (c, s) = (z[split] / both, z[m] / both);
                    right.rotate(n, &Rotation { from: m, to: split, c, s, right_only: true });
                    z[split] = both;
                }
                z.truncate(m);
                let room = Room { ld: n, packed, mix };
                // For the whole matrix, compute only the requested vectors.
                let sides = match (wanted, depth) {
                    (true, _) => vec![right, left],
                    (false, 0) => Vec::new(),
                    _ => vec![right],
                };
                Merge { d: values, z, split, centre: true, mixed, sides, room }.run(crew);
            },
        );
    }
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|a, b| values[*b].total_cmp(&values[*a]));
    // The recursion replaces zeros by the smallest numbers that it can tell from zero; undo that.
    let value = |v: f64| if v < 1e3 * LEAST { 0.0 } else { v / by };
    let values = order.iter().map(|j| value(values[*j])).collect();
    Ok(Singular { values, order, left, right })
}

/// Singular values of a problem that is not halved, with its left and right vectors.
fn leaf(d: &[f64], e: &[f64], values: &mut [f64]) -> Result<[Vec<f64>; 2], String> {
    let (m, n) = (d.len(), e.len() + 1);
    let (mut a, mut u, mut v) = (zeros(m * n)?, zeros(m * m)?, zeros(n * n)?);
    for i in 0..m {
        a[i + i * m] = d[i];
        if i < e.len() {
            a[i + (i + 1) * m] = e[i];
        }
    }
    let vectors = SingularVectors { u: &mut u, v: &mut v, full: true };
    f64::svd(&mut a, m, n, values, Some(vectors), &mut Work::default())?;
    Ok([u, v])
}
