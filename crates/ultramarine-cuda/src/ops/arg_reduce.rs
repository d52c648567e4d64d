//! ARG_REDUCE.

use super::headers;
use super::reduce::fold;
use super::reduce::{Reduction, kernels_of, vector};
use crate::launch::{Dtype, OpRequest, Work};
use ultramarine_abi::helper::{Failure, Result};
use ultramarine_abi::schema::{ArgReduceAttrs, arg_reduce};

const HEADERS: &[&str] =
    &[headers::NUMBER, fold::HEADER, include_str!("../../kernels/arg_reduce.cuh")];

/// ARG_REDUCE, along any axis and with any strides.
pub fn prepare(request: &OpRequest<'_>) -> Result<Box<dyn Work>> {
    request.elementwise(1)?;
    let ArgReduceAttrs { op: code, axis, .. } = request.attributes()?;
    let (input, output) = (request.input(0)?, request.output(0)?);
    let largest = match code {
        arg_reduce::ARGMIN => false,
        arg_reduce::ARGMAX => true,
        _ => return Err(Failure::unsupported(format!("extreme {code} is unknown here"))),
    };
    if axis as usize >= input.ndim {
        return Err(Failure::invalid(format!("axis {axis} of a tensor of rank {}", input.ndim)));
    }
    if output.dtype != Dtype::Uint32 {
        return Err(Failure::invalid(format!(
            "indices as {}, they are uint32",
            output.dtype.name()
        )));
    }
    let op = format!("ArgExtreme<{}, {largest}>", input.dtype.tag());
    Ok(Box::new(Reduction {
        axes: 1 << axis,
        // Each accumulator is a key and an index.
        accumulator: if input.dtype.bytes() == 8 { 16 } else { 8 },
        vector: vector(input.dtype).min(8),
        // The last index means that there is no element.
        longest: u64::from(u32::MAX),
        kernels: kernels_of(op, input.dtype, HEADERS),
        copy: None,
    }))
}
