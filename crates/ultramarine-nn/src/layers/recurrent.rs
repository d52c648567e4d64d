//! Recurrent layers.

use super::activation_functions::tanh;
use super::base::{Layer, Module};
use super::containers::Activation;
use super::param::Param;
use crate::init::drawn_uniform;
use ultramarine::shape::Show;
use ultramarine::{Array, Error, PadMode, Result, addmm, index, stack};

/// A parameter drawn uniformly from ±1 / sqrt(hidden_size).
fn drawn(hidden_size: usize, shape: &[usize]) -> Result<Param> {
    Ok(drawn_uniform(shape, 1.0 / (hidden_size.max(1) as f64).sqrt())?.into())
}

/// An input of sequences after its projection, with a single batch axis.
struct Sequences {
    /// The batch axes of the input.
    batch: Vec<usize>,
    hidden_size: usize,
    /// The projected elements of each step.
    steps: Vec<Array>,
}

impl Sequences {
    fn new(
        op: &str,
        x: &Array,
        weight: &Array,
        bias: Option<&Array>,
        hidden_size: usize,
    ) -> Result<Sequences> {
        let [batch @ .., steps, elements] = x.shape() else {
            let text =
                format!("The input has shape {}. Pass (..., steps, elements).", Show(x.shape()));
            return Err(Error::value(op, text));
        };
        let x = x.reshape(&[batch.iter().product(), *steps, *elements])?;
        let weight = weight.transpose()?;
        let projected = match bias {
            Some(bias) => addmm(bias, &x, &weight, 1.0, 1.0)?,
            None => x.matmul(&weight)?,
        };
        let steps = projected.unstack(1)?;
        if steps.is_empty() {
            return Err(Error::value(op, "The sequences have no steps. Pass at least one."));
        }
        Ok(Sequences { batch: batch.to_vec(), hidden_size, steps })
    }

    /// The initial state, `(batch, hidden_size)`: zeros unless one is given.
    fn state(&self, initial: Option<&Array>) -> Result<Array> {
        let flat = [self.batch.iter().product(), self.hidden_size];
        match initial {
            None => Array::zeros(&flat, self.steps[0].dtype()),
            Some(state) => {
                state.broadcast_to(&[&self.batch[..], &[self.hidden_size]].concat())?.reshape(&flat)
            }
        }
    }

    /// The states of all steps, with the input's batch axes.
    fn stacked(&self, states: &[Array]) -> Result<Array> {
        let shape = [&self.batch[..], &[states.len(), self.hidden_size]].concat();
        stack(states, 1)?.reshape(&shape)
    }
}

/// Elman's recurrent network. It returns the states `h = tanh(W_xh x + W_hh h + b)` of a sequence.
///
/// From `(..., steps, input_size)` to `(..., steps, hidden_size)`.
#[derive(Module, Clone, Debug)]
pub struct RNN {
    /// `(hidden_size, input_size)`.
    #[module(rename = "Wxh")]
    pub wxh: Param,
    /// `(hidden_size, hidden_size)`.
    #[module(rename = "Whh")]
    pub whh: Param,
    /// `(hidden_size)`.
    pub bias: Option<Param>,
    /// The activation of a state; [`tanh`] by default.
    pub nonlinearity: Activation,
}

impl RNN {
    /// Makes a layer with a bias.
    ///
    /// # Errors
    /// [`Error::Value`] for sizes that are too large.
    pub fn new(input_size: usize, hidden_size: usize) -> Result<RNN> {
        let mut layer = RNN::without_bias(input_size, hidden_size)?;
        layer.bias = Some(drawn(hidden_size, &[hidden_size])?);
        Ok(layer)
    }

    /// Makes a layer without a bias.
    ///
    /// # Errors
    /// [`Error::Value`] for sizes that are too large.
    pub fn without_bias(input_size: usize, hidden_size: usize) -> Result<RNN> {
        Ok(RNN {
            wxh: drawn(hidden_size, &[hidden_size, input_size])?,
            whh: drawn(hidden_size, &[hidden_size, hidden_size])?,
            bias: None,
            nonlinearity: tanh.into(),
        })
    }

    /// Sets the activation of a state.
    #[must_use]
    pub fn nonlinearity(self, nonlinearity: impl Into<Activation>) -> RNN {
        RNN { nonlinearity: nonlinearity.into(), ..self }
    }

    /// Computes the states that follow an initial state `(..., hidden_size)`; `None` is zeros.
    ///
    /// # Errors
    /// [`Error::Value`] for sizes that do not fit, and for sequences without steps.
    pub fn forward_from(&self, x: &Array, hidden: Option<&Array>) -> Result<Array> {
        let size = self.whh.shape()[0];
        let sequences = Sequences::new("RNN", x, &self.wxh, self.bias.as_deref(), size)?;
        let (mut h, weight) = (sequences.state(hidden)?, self.whh.transpose()?);
        let mut states = Vec::new();
        for projected in &sequences.steps {
            h = self.nonlinearity.forward(&addmm(projected, &h, &weight, 1.0, 1.0)?)?;
            states.push(h.clone());
        }
        sequences.stacked(&states)
    }
}

impl Layer for RNN {
    fn forward(&self, x: &Array) -> Result<Array> {
        self.forward_from(x, None)
    }
}

/// The columns of parts `i` to `end`, with `size` columns for each part.
fn part(x: &Array, i: usize, end: usize, size: usize) -> Result<Array> {
    x.index(&index![.., i * size..end * size])
}

/// A gated recurrent unit (Cho et al., 2014). It returns the states of a sequence: with the gates r and z, `n =
/// tanh(W_n x + b_n + r (U_n h + b_hn))` and `h = (1 - z) n + z h`.
///
/// From `(..., steps, input_size)` to `(..., steps, hidden_size)`.
#[derive(Module, Clone, Debug)]
pub struct GRU {
    /// Weights for r, z and n: `(3 hidden_size, input_size)`.
    #[module(rename = "Wx")]
    pub wx: Param,
    /// Weights for r, z and n: `(3 hidden_size, hidden_size)`.
    #[module(rename = "Wh")]
    pub wh: Param,
    /// Biases for r, z and n: `(3 hidden_size)`.
    pub b: Option<Param>,
    /// Bias of the state's term in n: `(hidden_size)`.
    pub bhn: Option<Param>,
}

impl GRU {
    /// Makes a layer with biases.
    ///
    /// # Errors
    /// [`Error::Value`] for sizes that are too large.
    pub fn new(input_size: usize, hidden_size: usize) -> Result<GRU> {
        let mut layer = GRU::without_bias(input_size, hidden_size)?;
        layer.b = Some(drawn(hidden_size, &[3 * hidden_size])?);
        layer.bhn = Some(drawn(hidden_size, &[hidden_size])?);
        Ok(layer)
    }

    /// Makes a layer without biases.
    ///
    /// # Errors
    /// [`Error::Value`] for sizes that are too large.
    pub fn without_bias(input_size: usize, hidden_size: usize) -> Result<GRU> {
        let wx = drawn(hidden_size, &[3 * hidden_size, input_size])?;
        let wh = drawn(hidden_size, &[3 * hidden_size, hidden_size])?;
        Ok(GRU { wx, wh, b: None, bhn: None })
    }

    /// Computes the states that follow an initial state `(..., hidden_size)`; `None` is zeros.
    ///
    /// # Errors
    /// As [`RNN::forward_from`].
    pub fn forward_from(&self, x: &Array, hidden: Option<&Array>) -> Result<Array> {
        let size = self.wh.shape()[self.wh.ndim() - 1];
        let sequences = Sequences::new("GRU", x, &self.wx, self.b.as_deref(), size)?;
        let (mut h, weight) = (sequences.state(hidden)?, self.wh.transpose()?);
        let zeros_before = |bhn: &Param| bhn.pad(&[(2 * size, 0)], PadMode::Constant, 0);
        let bias = self.bhn.as_ref().map(zeros_before).transpose()?;
        let mut states = Vec::new();
        for projected in &sequences.steps {
            let of_state = match &bias {
                Some(bias) => addmm(bias, &h, &weight, 1.0, 1.0)?,
                None => h.matmul(&weight)?,
            };
            let gates =
                part(projected, 0, 2, size)?.add(&part(&of_state, 0, 2, size)?)?.sigmoid()?;
            let (r, z) = (part(&gates, 0, 1, size)?, part(&gates, 1, 2, size)?);
            let inner = r.multiply(&part(&of_state, 2, 3, size)?)?;
            let n = part(projected, 2, 3, size)?.add(&inner)?.tanh()?;
            h = (1.0 - &z)?.multiply(&n)?.add(&z.multiply(&h)?)?;
            states.push(h.clone());
        }
        sequences.stacked(&states)
    }
}

impl Layer for GRU {
    fn forward(&self, x: &Array) -> Result<Array> {
        self.forward_from(x, None)
    }
}

/// Long short-term memory (Hochreiter and Schmidhuber, 1997). It returns the states of a sequence: with the gates i, f
/// and o, `c = f c + i tanh(g)` and `h = o tanh(c)`.
///
/// From `(..., steps, input_size)` to `(..., steps, hidden_size)`.
#[derive(Module, Clone, Debug)]
pub struct LSTM {
    /// Weights for i, f, g and o: `(4 hidden_size, input_size)`.
    #[module(rename = "Wx")]
    pub wx: Param,
    /// Weights for i, f, g and o: `(4 hidden_size, hidden_size)`.
    #[module(rename = "Wh")]
    pub wh: Param,
    /// Biases for i, f, g and o: `(4 hidden_size)`.
    pub bias: Option<Param>,
}

impl LSTM {
    /// Makes a layer with a bias.
    ///
    /// # Errors
    /// [`Error::Value`] for sizes that are too large.
    pub fn new(input_size: usize, hidden_size: usize) -> Result<LSTM> {
        let mut layer = LSTM::without_bias(input_size, hidden_size)?;
        layer.bias = Some(drawn(hidden_size, &[4 * hidden_size])?);
        Ok(layer)
    }

    /// Makes a layer without a bias.
    ///
    /// # Errors
    /// [`Error::Value`] for sizes that are too large.
    pub fn without_bias(input_size: usize, hidden_size: usize) -> Result<LSTM> {
        let wx = drawn(hidden_size, &[4 * hidden_size, input_size])?;
        let wh = drawn(hidden_size, &[4 * hidden_size, hidden_size])?;
        Ok(LSTM { wx, wh, bias: None })
    }

    /// Computes the states and the cells that follow initial ones, `(..., hidden_size)`; `None` is zeros.
    ///
    /// # Errors
    /// As [`RNN::forward_from`].
    pub fn forward_from(
        &self,
        x: &Array,
        hidden: Option<&Array>,
        cell: Option<&Array>,
    ) -> Result<(Array, Array)> {
        let size = self.wh.shape()[self.wh.ndim() - 1];
        let sequences = Sequences::new("LSTM", x, &self.wx, self.bias.as_deref(), size)?;
        let (mut h, mut c) = (sequences.state(hidden)?, sequences.state(cell)?);
        let weight = self.wh.transpose()?;
        let (mut states, mut cells) = (Vec::new(), Vec::new());
        for projected in &sequences.steps {
            let gates = addmm(projected, &h, &weight, 1.0, 1.0)?;
            let gate = |i: usize| part(&gates, i, i + 1, size);
            let new = gate(0)?.sigmoid()?.multiply(&gate(2)?.tanh()?)?;
            c = gate(1)?.sigmoid()?.multiply(&c)?.add(&new)?;
            h = gate(3)?.sigmoid()?.multiply(&c.tanh()?)?;
            states.push(h.clone());
            cells.push(c.clone());
        }
        Ok((sequences.stacked(&states)?, sequences.stacked(&cells)?))
    }
}

/// Returns the states only; [`LSTM::forward_from`] also returns the cells.
impl Layer for LSTM {
    fn forward(&self, x: &Array) -> Result<Array> {
        Ok(self.forward_from(x, None, None)?.0)
    }
}
