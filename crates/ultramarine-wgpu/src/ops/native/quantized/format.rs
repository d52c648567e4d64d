//! How quantized numbers are stored in words, and how they are decoded.

use crate::dtype::{Dtype, Wgsl};
use std::fmt::Write as _;
use ultramarine_abi::helper::{Failure, Result};
use ultramarine_abi::schema::quantization;

/// The format of quantized numbers: their mode, bits and group size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Format {
    mode: u32,
    /// Bits per number.
    pub bits: u32,
    /// Numbers of a row that share a scale.
    pub group: u32,
}

impl Format {
    /// The format of a request, if there are kernels for it and the dtype.
    pub fn of(mode: u32, bits: u32, group: u32, biases: bool, dtype: Dtype) -> Result<Self> {
        let known = match mode {
            quantization::AFFINE => {
                matches!(bits, 1..=6 | 8) && matches!(group, 32 | 64 | 128) && biases
            }
            quantization::MXFP4 => (bits, group, biases) == (4, 32, false),
            quantization::MXFP8 => (bits, group, biases) == (8, 32, false),
            quantization::NVFP4 => (bits, group, biases) == (4, 16, false),
            _ => false,
        };
        // The kernels of each format take long to compile. float64 has none, because it is not used with
        // quantized numbers.
        match known && dtype.is_real() && dtype != Dtype::Float64 {
            true => Ok(Self { mode, bits, group }),
            false => Err(Failure::unsupported(format!(
                "numbers of {bits} bits in groups of {group} (mode {mode}) as {}",
                dtype.name()
            ))),
        }
    }

    /// True if there are biases.
    pub fn is_affine(self) -> bool {
        self.mode == quantization::AFFINE
    }

    /// The dtype of scales.
    pub fn scales(self, dtype: Dtype) -> Dtype {
        if self.is_affine() { dtype } else { Dtype::Uint8 }
    }

    /// Numbers that are unpacked at once. They fill whole words, and belong to one group.
    pub fn chunk(self) -> u32 {
        match self.bits {
            4 | 8 => 8,
            2 | 6 => 16,
            _ => 32,
        }
    }

    /// Words of a chunk.
    pub fn words(self) -> u32 {
        self.chunk() * self.bits / 32
    }

    /// Checks the sizes of words and scales for rows of `numbers` numbers.
    pub fn check(self, numbers: i64, words: i64, scales: i64) -> Result<()> {
        match words * 32 == numbers * i64::from(self.bits)
            && scales * i64::from(self.group) == numbers
        {
            true => Ok(()),
            false => Err(Failure::invalid(format!(
                "{words} words and {scales} scales for {numbers} numbers of {} bits in groups of {}",
                self.bits, self.group
            ))),
        }
    }

    /// Declarations for a program whose tensors are `packed`, `scales` and, if affine, `biases`: the type R, and
    /// the functions `scale_of` and `bias_of` of an offset.
    pub fn items(self, dtype: Dtype) -> String {
        let scale = match self.mode {
            quantization::AFFINE => "load_scales(at)",
            quantization::NVFP4 => "R(e4m3(load_scales(at)))",
            _ => "R(e8m0(load_scales(at)))",
        };
        let bias = if self.is_affine() { "load_biases(at)" } else { "R()" };
        format!(
            "alias R = {};\nfn scale_of(at: u32) -> R {{ return {scale}; }}\nfn bias_of(at: u32) -> R {{ return {bias}; }}",
            dtype.register()
        )
    }

    /// Statements that unpack the chunk whose first word is at `at`, into `q0`, `q1` ... of type R.
    pub fn unpack(self, at: &str, step: &str) -> String {
        let mut text = String::new();
        for w in 0..self.words() {
            _ = writeln!(text, "let w{w} = load_packed({at} + {w}u * {step});");
        }
        let mask = (1_u32 << self.bits) - 1;
        for e in 0..self.chunk() {
            let (w, shift) = (e * self.bits / 32, e * self.bits % 32);
            let code = match shift + self.bits {
                ..=32 => format!("(w{w} >> {shift}u) & {mask}u"),
                _ => format!("((w{w} >> {shift}u) | (w{} << {}u)) & {mask}u", w + 1, 32 - shift),
            };
            let number = match self.mode {
                quantization::AFFINE => format!("R({code})"),
                quantization::MXFP8 => format!("R(e4m3({code}))"),
                _ => format!("R(e2m1({code}))"),
            };
            _ = writeln!(text, "let q{e} = {number};");
        }
        text
    }
}
