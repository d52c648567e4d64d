//! SEARCHSORTED: for each value, a binary search in a sorted row.

use super::keys::Sortable;
use crate::kernel::{Args, Context, Kernel, Prepared, Refusal, Signature};
use crate::level::{Body, Isa, Level, at};
use crate::strided::{Nest, TASK, ranges};
use crate::{dtype::DType, par::Shared};
use ultramarine_abi::schema::SearchAttrs;

/// Number of values that are searched together, so that their reads overlap.
const TOGETHER: usize = 16;

type Function = unsafe fn(Level, &Run);

struct Search {
    right: bool,
    function: Function,
}

/// Prepares SEARCHSORTED.
pub fn prepare(attrs: SearchAttrs, signature: &Signature<'_>) -> Prepared {
    let ([rows, values], [output]) = (signature.inputs, signature.outputs) else {
        return Err(Refusal::Invalid("searchsorted takes rows and values".into()));
    };
    ensure!(
        rows.dtype == values.dtype
            && output.dtype == DType::U32
            && (1..=values.ndim + 1).contains(&rows.ndim)
            && output.ndim == values.ndim,
        "searchsorted: ranks or dtypes do not fit"
    );
    if rows.dtype == DType::C64 {
        return Err(Refusal::Unsupported);
    }
    let function: Function = for_dtype!(rows.dtype, T => search::<T>);
    Ok(Box::new(Search { right: attrs.right != 0, function }))
}

impl Kernel for Search {
    unsafe fn run(&self, cx: &Context, args: &Args<'_>) -> Result<(), String> {
        let (rows, values, output) = (&args.inputs[0], &args.inputs[1], &args.outputs[0]);
        let batch = rows.shape.len() - 1;
        if values.shape != output.shape || rows.shape[..batch] != values.shape[..batch] {
            return Err("searchsorted: shapes do not fit".into());
        }
        let nest = Nest::new((0..values.shape.len()).map(|a| {
            let across = if a < batch { rows.strides[a] } else { 0 };
            (values.shape[a], [across, values.strides[a], output.strides[a]])
        }));
        let (steps, bytes) = (nest.inner().1, rows.dtype.size() as isize);
        let (length, along) = (rows.shape[batch] as usize, rows.strides[batch] as isize);
        let (from, by, to) = (Shared(rows.data), Shared(values.data), Shared(output.data));
        let task = TASK / 4 / (length.ilog2() as usize + 1);
        ranges(cx.par, nest.size(), task, |range| {
            nest.rows(range, |_, at, count| {
                let run = Run {
                    row: from.get().wrapping_offset(at[0] * bytes),
                    values: by.get().wrapping_offset(at[1] * bytes),
                    output: to.get().cast::<u32>().wrapping_offset(at[2]),
                    steps,
                    count,
                    length,
                    along,
                    right: self.right,
                };
                // SAFETY: the run is the tensors', of the dtype that the function was chosen
                // for; tasks have values of their own.
                unsafe { (self.function)(cx.level, &run) };
            });
        });
        Ok(())
    }
}

/// Values along an axis, and the row of the first. Steps count elements.
struct Run {
    row: *const u8,
    values: *const u8,
    output: *mut u32,
    /// Distances between consecutive values, in rows, values and output.
    steps: [isize; 3],
    count: usize,
    /// Elements of a row, and from one to the next.
    length: usize,
    along: isize,
    right: bool,
}

/// # Safety
/// The run is valid, of values of type `T`.
unsafe fn search<T: Sortable>(level: Level, run: &Run) {
    match run.right {
        false => at(level, Bisection::<T, false>(run, core::marker::PhantomData)),
        true => at(level, Bisection::<T, true>(run, core::marker::PhantomData)),
    }
}

struct Bisection<'a, T, const RIGHT: bool>(&'a Run, core::marker::PhantomData<T>);

impl<T: Sortable, const RIGHT: bool> Body for Bisection<'_, T, RIGHT> {
    type Output = ();
    #[inline(always)]
    fn call<I: Isa>(self, _isa: I) {
        let run = self.0;
        let (row, values) = (run.row.cast::<T>(), run.values.cast::<T>());
        // SAFETY: made by `search`, whose run is valid; elements may lie anywhere.
        let read = |from: *const T, i: isize| unsafe { from.wrapping_offset(i).read_unaligned() };
        for first in (0..run.count).step_by(TOGETHER) {
            let count = TOGETHER.min(run.count - first);
            let mut rows = [row; TOGETHER];
            let mut keys = [T::default().key(); TOGETHER];
            for i in 0..count {
                let value = (first + i) as isize;
                rows[i] = row.wrapping_offset(value * run.steps[0]);
                keys[i] = read(values, value * run.steps[1]).key();
            }
            // The number of elements known so far to come before each value.
            let mut passed = [0usize; TOGETHER];
            let mut step = 1 << run.length.ilog2();
            while step > 0 {
                for i in 0..TOGETHER {
                    let next = passed[i] + step;
                    let last = next.min(run.length) - 1;
                    let key = read(rows[i], last as isize * run.along).key();
                    let before = if RIGHT { key <= keys[i] } else { key < keys[i] };
                    let passes = before & (next <= run.length);
                    passed[i] = std::hint::select_unpredictable(passes, next, passed[i]);
                }
                step /= 2;
            }
            for (i, passed) in passed[..count].iter().enumerate() {
                let to = run.output.wrapping_offset((first + i) as isize * run.steps[2]);
                // SAFETY: as above; the output has an element for each value.
                unsafe { to.write_unaligned(*passed as u32) };
            }
        }
    }
}
