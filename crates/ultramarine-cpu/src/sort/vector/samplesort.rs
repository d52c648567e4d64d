//! Samplesort of a long run on several threads: keys are distributed to buckets, which are sorted separately.

use super::{lanes::Lane, quick};
use crate::par::{Par, Shared};
use crate::strided::TASK;
use std::ops::Range;

/// Largest number of buckets of a run.
const BUCKETS: usize = 16;
/// Keys of a sample for each bucket.
const SAMPLE: usize = 64;
/// Keys that are made at a time.
const BLOCK: usize = 1024;

/// The largest key of each of `B` buckets.
type Bounds<L, const B: usize> = [L; B];

/// Sorts `n` keys into `to`. `make(i, keys)` provides the keys from index `i` on, and `finish` gets each part of the
/// result when it is sorted. Both are called on several threads.
///
/// # Safety
/// The instructions of [`Lane`] are available; `to` has room for `n` keys, which nothing else uses.
pub unsafe fn sort_long<L: Lane>(
    par: Par,
    n: usize,
    to: *mut L,
    make: impl Fn(usize, &mut [L]) + Sync,
    finish: impl Fn(Range<usize>) + Sync,
) {
    // Scattering is more expensive with more buckets. The result does not depend on their number. SAFETY: by this
    // function's contract.
    unsafe {
        match par.threads() {
            ..=2 => sort_by::<L, 4>(par, n, to, make, finish),
            3..=4 => sort_by::<L, 8>(par, n, to, make, finish),
            _ => sort_by::<L, BUCKETS>(par, n, to, make, finish),
        }
    }
}

/// As `sort_long`, by `B` buckets.
///
/// # Safety
/// See `sort_long`.
pub unsafe fn sort_by<L: Lane, const B: usize>(
    par: Par,
    n: usize,
    to: *mut L,
    make: impl Fn(usize, &mut [L]) + Sync,
    finish: impl Fn(Range<usize>) + Sync,
) {
    let bounds: Bounds<L, B> = bounds(n, &make);
    let blocks = n.div_ceil(TASK);
    let mut offsets = vec![[0usize; B]; blocks];
    let shared = Shared(offsets.as_mut_ptr());
    let each = |task: usize, work: &mut dyn FnMut(&[L])| {
        let mut keys = [L::MAX; BLOCK];
        let end = ((task + 1) * TASK).min(n);
        for start in (task * TASK..end).step_by(BLOCK) {
            let keys = &mut keys[..BLOCK.min(end - start)];
            make(start, keys);
            work(keys);
        }
    };
    par.run(blocks, |task| {
        // SAFETY: each task has a place of its own.
        let counts = unsafe { &mut *shared.get().add(task) };
        // SAFETY: by this function's contract.
        each(task, &mut |keys| unsafe { count(keys, &bounds, counts) });
    });
    // Convert counts to the offsets of each block's keys.
    let mut starts = [0; BUCKETS + 1];
    let mut total = 0;
    for bucket in 0..B {
        starts[bucket] = total;
        for counts in &mut offsets {
            total += std::mem::replace(&mut counts[bucket], total);
        }
    }
    starts[B] = total;
    let shared = Shared(offsets.as_mut_ptr());
    let to = Shared(to);
    par.run(blocks, |task| {
        // SAFETY: as above.
        let offsets = unsafe { &mut *shared.get().add(task) };
        // SAFETY: the keys are those that were counted, so their offsets are theirs alone.
        each(task, &mut |keys| unsafe { scatter(keys, &bounds, to.get(), offsets) });
    });
    par.run(B, |bucket| {
        let range = starts[bucket]..starts[bucket + 1];
        // SAFETY: the bucket's keys, which were all written.
        unsafe {
            let keys = std::slice::from_raw_parts_mut(to.get().add(range.start), range.len());
            quick::sort(keys);
        }
        finish(range);
    });
}

/// Bounds that probably divide a run into equal parts.
fn bounds<L: Lane, const B: usize>(n: usize, make: &impl Fn(usize, &mut [L])) -> Bounds<L, B> {
    let mut sample = [L::MAX; BUCKETS * SAMPLE];
    let sample = &mut sample[..B * SAMPLE];
    for (i, key) in sample.iter_mut().enumerate() {
        // Pseudo-random positions: multiples of the golden ratio.
        let place = (i as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        make(((place * n as u64) >> 32) as usize, std::slice::from_mut(key));
    }
    sample.sort_unstable();
    std::array::from_fn(|i| sample.get((i + 1) * SAMPLE).copied().unwrap_or(L::MAX))
}

/// Calls `f` for each vector of keys, with a mask of the valid lanes.
///
/// # Safety
/// The instructions of [`Lane`] are available.
#[inline(always)]
unsafe fn vectors<L: Lane>(keys: &[L], mut f: impl FnMut(L::V, u32)) {
    let (whole, rest) = keys.split_at(keys.len() / L::N * L::N);
    // SAFETY: by this function's contract; keys of the slice.
    unsafe {
        for keys in whole.chunks_exact(L::N) {
            f(L::load(keys.as_ptr()), L::ALL);
        }
        if !rest.is_empty() {
            f(L::load_some(rest.as_ptr(), rest.len()), (1 << rest.len()) - 1);
        }
    }
}

/// Adds the keys to the counts of their buckets.
///
/// # Safety
/// The instructions of [`Lane`] are available.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2,lzcnt,popcnt")]
unsafe fn count<L: Lane, const B: usize>(
    keys: &[L],
    bounds: &Bounds<L, B>,
    counts: &mut [usize; B],
) {
    // SAFETY: by this function's contract.
    unsafe {
        let bounds = bounds.map(|b| b.splat());
        // Count the keys that are at most each bound.
        let mut up_to = [0u32; B];
        vectors::<L>(keys, |v, lanes| {
            for (count, bound) in up_to.iter_mut().zip(bounds) {
                *count += (L::at_most(v, bound) & lanes).count_ones();
            }
        });
        let mut below = 0;
        for (count, up_to) in counts.iter_mut().zip(up_to) {
            *count += (up_to - below) as usize;
            below = up_to;
        }
    }
}

/// Writes keys to the offsets of their buckets, and advances the offsets.
///
/// # Safety
/// The instructions of [`Lane`] are available, and the offsets are the keys' own.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2,lzcnt,popcnt")]
unsafe fn scatter<L: Lane, const B: usize>(
    keys: &[L],
    bounds: &Bounds<L, B>,
    to: *mut L,
    offsets: &mut [usize; B],
) {
    // SAFETY: by this function's contract.
    unsafe {
        let bounds = bounds.map(|b| b.splat());
        let mut at = *offsets;
        vectors::<L>(keys, |v, lanes| {
            let mut below = 0;
            for (at, bound) in at.iter_mut().zip(bounds) {
                let up_to = L::at_most(v, bound) & lanes;
                let mask = up_to & !below;
                L::pack(to.add(*at), v, mask);
                *at += mask.count_ones() as usize;
                below = up_to;
            }
        });
        *offsets = at;
    }
}
