//! MATMUL: by cuBLASLt where it is and can, else by kernels of our own.

pub mod gemm;
pub mod kernels;
pub mod product;
#[cfg(test)]
mod simulation;

use crate::dtype::Dtype;
use crate::job::Job;
use crate::plan::{Ask, Work};
use kernels::Kernels;
use product::Product;
use ultramarine_abi::helper::{Failure, Result};

/// A product of matrices.
struct Matmul {
    kernels: Kernels,
}

/// MATMUL.
pub fn prepare(ask: &Ask<'_>) -> Result<Box<dyn Work>> {
    let (a, b, out) = (ask.input(0)?, ask.input(1)?, ask.output(0)?);
    if a.ndim < 2 || b.ndim != a.ndim || out.ndim != a.ndim || ask.inputs.len() != 2 {
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
    Ok(Box::new(Matmul { kernels: Kernels::new(a.dtype) }))
}

impl Work for Matmul {
    fn run(&self, job: &Job<'_>) -> Result<()> {
        let (a, b, out) = (job.input(0)?, job.input(1)?, job.output(0)?);
        let product = Product::of(a, b, out)?;
        self.kernels.run(job, &product, [a.address, b.address, out.address])
    }
}
