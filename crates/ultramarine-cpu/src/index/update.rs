//! The functions that combine updates into a scatter's target.

use super::indices::SKIP;
use crate::arith::{Accumulator, Number};
use crate::strided::{for_size, move_run};
use crate::{dtype::DType, kernel::Refusal};
use ultramarine_abi::schema::scatter;

/// Combines runs of `count` elements: for each offset `to[k]` (but [`SKIP`]), in
/// order, the run at `target + to[k]` with that at `updates + from[k]`.
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
    for (to, from) in to.iter().zip(from).filter(|(to, _)| **to != SKIP) {
        let (to, from) = (target.wrapping_offset(*to), updates.wrapping_offset(*from));
        // SAFETY: by this function's contract.
        unsafe {
            if count == 1 {
                to.write_unaligned(from.read_unaligned());
            } else {
                move_run(from, from_step, to, to_step, count);
            }
        }
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
// With a NaN on either side the extremes become the update, as in MLX.
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
    for (to, from) in to.iter().zip(from).filter(|(to, _)| **to != SKIP) {
        let (to, from) = (target.wrapping_offset(*to), updates.wrapping_offset(*from));
        let one = |to: *mut T, from: *const T| {
            // SAFETY: by this function's contract both are valid elements.
            unsafe { *to = T::down(C::combine((*to).up(), (*from).up())) }
        };
        if count == 1 {
            one(to, from);
        } else if to_step == 1 && from_step == 1 {
            for i in 0..count {
                one(to.wrapping_add(i), from.wrapping_add(i));
            }
        } else {
            for i in 0..count as isize {
                one(to.wrapping_offset(i * to_step), from.wrapping_offset(i * from_step));
            }
        }
    }
}
