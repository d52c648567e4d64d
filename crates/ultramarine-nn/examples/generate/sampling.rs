//! The choice of the next token.

use ultramarine::random::{Samples, categorical};
use ultramarine::{Array, Dtype, KeepDims, Result, where_};

/// The choice of tokens by their logits.
#[derive(Clone, Copy, Debug)]
pub struct Sampler {
    /// Logits are divided by it; 0 takes the most probable token.
    pub temperature: f64,
    /// Tokens are drawn among the most probable ones that have this probability together.
    pub top_p: f64,
}

impl Sampler {
    /// The next tokens, `(batch)` of uint32, by logits `(batch, vocabulary)`.
    pub fn sample(&self, logits: &Array) -> Result<Array> {
        if self.temperature == 0.0 {
            return logits.argmax(-1);
        }
        let mut logits = logits.astype(Dtype::Float32);
        if self.top_p < 1.0 {
            logits = nucleus(&logits, self.top_p)?;
        }
        categorical(&(logits / self.temperature)?, -1, Samples::One, None)
    }
}

/// Logits, with negative infinity for all but the most probable tokens, which have the probability `p` together
/// (Holtzman et al., 2020).
fn nucleus(logits: &Array, p: f64) -> Result<Array> {
    let rising = logits.sort(-1)?;
    let up_to = rising.softmax(-1, true)?.cumsum(-1, false, true)?;
    // The last one is kept, whatever the sum of all is rounded to.
    let kept = up_to.greater(1.0 - p)?;
    let least = where_(&kept, &rising, f64::INFINITY)?.min(KeepDims(-1))?;
    let least = least.minimum(&rising.max(KeepDims(-1))?)?;
    where_(&logits.greater_equal(&least)?, logits, f64::NEG_INFINITY)
}
