//! SCAN: running sums, products, extremes and logarithms of sums of exponentials.
//! float16 and bfloat16 run in float32 and are rounded at each element.

use crate::arith::{Accumulator, Number};
use crate::kernel::{Args, Context, Kernel, Prepared, Refusal, Signature};
use crate::strided::{Nest, TASK, ranges};
use crate::{dtype::DType, level::Level, par::Shared};
use ultramarine_abi::schema::{ScanAttrs, reduce};

/// Number of adjacent lanes that are scanned together.
const WIDE: usize = 128;
/// Number of other lanes that are scanned together, so that their additions overlap in time.
const GROUP: usize = 8;
/// Elements of a lane that are scanned before the next lane continues.
const PIECE: usize = 16;
/// Elements of a part of a lane, if there are too few lanes.
const PART: usize = 1 << 13;

/// Lanes of one call: lane `l` starts at `from + l * across[0]`.
#[derive(Clone, Copy)]
struct Lanes<'a> {
    from: *const u8,
    to: *mut u8,
    /// Steps along a lane, in elements: source, target.
    along: [isize; 2],
    /// Steps from lane to lane.
    across: [isize; 2],
    lanes: usize,
    length: usize,
    inclusive: bool,
    /// The bits of each lane's initial value; without them it is the neutral element.
    starts: &'a [u64],
}

/// The functions for one dtype and operation.
#[derive(Clone, Copy)]
struct Functions {
    /// Bytes of an element.
    size: isize,
    /// Scans lanes. Safety: the lanes are valid, source and target do not overlap (unless they are
    /// identical), and `starts` is of this dtype and operation.
    lanes: unsafe fn(&Lanes<'_>),
    /// Bits of the reduction of a run of elements (address, step, count). Safety:
    /// the run is valid.
    total: unsafe fn(*const u8, isize, usize) -> u64,
    /// Replaces each total by the reduction of the totals before it.
    carry: fn(&mut [u64]),
}

struct Scan {
    axis: usize,
    reverse: bool,
    inclusive: bool,
    functions: Functions,
}

/// Prepares SCAN.
pub fn prepare(attrs: ScanAttrs, signature: &Signature<'_>, _level: Level) -> Prepared {
    let ([source], [output]) = (signature.inputs, signature.outputs) else {
        return Err(Refusal::Invalid("scan takes one input".into()));
    };
    ensure!(
        source.ndim == output.ndim
            && source.dtype == output.dtype
            && (attrs.axis as usize) < source.ndim,
        "scan: rank, dtype or axis does not fit"
    );
    Ok(Box::new(Scan {
        axis: attrs.axis as usize,
        reverse: attrs.reverse != 0,
        inclusive: attrs.inclusive != 0,
        functions: choose(attrs.op, source.dtype)?,
    }))
}

fn choose(op: u32, dtype: DType) -> Result<Functions, Refusal> {
    Ok(match op {
        reduce::SUM => for_dtype!(dtype, T => functions::<T, Sum>()),
        reduce::PROD => for_dtype!(dtype, T => functions::<T, Prod>()),
        reduce::MIN => for_dtype!(dtype, T => functions::<T, Min>()),
        reduce::MAX => for_dtype!(dtype, T => functions::<T, Max>()),
        reduce::LOGADDEXP => match dtype {
            DType::F16 => functions::<half::f16, LogAddExp>(),
            DType::BF16 => functions::<half::bf16, LogAddExp>(),
            DType::F32 => functions::<f32, LogAddExp>(),
            DType::F64 => functions::<f64, LogAddExp>(),
            DType::C64 => functions::<crate::dtype::c64, LogAddExp>(),
            _ => return Err(Refusal::Unsupported),
        },
        _ => return Err(Refusal::Unsupported),
    })
}

impl Kernel for Scan {
    unsafe fn run(&self, cx: &Context, args: &Args<'_>) -> Result<(), String> {
        let (source, output) = (&args.inputs[0], &args.outputs[0]);
        let axis = self.axis;
        ensure!(source.shape == output.shape, "scan's output has another shape than its input");
        let length = source.shape[axis] as usize;
        let rest = Nest::new(
            (0..source.shape.len())
                .filter(|a| *a != axis)
                .map(|a| (source.shape[a], [source.strides[a], output.strides[a]])),
        );
        let across = rest.inner().1;
        let mut along = [source.strides[axis] as isize, output.strides[axis] as isize];
        let bytes = self.functions.size;
        let mut base = [0, 0];
        if self.reverse {
            base = along.map(|s| s * (length as isize - 1));
            along = along.map(|s| -s);
        }
        let (from, to) = (Shared(source.data), Shared(output.data));
        let lanes = |at: [isize; 2], lanes: usize| Lanes {
            from: from.get().wrapping_offset((base[0] + at[0]) * bytes),
            to: to.get().wrapping_offset((base[1] + at[1]) * bytes),
            along,
            across,
            lanes,
            length,
            inclusive: self.inclusive,
            starts: &[],
        };
        if length >= TASK && rest.size() < GROUP {
            rest.rows(0..rest.size(), |_, at, count| {
                for lane in 0..count as isize {
                    let at = [0, 1].map(|k| at[k] + lane * across[k]);
                    // SAFETY: the lane is the tensors'.
                    unsafe { self.in_parts(cx, lanes(at, 1)) };
                }
            });
            return Ok(());
        }
        let side_by_side = across == [1, 1];
        let least = if side_by_side { WIDE } else { GROUP };
        ranges(cx.par, rest.size(), (TASK / length).max(least), |range| {
            rest.rows(range, |_, at, count| {
                // SAFETY: the lanes are the tensors'; tasks have lanes of their own.
                unsafe { (self.functions.lanes)(&lanes(at, count)) };
            });
        });
        Ok(())
    }
}

impl Scan {
    /// Scans one long lane: first the totals of its parts, then all parts together, each beginning
    /// with the total before it.
    ///
    /// # Safety
    /// As [`Functions::lanes`].
    unsafe fn in_parts(&self, cx: &Context, lane: Lanes<'_>) {
        let size = self.functions.size;
        let parts = lane.length.div_ceil(PART);
        let mut totals = vec![0u64; parts];
        let step = PART as isize;
        let (from, to) = (Shared(lane.from as *mut u8), Shared(lane.to));
        let place = Shared(totals.as_mut_ptr());
        ranges(cx.par, parts, GROUP, |range| {
            for part in range {
                let count = PART.min(lane.length - part * PART);
                let start = from.get().wrapping_offset(part as isize * step * lane.along[0] * size);
                // SAFETY: the part is the lane's; each place is written once.
                unsafe {
                    *place.get().add(part) = (self.functions.total)(start, lane.along[0], count)
                };
            }
        });
        (self.functions.carry)(&mut totals);
        let (along, inclusive, length) = (lane.along, lane.inclusive, lane.length);
        let totals = &totals;
        ranges(cx.par, parts, GROUP, |range| {
            let part = |first: usize, lanes: usize, length: usize| Lanes {
                from: from.get().wrapping_offset(first as isize * step * along[0] * size),
                to: to.get().wrapping_offset(first as isize * step * along[1] * size),
                along,
                across: along.map(|s| s * step),
                lanes,
                length,
                inclusive,
                starts: &totals[first..first + lanes],
            };
            // The last part may be shorter.
            let whole = range.end.min(length / PART).saturating_sub(range.start);
            // SAFETY: the parts are the lane's, and tasks have parts of their own.
            unsafe {
                if whole > 0 {
                    (self.functions.lanes)(&part(range.start, whole, PART));
                }
                if range.start + whole < range.end {
                    (self.functions.lanes)(&part(range.start + whole, 1, length % PART));
                }
            }
        });
    }
}

trait Op {
    fn start<A: Accumulator>() -> A;
    fn next<A: Accumulator>(running: A, value: A) -> A;
}

macro_rules! scan_ops {
    ($($name:ident $start:ident |$running:ident, $value:ident| $next:expr;)*) => {$(
        struct $name;
        impl Op for $name {
            #[inline(always)]
            fn start<A: Accumulator>() -> A {
                A::$start
            }
            #[inline(always)]
            fn next<A: Accumulator>($running: A, $value: A) -> A {
                $next
            }
        }
    )*};
}
scan_ops! {
    Sum ZERO |running, value| running.add(value);
    Prod ONE |running, value| running.mul(value);
    Min HIGHEST |running, value| {
        if (A::NAN_STAYS && value.is_nan()) || value.lt(running) { value } else { running }
    };
    // Among equal elements (0.0 and -0.0) the later one is used, as in MLX.
    Max LOWEST |running, value| {
        if (A::NAN_STAYS && running.is_nan()) || value.lt(running) { running } else { value }
    };
    LogAddExp LOG_ZERO |running, value| running.logaddexp(value);
}

fn functions<T: Number, O: Op>() -> Functions {
    Functions {
        size: size_of::<T>() as isize,
        lanes: scan_lanes::<T, O>,
        total: total::<T, O>,
        carry: carry::<T, O>,
    }
}

fn to_bits<A: Accumulator>(value: A) -> u64 {
    const { assert!(size_of::<A>() <= 8) };
    let mut bits = 0u64;
    // SAFETY: accumulators are plain data of at most 8 bytes.
    unsafe { (&raw mut bits as *mut A).write_unaligned(value) };
    bits
}

fn from_bits<A: Accumulator>(bits: u64) -> A {
    const { assert!(size_of::<A>() <= 8) };
    // SAFETY: the bits are those of an accumulator, by `to_bits`.
    unsafe { (&raw const bits as *const A).read_unaligned() }
}

/// # Safety
/// See [`Functions::lanes`].
unsafe fn scan_lanes<T: Number, O: Op>(job: &Lanes<'_>) {
    let side_by_side = job.across == [1, 1];
    let width = if side_by_side { WIDE } else { GROUP };
    let mut running = [O::start::<T::Acc>(); WIDE];
    for first in (0..job.lanes).step_by(width) {
        let count = width.min(job.lanes - first);
        let running = &mut running[..count];
        let from = (job.from as *const T).wrapping_offset(first as isize * job.across[0]);
        let to = (job.to as *mut T).wrapping_offset(first as isize * job.across[1]);
        let element = |i: usize, lane: usize| {
            let at = |k: usize| i as isize * job.along[k] + lane as isize * job.across[k];
            (from.wrapping_offset(at(0)), to.wrapping_offset(at(1)))
        };
        let mut begin = 0;
        if job.inclusive && job.starts.is_empty() {
            // The first element is the first result, whatever the neutral element is.
            for (lane, running) in running.iter_mut().enumerate() {
                let (from, to) = element(0, lane);
                // SAFETY: elements of the lanes, here and below.
                unsafe {
                    *running = (*from).up();
                    *to = *from;
                }
            }
            begin = 1;
        } else {
            for (lane, running) in running.iter_mut().enumerate() {
                *running = job.starts.get(first + lane).map_or(O::start(), |bits| from_bits(*bits));
            }
        }
        let step = |running: &mut T::Acc, from: *const T, to: *mut T| {
            // SAFETY: as above.
            unsafe {
                let next = O::next(*running, (*from).up());
                *to = T::down(if job.inclusive { next } else { *running });
                *running = next;
            }
        };
        if side_by_side {
            for i in begin..job.length {
                let (from, to) = element(i, 0);
                for (lane, running) in running.iter_mut().enumerate() {
                    step(running, from.wrapping_add(lane), to.wrapping_add(lane));
                }
            }
            continue;
        }
        // Scan a short piece of each lane in turn. It is short enough that the processor overlaps
        // the lanes' dependency chains, and long enough that whole cache lines are used at once.
        for start in (begin..job.length).step_by(PIECE) {
            let piece = PIECE.min(job.length - start);
            for (lane, running) in running.iter_mut().enumerate() {
                let (from, to) = element(start, lane);
                let mut value = *running;
                for i in 0..piece as isize {
                    let from = from.wrapping_offset(i * job.along[0]);
                    step(&mut value, from, to.wrapping_offset(i * job.along[1]));
                }
                *running = value;
            }
        }
    }
}

/// # Safety
/// See [`Functions::total`].
unsafe fn total<T: Number, O: Op>(from: *const u8, step: isize, count: usize) -> u64 {
    let from = from as *const T;
    // Scan several pieces together, and combine them in order.
    let piece = count / GROUP;
    let mut running = [O::start::<T::Acc>(); GROUP];
    for i in 0..piece {
        for (k, running) in running.iter_mut().enumerate() {
            let at = (k * piece + i) as isize * step;
            // SAFETY: an element of the run, here and below.
            *running = O::next(*running, unsafe { *from.wrapping_offset(at) }.up());
        }
    }
    let mut all = running.into_iter().reduce(O::next).unwrap_or(O::start());
    for i in piece * GROUP..count {
        // SAFETY: as above.
        all = O::next(all, unsafe { *from.wrapping_offset(i as isize * step) }.up());
    }
    to_bits(all)
}

fn carry<T: Number, O: Op>(totals: &mut [u64]) {
    let mut running = O::start::<T::Acc>();
    for total in totals {
        let next = O::next(running, from_bits(*total));
        *total = to_bits(running);
        running = next;
    }
}
