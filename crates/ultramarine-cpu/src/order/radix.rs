//! Sorting by keys: least-significant-digit radix sort, and comparison sort for
//! short runs.

/// Runs up to this length are sorted by comparison.
const SHORT: usize = 256;
/// From this length on, narrow keys are taken apart in digits of 11 bits.
const LONG: usize = 4096;

/// What is sorted: a key, or a key with its place.
pub trait Item: Copy + Ord + Default + Send + Sync + 'static {
    /// Bits of the key.
    const BITS: u32;
    /// A digit of the key.
    fn digit(self, shift: u32, mask: usize) -> usize;
}

macro_rules! items {
    ($($t:ty)*) => {$(
        impl Item for $t {
            const BITS: u32 = <$t>::BITS;
            #[inline(always)]
            fn digit(self, shift: u32, mask: usize) -> usize {
                (self >> shift) as usize & mask
            }
        }
    )*};
}
items!(u8 u16 u32 u64);

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

/// Sorts `items` stably by key, using `scratch` of the same length; `true` when
/// the result lies in `scratch`.
pub fn sort<I: Item>(items: &mut [I], scratch: &mut [I]) -> bool {
    assert!(items.len() == scratch.len() && items.len() <= u32::MAX as usize);
    if items.len() <= SHORT {
        // Items of equal keys are the same, or ordered by place: stable.
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
