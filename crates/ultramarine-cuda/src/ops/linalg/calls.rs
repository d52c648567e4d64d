//! The libraries' calls.

use super::Decomposition;
use super::layout::{Parts, Sizes};
use super::solvers::{Solvers, check, locked};
use crate::launch::{Dtype, Job};
use crate::sys::cublas::{LOWER, RIGHT, UPPER};
use core::ffi::{c_int, c_void};
use ultramarine_abi::helper::Result;
use ultramarine_abi::schema::op;

/// The common parts of a command's library calls. They read and write only the workspace that was laid out for them, and
/// results that are as long as their matrices.
pub struct Calls<'a, 'j> {
    pub job: &'a Job<'j>,
    pub sizes: Sizes,
    pub parts: Parts,
    /// Elements of the library's own workspace.
    pub own: i64,
    pub dtype: Dtype,
    pub upper: bool,
}

pub(super) fn pointer(address: u64) -> *mut c_void {
    address as usize as *mut c_void
}

/// The triangle in the transpose.
fn flipped(upper: bool) -> c_int {
    if upper { LOWER } else { UPPER }
}

impl Decomposition {
    /// Elements of workspace that the library requires.
    pub fn elements(&self, job: &Job<'_>, sizes: &Sizes) -> Result<i64> {
        let solvers = self.solvers(job)?;
        let (table, _) = solvers.routines(self.dtype);
        let handles = solvers.handles(job)?;
        let handles = locked(&handles);
        let (solver, none) = (handles.solver, std::ptr::null_mut());
        let [m, n, k] = [sizes.m, sizes.n, sizes.k()].map(|n| n as c_int);
        let count = sizes.count as c_int;
        let (batched, uplo) = (sizes.at_once(self.op), flipped(self.upper));
        let with = c_int::from(self.op != op::EIGVALSH);
        let econ = c_int::from(sizes.left + sizes.right == 2 * sizes.k());
        let (mut most, mut size) = (0, 0);
        // SAFETY: only the sizes are used; the output pointers are valid.
        unsafe {
            match self.op {
                op::CHOLESKY if !batched => {
                    let code = (table.potrf_size)(solver, LOWER, n, none, n, &mut size);
                    check("cusolverDnpotrf_bufferSize", code)?;
                }
                op::LU if !batched => {
                    let code = (table.getrf_size)(solver, m, n, none, m, &mut size);
                    check("cusolverDngetrf_bufferSize", code)?;
                }
                op::QR => {
                    let code = (table.geqrf_size)(solver, m, n, none, m, &mut most);
                    check("cusolverDngeqrf_bufferSize", code)?;
                    let code = (table.orgqr_size)(solver, m, k, k, none, m, none, &mut size);
                    check("cusolverDnorgqr_bufferSize", code)?;
                }
                // Sizes of the transpose, (n, m).
                op::SVD | op::SINGULAR_VALUES if batched => {
                    let code = (table.gesvdj_batched_size)(
                        solver,
                        with,
                        n,
                        m,
                        none,
                        n,
                        none,
                        none,
                        n,
                        none,
                        m,
                        &mut size,
                        handles.svd,
                        count,
                    );
                    check("cusolverDngesvdjBatched_bufferSize", code)?;
                }
                op::SVD | op::SINGULAR_VALUES => {
                    let code = (table.gesvdj_size)(
                        solver,
                        with,
                        econ,
                        n,
                        m,
                        none,
                        n,
                        none,
                        none,
                        n,
                        none,
                        m,
                        &mut size,
                        handles.svd,
                    );
                    check("cusolverDngesvdj_bufferSize", code)?;
                }
                op::EIGH | op::EIGVALSH if batched => {
                    let code = (table.syevj_batched_size)(
                        solver,
                        with,
                        uplo,
                        n,
                        none,
                        n,
                        none,
                        &mut size,
                        handles.eigh,
                        count,
                    );
                    check("cusolverDnsyevjBatched_bufferSize", code)?;
                }
                op::EIGH | op::EIGVALSH => {
                    let code = (table.syevd_size)(solver, with, uplo, n, none, n, none, &mut size);
                    check("cusolverDnsyevd_bufferSize", code)?;
                }
                _ => {}
            }
        }
        Ok(i64::from(most.max(size)))
    }
}

impl Calls<'_, '_> {
    fn at(&self, part: u64) -> u64 {
        self.job.workspace + part
    }

    /// The address of matrix `i`, where each matrix has `elements` elements.
    fn of(&self, first: u64, elements: i64, i: i64) -> *mut c_void {
        pointer(first + (elements * i) as u64 * self.dtype.bytes())
    }

    fn info(&self, i: i64) -> *mut c_void {
        pointer(self.at(self.parts.info) + 4 * i as u64)
    }

    fn own(&self) -> *mut c_void {
        pointer(self.at(self.parts.own))
    }

    /// Reports the fault of an earlier kernel, if there is one, because it explains the failure
    /// better.
    fn told(&self, result: Result<()>) -> Result<()> {
        result.map_err(|own| self.job.fault().unwrap_or(own))
    }

    /// Computes the factors, and overwrites the matrices at an address with them.
    pub fn cholesky(&self, solvers: &Solvers, to: u64) -> Result<()> {
        let (table, _) = solvers.routines(self.dtype);
        let handles = solvers.handles(self.job)?;
        let handles = locked(&handles);
        let (uplo, n) = (LOWER, self.sizes.n as c_int);
        let run = || {
            if self.sizes.at_once(op::CHOLESKY) {
                let all = pointer(self.at(self.parts.addresses[0]));
                let count = self.sizes.count as c_int;
                // SAFETY: guaranteed by the type's invariants, here and in all functions below.
                let code = unsafe {
                    (table.potrf_batched)(handles.solver, uplo, n, all, n, self.info(0), count)
                };
                return check("cusolverDnpotrfBatched", code);
            }
            for i in 0..self.sizes.count {
                let a = self.of(to, self.sizes.n * self.sizes.n, i);
                let own = self.own as c_int;
                // SAFETY: as above.
                let code = unsafe {
                    (table.potrf)(handles.solver, uplo, n, a, n, self.own(), own, self.info(i))
                };
                check("cusolverDnpotrf", code)?;
            }
            Ok(())
        };
        self.told(run())
    }

    /// Computes the factors and the pivots.
    pub fn lu(&self, solvers: &Solvers) -> Result<()> {
        let (table, blas) = solvers.routines(self.dtype);
        let handles = solvers.handles(self.job)?;
        let handles = locked(&handles);
        let [m, n] = [self.sizes.m, self.sizes.n].map(|n| n as c_int);
        let pivots = |i: i64| pointer(self.at(self.parts.pivots) + 4 * (i * self.sizes.k()) as u64);
        let run = || {
            if self.sizes.at_once(op::LU) {
                let all = pointer(self.at(self.parts.addresses[0]));
                let count = self.sizes.count as c_int;
                // SAFETY: as above.
                let code = unsafe {
                    (blas.getrf_batched)(handles.blas, n, all, n, pivots(0), self.info(0), count)
                };
                return check("cublasgetrfBatched", code);
            }
            for i in 0..self.sizes.count {
                let a = self.of(self.at(self.parts.a), self.sizes.m * self.sizes.n, i);
                // SAFETY: as above.
                let code = unsafe {
                    (table.getrf)(handles.solver, m, n, a, m, self.own(), pivots(i), self.info(i))
                };
                check("cusolverDngetrf", code)?;
            }
            Ok(())
        };
        self.told(run())
    }

    /// Computes R above the diagonal, and the reflections that make up Q.
    pub fn reflections(&self, solvers: &Solvers) -> Result<()> {
        let (table, _) = solvers.routines(self.dtype);
        let handles = solvers.handles(self.job)?;
        let handles = locked(&handles);
        let [m, n] = [self.sizes.m, self.sizes.n].map(|n| n as c_int);
        let run = |i: i64| {
            let a = self.of(self.at(self.parts.a), self.sizes.m * self.sizes.n, i);
            let tau = self.of(self.at(self.parts.pivots), self.sizes.k(), i);
            let own = self.own as c_int;
            // SAFETY: as above.
            let code = unsafe {
                (table.geqrf)(handles.solver, m, n, a, m, tau, self.own(), own, self.info(i))
            };
            check("cusolverDngeqrf", code)
        };
        self.told((0..self.sizes.count).try_for_each(run))
    }

    /// Computes Q, and overwrites the reflections with it.
    pub fn orthonormal(&self, solvers: &Solvers) -> Result<()> {
        let (table, _) = solvers.routines(self.dtype);
        let handles = solvers.handles(self.job)?;
        let handles = locked(&handles);
        let [m, k] = [self.sizes.m, self.sizes.k()].map(|n| n as c_int);
        let run = |i: i64| {
            let a = self.of(self.at(self.parts.a), self.sizes.m * self.sizes.n, i);
            let tau = self.of(self.at(self.parts.pivots), self.sizes.k(), i);
            let own = self.own as c_int;
            // SAFETY: as above.
            let code = unsafe {
                (table.orgqr)(handles.solver, m, k, k, a, m, tau, self.own(), own, self.info(i))
            };
            check("cusolverDnorgqr", code)
        };
        self.told((0..self.sizes.count).try_for_each(run))
    }

    /// Computes the singular values and vectors of the transposes. Values alone would take as long, and cuSOLVER
    /// overwrites the memory of the vectors in either case.
    pub fn svd(&self, solvers: &Solvers) -> Result<()> {
        let (table, _) = solvers.routines(self.dtype);
        let handles = solvers.handles(self.job)?;
        let handles = locked(&handles);
        let Sizes { count, m, n, left, right } = self.sizes;
        let econ = c_int::from(left + right == 2 * self.sizes.k());
        let (with, k, own) = (1, self.sizes.k(), self.own as c_int);
        let [rows, columns] = [n, m].map(|n| n as c_int);
        let real = if self.dtype.is_complex() { 4 } else { self.dtype.bytes() };
        let values = |i: i64| pointer(self.at(self.parts.values) + (i * k) as u64 * real);
        let [vt, u] = self.parts.vectors.map(|part| self.at(part));
        let a = |i: i64| self.of(self.at(self.parts.a), m * n, i);
        let run = || {
            if self.sizes.at_once(op::SVD) {
                // SAFETY: as above.
                let code = unsafe {
                    (table.gesvdj_batched)(
                        handles.solver,
                        with,
                        rows,
                        columns,
                        a(0),
                        rows,
                        values(0),
                        pointer(vt),
                        rows,
                        pointer(u),
                        columns,
                        self.own(),
                        own,
                        self.info(0),
                        handles.svd,
                        count as c_int,
                    )
                };
                return check("cusolverDngesvdjBatched", code);
            }
            for i in 0..count {
                let (vt, u) = (self.of(vt, n * right, i), self.of(u, m * left, i));
                // SAFETY: as above.
                let code = unsafe {
                    (table.gesvdj)(
                        handles.solver,
                        with,
                        econ,
                        rows,
                        columns,
                        a(i),
                        rows,
                        values(i),
                        vt,
                        rows,
                        u,
                        columns,
                        self.own(),
                        own,
                        self.info(i),
                        handles.svd,
                    )
                };
                check("cusolverDngesvdj", code)?;
            }
            Ok(())
        };
        self.told(run())
    }

    /// Computes the eigenvalues of the transposes and, over the matrices, their eigenvectors.
    pub fn eigh(&self, solvers: &Solvers, with: bool) -> Result<()> {
        let (table, _) = solvers.routines(self.dtype);
        let handles = solvers.handles(self.job)?;
        let handles = locked(&handles);
        let (n, size) = (self.sizes.n, self.sizes.n as c_int);
        let (with, uplo, own) = (c_int::from(with), flipped(self.upper), self.own as c_int);
        let real = if self.dtype.is_complex() { 4 } else { self.dtype.bytes() };
        let values = |i: i64| pointer(self.at(self.parts.values) + (i * n) as u64 * real);
        let a = |i: i64| self.of(self.at(self.parts.a), n * n, i);
        let run = || {
            if self.sizes.at_once(op::EIGH) {
                let count = self.sizes.count as c_int;
                // SAFETY: as above.
                let code = unsafe {
                    (table.syevj_batched)(
                        handles.solver,
                        with,
                        uplo,
                        size,
                        a(0),
                        size,
                        values(0),
                        self.own(),
                        own,
                        self.info(0),
                        handles.eigh,
                        count,
                    )
                };
                return check("cusolverDnsyevjBatched", code);
            }
            for i in 0..self.sizes.count {
                // SAFETY: as above.
                let code = unsafe {
                    (table.syevd)(
                        handles.solver,
                        with,
                        uplo,
                        size,
                        a(i),
                        size,
                        values(i),
                        self.own(),
                        own,
                        self.info(i),
                    )
                };
                check("cusolverDnsyevd", code)?;
            }
            Ok(())
        };
        self.told(run())
    }

    /// Computes solutions, and overwrites the right-hand sides at an address with them. It solves
    /// the transposed system, `x^T a^T = b^T`.
    pub fn triangular(&self, solvers: &Solvers, to: u64) -> Result<()> {
        let (_, blas) = solvers.routines(self.dtype);
        let handles = solvers.handles(self.job)?;
        let handles = locked(&handles);
        let (uplo, [n, k]) =
            (flipped(self.upper), [self.sizes.n, self.sizes.left].map(|n| n as c_int));
        // The number 1 in the dtype, in host memory.
        let one: [u64; 2] = match self.dtype {
            Dtype::Float64 => [1f64.to_bits(), 0],
            _ => [u64::from(1f32.to_bits()), 0],
        };
        let one = (&raw const one).cast_mut().cast::<c_void>();
        let run = || {
            if self.sizes.at_once(op::SOLVE_TRIANGULAR) {
                let [a, b] = self.parts.addresses.map(|part| pointer(self.at(part)));
                let count = self.sizes.count as c_int;
                // SAFETY: as above.
                let code = unsafe {
                    (blas.trsm_batched)(
                        handles.blas,
                        RIGHT,
                        uplo,
                        0,
                        0,
                        k,
                        n,
                        one,
                        a,
                        n,
                        b,
                        k,
                        count,
                    )
                };
                return check("cublastrsmBatched", code);
            }
            for i in 0..self.sizes.count {
                let a = self.of(self.at(self.parts.a), self.sizes.n * self.sizes.n, i);
                let b = self.of(to, self.sizes.n * self.sizes.left, i);
                // SAFETY: as above.
                let code =
                    unsafe { (blas.trsm)(handles.blas, RIGHT, uplo, 0, 0, k, n, one, a, n, b, k) };
                check("cublastrsm", code)?;
            }
            Ok(())
        };
        self.told(run())
    }
}
