//! QUANTIZED_MATMUL: the second factor consists of quantized matrices.

use super::Format;
use crate::launch::{Dtype, Job, Kind, OpRequest, Work};
use crate::ops::matmul::grouped::{Call, Factor, Products, three};
use ultramarine_abi::helper::{Failure, Result};
use ultramarine_abi::schema::QuantizedMatmulAttrs;

struct QuantizedMatmul {
    format: Format,
    attributes: QuantizedMatmulAttrs,
    products: Products,
}

/// QUANTIZED_MATMUL.
pub fn prepare(request: &OpRequest<'_>) -> Result<Box<dyn Work>> {
    let attributes: QuantizedMatmulAttrs = request.attributes()?;
    let QuantizedMatmulAttrs { mode, bits, group, transpose, .. } = attributes;
    let (x, out) = (request.input(0)?, request.output(0)?);
    let format = Format::of(mode, bits, group, attributes.biases == 1, x.dtype)?;
    let optional = attributes.biases
        + attributes.global_scale
        + attributes.lhs_indices
        + attributes.rhs_indices;
    let scales = if format.is_affine() { x.dtype } else { Dtype::Uint8 };
    let words = (request.input(1)?.dtype, request.input(2)?.dtype) == (Dtype::Uint32, scales);
    if request.inputs.len() != 3 + optional as usize || x.dtype != out.dtype || !words {
        return Err(Failure::invalid(format!(
            "a product with numbers of few bits of {} inputs, {} and {}",
            request.inputs.len(),
            x.dtype.name(),
            out.dtype.name()
        )));
    }
    let factor = Factor::Packed { format, transpose: transpose == 1 };
    let products = Products::new(request.device, x.dtype, factor);
    Ok(Box::new(QuantizedMatmul { format, attributes, products }))
}

impl QuantizedMatmul {
    fn call<'a>(&self, job: &'a Job<'_>) -> Result<Call<'a>> {
        let (x, words, scales, out) = (job.input(0)?, job.input(1)?, job.input(2)?, job.output(0)?);
        let mut next = 2;
        let mut optional = |there: u32| {
            next += there as usize;
            if there == 1 { job.input(next).map(Some) } else { Ok(None) }
        };
        let biases = optional(self.attributes.biases)?;
        let global = optional(self.attributes.global_scale)?;
        let lhs = optional(self.attributes.lhs_indices)?;
        let rhs = optional(self.attributes.rhs_indices)?;
        let ([_, _, depth], [_, _, columns]) = (three(x)?, three(out)?);
        let ([count, rows, each], [_, _, groups]) = (three(words)?, three(scales)?);
        let [expected, long] =
            if self.attributes.transpose == 1 { [columns, depth] } else { [depth, columns] };
        self.format.check(long, each, groups)?;
        let fits = rows == expected
            && scales.shape == [count, rows, groups]
            && biases.is_none_or(|b| b.shape == scales.shape)
            && global.is_none_or(|g| g.shape == [count]);
        match fits {
            true => Call {
                x,
                factor: words,
                scales: Some(scales),
                biases,
                global,
                lhs,
                rhs,
                segments: None,
                out,
            }
            .checked(),
            false => Err(Failure::invalid(format!(
                "a product of {:?} and words {:?} into {:?}",
                x.shape, words.shape, out.shape
            ))),
        }
    }
}

impl Work for QuantizedMatmul {
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

    fn kind(&self, job: &Job<'_>) -> Option<Kind> {
        self.products.kind(&self.call(job).ok()?)
    }

    fn run_together(&self, jobs: &[Job<'_>]) -> Result<bool> {
        let calls = jobs.iter().map(|job| self.call(job)).collect::<Result<Vec<_>>>()?;
        self.products.run_together(jobs, &calls)
    }
}
