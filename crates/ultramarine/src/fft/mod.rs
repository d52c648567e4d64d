//! Discrete Fourier transforms.
//!
//! All transforms are computed in float32 and complex64: other real dtypes are converted to float32, and spectra are
//! complex64. `float64` therefore loses precision, as in MLX.
//!
//! The forward transform of n elements is `y[k] = sum over j of x[j] e^(-2 pi i j k / n)`; the inverse one has
//! the other sign and, unless a [`Norm`] says otherwise, a factor of 1 / n. Transforms of real numbers
//! (`rfft` and its family) give the first n / 2 + 1 elements (rounded down) of the last transformed axis, as the others are
//! their complex conjugates in reverse.
//!
//! If another size than the axis' own is requested, the axis is cut off at the end, or zeros are appended.
//!
//! # Example
//! ```
//! use ultramarine::{Array, fft};
//!
//! // Two waves in a second of 64 samples, of 5 and 12 hertz.
//! let wave = |t: f32, hertz: f32| (std::f32::consts::TAU * hertz * t).sin();
//! let samples: Vec<f32> = (0..64).map(|i| i as f32 / 64.0).map(|t| wave(t, 5.0) + wave(t, 12.0)).collect();
//! let signal = Array::from_slice(&samples, &[64])?;
//!
//! let spectrum = fft::rfft(&signal, None, -1, fft::Norm::Backward)?;
//! assert_eq!(spectrum.shape(), [33]);
//! let frequencies = fft::rfftfreq(64, 1.0 / 64.0)?;
//! let strongest = spectrum.abs()?.argsort(None)?.slice(&[31], &[33], &[1])?;
//! let mut found = frequencies.take(&strongest, None)?.to_vec::<f32>()?;
//! found.sort_by(f32::total_cmp);
//! assert_eq!(found, [5.0, 12.0]);
//!
//! let back = fft::irfft(&spectrum, Some(64), -1, fft::Norm::Backward)?;
//! let off = back.subtract(&signal)?.abs()?.max(None)?;
//! assert!(off.item::<f32>()? < 1e-5);
//! # Ok::<(), ultramarine::Error>(())
//! ```

// The public functions. Their operation, with its rules, is in `ops/fft`.

mod frequencies;
mod short_time;

pub use frequencies::{fftfreq, fftshift, ifftshift, rfftfreq};
pub use short_time::{IstftOptions, StftOptions, istft, stft};

use crate::error::{Error, Result, bail, ensure};
use crate::ops::fft::{Transform, half};
use crate::ops::rules::builders::{like, slice_axis};
use crate::ops::shape::axes::{Axis, one};
use crate::ops::shape::{axes::Axes, pad::PadMode};
use crate::{array::Array, dtype::Dtype, shape};
use smallvec::SmallVec;
use std::str::FromStr;
use ultramarine_abi::schema::fft as code;

/// Selects the directions of transforms that have a factor. A forward and an inverse transform with the same `Norm`
/// together return the input.
///
/// ```
/// use ultramarine::{Array, fft::{Norm, fft}};
/// let x = Array::from_slice(&[1.0f32, 1.0, 1.0, 1.0], &[4])?;
/// let sum = |norm| fft(&x, None, -1, norm)?.real()?.to_vec::<f32>().map(|y| y[0]);
/// assert_eq!([sum(Norm::Backward)?, sum(Norm::Ortho)?, sum(Norm::Forward)?], [4.0, 2.0, 1.0]);
/// # Ok::<(), ultramarine::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Norm {
    /// Inverse transforms have the factor 1 / n.
    #[default]
    Backward,
    /// Both directions have the factor 1 / sqrt(n), so that lengths of vectors are preserved.
    Ortho,
    /// Forward transforms have the factor 1 / n.
    Forward,
}

impl Norm {
    /// The factor of a transform of `n` elements.
    fn factor(self, n: usize, inverse: bool) -> f64 {
        match (self, inverse) {
            (Norm::Backward, false) | (Norm::Forward, true) => 1.0,
            (Norm::Ortho, _) => 1.0 / (n as f64).sqrt(),
            _ => 1.0 / n as f64,
        }
    }
}

impl FromStr for Norm {
    type Err = Error;

    /// Returns the norm of a name: `backward`, `ortho` or `forward`.
    ///
    /// # Errors
    /// [`Error::Value`] for another name.
    fn from_str(name: &str) -> Result<Norm> {
        match name {
            "backward" => Ok(Norm::Backward),
            "ortho" => Ok(Norm::Ortho),
            "forward" => Ok(Norm::Forward),
            _ => Err(Error::value(
                "fft",
                format!("Invalid norm '{name}'. Use 'backward', 'ortho' or 'forward'."),
            )),
        }
    }
}

/// A family of transforms.
#[derive(Clone, Copy)]
struct Family {
    name: &'static str,
    real: bool,
    inverse: bool,
}

impl Family {
    /// Checks the requested sizes and axes. `None` means that no transform is needed.
    fn plan(
        self,
        a: &Array,
        s: Option<&[usize]>,
        axes: Option<&[isize]>,
    ) -> Result<Option<Vec<(usize, usize)>>> {
        let (op, ndim) = (self.name, a.ndim());
        if s.is_some() && axes.is_none() {
            bail!(
                op,
                "`axes` should not be `None` if `s` is not `None`. Pass the axis of each size in `s`."
            );
        }
        let out_of_range = |axis: isize| {
            let text = format!("Invalid axis {axis} for array with {ndim} dimensions.");
            Error::index(op, format!("{text} {}", shape::AxisRange(ndim)))
        };
        let place = |axis: isize| shape::from_start(axis, ndim);
        if s.is_none() {
            axes.unwrap_or_default()
                .iter()
                .try_for_each(|axis| place(*axis).map(drop).ok_or_else(|| out_of_range(*axis)))?;
        }
        ensure!(ndim != 0, op, "Requires array with at least one dimension. Reshape it to (1,).");
        let all: SmallVec<[isize; 4]> = (0..ndim as isize).collect();
        let axes = axes.unwrap_or(&all);
        if s.is_some_and(|s| s.len() != axes.len()) {
            bail!(op, "Shape and axes have different sizes. Pass an axis for each size in `s`.");
        }
        // Axes that are out of range may also occur twice.
        let same = |a: isize, b: isize| match (place(a), place(b)) {
            (None, None) => a == b,
            (a, b) => a == b,
        };
        if (1..axes.len()).any(|i| axes[..i].iter().any(|a| same(*a, axes[i]))) {
            bail!(op, "Duplicated axis received {axes:?}. Name each axis once.");
        }
        let mut plan = Vec::with_capacity(axes.len());
        for (i, &axis) in axes.iter().enumerate() {
            let at = place(axis).ok_or_else(|| out_of_range(axis))?;
            let own = a.shape()[at];
            let whole = if self.real && self.inverse && i + 1 == axes.len() {
                2 * own.saturating_sub(1)
            } else {
                own
            };
            plan.push((at, s.map_or(whole, |s| s[i])));
        }
        if plan.iter().any(|(_, n)| *n == 0) {
            let sizes: Vec<usize> = plan.iter().map(|(_, n)| *n).collect();
            bail!(op, "Invalid FFT output size requested {sizes:?}. Pass sizes of at least 1.");
        }
        Ok(if plan.is_empty() { None } else { Some(plan) })
    }

    /// Transforms along several axes. For a transform of real numbers, the last axis has the real transform.
    fn run(
        self,
        a: &Array,
        s: Option<&[usize]>,
        axes: Option<&[isize]>,
        norm: Norm,
    ) -> Result<Array> {
        a.computable(self.name)?;
        let Some(plan) = self.plan(a, s, axes)? else { return Ok(a.clone()) };
        let Some((&(last_axis, last), rest)) = plan.split_last() else { return Ok(a.clone()) };
        let last_in = if self.real && self.inverse { half(last) } else { last };
        let dtype = if self.real && !self.inverse { Dtype::Float32 } else { Dtype::Complex64 };
        let mut a = fitted(a, rest, (last_axis, last_in))?.try_astype(dtype)?;
        let one = |a: &Array, axis: usize, n: usize, code: u32| {
            Transform { code, axis, n, scale: norm.factor(n, self.inverse) }.of(a)
        };
        let plain = if self.inverse { code::BACKWARD } else { code::FORWARD };
        if !self.inverse {
            a = one(&a, last_axis, last, if self.real { code::REAL } else { plain })?;
        }
        for &(axis, n) in rest.iter().rev() {
            a = one(&a, axis, n, plain)?;
        }
        if self.inverse {
            a = one(&a, last_axis, last, if self.real { code::REAL_BACKWARD } else { plain })?;
        }
        Ok(a)
    }
}

/// The array, cut off or padded with zeros to these sizes of the axes.
fn fitted(a: &Array, axes: &[(usize, usize)], last: (usize, usize)) -> Result<Array> {
    let mut a = a.clone();
    let mut widths: SmallVec<[(usize, usize); 4]> = SmallVec::from_elem((0, 0), a.ndim());
    for &(axis, n) in axes.iter().chain([&last]) {
        let own = a.shape()[axis];
        if n < own {
            a = slice_axis(&a, axis, 0, n)?;
        }
        widths[axis].1 = n.saturating_sub(own);
    }
    a.pad(&widths, PadMode::Constant, like(&a, 0.0))
}

macro_rules! transforms {
    ($real:literal $inverse:literal;
     $(#[$one_doc:meta])* $one:ident
     $(#[$two_doc:meta])* $two:ident
     $(#[$many_doc:meta])* $many:ident) => {
        $(#[$one_doc])*
        ///
        /// `n` is the length of the transform (`None`: the axis' size): the axis is cut or padded with
        /// zeros to it. `norm` gives the factor.
        ///
        /// # Errors
        /// [`Error::Index`] for an axis out of range, [`Error::Value`] for a length of 0.
        pub fn $one(a: &Array, n: Option<usize>, axis: impl Into<Axis>, norm: Norm) -> Result<Array> {
            let axis = one(stringify!($one), axis)?;
            let family = Family { name: stringify!($one), real: $real, inverse: $inverse };
            family.run(a, n.as_ref().map(std::slice::from_ref), Some(&[axis]), norm)
        }

        $(#[$two_doc])*
        ///
        /// `s` gives the length of the transform along each axis (`None`: the axes' sizes), as `n` does for the
        /// transform along one axis. `axes` are the axes (`None` or `..`: the last two).
        ///
        /// # Errors
        #[doc = concat!("As [`", stringify!($many), "`].")]
        pub fn $two(
            a: &Array,
            s: Option<&[usize]>,
            axes: impl Into<Axes>,
            norm: Norm,
        ) -> Result<Array> {
            let family = Family { name: stringify!($two), real: $real, inverse: $inverse };
            let axes = axes.into().named(a.ndim());
            family.run(a, s, Some(axes.as_deref().unwrap_or(&[-2, -1])), norm)
        }

        $(#[$many_doc])*
        ///
        /// `s` gives the length of the transform along each axis (`None`: the axes' sizes), as `n` does for the
        /// transform along one axis. `axes` are the axes (`..`: all; not allowed with `s`). Without any axis the array
        /// is returned unchanged.
        ///
        /// # Errors
        /// [`Error::Index`] for an axis out of range; [`Error::Value`] for an axis that occurs twice, a length of 0, a
        /// number of lengths other than that of the axes, or a 0-d array.
        pub fn $many(
            a: &Array,
            s: Option<&[usize]>,
            axes: impl Into<Axes>,
            norm: Norm,
        ) -> Result<Array> {
            let family = Family { name: stringify!($many), real: $real, inverse: $inverse };
            family.run(a, s, axes.into().named(a.ndim()).as_deref(), norm)
        }
    };
}

transforms! { false false;
    /// Returns the discrete Fourier transform along an axis: complex64 of the shape of `a`.
    ///
    /// ```
    /// use ultramarine::{Array, Complex32, fft};
    /// let x = Array::from_slice(&[1.0f32, 2.0, 3.0, 4.0], &[4])?;
    /// let y = fft::fft(&x, None, -1, fft::Norm::Backward)?;
    /// let [a, b] = [(10.0, 0.0), (-2.0, 2.0)].map(|(re, im)| Complex32::new(re, im));
    /// assert_eq!(y.to_vec::<Complex32>()?[..2], [a, b]);
    /// # Ok::<(), ultramarine::Error>(())
    /// ```
    fft
    /// Returns the discrete Fourier transform along two axes: complex64.
    fft2
    /// Returns the discrete Fourier transform along several axes: complex64.
    fftn
}
transforms! { false true;
    /// Returns the inverse transform along an axis: it undoes [`fft`].
    ifft
    /// Returns the inverse transform along two axes: it undoes [`fft2`].
    ifft2
    /// Returns the inverse transform along several axes: it undoes [`fftn`].
    ifftn
}
transforms! { true false;
    /// Returns the transform of real numbers along an axis: complex64, with n / 2 + 1 elements along
    /// it. Imaginary parts of complex numbers are ignored.
    rfft
    /// Returns the transform of real numbers along two axes: complex64, with n / 2 + 1 elements along the last one.
    rfft2
    /// Returns the transform of real numbers along several axes: complex64, with n / 2 + 1 elements along the last one.
    rfftn
}
transforms! { true true;
    /// Returns the inverse of [`rfft`]: `n` real numbers, as float32. The default is 2 (m - 1) for m elements, so an
    /// odd length requires `n`. Imaginary parts that cannot come from real numbers are ignored.
    irfft
    /// Returns the inverse of [`rfft2`]: real numbers, as float32.
    irfft2
    /// Returns the inverse of [`rfftn`]: real numbers, as float32.
    irfftn
}
