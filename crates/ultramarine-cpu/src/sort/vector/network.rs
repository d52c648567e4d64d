//! Sorting networks: up to sixteen vectors of keys, sorted in registers.
//!
//! Keys are the elements of a matrix, with one vector per row. A network (Batcher's odd-even merge sort, 1968) sorts
//! its columns, then bitonic merges join the columns in pairs, as in Blacher, Giesen, Kühne: "Fast and robust
//! vectorized in-place sorting of primitive types" (2021). The sorted columns are then transposed into rows.

use super::lanes::Lane;

/// Vectors that are sorted at once.
pub const ROWS: usize = 16;

/// Sorts up to `ROWS * N` keys.
///
/// # Safety
/// The instructions of [`Lane`] are available.
#[inline(always)]
pub unsafe fn sort_few<L: Lane>(keys: &mut [L]) {
    // SAFETY: by this function's contract; each takes as many keys.
    unsafe {
        match keys.len().div_ceil(L::N) {
            0..=1 => sort_rows::<L, 1>(keys),
            2 => sort_rows::<L, 2>(keys),
            3..=4 => sort_rows::<L, 4>(keys),
            5..=8 => sort_rows::<L, 8>(keys),
            _ => sort_rows::<L, 16>(keys),
        }
    }
}

/// Sorts up to `R * N` keys.
///
/// # Safety
/// The instructions of [`Lane`] are available.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2,lzcnt,popcnt")]
unsafe fn sort_rows<L: Lane, const R: usize>(keys: &mut [L]) {
    debug_assert!(keys.len() <= R * L::N);
    let (data, n) = (keys.as_mut_ptr(), keys.len());
    // SAFETY: all of it: the keys are the slice's, the lengths of partial rows are below `N`.
    unsafe {
        let mut v = [L::splat(L::MAX); R];
        for (row, v) in v.iter_mut().enumerate() {
            let at = data.wrapping_add(row * L::N);
            if (row + 1) * L::N <= n {
                *v = L::load(at);
            } else if row * L::N < n {
                *v = L::load_some(at, n - row * L::N);
            }
        }
        columns::<L, R>(&mut v);
        join::<L, R, 1, 1>(&mut v);
        down::<L, R>(&mut v);
        join::<L, R, 3, 2>(&mut v);
        side::<L, R, 1>(&mut v);
        down::<L, R>(&mut v);
        join::<L, R, 7, 4>(&mut v);
        side::<L, R, 2>(&mut v);
        side::<L, R, 1>(&mut v);
        down::<L, R>(&mut v);
        if L::N == 16 {
            join::<L, R, 15, 8>(&mut v);
            side::<L, R, 4>(&mut v);
            side::<L, R, 2>(&mut v);
            side::<L, R, 1>(&mut v);
            down::<L, R>(&mut v);
        }
        transpose::<L, R>(&mut v);
        for (row, v) in v.iter().enumerate() {
            let at = data.wrapping_add(row * L::N);
            if (row + 1) * L::N <= n {
                L::store(at, *v);
            } else if row * L::N < n {
                L::store_some(at, *v, n - row * L::N);
            }
        }
    }
}

/// Puts the smaller keys into row `a`, the larger ones into row `b`.
///
/// # Safety
/// The instructions of [`Lane`] are available; as for all that follows.
#[inline(always)]
unsafe fn exchange<L: Lane, const R: usize>(v: &mut [L::V; R], a: usize, b: usize) {
    // SAFETY: by this function's contract.
    unsafe { (v[a], v[b]) = (L::lower(v[a], v[b]), L::higher(v[a], v[b])) }
}

/// Sorts each column.
///
/// # Safety
/// See [`exchange`].
#[inline(always)]
unsafe fn columns<L: Lane, const R: usize>(v: &mut [L::V; R]) {
    macro_rules! network {
        ($($a:literal $b:literal),*) => {
            // SAFETY: by this function's contract.
            unsafe { $(exchange::<L, R>(v, $a, $b);)* }
        };
    }
    if R >= 2 {
        network!(0 1);
    }
    if R >= 4 {
        network!(2 3, 0 2, 1 3, 1 2);
    }
    if R >= 8 {
        network!(4 5, 6 7, 4 6, 5 7, 5 6, 0 4, 1 5, 2 6, 3 7, 2 4, 3 5, 1 2, 3 4, 5 6);
    }
    if R >= 16 {
        network!(
            8 9, 10 11, 12 13, 14 15, 8 10, 9 11, 12 14, 13 15, 9 10, 13 14, 8 12, 9 13, 10 14,
            11 15, 10 12, 11 13, 9 10, 11 12, 13 14, 0 8, 1 9, 2 10, 3 11, 4 12, 5 13, 6 14, 7 15,
            4 8, 5 9, 6 10, 7 11, 2 4, 3 5, 6 8, 7 9, 10 12, 11 13, 1 2, 3 4, 5 6, 7 8, 9 10, 11 12,
            13 14
        );
    }
}

/// The first step of joining groups of `C` sorted columns in pairs: the smaller half of the keys is moved to the first
/// group, and both groups are bitonic. `X` is `2 * C - 1`.
///
/// # Safety
/// See [`exchange`].
#[inline(always)]
unsafe fn join<L: Lane, const R: usize, const X: i64, const C: usize>(v: &mut [L::V; R]) {
    // SAFETY: by this function's contract.
    unsafe {
        if R == 1 {
            v[0] = L::parted::<C>(v[0], L::across::<X>(v[0]));
        }
        for i in 0..R / 2 {
            let (a, b) = (v[i], v[R - 1 - i]);
            v[i] = L::parted::<C>(a, L::across::<X>(b));
            v[R - 1 - i] = L::parted::<C>(b, L::across::<X>(a));
        }
    }
}

/// Compares each column with the column at distance `D`.
///
/// # Safety
/// See [`exchange`].
#[inline(always)]
unsafe fn side<L: Lane, const R: usize, const D: i64>(v: &mut [L::V; R]) {
    // SAFETY: by this function's contract.
    unsafe {
        for v in v.iter_mut() {
            let other = L::across::<D>(*v);
            *v = match D {
                1 => L::parted::<1>(*v, other),
                2 => L::parted::<2>(*v, other),
                _ => L::parted::<4>(*v, other),
            };
        }
    }
}

/// Sorts columns that are bitonic.
///
/// # Safety
/// See [`exchange`].
#[inline(always)]
unsafe fn down<L: Lane, const R: usize>(v: &mut [L::V; R]) {
    macro_rules! step {
        ($($d:literal)*) => {$(
            for i in 0..R {
                if $d < R && i & $d == 0 {
                    // SAFETY: by this function's contract.
                    unsafe { exchange::<L, R>(v, i, i + $d) }
                }
            }
        )*};
    }
    step!(8 4 2 1);
}

/// Transposes the sequence of columns into rows, by interleaving halves of the rows.
///
/// # Safety
/// See [`exchange`].
#[inline(always)]
unsafe fn transpose<L: Lane, const R: usize>(v: &mut [L::V; R]) {
    // `$m` runs of `R / $m` rows each.
    macro_rules! step {
        ($($m:literal)*) => {$(
            if $m <= R {
                let old = *v;
                let q = R / $m;
                for i in 0..R / 2 {
                    let (run, t) = (i / q, i % q);
                    // SAFETY: by this function's contract.
                    let (low, high) = unsafe { L::riffle(old[i], old[i + R / 2]) };
                    v[run * 2 * q + 2 * t] = low;
                    v[run * 2 * q + 2 * t + 1] = high;
                }
            }
        )*};
    }
    step!(16 8 4 2);
}
