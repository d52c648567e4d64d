//! MATMUL: by cuBLASLt if it is available and suitable, otherwise by this crate's kernels. Products whose items select
//! their matrices are in `grouped`.

mod gather;
pub mod gemm;
pub mod grouped;
pub mod kernels;
pub mod library;
pub mod product;
mod segmented;
#[cfg(test)]
mod simulation;

use crate::launch::{Dtype, Job, Kind, OpRequest, Work};
use gemm::Gemm;
use kernels::{Addresses, Vector};
use library::{Library, Products, Steps};
use product::Product;
use ultramarine_abi::helper::{Failure, Result};
use ultramarine_abi::precision;
use ultramarine_abi::schema::{PrecisionAttrs, op};

/// Length of sums for which a block of threads is too few, unless there are at least `MANY`
/// results.
const LONG: i64 = 1 << 16;
/// Number of results from which a block per result is enough, even for long sums.
const MANY: u64 = 128;

/// A product of matrices.
struct Matmul {
    dtype: Dtype,
    kernels: kernels::Products,
    library: Option<Products>,
}

/// Makes the work of an operation of the family.
pub fn prepare(request: &OpRequest<'_>) -> Result<Box<dyn Work>> {
    match request.op {
        op::MATMUL => prepare_matmul(request),
        op::GATHER_MATMUL => gather::prepare(request),
        op::SEGMENTED_MATMUL => segmented::prepare(request),
        _ => Err(super::unknown(request)),
    }
}

/// MATMUL.
fn prepare_matmul(request: &OpRequest<'_>) -> Result<Box<dyn Work>> {
    let (a, b, out) = (request.input(0)?, request.input(1)?, request.output(0)?);
    if a.ndim < 2 || b.ndim != a.ndim || out.ndim != a.ndim || request.inputs.len() != 2 {
        return Err(Failure::invalid(format!(
            "a product of matrices of ranks {} and {} into {}: expected one rank of at least 2",
            a.ndim, b.ndim, out.ndim
        )));
    }
    if a.dtype != b.dtype || a.dtype != out.dtype {
        return Err(Failure::invalid("a product of matrices has one dtype"));
    }
    if a.dtype == Dtype::Bool {
        return Err(Failure::unsupported("bool has no products of matrices"));
    }
    let PrecisionAttrs { precision, .. } = request.attributes()?;
    check_precision(precision)?;
    // The library is opened here, not while a command is enqueued.
    let library =
        Products::new(a.dtype, precision).filter(|_| Library::of(request.device).is_some());
    Ok(Box::new(Matmul { dtype: a.dtype, kernels: kernels::Products::new(a.dtype), library }))
}

/// Refuses unknown precisions.
pub fn check_precision(code: u32) -> Result<()> {
    match precision::is_known(code) {
        true => Ok(()),
        false => Err(Failure::unsupported(format!("products of precision {code}"))),
    }
}

impl Matmul {
    fn product(&self, job: &Job<'_>) -> Result<(Product, Addresses)> {
        let (a, b, out) = (job.input(0)?, job.input(1)?, job.output(0)?);
        Ok((Product::of(a, b, out)?, [a.address, b.address, out.address]))
    }

    /// The library's steps for a product; `None` if this crate's kernels compute it.
    fn steps(&self, job: &Job<'_>, product: &Product, at: Addresses) -> Option<Steps> {
        let library = self.library.as_ref()?;
        let bytes = self.dtype.bytes();
        // This crate's kernel reads a matrix and a vector at the full speed of memory if they are
        // contiguous along k and there are many results.
        let flipped = [at[1], at[0], at[2]];
        let by_rows = |p: &Product, at| {
            let many = p.k < LONG || p.m as u64 * p.batch.len() >= MANY;
            many && matches!(kernels::how(p, bytes, at), Vector::Rows { .. })
        };
        if (product.n == 1 && by_rows(product, at))
            || (product.m == 1 && by_rows(&product.transposed(), flipped))
        {
            return None;
        }
        library.steps(job.device, Gemm::of(product, bytes)?, at)
    }
}

impl Work for Matmul {
    fn has_workspace(&self) -> bool {
        true
    }

    fn workspace(&self, job: &Job<'_>) -> Result<u64> {
        if self.library.is_none() {
            return Ok(0);
        }
        let _entered = job.device.enter()?;
        let (product, at) = self.product(job)?;
        Ok(self.steps(job, &product, at).map_or(0, |steps| steps.workspace()))
    }

    fn run(&self, job: &Job<'_>) -> Result<()> {
        let (product, at) = self.product(job)?;
        if let (Some(library), Some(steps)) = (&self.library, self.steps(job, &product, at))
            && library.run(job, &steps, at, 0)?
        {
            return Ok(());
        }
        self.kernels.run(job, &product, at, early(job))
    }

    /// Products with vectors by this crate's kernels may run together.
    fn kind(&self, job: &Job<'_>) -> Option<Kind> {
        let (product, at) = self.product(job).ok()?;
        let kind = self.kernels.kind(job, &product, at)?;
        self.steps(job, &product, at).is_none().then_some(kind)
    }

    fn run_together(&self, jobs: &[Job<'_>]) -> Result<bool> {
        let products = jobs
            .iter()
            .map(|job| self.product(job).map(|(product, at)| (product, at, early(job))))
            .collect::<Result<Vec<_>>>()?;
        self.kernels.run_together(jobs, &products)
    }
}

/// For each factor, true if it may be loaded early.
fn early(job: &Job<'_>) -> [bool; 2] {
    [0, 1].map(|i| job.inputs.get(i).is_some_and(|factor| job.is_there_early(factor)))
}
