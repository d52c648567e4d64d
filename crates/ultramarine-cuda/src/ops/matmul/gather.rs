//! GATHER_MATMUL: indices select the matrices of a product.

use super::grouped::{Call, Factor, Products, three};
use crate::launch::{Job, OpRequest, Work};
use ultramarine_abi::helper::{Failure, Result};
use ultramarine_abi::schema::GatherMatmulAttrs;

struct GatherMatmul {
    attributes: GatherMatmulAttrs,
    products: Products,
}

/// GATHER_MATMUL.
pub fn prepare(request: &OpRequest<'_>) -> Result<Box<dyn Work>> {
    let attributes: GatherMatmulAttrs = request.attributes()?;
    let dtype = request.input(0)?.dtype;
    let indices = attributes.lhs_indices + attributes.rhs_indices;
    let fits = request.inputs.len() == 2 + indices as usize
        && dtype == request.input(1)?.dtype
        && dtype == request.output(0)?.dtype;
    if !fits || !dtype.is_real() {
        return Err(Failure::invalid(format!(
            "a product of chosen matrices with {} inputs, {}",
            request.inputs.len(),
            dtype.name()
        )));
    }
    let products = Products::new(request.device, dtype, Factor::Plain);
    Ok(Box::new(GatherMatmul { attributes, products }))
}

impl GatherMatmul {
    fn call<'a>(&self, job: &'a Job<'_>) -> Result<Call<'a>> {
        let (x, factor, out) = (job.input(0)?, job.input(1)?, job.output(0)?);
        let at = |there: u32, i: u32| {
            if there == 1 { job.input(i as usize).map(Some) } else { Ok(None) }
        };
        let lhs = at(self.attributes.lhs_indices, 2)?;
        let rhs = at(self.attributes.rhs_indices, 2 + self.attributes.lhs_indices)?;
        let ([_, _, depth], [count, ..], [_, _, columns]) =
            (three(x)?, three(factor)?, three(out)?);
        if factor.shape != [count, depth, columns] {
            return Err(Failure::invalid(format!(
                "a product of shapes {:?} and {:?} into {:?}",
                x.shape, factor.shape, out.shape
            )));
        }
        let (scales, biases, global, segments) = Default::default();
        Call { x, factor, scales, biases, global, lhs, rhs, segments, out }.checked()
    }
}

impl Work for GatherMatmul {
    /// Rows may have to be listed only if indices select matrices.
    fn has_workspace(&self) -> bool {
        self.attributes.rhs_indices == 1
    }

    fn workspace(&self, job: &Job<'_>) -> Result<u64> {
        Ok(self.call(job)?.list_bytes())
    }

    fn run(&self, job: &Job<'_>) -> Result<()> {
        self.products.run(job, &self.call(job)?)
    }
}
