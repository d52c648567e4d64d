//! Quantized numbers: DEQUANTIZE, and products with quantized matrices.

mod dequantize;
mod format;
mod product;
mod source;

pub use format::Format;

use crate::launch::{OpRequest, Work};
use ultramarine_abi::helper::Result;
use ultramarine_abi::schema::op;

/// The plan of a request.
pub fn prepare(request: &OpRequest<'_>) -> Result<Box<dyn Work>> {
    match request.op {
        op::DEQUANTIZE => dequantize::prepare(request),
        op::QUANTIZED_MATMUL => product::prepare(request),
        _ => Err(request.unknown(None)),
    }
}
