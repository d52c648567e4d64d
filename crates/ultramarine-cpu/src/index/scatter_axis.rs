//! SCATTER_AXIS: one index per update, along one axis.

use super::indices::{OutOfRange, add_offsets};
use super::update::{Update, choose};
use super::{BLOCK, gather_axis::broadcast};
use crate::kernel::{Args, Context, Kernel, Prepared, Refusal, Signature};
use crate::strided::{Nest, TASK, copy, ranges};
use crate::{level::Level, par::Shared};
use ultramarine_abi::schema::ScatterAxisAttrs;

struct ScatterAxis {
    axis: usize,
    update: Update,
    level: Level,
}

/// Prepares SCATTER_AXIS.
pub fn prepare(attrs: ScatterAxisAttrs, signature: &Signature<'_>, level: Level) -> Prepared {
    let ([source, indices, updates], [output]) = (signature.inputs, signature.outputs) else {
        return Err(Refusal::Invalid("scatter_axis takes a source, indices and updates".into()));
    };
    let rank = output.ndim;
    ensure!(
        [source, updates].iter().all(|d| d.dtype == output.dtype && d.ndim == rank)
            && indices.ndim == rank
            && (attrs.axis as usize) < rank,
        "scatter_axis: ranks, dtypes or axis do not fit"
    );
    if !indices.dtype.is_int() {
        return Err(Refusal::Unsupported);
    }
    let update = choose(attrs.op, source.dtype)?;
    Ok(Box::new(ScatterAxis { axis: attrs.axis as usize, update, level }))
}

impl Kernel for ScatterAxis {
    unsafe fn run(&self, cx: &Context, args: &Args<'_>) -> Result<(), String> {
        let [source, indices, updates] = args.inputs else {
            return Err("scatter_axis takes three inputs".into());
        };
        let (output, axis) = (&args.outputs[0], self.axis);
        let rank = output.shape.len();
        // The shape of the scattered values: the output's, except along the axis.
        let mut shape = output.shape.to_vec();
        shape[axis] = indices.shape[axis].max(updates.shape[axis]);
        let (Some(by), Some(from)) =
            (broadcast(indices, &shape, None), broadcast(updates, &shape, None))
        else {
            return Err("scatter_axis: shapes do not fit".into());
        };
        if source.shape != output.shape {
            return Err("scatter_axis: the output has another shape than the source".into());
        }
        // SAFETY: valid views; the same memory only where the source is donated.
        unsafe { copy(cx.par, source, output) };

        // Lanes along the axis are independent; within a lane the order matters.
        let lanes = Nest::new(
            (0..rank)
                .filter(|a| *a != axis)
                .map(|a| (shape[a], [by[a], from[a], output.strides[a]])),
        );
        let length = shape[axis] as usize;
        let steps = lanes.inner().1;
        let along = [by[axis] as isize, from[axis] as isize, output.strides[axis] as isize];
        let limits = (output.shape[axis], output.shape[axis]);
        let index_bytes = indices.dtype.size() as isize;
        let data = [indices, updates, output].map(|v| Shared(v.data));
        // Updates one run. `move_on` is the distance of each tensor between updates; the output
        // moves only across lanes.
        type Offsets = [[isize; BLOCK]; 2];
        let run =
            |offsets: &mut Offsets, at: [isize; 3], move_on: [isize; 3], across, count: usize| {
                let [to, from] = offsets;
                for start in (0..count).step_by(BLOCK) {
                    let to = &mut to[..BLOCK.min(count - start)];
                    for (i, (to, from)) in to.iter_mut().zip(from.iter_mut()).enumerate() {
                        let i = (start + i) as isize;
                        *from = at[1] + i * move_on[1];
                        *to = at[2] + if across { i * move_on[2] } else { 0 };
                    }
                    let by = (at[0] + start as isize * move_on[0]) * index_bytes;
                    let by = data[0].get().wrapping_offset(by);
                    let from = &from[..to.len()];
                    // SAFETY: the nest's offsets lie inside the tensors, and indices
                    // outside the output's axis are skipped; the caller's lanes are its
                    // own.
                    unsafe {
                        let skip = OutOfRange::Skip;
                        add_offsets(
                            self.level,
                            indices.dtype,
                            by,
                            move_on[0],
                            limits,
                            along[2],
                            skip,
                            to,
                        );
                        (self.update)(data[2].get(), to, 1, data[1].get(), from, 1, 1);
                    }
                }
            };
        let across = along[2].unsigned_abs() > steps[2].unsigned_abs() && lanes.inner().0 > 4;
        let step = (TASK / 4 / length).max(if across { 64 } else { 1 });
        ranges(cx.par, lanes.size(), step, |range| {
            let mut offsets = [[0; BLOCK]; 2];
            lanes.rows(range, |_, at, count| {
                if across {
                    for i in 0..length as isize {
                        let at = [at[0] + i * along[0], at[1] + i * along[1], at[2]];
                        run(&mut offsets, at, steps, true, count);
                    }
                } else {
                    for lane in 0..count as isize {
                        let at = [0, 1, 2].map(|k| at[k] + lane * steps[k]);
                        run(&mut offsets, at, along, false, length);
                    }
                }
            });
        });
        Ok(())
    }
}
