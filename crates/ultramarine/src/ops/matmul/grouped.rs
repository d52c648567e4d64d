//! Products of gathered matrices, of masked blocks and of segments: the public functions.

use super::picks::{Indices, narrow};
use super::{gather, multiply_matrices, segmented, without_vectors};
use crate::error::{Result, ensure};
use crate::ops::rules::builders::{like, times, with_axis};
use crate::ops::select::where_;
use crate::ops::shape::view::View;
use crate::placement::follow;
use crate::shape::{self, Shape, Show};
use crate::{array::Array, dtype::Dtype};

/// The floating dtype in which two operands are multiplied; errors name `op`.
fn real_dtype(op: &str, a: &Array, b: &Array) -> Result<Dtype> {
    [a, b].into_iter().try_for_each(|x| x.computable(op))?;
    let dtype = a.dtype().promote(b.dtype());
    ensure!(
        dtype.is_inexact() && !dtype.is_complex(),
        op,
        "Only real floating point types are supported but {} and {} were provided which results in {dtype}, which is not a real floating point type. Convert them with astype(float32).",
        a.dtype(),
        b.dtype()
    );
    Ok(dtype)
}

/// Returns products of matrices that are chosen by indices: `a[lhs_indices] @ b[rhs_indices]`.
///
/// Indices refer to the matrices of `a`, `(..., m, k)`, and of `b`, `(..., k, n)`, in row-major order of the leading
/// dimensions. They are broadcast with each other; the result has their shape, then `(m, n)`. If an operand has no
/// indices, its matrices are taken in order. Vectors count as a row of `a` or a column of `b`. Indices out of bounds
/// are treated as in [`Array::take`].
///
/// ```
/// use ultramarine::{Array, gather_mm};
/// let tokens = Array::from_slice(&[2f32, 3.], &[2, 1, 1])?;
/// let experts = Array::from_slice(&[1f32, 10., 100.], &[3, 1, 1])?;
/// let chosen = Array::from_slice(&[2u32, 0], &[2])?;
/// let y = gather_mm(&tokens, &experts, None, Some(&chosen))?;
/// assert_eq!(y.to_vec::<f32>()?, [200., 3.]);
/// # Ok::<(), ultramarine::Error>(())
/// ```
///
/// # Errors
/// [`crate::Error::Value`] for operands that are not real floats or have no dimensions, for inner sizes that differ,
/// for indices that are not integers, and for shapes that cannot be broadcast.
pub fn gather_mm(
    a: &Array,
    b: &Array,
    lhs_indices: Option<&Array>,
    rhs_indices: Option<&Array>,
) -> Result<Array> {
    const OP: &str = "gather_mm";
    if lhs_indices.is_none() && rhs_indices.is_none() {
        return a.matmul(b);
    }
    let dtype = real_dtype(OP, a, b)?;
    ensure!(
        a.ndim() != 0 && b.ndim() != 0,
        OP,
        "Got 0 dimension input. Inputs must have at least one dimension. Reshape them."
    );
    for indices in [lhs_indices, rhs_indices].into_iter().flatten() {
        ensure!(
            indices.dtype().is_integer(),
            OP,
            "Got indices with invalid dtype. Indices must be integral but have type {}. Convert them with astype(int32).",
            indices.dtype()
        );
    }
    let left = if a.ndim() == 1 { with_axis(a, 0)? } else { a.clone() };
    let right = if b.ndim() == 1 { with_axis(b, 1)? } else { b.clone() };
    let (k, inner) = (left.shape()[left.ndim() - 1], right.shape()[right.ndim() - 2]);
    ensure!(
        k == inner,
        OP,
        "Last dimension of first input with shape {} must match second to last dimension of second input with shape {}. Transpose or reshape one of them.",
        Show(left.shape()),
        Show(right.shape())
    );
    let _placement = follow(&[a, b]);
    let batches = [&left.shape()[..left.ndim() - 2], &right.shape()[..right.ndim() - 2]];
    let (indices, items) = Indices::new(OP, batches, [lhs_indices, rhs_indices])?;
    let ([m, n], count) =
        ([left.shape()[left.ndim() - 2], right.shape()[right.ndim() - 1]], shape::size(&items));
    let mut shape = items;
    shape.extend([m, n]);
    shape::check(OP, &shape)?;
    let out = if shape.contains(&0) || k == 0 {
        Array::zeros(&shape, dtype)?
    } else {
        let (left, right) = (in_a_row(&left.promoted(dtype))?, in_a_row(&right.promoted(dtype))?);
        ensure!(
            left.shape()[0] != 0 && right.shape()[0] != 0,
            OP,
            "Cannot choose {count} matrices from an empty batch. Pass at least one matrix."
        );
        gather::product(&left, &right, &indices)?.reshape(&shape)?
    };
    without_vectors(out, a, b)
}

/// The matrices along a single batch axis.
pub(crate) fn in_a_row(a: &Array) -> Result<Array> {
    let (batch, matrix) = a.shape().split_at(a.ndim() - 2);
    let shape = [batch.iter().product(), matrix[0], matrix[1]];
    if *a.shape() == shape {
        return Ok(a.clone());
    }
    // Most weights are already evaluated; their view can be made at once.
    View::Reshape.of_value(a, &shape).map_or_else(|| a.reshape(&shape), Ok)
}

/// The masks of the blocks of [`block_masked_mm`]. Each mask has one element for each block of its matrices. `None`
/// keeps all blocks of the matrices.
#[derive(Clone, Copy, Debug, Default)]
pub struct BlockMasks<'a> {
    /// Mask of the result, (..., rows of blocks, columns of blocks).
    pub out: Option<&'a Array>,
    /// Mask of the left operand.
    pub lhs: Option<&'a Array>,
    /// Mask of the right operand.
    pub rhs: Option<&'a Array>,
}

/// Returns a matrix product whose blocks of `block_size` rows and columns are masked.
///
/// Masks of bool tell which blocks are kept. If a mask has another dtype, all masks are factors. A mask has an element
/// for each block, including the smaller blocks at the ends, and is broadcast to the blocks. Without masks it is the
/// plain product.
///
/// # Errors
/// [`crate::Error::Value`] as [`Array::matmul`]. With a mask also for operands that are not real floats, a `block_size`
/// other than 32 and 64, and masks that cannot be broadcast to the blocks.
pub fn block_masked_mm(
    a: &Array,
    b: &Array,
    block_size: usize,
    masks: BlockMasks<'_>,
) -> Result<Array> {
    const OP: &str = "block_masked_mm";
    let given = [masks.out, masks.lhs, masks.rhs];
    if given.iter().all(Option::is_none) {
        return a.matmul(b);
    }
    ensure!(
        [32, 64].contains(&block_size),
        OP,
        "Only block_sizes 32, 64 are supported. Got block size {block_size}."
    );
    let dtype = real_dtype(OP, a, b)?;
    let _placement = follow(&[a, b]);
    let (a, b) = (a.promoted(dtype), b.promoted(dtype));
    let selects = given.into_iter().flatten().all(|mask| mask.dtype() == Dtype::Bool);
    let masked = |x: &Array, mask: Option<&Array>| match mask {
        Some(mask) if x.ndim() >= 2 => mask_blocks(x, mask, block_size, selects),
        _ => Ok(x.clone()),
    };
    let left = if a.ndim() == 1 { with_axis(&a, 0)? } else { Array::clone(&a) };
    let right = if b.ndim() == 1 { with_axis(&b, 1)? } else { Array::clone(&b) };
    let (left, right) = (masked(&left, masks.lhs)?, masked(&right, masks.rhs)?);
    let out = multiply_matrices(OP, &left, &right, dtype)?;
    without_vectors(masked(&out, masks.out)?, &a, &b)
}

/// A matrix whose blocks are kept, or scaled, by a mask.
fn mask_blocks(x: &Array, mask: &Array, size: usize, selects: bool) -> Result<Array> {
    let (batch, matrix) = x.shape().split_at(x.ndim() - 2);
    let blocks = [matrix[0].div_ceil(size), matrix[1].div_ceil(size)];
    let with_matrix = |sizes: &[usize]| -> Shape { batch.iter().chain(sizes).copied().collect() };
    let mask = mask.broadcast_to(&with_matrix(&blocks))?;
    // Repeat each element for all rows and columns of its block.
    let n = mask.ndim();
    let wide = with_matrix(&[blocks[0], size, blocks[1], size]);
    let mask = with_axis(&with_axis(&mask, n)?, n - 1)?.broadcast_to(&wide)?;
    let mask = mask.reshape(&with_matrix(&blocks.map(|count| count * size)))?;
    let stop: Vec<isize> = x.shape().iter().map(|s| *s as isize).collect();
    let mask = mask.slice(&vec![0; n], &stop, &vec![1; n])?;
    match selects {
        true => where_(&mask, x, like(x, 0.0)),
        false => times(x, &mask.astype(x.dtype())),
    }
}

/// Returns products over segments of the inner dimension. For each pair `(start, end)` of `segments`, `(..., 2)`, it
/// multiplies the columns of `a`, `(m, k)`, by the rows of `b`, `(k, n)`, from `start` up to `end`. The result is
/// `(..., m, n)`.
///
/// Bounds are clamped to `0..k`. A segment that ends before it starts is empty and gives zeros.
///
/// # Errors
/// [`crate::Error::Value`] for operands that are not matrices of real floats, for inner sizes that differ, and for
/// segments that are not integers or not pairs.
pub fn segmented_mm(a: &Array, b: &Array, segments: &Array) -> Result<Array> {
    const OP: &str = "segmented_mm";
    ensure!(
        a.ndim() == 2 && b.ndim() == 2,
        OP,
        "Batched matmul not supported, but operands have shapes {} and {}. Pass matrices.",
        Show(a.shape()),
        Show(b.shape())
    );
    let dtype = real_dtype(OP, a, b)?;
    ensure!(
        segments.dtype().is_integer(),
        OP,
        "Got segments with invalid dtype. Segments must be integral but have type {}. Convert them with astype(uint32).",
        segments.dtype()
    );
    ensure!(
        segments.shape().last() == Some(&2),
        OP,
        "The segments should have shape (..., 2) but {} was provided. Pass a pair (start, end) for each segment.",
        Show(segments.shape())
    );
    let ([m, k], [inner, n]) = ([a.shape()[0], a.shape()[1]], [b.shape()[0], b.shape()[1]]);
    ensure!(
        k == inner,
        OP,
        "Last dimension of first input with shape {} must match second to last dimension of second input with shape {}. Transpose or reshape one of them.",
        Show(a.shape()),
        Show(b.shape())
    );
    let _placement = follow(&[a, b]);
    let (a, b) = (a.promoted(dtype), b.promoted(dtype));
    let mut shape = Shape::from_slice(&segments.shape()[..segments.ndim() - 1]);
    let count: usize = shape.iter().product();
    shape.extend([m, n]);
    if shape.contains(&0) || k == 0 {
        return Array::zeros(&shape, dtype);
    }
    let segments = narrow(segments)?.reshape(&[count, 2])?;
    segmented::product(&a, &b, &segments)?.reshape(&shape)
}
