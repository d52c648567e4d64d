//! Sorts by keys: with vectors if the level supports them, else by a least-significant-digit radix
//! sort. Short runs are sorted by comparison.

use crate::{level::Level, par::Par};
use std::ops::Range;

/// Runs up to this length are sorted by comparison.
const SHORT: usize = 256;
/// Length from which on narrow keys are divided into digits of 11 bits.
const LONG: usize = 4096;

/// A key to be sorted, or a key with its index.
pub trait Item: Copy + Ord + Default + Send + Sync + 'static {
    /// Bits of the key.
    const BITS: u32;
    /// A digit of the key.
    fn digit(self, shift: u32, mask: usize) -> usize;
    /// True if items are sorted with vectors at this level.
    #[inline(always)]
    fn in_vectors(_level: Level) -> bool {
        false
    }
    /// Sorts items with vectors, or moves the item of rank `kth` to its place. Returns `false` if
    /// vectors are not supported for these items.
    fn arrange(_level: Level, _items: &mut [Self], _kth: Option<usize>) -> bool {
        false
    }
    /// Sorts `n` keys on several threads. `make` provides the keys from an index on, and `finish`
    /// receives the sorted ranges.
    ///
    /// # Safety
    /// The level has [`Item::in_vectors`]; there is room for the keys at `to`.
    unsafe fn sort_long(
        _par: Par,
        _n: usize,
        _to: *mut Self,
        _make: &Make<'_, Self>,
        _finish: &(dyn Fn(Range<usize>) + Sync),
    ) {
        unreachable!("only asked for where keys are sorted in vectors")
    }
}

/// Provides the keys from an index on.
pub type Make<'a, I> = dyn Fn(usize, &mut [I]) + Sync + 'a;

macro_rules! items {
    ($($t:ty $(, $vectors:ident)?;)*) => {$(
        impl Item for $t {
            const BITS: u32 = <$t>::BITS;
            #[inline(always)]
            fn digit(self, shift: u32, mask: usize) -> usize {
                (self >> shift) as usize & mask
            }
            $(
                #[inline(always)]
                fn in_vectors(level: Level) -> bool {
                    cfg!(target_arch = "x86_64") && level >= Level::V4
                }
                #[cfg(target_arch = "x86_64")]
                fn arrange(level: Level, items: &mut [Self], kth: Option<usize>) -> bool {
                    super::$vectors::arrange(level, items, kth)
                }
                #[cfg(target_arch = "x86_64")]
                unsafe fn sort_long(
                    par: Par,
                    n: usize,
                    to: *mut Self,
                    make: &Make<'_, Self>,
                    finish: &(dyn Fn(Range<usize>) + Sync),
                ) {
                    // SAFETY: by this function's contract.
                    unsafe { super::$vectors::sort_long(par, n, to, make, finish) }
                }
            )?
        }
    )*};
}
items! {
    u8;
    u16;
    u32, vector;
    u64, vector;
}

/// A key of up to 32 bits above its place.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Placed(pub u64);

impl Item for Placed {
    const BITS: u32 = 32;
    #[inline(always)]
    fn digit(self, shift: u32, mask: usize) -> usize {
        Item::digit(self.0, shift + 32, mask)
    }
    #[inline(always)]
    fn in_vectors(level: Level) -> bool {
        u64::in_vectors(level)
    }
    fn arrange(level: Level, items: &mut [Self], kth: Option<usize>) -> bool {
        // SAFETY: a transparent wrapper, whose order is its content's.
        let items = unsafe { &mut *(&raw mut *items as *mut [u64]) };
        u64::arrange(level, items, kth)
    }
}

/// A 64-bit key and its place.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(C)]
pub struct WidePlaced(pub u64, pub u32);

impl Item for WidePlaced {
    const BITS: u32 = 64;
    #[inline(always)]
    fn digit(self, shift: u32, mask: usize) -> usize {
        Item::digit(self.0, shift, mask)
    }
}

/// Sorts `items` stably by key (or moves the one of rank `kth` to its place), using `scratch` of
/// the same length. Returns `true` if the result is in `scratch`.
pub fn sort<I: Item>(level: Level, items: &mut [I], scratch: &mut [I], kth: Option<usize>) -> bool {
    if I::arrange(level, items, kth) {
        return false;
    }
    assert!(items.len() == scratch.len() && items.len() <= u32::MAX as usize);
    if let Some(k) = kth {
        items.select_nth_unstable(k);
        false
    } else if items.len() <= SHORT {
        // Items with equal keys are identical or ordered by their index, so the result is stable.
        items.sort_unstable();
        false
    } else if items.len() < LONG || I::BITS <= 16 || I::BITS == 64 {
        passes::<I, 8, 8>(items, scratch)
    } else {
        passes::<I, 11, 3>(items, scratch)
    }
}

/// One counting pass over all digits of `WIDTH` bits (at most `MOST` of them),
/// then a distributing pass for each digit in which the items differ.
fn passes<'a, I: Item, const WIDTH: usize, const MOST: usize>(
    mut items: &'a mut [I],
    mut scratch: &'a mut [I],
) -> bool {
    let radix = 1usize << WIDTH;
    let mask = radix - 1;
    let digits = (I::BITS as usize).div_ceil(WIDTH).min(MOST);
    let Some(&first) = items.first() else { return false };
    let mut counts = vec![0u32; radix * digits];
    for item in items.iter() {
        for d in 0..digits {
            let at = d * radix + item.digit((d * WIDTH) as u32, mask);
            // SAFETY: the mask keeps the digit below `radix`, and there are `digits`
            // times `radix` counts.
            unsafe { *counts.get_unchecked_mut(at) += 1 };
        }
    }
    let mut swapped = false;
    for (d, counts) in counts.chunks_exact_mut(radix).enumerate() {
        let shift = (d * WIDTH) as u32;
        if counts[first.digit(shift, mask)] as usize == items.len() {
            continue;
        }
        let mut total = 0;
        for count in counts.iter_mut() {
            total += std::mem::replace(count, total);
        }
        for item in items.iter() {
            let place = &mut counts[item.digit(shift, mask)];
            // SAFETY: each item was counted once under its digit, so the places
            // handed out are those below the number of items, the scratch's length
            // (asserted by `sort`).
            unsafe { *scratch.get_unchecked_mut(*place as usize) = *item };
            *place += 1;
        }
        std::mem::swap(&mut items, &mut scratch);
        swapped = !swapped;
    }
    swapped
}
