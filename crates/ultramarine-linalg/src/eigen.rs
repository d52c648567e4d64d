//! Eigenvalues and eigenvectors.

use crate::{
    Number, Real, Work,
    number::Wide,
    work::{matrix, matrix_mut, scale, zeros},
};
use faer::{
    Auto, MatMut, Par, Spec, c32, c64,
    diag::DiagMut,
    dyn_stack::MemStack,
    linalg::evd::{
        ComputeEigenvectors, EvdError, EvdParams, evd_cplx, evd_real, evd_scratch,
        self_adjoint_evd, self_adjoint_evd_scratch,
    },
};

const NO_END: &str = "the iteration for the eigenvalues did not converge";

pub(crate) fn eigh<T: Number>(
    a: &mut [T],
    n: usize,
    w: &mut [T::Norm],
    v: Option<&mut [T]>,
    work: &mut Work,
) -> Result<(), String> {
    if n == 0 {
        return Ok(());
    }
    let (a, w) = (&mut a[..n * n], &mut w[..n]);
    // Ignore the other triangle, including its NaN, and the diagonal's imaginary parts.
    for j in 0..n {
        a[j * n..][..j].fill(T::default());
        a[j + j * n] = T::of_parts([a[j + j * n].parts()[0], 0.0]);
    }
    let by = scale(a, T::LARGE)?;
    if by != 1.0 {
        a.iter_mut().for_each(|v| *v = v.times(by));
    }
    let stack = work.stack(self_adjoint_evd_scratch::<T>(
        n,
        wanted(v.is_some()),
        Par::Seq,
        Default::default(),
    ))?;
    let mut values = zeros::<T>(n)?;
    let diagonal = DiagMut::from_slice_mut(&mut values);
    let v = v.map(|v| {
        v[..n * n].fill(T::default());
        matrix_mut(v, n, n)
    });
    self_adjoint_evd(matrix(a, n, n), diagonal, v, Par::Seq, stack, Default::default())
        .map_err(|_| NO_END)?;
    for (w, value) in w.iter_mut().zip(values) {
        *w = Real::from_f64(value.parts()[0] / by);
    }
    Ok(())
}

fn wanted(vectors: bool) -> ComputeEigenvectors {
    if vectors { ComputeEigenvectors::Yes } else { ComputeEigenvectors::No }
}

pub(crate) fn eig<T: Number>(
    a: &[T],
    n: usize,
    w: &mut [c32],
    mut v: Option<&mut [c32]>,
    work: &mut Work,
) -> Result<(), String> {
    if n == 0 {
        return Ok(());
    }
    let a = &a[..n * n];
    // Scale elements to about 1, because faer compares them with machine precision in places.
    let by = scale(a, 1.0)?;
    let mut wide = zeros::<T::Wide>(n * n)?;
    for (wide, v) in wide.iter_mut().zip(a) {
        *wide = Wide::of_parts(v.parts().map(|p| p * by));
    }
    let mut values = zeros::<c64>(n)?;
    let mut vectors = zeros::<T::Wide>(if v.is_some() { n * n } else { 0 })?;
    for attempt in 0.. {
        let room = v.is_some().then_some(&mut vectors[..]);
        T::Wide::decompose(&wide, n, &mut values, room, work)?;
        let Some(v) = &mut v else { break };
        if T::Wide::normalised(&vectors, &values, n, v) {
            break;
        }
        if attempt == 2 {
            return Err("eigenvectors overflow".into());
        }
        // The vectors of large Jordan blocks are parallel, and overflow during the computation. A matrix that differs
        // by rounding errors has separate vectors.
        perturb(&mut wide, attempt);
    }
    for (w, value) in w.iter_mut().zip(values) {
        *w = c32::new((value.re / by) as f32, (value.im / by) as f32);
    }
    Ok(())
}

/// Adds pseudo-random numbers that are as small as rounding errors.
fn perturb<T: Wide>(a: &mut [T], attempt: i32) {
    let size = 1e-15 * 10f64.powi(2 * attempt);
    let mut state = 0x9E37_79B9_7F4A_7C15u64;
    for v in a {
        let [re, im] = v.parts();
        state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
        let random = (state >> 11) as f64 / (1u64 << 53) as f64 - 0.5;
        *v = T::of_parts([re + size * random, im]);
    }
}

/// Real and complex matrices use different functions, which return results in different forms.
pub trait General: Wide {
    /// Eigenvalues, and eigenvectors in faer's form.
    fn decompose(
        a: &[Self],
        n: usize,
        values: &mut [c64],
        vectors: Option<&mut [Self]>,
        work: &mut Work,
    ) -> Result<(), String>;

    /// The vectors of [`General::decompose`], normalised. Returns false if one of them is not finite.
    fn normalised(vectors: &[Self], values: &[c64], n: usize, v: &mut [c32]) -> bool;
}

type Vectors<'a, T> = Option<MatMut<'a, T>>;

fn outcome(result: Result<(), EvdError>) -> Result<(), String> {
    result.map_err(|_| NO_END.into())
}

/// Sizes of the sweeps for eigenvalues. For large matrices they are smaller than faer's defaults, which would spend
/// most of the time in windows.
fn sweeps<T: Wide>() -> Spec<EvdParams, T> {
    extern "C" fn shifts(n: usize, _: usize) -> usize {
        match n {
            ..30 => 2,
            30..60 => 4,
            60..590 => 12,
            590..1500 => 20,
            1500..3000 => 32,
            _ => 128,
        }
    }
    extern "C" fn window(n: usize, _: usize) -> usize {
        match n {
            ..30 => 2,
            30..60 => 4,
            60..150 => 10,
            150..590 => 18,
            590..1500 => 30,
            1500..3000 => 48,
            _ => 192,
        }
    }
    let mut params = <EvdParams as Auto<T>>::auto();
    params.schur.recommended_shift_count = shifts;
    params.schur.recommended_deflation_window = window;
    params.into()
}

fn stack<T: Wide>(n: usize, vectors: bool, work: &mut Work) -> Result<&mut MemStack, String> {
    let required =
        evd_scratch::<T>(n, ComputeEigenvectors::No, wanted(vectors), Par::Seq, sweeps());
    work.stack(required)
}

impl General for f64 {
    fn decompose(
        a: &[f64],
        n: usize,
        values: &mut [c64],
        vectors: Option<&mut [f64]>,
        work: &mut Work,
    ) -> Result<(), String> {
        let stack = stack::<f64>(n, vectors.is_some(), work)?;
        let mut parts = zeros::<f64>(2 * n)?;
        let (re, im) = parts.split_at_mut(n);
        let right: Vectors<'_, f64> = vectors.map(|v| matrix_mut(v, n, n));
        let (real, imaginary) = (DiagMut::from_slice_mut(re), DiagMut::from_slice_mut(im));
        let params = sweeps();
        outcome(evd_real(matrix(a, n, n), real, imaginary, None, right, Par::Seq, stack, params))?;
        for (i, value) in values[..n].iter_mut().enumerate() {
            *value = c64::new(re[i], im[i]);
        }
        Ok(())
    }

    /// For a conjugate pair, the first column is the real part of the first vector, and the second column is the
    /// imaginary part.
    fn normalised(vectors: &[f64], values: &[c64], n: usize, v: &mut [c32]) -> bool {
        let mut pair = vec![c64::default(); n];
        let mut i = 0;
        while i < n {
            let re = &vectors[i * n..][..n];
            let is_pair = values[i].im != 0.0 && i + 1 < n;
            let im = if is_pair { &vectors[(i + 1) * n..][..n] } else { &[] };
            for (j, pair) in pair.iter_mut().enumerate() {
                *pair = c64::new(re[j], im.get(j).copied().unwrap_or(0.0));
            }
            if !normalise(&pair, &mut v[i * n..][..n]) {
                return false;
            }
            i += 1;
            if is_pair {
                let (done, rest) = v.split_at_mut(i * n);
                for (conjugate, v) in rest.iter_mut().zip(&done[(i - 1) * n..]) {
                    *conjugate = v.conj();
                }
                i += 1;
            }
        }
        true
    }
}

impl General for c64 {
    fn decompose(
        a: &[c64],
        n: usize,
        values: &mut [c64],
        vectors: Option<&mut [c64]>,
        work: &mut Work,
    ) -> Result<(), String> {
        let stack = stack::<c64>(n, vectors.is_some(), work)?;
        let right: Vectors<'_, c64> = vectors.map(|v| matrix_mut(v, n, n));
        let diagonal = DiagMut::from_slice_mut(values);
        outcome(evd_cplx(matrix(a, n, n), diagonal, None, right, Par::Seq, stack, sweeps()))
    }

    fn normalised(vectors: &[c64], _: &[c64], n: usize, v: &mut [c32]) -> bool {
        vectors.chunks_exact(n).zip(v.chunks_exact_mut(n)).all(|(from, to)| normalise(from, to))
    }
}

/// Scales a vector to norm 1, with a real largest element.
fn normalise(from: &[c64], to: &mut [c32]) -> bool {
    let mut largest = c64::default();
    let mut most = 0.0;
    for v in from {
        let size = v.norm();
        if !size.is_finite() {
            return false;
        }
        if size > most {
            (most, largest) = (size, *v);
        }
    }
    if most == 0.0 {
        return false;
    }
    let norm = from.iter().map(|v| (v / most).norm_sqr()).sum::<f64>().sqrt();
    let rotation = (largest / most).conj() / (largest / most).norm();
    for (to, v) in to.iter_mut().zip(from) {
        let v = v / most / norm;
        // A real vector keeps its sign.
        let v = if largest.im == 0.0 { v } else { v * rotation };
        *to = c32::new(v.re as f32, v.im as f32);
    }
    true
}
