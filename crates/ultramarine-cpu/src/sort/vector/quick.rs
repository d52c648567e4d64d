//! Quicksort and quickselect with vectors, in place.
//!
//! Partitioning reads from the end that has less room, and writes each vector to both ends with its lanes rearranged:
//! Bramas, "A novel hybrid quicksort algorithm vectorized using AVX-512 on Intel Skylake" (2017); Blacher, Giesen,
//! Kühne (2021). Short runs are sorted by the networks.

use super::lanes::Lane;
use super::network::{ROWS, sort_few};

/// Vectors that are partitioned in one step.
const STEP: usize = 4;
/// Largest number of keys from which a pivot is chosen.
const SAMPLE: usize = 64;

/// Sorts keys.
///
/// # Safety
/// The instructions of [`Lane`] are available.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2,lzcnt,popcnt")]
pub unsafe fn sort<L: Lane>(keys: &mut [L]) {
    // SAFETY: by this function's contract.
    unsafe { sort_to(keys, depth(keys.len())) }
}

/// Moves the key of rank `k` to its place. Keys before it are not larger, and keys after it are not smaller.
///
/// # Safety
/// The instructions of [`Lane`] are available; `k` is below the number of keys.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2,lzcnt,popcnt")]
pub unsafe fn select<L: Lane>(mut keys: &mut [L], mut k: usize) {
    let mut depth = depth(keys.len());
    // SAFETY: by this function's contract.
    unsafe {
        while keys.len() > ROWS * L::N {
            if depth == 0 {
                keys.select_nth_unstable(k);
                return;
            }
            depth -= 1;
            let pivot = pivot(keys);
            let split = partition::<L, true>(keys, pivot);
            if k >= split {
                keys = &mut keys[split..];
                k -= split;
                continue;
            }
            let fully = split == keys.len();
            keys = &mut keys[..split];
            if fully {
                // The pivot is the largest key, and there may be many equal keys.
                let split = partition::<L, false>(keys, pivot);
                if k >= split {
                    return;
                }
                keys = &mut keys[..split];
            }
        }
        sort_few(keys);
    }
}

/// Number of times that a run of `n` keys is partitioned before quicksort is given up.
fn depth(n: usize) -> u32 {
    2 * (usize::BITS - n.leading_zeros())
}

/// # Safety
/// See [`sort`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2,lzcnt,popcnt")]
unsafe fn sort_to<L: Lane>(mut keys: &mut [L], mut depth: u32) {
    // SAFETY: by this function's contract.
    unsafe {
        while keys.len() > ROWS * L::N {
            if depth == 0 {
                keys.sort_unstable();
                return;
            }
            depth -= 1;
            let pivot = pivot(keys);
            let mut split = partition::<L, true>(keys, pivot);
            if split == keys.len() {
                // The pivot is the largest key, so keys that equal it are already in place.
                split = partition::<L, false>(keys, pivot);
                keys = &mut keys[..split];
                continue;
            }
            let (low, high) = keys.split_at_mut(split);
            // The shorter part first, so that the stack stays small.
            let shorter;
            (shorter, keys) = if low.len() < high.len() { (low, high) } else { (high, low) };
            sort_to(shorter, depth);
        }
        sort_few(keys);
    }
}

/// The median of some of the keys, at pseudo-random positions.
///
/// # Safety
/// See [`sort`].
#[inline(always)]
unsafe fn pivot<L: Lane>(keys: &[L]) -> L {
    let n = keys.len();
    let count = if n < 1024 { SAMPLE / 4 } else { SAMPLE };
    let mut sample = [L::MAX; SAMPLE];
    let mut state = n as u32 | 1;
    for key in &mut sample[..count] {
        // A linear congruential generator (Numerical Recipes).
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        *key = keys[((state as u64 * n as u64) >> 32) as usize];
    }
    // SAFETY: by this function's contract.
    unsafe { sort_few(&mut sample[..count]) };
    sample[count / 2]
}

/// Moves the keys that are at most the pivot (without `OR_EQUAL`: below it) to the front; returns their number.
///
/// # Safety
/// The instructions of [`Lane`] are available, and there are at least `2 * STEP * N` keys.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2,lzcnt,popcnt")]
unsafe fn partition<L: Lane, const OR_EQUAL: bool>(keys: &mut [L], pivot: L) -> usize {
    let data = keys.as_mut_ptr();
    let n = keys.len();
    debug_assert!(n >= 2 * STEP * L::N);
    // SAFETY: all of it: unread keys are in [left, right), written keys are outside of [low, high), and both ranges are
    // within the slice. The vectors held from both ends leave room for the writes: after a read from the end that has
    // less room, each end has at least as much room as was read.
    unsafe {
        let bound = pivot.splat();
        let front = |v: L::V| if OR_EQUAL { L::at_most(v, bound) } else { L::below(v, bound) };
        let mut held = [bound; 2 * STEP];
        for i in 0..STEP {
            held[i] = L::load(data.add(i * L::N));
            held[STEP + i] = L::load(data.add(n - (i + 1) * L::N));
        }
        let (mut left, mut right) = (STEP * L::N, n - STEP * L::N);
        let (mut low, mut high) = (0, n);
        let mut put = |v: L::V| {
            let mask = front(v);
            let v = L::split(v, mask);
            L::store(data.add(low), v);
            L::store(data.add(high - L::N), v);
            let count = mask.count_ones() as usize;
            low += count;
            high -= L::N - count;
            (low, high)
        };
        let (mut at_low, mut at_high) = (0, n);
        while right - left >= STEP * L::N {
            let from_left = left - at_low <= at_high - right;
            let at = std::hint::select_unpredictable(from_left, left, right - STEP * L::N);
            left += std::hint::select_unpredictable(from_left, STEP * L::N, 0);
            right -= std::hint::select_unpredictable(from_left, 0, STEP * L::N);
            let mut v = [bound; STEP];
            for (i, v) in v.iter_mut().enumerate() {
                *v = L::load(data.add(at + i * L::N));
            }
            for v in v {
                (at_low, at_high) = put(v);
            }
        }
        while right - left >= L::N {
            let v;
            if left - at_low <= at_high - right {
                v = L::load(data.add(left));
                left += L::N;
            } else {
                right -= L::N;
                v = L::load(data.add(right));
            }
            (at_low, at_high) = put(v);
        }
        let rest = right - left;
        if rest > 0 {
            let v = L::load_some(data.add(left), rest);
            let lanes = (1u32 << rest) - 1;
            let mask = front(v) & lanes;
            let count = mask.count_ones() as usize;
            L::pack(data.add(at_low), v, mask);
            at_low += count;
            at_high -= rest - count;
            L::pack(data.add(at_high), v, !mask & lanes);
        }
        // The remaining room fits exactly the held vectors.
        for v in held {
            let mask = front(v);
            let v = L::split(v, mask);
            L::store(data.add(at_low), v);
            L::store(data.add(at_high - L::N), v);
            let count = mask.count_ones() as usize;
            at_low += count;
            at_high -= L::N - count;
        }
        debug_assert!(at_low == at_high);
        at_low
    }
}
