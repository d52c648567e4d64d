//! Views that rearrange axes. Views that pick elements are in `slice.rs`; `view_rules.rs` has what the evaluator and
//! the transforms do with views.

use crate::array::Array;
use crate::arrays::Arrays;
use crate::error::{Error, Result, bail, ensure};
use crate::ops::rules::shapeless::{
    SymbolicShape, SymbolicSize, aligned, broadcast_with, literal, reshaped, shapeless,
};
use crate::ops::{
    create::fill::Fill,
    shape::{
        axes::{Axes, Axis, one},
        view::View,
    },
};
use crate::shape::{self, Shape, Show};
use smallvec::SmallVec;

/// A size in a new shape, as [`Array::reshape`] takes it: non-negative, or -1 for the size that is
/// inferred from the others. `usize`, `isize`, `i32` and `i64` are sizes.
pub trait Dim: Copy {
    /// True if the type has negative numbers.
    const SIGNED: bool;
    /// Returns the number. A number that is too large saturates, and is rejected later.
    fn get(self) -> isize;
}

macro_rules! dims {
    ($($t:ty)*) => {$(
        impl Dim for $t {
            const SIGNED: bool = <$t>::MIN != 0;
            fn get(self) -> isize {
                isize::try_from(self).unwrap_or(isize::MAX)
            }
        }
    )*};
}
dims! { usize isize i32 i64 }

/// A view of `a`. A view of a constant is again a constant, unless it shows existing memory. No memory is ever filled
/// for it.
pub(crate) fn view(view: View, a: &Array, shape: Shape) -> Result<Array> {
    if let Some(value) = a.node().constant().filter(|_| !shapeless()) {
        let of_spread = a.node().op.get::<Fill>().is_some_and(|fill| fill.spread);
        let spread = of_spread || matches!(view, View::Broadcast);
        if spread || a.node().value().is_none() {
            return Ok(Fill { value, spread }.of(shape));
        }
    }
    match view.at_once(a, &shape) {
        Some(made) => Ok(made),
        None => Array::try_of(view, &[a], shape, a.dtype()),
    }
}

/// Formats dimensions, which may be negative, for errors.
fn show<D: Dim>(dims: &[D]) -> String {
    let dims: Vec<String> = dims.iter().map(|d| d.get().to_string()).collect();
    format!("({}{})", dims.join(", "), if dims.len() == 1 { "," } else { "" })
}

/// The dimensions for `size` elements. A single -1 is inferred.
fn infer<D: Dim>(
    op: &str,
    size: usize,
    dims: &[D],
    misfit: impl Fn(String) -> Error,
) -> Result<Shape> {
    let mut out = Shape::with_capacity(dims.len());
    let mut unknown = None;
    for (i, d) in dims.iter().enumerate() {
        match d.get() {
            -1 if unknown.is_some() => {
                bail!(op, "Reshape can only infer one dimension. Pass -1 for at most one of them.");
            }
            -1 => {
                unknown = Some(i);
                out.push(1);
            }
            n if n < 0 => return Err(misfit(show(dims))),
            n => out.push(n as usize),
        }
    }
    let known = out.iter().try_fold(1usize, |n, d| n.checked_mul(*d));
    if let (Some(i), Some(known)) = (unknown, known) {
        ensure!(
            known != 0,
            op,
            "Cannot infer the shape of an empty array. Pass all sizes instead of -1."
        );
        out[i] = size / known;
    }
    if out.iter().try_fold(1usize, |n, d| n.checked_mul(*d)) != Some(size) {
        return Err(misfit(show(dims)));
    }
    Ok(out)
}

impl Array {
    /// Returns the array broadcast to `shape` by NumPy's rule: sizes of 1, and missing axes in
    /// front, are repeated. No element is copied.
    ///
    /// ```
    /// use ultramarine::Array;
    /// let x = Array::from_slice(&[1, 2], &[2, 1])?;
    /// assert_eq!(x.broadcast_to(&[2, 3])?.to_vec::<i32>()?, [1, 1, 1, 2, 2, 2]);
    /// # Ok::<(), ultramarine::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Value`] if a size is neither 1 nor that of `shape`.
    pub fn broadcast_to(&self, shape: &[usize]) -> Result<Array> {
        if self.shape() == shape {
            return Ok(self.clone());
        }
        let Some(out) =
            shape::broadcast_shapes(self.shape(), shape).ok().filter(|s| s[..] == *shape)
        else {
            bail!(
                "broadcast_to",
                "Cannot broadcast array of shape {} into shape {}. {}",
                Show(self.shape()),
                Show(shape),
                shape::BROADCAST
            );
        };
        shape::check("broadcast_to", shape)?;
        view(View::Broadcast, self, out)
    }

    /// Returns the elements in row-major order under another shape. One size may be -1: it is
    /// inferred. No element is copied if strides can express the result.
    ///
    /// In a function that is [compiled](fn@crate::transforms::compile) shapeless, signed sizes are fixed numbers, as in
    /// Python. Unsigned sizes of axes that are kept or merged follow the array's sizes.
    ///
    /// ```
    /// use ultramarine::{Array, Dtype};
    /// let x = Array::arange(0.0, 6.0, 1.0, Dtype::Float32)?;
    /// assert_eq!(x.reshape(&[2, -1])?.shape(), [2, 3]);
    /// # Ok::<(), ultramarine::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Value`] if the number of elements differs, or if a size cannot be inferred.
    pub fn reshape<D: Dim>(&self, sizes: &[D]) -> Result<Array> {
        let shape = infer("reshape", self.size(), sizes, |shape| {
            let size = self.size();
            Error::value(
                "reshape",
                format!(
                    "Cannot reshape array of size {size} into shape {shape}. Choose sizes whose product is {size}."
                ),
            )
        })?;
        if *self.shape() == shape[..] {
            return Ok(self.clone());
        }
        shape::check("reshape", &shape)?;
        if shapeless() {
            let inferred = sizes.iter().position(|n| n.get() == -1);
            let sizes = match D::SIGNED {
                true => literal(&shape, inferred),
                false => aligned(self.shape(), &shape),
            };
            return reshaped(self, sizes, &[]);
        }
        view(View::Reshape, self, shape)
    }

    /// Merges the axes from `start` to `end` (inclusive) into one. Axes out of range are clamped to
    /// the array's. A 0-d array becomes 1-d.
    ///
    /// # Errors
    /// [`Error::Value`] when `start` is after `end`.
    pub fn flatten(&self, start: impl Into<Axis>, end: impl Into<Axis>) -> Result<Array> {
        let (start, end) = (one("flatten", start)?, one("flatten", end)?);
        let n = self.ndim() as isize;
        if n == 0 {
            return self.reshape(&[1usize]);
        }
        let wrap = |a: isize| if a < 0 { a + n } else { a };
        let (start, end) = (wrap(start).max(0), wrap(end).min(n - 1));
        ensure!(
            start <= end,
            "flatten",
            "start_axis must be less than or equal to end_axis, but they are {start} and {end}. Exchange them."
        );
        let (start, end) = (start as usize, end as usize);
        let merged = SymbolicSize::Product(start as u8, end as u8 + 1);
        let axes = |axes: std::ops::Range<usize>| axes.map(SymbolicSize::own);
        let sizes = axes(0..start).chain([merged]).chain(axes(end + 1..self.ndim())).collect();
        reshaped(self, sizes, &[])
    }

    /// Splits one axis into the sizes of `shape`. One size may be -1; it is inferred.
    ///
    /// # Errors
    /// [`Error::Index`] for the axis; [`Error::Value`] when the sizes differ.
    pub fn unflatten<D: Dim>(&self, axis: impl Into<Axis>, shape: &[D]) -> Result<Array> {
        let axis = one("unflatten", axis)?;
        ensure!(
            !shape.is_empty(),
            "unflatten",
            "Shape to unflatten to cannot be empty. Pass at least one size."
        );
        let at = shape::normalize_axis("unflatten", axis, self.ndim())?;
        let size = self.shape()[at];
        let cut = infer("unflatten", size, shape, |shape| {
            Error::value(
                "unflatten",
                format!(
                    "Cannot unflatten axis {axis} with size {size} into shape {shape}. Choose sizes whose product is {size}."
                ),
            )
        })?;
        let mut sizes: SymbolicShape = (0..self.ndim()).map(SymbolicSize::own).collect();
        sizes.remove(at);
        // For an array without elements, a size can be inferred only from the axis itself, as above.
        let rest = shape.iter().position(|n| n.get() == -1).filter(|_| self.size() > 0);
        sizes.insert_many(at, literal(&cut, rest));
        reshaped(self, sizes, &[])
    }

    /// Returns the array with its axes in reverse order: `(a, b, c)` becomes `(c, b, a)`. No
    /// element is copied.
    ///
    /// # Errors
    /// None at present.
    pub fn transpose(&self) -> Result<Array> {
        let axes: SmallVec<[isize; 8]> = (0..self.ndim() as isize).rev().collect();
        self.permuted(&axes)
    }

    /// Returns the array with its axes in reverse order, as [`Array::transpose`] does: of a matrix
    /// its transpose.
    ///
    /// ```
    /// use ultramarine::{Array, Dtype};
    /// let (x, w) = (Array::ones(&[5, 3], Dtype::Float32)?, Array::ones(&[4, 3], Dtype::Float32)?);
    /// assert_eq!(x.matmul(&w.t()?)?.shape(), [5, 4]);
    /// # Ok::<(), ultramarine::Error>(())
    /// ```
    ///
    /// # Errors
    /// None at present.
    pub fn t(&self) -> Result<Array> {
        self.transpose()
    }

    /// Exchanges the last two axes: `(..., m, n)` becomes `(..., n, m)`.
    ///
    /// # Errors
    /// [`Error::Value`] for fewer than two dimensions.
    pub fn matrix_transpose(&self) -> Result<Array> {
        let n = self.ndim();
        ensure!(
            n >= 2,
            "matrix_transpose",
            "Expected at least 2 dimensions, got {n}. Reshape or expand the array."
        );
        self.swapaxes(-2, -1)
    }

    /// Returns the array with its axes permuted: axis `i` of the result is axis `axes[i]` of this array. No element is
    /// copied.
    ///
    /// # Errors
    /// [`Error::Value`] when `axes` is not a permutation of the axes, [`Error::Index`]
    /// for one out of range.
    pub fn transpose_axes(&self, axes: impl Into<Axes>) -> Result<Array> {
        self.permuted(&axes.into().listed(self.ndim()))
    }

    fn permuted(&self, axes: &[isize]) -> Result<Array> {
        if axes.len() != self.ndim() {
            bail!(
                "transpose",
                "Received {} axes for array with {} dimensions. Name each axis once.",
                axes.len(),
                self.ndim()
            );
        }
        let mut order = SmallVec::<[u8; 8]>::new();
        for a in axes {
            let a = shape::normalize_axis("transpose", *a, self.ndim())? as u8;
            ensure!(
                !order.contains(&a),
                "transpose",
                "Repeat axes not allowed, but axis {a} occurs twice. Name each axis once."
            );
            order.push(a);
        }
        if order.iter().enumerate().all(|(i, a)| i == *a as usize) {
            return Ok(self.clone());
        }
        let shape = order.iter().map(|a| self.shape()[*a as usize]).collect();
        view(View::Transpose(order), self, shape)
    }

    /// Exchanges two axes. No element is copied.
    ///
    /// # Errors
    /// [`Error::Index`] for an axis out of range.
    pub fn swapaxes(&self, a: impl Into<Axis>, b: impl Into<Axis>) -> Result<Array> {
        let a = shape::normalize_axis("swapaxes", one("swapaxes", a)?, self.ndim())?;
        let b = shape::normalize_axis("swapaxes", one("swapaxes", b)?, self.ndim())?;
        let mut axes: SmallVec<[isize; 8]> = (0..self.ndim() as isize).collect();
        axes.swap(a, b);
        self.permuted(&axes)
    }

    /// Moves the axis `source` to the position `destination`; the others keep their order. No
    /// element is copied.
    ///
    /// # Errors
    /// [`Error::Index`] for an axis out of range.
    pub fn moveaxis(&self, source: impl Into<Axis>, destination: impl Into<Axis>) -> Result<Array> {
        let from = shape::normalize_axis("moveaxis", one("moveaxis", source)?, self.ndim())?;
        let to = shape::normalize_axis("moveaxis", one("moveaxis", destination)?, self.ndim())?;
        let mut axes: SmallVec<[isize; 8]> = (0..self.ndim() as isize).collect();
        let axis = axes.remove(from);
        axes.insert(to, axis);
        self.permuted(&axes)
    }

    /// Adds axes of size 1 at the positions `axes` of the result.
    ///
    /// ```
    /// use ultramarine::{Array, Dtype};
    /// let x = Array::ones(&[2, 3], Dtype::Float32)?;
    /// assert_eq!(x.expand_dims([0, -1])?.shape(), [1, 2, 3, 1]);
    /// # Ok::<(), ultramarine::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Index`] for an axis out of range, [`Error::Value`] for one named twice.
    pub fn expand_dims(&self, axes: impl Into<Axes>) -> Result<Array> {
        let Some(axes) = axes.into().named(self.ndim()) else {
            bail!(
                "expand_dims",
                "Expected the positions of the new axes, got `..`. Pass their numbers."
            );
        };
        let ndim = self.ndim() + axes.len();
        let axes = named_axes("expand_dims", &axes, ndim)?;
        let mut sizes: SymbolicShape = (0..self.ndim()).map(SymbolicSize::own).collect();
        // Insert in ascending order, so that later insertions do not move earlier ones.
        axes.iter().for_each(|a| sizes.insert(*a, SymbolicSize::Fixed(1)));
        reshaped(self, sizes, &[])
    }

    /// Removes axes of size 1: those of `axes`, or all of them (`..`).
    ///
    /// # Errors
    /// [`Error::Index`] for an axis out of range, [`Error::Value`] for one named twice
    /// or of another size.
    pub fn squeeze(&self, axes: impl Into<Axes>) -> Result<Array> {
        let own = self.shape();
        let axes = match axes.into().named(own.len()) {
            None => (0..own.len()).filter(|i| own[*i] == 1).collect(),
            Some(axes) => named_axes("squeeze", &axes, own.len())?,
        };
        if let Some(a) = axes.iter().find(|a| own[**a] != 1) {
            bail!(
                "squeeze",
                "Cannot squeeze axis {a} with size {} which is not equal to 1. Reshape, or index this axis.",
                own[*a]
            );
        }
        let left = (0..own.len()).filter(|i| !axes.contains(i)).map(SymbolicSize::own).collect();
        reshaped(self, left, &[])
    }

    /// Returns an array of at least one dimension: a 0-d array becomes `(1)`.
    ///
    /// # Errors
    /// None at present.
    pub fn atleast_1d(&self) -> Result<Array> {
        if self.ndim() == 0 { self.expand_dims([0]) } else { Ok(self.clone()) }
    }

    /// Returns an array of at least two dimensions: `(n)` becomes `(1, n)`, and a 0-d array `(1,
    /// 1)`.
    ///
    /// # Errors
    /// None at present.
    pub fn atleast_2d(&self) -> Result<Array> {
        match self.ndim() {
            0 => self.expand_dims([0, 1]),
            1 => self.expand_dims([0]),
            _ => Ok(self.clone()),
        }
    }

    /// Returns an array of at least three dimensions: `(n)` becomes `(1, n, 1)`, and `(m, n)`
    /// becomes `(m, n, 1)`.
    ///
    /// # Errors
    /// None at present.
    pub fn atleast_3d(&self) -> Result<Array> {
        match self.ndim() {
            0 => self.expand_dims([0, 1, 2]),
            1 => self.expand_dims([0, 2]),
            2 => self.expand_dims([2]),
            _ => Ok(self.clone()),
        }
    }
}

/// Returns all arrays, broadcast to their common shape; see [`Array::broadcast_to`].
///
/// # Errors
/// [`Error::Value`] when there is none.
pub fn broadcast_arrays(arrays: impl Arrays) -> Result<Vec<Array>> {
    let arrays = arrays.borrowed();
    let shape = arrays.iter().try_fold(Shape::new(), |shape, a| {
        shape::broadcast("broadcast_arrays", &shape, a.shape())
    })?;
    arrays.iter().map(|a| Ok(broadcast_with(a, &shape, &arrays)?.into_owned())).collect()
}

fn no_such_axis(op: &str, axis: isize, ndim: usize) -> Error {
    let text = format!("Axis {axis} is out of bounds for array with {ndim} dimensions.");
    Error::index(op, format!("{text} {}", shape::AxisRange(ndim)))
}

/// An axis, counted from the start.
pub(crate) fn out_of_bounds(op: &str, axis: isize, ndim: usize) -> Result<usize> {
    shape::from_start(axis, ndim).ok_or_else(|| no_such_axis(op, axis, ndim))
}

/// Axes counted from the start, sorted and all different.
fn named_axes(op: &str, axes: &[isize], ndim: usize) -> Result<SmallVec<[usize; 4]>> {
    let invalid = |axis| no_such_axis(op, axis, ndim);
    shape::distinct_axes(axes, ndim, invalid, || {
        Error::value(op, "Received duplicate axes. Name each axis once.")
    })
}
