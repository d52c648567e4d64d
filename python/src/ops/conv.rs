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
    fits.ok_or_else(|| type_(format!("{n} is no int of 32 bits, in {}", type_name(object))).into())
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

macro_rules! forms {
    ($n:literal: $(#[doc = $doc:literal])* $name:ident, $(#[doc = $tdoc:literal])* $transposed:ident;
     |$v:ident| $one:expr) => {
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
            let [stride, padding, dilation] = [stride, padding, dilation].map(|Each($v)| $one);
            made(stream, || {
                ultramarine::$name(&input.0, &weight.0, stride, padding, dilation, groups.0[0])
            })
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
            let [stride, padding, dilation, more] =
                [stride, padding, dilation, output_padding].map(|Each($v)| $one);
            let (x, w, groups) = (&input.0, &weight.0, groups.0[0]);
            made(stream, || {
                ultramarine::$transposed(x, w, stride, padding, dilation, more, groups)
            })
        }
    };
}

forms! {
    1:
    /// The cross-correlation of an input (N, L, C_in) with a weight (C_out, K, C_in / groups):
    /// (N, L_out, C_out), where L_out is (L + 2 padding - dilation (K - 1) - 1) // stride + 1.
    conv1d,
    /// The transposed convolution of an input (N, L, C_in) with a weight (C_out, K, C_in / groups):
    /// (N, L_out, C_out), where L_out is stride (L - 1) - 2 padding + dilation (K - 1) + 1 +
    /// output_padding.
    conv_transpose1d;
    |v| v[0]
}
forms! {
    2:
    /// The cross-correlation of an input (N, H, W, C_in) with a weight (C_out, KH, KW, C_in /
    /// groups): (N, H_out, W_out, C_out). A number is for both axes, or there is one for each.
    conv2d,
    /// The transposed convolution of an input (N, H, W, C_in) with a weight (C_out, KH, KW, C_in /
    /// groups): (N, H_out, W_out, C_out). A number is for both axes, or there is one for each.
    conv_transpose2d;
    |v| v
}
forms! {
    3:
    /// The cross-correlation of an input (N, D, H, W, C_in) with a weight (C_out, KD, KH, KW, C_in /
    /// groups): (N, D_out, H_out, W_out, C_out). A number is for all axes, or there is one for each.
    conv3d,
    /// The transposed convolution of an input (N, D, H, W, C_in) with a weight (C_out, KD, KH, KW,
    /// C_in / groups): (N, D_out, H_out, W_out, C_out). A number is for all axes, or there is one
    /// for each.
    conv_transpose3d;
    |v| v
}

/// The convolution of an input (N, .., C_in) with a weight (C_out, .., C_in / groups), of one to three
/// spatial axes: (N, .., C_out). A number is for all axes, or there is one for each; padding may be
/// a pair of lists, before and behind, and negative. `flip` reverses the kernel along the spatial
/// axes; without it this is a cross-correlation.
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
        groups: groups.0[0],
        flip,
    };
    made(stream, || ultramarine::conv_general(&input.0, &weight.0, &how))
}

/// The discrete convolution of two vectors, of which the shorter one is reversed. `mode` says
/// which part of it: "full", "valid" (where they overlap completely) or "same" (as long as the
/// longer one).
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
