//! Resampling of spatial axes.

use super::base::{Layer, Module};
use ultramarine::shape::Show;
use ultramarine::{Array, Dtype, Error, KeepDims, PadMode, Result, stack, where_};

/// Integer factors up to this one are computed one phase at a time.
const MOST_PHASES: f64 = 8.0;
/// Axes up to this length are resampled by a matrix product.
const LONGEST_MATRIX: usize = 256;

/// The method by which [`Upsample`] computes elements between those of the input.
#[derive(Module, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Interpolation {
    /// The nearest element.
    #[default]
    Nearest,
    /// Linear, in each axis.
    Linear,
    /// Cubic, in each axis.
    Cubic,
}

/// Resamples the spatial axes of `(batch, ..., channels)` by factors.
///
/// ```
/// use ultramarine::Array;
/// use ultramarine_nn::{Interpolation, Layer, Upsample};
/// let x = Array::from_slice(&[0.0f32, 4.0], &[1, 2, 1])?;
/// let y = Upsample::new(2.0, Interpolation::Linear).forward(&x)?;
/// assert_eq!(y.to_vec::<f32>()?, [0.0, 1.0, 3.0, 4.0]);
/// # Ok::<(), ultramarine::Error>(())
/// ```
#[derive(Module, Clone, Debug)]
pub struct Upsample {
    /// The factors of the spatial axes. A single factor applies to all axes.
    pub scale_factor: Vec<f64>,
    /// The method.
    pub mode: Interpolation,
    /// If set, the first and the last elements of input and output are at the same positions.
    pub align_corners: bool,
    /// If set, smooths before an axis becomes shorter.
    pub antialias: bool,
}

impl Upsample {
    /// Makes a layer with the same factor for all spatial axes. Factors below 1 make them shorter.
    pub fn new(scale_factor: f64, mode: Interpolation) -> Upsample {
        Upsample::with_factors([scale_factor], mode)
    }

    /// Makes a layer with a factor for each spatial axis. If the number of factors differs from that of the axes, the
    /// call returns an error.
    pub fn with_factors(factors: impl Into<Vec<f64>>, mode: Interpolation) -> Upsample {
        let scale_factor = factors.into();
        Upsample { scale_factor, mode, align_corners: false, antialias: false }
    }

    /// Sets whether the first and the last elements of input and output are at the same positions; false by default.
    #[must_use]
    pub fn align_corners(self, align_corners: bool) -> Upsample {
        Upsample { align_corners, ..self }
    }

    /// Sets whether the layer smooths before an axis becomes shorter; false by default.
    #[must_use]
    pub fn antialias(self, antialias: bool) -> Upsample {
        Upsample { antialias, ..self }
    }

    /// The factors of the spatial axes of an input.
    fn factors(&self, x: &Array) -> Result<Vec<f64>> {
        let wrong = |text: String| Err(Error::value("Upsample", text));
        if x.ndim() < 3 {
            return wrong(format!(
                "The input has shape {}. Pass (batch, ..., channels) with a spatial axis.",
                Show(x.shape())
            ));
        }
        let spatial = x.ndim() - 2;
        let factors = match &self.scale_factor[..] {
            [one] => vec![*one; spatial],
            all if all.len() == spatial => all.to_vec(),
            all => {
                return wrong(format!(
                    "There are {} factors for {spatial} spatial axes. Pass one number, or one for each axis.",
                    all.len()
                ));
            }
        };
        match factors.iter().find(|f| !(**f > 0.0 && f.is_finite())) {
            Some(factor) => wrong(format!("A factor is {factor}. Pass positive numbers.")),
            None => Ok(factors),
        }
    }
}

impl Layer for Upsample {
    fn forward(&self, x: &Array) -> Result<Array> {
        if self.antialias && (self.align_corners || self.mode == Interpolation::Nearest) {
            let text =
                "antialias does not work with the mode Nearest or align_corners. Leave it out.";
            return Err(Error::value("Upsample", text));
        }
        let factors = self.factors(x)?;
        let taps: Taps = match self.mode {
            Interpolation::Nearest => return nearest(x, &factors),
            Interpolation::Linear => LINEAR,
            Interpolation::Cubic => CUBIC,
        };
        let mut x = match x.dtype() {
            Dtype::Float64 => x.clone(),
            _ => x.astype(Dtype::Float32),
        };
        for (axis, factor) in (1..).zip(factors) {
            if factor == 1.0 {
                continue;
            }
            let multiple = factor.fract() == 0.0 && factor > 1.0 && factor <= MOST_PHASES;
            if multiple && !self.align_corners && !self.antialias {
                x = by_phases(&x, axis, factor as usize, taps)?;
                continue;
            }
            let positions = positions(x.shape()[axis], factor, self.align_corners, x.dtype())?;
            x = match self.antialias {
                true => antialiased(&x, axis, &positions, factor, self.mode)?,
                false => by_taps(&x, axis, &positions, taps)?,
            };
        }
        Ok(x)
    }
}

/// The inputs for an output at position t, from 0 to 1, between two inputs: their offsets from the input before it, and
/// their weights. A weight is a polynomial of t; the coefficients begin with the constant.
type Taps = &'static [(i64, [f64; 4])];

const LINEAR: Taps = &[(0, [1.0, -1.0, 0.0, 0.0]), (1, [0.0, 1.0, 0.0, 0.0])];

/// Keys' kernel with a = -0.75.
const CUBIC: Taps = &[
    (-1, [0.0, -0.75, 1.5, -0.75]),
    (0, [1.0, 0.0, -2.25, 1.25]),
    (1, [0.0, 0.75, 1.5, -1.25]),
    (2, [0.0, 0.0, -0.75, 0.75]),
];

fn weight(of: &[f64; 4], t: f64) -> f64 {
    of.iter().rev().fold(0.0, |sum, c| sum * t + c)
}

fn weights(of: &[f64; 4], t: &Array) -> Result<Array> {
    let [constant, factors @ ..] = of;
    let highest = factors.iter().rposition(|c| *c != 0.0).unwrap_or(0);
    let mut sum = (t * factors[highest])?;
    for factor in factors[..highest].iter().rev() {
        sum = (&sum + *factor)?.multiply(t)?;
    }
    &sum + *constant
}

/// The positions of outputs among `n` inputs.
fn positions(n: usize, factor: f64, align_corners: bool, dtype: Dtype) -> Result<Array> {
    let m = (factor * n as f64) as usize;
    let (step, start) = match align_corners {
        true => ((n as f64 - 1.0) / (m as f64 - 1.0).max(1.0), 0.0),
        false => {
            let step = 1.0 / factor;
            (step, ((m as f64 - 1.0) * step - n as f64 + 1.0) / 2.0)
        }
    };
    &(&Array::arange(0.0, m as f64, 1.0, dtype)? * step)? - start
}

fn sum_of(terms: Vec<Array>) -> Result<Array> {
    let mut terms = terms.into_iter();
    let first = terms.next().ok_or_else(|| Error::runtime("Upsample", "there are no taps"))?;
    terms.try_fold(first, |sum, term| sum.add(&term))
}

/// `size` elements of an axis.
fn along(x: &Array, axis: usize, start: usize, size: usize) -> Result<Array> {
    let mut starts = vec![0; x.ndim()];
    let mut stops: Vec<isize> = x.shape().iter().map(|n| *n as isize).collect();
    (starts[axis], stops[axis]) = (start as isize, (start + size) as isize);
    x.slice(&starts, &stops, &vec![1; x.ndim()])
}

/// Resamples by an integer factor: for each phase, the outputs between two inputs are sums of shifted inputs.
fn by_phases(x: &Array, axis: usize, multiple: usize, taps: Taps) -> Result<Array> {
    let n = x.shape()[axis];
    let margin = taps.len() / 2;
    let mut widths = vec![(0, 0); x.ndim()];
    widths[axis] = (margin, margin);
    let padded = x.pad(&widths, PadMode::Edge, 0)?;
    let mut phases = Vec::new();
    for i in 0..multiple {
        let position = (i as f64 + 0.5) / multiple as f64 - 0.5;
        let before = position.floor();
        let mut terms = Vec::new();
        for (offset, polynomial) in taps {
            let weight = weight(polynomial, position - before);
            if weight != 0.0 {
                let start = margin as i64 + before as i64 + offset;
                terms.push((&along(&padded, axis, start as usize, n)? * weight)?);
            }
        }
        phases.push(sum_of(terms)?);
    }
    let mut shape = x.shape().to_vec();
    shape[axis] *= multiple;
    stack(&phases, axis as isize + 1)?.reshape(&shape)
}

/// The product of a matrix with one axis of the array.
fn by_matrix(x: &Array, axis: usize, matrix: &Array) -> Result<Array> {
    let mut shape = x.shape().to_vec();
    let (before, after): (usize, usize) =
        (shape[..axis].iter().product(), shape[axis + 1..].iter().product());
    let flat = x.reshape(&[before, shape[axis], after])?;
    shape[axis] = matrix.shape()[0];
    matrix.matmul(&flat)?.reshape(&shape)
}

/// Resamples at any positions: by a matrix, or along long axes by gathering elements.
fn by_taps(x: &Array, axis: usize, positions: &Array, taps: Taps) -> Result<Array> {
    let n = x.shape()[axis];
    let before = positions.floor()?;
    let (zero, last) = (before.scalar_like(0)?, before.scalar_like(n as f64 - 1.0)?);
    let t = positions.subtract(&before)?;
    let weighted = taps.iter().map(|(offset, polynomial)| {
        let index = (&before + *offset)?.maximum(&zero)?.minimum(&last)?;
        Ok((index, weights(polynomial, &t)?))
    });
    let weighted = weighted.collect::<Result<Vec<_>>>()?;
    if n <= LONGEST_MATRIX {
        let inputs = Array::arange(0.0, n as f64, 1.0, positions.dtype())?;
        let row = |(index, weight): &(Array, Array)| {
            let chosen = index.expand_dims(1)?.equal(&inputs)?;
            where_(&chosen, &weight.expand_dims(1)?, 0)
        };
        let rows = weighted.iter().map(row).collect::<Result<_>>()?;
        return by_matrix(x, axis, &sum_of(rows)?);
    }
    let mut shape = vec![1isize; x.ndim()];
    shape[axis] = -1;
    let term = |(index, weight): &(Array, Array)| {
        let taken = x.take(index.astype(Dtype::Int32), Some(axis as isize))?;
        taken.multiply(&weight.reshape(&shape)?)
    };
    sum_of(weighted.iter().map(term).collect::<Result<_>>()?)
}

/// Weights by distance. They are wider if the axis becomes shorter.
fn antialiased(
    x: &Array,
    axis: usize,
    positions: &Array,
    factor: f64,
    mode: Interpolation,
) -> Result<Array> {
    let inputs = Array::arange(0.0, x.shape()[axis] as f64, 1.0, positions.dtype())?;
    let distances = (&positions.expand_dims(1)?.subtract(&inputs)?.abs()? * factor.min(1.0))?;
    let weights = match mode {
        Interpolation::Cubic => smooth_cubic(&distances)?,
        _ => (1.0 - &distances)?.maximum(0)?,
    };
    by_matrix(x, axis, &weights.divide(&weights.sum(KeepDims(1))?)?)
}

/// Keys' kernel with a = -0.5, as a function of distances.
fn smooth_cubic(d: &Array) -> Result<Array> {
    let near = (&(&(d * 1.5)? - 2.5)?.multiply(d)?.multiply(d)? + 1.0)?;
    let far = (&(&(d * -0.5)? + 2.5)?.multiply(d)? - 4.0)?;
    let far = (&far.multiply(d)? + 2.0)?;
    let far = where_(&d.less(2.0)?, &far, 0)?;
    where_(&d.less(1.0)?, &near, &far)
}

/// Integer factors repeat elements; other factors gather them.
fn nearest(x: &Array, factors: &[f64]) -> Result<Array> {
    let mut x = x.clone();
    let whole = |factor: f64| factor.fract() == 0.0;
    for (axis, factor) in (1..).zip(factors.iter().copied()) {
        if whole(factor) {
            continue;
        }
        let n = x.shape()[axis];
        let m = (factor * n as f64) as usize;
        let outputs = Array::arange(0.0, m as f64, 1.0, Dtype::Float32)?;
        let step = n as f64 / m.max(1) as f64;
        let indices = match m > n {
            true => (&(&(&outputs + 0.5)? * step)? - 0.5)?.round(0)?,
            false => (&outputs * step)?,
        };
        x = x.take(indices.astype(Dtype::Int32), Some(axis as isize))?;
    }
    let (batch, channels) = (x.shape()[0], x.shape()[x.ndim() - 1]);
    let (mut split, mut repeated, mut merged) = (vec![batch], vec![batch], vec![batch]);
    for (n, factor) in x.shape()[1..].iter().zip(factors.iter().copied()) {
        let multiple = if whole(factor) { factor as usize } else { 1 };
        split.extend([*n, 1]);
        repeated.extend([*n, multiple]);
        merged.push(n * multiple);
    }
    [&mut split, &mut repeated, &mut merged].into_iter().for_each(|shape| shape.push(channels));
    x.reshape(&split)?.broadcast_to(&repeated)?.reshape(&merged)
}
