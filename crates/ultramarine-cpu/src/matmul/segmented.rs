//! SEGMENTED_MATMUL: a product for each segment of the inner dimension.

use super::ops::{Ops, ops};
use super::{GRAIN, Matrix, Product, matrix, multiply, serial};
use crate::dtype::DType;
use crate::kernel::{Args, Context, Kernel, Prepared, Refusal, Signature};
use crate::level::Level;

/// Prepares SEGMENTED_MATMUL.
pub fn prepare(signature: &Signature<'_>) -> Prepared {
    signature.expect(3, 1)?;
    let dtype = signature.outputs[0].dtype;
    if !matches!(dtype, DType::F16 | DType::BF16 | DType::F32 | DType::F64) {
        return Err(Refusal::Unsupported);
    }
    let found = signature.inputs.iter().map(|d| (d.dtype, d.ndim));
    ensure!(
        found.eq([(dtype, 2), (dtype, 2), (DType::I32, 2)]) && signature.outputs[0].ndim == 3,
        "products over segments of other dtypes or ranks"
    );
    Ok(Box::new(SegmentedMatmul {
        ops: Level::of_products().iter().filter_map(|l| ops(dtype, *l)).collect(),
    }))
}

/// The functions for each level that is available.
struct SegmentedMatmul {
    ops: Vec<Ops>,
}

impl Kernel for SegmentedMatmul {
    unsafe fn run(&self, cx: &Context, args: &Args<'_>) -> Result<(), String> {
        let [a, b, segments] = [0, 1, 2].map(|i| &args.inputs[i]);
        let out = &args.outputs[0];
        let [m, k, n] = [a.shape[0], a.shape[1], b.shape[1]];
        let count = segments.shape[0];
        let fits = b.shape[0] == k && segments.shape[1] == 2 && out.shape == [count, m, n];
        ensure!(
            fits,
            "products over segments of {:?} and {:?} to {:?}",
            a.shape,
            b.shape,
            out.shape
        );
        let ops = self.ops.get(cx.level as usize).ok_or("the level is not available")?;
        let bound = |segment: usize, i: usize| {
            let at = segment as i64 * segments.strides[0] + i as i64 * segments.strides[1];
            // SAFETY: an element of the segments, which are int32.
            let bound = unsafe { *segments.data.cast::<i32>().wrapping_offset(at as isize) };
            i64::from(bound).clamp(0, k) as usize
        };
        let size = ops.storage as isize;
        let product = |segment: usize| {
            let (start, end) = (bound(segment, 0), bound(segment, 1));
            let moved =
                |of: Matrix, bytes: isize| Matrix { data: of.data.wrapping_offset(bytes), ..of };
            let (a, b, c) = (matrix(a), matrix(b), matrix(out));
            let factors = [
                moved(a, start as isize * a.col),
                moved(b, start as isize * b.row),
                moved(c, segment as isize * out.strides[0] as isize * size),
            ];
            Product::new(ops, [m as usize, n as usize, end.saturating_sub(start)], factors)
        };
        let count = count as usize;
        let mean =
            (m as usize).saturating_mul(n as usize).saturating_mul(k as usize) / count.max(1);
        // Each small product is a separate task.
        let small = mean < GRAIN && count > 1;
        let one = |segment: usize| {
            let product = product(segment);
            if product.k == 0 || small {
                // SAFETY: segments are within the inner dimension; each has its own part of the result.
                unsafe { serial(&product, cx.level) }
            } else {
                // SAFETY: as above.
                unsafe { multiply(&cx.par, &product, cx.level) }
            }
        };
        if small {
            cx.par.run(count, one);
        } else {
            (0..count).for_each(one);
        }
        Ok(())
    }
}
