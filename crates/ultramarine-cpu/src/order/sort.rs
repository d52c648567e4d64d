//! SORT and ARG_SORT: ascending and stable, NaN last.

use super::{
    keys::{Key, Sortable},
    radix::{self, Item, Placed, WidePlaced},
};
use crate::{
    dtype::DType,
    kernel::{Args, Context, Kernel, Prepared, Refusal, Signature},
    level::Level,
    par::Shared,
    strided::{Nest, TASK, for_size, move_run, ranges},
};
use std::cell::RefCell;
use ultramarine_abi::schema::AxisAttrs;

/// Sorts one lane: source, its step, target, its step, length.
///
/// Safety: both lanes are valid, of the dtype the function was chosen for (the
/// target of an arg-sort: uint32), and do not overlap.
type SortLane = unsafe fn(*const u8, isize, *mut u8, isize, usize);

struct Sort {
    axis: usize,
    lane: SortLane,
}

/// Prepares SORT (`indices` false) or ARG_SORT (`indices` true).
pub fn prepare(
    attrs: AxisAttrs,
    signature: &Signature<'_>,
    indices: bool,
    _level: Level,
) -> Prepared {
    let ([source], [output]) = (signature.inputs, signature.outputs) else {
        return Err(Refusal::Invalid("sort takes one input".into()));
    };
    let expected = if indices { DType::U32 } else { source.dtype };
    if source.ndim != output.ndim || output.dtype != expected || attrs.axis as usize >= source.ndim
    {
        return Err(Refusal::Invalid("sort: rank, dtype or axis does not fit".into()));
    }
    let lane: SortLane = for_dtype!(source.dtype, T => match indices {
        false => sort_lane::<T>,
        true if size_of::<T>() == 8 => arg_sort_lane::<T, WidePlaced>,
        true => arg_sort_lane::<T, Placed>,
    });
    Ok(Box::new(Sort { axis: attrs.axis as usize, lane }))
}

impl Kernel for Sort {
    unsafe fn run(&self, cx: &Context, args: &Args<'_>) -> Result<(), String> {
        let (source, output) = (&args.inputs[0], &args.outputs[0]);
        let axis = self.axis;
        if source.shape != output.shape {
            return Err("sort's output has another shape than its input".into());
        }
        let length = source.shape[axis] as usize;
        if length > u32::MAX as usize {
            return Err("an axis of 2**32 or more elements cannot be sorted".into());
        }
        let lanes = Nest::new(
            (0..source.shape.len())
                .filter(|a| *a != axis)
                .map(|a| (source.shape[a], [source.strides[a], output.strides[a]])),
        );
        let steps = lanes.inner().1;
        let along = [source.strides[axis] as isize, output.strides[axis] as isize];
        let bytes = [source.dtype.size() as isize, output.dtype.size() as isize];
        let (from, to) = (Shared(source.data), Shared(output.data));
        // Lanes that lie side by side are sorted in a buffer, several at a time: to
        // step along one of them would use one element of each cache line.
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
                            (self.lane)(place(0, lane), along[0], place(1, lane), along[1], length)
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
                            (self.lane)(from, 1, to, 1, length);
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

/// Moves lanes, all of them in step. Steps are those along a lane and from lane to
/// lane, the shape is the lanes' length and number.
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

/// Scratch memory up to this size (in 16 bytes) stays with its thread.
const KEPT: usize = 1 << 17;

/// Calls `f` with two buffers of `n` zero or left-over items.
fn with_scratch<I: Item, R>(n: usize, f: impl FnOnce(&mut [I], &mut [I]) -> R) -> R {
    thread_local! {
        // Kept, as fresh memory for every lane would cost as much as the sorting.
        static SCRATCH: RefCell<Vec<u128>> = const { RefCell::new(Vec::new()) };
    }
    let half = (n * size_of::<I>()).div_ceil(16);
    let mut room = SCRATCH.with(|s| std::mem::take(&mut *s.borrow_mut()));
    if room.len() < 2 * half {
        room = vec![0; 2 * half];
    }
    let (a, b) = room[..2 * half].split_at_mut(half);
    let items = |part: &mut [u128]| {
        debug_assert!(size_of_val(part) >= n * size_of::<I>());
        part.as_mut_ptr() as *mut I
    };
    // SAFETY: both parts hold `n` items; items are plain integers, for which any
    // bits are valid, of an alignment of at most 16; the parts are disjoint.
    let result = unsafe {
        f(std::slice::from_raw_parts_mut(items(a), n), std::slice::from_raw_parts_mut(items(b), n))
    };
    if room.len() <= KEPT {
        SCRATCH.with(|s| *s.borrow_mut() = room);
    }
    result
}

/// Calls `f(i, element)` for the elements of a lane.
///
/// # Safety
/// The lane is valid.
#[inline(always)]
unsafe fn each<T: Copy>(data: *const u8, step: isize, n: usize, mut f: impl FnMut(usize, T)) {
    let data = data as *const T;
    if step == 1 {
        // SAFETY: by this function's contract; elements are aligned.
        unsafe { std::slice::from_raw_parts(data, n) }
            .iter()
            .enumerate()
            .for_each(|(i, v)| f(i, *v));
    } else {
        for i in 0..n {
            // SAFETY: by this function's contract.
            f(i, unsafe { *data.wrapping_offset(i as isize * step) });
        }
    }
}

/// # Safety
/// See [`SortLane`].
unsafe fn sort_lane<T: Sortable>(
    from: *const u8,
    from_step: isize,
    to: *mut u8,
    to_step: isize,
    n: usize,
) {
    with_scratch::<T::Key, _>(n, |keys, scratch| {
        let mut ambiguous = false;
        // SAFETY: by this function's contract, here and below.
        unsafe {
            each(from, from_step, n, |i, value: T| {
                keys[i] = value.key();
                ambiguous |= value.is_ambiguous();
            })
        };
        let sorted = if radix::sort(keys, scratch) { scratch } else { keys };
        let to = to as *mut T;
        let place = |i: usize| to.wrapping_offset(i as isize * to_step);
        if to_step == 1 {
            // SAFETY: as above.
            let to = unsafe { std::slice::from_raw_parts_mut(to, n) };
            to.iter_mut().zip(&*sorted).for_each(|(to, key)| *to = T::value(*key));
        } else {
            for (i, key) in sorted.iter().enumerate() {
                // SAFETY: as above.
                unsafe { *place(i) = T::value(*key) };
            }
        }
        if ambiguous {
            restore::<T>(from, from_step, n, sorted, |i, value| {
                // SAFETY: as above; `i` is below `n`.
                unsafe { *place(i) = value }
            });
        }
    });
}

/// Puts elements that are not what their key says (such as -0.0) where they
/// belong: in the order of the source among those of the same key.
fn restore<T: Sortable>(
    from: *const u8,
    from_step: isize,
    n: usize,
    sorted: &[T::Key],
    mut put: impl FnMut(usize, T),
) {
    // Keys that stand for more than one element, each with the next free place.
    let mut next = std::collections::HashMap::new();
    // SAFETY: the caller's lane.
    unsafe {
        each(from, from_step, n, |_, value: T| {
            if value.is_ambiguous() {
                let key = value.key();
                next.entry(key.wide()).or_insert_with(|| sorted.partition_point(|k| *k < key));
            }
        });
        each(from, from_step, n, |_, value: T| {
            if value.shares_key()
                && let Some(place) = next.get_mut(&value.key().wide())
            {
                put(*place, value);
                *place += 1;
            }
        });
    }
}

/// An item of an arg-sort.
trait PlacedItem: Item {
    fn new(key: u64, place: u32) -> Self;
    fn place(self) -> u32;
}
impl PlacedItem for Placed {
    #[inline(always)]
    fn new(key: u64, place: u32) -> Self {
        Placed(key << 32 | place as u64)
    }
    #[inline(always)]
    fn place(self) -> u32 {
        self.0 as u32
    }
}
impl PlacedItem for WidePlaced {
    #[inline(always)]
    fn new(key: u64, place: u32) -> Self {
        WidePlaced(key, place)
    }
    #[inline(always)]
    fn place(self) -> u32 {
        self.1
    }
}

/// # Safety
/// See [`SortLane`].
unsafe fn arg_sort_lane<T: Sortable, I: PlacedItem>(
    from: *const u8,
    from_step: isize,
    to: *mut u8,
    to_step: isize,
    n: usize,
) {
    with_scratch::<I, _>(n, |items, scratch| {
        // SAFETY: by this function's contract, here and below.
        unsafe {
            each(from, from_step, n, |i, value: T| items[i] = I::new(value.key().wide(), i as u32))
        };
        let sorted = if radix::sort(items, scratch) { scratch } else { items };
        let to = to as *mut u32;
        for (i, item) in sorted.iter().enumerate() {
            // SAFETY: as above.
            unsafe { *to.wrapping_offset(i as isize * to_step) = item.place() };
        }
    });
}
