//! RMS_NORM and LAYER_NORM, one row at a time. The row stays in cache while its sums are computed and applied.

use super::real::Real;
use super::rows::Rows;
use super::tensor::widen;
use crate::dtype::DType;
use crate::kernel::{Args, Context, Kernel, Prepared, Refusal, Signature};
use crate::level::{self, Isa};
use crate::matmul::simd::{Num, Storage};
use crate::scratch::{Scratch, Slot};
use half::{bf16, f16};

/// Numbers of a task, at least.
const TASK: usize = 1 << 15;
/// Sums that a row is added to.
const LANES: usize = 64;

/// Prepares RMS_NORM, or LAYER_NORM if `centered`.
pub fn prepare(centered: bool, signature: &Signature<'_>) -> Prepared {
    signature.expect(if centered { 3 } else { 2 }, 1)?;
    let out = signature.outputs[0];
    let same = signature.inputs.iter().all(|d| (d.dtype, d.ndim) == (out.dtype, out.ndim));
    ensure!(same, "a norm of other dtypes or ranks");
    ensure!(out.ndim > 0, "a norm of a tensor without axes");
    Ok(match out.dtype {
        DType::F16 => Box::new(Of::<f16>::new(centered)),
        DType::BF16 => Box::new(Of::<bf16>::new(centered)),
        DType::F32 => Box::new(Of::<f32>::new(centered)),
        DType::F64 => Box::new(Of::<f64>::new(centered)),
        _ => return Err(Refusal::Unsupported),
    })
}

/// The kernel for tensors of a dtype.
struct Of<S> {
    centered: bool,
    dtype: core::marker::PhantomData<fn(S)>,
}

impl<S> Of<S> {
    fn new(centered: bool) -> Of<S> {
        Of { centered, dtype: core::marker::PhantomData }
    }
}

impl<S: Storage> Kernel for Of<S>
where
    S::Acc: Real,
{
    unsafe fn run(&self, cx: &Context, args: &Args<'_>) -> Result<(), String> {
        let out = &args.outputs[0];
        ensure!(
            args.inputs.iter().all(|view| view.shape == out.shape),
            "a norm of {:?} with tensors of other shapes",
            out.shape
        );
        ensure!(args.scalars.len() == 1, "a norm with {} scalars", args.scalars.len());
        let epsilon = S::Acc::of(f64::from_bits(args.scalars[0][0]));
        let n = out.shape[out.shape.len() - 1] as usize;
        let (x, weight, to) =
            (Rows::new(&args.inputs[0]), Rows::new(&args.inputs[1]), Rows::new(out));
        let bias = args.inputs.get(2).map(Rows::new);
        let rows = out.size() / n;
        let each = (TASK / n).max(1);
        cx.par.run(rows.div_ceil(each), |task| {
            let memory = Scratch::new(Slot::Task, 3 * n * size_of::<S::Acc>());
            let numbers = memory.get().cast::<S::Acc>();
            for row in task * each..rows.min((task + 1) * each) {
                // SAFETY: there is room for three rows of numbers; the tensors have such a row, of which no other task writes
                // the output's.
                unsafe {
                    let parts =
                        [0, 1, 2].map(|i| core::slice::from_raw_parts_mut(numbers.add(i * n), n));
                    level::at(
                        cx.level,
                        Row::<S> {
                            centered: self.centered,
                            epsilon,
                            x: (x.at(row), x.step),
                            weight: (weight.at(row), weight.step),
                            bias: bias.map(|b| (b.at::<S>(row).cast_const(), b.step)),
                            to: (to.at(row), to.step),
                            parts,
                        },
                    );
                }
            }
        });
        Ok(())
    }
}

/// One row: the first elements of all tensors, and their steps.
struct Row<'a, S: Storage> {
    centered: bool,
    epsilon: S::Acc,
    x: (*const S, isize),
    weight: (*const S, isize),
    bias: Option<(*const S, isize)>,
    to: (*mut S, isize),
    /// Room for x, weight and bias as numbers.
    parts: [&'a mut [S::Acc]; 3],
}

/// The sum of the differences of all numbers from `from`, or of their squares.
#[inline(always)]
fn sum<T: Real, const SQUARES: bool>(numbers: &[T], from: T) -> T {
    let mut lanes = [T::ZERO; LANES];
    let (chunks, rest) = numbers.as_chunks::<LANES>();
    for chunk in chunks {
        for i in 0..LANES {
            lanes[i] = lanes[i].plus(term::<T, SQUARES>(chunk[i], from));
        }
    }
    for (lane, x) in lanes.iter_mut().zip(rest) {
        *lane = lane.plus(term::<T, SQUARES>(*x, from));
    }
    let mut width = LANES / 2;
    while width > 0 {
        for i in 0..width {
            lanes[i] = lanes[i].plus(lanes[i + width]);
        }
        width /= 2;
    }
    lanes[0]
}

#[inline(always)]
fn term<T: Real, const SQUARES: bool>(x: T, from: T) -> T {
    let distance = x.minus(from);
    if SQUARES { distance.times(distance) } else { distance }
}

/// The mean of a row, or 0 unless `centered`; and the mean square of the differences from it.
#[inline(always)]
pub(super) fn moments<T: Real>(x: &[T], centered: bool) -> (T, T) {
    let size = T::of(x.len() as f64);
    let mean = match centered {
        // Sum differences from the first number, so that a row of equal numbers has exactly zero variance.
        true => x[0].plus(sum::<T, false>(x, x[0]).over(size)),
        false => T::ZERO,
    };
    (mean, sum::<T, true>(x, mean).over(size))
}

/// Elements as numbers: in place, if they are adjacent and already numbers, else in `room`.
///
/// # Safety
/// There are as many elements as `room` has numbers.
#[inline(always)]
pub(super) unsafe fn numbers<S: Storage>(
    (from, step): (*const S, isize),
    room: &mut [S::Acc],
) -> &[S::Acc] {
    // Equal sizes mean equal types, because there is one type each of 4 and 8 bytes.
    if step == 1 && size_of::<S>() == size_of::<S::Acc>() {
        // SAFETY: by this function's contract.
        return unsafe { core::slice::from_raw_parts(from.cast(), room.len()) };
    }
    // SAFETY: by this function's contract.
    unsafe { widen(from, step, room) };
    room
}

impl<S: Storage> level::Body for Row<'_, S>
where
    S::Acc: Real,
{
    type Output = ();
    #[inline(always)]
    fn call<I: Isa>(self, _: I) {
        let [first, second, third] = self.parts;
        let n = first.len();
        // SAFETY: the row has n elements in each tensor.
        let (x, weight, bias) = unsafe {
            let bias = self.bias.map(|bias| numbers(bias, third));
            (numbers(self.x, first), numbers(self.weight, second), bias)
        };
        let (mean, variance) = moments(x, self.centered);
        let scale = S::Acc::ONE.over(variance.plus(self.epsilon).root());
        let (to, step) = self.to;
        // Do not use closures here, because they would be compiled without the level's instructions.
        match bias {
            Some(bias) if step == 1 => {
                // SAFETY: the output's row, which nothing else uses.
                let to = unsafe { core::slice::from_raw_parts_mut(to, n) };
                for i in 0..n {
                    let y = x[i].minus(mean).times(scale).times(weight[i]);
                    to[i] = S::narrow(y.plus(bias[i]));
                }
            }
            None if step == 1 => {
                // SAFETY: as above.
                let to = unsafe { core::slice::from_raw_parts_mut(to, n) };
                for i in 0..n {
                    to[i] = S::narrow(x[i].minus(mean).times(scale).times(weight[i]));
                }
            }
            _ => {
                for i in 0..n {
                    let y = x[i].minus(mean).times(scale).times(weight[i]);
                    let y = bias.map_or(y, |bias| y.plus(bias[i]));
                    // SAFETY: as above.
                    unsafe { *to.wrapping_offset(i as isize * step) = S::narrow(y) };
                }
            }
        }
    }
}
