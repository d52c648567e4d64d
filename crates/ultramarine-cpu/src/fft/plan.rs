//! Plans of transforms. They are made once for a length and a direction, and kept while they are used.

use super::fold::{Fold, Scale, Twiddles};
use crate::dtype::c64;
use crate::level::{Level, at};
use rustfft::{Fft, FftDirection, FftPlanner, num_complex::Complex};
use std::sync::{Arc, Mutex, PoisonError};
use ultramarine_abi::schema::fft;

/// The transform of a line.
enum Kind {
    /// Complex to complex.
    Complex,
    /// Real numbers of even length, through a complex transform of half the length.
    Half(Twiddles),
    /// Real numbers of odd length, as complex ones.
    Whole,
}

/// A transform of lines of one length.
pub struct Plan {
    code: u32,
    n: usize,
    kind: Kind,
    fft: Arc<dyn Fft<f32>>,
}

#[derive(Clone, Copy, PartialEq)]
struct PlanKey(u32, usize, Level);

/// Recently used plans, the most recent first.
static PLANS: Mutex<Vec<(PlanKey, Arc<Plan>)>> = Mutex::new(Vec::new());

/// Plans are kept while the sum of their lengths is below this (a plan has some 16 bytes per element) ...
const KEPT_LENGTH: usize = 1 << 22;
/// ... and there are no more than this.
const KEPT_PLANS: usize = 64;

/// The plan of a transform of `n` elements; `code` is one of [`fft`].
pub fn get(code: u32, n: usize, level: Level) -> Arc<Plan> {
    let key = PlanKey(code, n, level);
    let plans = || PLANS.lock().unwrap_or_else(PoisonError::into_inner);
    let known = {
        let mut plans = plans();
        let place = plans.iter().position(|(k, _)| *k == key);
        place.map(|i| {
            plans[..=i].rotate_right(1);
            plans[0].1.clone()
        })
    };
    if let Some(plan) = known {
        return plan;
    }
    // Make it outside of the lock, because large plans take a while.
    let plan = Arc::new(Plan::new(code, n, level));
    let mut plans = plans();
    plans.insert(0, (key, plan.clone()));
    let mut length = 0usize;
    let fits = plans.iter().take(KEPT_PLANS).take_while(|(key, _)| {
        length = length.saturating_add(key.1);
        length <= KEPT_LENGTH
    });
    let keep = fits.count().max(1);
    plans.truncate(keep);
    plan
}

/// The number of plans, for tests.
pub fn kept() -> usize {
    PLANS.lock().unwrap_or_else(PoisonError::into_inner).len()
}

/// rustfft's transform. Each transform uses its own planner, because planners never release what they made.
fn transform(n: usize, direction: FftDirection, level: Level) -> Arc<dyn Fft<f32>> {
    #[cfg(target_arch = "x86_64")]
    if level == Level::Baseline {
        return match rustfft::FftPlannerSse::new() {
            Ok(mut planner) => planner.plan_fft(n, direction),
            Err(()) => rustfft::FftPlannerScalar::new().plan_fft(n, direction),
        };
    }
    let _ = level;
    FftPlanner::new().plan_fft(n, direction)
}

fn complex(values: &mut [c64]) -> &mut [Complex<f32>] {
    // SAFETY: both are a float32 real part and a float32 imaginary part, in that order.
    unsafe { std::slice::from_raw_parts_mut(values.as_mut_ptr().cast(), values.len()) }
}

impl Plan {
    fn new(code: u32, n: usize, level: Level) -> Plan {
        let direction = match code {
            fft::FORWARD | fft::REAL => FftDirection::Forward,
            _ => FftDirection::Inverse,
        };
        let (kind, length) = match code {
            fft::FORWARD | fft::BACKWARD => (Kind::Complex, n),
            _ if n.is_multiple_of(2) => (Kind::Half(Twiddles::new(n)), n / 2),
            _ => (Kind::Whole, n),
        };
        Plan { code, n, kind, fft: transform(length, direction, level) }
    }

    /// Complex numbers of scratch memory.
    pub fn scratch_len(&self) -> usize {
        let inside = self.fft.get_inplace_scratch_len().max(self.fft.get_immutable_scratch_len());
        match self.kind {
            Kind::Whole => inside + self.n,
            _ => inside,
        }
    }

    /// Transforms `count` contiguous lines, which are some bytes apart.
    ///
    /// # Safety
    /// The lines are valid and of the dtypes of the plan's code, no other thread writes to them or reads the
    /// target's, and they do not overlap. The scratch has [`Plan::scratch_len`].
    pub unsafe fn run(
        &self,
        (from, from_step): (*const u8, isize),
        (to, to_step): (*mut u8, isize),
        count: usize,
        scale: f32,
        level: Level,
        scratch: &mut [c64],
    ) {
        // Lines that follow one another are one call.
        let dense = (self.n * size_of::<c64>()) as isize;
        let joined = matches!(self.kind, Kind::Complex)
            && (from_step, to_step) == (dense, dense)
            && count > 1;
        if joined {
            // SAFETY: by this function's contract, here and below.
            unsafe { self.complex(from.cast(), to.cast(), count * self.n, scale, level, scratch) };
            return;
        }
        for line in 0..count as isize {
            let from = from.wrapping_offset(line * from_step);
            let to = to.wrapping_offset(line * to_step);
            // SAFETY: as above.
            unsafe {
                match &self.kind {
                    Kind::Complex => {
                        self.complex(from.cast(), to.cast(), self.n, scale, level, scratch);
                    }
                    Kind::Half(twiddles) => {
                        self.half(from.cast(), to.cast(), twiddles, scale, level, scratch);
                    }
                    Kind::Whole if self.code == fft::REAL => {
                        self.whole(from.cast(), to.cast(), scale, scratch);
                    }
                    Kind::Whole => self.whole_back(from.cast(), to.cast(), scale, scratch),
                }
            }
        }
    }

    /// # Safety
    /// As [`Plan::run`]; `n` complex numbers, a multiple of the length.
    unsafe fn complex(
        &self,
        from: *const Complex<f32>,
        to: *mut c64,
        n: usize,
        scale: f32,
        level: Level,
        scratch: &mut [c64],
    ) {
        // SAFETY: by this function's contract.
        let (from, to) =
            unsafe { (std::slice::from_raw_parts(from, n), std::slice::from_raw_parts_mut(to, n)) };
        self.fft.process_immutable_with_scratch(from, complex(to), complex(scratch));
        if scale != 1.0 {
            at(level, Scale { values: to, by: scale });
        }
    }

    /// Either way, of an even length.
    ///
    /// # Safety
    /// As [`Plan::run`]; real numbers are seen as half as many complex ones.
    unsafe fn half(
        &self,
        source: *const c64,
        target: *mut c64,
        twiddles: &Twiddles,
        scale: f32,
        level: Level,
        scratch: &mut [c64],
    ) {
        let half = self.n / 2;
        let back = self.code == fft::REAL_BACKWARD;
        let fold = |source| Fold { half, source, target, back, scale, twiddles };
        if back {
            at(level, fold(source));
            // SAFETY: the target has `half` numbers at least, here and below.
            let room = unsafe { std::slice::from_raw_parts_mut(target, half) };
            self.fft.process_with_scratch(complex(room), complex(scratch));
        } else {
            // SAFETY: as above; the source has `half` numbers.
            let (from, room) = unsafe {
                (
                    std::slice::from_raw_parts(source.cast::<Complex<f32>>(), half),
                    std::slice::from_raw_parts_mut(target, half),
                )
            };
            self.fft.process_immutable_with_scratch(from, complex(room), complex(scratch));
            at(level, fold(target));
        }
    }

    /// Forward, of an odd length.
    ///
    /// # Safety
    /// As [`Plan::run`].
    unsafe fn whole(&self, from: *const f32, to: *mut c64, scale: f32, scratch: &mut [c64]) {
        let (n, half) = (self.n, self.n / 2 + 1);
        let (line, scratch) = scratch.split_at_mut(n);
        // SAFETY: by this function's contract.
        let (from, to) = unsafe {
            (std::slice::from_raw_parts(from, n), std::slice::from_raw_parts_mut(to, half))
        };
        for (to, from) in line.iter_mut().zip(from) {
            *to = c64 { re: *from, im: 0.0 };
        }
        self.fft.process_with_scratch(complex(line), complex(scratch));
        for (to, from) in to.iter_mut().zip(line) {
            *to = c64 { re: from.re * scale, im: from.im * scale };
        }
        // A sum of real numbers.
        to[0].im = 0.0;
    }

    /// Backward, of an odd length.
    ///
    /// # Safety
    /// As [`Plan::run`].
    unsafe fn whole_back(&self, from: *const c64, to: *mut f32, scale: f32, scratch: &mut [c64]) {
        let (n, half) = (self.n, self.n / 2 + 1);
        let (line, scratch) = scratch.split_at_mut(n);
        // SAFETY: by this function's contract.
        let (from, to) = unsafe {
            (std::slice::from_raw_parts(from, half), std::slice::from_raw_parts_mut(to, n))
        };
        line[0] = c64 { re: from[0].re, im: 0.0 };
        for k in 1..half {
            line[k] = from[k];
            line[n - k] = c64 { re: from[k].re, im: -from[k].im };
        }
        self.fft.process_with_scratch(complex(line), complex(scratch));
        for (to, from) in to.iter_mut().zip(line) {
            *to = from.re * scale;
        }
    }
}
