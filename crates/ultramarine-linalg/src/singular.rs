//! Singular values and vectors.

use crate::{
    Number, Real, SingularVectors, Work,
    work::{matrix, matrix_mut, scale, zeros},
};
use faer::{
    Auto, Par,
    diag::DiagMut,
    linalg::svd::{ComputeSvdVectors, SvdParams, svd as decompose, svd_scratch},
};

pub(crate) fn svd<T: Number>(
    a: &mut [T],
    m: usize,
    n: usize,
    s: &mut [T::Norm],
    mut vectors: Option<SingularVectors<'_, T>>,
    work: &mut Work,
) -> Result<(), String> {
    let k = m.min(n);
    let (a, s) = (&mut a[..m * n], &mut s[..k]);
    if k == 0 {
        if let Some(SingularVectors { u, v, full: true }) = vectors {
            identity(u, m);
            identity(v, n);
        }
        return Ok(());
    }
    // Scale elements to about 1, because faer compares them with machine precision in places.
    let by = scale(a, 1.0)?;
    if by != 1.0 {
        a.iter_mut().for_each(|v| *v = v.times(by));
    }
    let kind = match &vectors {
        None => ComputeSvdVectors::No,
        Some(vectors) if vectors.full => ComputeSvdVectors::Full,
        Some(_) => ComputeSvdVectors::Thin,
    };
    let mut params = <SvdParams as Auto<T>>::auto();
    // faer's QR factors are not accurate enough here.
    params.qr_ratio_threshold = f64::INFINITY;
    let params = params.into();
    let stack = work.stack(svd_scratch::<T>(m, n, kind, kind, Par::Seq, params))?;
    let (u, v) = match &mut vectors {
        None => (None, None),
        Some(SingularVectors { u, v, full }) => {
            let (left, right) = if *full { (m, n) } else { (k, k) };
            // faer assumes that some parts of the full set of singular vectors are zero.
            u[..m * left].fill(T::default());
            v[..n * right].fill(T::default());
            (Some(matrix_mut(u, m, left)), Some(matrix_mut(v, n, right)))
        }
    };
    let mut values = zeros::<T>(k)?;
    let diagonal = DiagMut::from_slice_mut(&mut values);
    decompose(matrix(a, m, n), diagonal, u, v, Par::Seq, stack, params)
        .map_err(|_| "the iteration for the singular values did not converge")?;
    for (s, value) in s.iter_mut().zip(values) {
        *s = Real::from_f64(value.parts()[0] / by);
    }
    sort(s, vectors, m, n);
    Ok(())
}

/// Sorts in descending order, because values near 0 are not always in order.
fn sort<T: Number>(s: &mut [T::Norm], vectors: Option<SingularVectors<'_, T>>, m: usize, n: usize) {
    if s.is_sorted_by(|a, b| a >= b) {
        return;
    }
    let mut order: Vec<usize> = (0..s.len()).collect();
    order.sort_by(|a, b| s[*b].to_f64().total_cmp(&s[*a].to_f64()));
    let sorted: Vec<T::Norm> = order.iter().map(|i| s[*i]).collect();
    s.copy_from_slice(&sorted);
    let columns = |of: &mut [T], m: usize| {
        let moved: Vec<T> = order.iter().flat_map(|j| &of[j * m..][..m]).copied().collect();
        of[..moved.len()].copy_from_slice(&moved);
    };
    if let Some(SingularVectors { u, v, .. }) = vectors {
        columns(u, m);
        columns(v, n);
    }
}

fn identity<T: Number>(a: &mut [T], n: usize) {
    a[..n * n].fill(T::default());
    (0..n).for_each(|i| a[i + i * n] = T::ONE);
}
