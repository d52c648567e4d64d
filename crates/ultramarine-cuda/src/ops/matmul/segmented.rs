//! SEGMENTED_MATMUL: a product for each part of the inner dimension.

use super::grouped::{Call, Factor, Products, three};
use crate::launch::{Job, OpRequest, View, Work};
use ultramarine_abi::helper::{Failure, Result};

struct SegmentedMatmul {
    products: Products,
}

/// SEGMENTED_MATMUL.
pub fn prepare(request: &OpRequest<'_>) -> Result<Box<dyn Work>> {
    let dtype = request.input(0)?.dtype;
    let fits = request.inputs.len() == 3
        && dtype == request.input(1)?.dtype
        && dtype == request.output(0)?.dtype;
    if !fits || !dtype.is_real() {
        return Err(Failure::invalid(format!(
            "a product over segments with {} inputs, {}",
            request.inputs.len(),
            dtype.name()
        )));
    }
    let products = Products::new(request.device, dtype, Factor::Plain);
    Ok(Box::new(SegmentedMatmul { products }))
}

impl Work for SegmentedMatmul {
    fn run(&self, job: &Job<'_>) -> Result<()> {
        let (a, b, segments, out) = (job.input(0)?, job.input(1)?, job.input(2)?, job.output(0)?);
        let [items, m, n] = three(out)?;
        let k = a.shape.last().copied().unwrap_or(0);
        if a.shape != [m, k] || b.shape != [k, n] || segments.shape != [items, 2] {
            return Err(Failure::invalid(format!(
                "a product of shapes {:?} and {:?} over segments {:?} into {:?}",
                a.shape, b.shape, segments.shape, out.shape
            )));
        }
        // Every item uses the same matrices.
        let (shapes, strides) = (
            [[items, m, k], [1, k, n]],
            [[0, a.strides[0], a.strides[1]], [0, b.strides[0], b.strides[1]]],
        );
        let x = View { shape: &shapes[0], strides: &strides[0], ..*a };
        let factor = View { shape: &shapes[1], strides: &strides[1], ..*b };
        let (scales, biases, global, lhs, rhs) = Default::default();
        let segments = Some(segments);
        let (x, factor) = (&x, &factor);
        let call = Call { x, factor, scales, biases, global, lhs, rhs, segments, out };
        self.products.run(job, &call.checked()?)
    }
}
