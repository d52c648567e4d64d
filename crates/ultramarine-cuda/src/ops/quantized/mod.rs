//! Quantized numbers: DEQUANTIZE, and products with quantized matrices.

mod dequantize;
mod product;

use crate::launch::{Dtype, OpRequest, Work};
use ultramarine_abi::helper::{Failure, Result};
use ultramarine_abi::schema::{op, quantization};

/// Makes the work of an operation of the family.
pub fn prepare(request: &OpRequest<'_>) -> Result<Box<dyn Work>> {
    match request.op {
        op::DEQUANTIZE => dequantize::prepare(request),
        op::QUANTIZED_MATMUL => product::prepare(request),
        _ => Err(super::unknown(request)),
    }
}

/// How quantized numbers are stored in words, and how they are decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    mode: u32,
    /// Bits per number.
    pub bits: u32,
    /// Numbers of a row that share a scale.
    pub group: u32,
}

impl Format {
    /// The format of a request, if there are kernels for it and the dtype.
    pub fn of(mode: u32, bits: u32, group: u32, has_biases: bool, dtype: Dtype) -> Result<Self> {
        let known = match mode {
            quantization::AFFINE => {
                matches!(bits, 1..=6 | 8) && matches!(group, 32 | 64 | 128) && has_biases
            }
            quantization::MXFP4 => (bits, group, has_biases) == (4, 32, false),
            quantization::MXFP8 => (bits, group, has_biases) == (8, 32, false),
            quantization::NVFP4 => (bits, group, has_biases) == (4, 16, false),
            _ => false,
        };
        if !known || !dtype.is_real() {
            return Err(Failure::unsupported(format!(
                "numbers of {bits} bits in groups of {group} (mode {mode}) as {}",
                dtype.name()
            )));
        }
        Ok(Self { mode, bits, group })
    }

    /// True if there are biases.
    pub fn is_affine(self) -> bool {
        self.mode == quantization::AFFINE
    }

    /// `Format` of `quantized/unpack.cuh`.
    pub fn tag(self) -> String {
        let mode = ["AFFINE", "MXFP4", "MXFP8", "NVFP4"][self.mode as usize];
        format!("Format<{mode}, {}, {}>", self.bits, self.group)
    }

    /// The type of scales in `quantized/unpack.cuh`.
    pub fn scales(self, dtype: Dtype) -> String {
        match self.is_affine() {
            true => format!("{}::T", dtype.tag()),
            false => "u8".into(),
        }
    }

    /// Checks the sizes of words, scales and biases for `columns` columns in total.
    pub fn check(self, columns: i64, words: i64, scales: i64) -> Result<()> {
        match words * 32 == columns * i64::from(self.bits)
            && scales * i64::from(self.group) == columns
        {
            true => Ok(()),
            false => Err(Failure::invalid(format!(
                "{words} words and {scales} scales for {columns} numbers of {} bits in groups of {}",
                self.bits, self.group
            ))),
        }
    }
}
