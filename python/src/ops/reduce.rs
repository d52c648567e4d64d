//! Reductions over axes.

use crate::array::PyArray;
use crate::convert::{ArrayArg, Ints, axes};
use crate::error::{Res, type_, type_name, value};
use crate::stream::{StreamArg, on};
use pyo3::prelude::*;
use ultramarine::Reduced;

/// The method of a reduction.
macro_rules! reduction_method {
    (
        $axis:ty, $about:literal, [$($extra:ident $(#[doc = $meaning:literal])*)*],
        $(#[doc = $doc:literal])* $name:ident $arg:literal => $out:literal
    ) => {
        #[pymethods]
        impl PyArray {
            $(#[doc = $doc])*
            ///
            /// Args:
            #[doc = $about]
            ///     keepdims (bool): Keeps the reduced axes, with size 1.
            $($(#[doc = $meaning])*)*
            ///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            ///         else the default device.
            ///
            /// Returns:
            ///     array: Results without the reduced axes.
            ///
            /// Raises:
            ///     IndexError: If an axis is out of range.
            ///
            /// Example:
            #[doc = concat!("    >>> mx.array(", $arg, ").", stringify!($name), "(axis=1)")]
            #[doc = concat!("    array(", $out, ")")]
            #[pyo3(signature = (axis=None, keepdims=false, *, $($extra=None,)* stream=None))]
            fn $name(
                &self,
                py: Python<'_>,
                axis: Option<$axis>,
                keepdims: bool,
                $($extra: Option<Absent>,)*
                stream: Option<StreamArg>,
            ) -> Res<PyArray> {
                $(let _ = $extra;)*
                $name(ArrayArg(self.get(py)), axis, keepdims, stream)
            }
        }
    };
}

/// Functions and methods `name(axis=None, keepdims=False)`; `$axis` is the type of `axis`,
/// documented by `$about`, which the function `$as` converts for the core. Each row has the matrix of its example, and
/// the results along axis 1. The methods take the
/// parameters of the list, too, which may only be None.
macro_rules! reductions {
    (
        $register:ident, $axis:ty, $as:expr, $about:literal,
        $extras:tt; $($(#[doc = $doc:literal])* $name:ident $arg:literal => $out:literal;)*
    ) => {
        $(
        $(#[doc = $doc])*
        ///
        /// Args:
        ///     a (array): Array to reduce.
        #[doc = $about]
        ///     keepdims (bool): Keeps the reduced axes, with size 1.
        ///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
        ///         else the default device.
        ///
        /// Returns:
        ///     array: Results without the reduced axes.
        ///
        /// Raises:
        ///     IndexError: If an axis is out of range.
        ///
        /// Example:
        #[doc = concat!("    >>> mx.", stringify!($name), "(mx.array(", $arg, "), axis=1)")]
        #[doc = concat!("    array(", $out, ")")]
        #[pyfunction]
        #[pyo3(signature = (a, /, axis=None, keepdims=false, *, stream=None))]
        fn $name(
            a: ArrayArg,
            axis: Option<$axis>,
            keepdims: bool,
            stream: Option<StreamArg>,
        ) -> Res<PyArray> {
            let over = ultramarine::Reduced::new($as(&axis), keepdims);
            Ok(PyArray::new(on(stream, || a.0.$name(over))?))
        }
        )*

        $(
        reduction_method! { $axis, $about, $extras, $(#[doc = $doc])* $name $arg => $out }
        )*

        pub fn $register(m: &Bound<'_, PyModule>) -> PyResult<()> {
            crate::functions!(m: $($name)*);
            Ok(())
        }
    };
}

pub(super) use {reduction_method, reductions};

/// A parameter of NumPy's reductions, which call the methods with it, that may only be None: so
/// `numpy.all(array)` is the array's own method.
struct Absent;

impl FromPyObject<'_, '_> for Absent {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        Err(type_(format!(
            "Reductions of an array have neither a dtype nor an output, but {} was given. Convert \
             with astype, or reduce numpy.asarray(array).",
            type_name(&object)
        ))
        .into())
    }
}

reductions! {
    register_reductions, Ints, axes,
    "     axis (int | Sequence[int] | None): Axes to reduce; by default all of them.",
    [
        dtype
        ///     dtype (None): None alone, as NumPy's functions pass it.
        out
        ///     out (None): None alone, as NumPy's functions pass it.
    ];
    /// Tests whether all elements are non-zero; bools, True for nothing.
    all "[[1, 0], [2, 3]]" => "[False, True], dtype=bool";
    /// Tests whether any element is non-zero; bools, False for nothing.
    any "[[0, 0], [2, 0]]" => "[False, True], dtype=bool";
    /// Sums elements.
    ///
    /// Bools and integers of less than 32 bits are summed as int32, unsigned ones as uint32. The
    /// sum of nothing is 0.
    sum "[[1, 2], [3, 4]]" => "[3, 7], dtype=int32";
    /// Multiplies elements.
    ///
    /// Bools and integers of less than 32 bits are multiplied as int32, unsigned ones as uint32.
    /// The product of nothing is 1.
    prod "[[1, 2], [3, 4]]" => "[2, 12], dtype=int32";
    /// Finds the smallest element; NaN if there is one.
    ///
    /// A reduction of no elements raises a ValueError.
    min "[[1, 2], [4, 3]]" => "[1, 3], dtype=int32";
    /// Finds the largest element; NaN if there is one.
    ///
    /// A reduction of no elements raises a ValueError.
    max "[[1, 2], [4, 3]]" => "[2, 4], dtype=int32";
    /// Computes the logarithm of the sum of exponentials, without overflow.
    ///
    /// Integers and bools give float32.
    logsumexp "[[0.0, 0.0], [1000.0, 0.0]]" => "[0.693147, 1000], dtype=float32";
    /// Averages elements.
    ///
    /// Integers and bools give float32.
    mean "[[1, 2], [3, 4]]" => "[1.5, 3.5], dtype=float32";
}

macro_rules! deviations {
    ($($(#[doc = $doc:literal])* $function:ident $name:ident $text:literal $out:literal;)*) => {
        $(
        $(#[doc = $doc])*
        ///
        /// Args:
        ///     a (array): Array to reduce.
        ///     axis (int | Sequence[int] | None): Axes to reduce; by default all of them.
        ///     keepdims (bool): Keeps the reduced axes, with size 1.
        ///     ddof (int): The divisor is the number of elements less this.
        ///     correction (int | None): Another name of `ddof`, which goes before it.
        ///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
        ///         else the default device.
        ///
        /// Returns:
        ///     array: Results without the reduced axes; infinity or NaN where the divisor is not positive.
        ///
        /// Raises:
        ///     IndexError: If an axis is out of range.
        ///     ValueError: If the divisor's correction is negative.
        ///
        /// Example:
        #[doc = concat!("    >>> mx.", stringify!($name), "(mx.array([1, 2, 3, 6]))")]
        #[doc = concat!("    array(", $out, ")")]
        #[pyfunction(name = $text)]
        #[pyo3(signature = (
            a, /, axis=None, keepdims=false, ddof=0, *, correction=None, stream=None
        ))]
        fn $function(
            a: ArrayArg,
            axis: Option<Ints>,
            keepdims: bool,
            ddof: isize,
            correction: Option<isize>,
            stream: Option<StreamArg>,
        ) -> Res<PyArray> {
            let ddof = usize::try_from(correction.unwrap_or(ddof)).map_err(|_| {
                value(concat!("[", stringify!($name), "] ddof must not be negative. Pass 0 or more."))
            })?;
            Ok(PyArray::new(on(stream, || a.0.$name(Reduced::new(axes(&axis), keepdims), ddof))?))
        }
        )*

        #[pymethods]
        impl PyArray {
            $(
            $(#[doc = $doc])*
            ///
            /// Args:
            ///     axis (int | Sequence[int] | None): Axes to reduce; by default all of them.
            ///     keepdims (bool): Keeps the reduced axes, with size 1.
            ///     ddof (int): The divisor is the number of elements less this.
            ///     correction (int | None): Another name of `ddof`, which goes before it.
            ///     dtype (None): None alone, as NumPy's functions pass it.
            ///     out (None): None alone, as NumPy's functions pass it.
            ///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            ///         else the default device.
            ///
            /// Returns:
            ///     array: Results without the reduced axes; infinity or NaN where the divisor is not positive.
            ///
            /// Raises:
            ///     IndexError: If an axis is out of range.
            ///     ValueError: If the divisor's correction is negative.
            ///
            /// Example:
            #[doc = concat!("    >>> mx.array([1, 2, 3, 6]).", stringify!($name), "()")]
            #[doc = concat!("    array(", $out, ")")]
            #[pyo3(signature = (
                axis=None, keepdims=false, ddof=0, *, correction=None, dtype=None, out=None,
                stream=None
            ))]
            #[allow(clippy::too_many_arguments, reason = "the parameters of MLX and of NumPy")]
            fn $name(
                &self,
                py: Python<'_>,
                axis: Option<Ints>,
                keepdims: bool,
                ddof: isize,
                correction: Option<isize>,
                dtype: Option<Absent>,
                out: Option<Absent>,
                stream: Option<StreamArg>,
            ) -> Res<PyArray> {
                let _ = (dtype, out);
                $function(ArrayArg(self.get(py)), axis, keepdims, ddof, correction, stream)
            }
            )*
        }
    };
}

deviations! {
    /// Computes the variance: the mean of the squared distances from the mean.
    ///
    /// Integers, bools and complex numbers give float32.
    variance var "var" "3.5, dtype=float32";
    /// Computes the standard deviation: the square root of the variance.
    ///
    /// Integers, bools and complex numbers give float32.
    deviation std "std" "1.87083, dtype=float32";
}

/// Computes the median: the middle element, or the mean of the two middle ones.
///
/// Args:
///     a (array): Array to reduce.
///     axis (int | Sequence[int] | None): Axes to reduce; by default all of them.
///     keepdims (bool): Keeps the reduced axes, with size 1.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///
/// Returns:
///     array: Medians; float32 for integers and bools.
///
/// Raises:
///     IndexError: If an axis is out of range.
///     ValueError: If there are no elements.
///
/// Example:
///     >>> mx.median(mx.array([4, 1, 3, 2]))
///     array(2.5, dtype=float32)
#[pyfunction]
#[pyo3(signature = (a, /, axis=None, keepdims=false, *, stream=None))]
fn median(
    a: ArrayArg,
    axis: Option<Ints>,
    keepdims: bool,
    stream: Option<StreamArg>,
) -> Res<PyArray> {
    Ok(PyArray::new(on(stream, || a.0.median(Reduced::new(axes(&axis), keepdims)))?))
}

/// Counts the elements that are not zero.
///
/// Args:
///     a (array): Array to reduce.
///     axis (int | Sequence[int] | None): Axes to reduce; by default all of them.
///     keepdims (bool): Keeps the reduced axes, with size 1.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///
/// Returns:
///     array: Counts as int32.
///
/// Raises:
///     IndexError: If an axis is out of range.
///
/// Example:
///     >>> mx.count_nonzero(mx.array([[1, 0], [2, 3]]), axis=1)
///     array([1, 2], dtype=int32)
#[pyfunction]
#[pyo3(signature = (a, /, axis=None, keepdims=false, *, stream=None))]
fn count_nonzero(
    a: ArrayArg,
    axis: Option<Ints>,
    keepdims: bool,
    stream: Option<StreamArg>,
) -> Res<PyArray> {
    Ok(PyArray::new(on(stream, || a.0.count_nonzero(Reduced::new(axes(&axis), keepdims)))?))
}

/// Finds the smallest and the largest element; both are NaN if there is one.
///
/// Args:
///     a (array): Array to reduce.
///     axis (int | Sequence[int] | None): Axes to reduce; by default all of them.
///     keepdims (bool): Keeps the reduced axes, with size 1.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///
/// Returns:
///     tuple[array, array]: Smallest and largest elements, in the dtype of `a`.
///
/// Raises:
///     IndexError: If an axis is out of range.
///     ValueError: If there are no elements.
///
/// Example:
///     >>> mx.minmax(mx.array([3, 1, 2]))
///     (array(1, dtype=int32), array(3, dtype=int32))
#[pyfunction]
#[pyo3(signature = (a, /, axis=None, keepdims=false, *, stream=None))]
fn minmax(
    a: ArrayArg,
    axis: Option<Ints>,
    keepdims: bool,
    stream: Option<StreamArg>,
) -> Res<(PyArray, PyArray)> {
    let (min, max) = on(stream, || a.0.minmax(Reduced::new(axes(&axis), keepdims)))?;
    Ok((PyArray::new(min), PyArray::new(max)))
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    crate::functions!(m: variance deviation median count_nonzero minmax);
    register_reductions(m)
}
