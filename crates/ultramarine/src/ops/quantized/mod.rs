//! Quantised arrays (numbers of few bits), and computations with them.

mod dequantize;
pub(crate) mod fp8;
pub(crate) mod mode;
mod pack;
pub(crate) mod product;
pub(crate) mod quantize;
pub(crate) mod rules;
pub(crate) mod straight_through;

use crate::array::Array;
use crate::error::{Result, ensure};
use crate::shape::Show;
use mode::{Quantization, QuantizationMode};

/// A quantised array: numbers of few bits. [`crate::quantize`] returns it, and products take it.
///
/// The words hold the elements of each row (the last axis) as a stream of bits, the lowest first. Element i occupies
/// bits `i bits` to `(i + 1) bits`.
#[derive(Clone, Debug)]
pub struct Quantized {
    /// The words, uint32, `(..., columns * bits / 32)`.
    pub words: Array,
    /// A scale for each group of a row's elements, `(..., columns / group_size)`. Scales are real floats, or uint8 in
    /// the modes mxfp4, mxfp8 and nvfp4.
    pub scales: Array,
    /// Biases of the affine mode, in the shape of the scales.
    pub biases: Option<Array>,
    /// Scale of all elements, in the nvfp4 mode only: float32, one element (or one for each matrix of gathered
    /// experts).
    pub global_scale: Option<Array>,
    /// Mode, group size and bits.
    pub how: Quantization,
}

impl Quantized {
    /// Number of elements of a row, assuming that the row consists of whole words.
    pub(crate) fn columns(&self) -> usize {
        self.words.shape().last().map_or(0, |words| words * 32 / self.how.bits)
    }

    pub(crate) fn is_affine(&self) -> bool {
        self.how.mode == QuantizationMode::Affine
    }

    /// The operands of operations: words and scales, and biases and the global scale if present.
    pub(crate) fn parts(&self) -> impl Iterator<Item = &Array> {
        [&self.words, &self.scales].into_iter().chain(&self.biases).chain(&self.global_scale)
    }

    /// The number of bits of a row of words, and of the elements that the scales cover. Both are equal if words and
    /// scales fit.
    fn bits_of_rows(&self, words: usize, scales: usize) -> [usize; 2] {
        let Quantization { group_size, bits, .. } = self.how;
        [words.saturating_mul(32), scales.saturating_mul(group_size).saturating_mul(bits)]
    }

    /// Checks sizes, biases and the scales' dtype; errors name `op`.
    fn check_parts(&self, op: &str) -> Result<()> {
        self.how.check(op)?;
        let mode = self.how.mode.name();
        if self.is_affine() {
            ensure!(
                self.biases.is_some(),
                op,
                "Biases must be provided for affine quantization. Pass those that `quantize` returned."
            );
        } else {
            ensure!(
                self.biases.is_none(),
                op,
                "Biases must be null for quantization mode '{mode}'. Leave them out."
            );
            ensure!(
                self.scales.dtype() == crate::Dtype::Uint8,
                op,
                "Scale type must be uint8 but received type {}. Pass what `quantize` returned in this mode.",
                self.scales.dtype()
            );
        }
        [Some(&self.scales), self.biases.as_ref(), self.global_scale.as_ref()]
            .into_iter()
            .flatten()
            .try_for_each(|a| a.computable(op))
    }

    /// Checks the shapes that products require. Errors name `op`.
    fn check_matrices(&self, op: &str) -> Result<()> {
        let (words, scales) = (self.words.shape(), self.scales.shape());
        ensure!(
            self.words.dtype() == crate::Dtype::Uint32,
            op,
            "The weight matrix should be uint32 but received {}. Pass what `quantize` returned.",
            self.words.dtype()
        );
        let batch = |shape: &[usize]| shape.len().checked_sub(2).map(|n| shape[..n].to_vec());
        ensure!(
            batch(words).is_some() && batch(words) == batch(scales),
            op,
            "Weight and scales should have the same batch shape. Received weight with shape {}, scales with {}. Pass what `quantize` returned.",
            Show(words),
            Show(scales)
        );
        if let Some(biases) = &self.biases {
            ensure!(
                biases.shape() == scales,
                op,
                "Scales and biases should have the same shape. Received scales with shape {} and biases with {}. Pass what `quantize` returned.",
                Show(scales),
                Show(biases.shape())
            );
        }
        let last = words.len() - 1;
        let [given, needed] = self.bits_of_rows(words[last], scales[last]);
        ensure!(
            words[last - 1] == scales[last - 1] && given == needed,
            op,
            "The shapes of the weight and scales are incompatible based on bits and group_size. w.shape() == {} and scales.shape() == {} with group_size={} and bits={}. Pass the parameters that `quantize` was called with.",
            Show(words),
            Show(scales),
            self.how.group_size,
            self.how.bits
        );
        Ok(())
    }
}
