//! Cholesky's and QR factors, and triangular solves.

use crate::{
    Number, Work,
    work::{matrix, matrix_mut, zeros},
};
use faer::{
    Conj, Par,
    linalg::{
        cholesky::llt::factor::{LltRegularization, cholesky_in_place, cholesky_in_place_scratch},
        householder::{
            apply_block_householder_sequence_on_the_left_in_place_scratch as apply_scratch,
            apply_block_householder_sequence_on_the_left_in_place_with_conj as apply,
        },
        qr::no_pivoting::factor::{qr_in_place, qr_in_place_scratch, recommended_block_size},
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
    // Rounding errors of complex products.
    for v in a.iter_mut().step_by(n + 1).take(n) {
        *v = T::of_parts([v.parts()[0], 0.0]);
    }
    Ok(factor.is_ok())
}

pub(crate) fn qr<T: Number>(
    a: &mut [T],
    m: usize,
    n: usize,
    q: &mut [T],
    work: &mut Work,
) -> Result<(), String> {
    let k = m.min(n);
    if k == 0 {
        return Ok(());
    }
    let (a, q) = (&mut a[..m * n], &mut q[..m * k]);
    let block = recommended_block_size::<T>(m, n);
    let mut reflectors = zeros::<T>(block * k)?;
    let make = qr_in_place_scratch::<T>(m, n, block, Par::Seq, Default::default());
    let stack = work.stack(make.or(apply_scratch::<T>(m, block, k)))?;
    let coefficients = matrix_mut(&mut reflectors, block, k);
    qr_in_place(matrix_mut(a, m, n), coefficients, Par::Seq, stack, Default::default());
    q.fill(T::default());
    (0..k).for_each(|i| q[i + i * m] = T::ONE);
    let (basis, coefficients) = (matrix(a, m, k), matrix(&reflectors, block, k));
    apply(basis, coefficients, Conj::No, matrix_mut(q, m, k), Par::Seq, stack);
    for j in 0..n {
        a[j * m..][..m].iter_mut().skip(j + 1).for_each(|v| *v = T::default());
    }
    if !T::IS_REAL {
        (0..k).for_each(|i| straighten(a, m, n, i, &mut q[i * m..][..m]));
    }
    Ok(())
}

/// Turns a row of r, and the column of q, so that the diagonal element is real; its sign stays.
fn straighten<T: Number>(r: &mut [T], m: usize, n: usize, i: usize, q: &mut [T]) {
    let [re, im] = r[i + i * m].parts();
    if im == 0.0 {
        return;
    }
    let size = re.hypot(im).copysign(re);
    let phase = T::of_parts([re / size, im / size]);
    for j in i..n {
        let v = &mut r[i + j * m];
        *v *= phase.conjugate();
    }
    r[i + i * m] = T::of_parts([size, 0.0]);
    q.iter_mut().for_each(|v| *v *= phase);
}

pub(crate) fn solve_triangular<T: Number>(
    a: &[T],
    n: usize,
    upper: bool,
    b: &mut [T],
    k: usize,
) -> Result<(), String> {
    if let Some(i) = (0..n).find(|i| a[i + i * n] == T::default()) {
        return Err(format!("the matrix is singular: element ({i}, {i}) is 0"));
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
