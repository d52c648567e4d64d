//! Dequantization: converts quantised numbers back to floats.

use super::mode::{Quantization, QuantizationMode};
use super::pack::unpack;
use super::quantize::check_global_scale;
use super::rules::Dequantize;
use super::{Quantized, fp8};
use crate::error::{Result, ensure};
use crate::ops::rules::builders::{bin, like, times};
use crate::ops::rules::shapeless::{SymbolicSize, reshaped};
use crate::placement::follow;
use crate::shape::{Shape, Show};
use crate::{array::Array, dtype::Dtype};
use smallvec::smallvec;
use ultramarine_abi::schema::binary;

const OP: &str = "dequantize";
/// The global scale that leaves numbers unchanged: the largest E2M1 times the largest E4M3 number.
const GLOBAL: f64 = 2688.0;

impl Quantized {
    /// The elements as floats, `(..., columns)`.
    ///
    /// The result is in `dtype`. By default this is the dtype of scales and biases (affine), float32 with a global
    /// scale, and bfloat16 in the other modes. In the affine mode scale times element is rounded to that dtype, and so
    /// is the sum with the bias.
    ///
    /// # Errors
    /// [`crate::Error::Value`] for words that are not uint32 or have fewer than 2 dimensions, for scales and biases
    /// that do not fit the words or the mode, and for a dtype that is not a real float.
    pub fn dequantize(&self, dtype: Option<Dtype>) -> Result<Array> {
        let own = self.check_dequantize(dtype)?;
        let result = dtype.unwrap_or(own);
        let _placement = follow(&[&self.words]);
        let shape: Shape = {
            let words = self.words.shape();
            words[..words.len() - 1].iter().copied().chain([self.columns()]).collect()
        };
        if shape.contains(&0) {
            return Array::zeros(&shape, result);
        }
        let last = self.words.ndim() - 1;
        let rows = |a: &Array| {
            let sizes = smallvec![SymbolicSize::Product(0, last as u8), SymbolicSize::own(last)];
            reshaped(a, sizes, &[])
        };
        let scales = match &self.biases {
            // Products of integers would wrap.
            Some(_) if !self.scales.dtype().is_floating() => self.scales.astype(own),
            _ => self.scales.clone(),
        };
        let parts = Quantized {
            words: rows(&self.words)?,
            scales: rows(&scales)?,
            biases: self.biases.as_ref().map(rows).transpose()?,
            global_scale: self.global_scale.as_ref().map(|g| g.reshape(&[1])).transpose()?,
            how: self.how,
        };
        let same = parts.biases.as_ref().is_none_or(|b| b.dtype() == parts.scales.dtype());
        let out = if same && self.how.is_known() {
            let dtype = if self.is_affine() { own } else { result };
            let global_scale = self.global_scale.is_some();
            Dequantize { how: self.how, dtype, global_scale }.of(&parts)?
        } else {
            parts.values(own)?
        };
        let sizes = (0..last).map(SymbolicSize::partner).chain([SymbolicSize::own(1)]).collect();
        reshaped(&out.astype(result), sizes, &[&self.words])
    }

    /// Checks all parts; returns the default dtype of the result.
    fn check_dequantize(&self, dtype: Option<Dtype>) -> Result<Dtype> {
        let (words, scales) = (self.words.shape(), self.scales.shape());
        ensure!(
            self.words.dtype() == Dtype::Uint32,
            OP,
            "The matrix should be given as a uint32 but has type {}. Pass what `quantize` returned.",
            self.words.dtype()
        );
        ensure!(
            words.len() >= 2,
            OP,
            "The matrix to be dequantized must have at least 2 dimensions but it has only {}. Reshape it.",
            words.len()
        );
        self.check_parts(OP)?;
        if let Some(dtype) = dtype {
            ensure!(
                dtype.is_floating(),
                OP,
                "Only real floating types are supported but output dtype == {dtype}. Pass float16, bfloat16, float32 or float64."
            );
        }
        check_global_scale(OP, self.how, self.global_scale.as_ref())?;
        let own = match &self.biases {
            Some(biases) => {
                let own = self.scales.dtype().promote(biases.dtype());
                ensure!(
                    own.is_floating(),
                    OP,
                    "Only real floating types are supported but scales.dtype() == {} and biases.dtype() == {}. Convert them with astype(float32).",
                    self.scales.dtype(),
                    biases.dtype()
                );
                own
            }
            None if self.global_scale.is_some() => Dtype::Float32,
            None => Dtype::Bfloat16,
        };
        let rows = words.len() - 1;
        let of = if self.biases.is_some() { "scales and biases" } else { "scales" };
        let fits = scales.len() == words.len()
            && scales[..rows] == words[..rows]
            && self.biases.as_ref().is_none_or(|b| b.shape() == scales);
        ensure!(
            fits,
            OP,
            "Shape of {of} does not match the matrix of shape {}: scales have shape {}. Pass what `quantize` returned.",
            Show(words),
            Show(scales)
        );
        let Quantization { group_size, bits, .. } = self.how;
        ensure!(
            bits <= 32,
            OP,
            "Invalid value for bits: {bits}. Pass the bits that `quantize` was called with."
        );
        let [given, needed] = self.bits_of_rows(words[rows], scales[rows]);
        ensure!(
            given == needed,
            OP,
            "Shape of {of} does not match the matrix given the quantization parameters. Provided matrix of shape {} and {} of shape {} with group_size={group_size} and bits={bits}. Pass the parameters that `quantize` was called with.",
            Show(words),
            of.replace(" and ", "/"),
            Show(scales)
        );
        Ok(own)
    }

    /// The elements `(..., columns)` in dtype `inner`, computed by ordinary operations from words of any rank. The
    /// affine mode computes in the dtype of scales and biases, other modes in float32 (float64 for float64).
    pub(super) fn values(&self, inner: Dtype) -> Result<Array> {
        let (mode, group) = (self.how.mode, self.how.group_size);
        let codes = unpack(OP, &self.words, self.how.bits)?;
        let n = self.scales.ndim();
        let mut shape = Shape::from_slice(self.scales.shape());
        shape.push(group);
        let codes = codes.reshape(&shape)?;
        let each = |a: &Array| crate::ops::rules::builders::with_axis(a, n);
        let elements = match (mode, &self.biases) {
            (QuantizationMode::Affine, Some(biases)) => {
                let scaled = times(&codes.astype(self.scales.dtype()), &each(&self.scales)?)?;
                bin(binary::ADD, &scaled, &each(biases)?)?.astype(inner)
            }
            _ => {
                let wide = |a: Array| match inner {
                    Dtype::Float64 => a.astype(inner),
                    _ => a,
                };
                let number = match mode {
                    QuantizationMode::Mxfp8 => {
                        fp8::from_fp8(&codes.astype(Dtype::Uint8), Dtype::Float32)?
                    }
                    _ => e2m1(&codes)?,
                };
                let scale = match mode {
                    QuantizationMode::Nvfp4 => fp8::from_fp8(&self.scales, Dtype::Float32)?,
                    _ => fp8::power_of_two(&self.scales.astype(Dtype::Uint32))?,
                };
                let (number, scale) = (wide(number), wide(scale));
                let scale = match &self.global_scale {
                    Some(global) => {
                        let global = wide(global.clone());
                        let factor = bin(binary::DIVIDE, &global, &like(&global, GLOBAL))?;
                        // The global scale has one element for each matrix, or one for all.
                        let mut all = Shape::from_elem(1, n);
                        all[0] = factor.size();
                        times(&scale, &factor.reshape(&all)?)?
                    }
                    None => scale,
                };
                times(&number, &each(&scale)?)?.astype(inner)
            }
        };
        let mut all = Shape::from_slice(&self.scales.shape()[..n - 1]);
        all.push(self.columns());
        elements.reshape(&all)
    }
}

/// Decodes E2M1 numbers from uint32 codes, to float32.
fn e2m1(codes: &Array) -> Result<Array> {
    const SIZES: [f32; 8] = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];
    let all: Vec<f32> = SIZES.into_iter().chain(SIZES.map(|x| -x)).collect();
    Array::from_slice(&all, &[16])?.take(codes, None)
}
