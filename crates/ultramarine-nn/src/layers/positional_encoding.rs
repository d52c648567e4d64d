//! Encodings of positions.

use super::base::{Layer, Module};
use std::f64::consts::PI;
use ultramarine::shape::Show;
use ultramarine::{Array, Dtype, Error, Result, concatenate, fast};

/// Rotary position embeddings (Su et al., 2021): pairs of elements of the last axis are rotated by angles that grow with the
/// position, which is the index along the axis before it.
#[derive(Module, Clone, Copy, Debug)]
pub struct RoPE {
    /// Number of elements that rotate; the remaining elements are unchanged.
    pub dims: usize,
    /// Pairs consist of neighbours; otherwise elements of the first half are paired with those of the second.
    pub traditional: bool,
    /// Pair i of n rotates by `base^(-i / n)` for each position; 10000 by default.
    pub base: f64,
    /// Factor by which positions are multiplied; 1 by default.
    pub scale: f64,
}

impl RoPE {
    /// Makes a layer that rotates the first `dims` elements of the last axis. `dims` is even.
    pub fn new(dims: usize) -> RoPE {
        RoPE { dims, traditional: false, base: 10000.0, scale: 1.0 }
    }

    /// Sets whether pairs consist of neighbours. The default is false: elements of the first half are paired with those
    /// of the second.
    #[must_use]
    pub fn traditional(self, traditional: bool) -> RoPE {
        RoPE { traditional, ..self }
    }

    /// Sets the base of the frequencies; 10000 by default.
    #[must_use]
    pub fn base(self, base: f64) -> RoPE {
        RoPE { base, ..self }
    }

    /// Sets the factor of the positions; 1 by default.
    #[must_use]
    pub fn scale(self, scale: f64) -> RoPE {
        RoPE { scale, ..self }
    }

    /// Rotates `(batch, ..., positions, dims)`. `offset` is the first position: an integer, or one integer for each
    /// element of the batch.
    ///
    /// # Errors
    /// As [`fast::rope`].
    pub fn forward_at(&self, x: &Array, offset: &Array) -> Result<Array> {
        let how = fast::Rope {
            dims: isize::try_from(self.dims).unwrap_or(isize::MAX),
            traditional: self.traditional,
            base: Some(self.base),
            scale: self.scale,
        };
        fast::rope(x, how, offset, None)
    }
}

/// Rotates from position 0 on.
impl Layer for RoPE {
    fn forward(&self, x: &Array) -> Result<Array> {
        self.forward_at(x, &Array::scalar(0i32))
    }
}

/// Sines and cosines of positions (Vaswani et al., "Attention is all you need", 2017): from
/// positions `(...)` to encodings `(..., dims)`.
#[derive(Module, Clone, Debug)]
pub struct SinusoidalPositionalEncoding {
    /// Frequencies, from the highest to the lowest.
    #[module(skip)]
    sigmas: Array,
    /// Factor of the result; sqrt(2 / dims) by default.
    pub scale: f64,
    /// If set, cosines come before sines; false by default.
    pub cos_first: bool,
}

impl SinusoidalPositionalEncoding {
    /// Makes an encoding with frequencies from 1 to 0.0001, in radians.
    ///
    /// # Errors
    /// [`Error::Value`] for a number of dimensions that is not positive and even.
    pub fn new(dims: usize) -> Result<Self> {
        Self::with_frequencies(dims, 1e-4, 1.0, false)
    }

    /// Makes an encoding with frequencies from `max` to `min`, in radians or, with `full_turns`, in turns.
    ///
    /// # Errors
    /// As [`SinusoidalPositionalEncoding::new`].
    pub fn with_frequencies(dims: usize, min: f64, max: f64, full_turns: bool) -> Result<Self> {
        if dims == 0 || !dims.is_multiple_of(2) {
            let text = format!("dims is {dims}. Pass a positive even number.");
            return Err(Error::value("SinusoidalPositionalEncoding", text));
        }
        let half = dims / 2;
        let steps = (half - 1).max(1) as f64;
        let part = (&Array::arange(0.0, half as f64, 1.0, Dtype::Float32)? / steps)?;
        let part = (1.0 - &part)?;
        let (low, high) = (min.ln(), max.ln());
        let mut sigmas = (&(&part * (high - low))? + low)?.exp()?;
        if full_turns {
            sigmas = (&sigmas * (2.0 * PI))?;
        }
        Ok(Self { sigmas, scale: (2.0 / dims as f64).sqrt(), cos_first: false })
    }

    /// Sets the factor of the result; sqrt(2 / dims) by default.
    #[must_use]
    pub fn scale(self, scale: f64) -> Self {
        Self { scale, ..self }
    }

    /// Sets whether cosines come before sines; false by default.
    #[must_use]
    pub fn cos_first(self, cos_first: bool) -> Self {
        Self { cos_first, ..self }
    }
}

impl Layer for SinusoidalPositionalEncoding {
    fn forward(&self, x: &Array) -> Result<Array> {
        let angles = x.expand_dims(-1)?.multiply(&self.sigmas)?;
        let mut parts = [angles.sin()?, angles.cos()?];
        if self.cos_first {
            parts.reverse();
        }
        let y = concatenate(&parts, -1)?;
        if self.scale == 1.0 { Ok(y) } else { &y * self.scale }
    }
}

/// Attention with linear biases (Press et al., 2022): scores decrease with the distance between query and key. Each
/// head has its own slope.
#[derive(Module, Clone, Copy, Debug, Default)]
pub struct ALiBi;

impl ALiBi {
    /// Returns the slopes of heads: `(num_heads, 1, 1)`.
    ///
    /// # Errors
    /// [`Error::Value`] for a number that is too large.
    pub fn create_alibi_slope(num_heads: usize) -> Result<Array> {
        let slopes = |count: usize| -> Vec<f32> {
            (1..=count).map(|i| 2f64.powf(-8.0 * i as f64 / count as f64) as f32).collect()
        };
        let power = if num_heads == 0 { 0 } else { 1 << num_heads.ilog2() };
        let mut all = slopes(power);
        all.extend(slopes(2 * power).into_iter().step_by(2).take(num_heads - power));
        Array::from_slice(&all, &[num_heads, 1, 1])
    }

    /// Returns the biases between queries from `offset` up to `queries` and keys: `(1, num_heads, queries - offset,
    /// keys)`.
    ///
    /// # Errors
    /// Errors for sizes that are too large.
    pub fn create_alibi_matrix(
        queries: usize,
        keys: usize,
        num_heads: usize,
        offset: usize,
        dtype: Dtype,
    ) -> Result<Array> {
        let positions =
            |from: usize, to: usize| Array::arange(from as f64, to as f64, 1.0, Dtype::Int32);
        let queries = positions(offset, queries)?.expand_dims(1)?;
        let biases = queries.subtract(&positions(0, keys)?)?.abs()?.negative()?;
        let biases = biases.multiply(&ALiBi::create_alibi_slope(num_heads)?)?;
        Ok(biases.expand_dims(0)?.astype(dtype))
    }

    /// Adds the biases, and a mask, to scores `(batch, heads, queries, keys)` of queries from `offset` on.
    ///
    /// # Errors
    /// [`Error::Value`] unless the scores have four axes.
    pub fn forward(&self, scores: &Array, offset: usize, mask: Option<&Array>) -> Result<Array> {
        let &[_, heads, queries, keys] = scores.shape() else {
            let shape = scores.shape();
            let text = format!(
                "The scores have shape {}. Pass (batch, heads, queries, keys).",
                Show(shape)
            );
            return Err(Error::value("ALiBi", text));
        };
        let biases =
            ALiBi::create_alibi_matrix(queries + offset, keys, heads, offset, scores.dtype())?;
        let scores = scores.add(&biases)?;
        mask.map_or_else(|| Ok(scores.clone()), |mask| scores.add(mask))
    }
}
