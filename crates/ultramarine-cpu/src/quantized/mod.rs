//! Quantized numbers, and products with them.
//!
//! Elements are decoded a vector at a time (`decode`), by tables of bit positions, so that one loop serves all numbers
//! of bits. Few rows of x are multiplied by elements as they are decoded; elements are read once (`few`, `dot`). For
//! many rows, elements are decoded to memory, one slab at a time that stays in cache, for the ordinary product
//! (`many`).

// Small arrays of registers are walked by index, several at a time.
#![allow(clippy::needless_range_loop)]

mod decode;
mod dequantize;
mod dot;
mod expand;
mod few;
mod format;
mod many;
#[cfg(target_arch = "x86_64")]
mod nibbles;
mod product;

use crate::kernel::{Op, Prepared, Refusal, Signature};
use ultramarine_abi::schema::op;

/// Prepares an operation of the family.
pub fn prepare_op(op: &Op, signature: &Signature<'_>) -> Prepared {
    match op.id {
        op::DEQUANTIZE => dequantize::prepare(op.attributes()?, signature),
        op::QUANTIZED_MATMUL => product::prepare(op.attributes()?, signature),
        _ => Err(Refusal::Unsupported),
    }
}
