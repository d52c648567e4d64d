//! The functions that combine updates into a scatter's target.

use super::indices::SKIP;
use crate::arith::{Accumulator, Number};
use crate::strided::{for_size, move_run};
use crate::{dtype::DType, kernel::Refusal};
use ultramarine_abi::schema::scatter;

/// Combines runs of `count` elements. For each offset `to[k]`, in order and except [`SKIP`], combines the run at
/// `target + to[k]` with the run at `updates + from[k]`.
///
/// The arguments are the target, `to`, the step of its runs, the updates, `from`,
/// the step of theirs, and `count`; offsets and steps are in elements.
///
/// # Safety
/// All runs are valid, of the dtype that the function was chosen for, and those of
/// the updates overlap no target.
pub type Update = unsafe fn(*mut u8, &[isize], isize, *const u8, &[isize], isize, usize);

/// The function for a [`scatter`] code.
pub fn choose(code: u32, dtype: DType) -> Result<Update, Refusal> {
    if code == scatter::SET {
        return Ok(for_size!(dtype.size(), T => set::<T>));
    }
    Ok(for_dtype!(dtype, T => match code {
        scatter::SUM => combine::<T, Sum>,
        scatter::PROD => combine::<T, Prod>,
        scatter::MIN => combine::<T, Min>,
        scatter::MAX => combine::<T, Max>,
        _ => return Err(Refusal::Unsupported),
    }))
}

/// Elements of the longest run that is moved without a call.
const SHORT: usize = 32;

/// # Safety
/// See [`Update`].
unsafe fn set<T: Copy>(
    target: *mut u8,
    to: &[isize],
    to_step: isize,
    updates: *const u8,
    from: &[isize],
    from_step: isize,
    count: usize,
) {
    let (target, updates) = (target as *mut T, updates as *const T);
    // SAFETY: by this function's contract.
    unsafe {
        if count > SHORT {
            for (to, from) in pairs(target, to, updates, from) {
                move_run(from, from_step, to, to_step, count);
            }
        } else {
            merge(target, to, to_step, updates, from, from_step, count, |_, update| update);
        }
    }
}

/// The addresses of the runs, in order, without those left out.
#[inline(always)]
fn pairs<T>(
    target: *mut T,
    to: &[isize],
    updates: *const T,
    from: &[isize],
) -> impl Iterator<Item = (*mut T, *const T)> {
    let kept = to.iter().zip(from).filter(|(to, _)| **to != SKIP);
    kept.map(move |(to, from)| (target.wrapping_offset(*to), updates.wrapping_offset(*from)))
}

/// Replaces each element of the runs in the target by its combination with that of the updates.
///
/// # Safety
/// See [`Update`].
#[inline(always)]
#[expect(clippy::too_many_arguments, reason = "those of an Update")]
unsafe fn merge<T: Copy>(
    target: *mut T,
    to: &[isize],
    to_step: isize,
    updates: *const T,
    from: &[isize],
    from_step: isize,
    count: usize,
    f: impl Fn(T, T) -> T,
) {
    // SAFETY: by this function's contract.
    unsafe {
        if count == 1 {
            merge_single(target, to, updates, from, f);
        } else if to_step == 1 && from_step == 1 {
            for (to, from) in pairs(target, to, updates, from) {
                let mut i = 0;
                while i + 8 <= count {
                    merge_block::<T, 8>(to.add(i), from.add(i), &f);
                    i += 8;
                }
                if i + 4 <= count {
                    merge_block::<T, 4>(to.add(i), from.add(i), &f);
                    i += 4;
                }
                if i + 2 <= count {
                    merge_block::<T, 2>(to.add(i), from.add(i), &f);
                    i += 2;
                }
                if i < count {
                    merge_block::<T, 1>(to.add(i), from.add(i), &f);
                }
            }
        } else {
            for (to, from) in pairs(target, to, updates, from) {
                for i in 0..count as isize {
                    let from = from.wrapping_offset(i * from_step);
                    merge_block::<T, 1>(to.wrapping_offset(i * to_step), from, &f);
                }
            }
        }
    }
}

/// [`merge`] for runs of one element. It is a separate function so that its addresses stay in registers.
///
/// # Safety
/// As for [`merge`].
#[inline(never)]
unsafe fn merge_single<T: Copy>(
    target: *mut T,
    to: &[isize],
    updates: *const T,
    from: &[isize],
    f: impl Fn(T, T) -> T,
) {
    for (to, from) in pairs(target, to, updates, from) {
        // SAFETY: by this function's contract.
        unsafe { merge_block::<T, 1>(to, from, &f) };
    }
}

/// [`merge`] for `N` elements. All are read before any is written, so that vectorisation needs no proof that the runs
/// are disjoint.
///
/// # Safety
/// Both runs of `N` elements are valid.
#[inline(always)]
unsafe fn merge_block<T: Copy, const N: usize>(to: *mut T, from: *const T, f: &impl Fn(T, T) -> T) {
    // SAFETY: by this function's contract.
    unsafe {
        let mut values = (to as *const [T; N]).read_unaligned();
        let updates = (from as *const [T; N]).read_unaligned();
        for (value, update) in values.iter_mut().zip(updates) {
            *value = f(*value, update);
        }
        (to as *mut [T; N]).write_unaligned(values);
    }
}

trait Combine {
    fn combine<A: Accumulator>(old: A, update: A) -> A;
}

macro_rules! combines {
    ($($name:ident |$old:ident, $update:ident| $value:expr;)*) => {$(
        struct $name;
        impl Combine for $name {
            #[inline(always)]
            fn combine<A: Accumulator>($old: A, $update: A) -> A {
                $value
            }
        }
    )*};
}
// If either side is NaN, MIN and MAX return the update, as in MLX.
combines! {
    Sum |old, update| old.add(update);
    Prod |old, update| old.mul(update);
    Min |old, update| if old.lt(update) { old } else { update };
    Max |old, update| if update.lt(old) { old } else { update };
}

/// # Safety
/// See [`Update`].
unsafe fn combine<T: Number, C: Combine>(
    target: *mut u8,
    to: &[isize],
    to_step: isize,
    updates: *const u8,
    from: &[isize],
    from_step: isize,
    count: usize,
) {
    let (target, updates) = (target as *mut T, updates as *const T);
    let f = |old: T, update: T| T::down(C::combine(old.up(), update.up()));
    // SAFETY: by this function's contract.
    unsafe { merge(target, to, to_step, updates, from, from_step, count, f) };
}
