//! Groups: several narrow elements that are adjacent along k, treated as one 32-bit number.
//!
//! Processors have instructions that multiply two groups and add the sum to a lane: pairs of bfloat16 (AVX512-BF16),
//! pairs of 16-bit and fours of 8-bit integers (AVX512-VNNI). Blocks and kernels treat groups like float32. Packing
//! makes the groups, and fills the last one with zeros.

use super::pack::{Panel, STREAMS, pack};
use super::simd::Storage;

/// Four bytes of several elements, at any address.
#[derive(Clone, Copy, Default)]
#[repr(transparent)]
pub struct Group([u8; 4]);

impl Storage for Group {
    type Acc = u32;
    #[inline(always)]
    fn widen(self) -> u32 {
        u32::from_ne_bytes(self.0)
    }
    #[inline(always)]
    fn narrow(acc: u32) -> Self {
        Group(acc.to_ne_bytes())
    }
}

/// An element's bits.
pub trait Bits: Copy + Default + Into<u32> {}
impl Bits for u8 {}
impl Bits for u16 {}

/// Packs elements in groups of `N`, which fill 32 bits. The panel's `k` counts elements. For processors with AVX-512.
///
/// # Safety
/// As [`super::pack::PackFn`].
#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,fma,f16c")]
pub unsafe fn pack_groups<T: Bits, const N: usize>(p: &Panel) {
    let size = size_of::<T>() as isize;
    let (whole, all) = (p.k / N, p.k.div_ceil(N));
    if p.across == size {
        // SAFETY: passed on.
        return unsafe { rows::<T, N>(p, all) };
    }
    let mut i = 0;
    while i < p.width {
        let (width, ld) = p.at(i);
        let src = p.src.wrapping_offset(i as isize * p.across);
        let to = (p.dst as *mut u32).wrapping_add(i * all);
        let (one, from) = (
            Panel { src, width, ld, dst: to as *mut u8, ..*p },
            usize::from(p.along == size) * whole,
        );
        // SAFETY: one panel of several; groups are four bytes one behind another where elements are.
        unsafe {
            if from > 0 {
                pack::<Group, true>(&Panel { k: whole, along: 4, ..one });
            }
            for q in from..all {
                let there = N.min(p.k - q * N);
                for c in 0..ld {
                    let column = src.wrapping_offset(c as isize * p.across);
                    let element = |t: usize| {
                        let at = column.wrapping_offset((q * N + t) as isize * p.along);
                        *(at as *const T)
                    };
                    let there = if c < width { there } else { 0 };
                    let elements =
                        core::array::from_fn(|t| if t < there { element(t) } else { T::default() });
                    to.add(q * ld + c).write(group::<T, N>(elements));
                }
            }
        }
        i += width;
    }
}

/// Packs elements into one number; the first is in its lowest bits.
#[inline(always)]
pub(super) fn group<T: Bits, const N: usize>(elements: [T; N]) -> u32 {
    let mut group = 0;
    for t in 0..N {
        group |= elements[t].into() << (t * 32 / N);
    }
    group
}

/// Elements across the panel lie next to each other.
///
/// # Safety
/// As [`pack_groups`].
#[inline(always)]
unsafe fn rows<T: Bits, const N: usize>(p: &Panel, all: usize) {
    let line = |q: usize| p.src.wrapping_offset(q as isize * p.along) as *const T;
    let mut q = 0;
    while q < all {
        let end = all.min(q + STREAMS / N);
        let mut at = 0;
        // All panels of a few rows before the next rows, as single elements are packed.
        while at < p.width {
            let (width, ld) = p.at(at);
            for g in q..end {
                let to = (p.dst as *mut u32).wrapping_add(at * all + g * ld);
                let lines = core::array::from_fn(|t| line(g * N + t).wrapping_add(at));
                // SAFETY: rows of the source, as many as there are; ld numbers of the panel.
                unsafe {
                    match N.min(p.k - g * N) {
                        there if there == N => interleave::<T, N>(lines, N, width, to),
                        there => interleave::<T, N>(lines, there, width, to),
                    }
                    (width..ld).for_each(|i| to.add(i).write(0));
                }
            }
            at += width;
        }
        q = end;
    }
}

/// Writes groups of the first elements of each of `there` rows, then of the second ones, and so on.
///
/// # Safety
/// `width` elements of each row are readable, as many numbers writable.
#[inline(always)]
pub(super) unsafe fn interleave<T: Bits, const N: usize>(
    rows: [*const T; N],
    there: usize,
    width: usize,
    to: *mut u32,
) {
    const LANES: usize = 16;
    let mut i = 0;
    // SAFETY: by this function's contract.
    unsafe {
        while i + LANES <= width {
            let mut lanes = [[T::default(); LANES]; N];
            for t in 0..N {
                if t < there {
                    lanes[t] = rows[t].add(i).cast::<[T; LANES]>().read_unaligned();
                }
            }
            let groups: [u32; LANES] =
                core::array::from_fn(|l| group(core::array::from_fn::<T, N, _>(|t| lanes[t][l])));
            to.add(i).cast::<[u32; LANES]>().write_unaligned(groups);
            i += LANES;
        }
        for i in i..width {
            let element = |t: usize| if t < there { *rows[t].add(i) } else { T::default() };
            to.add(i).write(group::<T, N>(core::array::from_fn(element)));
        }
    }
}
