//! Convolutions.

use crate::array::PyArray;
use crate::convert::{ArrayArg, integer, integers};
use crate::error::{Res, type_, type_name, value};
use crate::stream::{StreamArg, on};
use pyo3::prelude::*;
use ultramarine::{Array, Convolution, ConvolveMode, Result};

/// A number that fits where mlx keeps sizes, which are of 32 bits.
fn small(n: isize, object: &Bound<'_, PyAny>) -> PyResult<i64> {
    let fits = i32::try_from(n).ok().map(i64::from);
    fits.ok_or_else(|| {
        type_(format!("{n} in {} does not fit in 32 bits", type_name(object))).into()
    })
}

/// A number for all axes, or one for each of `N`.
#[derive(Clone, Copy)]
struct Each<const N: usize>([i64; N]);

impl<const N: usize> FromPyObject<'_, '_> for Each<N> {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        if let Some(n) = integer(&object)? {
            return Ok(Each([small(n, &object)?; N]));
        }
        if N == 1 {
            return Err(type_(format!("expected an int, got {}", type_name(&object))).into());
        }
        let all = integers(&object)?;
        let all = all.into_iter().map(|n| small(n, &object)).collect::<PyResult<Vec<_>>>()?;
        let given = all.len();
        all.try_into().map(Each).map_err(|_| {
            type_(format!("expected an int or {N} of them, got a sequence of {given}")).into()
        })
    }
}

/// A number for all axes, or one for each.
struct Any(Vec<i64>);

impl FromPyObject<'_, '_> for Any {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        if let Some(n) = integer(&object)? {
            return Ok(Any(vec![small(n, &object)?]));
        }
        let all = integers(&object)?;
        Ok(Any(all.into_iter().map(|n| small(n, &object)).collect::<PyResult<_>>()?))
    }
}

/// Padding: as [`Any`], or a pair of lists, before and behind.
struct Padding([Vec<i64>; 2]);

impl FromPyObject<'_, '_> for Padding {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        if let Ok(both) = object.extract::<Any>() {
            return Ok(Padding([both.0.clone(), both.0]));
        }
        let wrong = || -> PyErr {
            let text = "expected an int, a sequence of ints or a pair of such sequences";
            type_(format!("{text}, got {}", type_name(&object))).into()
        };
        let parts = object.try_iter().map_err(|_| wrong())?.collect::<PyResult<Vec<_>>>()?;
        let [low, high] = &parts[..] else { return Err(wrong()) };
        let list = |part: &Bound<'_, PyAny>| -> PyResult<Vec<i64>> {
            if integer(part)?.is_some() {
                return Err(wrong());
            }
            Ok(part.extract::<Any>()?.0)
        };
        Ok(Padding([list(low)?, list(high)?]))
    }
}

fn made(stream: Option<StreamArg>, f: impl FnOnce() -> Result<Array>) -> Res<PyArray> {
    Ok(PyArray::new(on(stream, f)?))
}

fn options<const N: usize>(
    stride: Each<N>,
    padding: Each<N>,
    dilation: Each<N>,
    groups: Each<1>,
) -> Convolution {
    let how = Convolution::default().stride(stride.0).padding(padding.0);
    how.dilation(dilation.0).groups(groups.0[0])
}

macro_rules! forms {
    ($n:literal: $(#[doc = $doc:literal])* $name:ident, $(#[doc = $tdoc:literal])* $transposed:ident;) => {
        $(#[doc = $doc])*
        #[pyfunction]
        #[pyo3(
            signature = (input, weight, /, stride=Each([1; $n]), padding=Each([0; $n]),
                         dilation=Each([1; $n]), groups=Each([1]), *, stream=None),
            text_signature = "(input, weight, /, stride=1, padding=0, dilation=1, groups=1, *, stream=None)"
        )]
        fn $name(
            input: ArrayArg,
            weight: ArrayArg,
            stride: Each<$n>,
            padding: Each<$n>,
            dilation: Each<$n>,
            groups: Each<1>,
            stream: Option<StreamArg>,
        ) -> Res<PyArray> {
            let how = options(stride, padding, dilation, groups);
            made(stream, || ultramarine::$name(&input.0, &weight.0, how))
        }

        $(#[doc = $tdoc])*
        #[pyfunction]
        #[pyo3(
            signature = (input, weight, /, stride=Each([1; $n]), padding=Each([0; $n]),
                         dilation=Each([1; $n]), output_padding=Each([0; $n]), groups=Each([1]), *,
                         stream=None),
            text_signature = "(input, weight, /, stride=1, padding=0, dilation=1, output_padding=0, groups=1, *, stream=None)"
        )]
        #[allow(clippy::too_many_arguments, reason = "mlx has it so")]
        fn $transposed(
            input: ArrayArg,
            weight: ArrayArg,
            stride: Each<$n>,
            padding: Each<$n>,
            dilation: Each<$n>,
            output_padding: Each<$n>,
            groups: Each<1>,
            stream: Option<StreamArg>,
        ) -> Res<PyArray> {
            let how = options(stride, padding, dilation, groups).output_padding(output_padding.0);
            made(stream, || ultramarine::$transposed(&input.0, &weight.0, how))
        }
    };
}

forms! {
    1:
    /// Computes the cross-correlation of a signal with a weight, along one axis.
    ///
    /// The output length is `(L + 2 * padding - dilation * (K - 1) - 1) // stride + 1`.
    ///
    /// Args:
    ///     input (array): Array of the shape (N, L, C_in), of floats.
    ///     weight (array): Array of the shape (C_out, K, C_in / groups).
    ///     stride (int): Distance of neighbouring outputs in the input.
    ///     padding (int): Number of zeros on either side.
    ///     dilation (int): Distance of neighbouring elements of the weight in the input.
    ///     groups (int): Number of groups of channels, each of which sees only its inputs.
    ///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
    ///         else the default device.
    ///
    /// Returns:
    ///     array: Array of the shape (N, L_out, C_out).
    ///
    /// Raises:
    ///     ValueError: If the shapes do not fit, or the dtypes are not floats.
    ///
    /// Example:
    ///     >>> mx.conv1d(mx.ones((1, 4, 1)), mx.ones((1, 2, 1))).flatten()
    ///     array([2, 2, 2], dtype=float32)
    conv1d,
    /// Computes the transposed convolution of a signal with a weight, along one axis.
    ///
    /// The output length is `stride * (L - 1) - 2 * padding + dilation * (K - 1) + 1 +
    /// output_padding`.
    ///
    /// Args:
    ///     input (array): Array of the shape (N, L, C_in), of floats.
    ///     weight (array): Array of the shape (C_out, K, C_in / groups).
    ///     stride (int): Distance of neighbouring inputs in the output.
    ///     padding (int): Number of outputs that are cut off on either side.
    ///     dilation (int): Distance of neighbouring elements of the weight in the output.
    ///     output_padding (int): Number of outputs that are added behind.
    ///     groups (int): Number of groups of channels, each of which sees only its inputs.
    ///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
    ///         else the default device.
    ///
    /// Returns:
    ///     array: Array of the shape (N, L_out, C_out).
    ///
    /// Raises:
    ///     ValueError: If the shapes do not fit, or the dtypes are not floats.
    ///
    /// Example:
    ///     >>> mx.conv_transpose1d(mx.ones((1, 3, 1)), mx.ones((1, 2, 1)), stride=2).shape
    ///     (1, 6, 1)
    conv_transpose1d;
}
forms! {
    2:
    /// Computes the cross-correlation of images with a weight, along two axes.
    ///
    /// Output sizes are those of `conv1d` for each axis.
    ///
    /// Args:
    ///     input (array): Array of the shape (N, H, W, C_in), of floats.
    ///     weight (array): Array of the shape (C_out, KH, KW, C_in / groups).
    ///     stride (int | tuple[int, int]): Distance of neighbouring outputs in the input, for both
    ///         axes or for each.
    ///     padding (int | tuple[int, int]): Number of zeros on either side, for both axes or for
    ///         each.
    ///     dilation (int | tuple[int, int]): Distance of neighbouring elements of the weight in the
    ///         input, for both axes or for each.
    ///     groups (int): Number of groups of channels, each of which sees only its inputs.
    ///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
    ///         else the default device.
    ///
    /// Returns:
    ///     array: Array of the shape (N, H_out, W_out, C_out).
    ///
    /// Raises:
    ///     ValueError: If the shapes do not fit, or the dtypes are not floats.
    ///
    /// Example:
    ///     >>> mx.conv2d(mx.ones((1, 4, 4, 3)), mx.ones((8, 3, 3, 3)), padding=1).shape
    ///     (1, 4, 4, 8)
    conv2d,
    /// Computes the transposed convolution of images with a weight, along two axes.
    ///
    /// Output sizes are those of `conv_transpose1d` for each axis.
    ///
    /// Args:
    ///     input (array): Array of the shape (N, H, W, C_in), of floats.
    ///     weight (array): Array of the shape (C_out, KH, KW, C_in / groups).
    ///     stride (int | tuple[int, int]): Distance of neighbouring inputs in the output, for both
    ///         axes or for each.
    ///     padding (int | tuple[int, int]): Number of outputs that are cut off on either side, for
    ///         both axes or for each.
    ///     dilation (int | tuple[int, int]): Distance of neighbouring elements of the weight in the
    ///         output, for both axes or for each.
    ///     output_padding (int | tuple[int, int]): Number of outputs that are added behind, for
    ///         both axes or for each.
    ///     groups (int): Number of groups of channels, each of which sees only its inputs.
    ///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
    ///         else the default device.
    ///
    /// Returns:
    ///     array: Array of the shape (N, H_out, W_out, C_out).
    ///
    /// Raises:
    ///     ValueError: If the shapes do not fit, or the dtypes are not floats.
    ///
    /// Example:
    ///     >>> mx.conv_transpose2d(mx.ones((1, 3, 3, 1)), mx.ones((4, 2, 2, 1)), stride=2).shape
    ///     (1, 6, 6, 4)
    conv_transpose2d;
}
forms! {
    3:
    /// Computes the cross-correlation of volumes with a weight, along three axes.
    ///
    /// Output sizes are those of `conv1d` for each axis.
    ///
    /// Args:
    ///     input (array): Array of the shape (N, D, H, W, C_in), of floats.
    ///     weight (array): Array of the shape (C_out, KD, KH, KW, C_in / groups).
    ///     stride (int | tuple[int, int, int]): Distance of neighbouring outputs in the input, for
    ///         all axes or for each.
    ///     padding (int | tuple[int, int, int]): Number of zeros on either side, for all axes or
    ///         for each.
    ///     dilation (int | tuple[int, int, int]): Distance of neighbouring elements of the weight
    ///         in the input, for all axes or for each.
    ///     groups (int): Number of groups of channels, each of which sees only its inputs.
    ///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
    ///         else the default device.
    ///
    /// Returns:
    ///     array: Array of the shape (N, D_out, H_out, W_out, C_out).
    ///
    /// Raises:
    ///     ValueError: If the shapes do not fit, or the dtypes are not floats.
    ///
    /// Example:
    ///     >>> mx.conv3d(mx.ones((1, 4, 4, 4, 3)), mx.ones((8, 3, 3, 3, 3)), padding=1).shape
    ///     (1, 4, 4, 4, 8)
    conv3d,
    /// Computes the transposed convolution of volumes with a weight, along three axes.
    ///
    /// Output sizes are those of `conv_transpose1d` for each axis.
    ///
    /// Args:
    ///     input (array): Array of the shape (N, D, H, W, C_in), of floats.
    ///     weight (array): Array of the shape (C_out, KD, KH, KW, C_in / groups).
    ///     stride (int | tuple[int, int, int]): Distance of neighbouring inputs in the output, for
    ///         all axes or for each.
    ///     padding (int | tuple[int, int, int]): Number of outputs that are cut off on either side,
    ///         for all axes or for each.
    ///     dilation (int | tuple[int, int, int]): Distance of neighbouring elements of the weight
    ///         in the output, for all axes or for each.
    ///     output_padding (int | tuple[int, int, int]): Number of outputs that are added behind,
    ///         for all axes or for each.
    ///     groups (int): Number of groups of channels, each of which sees only its inputs.
    ///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
    ///         else the default device.
    ///
    /// Returns:
    ///     array: Array of the shape (N, D_out, H_out, W_out, C_out).
    ///
    /// Raises:
    ///     ValueError: If the shapes do not fit, or the dtypes are not floats.
    ///
    /// Example:
    ///     >>> mx.conv_transpose3d(mx.ones((1, 3, 3, 3, 1)), mx.ones((4, 2, 2, 2, 1)), stride=2).shape
    ///     (1, 6, 6, 6, 4)
    conv_transpose3d;
}

/// Computes a convolution along one to three axes, with all options.
///
/// Args:
///     input (array): Array of the shape (N, ..., C_in), of floats.
///     weight (array): Array of the shape (C_out, ..., C_in / groups).
///     stride (int | Sequence[int]): Distance of neighbouring outputs in the input, for all
///         axes or for each.
///     padding (int | Sequence[int] | tuple[Sequence[int], Sequence[int]]): Number of zeros on
///         either side, for all axes or for each; or a pair of lists, before and after.
///         Negative ones cut off.
///     kernel_dilation (int | Sequence[int]): Distance of neighbouring elements of the weight,
///         for all axes or for each.
///     input_dilation (int | Sequence[int]): Distance of neighbouring elements of the input,
///         between which are zeros, for all axes or for each.
///     groups (int): Number of groups of channels, each of which sees only its inputs.
///     flip (bool): Reverses the weight along the spatial axes; without it this is a
///         cross-correlation.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///
/// Returns:
///     array: Array of the shape (N, ..., C_out).
///
/// Raises:
///     ValueError: If the shapes do not fit, or the dtypes are not floats.
///
/// Example:
///     >>> mx.conv_general(mx.ones((1, 4, 1)), mx.ones((1, 2, 1)), padding=([1], [0])).flatten()
///     array([1, 2, 2, 2], dtype=float32)
#[pyfunction]
#[pyo3(
    signature = (input, weight, /, stride=Any(vec![1]), padding=Padding([vec![0], vec![0]]),
                 kernel_dilation=Any(vec![1]), input_dilation=Any(vec![1]), groups=Each([1]),
                 flip=false, *, stream=None),
    text_signature = "(input, weight, /, stride=1, padding=0, kernel_dilation=1, input_dilation=1, groups=1, flip=False, *, stream=None)"
)]
#[allow(clippy::too_many_arguments, reason = "mlx has it so")]
fn conv_general(
    input: ArrayArg,
    weight: ArrayArg,
    stride: Any,
    padding: Padding,
    kernel_dilation: Any,
    input_dilation: Any,
    groups: Each<1>,
    flip: bool,
    stream: Option<StreamArg>,
) -> Res<PyArray> {
    let Padding([padding_low, padding_high]) = padding;
    let how = Convolution {
        stride: stride.0,
        padding_low,
        padding_high,
        kernel_dilation: kernel_dilation.0,
        input_dilation: input_dilation.0,
        output_padding: Vec::new(),
        groups: groups.0[0],
        flip,
    };
    made(stream, || ultramarine::conv_general(&input.0, &weight.0, &how))
}

/// Computes the discrete convolution of two vectors, of which the shorter one is reversed.
///
/// Args:
///     a (array): Vector of floats.
///     v (array): Vector of floats.
///     mode (Literal["full", "valid", "same"]): Part of the result: "full", "valid" (where they
///         overlap completely) or "same" (as long as the longer one).
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///
/// Returns:
///     array: Vector in the promoted dtype.
///
/// Raises:
///     ValueError: If an operand is no vector of floats or is empty, or the mode is another
///         word.
///
/// Example:
///     >>> mx.convolve(mx.array([1.0, 2.0]), mx.array([1.0, 1.0, 1.0]), "same")
///     array([1, 3, 3], dtype=float32)
#[pyfunction]
#[pyo3(signature = (a, v, /, mode="full", *, stream=None))]
fn convolve(a: ArrayArg, v: ArrayArg, mode: &str, stream: Option<StreamArg>) -> Res<PyArray> {
    let mode = match mode {
        "full" => ConvolveMode::Full,
        "valid" => ConvolveMode::Valid,
        "same" => ConvolveMode::Same,
        other => {
            let text = format!("mode must be one of 'valid', 'same', or 'full' (got '{other}')");
            return Err(value(format!("[convolve] Invalid mode.\n{text}")));
        }
    };
    made(stream, || ultramarine::convolve(&a.0, &v.0, mode))
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    crate::functions!(m: conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d
        conv_general convolve);
    Ok(())
}
