//! Cholesky's factors, and triangular solves.

use crate::{
    Number, Work,
    work::{matrix, matrix_mut},
};
use faer::{
    Par,
    linalg::{
        cholesky::llt::factor::{LltRegularization, cholesky_in_place, cholesky_in_place_scratch},
        triangular_solve::{solve_lower_triangular_in_place, solve_upper_triangular_in_place},
    },
};

pub(crate) fn cholesky<T: Number>(a: &mut [T], n: usize, work: &mut Work) -> Result<bool, String> {
    if n == 0 {
        return Ok(true);
    }
    let stack = work.stack(cholesky_in_place_scratch::<T>(n, Par::Seq, Default::default()))?;
    let factor = cholesky_in_place(
        matrix_mut(a, n, n),
        LltRegularization::default(),
        Par::Seq,
        stack,
        Default::default(),
    );
    // Remove the rounding errors of complex products from the diagonal.
    for v in a.iter_mut().step_by(n + 1).take(n) {
        *v = T::of_parts([v.parts()[0], 0.0]);
    }
    Ok(factor.is_ok())
}

pub(crate) fn solve_triangular<T: Number>(
    a: &[T],
    n: usize,
    upper: bool,
    b: &mut [T],
    k: usize,
) -> Result<(), String> {
    if let Some(i) = (0..n).find(|i| a[i + i * n] == T::default()) {
        return Err(format!(
            "the matrix is singular: element ({i}, {i}) is 0. Use pinv, or add a small multiple of the identity"
        ));
    }
    if n == 0 || k == 0 {
        return Ok(());
    }
    let (a, b) = (matrix(a, n, n), matrix_mut(b, n, k));
    match upper {
        true => solve_upper_triangular_in_place(a, b, Par::Seq),
        false => solve_lower_triangular_in_place(a, b, Par::Seq),
    }
    Ok(())
}
