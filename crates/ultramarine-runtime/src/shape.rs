//! Shapes, strides, axes and broadcasting.

use crate::error::{Error, Result};
use smallvec::SmallVec;

#[doc(hidden)]
pub use ultramarine_abi::dlpack::{byte_range, element_range};

/// Sizes of an array's dimensions.
pub type Shape = SmallVec<[usize; 4]>;
/// Steps between neighbours along each dimension, in elements. They may be negative, or 0 for
/// broadcast dimensions.
pub type Strides = SmallVec<[isize; 4]>;

/// The most dimensions that an array may have.
pub const MAX_NDIM: usize = ultramarine_abi::MAX_NDIM;

/// Returns the number of elements of a shape, or `usize::MAX` if the number does not fit.
#[inline]
pub fn size(shape: &[usize]) -> usize {
    shape.iter().fold(1, |n, d| n.saturating_mul(*d))
}

/// Bytes of the largest element.
const LARGEST: usize = 8;

/// Checks that an array may have the shape. It may have at most [`MAX_NDIM`] dimensions, and its
/// size in bytes has to fit the address space for every dtype, because the array may be converted
/// later.
///
/// # Errors
/// [`Error::Value`] if not.
pub fn check(op: &str, shape: &[usize]) -> Result<()> {
    if shape.len() > MAX_NDIM {
        return Err(Error::value(
            op,
            format!("{} dimensions are too many. Use at most {MAX_NDIM}.", shape.len()),
        ));
    }
    // Shapes of size zero must not overflow either, because their strides are computed.
    shape
        .iter()
        .try_fold(LARGEST, |n, d| n.checked_mul((*d).max(1)))
        .filter(|n| *n <= isize::MAX as usize)
        .map(drop)
        .ok_or_else(|| {
            Error::value(
                op,
                format!(
                    "Shape {} is too large for the address space. Use smaller sizes.",
                    Show(shape)
                ),
            )
        })
}

/// Returns the strides of a row-major array without gaps. If the shape is too large for an array,
/// strides saturate at `isize::MAX`.
#[inline]
pub fn contiguous_strides(shape: &[usize]) -> Strides {
    let mut strides = Strides::from_elem(1, shape.len());
    for i in (0..shape.len().saturating_sub(1)).rev() {
        let n = isize::try_from(shape[i + 1].max(1)).unwrap_or(isize::MAX);
        strides[i] = strides[i + 1].saturating_mul(n);
    }
    strides
}

/// Returns the size and stride of each axis, in the form that [`byte_range`] and [`element_range`]
/// take.
#[doc(hidden)]
#[inline]
pub fn axes(shape: &[usize], strides: &[isize]) -> impl Iterator<Item = (i64, i64)> {
    shape.iter().zip(strides).map(|(size, stride)| (*size as i64, *stride as i64))
}

/// Returns true if an array of this shape and these strides is row-major without gaps. Strides of
/// dimensions of size 1 do not matter.
pub fn is_contiguous(shape: &[usize], strides: &[isize]) -> bool {
    let mut expected = 1;
    for (&n, &s) in shape.iter().zip(strides).rev() {
        if n == 0 {
            return true;
        }
        if n != 1 {
            if s != expected {
                return false;
            }
            expected *= n as isize;
        }
    }
    true
}

/// Returns the shape that two shapes broadcast to, by NumPy's rule: sizes are aligned from the last
/// dimension, and a size of 1 matches any other.
///
/// ```
/// use ultramarine_runtime::shape::broadcast_shapes;
/// assert_eq!(broadcast_shapes(&[4, 1], &[3])?[..], [4, 3]);
/// assert!(broadcast_shapes(&[2], &[3]).is_err());
/// # Ok::<(), ultramarine_runtime::Error>(())
/// ```
///
/// # Errors
/// [`Error::Value`] when the shapes do not fit.
pub fn broadcast_shapes(a: &[usize], b: &[usize]) -> Result<Shape> {
    broadcast("broadcast_shapes", a, b)
}

/// Like [`broadcast_shapes`], for the operands of `op`. Errors name `op`.
///
/// # Errors
/// [`Error::Value`] when the shapes do not broadcast.
pub fn broadcast(op: &str, a: &[usize], b: &[usize]) -> Result<Shape> {
    if a == b {
        return Ok(Shape::from_slice(a));
    }
    let (long, short) = if a.len() >= b.len() { (a, b) } else { (b, a) };
    let mut out = Shape::from_slice(long);
    let lead = long.len() - short.len();
    for (i, &n) in short.iter().enumerate() {
        let m = &mut out[lead + i];
        if *m == 1 {
            *m = n;
        } else if n != 1 && n != *m {
            return Err(Error::value(
                op,
                format!("Shapes {} and {} cannot be broadcast. {BROADCAST}", Show(a), Show(b)),
            ));
        }
    }
    Ok(out)
}

/// Converts an axis that may count from the end to one that counts from the start. Returns `None`
/// if it is out of range.
#[inline]
pub fn from_start(axis: isize, ndim: usize) -> Option<usize> {
    let axis = if axis < 0 { axis.checked_add_unsigned(ndim)? } else { axis };
    usize::try_from(axis).ok().filter(|a| *a < ndim)
}

/// Converts an axis that may count from the end to one that counts from the start. Errors name
/// `op`.
///
/// # Errors
/// [`Error::Index`] if the axis is out of range.
pub fn normalize_axis(op: &str, axis: isize, ndim: usize) -> Result<usize> {
    from_start(axis, ndim).ok_or_else(|| {
        let text = format!("Invalid axis {axis} for array with {ndim} dimensions.");
        Error::index(op, format!("{text} {}", AxisRange(ndim)))
    })
}

/// The remedy that errors give for shapes that do not broadcast.
#[doc(hidden)]
pub const BROADCAST: &str = "Make sizes equal or 1, counted from the last axis.";

/// The remedy that errors give for an axis that is out of range. The field is the number of
/// dimensions.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub struct AxisRange(pub usize);

impl std::fmt::Display for AxisRange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            0 => f.write_str("A scalar has no axes: name none, or reshape it."),
            n => write!(f, "Use an axis from -{n} to {}.", n - 1),
        }
    }
}

/// The remedy that errors give for an index that is out of range. The field is the size of the
/// axis.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub struct IndexRange(pub usize);

impl std::fmt::Display for IndexRange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            0 => f.write_str("The axis is empty: index another one."),
            n => write!(f, "Use an index from -{n} to {}.", n - 1),
        }
    }
}

/// Converts axes to ones that count from the start, and sorts them. The caller makes the errors,
/// because they differ from operation to operation.
///
/// # Errors
/// `out_of_range` for an axis that is out of range, `twice` if an axis occurs twice.
pub fn distinct_axes(
    axes: &[isize],
    ndim: usize,
    out_of_range: impl Fn(isize) -> Error,
    twice: impl FnOnce() -> Error,
) -> Result<SmallVec<[usize; 4]>> {
    let mut out: SmallVec<[usize; 4]> = (axes.iter())
        .map(|a| from_start(*a, ndim).ok_or_else(|| out_of_range(*a)))
        .collect::<Result<_>>()?;
    out.sort_unstable();
    if out.windows(2).any(|w| w[0] == w[1]) {
        return Err(twice());
    }
    Ok(out)
}

/// Displays a shape in Python's notation: `(2, 3)`, `(4,)`, `()`.
pub struct Show<'a>(pub &'a [usize]);

impl std::fmt::Display for Show<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "(")?;
        for (i, n) in self.0.iter().enumerate() {
            if i > 0 {
                write!(f, ", ")?;
            }
            write!(f, "{n}")?;
        }
        write!(f, "{}", if self.0.len() == 1 { ",)" } else { ")" })
    }
}
