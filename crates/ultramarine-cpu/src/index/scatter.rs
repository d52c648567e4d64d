//! SCATTER: updates are combined into a copy of the source, in the order of the index arrays.

use super::BLOCK;
use super::indices::{Addressing, OutOfRange};
use super::update::{Update, choose};
use crate::kernel::{Args, Context, Kernel, Prepared, Refusal, Signature};
use crate::strided::{Nest, copy};
use crate::{level::Level, par::Shared};
use ultramarine_abi::schema::ScatterAttrs;

/// Smallest number of elements of a slice that one task updates.
const PART: usize = 128;

struct Scatter {
    addressing: Addressing,
    update: Update,
}

/// Prepares SCATTER.
pub fn prepare(attrs: ScatterAttrs, signature: &Signature<'_>, level: Level) -> Prepared {
    let ([source, arrays @ .., updates], [output]) = (signature.inputs, signature.outputs) else {
        return Err(Refusal::Invalid("scatter takes a source, index arrays and updates".into()));
    };
    ensure!(
        source.dtype == output.dtype
            && source.dtype == updates.dtype
            && source.ndim == output.ndim
            && updates.ndim == attrs.index_ndim as usize + source.ndim,
        "scatter's output or updates do not fit its source"
    );
    let addressing = Addressing::new(
        &attrs.axes,
        attrs.n_indices,
        attrs.index_ndim,
        source.ndim,
        arrays,
        level,
    )?;
    Ok(Box::new(Scatter { addressing, update: choose(attrs.op, source.dtype)? }))
}

impl Kernel for Scatter {
    unsafe fn run(&self, cx: &Context, args: &Args<'_>) -> Result<(), String> {
        let output = &args.outputs[0];
        let [source, arrays @ .., updates] = args.inputs else { bail!("scatter without updates") };
        ensure!(source.shape == output.shape, "scatter's output has another shape than its source");
        let bound = self.addressing.bind(output, arrays, updates)?;
        // SAFETY: valid views; the same memory only where the source is donated.
        unsafe { copy(cx.par, source, output) };

        let split = self.addressing.index_ndim();
        let positions = Nest::new((0..split).map(|a| (updates.shape[a], [updates.strides[a]])));
        let slice =
            Nest::new((0..output.shape.len()).map(|a| {
                (updates.shape[split + a], [output.strides[a], updates.strides[split + a]])
            }));
        // If slices are one long along indexed axes, different elements of slices never have the
        // same position. Then each task takes a part of the slices, and processes all positions in
        // order. Otherwise one task does everything in order.
        let size = slice.size();
        let part = if bound.single { (size / 64).next_multiple_of(16).max(PART) } else { size };
        // Windows of several runs are processed position by position.
        let together = bound.single || size == slice.inner().0;
        let steps = slice.inner().1;
        let bytes = output.dtype.size() as isize;
        let (target, given) = (Shared(output.data), Shared(updates.data));
        cx.par.run(size.div_ceil(part), |task| {
            let range = task * part..((task + 1) * part).min(size);
            let mut updated = [[0; BLOCK]; 2];
            // The offsets in a row of updates are the same for every block, except the first
            // offset.
            let (length, [stride]) = positions.inner();
            let regular = length == positions.size();
            if regular {
                positions.offsets(0, 0, &mut updated[1][..BLOCK.min(length)]);
            }
            for start in (0..positions.size()).step_by(BLOCK) {
                let count = BLOCK.min(positions.size() - start);
                let [to, from] = &mut updated;
                // SAFETY: the index arrays are valid (the kernel's contract).
                unsafe { bound.offsets(start, OutOfRange::Skip, &mut to[..count]) };
                let mut first_update = 0;
                if regular {
                    first_update = start as isize * stride;
                } else {
                    positions.offsets(0, start, &mut from[..count]);
                }
                let step = if together { count } else { 1 };
                for first in (0..count).step_by(step) {
                    let (to, from) = (&to[first..first + step], &from[first..first + step]);
                    slice.rows(range.clone(), |_, at, count| {
                        let target = target.get().wrapping_offset(at[0] * bytes);
                        let given = given.get().wrapping_offset((at[1] + first_update) * bytes);
                        // SAFETY: positions outside are skipped, so slices, whose shape
                        // was checked, lie inside the output; the updates' offsets are
                        // those of its elements; tasks have elements of their own.
                        unsafe {
                            (self.update)(target, to, steps[0], given, from, steps[1], count)
                        };
                    });
                }
            }
        });
        Ok(())
    }
}
