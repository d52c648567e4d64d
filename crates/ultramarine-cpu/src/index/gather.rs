//! GATHER: slices of the source at positions given by index arrays.

use super::BLOCK;
use super::indices::{Addressing, OutOfRange};
use crate::kernel::{Args, Context, Kernel, Prepared, Refusal, Signature, View};
use crate::matmul::simd::prefetch;
use crate::strided::{Nest, TASK, for_size, move_run};
use crate::{level::Level, par::Shared};
use ultramarine_abi::schema::GatherAttrs;

/// Bytes of the next slice that are prefetched while a slice is copied.
const AHEAD: usize = 2048;

struct Gather {
    addressing: Addressing,
}

/// Prepares GATHER.
pub fn prepare(attrs: GatherAttrs, signature: &Signature<'_>, level: Level) -> Prepared {
    let ([source, arrays @ ..], [output]) = (signature.inputs, signature.outputs) else {
        return Err(Refusal::Invalid("gather takes a source and index arrays".into()));
    };
    if source.dtype != output.dtype || output.ndim != attrs.index_ndim as usize + source.ndim {
        return Err(Refusal::Invalid("gather's output does not fit its source".into()));
    }
    let addressing = Addressing::new(
        &attrs.axes,
        attrs.n_indices,
        attrs.index_ndim,
        source.ndim,
        arrays,
        level,
    )?;
    Ok(Box::new(Gather { addressing }))
}

impl Kernel for Gather {
    unsafe fn run(&self, cx: &Context, args: &Args<'_>) -> Result<(), String> {
        let (source, output) = (&args.inputs[0], &args.outputs[0]);
        let bound = self.addressing.bind(source, &args.inputs[1..], output)?;
        let split = self.addressing.index_ndim();
        let positions = Nest::new((0..split).map(|a| (output.shape[a], [output.strides[a]])));
        let slice =
            Nest::new((0..source.shape.len()).map(|a| {
                (output.shape[split + a], [source.strides[a], output.strides[split + a]])
            }));
        // Tasks are blocks of positions, or parts of slices if slices are large.
        let block = (TASK / slice.size()).clamp(1, BLOCK);
        let blocks = positions.size().div_ceil(block);
        let parts = slice.size().div_ceil(TASK);
        // Small blocks are joined so that a task has enough work.
        let joined = (TASK / (block * slice.size())).max(1);
        for_size!(source.dtype.size(), T => {
            let move_block = |number: usize, part: usize| {
                let start = number * block;
                let count = block.min(positions.size() - start);
                let (mut from, mut to) = ([0; BLOCK], [0; BLOCK]);
                // SAFETY: the index arrays are valid (the kernel's contract).
                unsafe { bound.offsets(start, OutOfRange::Clamp, &mut from[..count]) };
                positions.offsets(0, start, &mut to[..count]);
                let part = part * TASK..((part + 1) * TASK).min(slice.size());
                // SAFETY: clamped positions keep slices inside the source, whose slice
                // shape was checked; tasks write disjoint positions or parts of slices.
                unsafe {
                    move_slices::<T>(source, output, &from[..count], &to[..count], &slice, part)
                };
            };
            if parts > 1 {
                cx.par.run(blocks * parts, |task| move_block(task / parts, task % parts));
            } else {
                cx.par.run(blocks.div_ceil(joined), |task| {
                    for number in task * joined..((task + 1) * joined).min(blocks) {
                        move_block(number, 0);
                    }
                });
            }
        });
        Ok(())
    }
}

/// Moves the part `part` of the slices at the offsets `from` to the offsets `to`.
///
/// # Safety
/// All slices lie within their tensors, whose elements have the size of `T`.
unsafe fn move_slices<T: Copy>(
    source: &View<'_>,
    output: &View<'_>,
    from: &[isize],
    to: &[isize],
    slice: &Nest<2>,
    part: std::ops::Range<usize>,
) {
    let source = Shared(source.data as *mut T).get();
    let output = output.data as *mut T;
    let (inner, steps) = slice.inner();
    // SAFETY (all three): the offsets are those of elements, by the contract.
    if slice.size() == 1 {
        for (from, to) in from.iter().zip(to) {
            // SAFETY: as above.
            unsafe {
                let value = source.wrapping_offset(*from).read_unaligned();
                output.wrapping_offset(*to).write_unaligned(value);
            }
        }
    } else if slice.size() == inner {
        let first = part.start as isize;
        for (i, (at, to)) in from.iter().zip(to).enumerate() {
            if let Some(next) = from.get(i + 1)
                && steps[0] == 1
            {
                // The next row can be anywhere, so the processor cannot predict it; prefetch it.
                let next = source.wrapping_offset(next + first).cast::<u8>();
                let bytes = (part.len() * size_of::<T>()).min(AHEAD);
                (0..bytes).step_by(64).for_each(|line| prefetch(next.wrapping_add(line)));
            }
            let from = source.wrapping_offset(at + first * steps[0]);
            let to = output.wrapping_offset(to + first * steps[1]);
            // SAFETY: as above.
            unsafe { move_run(from, steps[0], to, steps[1], part.len()) };
        }
    } else {
        for (from, to) in from.iter().zip(to) {
            slice.rows(part.clone(), |_, at, count| {
                let from = source.wrapping_offset(from + at[0]);
                let to = output.wrapping_offset(to + at[1]);
                // SAFETY: as above.
                unsafe { move_run(from, steps[0], to, steps[1], count) };
            });
        }
    }
}
