//! Matrix decompositions and triangular systems, by cuSOLVER and cuBLAS. Both use column-major matrices, so a row-major copy
//! is the transpose to them. The transpose serves as well if a matrix is Hermitian or triangular, or is factored into singular
//! vectors.
//!
//! If a factorisation does not exist (the matrix is not positive definite, or there is no convergence), the result is
//! NaN. Singular systems are errors, as on the CPU, and so are infinite or NaN elements if an iteration would not end.
//! The host waits for the status word to detect them.

mod calls;
mod eig;
mod kernels;
mod layout;
mod small_qr;
mod solvers;

use crate::launch::{Desc, Dtype, Job, OpRequest, View, Work, row_major};
use kernels::{Around, Flaw, Keep, Made};
use layout::{Parts, Sizes};
use small_qr::SmallQr;
use solvers::Solvers;
use std::collections::HashMap;
use std::sync::Mutex;
use ultramarine_abi::helper::{Failure, Result};
use ultramarine_abi::schema::{OpId, TriangleAttrs, op};

/// A decomposition, or a triangular solve.
struct Decomposition {
    op: OpId,
    upper: bool,
    dtype: Dtype,
    copy: Box<dyn Work>,
    around: Around,
    small_qr: SmallQr,
    /// Elements of the library's workspace, by the sizes of the command.
    own: Mutex<HashMap<Sizes, i64>>,
}

/// Makes the work of an operation of the family.
pub fn prepare(request: &OpRequest<'_>) -> Result<Box<dyn Work>> {
    let dtype = request.input(0)?.dtype;
    let upper = match request.op {
        op::CHOLESKY | op::EIGH | op::EIGVALSH | op::SOLVE_TRIANGULAR => {
            request.attributes::<TriangleAttrs>()?.upper != 0
        }
        op::LU | op::QR | op::SVD | op::SINGULAR_VALUES => false,
        op::EIG | op::EIGVALS => return eig::prepare(request),
        _ => return Err(super::unknown(request)),
    };
    if !matches!(dtype, Dtype::Float32 | Dtype::Float64 | Dtype::Complex64) {
        return Err(Failure::unsupported(format!("a decomposition of {}", dtype.name())));
    }
    let real = if dtype.is_complex() { Dtype::Float32 } else { dtype };
    let expected: &[Dtype] = match request.op {
        op::LU => &[dtype, Dtype::Uint32, Dtype::Uint32],
        op::QR => &[dtype, dtype],
        op::SVD => &[dtype, real, dtype],
        op::EIGH => &[real, dtype],
        op::SINGULAR_VALUES | op::EIGVALSH => &[real],
        _ => &[dtype],
    };
    let inputs = if request.op == op::SOLVE_TRIANGULAR { 2 } else { 1 };
    let given: Vec<Dtype> = request.outputs.iter().map(|d| d.dtype).collect();
    if given != expected
        || request.inputs.len() != inputs
        || request.inputs.iter().any(|d| d.dtype != dtype || d.ndim < 2)
    {
        return Err(Failure::invalid("a decomposition with operands or results of other dtypes"));
    }
    if request.outputs.iter().any(|d| !d.contiguous) {
        return Err(Failure::unsupported("a decomposition whose results are not contiguous"));
    }
    // The libraries are opened here, not while a command is enqueued.
    if Solvers::of(request.device).is_none() {
        return Err(Failure::unsupported(
            "decompositions need cuSOLVER and cuBLAS, which were not found",
        ));
    }
    let any = Desc { contiguous: false, ..request.input(0)? };
    let copy = crate::ops::prepare(&request.part(op::COPY, vec![any], vec![any]))?;
    let (around, small_qr, own) = Default::default();
    let op = request.op;
    Ok(Box::new(Decomposition { op, upper, dtype, copy, around, small_qr, own }))
}

/// Copies matrices to an address, row by row or column by column.
fn load(copy: &dyn Work, job: &Job<'_>, from: &View<'_>, (to, by_rows): (u64, bool)) -> Result<()> {
    let mut strides = row_major(from.shape);
    if let [.., m, _] = *from.shape
        && let [.., row, col] = &mut strides[..]
        && !by_rows
    {
        (*row, *col) = (1, m);
    }
    let to = View { address: to, strides: &strides, ..*from };
    copy.run(&job.part(*from, to, 0))
}

impl Decomposition {
    fn solvers<'a>(&self, job: &Job<'a>) -> Result<&'a Solvers> {
        Solvers::of(job.device).ok_or_else(|| Failure::new("cuSOLVER is not there any more"))
    }

    /// The parts of the workspace. The device's context is current.
    fn parts(&self, job: &Job<'_>, sizes: &Sizes) -> Result<(Parts, i64)> {
        let known = crate::context::lock(&self.own).get(sizes).copied();
        let own = match known {
            Some(own) => own,
            None => {
                let own = self.elements(job, sizes)?;
                let mut kept = crate::context::lock(&self.own);
                if kept.len() >= 256 {
                    kept.clear();
                }
                kept.insert(*sizes, own);
                own
            }
        };
        Ok((Parts::of(self.op, self.dtype, sizes, own), own))
    }

    fn is_small_qr(&self, sizes: &Sizes) -> bool {
        self.op == op::QR && SmallQr::fits(self.dtype, sizes)
    }

    /// Copies matrices, like the function of this name.
    fn load(&self, job: &Job<'_>, from: &View<'_>, to: u64, by_rows: bool) -> Result<()> {
        load(&*self.copy, job, from, (to, by_rows))
    }
}

impl Work for Decomposition {
    fn has_workspace(&self) -> bool {
        true
    }

    fn workspace(&self, job: &Job<'_>) -> Result<u64> {
        let _entered = job.device.enter()?;
        let sizes = Sizes::of(self.op, &job.inputs, &job.outputs)?;
        if self.is_small_qr(&sizes) {
            return Ok(0);
        }
        Ok(self.parts(job, &sizes)?.0.total)
    }

    fn run(&self, job: &Job<'_>) -> Result<()> {
        let sizes = Sizes::of(self.op, &job.inputs, &job.outputs)?;
        if self.is_small_qr(&sizes) {
            let to = [job.output(0)?.address, job.output(1)?.address];
            return self.small_qr.run(job, &sizes, job.input(0)?, to);
        }
        if job.graph.is_some() {
            // Some library calls wait for their own results, which a capture does not allow.
            return Err(Failure::unsupported("decompositions are not recorded"));
        }
        let (parts, own) = self.parts(job, &sizes)?;
        let scratch = job.scratch()?;
        let at = |part: u64| scratch + part;
        let Sizes { count, m, n, left, right } = sizes;
        let (a, info, k) = (job.input(0)?, at(parts.info), sizes.k());
        let out = |i: usize| job.output(i).map(|v| v.address);
        let store = |i: usize, dtype: Dtype, made: Made| {
            self.around.store(job, dtype, made, (out(i)?, info, count))
        };
        let real = if self.dtype.is_complex() { Dtype::Float32 } else { self.dtype };
        let call = calls::Calls { job, sizes, parts, own, dtype: self.dtype, upper: self.upper };
        let solvers = self.solvers(job)?;
        let batched = sizes.at_once(self.op);
        let address = |which: usize, first: u64, elements: i64| {
            let step = elements as u64 * self.dtype.bytes();
            self.around.addresses(job, at(parts.addresses[which]), first, step, count)
        };
        let triangle = if self.upper { Keep::Upper } else { Keep::Lower };
        let refuse = |flaw: Flaw| {
            self.around.refuse(job, (self.dtype, flaw), (at(parts.a), info), [count, m, n])
        };
        match self.op {
            op::CHOLESKY => {
                // The library is faster with lower triangles. An upper triangle in row-major order is the lower
                // triangle of the transpose.
                let to = if self.upper { out(0)? } else { at(parts.a) };
                self.load(job, a, to, self.upper)?;
                if batched {
                    address(0, to, n * n)?;
                }
                call.cholesky(solvers, to)?;
                store(
                    0,
                    self.dtype,
                    match self.upper {
                        true => Made { keep: Keep::Upper, ..Made::rows(to, [n, n], n, n * n) },
                        false => Made { keep: Keep::Lower, ..Made::columns(to, [n, n], n, n * n) },
                    },
                )
            }
            op::LU => {
                self.load(job, a, at(parts.a), false)?;
                if batched {
                    address(0, at(parts.a), m * n)?;
                }
                // Zeros on the diagonal are not failures, so the library's status word is ignored. NaN is detected
                // instead; its flags are kept in the memory of the pivots until these are written.
                let notes = out(1)?;
                // SAFETY: there is at least one pivot for each matrix.
                unsafe { job.fill(notes, 0, 4, count as usize) }?;
                self.around.note_nan(job, self.dtype, (at(parts.a), notes), [count, m * n])?;
                call.lu(solvers)?;
                let factors = Made::columns(at(parts.a), [m, n], m, m * n);
                self.around.store(job, self.dtype, factors, (out(0)?, notes, count))?;
                self.around.rows(job, at(parts.pivots), [out(1)?, out(2)?], [count, k, m])
            }
            op::QR => {
                self.load(job, a, at(parts.a), false)?;
                call.reflections(solvers)?;
                let upper = Made::columns(at(parts.a), [k, n], m, m * n);
                store(1, self.dtype, Made { keep: Keep::Upper, ..upper })?;
                call.orthonormal(solvers)?;
                store(0, self.dtype, Made::columns(at(parts.a), [m, k], m, m * n))
            }
            op::SVD | op::SINGULAR_VALUES => {
                self.load(job, a, at(parts.a), true)?;
                let with = self.op == op::SVD;
                refuse(Flaw::NotFinite(Keep::Whole))?;
                call.svd(solvers)?;
                let values = Made::rows(at(parts.values), [1, k], k, k);
                store(if with { 1 } else { 0 }, real, values)?;
                if with {
                    // The matrix was transposed, so its left singular vectors are the rows of vt, and its
                    // right ones are the conjugates of u's.
                    let (columns, rows) = if batched { (n, m) } else { (right, left) };
                    let vt = Made::rows(at(parts.vectors[0]), [right, n], n, n * columns);
                    store(2, self.dtype, vt)?;
                    let u = Made::columns(at(parts.vectors[1]), [m, left], m, m * rows);
                    store(0, self.dtype, Made { conjugate: true, ..u })?;
                }
                Ok(())
            }
            op::EIGH | op::EIGVALSH => {
                self.load(job, a, at(parts.a), true)?;
                let with = self.op == op::EIGH;
                refuse(Flaw::NotFinite(triangle))?;
                call.eigh(solvers, with)?;
                store(0, real, Made::rows(at(parts.values), [1, n], n, n))?;
                if with {
                    // The matrix was transposed, which conjugates a Hermitian matrix.
                    let v = Made::columns(at(parts.a), [n, n], n, n * n);
                    store(1, self.dtype, Made { conjugate: true, ..v })?;
                }
                Ok(())
            }
            _ => {
                let to = out(0)?;
                self.load(job, a, at(parts.a), true)?;
                refuse(Flaw::Singular)?;
                self.load(job, job.input(1)?, to, true)?;
                if batched {
                    address(0, at(parts.a), n * n)?;
                    address(1, to, n * left)?;
                }
                call.triangular(solvers, to)
            }
        }
    }
}
