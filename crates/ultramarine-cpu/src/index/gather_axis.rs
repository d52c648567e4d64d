//! GATHER_AXIS: one index per output element, along one axis.

use super::BLOCK;
use super::indices::{OutOfRange, add_offsets};
use crate::kernel::{Args, Context, Kernel, Prepared, Refusal, Signature, View};
use crate::strided::{Nest, TASK, for_size, ranges};
use crate::{level::Level, par::Shared};
use ultramarine_abi::schema::AxisAttrs;

struct GatherAxis {
    axis: usize,
    level: Level,
}

/// Prepares GATHER_AXIS.
pub fn prepare(attrs: AxisAttrs, signature: &Signature<'_>, level: Level) -> Prepared {
    let ([source, indices], [output]) = (signature.inputs, signature.outputs) else {
        return Err(Refusal::Invalid("gather_axis takes a source and indices".into()));
    };
    let rank = output.ndim;
    ensure!(
        source.dtype == output.dtype
            && source.ndim == rank
            && indices.ndim == rank
            && (attrs.axis as usize) < rank,
        "gather_axis: ranks, dtypes or axis do not fit"
    );
    if !indices.dtype.is_int() {
        return Err(Refusal::Unsupported);
    }
    Ok(Box::new(GatherAxis { axis: attrs.axis as usize, level }))
}

/// Strides of `view` as if it had been broadcast to `shape`; `None` if it cannot be broadcast. The
/// axis `except` is ignored.
pub(super) fn broadcast(view: &View<'_>, shape: &[i64], except: Option<usize>) -> Option<Vec<i64>> {
    (0..shape.len())
        .map(|a| match view.shape[a] {
            _ if except == Some(a) => Some(view.strides[a]),
            n if n == shape[a] => Some(view.strides[a]),
            1 => Some(0),
            _ => None,
        })
        .collect()
}

impl Kernel for GatherAxis {
    unsafe fn run(&self, cx: &Context, args: &Args<'_>) -> Result<(), String> {
        let (source, indices, output) = (&args.inputs[0], &args.inputs[1], &args.outputs[0]);
        let axis = self.axis;
        let (Some(from), Some(by)) =
            (broadcast(source, output.shape, Some(axis)), broadcast(indices, output.shape, None))
        else {
            return Err("gather_axis: shapes do not fit".into());
        };
        // The source has stride 0 along the axis, because there the indices give the position.
        let nest = Nest::new((0..output.shape.len()).map(|a| {
            let from = if a == axis { 0 } else { from[a] };
            (output.shape[a], [from, by[a], output.strides[a]])
        }));
        let steps = nest.inner().1;
        let (size, along) = (source.shape[axis], source.strides[axis] as isize);
        let index_bytes = indices.dtype.size() as isize;
        let index_data = Shared(indices.data);
        for_size!(source.dtype.size(), T => {
            let (read, write) = (Shared(source.data as *mut T), Shared(output.data as *mut T));
            ranges(cx.par, nest.size(), TASK / 4, |range| {
                let mut offsets = [0isize; BLOCK];
                nest.rows(range, |_, at, count| {
                    for start in (0..count).step_by(BLOCK) {
                        let offsets = &mut offsets[..BLOCK.min(count - start)];
                        let first = start as isize;
                        for (i, offset) in offsets.iter_mut().enumerate() {
                            *offset = at[0] + (first + i as isize) * steps[0];
                        }
                        let by = (at[1] + first * steps[1]) * index_bytes;
                        let by = index_data.get().wrapping_offset(by);
                        let to = write.get().wrapping_offset(at[2] + first * steps[2]);
                        // SAFETY: the nest's offsets lie inside the tensors, clamped
                        // indices keep to the source's axis; ranges are disjoint.
                        unsafe {
                            add_offsets(
                                self.level, indices.dtype, by, steps[1], (size, size), along,
                                OutOfRange::Clamp, offsets,
                            );
                            for (i, offset) in offsets.iter().enumerate() {
                                let value = read.get().wrapping_offset(*offset).read_unaligned();
                                to.wrapping_offset(i as isize * steps[2]).write_unaligned(value);
                            }
                        }
                    }
                });
            });
        });
        Ok(())
    }
}
