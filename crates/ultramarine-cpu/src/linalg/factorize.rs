//! The factorisation of one matrix of a batch, or its triangular solve.

use super::blocked::{self, Blocked};
use super::matrix::{Plane, Scratch, resized};
use super::{Operation, TENSORS};
use crate::kernel::Context;
use ultramarine_linalg::SingularVectors;

/// A factorisation of one matrix.
pub struct Factorization<'a> {
    pub operation: Operation,
    pub upper: bool,
    pub full: bool,
    /// Operands, then results.
    pub planes: &'a [Plane; TENSORS],
}

impl Factorization<'_> {
    /// Factorises the matrix and stores the results.
    ///
    /// # Safety
    /// The planes are valid, of the factorisation's shapes, and of the dtypes that belong to `T`.
    pub unsafe fn run<T: blocked::Element>(
        &self,
        cx: &Context,
        scratch: &mut Scratch<T>,
    ) -> Result<(), String> {
        let [plane, first, second, third] = self.planes;
        let (m, n) = (plane.m, plane.n);
        if blocked::serves::<T>(self.operation, m, n, first.n)
            && let Some(blocked) = Blocked::<T>::new(cx)
        {
            // SAFETY: by this function's contract.
            return unsafe { self.run_blocked(blocked, scratch) };
        }
        let Scratch { a, left, right, reals, complex, vectors, indices, work } = scratch;
        let a = resized(a, m * n)?;
        // An upper triangle is read as the lower one of the adjoint, which has the same factors and eigenvectors.
        let flipped = self.upper
            && matches!(
                self.operation,
                Operation::Cholesky | Operation::Eigh | Operation::EigvalsH
            );
        // SAFETY: by this function's contract, here and in all that follows.
        unsafe { if flipped { plane.transposed().load(a) } else { plane.load(a) } };
        if flipped {
            a.iter_mut().for_each(|v| *v = v.conjugate());
        }
        match self.operation {
            Operation::Cholesky => {
                let fine = T::cholesky(a, n, work)?;
                let to = if self.upper { first.transposed() } else { *first };
                let factor = |i: usize, j: usize| match (i >= j, fine) {
                    (false, _) => T::default(),
                    (true, false) => {
                        T::of_parts([f64::NAN, if T::IS_COMPLEX { f64::NAN } else { 0.0 }])
                    }
                    (true, true) if self.upper => a[i + j * n].conjugate(),
                    (true, true) => a[i + j * n],
                };
                // SAFETY: as above.
                unsafe { to.store(factor) };
            }
            Operation::Lu => {
                let [pivots, rows] = indices;
                let (pivots, rows) = (resized(pivots, m.min(n))?, resized(rows, m)?);
                T::lu(a, m, n, pivots, rows)?;
                // SAFETY: as above.
                unsafe {
                    first.store(|i, j| a[i + j * m]);
                    second.store(|i, _| pivots[i]);
                    third.store(|i, _| rows[i]);
                }
            }
            Operation::Qr => {
                let q = resized(left, m * m.min(n))?;
                T::qr(a, m, n, q)?;
                // SAFETY: as above.
                unsafe {
                    first.store(|i, j| q[i + j * m]);
                    second.store(|i, j| a[i + j * m]);
                }
            }
            Operation::Svd => {
                let s = resized(reals, m.min(n))?;
                let (u, v) = (resized(left, m * first.n)?, resized(right, n * third.m)?);
                let wanted = SingularVectors { u, v, full: self.full };
                T::svd(a, m, n, s, Some(wanted), work)?;
                let (u, v) = (&left[..], &right[..]);
                // SAFETY: as above.
                unsafe {
                    first.store(|i, j| u[i + j * m]);
                    second.store(|i, _| s[i]);
                    third.store(|i, j| v[j + i * n].conjugate());
                }
            }
            Operation::SingularValues => {
                let s = resized(reals, m.min(n))?;
                T::svd(a, m, n, s, None, work)?;
                // SAFETY: as above.
                unsafe { first.store(|i, _| s[i]) };
            }
            Operation::Eigh | Operation::EigvalsH => {
                let w = resized(reals, n)?;
                let with = self.operation == Operation::Eigh;
                let v = resized(left, if with { n * n } else { 0 })?;
                T::eigh(a, n, w, with.then_some(v), work)?;
                let v = &left[..];
                // SAFETY: as above; without vectors there is no second result.
                unsafe {
                    first.store(|i, _| w[i]);
                    if with {
                        second.store(|i, j| v[i + j * n]);
                    }
                }
            }
            Operation::Eig | Operation::Eigvals => {
                let w = resized(complex, n)?;
                let with = self.operation == Operation::Eig;
                let v = resized(vectors, if with { n * n } else { 0 })?;
                T::eig(a, n, w, with.then_some(v), work)?;
                let v = &vectors[..];
                // SAFETY: as above.
                unsafe {
                    first.store(|i, _| w[i]);
                    if with {
                        second.store(|i, j| v[i + j * n]);
                    }
                }
            }
            Operation::Solve => {
                let k = first.n;
                let b = resized(left, n * k)?;
                // SAFETY: as above.
                unsafe { first.load(b) };
                T::solve_triangular(a, n, self.upper, b, k)?;
                // SAFETY: as above.
                unsafe { second.store(|i, j| b[i + j * n]) };
            }
        }
        Ok(())
    }

    /// Factorises a large matrix.
    ///
    /// # Safety
    /// As [`Factorization::run`].
    unsafe fn run_blocked<T: blocked::Element>(
        &self,
        blocked: Blocked<'_, T>,
        scratch: &mut Scratch<T>,
    ) -> Result<(), String> {
        let [plane, first, second, third] = *self.planes;
        // SAFETY: by this function's contract.
        unsafe {
            match self.operation {
                Operation::Cholesky => blocked.cholesky(first, plane, self.upper),
                Operation::Lu => {
                    let [pivots, rows] = &mut scratch.indices;
                    let pivots = resized(pivots, second.m)?;
                    let rows = resized(rows, third.m)?;
                    blocked.lu(first, plane, pivots, rows)?;
                    second.store(|i, _| pivots[i]);
                    third.store(|i, _| rows[i]);
                }
                Operation::Qr => blocked.qr(first, second, plane),
                Operation::Solve => blocked.solve(plane, self.upper, second, first)?,
                Operation::Eigh => blocked.eigh(first, Some(second), plane, self.upper)?,
                Operation::Svd => blocked.svd(first, second, third, plane)?,
                Operation::SingularValues => blocked.singular_values(first, plane)?,
                Operation::EigvalsH => blocked.eigh(first, None, plane, self.upper)?,
                _ => return Err("a decomposition without a blocked algorithm".into()),
            }
        }
        Ok(())
    }
}
