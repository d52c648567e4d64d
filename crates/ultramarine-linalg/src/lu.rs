//! LU factors with partial pivoting.
//!
//! The blocked algorithm of LAPACK's getrf, with faer's products and triangular solves. faer's own LU divides by a
//! pivot of zero, so that singular matrices would get NaN instead of factors.

use crate::{Number, work::matrix_mut};
use faer::{
    Accum, Par,
    linalg::{matmul::matmul, triangular_solve::solve_unit_lower_triangular_in_place},
};

/// Columns that are factored at a time.
const BLOCK: usize = 32;

pub(crate) fn lu<T: Number>(
    a: &mut [T],
    m: usize,
    n: usize,
    pivots: &mut [u32],
    rows: &mut [u32],
) -> Result<(), String> {
    let k = m.min(n);
    if u32::try_from(m).is_err() {
        return Err("indices of the rows do not fit in uint32".into());
    }
    let (a, pivots, rows) = (&mut a[..m * n], &mut pivots[..k], &mut rows[..m]);
    for first in (0..k).step_by(BLOCK) {
        let end = (first + BLOCK).min(k);
        panel(&mut a[..m * end], m, first, end, pivots);
        for column in (0..first).chain(end..n) {
            let column = &mut a[column * m..][..m];
            (first..end).for_each(|i| column.swap(i, pivots[i] as usize));
        }
        let (left, right) = matrix_mut(a, m, n).split_at_col_mut(end);
        if right.ncols() == 0 {
            continue;
        }
        let (top, rest) = right.split_at_row_mut(end);
        let mut top = top.subrows_mut(first, end - first);
        let left = left.as_ref().subcols(first, end - first);
        let corner = left.subrows(first, end - first);
        solve_unit_lower_triangular_in_place(corner, top.as_mut(), Par::Seq);
        let below = left.subrows(end, m - end);
        matmul(rest, Accum::Add, below, top.as_ref(), -T::ONE, Par::Seq);
    }
    rows.iter_mut().zip(0..).for_each(|(row, i)| *row = i);
    (0..k).for_each(|i| rows.swap(i, pivots[i] as usize));
    Ok(())
}

/// Factors the columns from `first` on, below row `first`. The rows of other columns are not swapped here.
fn panel<T: Number>(a: &mut [T], m: usize, first: usize, end: usize, pivots: &mut [u32]) {
    for j in first..end {
        let column = &a[j * m..][..m];
        let (mut pivot, mut most) = (j, column[j].magnitude());
        for (i, v) in column.iter().enumerate().skip(j + 1) {
            let size = v.magnitude();
            if size > most {
                (pivot, most) = (i, size);
            }
        }
        pivots[j] = pivot as u32;
        if pivot != j {
            (first..end).for_each(|c| a.swap(c * m + j, c * m + pivot));
        }
        let (done, later) = a.split_at_mut((j + 1) * m);
        let column = &mut done[j * m..];
        let head = column[j];
        // If the pivot is zero, the whole column is zero, and so are its factors.
        if head != T::default() {
            column[j + 1..].iter_mut().for_each(|v| *v = v.over(head));
        }
        let column = &column[j + 1..];
        for other in later.chunks_exact_mut(m) {
            let by = other[j];
            if by != T::default() {
                other[j + 1..].iter_mut().zip(column).for_each(|(o, v)| *o -= by * *v);
            }
        }
    }
}
