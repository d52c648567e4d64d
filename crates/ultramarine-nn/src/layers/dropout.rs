//! Layers that zero a random part of their input in training.

use super::base::{Layer, Module};
use super::param::Training;
use ultramarine::shape::Show;
use ultramarine::{Array, Error, Result, random, where_};

/// Zeros with probability `p`, of a mask of the shape `shape`, and the rest divided by `1 - p`.
fn dropped(x: &Array, p: f64, shape: &[usize]) -> Result<Array> {
    let keep = 1.0 - p;
    let mask = random::bernoulli(Some(shape), keep, None)?;
    where_(&mask, x * (1.0 / keep), 0.0)
}

macro_rules! dropouts {
    ($($(#[$doc:meta])* $name:ident $spatial:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Module, Clone, Copy, Debug)]
        pub struct $name {
            p: f64,
            training: Training,
        }

        impl $name {
            /// A layer that zeros with probability `p`, usually 0.5.
            ///
            /// # Errors
            /// [`Error::Value`] if `p` is not at least 0 and below 1.
            pub fn new(p: f64) -> Result<$name> {
                if !(0.0..1.0).contains(&p) {
                    let text = format!("p is {p}. Pass a probability of at least 0 and below 1.");
                    return Err(Error::value(stringify!($name), text));
                }
                Ok($name { p, training: Training::default() })
            }
        }

        impl Layer for $name {
            fn forward(&self, x: &Array) -> Result<Array> {
                let spatial: usize = $spatial;
                let rank = x.ndim();
                if spatial > 0 && rank != spatial + 1 && rank != spatial + 2 {
                    let text = format!(
                        "The input has shape {}. Pass an array of {} or {} axes, channels last.",
                        Show(x.shape()), spatial + 1, spatial + 2
                    );
                    return Err(Error::value(stringify!($name), text));
                }
                if self.p == 0.0 || !*self.training {
                    return Ok(x.clone());
                }
                let mut shape = x.shape().to_vec();
                if spatial > 0 {
                    shape[rank - 1 - spatial..rank - 1].fill(1);
                }
                dropped(x, self.p, &shape)
            }
        }
    )*};
}

dropouts! {
    /// Zeros elements at random in training mode, and divides the others by 1 - p. In evaluation mode it returns its input. Either
    /// way an element has the same mean.
    ///
    /// ```
    /// use ultramarine::{Array, Dtype};
    /// use ultramarine_nn::{Dropout, Layer, Module};
    /// let mut layer = Dropout::new(0.5)?;
    /// let x = Array::ones(&[8], Dtype::Float32)?;
    /// assert!(layer.forward(&x)?.to_vec::<f32>()?.iter().all(|v| [0.0, 2.0].contains(v)));
    /// layer.eval();
    /// assert_eq!(layer.forward(&x)?.to_vec::<f32>()?, [1.0; 8]);
    /// # Ok::<(), ultramarine::Error>(())
    /// ```
    Dropout 0;
    /// Zeros channels of images `(batch, height, width, channels)`, or `(height, width, channels)`, at random in training mode, and
    /// divides the others by 1 - p (Tompson et al., 2015). In evaluation mode it returns its input.
    Dropout2d 2;
    /// Zeros channels of volumes `(batch, depth, height, width, channels)`, or of one without batch, as [`Dropout2d`] does.
    Dropout3d 3;
}
