//! ARG_REDUCE: index of the extreme along an axis; among equal elements the first. The first NaN
//! wins (for complex numbers, the first element whose real part is NaN).

use crate::arith::{Accumulator, Number};
use crate::kernel::{Args, Context, Kernel, Prepared, Refusal, Signature};
use crate::level::{Body, Isa, IsaBaseline, Level, at};
use crate::strided::{Nest, TASK, ranges};
use crate::{dtype::DType, par::Shared};
use ultramarine_abi::schema::{ArgReduceAttrs, arg_reduce};

/// Number of elements among which an extreme is found at a time.
const BLOCK: usize = 1024;
/// Number of lanes that are compared at a time if they are adjacent.
const WIDE: usize = 64;
/// Accumulators of a block.
const ACCUMULATORS: usize = 32;

/// The functions for one dtype and direction. Addresses and steps (in elements) describe runs of
/// valid elements of that dtype.
#[derive(Clone, Copy)]
struct Functions {
    /// Index of the extreme of a run: address, step, count.
    lane: unsafe fn(Level, *const u8, isize, usize) -> u32,
    /// The same for up to [`WIDE`] runs at once. Arguments: address, steps from run to run and
    /// along the runs, length, indices.
    side_by_side: unsafe fn(Level, *const u8, [isize; 2], usize, &mut [u32]),
    /// The index of the extreme among the elements at given indices. Arguments: address, step,
    /// ascending indices.
    pick: unsafe fn(*const u8, isize, &[u32]) -> u32,
}

struct ArgReduce {
    axis: usize,
    functions: Functions,
}

/// Prepares ARG_REDUCE.
pub fn prepare(attrs: ArgReduceAttrs, signature: &Signature<'_>, _level: Level) -> Prepared {
    let ([source], [output]) = (signature.inputs, signature.outputs) else {
        return Err(Refusal::Invalid("arg_reduce takes one input".into()));
    };
    ensure!(
        source.ndim == output.ndim
            && output.dtype == DType::U32
            && (attrs.axis as usize) < source.ndim,
        "arg_reduce: rank, dtype or axis does not fit"
    );
    let functions = for_dtype!(source.dtype, T => match attrs.op {
        arg_reduce::ARGMIN => functions::<T, false>(),
        arg_reduce::ARGMAX => functions::<T, true>(),
        _ => return Err(Refusal::Unsupported),
    });
    Ok(Box::new(ArgReduce { axis: attrs.axis as usize, functions }))
}

impl Kernel for ArgReduce {
    unsafe fn run(&self, cx: &Context, args: &Args<'_>) -> Result<(), String> {
        let (source, output) = (&args.inputs[0], &args.outputs[0]);
        let axis = self.axis;
        let length = source.shape[axis] as usize;
        if length > u32::MAX as usize {
            return Err("arg_reduce: indices of the axis do not fit in uint32".into());
        }
        let fits = |a: usize| output.shape[a] == if a == axis { 1 } else { source.shape[a] };
        ensure!((0..source.shape.len()).all(fits), "arg_reduce: the output's shape does not fit");
        let lanes = Nest::new(
            (0..source.shape.len())
                .filter(|a| *a != axis)
                .map(|a| (source.shape[a], [source.strides[a], output.strides[a]])),
        );
        let (steps, along) = (lanes.inner().1, source.strides[axis] as isize);
        let bytes = source.dtype.size() as isize;
        let (from, to) = (Shared(source.data), Shared(output.data as *mut u32));
        let (level, functions) = (cx.level, self.functions);
        if lanes.size() < 8 && length >= 2 * TASK {
            lanes.rows(0..lanes.size(), |_, at, count| {
                for lane in 0..count as isize {
                    let from =
                        Shared(from.get().wrapping_offset((at[0] + lane * steps[0]) * bytes));
                    let mut found = vec![0; length.div_ceil(TASK)];
                    let place = Shared(found.as_mut_ptr());
                    ranges(cx.par, length, TASK, |range| {
                        let part = from.get().wrapping_offset(range.start as isize * along * bytes);
                        // SAFETY: a part of the lane, and an output slot of its own.
                        unsafe {
                            let index = (functions.lane)(level, part, along, range.len());
                            *place.get().add(range.start / TASK) = index + range.start as u32;
                        }
                    });
                    // SAFETY: the indices are the lane's; the output has an element for it.
                    unsafe {
                        let index = (functions.pick)(from.get(), along, &found);
                        *to.get().wrapping_offset(at[1] + lane * steps[1]) = index;
                    }
                }
            });
            return Ok(());
        }
        let short = length < 2 * ACCUMULATORS;
        let side_by_side =
            lanes.inner().0 >= 8 && (short || (steps[0] == 1 && along.unsigned_abs() != 1));
        let step = (TASK / length).max(if side_by_side { WIDE } else { 1 });
        ranges(cx.par, lanes.size(), step, |range| {
            lanes.rows(range, |_, at, count| {
                let from = |lane: usize| {
                    from.get().wrapping_offset((at[0] + lane as isize * steps[0]) * bytes)
                };
                let to = |lane: usize| to.get().wrapping_offset(at[1] + lane as isize * steps[1]);
                // SAFETY: the lanes are the tensors'; tasks have lanes of their own.
                unsafe {
                    if side_by_side {
                        let mut found = [0; WIDE];
                        for first in (0..count).step_by(WIDE) {
                            let found = &mut found[..WIDE.min(count - first)];
                            let steps = [steps[0], along];
                            (functions.side_by_side)(level, from(first), steps, length, found);
                            for (lane, index) in found.iter().enumerate() {
                                *to(first + lane) = *index;
                            }
                        }
                    } else {
                        for lane in 0..count {
                            *to(lane) = (functions.lane)(level, from(lane), along, length);
                        }
                    }
                }
            });
        });
        Ok(())
    }
}

fn functions<T: Number, const MAX: bool>() -> Functions {
    Functions { lane: lane::<T, MAX>, side_by_side: rows::<T, MAX>, pick: pick::<T, MAX> }
}

/// Compiled for each level, for the types that benefit.
#[inline(always)]
fn run<T: Number, B: Body>(level: Level, body: B) -> B::Output {
    if const { matches!(T::DTYPE, DType::F32 | DType::I32 | DType::F16 | DType::BF16) } {
        at(level, body)
    } else {
        body.call(IsaBaseline)
    }
}

/// True if `new` replaces `old`, which is at an earlier index.
#[inline(always)]
fn beats<A: Accumulator, const MAX: bool>(new: A, old: A) -> bool {
    let better = if MAX { old.lt(new) } else { new.lt(old) };
    (better | new.is_nan()) & !old.is_nan()
}

/// # Safety
/// See [`Functions::pick`].
unsafe fn pick<T: Number, const MAX: bool>(from: *const u8, step: isize, indices: &[u32]) -> u32 {
    // SAFETY: by this function's contract.
    let value = |i: u32| unsafe { *(from as *const T).wrapping_offset(i as isize * step) }.up();
    let better = |old, new| if beats::<T::Acc, MAX>(value(new), value(old)) { new } else { old };
    indices.iter().copied().reduce(better).unwrap_or(0)
}

/// # Safety
/// See [`Functions::lane`].
unsafe fn lane<T: Number, const MAX: bool>(
    level: Level,
    from: *const u8,
    step: isize,
    n: usize,
) -> u32 {
    run::<T, _>(level, Lane::<T, MAX> { from: from as *const T, step, n })
}

struct Lane<T, const MAX: bool> {
    from: *const T,
    step: isize,
    n: usize,
}

impl<T: Number, const MAX: bool> Body for Lane<T, MAX> {
    type Output = u32;
    #[inline(always)]
    fn call<I: Isa>(self, _isa: I) -> u32 {
        let Lane { from, step, n } = self;
        // SAFETY: made by `lane`, whose run is valid.
        let value = |i: usize| unsafe { *from.wrapping_offset(i as isize * step) };
        let mut best = value(0).up();
        // NaNs in imaginary parts have no order, so complex elements are all compared in turn.
        if n < 2 * ACCUMULATORS || T::DTYPE == DType::C64 {
            let mut index = 0;
            for i in 1..n {
                let new = value(i).up();
                // Use selects, because in a short lane branches are mispredicted too often.
                let beats = beats::<T::Acc, MAX>(new, best);
                best = std::hint::select_unpredictable(beats, new, best);
                index = std::hint::select_unpredictable(beats, i, index);
            }
            return index as u32;
        }
        // Find the block that contains the extreme. The element is located within it at the end.
        let mut room = [T::default(); BLOCK];
        let mut winner = 0;
        for start in (0..n).step_by(BLOCK) {
            if best.is_nan() {
                break;
            }
            let count = BLOCK.min(n - start);
            let block = if step == 1 {
                // SAFETY: as above.
                unsafe { std::slice::from_raw_parts(from.wrapping_add(start), count) }
            } else {
                for (i, to) in room[..count].iter_mut().enumerate() {
                    *to = value(start + i);
                }
                &room[..count]
            };
            let found = extreme::<T, MAX>(block);
            if beats::<T::Acc, MAX>(found, best) {
                (best, winner) = (found, start);
            }
        }
        let is_best = |i: &usize| {
            let value = value(*i).up();
            if best.is_nan() {
                value.is_nan()
            } else {
                !value.lt(best) & !best.lt(value) & !value.is_nan()
            }
        };
        (winner..n).find(is_best).unwrap_or(0) as u32
    }
}

/// The extreme of a block, NaN if there is one.
#[inline(always)]
fn extreme<T: Number, const MAX: bool>(block: &[T]) -> T::Acc {
    let lowest = if MAX { T::Acc::LOWEST } else { T::Acc::HIGHEST };
    let better = |best, new| if beats::<T::Acc, MAX>(new, best) { new } else { best };
    if const { !T::DTYPE.is_float() } {
        // The compiler vectorises integer reductions in this form.
        return block.iter().map(|v| v.up()).fold(lowest, better);
    }
    let mut best = [lowest; ACCUMULATORS];
    let (chunks, rest) = block.as_chunks::<ACCUMULATORS>();
    for chunk in chunks {
        for lane in 0..ACCUMULATORS {
            best[lane] = better(best[lane], chunk[lane].up());
        }
    }
    let rest = rest.iter().map(|v| v.up());
    best.into_iter().chain(rest).fold(lowest, better)
}

/// # Safety
/// See [`Functions::side_by_side`].
unsafe fn rows<T: Number, const MAX: bool>(
    level: Level,
    from: *const u8,
    steps: [isize; 2],
    n: usize,
    found: &mut [u32],
) {
    run::<T, _>(level, Rows::<T, MAX> { from: from as *const T, steps, n, found })
}

struct Rows<'a, T, const MAX: bool> {
    from: *const T,
    steps: [isize; 2],
    n: usize,
    found: &'a mut [u32],
}

impl<T: Number, const MAX: bool> Body for Rows<'_, T, MAX> {
    type Output = ();
    #[inline(always)]
    fn call<I: Isa>(self, _isa: I) {
        let count = self.found.len().min(WIDE);
        let [across, along] = self.steps;
        // A row of values: read in place if they are adjacent, else gathered one by one.
        let row = |i: usize, room: &'_ mut [T; WIDE]| -> *const [T; WIDE] {
            let from = self.from.wrapping_offset(i as isize * along);
            if across == 1 && count == WIDE {
                return from as *const [T; WIDE];
            }
            for (lane, to) in room[..count].iter_mut().enumerate() {
                // SAFETY: made by `rows`, whose runs are valid.
                *to = unsafe { *from.wrapping_offset(lane as isize * across) };
            }
            room
        };
        let mut room = [T::default(); WIDE];
        // SAFETY: a whole row of the runs, or the room, here and below.
        let first = unsafe { &*row(0, &mut room) };
        let mut best = [T::default().up(); WIDE];
        for lane in 0..WIDE {
            best[lane] = first[lane].up();
        }
        let mut index = [0u32; WIDE];
        for i in 1..self.n {
            // SAFETY: as above.
            let values = unsafe { &*row(i, &mut room) };
            for lane in 0..WIDE {
                let value = values[lane].up();
                let beats = beats::<T::Acc, MAX>(value, best[lane]);
                best[lane] = if beats { value } else { best[lane] };
                index[lane] = if beats { i as u32 } else { index[lane] };
            }
        }
        self.found[..count].copy_from_slice(&index[..count]);
    }
}
