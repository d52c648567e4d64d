//! SORT and ARG_SORT: ascending and stable, NaN last. PARTITION and ARG_PARTITION sort only until
//! one element is in its place.

pub mod keys;
mod lane;
mod radix;
pub mod search;
#[cfg(target_arch = "x86_64")]
pub mod vector;

use crate::kernel::{Args, Context, Kernel, Op, Prepared, Refusal, Signature};
use crate::strided::{Nest, TASK, for_size, move_run, ranges};
use crate::{dtype::DType, level::Level, par::Shared};
use lane::{Functions, Lane};
use ultramarine_abi::schema::{AxisAttrs, op};

struct Sort {
    axis: usize,
    functions: Functions,
    /// Set to sort only up to the element whose rank is scalar 0.
    partition: bool,
}

/// The result of a sort or partition.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum SortOutput {
    /// SORT, PARTITION.
    Values,
    /// ARG_SORT, ARG_PARTITION.
    Indices,
}

/// Number of lanes from which on each lane is sorted by one thread.
const MANY: usize = 16;
/// Length from which on lanes are sorted on several threads each, if there are few lanes.
const LONG: usize = 1 << 18;

/// Prepares an operation of the family.
pub fn prepare_op(op: &Op, signature: &Signature<'_>, level: Level) -> Prepared {
    let (result, partition) = match op.id {
        op::SORT => (SortOutput::Values, false),
        op::ARG_SORT => (SortOutput::Indices, false),
        op::PARTITION => (SortOutput::Values, true),
        op::ARG_PARTITION => (SortOutput::Indices, true),
        op::SEARCHSORTED => return search::prepare(op.attributes()?, signature),
        _ => return Err(Refusal::Unsupported),
    };
    prepare(op.attributes()?, signature, result, partition, level)
}

/// Prepares SORT or ARG_SORT; with `partition`, PARTITION or ARG_PARTITION.
pub fn prepare(
    attrs: AxisAttrs,
    signature: &Signature<'_>,
    result: SortOutput,
    partition: bool,
    _level: Level,
) -> Prepared {
    let indices = result == SortOutput::Indices;
    let ([source], [output]) = (signature.inputs, signature.outputs) else {
        return Err(Refusal::Invalid("sort takes one input".into()));
    };
    let expected = if indices { DType::U32 } else { source.dtype };
    if source.ndim != output.ndim || output.dtype != expected || attrs.axis as usize >= source.ndim
    {
        return Err(Refusal::Invalid("sort: rank, dtype or axis does not fit".into()));
    }
    let functions = for_dtype!(source.dtype, T => Functions::new::<T>(indices));
    Ok(Box::new(Sort { axis: attrs.axis as usize, functions, partition }))
}

impl Kernel for Sort {
    unsafe fn run(&self, cx: &Context, args: &Args<'_>) -> Result<(), String> {
        let (source, output) = (&args.inputs[0], &args.outputs[0]);
        let axis = self.axis;
        ensure!(source.shape == output.shape, "sort's output has another shape than its input");
        let length = source.shape[axis] as usize;
        ensure!(length <= u32::MAX as usize, "an axis of 2**32 or more elements cannot be sorted");
        let kth = match (self.partition, args.scalars) {
            (false, _) => None,
            (true, [[k, _], ..]) if (*k as usize) < length => Some(*k as usize),
            (true, _) => return Err("partition: the rank is not one of the axis".into()),
        };
        let lanes = Nest::new(
            (0..source.shape.len())
                .filter(|a| *a != axis)
                .map(|a| (source.shape[a], [source.strides[a], output.strides[a]])),
        );
        let steps = lanes.inner().1;
        let along = [source.strides[axis] as isize, output.strides[axis] as isize];
        let bytes = [source.dtype.size() as isize, output.dtype.size() as isize];
        let (from, to) = (Shared(source.data), Shared(output.data));
        let lane_of = |from: *const u8, from_step: isize, to: *mut u8, to_step: isize| Lane {
            level: cx.level,
            from,
            from_step,
            to,
            to_step,
            n: length,
            kth,
        };
        if length >= LONG
            && kth.is_none()
            && lanes.size() < MANY
            && let Some(long) = self.functions.long(cx.level)
        {
            lanes.rows(0..lanes.size(), |_, at, count| {
                for lane in 0..count as isize {
                    let [from, to] = [0, 1].map(|k| {
                        let data = [from, to][k].get();
                        data.wrapping_offset((at[k] + lane * steps[k]) * bytes[k])
                    });
                    // SAFETY: the lane is the tensors', whose dtypes the functions were chosen for.
                    unsafe { long(cx.par, &lane_of(from, along[0], to, along[1])) };
                }
            });
            return Ok(());
        }
        // Adjacent lanes are sorted in a buffer, several at a time, because stepping along a single
        // one would use one element of each cache line.
        let grouped = along[0].unsigned_abs() > 1 && steps[0].unsigned_abs() == 1 && length > 1;
        let step = (TASK / 4 / length).max(if grouped { GROUP } else { 1 });
        ranges(cx.par, lanes.size(), step, |range| {
            let pitch = length.next_multiple_of(8) + 8;
            let room = if grouped { GROUP * pitch } else { 0 };
            // Elements have at most 8 bytes.
            let (mut unsorted, mut sorted) = (vec![0u64; room], vec![0u64; room]);
            lanes.rows(range, |_, at, count| {
                let place = |k: usize, lane: usize| {
                    let data = [from, to][k].get();
                    data.wrapping_offset((at[k] + lane as isize * steps[k]) * bytes[k])
                };
                if !grouped {
                    for lane in 0..count {
                        // SAFETY: the lane's elements are the tensors', whose dtypes the
                        // function was chosen for; tasks have lanes of their own.
                        unsafe {
                            let (from, to) = (place(0, lane), place(1, lane));
                            (self.functions.lane)(&lane_of(from, along[0], to, along[1]))
                        };
                    }
                    return;
                }
                for first in (0..count).step_by(GROUP) {
                    let group = GROUP.min(count - first);
                    let buffer = [unsorted.as_mut_ptr() as *mut u8, sorted.as_mut_ptr() as *mut u8];
                    let inside = [1, pitch as isize];
                    // SAFETY: as above; the buffers have room for a group of lanes.
                    unsafe {
                        let outside = [along[0], steps[0]];
                        let shape = [length, group];
                        move_lanes(bytes[0], place(0, first), outside, buffer[0], inside, shape);
                        for lane in 0..group as isize {
                            let [from, to] =
                                [0, 1].map(|k| buffer[k].offset(lane * inside[1] * bytes[k]));
                            (self.functions.lane)(&lane_of(from, 1, to, 1));
                        }
                        let outside = [along[1], steps[1]];
                        move_lanes(bytes[1], buffer[1], inside, place(1, first), outside, shape);
                    }
                }
            });
        });
        Ok(())
    }
}

/// Lanes that are sorted in a buffer at a time.
const GROUP: usize = 16;

/// Moves lanes together. Each pair of steps is along a lane and from lane to lane; the shape is the
/// lanes' length and number.
///
/// # Safety
/// All elements, of `size` bytes, are valid; source and target do not overlap.
unsafe fn move_lanes(
    size: isize,
    from: *const u8,
    from_steps: [isize; 2],
    to: *mut u8,
    to_steps: [isize; 2],
    shape: [usize; 2],
) {
    for_size!(size, T => {
        let (from, to) = (from as *const T, to as *mut T);
        for i in 0..shape[0] as isize {
            let from = from.wrapping_offset(i * from_steps[0]);
            let to = to.wrapping_offset(i * to_steps[0]);
            // SAFETY: by this function's contract.
            unsafe { move_run(from, from_steps[1], to, to_steps[1], shape[1]) };
        }
    });
}
