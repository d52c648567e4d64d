//! Products with quantised matrices: the public functions.

use super::mode::Quantization;
use super::quantize::{check_global_scale, quantize};
use super::rules::QuantizedMatmul;
use super::straight_through::straight_through;
use super::{QuantizationMode, Quantized};
use crate::error::{Error, Result, ensure};
use crate::ops::matmul::grouped::{gather_mm, in_a_row};
use crate::ops::matmul::picks::{Indices, Picks};
use crate::ops::matmul::transposed;
use crate::ops::rules::builders::{with_axis, without_axis};
use crate::ops::rules::shapeless::{SymbolicSize, reshaped, shapeless};
use crate::placement::follow;
use crate::shape::{self, Shape, Show};
use crate::{array::Array, dtype::Dtype};
use smallvec::smallvec;
use std::borrow::Cow;

/// The dtype of products. Also checks that kernels exist for the sizes.
fn result_dtype(op: &str, x: &Array, w: &Quantized) -> Result<Dtype> {
    w.check_parts(op)?;
    let mut dtype = x.dtype();
    if let Some(biases) = &w.biases {
        let own = w.scales.dtype().promote(biases.dtype());
        ensure!(
            own.is_floating(),
            op,
            "Only real floating types are supported but scales.dtype() == {} and biases.dtype() == {}. Convert them with astype(float32).",
            w.scales.dtype(),
            biases.dtype()
        );
        dtype = dtype.promote(own);
    }
    ensure!(
        dtype.is_floating(),
        op,
        "Only real floating types are supported but x.dtype() == {}. Convert it with astype(float32).",
        x.dtype()
    );
    Ok(dtype)
}

/// Checks that the inner sizes are equal; returns them and the columns of the result.
fn sizes(op: &str, x: &Array, w: &Quantized, transpose: bool) -> Result<[usize; 2]> {
    w.check_matrices(op)?;
    let (words, columns) = (w.words.shape(), w.columns());
    let rows = words[words.len() - 2];
    let [inner, n] = if transpose { [columns, rows] } else { [rows, columns] };
    let k = x.shape()[x.ndim() - 1];
    ensure!(
        k == inner,
        op,
        "Last dimension of first input with shape (..., {k}) does not match the expanded quantized matrix ({inner}, {n}) computed from shape {} with group_size={}, bits={} and transpose={transpose}. Reshape the input, or pass the parameters of `quantize`.",
        Show(words),
        w.how.group_size,
        w.how.bits
    );
    ensure!(w.how.is_known(), op, "{}", unknown(w.how));
    Ok([k, n])
}

fn unknown(how: Quantization) -> String {
    format!(
        "Products support groups of 32, 64 or 128 and 1, 2, 3, 4, 5, 6 or 8 bits, but got groups of {} and {} bits. Quantize with one of these.",
        how.group_size, how.bits
    )
}

/// The products of the matrices of x and of `w`, both `(..., rows, columns)` with at least 2 dimensions.
fn products(
    op: &str,
    x: &Array,
    w: &Quantized,
    transpose: bool,
    given: [Option<&Array>; 2],
) -> Result<Array> {
    let dtype = result_dtype(op, x, w)?;
    let [k, n] = sizes(op, x, w, transpose)?;
    let batches = [&x.shape()[..x.ndim() - 2], &w.words.shape()[..w.words.ndim() - 2]];
    let m = x.shape()[x.ndim() - 2];
    let _placement = follow(&[x, &w.words]);
    check_global_scales(op, w, batches[1].iter().product())?;
    let one_for_all = given.iter().all(Option::is_none)
        && batches[1].iter().all(|size| *size == 1)
        && batches[0].len() >= batches[1].len();
    let (indices, mut items) = match one_for_all {
        true => (Indices::default(), Shape::from_slice(batches[0])),
        false => Indices::new(op, batches, given)?,
    };
    items.extend([m, n]);
    shape::check(op, &items)?;
    if items.contains(&0) || k == 0 {
        return Array::zeros(&items, dtype);
    }
    ensure!(
        !batches.concat().contains(&0),
        op,
        "Cannot choose matrices from an empty batch. Pass at least one matrix."
    );
    let x = x.astype(dtype);
    let wide = |a: &Array| if w.is_affine() { a.astype(dtype) } else { a.clone() };
    let count: usize = batches[1].iter().product();
    let global = |a: &Array| a.reshape(&[a.size()])?.broadcast_to(&[count]);
    // A single matrix for all rows needs no axis of matrices.
    let one = one_for_all && w.words.ndim() == 2;
    let is_wide = |a: &Array| !w.is_affine() || a.dtype() == dtype;
    let is_ready =
        one && is_wide(&w.scales) && w.biases.iter().all(is_wide) && w.global_scale.is_none();
    let stacked = |a: &Array| if one { Ok(a.clone()) } else { in_a_row(a) };
    let parts = match is_ready {
        true => Cow::Borrowed(w),
        false => Cow::Owned(Quantized {
            words: stacked(&w.words)?,
            scales: stacked(&wide(&w.scales))?,
            biases: w.biases.as_ref().map(|b| stacked(&wide(b))).transpose()?,
            global_scale: w.global_scale.as_ref().map(global).transpose()?,
            how: w.how,
        }),
    };
    let global_scale = parts.global_scale.is_some();
    let product = QuantizedMatmul { how: w.how, transpose, global_scale, picks: Picks::default() };
    if one_for_all {
        // Compute one product of all rows. A step of a language model already has them in the form that the product
        // takes.
        if x.shape().len() == 3 && x.shape()[0] == 1 && !shapeless() {
            return product.of(&x, &parts, &indices);
        }
        let n = x.ndim() - 1;
        let rows = smallvec![
            SymbolicSize::Fixed(1),
            SymbolicSize::Product(0, n as u8),
            SymbolicSize::own(n)
        ];
        let out = product.of(&reshaped(&x, rows, &[])?, &parts, &indices)?;
        let sizes = (0..n).map(SymbolicSize::partner).chain([SymbolicSize::own(2)]).collect();
        return reshaped(&out, sizes, &[&x]);
    }
    product.of(&in_a_row(&x)?, &parts, &indices)?.reshape(&items)
}

/// Checks that there is one global scale for all matrices, or one for each matrix.
fn check_global_scales(op: &str, w: &Quantized, count: usize) -> Result<()> {
    let Some(scale) = &w.global_scale else { return Ok(()) };
    let is_nvfp4 = w.how.mode == QuantizationMode::Nvfp4;
    if count == 1 || scale.size() == 1 || scale.dtype() != Dtype::Float32 || !is_nvfp4 {
        return check_global_scale(op, w.how, Some(scale));
    }
    ensure!(
        scale.size() == count,
        op,
        "Global scale must have one entry per expert with shape ({count},) but got {}. Reshape it, or pass one scale for each expert.",
        Show(scale.shape())
    );
    Ok(())
}

/// Returns the product of x and a quantised matrix: `x w^T` with `transpose`, else `x w`. The matrix is not dequantized
/// in memory.
///
/// x is `(..., m, k)` or `(k)`. Its leading dimensions are broadcast with those of `w`, which is `(..., n, k)` with
/// `transpose`, else `(..., k, n)`. The result has the dtype to which x, scales and biases promote; sums are computed
/// in float32 (float64 for float64).
///
/// ```
/// use ultramarine::{Array, Dtype, Quantization, quantize, quantized_matmul};
/// let w = Array::ones(&[8, 64], Dtype::Float32)?;
/// let q = quantize(&w, Quantization::default(), None)?;
/// let y = quantized_matmul(&Array::ones(&[3, 64], Dtype::Float32)?, &q, true)?;
/// assert_eq!((y.shape(), y.to_vec::<f32>()?[0]), (&[3, 8][..], 64.0));
/// # Ok::<(), ultramarine::Error>(())
/// ```
///
/// # Errors
/// [`Error::Value`] for operands that are not real floats, parts of `w` that do not fit each other or the mode, inner
/// sizes that differ, and shapes that cannot be broadcast.
pub fn quantized_matmul(x: &Array, w: &Quantized, transpose: bool) -> Result<Array> {
    const OP: &str = "quantized_matmul";
    x.computable(OP)?;
    if x.ndim() == 0 {
        return Err(Error::index(
            OP,
            "x must have at least 1 dimension but has 0. Reshape it to (1,).",
        ));
    }
    if x.ndim() == 1 {
        let row = products(OP, &with_axis(x, 0)?, w, transpose, [None; 2])?;
        return without_axis(&row, row.ndim() - 2);
    }
    products(OP, x, w, transpose, [None; 2])
}

/// Returns products with quantised matrices that are chosen by indices: `x[lhs_indices] w[rhs_indices]^T`, without
/// `transpose` `x[lhs_indices] w[rhs_indices]`. In a mixture of experts, the indices choose the experts' matrices.
///
/// Indices are flat over all but the last two dimensions of x `(..., m, k)` and `w`. They are broadcast with each
/// other, and the result has their shape followed by `(m, n)`. If an operand has no indices, its matrices are taken in
/// order. Negative indices count from the end.
///
/// # Errors
/// As [`quantized_matmul`]; [`Error::Value`] for x of fewer than 2 dimensions, and for indices that are not integers.
pub fn gather_qmm(
    x: &Array,
    w: &Quantized,
    lhs_indices: Option<&Array>,
    rhs_indices: Option<&Array>,
    transpose: bool,
) -> Result<Array> {
    const OP: &str = "gather_qmm";
    check_first(OP, x)?;
    products(OP, x, w, transpose, [lhs_indices, rhs_indices])
}

fn check_first(op: &str, x: &Array) -> Result<()> {
    x.computable(op)?;
    ensure!(
        x.ndim() >= 2,
        op,
        "Input must have at least two dimensions but got input with shape {}. Reshape or expand it.",
        Show(x.shape())
    );
    Ok(())
}

/// A factor, rounded to quantised numbers. Derivatives are those of the unrounded factor.
fn rounded(
    op: &str,
    which: &str,
    x: &Array,
    how: Quantization,
    global_scale: Option<&Array>,
) -> Result<Array> {
    let dtype = x.dtype();
    ensure!(
        dtype.is_floating() && dtype != Dtype::Float64,
        op,
        "Only real floating types except float64 are supported but {which} argument dtype == {dtype}. Convert it with astype(float32)."
    );
    let matrix = x.stop_gradient();
    let matrix = if x.ndim() == 1 { with_axis(&matrix, 0)? } else { matrix };
    let global_scale = global_scale.map(Array::stop_gradient);
    let rounded = quantize(&matrix, how, global_scale.as_ref())?.dequantize(Some(dtype))?;
    let rounded = if x.ndim() == 1 { without_axis(&rounded, 0)? } else { rounded };
    Ok(straight_through(x, &rounded))
}

/// The second factor of [`qqmm`] and [`gather_qqmm`]: quantised beforehand, or rounded by the call.
#[derive(Clone, Copy, Debug)]
pub enum SecondFactor<'a> {
    /// A quantised array.
    Quantized(&'a Quantized),
    /// Floats `(..., n, k)`, which the call rounds to quantised numbers, and which have gradients.
    Floats {
        /// The floats.
        w: &'a Array,
        /// The mode, group size and bits of their rounding.
        how: Quantization,
        /// Their global scale, for nvfp4.
        global_scale: Option<&'a Array>,
    },
}

impl<'a> SecondFactor<'a> {
    fn matrices(self) -> &'a Array {
        match self {
            SecondFactor::Quantized(w) => &w.words,
            SecondFactor::Floats { w, .. } => w,
        }
    }

    fn how(self) -> Quantization {
        match self {
            SecondFactor::Quantized(w) => w.how,
            SecondFactor::Floats { how, .. } => how,
        }
    }

    /// Checks the mode, and that either both factors have a global scale or neither has.
    fn check(self, op: &str, of_x: Option<&Array>) -> Result<()> {
        self.matrices().computable(op)?;
        ensure!(
            self.how().mode != QuantizationMode::Affine,
            op,
            "Both factors are quantized in the modes 'mxfp4', 'mxfp8' and 'nvfp4', but got mode 'affine'. Pass one of these modes, or use `quantized_matmul`."
        );
        check_global_scale(op, self.how(), of_x)?;
        let own = match self {
            SecondFactor::Quantized(w) => w.global_scale.as_ref(),
            SecondFactor::Floats { how, global_scale, .. } => {
                check_global_scale(op, how, global_scale)?;
                global_scale
            }
        };
        ensure!(
            own.is_some() == of_x.is_some(),
            op,
            "For nvfp4 mode, either both global_scale_x and global_scale_w must be provided, or neither. Pass the other, or leave both out."
        );
        Ok(())
    }
}

/// Floats as second factors `(..., k, n)`, rounded.
fn rounded_second(
    op: &str,
    x: &Array,
    (w, how, global_scale): (&Array, Quantization, Option<&Array>),
) -> Result<Array> {
    let last = |a: &Array| a.shape().last().copied();
    ensure!(
        last(x) == last(w),
        op,
        "Last dimension of first input with shape {} must match last dimension of second input with shape {}. Reshape or transpose one of them.",
        Show(x.shape()),
        Show(w.shape())
    );
    transposed(&rounded(op, "second", w, how, global_scale)?)
}

/// Returns the product of `w` and x, which is rounded to quantised numbers as `w` is: `x w^T`, in the dtype of x. The
/// modes are mxfp4, mxfp8 and nvfp4. If `w` is given as floats, it is rounded too. Gradients with respect to rounded
/// factors are those of the product of rounded factors.
///
/// `global_scale` is the scale of x, for nvfp4. Either both factors have one or neither has.
///
/// # Errors
/// As [`quantized_matmul`] and [`quantize`]; [`Error::Value`] for the affine mode, for float64, and for `w` of more
/// than 2 dimensions.
pub fn qqmm(x: &Array, w: SecondFactor<'_>, global_scale: Option<&Array>) -> Result<Array> {
    const OP: &str = "qqmm";
    x.computable(OP)?;
    let rank = w.matrices().ndim();
    if x.ndim() == 0 || rank == 0 {
        return Err(Error::index(
            OP,
            "Operands must have at least 1 dimension but one has 0. Reshape it.",
        ));
    }
    ensure!(
        rank == 2,
        OP,
        "Only 2D inputs are supported but x.ndim() == {} and w.ndim() == {rank}. Reshape both to matrices.",
        x.ndim()
    );
    w.check(OP, global_scale)?;
    let first = || rounded(OP, "first", x, w.how(), global_scale);
    let product = match w {
        SecondFactor::Quantized(w) => quantized_matmul(&first()?, w, true)?,
        SecondFactor::Floats { w, how, global_scale } => {
            let second = rounded_second(OP, x, (w, how, global_scale))?;
            first()?.matmul(&second)?
        }
    };
    Ok(product.astype(x.dtype()))
}

/// [`gather_qmm`] with x rounded to quantised numbers as `w` is; see [`qqmm`].
///
/// # Errors
/// As [`gather_qmm`] and [`qqmm`].
pub fn gather_qqmm(
    x: &Array,
    w: SecondFactor<'_>,
    lhs_indices: Option<&Array>,
    rhs_indices: Option<&Array>,
    global_scale: Option<&Array>,
) -> Result<Array> {
    const OP: &str = "gather_qqmm";
    check_first(OP, x)?;
    w.check(OP, global_scale)?;
    let first = || rounded(OP, "first", x, w.how(), global_scale);
    let product = match w {
        SecondFactor::Quantized(w) => gather_qmm(&first()?, w, lhs_indices, rhs_indices, true)?,
        SecondFactor::Floats { w, how, global_scale } => {
            let second = rounded_second(OP, x, (w, how, global_scale))?;
            gather_mm(&first()?, &second, lhs_indices, rhs_indices)?
        }
    };
    Ok(product.astype(x.dtype()))
}
