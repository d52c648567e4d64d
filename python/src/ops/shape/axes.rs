//! Orders and sizes of axes: reshape, transpose, diagonals.

use super::made;
use crate::array::PyArray;
use crate::convert::{ArrayArg, Ints, Sequence, axes, integer, integers};
use crate::error::Res;
use crate::stream::StreamArg;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use ultramarine::{Array, Result};

/// Functions of one array.
macro_rules! functions_only {
    ($register:ident; $(
        $(#[doc = $doc:literal])*
        $name:ident($($(#[doc = $about:literal])* $arg:ident: $t:ty $(= $default:tt)?),*)
            $(as $signature:literal)? -> $returns:literal, $($example:expr),+ => |$a:ident| $body:expr;
    )*) => {
        $(
        $(#[doc = $doc])*
        ///
        /// Args:
        ///     a (array): Array of any shape.
        $($(#[doc = $about])*)*
        ///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
        ///         else the default device.
        ///
        /// Returns:
        #[doc = $returns]
        ///
        /// Raises:
        ///     IndexError: If an axis is out of range.
        ///     ValueError: If the shape, or the number of dimensions, does not fit.
        ///
        /// Example:
        $(#[doc = $example])+
        #[pyfunction]
        #[pyo3(signature = (a, /, $($arg $(= $default)?,)* *, stream=None) $(, text_signature = $signature)?)]
        fn $name(a: ArrayArg, $($arg: $t,)* stream: Option<StreamArg>) -> Res<PyArray> {
            let $a = &a.0;
            made(stream, || $body)
        }
        )*

        fn $register(m: &Bound<'_, PyModule>) -> PyResult<()> {
            crate::functions!(m: $($name)*);
            Ok(())
        }
    };
}

/// Functions and methods of one array with the same arguments. Rows with a negative default write their signatures.
macro_rules! both {
    ($register:ident; $(
        $(#[doc = $doc:literal])*
        $name:ident($($(#[doc = $about:literal])* $arg:ident: $t:ty $(= $default:tt)?),*)
            $(as $signature:literal and $method_signature:literal)?
            -> $returns:literal, $of:literal $with:literal $show:literal => $out:literal
            => |$a:ident| $body:expr;
    )*) => {
        functions_only! {
            $register;
            $($(#[doc = $doc])* $name($($(#[doc = $about])* $arg: $t $(= $default)?),*)
                $(as $signature)? -> $returns,
                concat!("    >>> mx.", stringify!($name), "(", $of, ", ", $with, ")", $show),
                concat!("    ", $out)
                => |$a| $body;)*
        }

        #[pymethods]
        impl PyArray {
            $(
            $(#[doc = $doc])*
            ///
            /// Args:
            $($(#[doc = $about])*)*
            ///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            ///         else the default device.
            ///
            /// Returns:
            #[doc = $returns]
            ///
            /// Raises:
            ///     IndexError: If an axis is out of range.
            ///     ValueError: If the shape, or the number of dimensions, does not fit.
            ///
            /// Example:
            #[doc = concat!("    >>> ", $of, ".", stringify!($name), "(", $with, ")", $show)]
            #[doc = concat!("    ", $out)]
            #[pyo3(signature = ($($arg $(= $default)?,)* *, stream=None) $(, text_signature = $method_signature)?)]
            fn $name(
                &self,
                py: Python<'_>,
                $($arg: $t,)*
                stream: Option<StreamArg>,
            ) -> Res<PyArray> {
                $name(ArrayArg(self.get(py)), $($arg,)* stream)
            }
            )*
        }
    };
}

/// The default of the last axis to join. A row has one token for a default.
const LAST: isize = -1;

both! {
    register_both;
    /// Joins the axes from `start_axis` to `end_axis`, both included, into one.
    flatten(
        ///     start_axis (int): First axis to join.
        start_axis: isize = 0,
        ///     end_axis (int): Last axis to join.
        end_axis: isize = LAST
    ) as "(a, /, start_axis=0, end_axis=-1, *, stream=None)"
        and "($self, start_axis=0, end_axis=-1, *, stream=None)"
        -> "     array: Array with the axes joined; one dimension at least.",
        "mx.ones((2, 3, 4))" "1" ".shape" => "(2, 12)"
        => |a| a.flatten(start_axis, end_axis);
    /// Removes axes of size 1.
    squeeze(
        ///     axis (int | Sequence[int] | None): Axes to remove; by default all of size 1.
        axis: Option<Ints> = None
    ) -> "     array: View without the axes.",
        "mx.ones((2, 1, 3, 1))" "-1" ".shape" => "(2, 1, 3)" => |a| a.squeeze(axes(&axis));
    /// Moves an axis to another position. The others keep their order.
    moveaxis(
        ///     source (int): Axis to move.
        source: isize,
        ///     destination (int): Position of the axis in the result.
        destination: isize
    ) -> "     array: View with the axis moved.",
        "mx.ones((2, 3, 4))" "0, 2" ".shape" => "(3, 4, 2)" => |a| a.moveaxis(source, destination);
    /// Exchanges two axes.
    swapaxes(
        ///     axis1 (int): First axis.
        axis1: isize,
        ///     axis2 (int): Second axis.
        axis2: isize
    ) -> "     array: View with the axes exchanged.",
        "mx.ones((2, 3, 4))" "0, 2" ".shape" => "(4, 3, 2)" => |a| a.swapaxes(axis1, axis2);
    /// Takes the diagonal of a matrix, or makes a matrix with a vector as its diagonal.
    diag(
        ///     k (int): Diagonal: 0 for the main one, above it positive, below it negative.
        k: isize = 0
    ) -> "     array: Vector of a matrix, or matrix of a vector.",
        "mx.array([[1, 2], [3, 4]])" "1" "" => "array([2], dtype=int32)" => |a| a.diag(k);
}

functions_only! {
    register_functions;
    /// Gives the elements, in row-major order, another shape.
    reshape(
        ///     shape (Sequence[int]): Sizes; one may be -1 and follows from the others.
        shape: Sequence
    ) -> "     array: Array of that shape; a view where strides allow it.",
        "     >>> mx.reshape(mx.arange(6), (2, -1))",
        "     array([[0, 1, 2],",
        "            [3, 4, 5]], dtype=int32)" => |a| a.reshape(&shape.0);
    /// Splits an axis into several.
    unflatten(
        ///     axis (int): Axis to split.
        axis: isize,
        ///     shape (Sequence[int]): Sizes of the new axes; one may be -1.
        shape: Sequence
    ) -> "     array: Array with the new axes in place of the axis.",
        "     >>> mx.unflatten(mx.arange(6), 0, (2, 3)).shape",
        "     (2, 3)" => |a| a.unflatten(axis, &shape.0);
    /// Inserts axes of size 1.
    expand_dims(
        ///     axis (int | Sequence[int]): Positions of the new axes in the result.
        axis: Ints
    ) -> "     array: View with the new axes.",
        "     >>> mx.expand_dims(mx.ones((2, 3)), (0, -1)).shape",
        "     (1, 2, 3, 1)" => |a| a.expand_dims(&axis.0);
    /// Reverses the order of elements along axes.
    flip(
        ///     axis (int | Sequence[int] | None): Axes to reverse; by default all of them.
        axis: Option<Ints> = None
    ) -> "     array: View with the elements reversed.",
        "     >>> mx.flip(mx.array([1, 2, 3]))",
        "     array([3, 2, 1], dtype=int32)" => |a| a.flip(axes(&axis));
    /// Exchanges the last two axes.
    matrix_transpose() -> "     array: View with the axes exchanged.",
        "     >>> mx.matrix_transpose(mx.ones((5, 2, 3))).shape",
        "     (5, 3, 2)" => |a| matrix_transposed(a);
    /// Puts the axes into another order; another name of `transpose`.
    permute_dims(
        ///     axes (Sequence[int] | None): The axes of `a` in their new order; by default they are
        ///         reversed.
        axes: Option<Sequence> = None
    ) -> "     array: View with the axes in that order.",
        "     >>> mx.permute_dims(mx.ones((2, 3, 4)), (1, 0, 2)).shape",
        "     (3, 2, 4)"
        => |a| transposed(a, axes.as_ref().map(|s| &s.0[..]));
    /// Moves elements along axes by a number of positions, those beyond the end to the front.
    roll(
        ///     shift (int | Sequence[int]): Number of positions, for all axes or for each; those
        ///         for one axis add up.
        shift: Ints,
        ///     axis (int | Sequence[int] | None): Axes to move along; by default the array is
        ///         flattened and gets its shape back.
        axis: Option<Ints> = None
    ) -> "     array: Moved elements in the shape of `a`.",
        "     >>> mx.roll(mx.arange(5), 2)",
        "     array([3, 4, 0, 1, 2], dtype=int32)" => |a| {
        let shifts = match &axis {
            // One shift for several axes.
            Some(axes) if shift.0.len() == 1 => vec![shift.0[0]; axes.0.len()],
            _ => shift.0.clone(),
        };
        a.roll(&shifts, axes(&axis))
    };
}

fn matrix_transposed(a: &Array) -> Result<Array> {
    if a.ndim() < 2 {
        return Err(ultramarine::Error::value(
            "matrix_transpose",
            "Input array must have at least 2 dimensions. Reshape or expand it.",
        ));
    }
    a.swapaxes(-1, -2)
}

fn transposed(a: &Array, order: Option<&[isize]>) -> Result<Array> {
    match order {
        None => a.transpose(),
        Some(order) => a.transpose_axes(order),
    }
}

/// The integers of `*args`: several, or one sequence.
fn variadic(args: &Bound<'_, PyTuple>) -> PyResult<Vec<isize>> {
    if args.len() == 1 {
        let first = args.get_item(0)?;
        if integer(&first)?.is_none() {
            return integers(&first);
        }
    }
    integers(args)
}

/// Puts the axes into another order.
///
/// Args:
///     a (array): Array of any shape.
///     axes (Sequence[int] | None): The axes of `a` in their new order; by default they are
///         reversed.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///
/// Returns:
///     array: View with the axes in that order.
///
/// Raises:
///     IndexError: If an axis is out of range.
///     ValueError: If the axes are no permutation.
///
/// Example:
///     >>> mx.transpose(mx.zeros((2, 3, 4)), (1, 0, 2)).shape
///     (3, 2, 4)
#[pyfunction]
#[pyo3(signature = (a, /, axes=None, *, stream=None))]
fn transpose(a: ArrayArg, axes: Option<Sequence>, stream: Option<StreamArg>) -> Res<PyArray> {
    made(stream, || transposed(&a.0, axes.as_ref().map(|s| &s.0[..])))
}

/// Takes the diagonals of the matrices that two axes span.
///
/// Args:
///     a (array): Array of two dimensions at least.
///     offset (int): Diagonal: 0 for the main one, above it positive, below it negative.
///     axis1 (int): Axis of the rows.
///     axis2 (int): Axis of the columns.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///
/// Returns:
///     array: Array without the two axes, with the diagonals as the last axis.
///
/// Raises:
///     IndexError: If an axis is out of range.
///     ValueError: If there are less than two dimensions, or the axes are the same.
///
/// Example:
///     >>> mx.diagonal(mx.array([[1, 2], [3, 4]]))
///     array([1, 4], dtype=int32)
#[pyfunction]
#[pyo3(signature = (a, offset=0, axis1=0, axis2=1, stream=None))]
fn diagonal(
    a: ArrayArg,
    offset: isize,
    axis1: isize,
    axis2: isize,
    stream: Option<StreamArg>,
) -> Res<PyArray> {
    made(stream, || a.0.diagonal(offset, axis1, axis2))
}

/// Sums the diagonals of the matrices that two axes span.
///
/// Args:
///     a (array): Array of two dimensions at least.
///     offset (int): Diagonal: 0 for the main one, above it positive, below it negative.
///     axis1 (int): Axis of the rows.
///     axis2 (int): Axis of the columns.
///     dtype (Dtype | None): Dtype to sum in; by default as `sum`.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///
/// Returns:
///     array: Sums in the shape of `a` without the two axes.
///
/// Raises:
///     IndexError: If an axis is out of range.
///     ValueError: If there are less than two dimensions, or the axes are the same.
///
/// Example:
///     >>> mx.trace(mx.eye(3))
///     array(3, dtype=float32)
#[pyfunction]
#[pyo3(signature = (a, /, offset=0, axis1=0, axis2=1, dtype=None, *, stream=None))]
fn trace(
    a: ArrayArg,
    offset: isize,
    axis1: isize,
    axis2: isize,
    dtype: Option<crate::dtype::DtypeArg>,
    stream: Option<StreamArg>,
) -> Res<PyArray> {
    made(stream, || {
        let diagonal = a.0.diagonal(offset, axis1, axis2)?;
        dtype.map_or_else(|| diagonal.clone(), |d| diagonal.astype(*d)).sum(-1)
    })
}

#[pymethods]
impl PyArray {
    /// Gives the elements, in row-major order, another shape.
    ///
    /// Args:
    ///     *shape (int | Sequence[int]): Sizes, as several arguments or as one sequence; one may be
    ///         -1 and follows from the others.
    ///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
    ///         else the default device.
    ///
    /// Returns:
    ///     array: Array of that shape; a view where strides allow it.
    ///
    /// Raises:
    ///     ValueError: If the shape holds another number of elements.
    ///
    /// Example:
    ///     >>> mx.arange(6).reshape(2, -1).shape
    ///     (2, 3)
    #[pyo3(signature = (*shape, stream=None))]
    fn reshape(
        &self,
        py: Python<'_>,
        shape: &Bound<'_, PyTuple>,
        stream: Option<StreamArg>,
    ) -> Res<PyArray> {
        let (a, shape) = (self.get(py), variadic(shape)?);
        made(stream, || a.reshape(&shape))
    }

    /// Puts the axes into another order.
    ///
    /// Args:
    ///     *axes (int | Sequence[int]): The axes in their new order, as several arguments or as one
    ///         sequence; without any they are reversed.
    ///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
    ///         else the default device.
    ///
    /// Returns:
    ///     array: View with the axes in that order.
    ///
    /// Raises:
    ///     IndexError: If an axis is out of range.
    ///     ValueError: If the axes are no permutation.
    ///
    /// Example:
    ///     >>> mx.ones((2, 3, 4)).transpose(1, 0, 2).shape
    ///     (3, 2, 4)
    #[pyo3(signature = (*axes, stream=None))]
    fn transpose(
        &self,
        py: Python<'_>,
        axes: &Bound<'_, PyTuple>,
        stream: Option<StreamArg>,
    ) -> Res<PyArray> {
        let a = self.get(py);
        let none = axes.is_empty() || (axes.len() == 1 && axes.get_item(0)?.is_none());
        let order = if none { None } else { Some(variadic(axes)?) };
        made(stream, || transposed(&a, order.as_deref()))
    }

    /// array: The array with its axes reversed.
    ///
    /// Example:
    ///     >>> mx.ones((2, 3, 4)).T.shape
    ///     (4, 3, 2)
    #[getter(T)]
    fn reversed(&self, py: Python<'_>) -> Res<PyArray> {
        Ok(PyArray::new(self.get(py).transpose()?))
    }

    /// array: The array with its last two axes exchanged; it has two dimensions at least.
    ///
    /// Example:
    ///     >>> mx.ones((5, 2, 3)).mT.shape
    ///     (5, 3, 2)
    #[getter(mT)]
    fn matrix_transposed(&self, py: Python<'_>) -> Res<PyArray> {
        Ok(PyArray::new(matrix_transposed(&self.get(py))?))
    }

    /// Takes the diagonals of the matrices that two axes span; see the function `diagonal`.
    ///
    /// Args:
    ///     offset (int): Diagonal: 0 for the main one, above it positive, below it negative.
    ///     axis1 (int): Axis of the rows.
    ///     axis2 (int): Axis of the columns.
    ///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
    ///         else the default device.
    ///
    /// Returns:
    ///     array: Array without the two axes, with the diagonals as the last axis.
    ///
    /// Example:
    ///     >>> mx.array([[1, 2], [3, 4]]).diagonal()
    ///     array([1, 4], dtype=int32)
    #[pyo3(signature = (offset=0, axis1=0, axis2=1, stream=None))]
    fn diagonal(
        &self,
        py: Python<'_>,
        offset: isize,
        axis1: isize,
        axis2: isize,
        stream: Option<StreamArg>,
    ) -> Res<PyArray> {
        diagonal(ArrayArg(self.get(py)), offset, axis1, axis2, stream)
    }
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    crate::functions!(m: transpose diagonal trace);
    register_both(m)?;
    register_functions(m)
}
