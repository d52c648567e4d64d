//! Layers that set a random part of their input to zero in training.

use super::base::{Layer, Module};
use super::param::Training;
use ultramarine::shape::Show;
use ultramarine::{Array, Error, Result, random, where_};

/// Sets elements to zero with probability `p`, by a mask of shape `shape`, and divides the others by `1 - p`.
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
            /// Makes a layer that sets elements to zero with probability `p`, usually 0.5.
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
    /// In training mode, sets random elements to zero, and divides the others by 1 - p. In evaluation mode, returns its
    /// input. The mean of an element is the same in both modes.
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
    /// In training mode, sets random channels of images `(batch, height, width, channels)`, or `(height, width,
    /// channels)`, to zero, and divides the others by 1 - p (Tompson et al., 2015). In evaluation mode, returns its
    /// input.
    Dropout2d 2;
    /// As [`Dropout2d`], for channels of volumes `(batch, depth, height, width, channels)`, or of one volume without
    /// the batch axis.
    Dropout3d 3;
}
