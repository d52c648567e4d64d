//! Normalisations.

use super::base::{Layer, Module};
use super::param::{Param, State, Training};
use ultramarine::shape::Show;
use ultramarine::{Array, Dtype, Error, KeepDims, Result, fast};

/// The default term that keeps variances above zero.
const EPS: f64 = 1e-5;

fn is_half(dtype: Dtype) -> bool {
    matches!(dtype, Dtype::Float16 | Dtype::Bfloat16)
}

/// Widens float16 and bfloat16 to float32, in which they are computed.
fn widened(x: &Array) -> Array {
    if is_half(x.dtype()) { x.astype(Dtype::Float32) } else { x.clone() }
}

/// A result in the dtype to which its operands promote, if float16 or bfloat16 is among them.
fn rounded(y: Array, operands: &[&Array]) -> Array {
    let mut dtypes = operands.iter().map(|a| a.dtype());
    if !dtypes.clone().any(is_half) {
        return y;
    }
    let first = dtypes.next().unwrap_or(y.dtype());
    y.astype(dtypes.fold(first, Dtype::promote))
}

fn ones(dims: usize) -> Result<Array> {
    Array::ones(&[dims], Dtype::Float32)
}

fn zeros(dims: usize) -> Result<Array> {
    Array::zeros(&[dims], Dtype::Float32)
}

/// Scale and bias of a normalisation, if it has them.
struct Affine<'a> {
    weight: Option<&'a Array>,
    bias: Option<&'a Array>,
}

impl Affine<'_> {
    /// A normalised array, scaled and shifted, in the dtype of the operands.
    fn of(&self, mut y: Array, operands: &[&Array]) -> Result<Array> {
        if let Some(weight) = self.weight {
            y = y.multiply(weight)?;
        }
        if let Some(bias) = self.bias {
            y = y.add(bias)?;
        }
        let own = self.weight.into_iter().chain(self.bias);
        Ok(rounded(y, &operands.iter().copied().chain(own).collect::<Vec<_>>()))
    }
}

/// Normalises over the spatial axes. `pool` combines the statistics of channels.
fn normalised(
    op: &str,
    x: &Array,
    least: usize,
    eps: f64,
    affine: &Affine<'_>,
    pool: impl Fn(Array) -> Result<Array>,
) -> Result<Array> {
    if x.ndim() < least {
        let text = format!(
            "The input has shape {}. Pass at least {least} axes, the first for the batch, the last for channels.",
            Show(x.shape())
        );
        return Err(Error::value(op, text));
    }
    let axes: Vec<isize> = (1..x.ndim() as isize - 1).collect();
    // Without axes, the mean is the array itself.
    let mean = |a: &Array| if axes.is_empty() { Ok(a.clone()) } else { a.mean(KeepDims(&axes)) };
    let wide = widened(x);
    let centred = wide.subtract(&pool(mean(&wide)?)?)?;
    let variance = pool(mean(&centred.square()?)?)?;
    affine.of(centred.multiply(&(&variance + eps)?.rsqrt()?)?, &[x])
}

/// Normalises the last axis to mean 0 and variance 1, then multiplies by the weight and adds the bias (Ba et al.,
/// "Layer normalization", 2016). The shape `(..., dims)` is kept.
///
/// ```
/// use ultramarine::Array;
/// use ultramarine_nn::{Layer, LayerNorm};
/// let x = Array::from_slice(&[1.0f32, 3.0, 10.0, 20.0], &[2, 2])?;
/// let y = LayerNorm::new(2)?.forward(&x)?.round(2)?;
/// assert_eq!(y.to_vec::<f32>()?, [-1.0, 1.0, -1.0, 1.0]);
/// # Ok::<(), ultramarine::Error>(())
/// ```
#[derive(Module, Clone, Debug)]
pub struct LayerNorm {
    /// Factors, `(dims)`, initially ones.
    pub weight: Option<Param>,
    /// Terms, `(dims)`, initially zeros.
    pub bias: Option<Param>,
    /// Term that keeps the variance above zero; 1e-5 by default.
    pub eps: f64,
}

impl LayerNorm {
    /// Makes a layer with weight and bias.
    ///
    /// # Errors
    /// [`Error::Value`] for a size that is too large.
    pub fn new(dims: usize) -> Result<LayerNorm> {
        let (weight, bias) = (Some(ones(dims)?.into()), Some(zeros(dims)?.into()));
        Ok(LayerNorm { weight, bias, eps: EPS })
    }

    /// The layer without a bias.
    #[must_use]
    pub fn without_bias(self) -> LayerNorm {
        LayerNorm { bias: None, ..self }
    }

    /// The layer without weight and bias.
    #[must_use]
    pub fn without_affine(self) -> LayerNorm {
        LayerNorm { weight: None, bias: None, ..self }
    }

    /// Sets the term that is added to the variance; 1e-5 by default.
    #[must_use]
    pub fn eps(self, eps: f64) -> LayerNorm {
        LayerNorm { eps, ..self }
    }
}

impl Layer for LayerNorm {
    fn forward(&self, x: &Array) -> Result<Array> {
        fast::layer_norm(x, self.weight.as_deref(), self.bias.as_deref(), self.eps)
    }
}

/// Divides the last axis by the root of its mean square, and multiplies by the weight (Zhang and Sennrich, "Root mean
/// square layer normalization", 2019). The shape `(..., dims)` is kept.
#[derive(Module, Clone, Debug)]
pub struct RMSNorm {
    /// Factors, `(dims)`, initially ones.
    pub weight: Param,
    /// Term that keeps the mean square above zero; 1e-5 by default.
    pub eps: f64,
}

impl RMSNorm {
    /// Makes a layer.
    ///
    /// # Errors
    /// [`Error::Value`] for a size that is too large.
    pub fn new(dims: usize) -> Result<RMSNorm> {
        Ok(RMSNorm { weight: ones(dims)?.into(), eps: EPS })
    }

    /// Sets the term that is added to the mean square; 1e-5 by default.
    #[must_use]
    pub fn eps(self, eps: f64) -> RMSNorm {
        RMSNorm { eps, ..self }
    }
}

impl Layer for RMSNorm {
    fn forward(&self, x: &Array) -> Result<Array> {
        fast::rms_norm(x, Some(&self.weight), self.eps)
    }
}

/// Normalises each channel of each sample of `(batch, ..., dims)` over the axes between batch and channels (Ulyanov et
/// al., "Instance normalization", 2016). There has to be at least one such axis.
#[derive(Module, Clone, Debug)]
pub struct InstanceNorm {
    /// Factors, `(dims)`, if there are any.
    pub weight: Option<Param>,
    /// Terms, `(dims)`, if there are any.
    pub bias: Option<Param>,
    /// Term that keeps the variance above zero; 1e-5 by default.
    pub eps: f64,
}

impl InstanceNorm {
    /// Makes a layer without weight and bias. It accepts any number of channels.
    pub fn new() -> InstanceNorm {
        InstanceNorm::default()
    }

    /// Makes a layer with weight and bias.
    ///
    /// # Errors
    /// [`Error::Value`] for a size that is too large.
    pub fn with_affine(dims: usize) -> Result<InstanceNorm> {
        let (weight, bias) = (Some(ones(dims)?.into()), Some(zeros(dims)?.into()));
        Ok(InstanceNorm { weight, bias, eps: EPS })
    }

    /// Sets the term that is added to the variance; 1e-5 by default.
    #[must_use]
    pub fn eps(self, eps: f64) -> InstanceNorm {
        InstanceNorm { eps, ..self }
    }
}

impl Default for InstanceNorm {
    fn default() -> InstanceNorm {
        InstanceNorm { weight: None, bias: None, eps: EPS }
    }
}

impl Layer for InstanceNorm {
    fn forward(&self, x: &Array) -> Result<Array> {
        let affine = Affine { weight: self.weight.as_deref(), bias: self.bias.as_deref() };
        normalised("InstanceNorm", x, 3, self.eps, &affine, Ok)
    }
}

/// Normalises each group of channels of each sample of `(batch, ..., dims)`, over the group's channels and the axes
/// between batch and channels (Wu and He, "Group normalization", 2018).
#[derive(Module, Clone, Debug)]
pub struct GroupNorm {
    /// Terms, `(dims)`, initially zeros.
    pub bias: Option<Param>,
    /// Factors, `(dims)`, initially ones.
    pub weight: Option<Param>,
    /// Number of groups.
    pub num_groups: usize,
    /// Term that keeps the variance above zero; 1e-5 by default.
    pub eps: f64,
    /// If set, groups are neighbouring channels, as in PyTorch. Otherwise a channel belongs to the group of its index
    /// modulo the number of groups.
    pub pytorch_compatible: bool,
}

impl GroupNorm {
    /// Makes a layer with weight and bias.
    ///
    /// # Errors
    /// [`Error::Value`] if the number of channels is not a multiple of the number of groups.
    pub fn new(num_groups: usize, dims: usize) -> Result<GroupNorm> {
        if num_groups == 0 || !dims.is_multiple_of(num_groups) {
            let text = format!(
                "{dims} channels cannot be divided into {num_groups} groups. Pass a divisor."
            );
            return Err(Error::value("GroupNorm", text));
        }
        let (weight, bias) = (Some(ones(dims)?.into()), Some(zeros(dims)?.into()));
        Ok(GroupNorm { weight, bias, num_groups, eps: EPS, pytorch_compatible: false })
    }

    /// The layer without weight and bias.
    #[must_use]
    pub fn without_affine(self) -> GroupNorm {
        GroupNorm { weight: None, bias: None, ..self }
    }

    /// Sets the term that is added to the variance; 1e-5 by default.
    #[must_use]
    pub fn eps(self, eps: f64) -> GroupNorm {
        GroupNorm { eps, ..self }
    }

    /// Sets whether a group consists of neighbouring channels, as in PyTorch; false by default. See
    /// [`GroupNorm::pytorch_compatible`](struct@GroupNorm#structfield.pytorch_compatible).
    #[must_use]
    pub fn pytorch_compatible(self, pytorch_compatible: bool) -> GroupNorm {
        GroupNorm { pytorch_compatible, ..self }
    }

    /// The mean over the channels of a group, for each channel.
    fn pool(&self, statistics: Array) -> Result<Array> {
        let shape = statistics.shape();
        let (batch, groups) = (shape[0] as isize, self.num_groups as isize);
        let (sizes, axis) = match self.pytorch_compatible {
            true => ([batch, groups, -1], 2),
            false => ([batch, -1, groups], 1),
        };
        let grouped = statistics.reshape(&sizes)?;
        grouped.mean(KeepDims(axis))?.broadcast_to(grouped.shape())?.reshape(shape)
    }
}

impl Layer for GroupNorm {
    fn forward(&self, x: &Array) -> Result<Array> {
        let affine = Affine { weight: self.weight.as_deref(), bias: self.bias.as_deref() };
        normalised("GroupNorm", x, 2, self.eps, &affine, |statistics| self.pool(statistics))
    }
}

/// Normalises channels over a batch (Ioffe and Szegedy, 2015). The input is `(batch, ..., num_features)`, with two to
/// four axes.
///
/// In training mode it uses the batch's mean and variance, and updates running means of both. In evaluation mode it
/// uses the running means.
///
/// ```
/// use ultramarine::Array;
/// use ultramarine_nn::{BatchNorm, Layer};
/// let layer = BatchNorm::new(1)?;
/// layer.forward(&Array::from_slice(&[0.0f32, 2.0], &[2, 1])?)?;
/// let mean = layer.running_mean.as_ref().map(|m| m.get().to_vec::<f32>()).transpose()?;
/// assert_eq!(mean, Some(vec![0.1]));
/// # Ok::<(), ultramarine::Error>(())
/// ```
#[derive(Module, Clone, Debug)]
pub struct BatchNorm {
    /// Factors, `(num_features)`, initially ones.
    pub weight: Option<Param>,
    /// Terms, `(num_features)`, initially zeros.
    pub bias: Option<Param>,
    /// Running mean, `(num_features)`, initially zeros.
    pub running_mean: Option<State>,
    /// Running variance, `(num_features)`, initially ones.
    pub running_var: Option<State>,
    /// Term that keeps the variance above zero; 1e-5 by default.
    pub eps: f64,
    /// Weight of a batch's statistics in the running ones; 0.1 by default.
    pub momentum: f64,
    /// The mode.
    pub training: Training,
}

impl BatchNorm {
    /// Makes a layer with weight, bias and running statistics.
    ///
    /// # Errors
    /// [`Error::Value`] for a size that is too large.
    pub fn new(num_features: usize) -> Result<BatchNorm> {
        Ok(BatchNorm {
            weight: Some(ones(num_features)?.into()),
            bias: Some(zeros(num_features)?.into()),
            running_mean: Some(zeros(num_features)?.into()),
            running_var: Some(ones(num_features)?.into()),
            eps: EPS,
            momentum: 0.1,
            training: Training::default(),
        })
    }

    /// The layer without weight and bias.
    #[must_use]
    pub fn without_affine(self) -> BatchNorm {
        BatchNorm { weight: None, bias: None, ..self }
    }

    /// Returns the layer without running statistics: it uses the batch's statistics in both modes.
    #[must_use]
    pub fn without_running_stats(self) -> BatchNorm {
        BatchNorm { running_mean: None, running_var: None, ..self }
    }

    /// Sets the term that is added to the variance; 1e-5 by default.
    #[must_use]
    pub fn eps(self, eps: f64) -> BatchNorm {
        BatchNorm { eps, ..self }
    }

    /// Sets the weight of a batch's statistics in the running ones; 0.1 by default.
    #[must_use]
    pub fn momentum(self, momentum: f64) -> BatchNorm {
        BatchNorm { momentum, ..self }
    }

    fn track(&self, state: &State, new: &Array, x: &Array) -> Result<()> {
        let old = state.get();
        let moved = (&widened(&old) * (1.0 - self.momentum))?.add(&(new * self.momentum)?)?;
        state.set(rounded(moved, &[&old, x]));
        Ok(())
    }
}

impl Layer for BatchNorm {
    fn forward(&self, x: &Array) -> Result<Array> {
        let wrong = |text: String| Err(Error::value("BatchNorm", text));
        let shape = x.shape();
        if !(2..=4).contains(&shape.len()) {
            return wrong(format!("The input has shape {}. Pass 2, 3 or 4 axes.", Show(shape)));
        }
        let affine = Affine { weight: self.weight.as_deref(), bias: self.bias.as_deref() };
        let wide = widened(x);
        if let (false, Some(mean), Some(variance)) =
            (*self.training, &self.running_mean, &self.running_var)
        {
            let (mean, variance) = (mean.get(), variance.get());
            let factor = (&widened(&variance) + self.eps)?.rsqrt()?;
            return affine.of(wide.subtract(&mean)?.multiply(&factor)?, &[x, &mean, &variance]);
        }
        let count: usize = shape[..shape.len() - 1].iter().product();
        if *self.training && count == 1 {
            return wrong(format!(
                "The input of shape {} has one value per channel. Pass more in training.",
                Show(shape)
            ));
        }
        let axes: Vec<isize> = (0..shape.len() as isize - 1).collect();
        let mean = wide.mean(&axes)?;
        let centred = wide.subtract(&mean)?;
        let variance = centred.square()?.mean(&axes)?;
        if let (true, Some(running_mean), Some(running_var)) =
            (*self.training, &self.running_mean, &self.running_var)
        {
            self.track(running_mean, &mean, x)?;
            let unbiased = (&variance * (count as f64 / count.saturating_sub(1).max(1) as f64))?;
            self.track(running_var, &unbiased, x)?;
        }
        affine.of(centred.multiply(&(&variance + self.eps)?.rsqrt()?)?, &[x])
    }
}
