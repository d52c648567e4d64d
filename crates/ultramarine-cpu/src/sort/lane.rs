//! Sorts one lane: its elements are converted to keys, which are sorted and converted back to
//! elements, or to indices.

use super::keys::{Key, Sortable};
use super::radix::{self, Item, Placed, WidePlaced};
use crate::level::{Body, Isa, Level, at};
use crate::par::{Par, Shared};
use crate::scratch::{Scratch, Slot};
use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};

/// A lane. The elements of source and target are valid, do not overlap, and are of the dtype for
/// which the function was chosen (the target of an arg-sort: uint32).
pub struct Lane {
    pub level: Level,
    pub from: *const u8,
    /// Steps are in elements.
    pub from_step: isize,
    pub to: *mut u8,
    pub to_step: isize,
    /// Number of elements.
    pub n: usize,
    /// The rank whose element has to be in its place; `None` for all ranks.
    pub kth: Option<usize>,
}

// SAFETY: sharing the addresses is harmless; accesses are in unsafe blocks of their own.
unsafe impl Sync for Lane {}

/// Sorts a lane. Safety: see [`Lane`].
type SortLane = unsafe fn(&Lane);
/// The same on several threads, at a level that sorts with vectors.
type SortLongLane = unsafe fn(Par, &Lane);

/// The functions for a dtype.
#[derive(Clone, Copy)]
pub struct Functions {
    pub lane: SortLane,
    long: Option<SortLongLane>,
}

impl Functions {
    /// The functions for `T`; with `indices`, they return indices.
    pub fn new<T: Sortable>(indices: bool) -> Self {
        match indices {
            false if size_of::<T>() < 4 => Functions { lane: sort_lane::<T>, long: None },
            false => Functions { lane: sort_lane::<T>, long: Some(sort_long::<T>) },
            true if size_of::<T>() == 8 => {
                Functions { lane: arg_sort_lane::<T, WidePlaced>, long: None }
            }
            true => Functions { lane: arg_sort_lane::<T, Placed>, long: Some(arg_sort_long::<T>) },
        }
    }

    /// The function for long lanes, if the level has one.
    pub fn long(&self, level: Level) -> Option<SortLongLane> {
        self.long.filter(|_| u64::in_vectors(level))
    }
}

/// Scratch memory of up to this size (in units of 16 bytes) is kept by its thread.
const KEPT: usize = 1 << 17;

/// Calls `f` with two buffers of `n` items, which are zero or left over. The second buffer is empty
/// if items are sorted with vectors, which needs only one.
fn with_scratch<I: Item, R>(level: Level, n: usize, f: impl FnOnce(&mut [I], &mut [I]) -> R) -> R {
    thread_local! {
        // Keep the memory, because fresh memory for every lane would cost as much as sorting it.
        static SCRATCH: RefCell<Vec<u128>> = const { RefCell::new(Vec::new()) };
    }
    let half = (n * size_of::<I>()).div_ceil(16);
    let mut room = SCRATCH.with(|s| std::mem::take(&mut *s.borrow_mut()));
    let second = if I::in_vectors(level) { 0 } else { n };
    let all = half + if second > 0 { half } else { 0 };
    if room.len() < all {
        room = vec![0; all];
    }
    let (a, b) = room[..all].split_at_mut(half);
    let items = |part: &mut [u128], n: usize| {
        debug_assert!(size_of_val(part) >= n * size_of::<I>());
        part.as_mut_ptr() as *mut I
    };
    // SAFETY: the parts hold as many items; items are plain integers, for which any
    // bits are valid, of an alignment of at most 16; the parts are disjoint.
    let result = unsafe {
        f(
            std::slice::from_raw_parts_mut(items(a, n), n),
            std::slice::from_raw_parts_mut(items(b, second), second),
        )
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

/// Converts elements to keys; returns whether some keys are ambiguous.
struct ToKeys<'a, T: Sortable> {
    from: *const u8,
    step: isize,
    keys: &'a mut [T::Key],
}

impl<T: Sortable> Body for ToKeys<'_, T> {
    type Output = bool;
    #[inline(always)]
    fn call<I: Isa>(self, _isa: I) -> bool {
        let from = self.from as *const T;
        let mut ambiguous = false;
        let mut put = |key: &mut T::Key, value: T| {
            *key = value.key();
            ambiguous |= value.is_ambiguous();
        };
        if self.step == 1 {
            // SAFETY: as many elements as keys, by `to_keys`.
            let from = unsafe { std::slice::from_raw_parts(from, self.keys.len()) };
            self.keys.iter_mut().zip(from).for_each(|(key, value)| put(key, *value));
        } else {
            for (i, key) in self.keys.iter_mut().enumerate() {
                // SAFETY: as above.
                put(key, unsafe { *from.wrapping_offset(i as isize * self.step) });
            }
        }
        ambiguous
    }
}

/// Converts elements from index `start` on to keys; returns whether some keys are ambiguous.
///
/// # Safety
/// See [`Lane`].
#[inline]
unsafe fn to_keys<T: Sortable>(lane: &Lane, start: usize, keys: &mut [T::Key]) -> bool {
    debug_assert!(start + keys.len() <= lane.n);
    let from = lane.from.wrapping_offset(start as isize * lane.from_step * size_of::<T>() as isize);
    at(lane.level, ToKeys::<T> { from, step: lane.from_step, keys })
}

/// Converts `n` keys to elements, `step` apart. Target and keys may be the same memory.
struct ToValues<T: Sortable> {
    keys: *const T::Key,
    to: *mut T,
    step: isize,
    n: usize,
}

impl<T: Sortable> Body for ToValues<T> {
    type Output = ();
    #[inline(always)]
    fn call<I: Isa>(self, _isa: I) {
        let ToValues { keys, to, step, n } = self;
        if step == 1 {
            for i in 0..n {
                // SAFETY: made where both are valid; in place, each key is read before its
                // element is written.
                unsafe { *to.add(i) = T::value(*keys.add(i)) };
            }
        } else {
            for i in 0..n {
                // SAFETY: as above.
                unsafe { *to.wrapping_offset(i as isize * step) = T::value(*keys.add(i)) };
            }
        }
    }
}

/// The target as memory for keys, if the keys fit and are sorted in place.
fn target_as_keys<T: Sortable>(lane: &Lane) -> Option<*mut T::Key> {
    let to = lane.to as *mut T::Key;
    (lane.to_step == 1 && T::Key::in_vectors(lane.level) && to.is_aligned()).then_some(to)
}

/// # Safety
/// See [`Lane`].
unsafe fn sort_lane<T: Sortable>(lane: &Lane) {
    let work = |keys: &mut [T::Key], scratch: &mut [T::Key]| {
        // SAFETY: by this function's contract, here and below.
        let ambiguous = unsafe { to_keys::<T>(lane, 0, keys) };
        // Ambiguous elements are put in order only in completely sorted lanes.
        let kth = lane.kth.filter(|_| !ambiguous);
        let sorted = if radix::sort(lane.level, keys, scratch, kth) { scratch } else { keys };
        let (keys, to) = (sorted.as_ptr(), lane.to as *mut T);
        at(lane.level, ToValues::<T> { keys, to, step: lane.to_step, n: lane.n });
        if ambiguous {
            // SAFETY: as above.
            unsafe { restore::<T>(lane) }
        }
    };
    match target_as_keys::<T>(lane) {
        // SAFETY: the target has room for as many elements, whose keys have their size.
        Some(to) => work(unsafe { std::slice::from_raw_parts_mut(to, lane.n) }, &mut []),
        None => with_scratch::<T::Key, _>(lane.level, lane.n, work),
    }
}

/// # Safety
/// See [`SortLongLane`].
unsafe fn sort_long<T: Sortable>(par: Par, lane: &Lane) {
    let own;
    let keys = match target_as_keys::<T>(lane) {
        Some(to) => to,
        None => {
            own = Scratch::new(Slot::Call, lane.n * size_of::<T>());
            own.get() as *mut T::Key
        }
    };
    let ambiguous = AtomicBool::new(false);
    let shared = Shared(keys);
    let make = |start: usize, keys: &mut [T::Key]| {
        // SAFETY: by this function's contract.
        if unsafe { to_keys::<T>(lane, start, keys) } {
            ambiguous.store(true, Ordering::Relaxed);
        }
    };
    let finish = |range: std::ops::Range<usize>| {
        let keys = shared.get().wrapping_add(range.start);
        let to = (lane.to as *mut T).wrapping_offset(range.start as isize * lane.to_step);
        at(lane.level, ToValues::<T> { keys, to, step: lane.to_step, n: range.len() });
    };
    // SAFETY: the target or the buffer has room for the keys.
    unsafe {
        T::Key::sort_long(par, lane.n, keys, &make, &finish);
        if ambiguous.into_inner() {
            restore::<T>(lane);
        }
    }
}

/// Restores elements whose bits differ from those of their key (such as -0.0). Elements with the
/// same key get the order that they have in the source.
///
/// # Safety
/// See [`Lane`]; the target is sorted.
unsafe fn restore<T: Sortable>(lane: &Lane) {
    let to = lane.to as *mut T;
    let place = |i: usize| to.wrapping_offset(i as isize * lane.to_step);
    // For each key of several elements, the next free position.
    let mut next = std::collections::HashMap::new();
    let first = |key: T::Key| {
        let (mut low, mut high) = (0, lane.n);
        while low < high {
            let middle = low + (high - low) / 2;
            // SAFETY: an element of the target.
            let is_below = unsafe { *place(middle) }.key() < key;
            (low, high) = if is_below { (middle + 1, high) } else { (low, middle) };
        }
        low
    };
    // SAFETY: the lane's elements; a key has as many places as elements.
    unsafe {
        each(lane.from, lane.from_step, lane.n, |_, value: T| {
            if value.is_ambiguous() {
                let key = value.key();
                next.entry(key.wide()).or_insert_with(|| first(key));
            }
        });
        each(lane.from, lane.from_step, lane.n, |_, value: T| {
            if value.shares_key()
                && let Some(at) = next.get_mut(&value.key().wide())
            {
                *place(*at) = value;
                *at += 1;
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

/// The items of the elements from number `start` on.
///
/// # Safety
/// See [`Lane`].
unsafe fn to_items<T: Sortable, I: PlacedItem>(lane: &Lane, start: usize, items: &mut [I]) {
    debug_assert!(start + items.len() <= lane.n);
    let from = lane.from.wrapping_offset(start as isize * lane.from_step * size_of::<T>() as isize);
    // SAFETY: by this function's contract.
    unsafe {
        each(from, lane.from_step, items.len(), |i, value: T| {
            items[i] = I::new(value.key().wide(), (start + i) as u32)
        })
    };
}

/// Writes the indices of items to the target, from position `start` on.
///
/// # Safety
/// See [`Lane`].
unsafe fn to_indices<I: PlacedItem>(lane: &Lane, start: usize, items: &[I]) {
    let to = (lane.to as *mut u32).wrapping_offset(start as isize * lane.to_step);
    for (i, item) in items.iter().enumerate() {
        // SAFETY: by this function's contract.
        unsafe { *to.wrapping_offset(i as isize * lane.to_step) = item.place() };
    }
}

/// # Safety
/// See [`Lane`].
unsafe fn arg_sort_lane<T: Sortable, I: PlacedItem>(lane: &Lane) {
    with_scratch::<I, _>(lane.level, lane.n, |items, scratch| {
        // SAFETY: by this function's contract, here and below.
        unsafe { to_items::<T, I>(lane, 0, items) };
        let sorted =
            if radix::sort(lane.level, items, scratch, lane.kth) { scratch } else { items };
        // SAFETY: as above.
        unsafe { to_indices(lane, 0, sorted) };
    });
}

/// # Safety
/// See [`SortLongLane`].
unsafe fn arg_sort_long<T: Sortable>(par: Par, lane: &Lane) {
    let buffer = Scratch::new(Slot::Call, lane.n * size_of::<Placed>());
    let items = Shared(buffer.get() as *mut Placed);
    let make = |start: usize, keys: &mut [u64]| {
        // SAFETY: a transparent wrapper.
        let items = unsafe { &mut *(&raw mut *keys as *mut [Placed]) };
        // SAFETY: by this function's contract.
        unsafe { to_items::<T, Placed>(lane, start, items) };
    };
    let finish = |range: std::ops::Range<usize>| {
        // SAFETY: sorted items of the buffer, and the target's places for them.
        unsafe {
            let sorted =
                std::slice::from_raw_parts(items.get().wrapping_add(range.start), range.len());
            to_indices(lane, range.start, sorted);
        }
    };
    // SAFETY: the buffer has room for an item of each element.
    unsafe { u64::sort_long(par, lane.n, items.get() as *mut u64, &make, &finish) };
}
