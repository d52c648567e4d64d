//! Lookup tables of vectors.

use super::base::{Layer, Module};
use super::linear::bound;
use super::param::Param;
use crate::init::drawn_normal;
use ultramarine::{Array, Result, fast};

/// A table with a vector for each integer from 0 on, such as tokens: from integers `(...)` to vectors `(..., dims)`.
///
/// ```
/// use ultramarine::Array;
/// use ultramarine_nn::{Embedding, Layer};
/// let table = Embedding::new(10, 4)?;
/// assert_eq!(table.forward(&Array::from_slice(&[1i32, 9], &[2])?)?.shape(), [2, 4]);
/// # Ok::<(), ultramarine::Error>(())
/// ```
#[derive(Module, Clone, Debug)]
pub struct Embedding {
    /// `(num_embeddings, dims)`, drawn from a normal distribution with standard deviation 1 / sqrt(dims).
    pub weight: Param,
}

impl Embedding {
    /// Makes a table of random vectors.
    ///
    /// # Errors
    /// [`Error::Value`](ultramarine::Error::Value) for sizes that are too large.
    pub fn new(num_embeddings: usize, dims: usize) -> Result<Embedding> {
        Ok(Embedding { weight: drawn_normal(&[num_embeddings, dims], bound(dims))?.into() })
    }

    /// Computes products with all vectors, for a last layer that shares the table: from `(..., dims)` to `(...,
    /// num_embeddings)`.
    ///
    /// # Errors
    /// [`Error::Value`](ultramarine::Error::Value) for a last axis of another size.
    pub fn as_linear(&self, x: &Array) -> Result<Array> {
        fast::linear(x, &self.weight, None)
    }
}

/// The vectors of integers: from `(...)` to `(..., dims)`.
impl Layer for Embedding {
    fn forward(&self, x: &Array) -> Result<Array> {
        self.weight.take(x, Some(0))
    }
}
