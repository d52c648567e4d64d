//! CROSS_ENTROPY and its gradient. Each logit is read once, in parts of a row that stay in cache.
//!
//! For each part, the largest logit is found, and the sum of exponentials relative to it. The parts of a row are joined
//! in order, so that results depend only on shapes.

use super::exponentials::{Add, CHUNK, PART, Sum, in_parts};
use super::real::Real;
use super::tensor::{Tensor, narrow, widen};
use crate::kernel::{Args, Context, Kernel, Prepared, Refusal, Signature, View};
use crate::level::{self, Isa};
use crate::matmul::simd::Storage;
use crate::scratch::{Scratch, Slot};
use crate::{dtype::DType, par::Shared};
use half::{bf16, f16};

/// Prepares CROSS_ENTROPY or its gradient.
pub fn prepare(gradient: bool, signature: &Signature<'_>) -> Prepared {
    signature.expect(if gradient { 4 } else { 2 }, if gradient { 1 } else { 2 })?;
    let dtype = signature.inputs[0].dtype;
    let wide = if dtype == DType::F64 { DType::F64 } else { DType::F32 };
    let inputs = [dtype, DType::I32, wide, wide];
    let outputs = if gradient { [dtype; 2] } else { [wide; 2] };
    let dtypes = signature.inputs.iter().map(|d| d.dtype);
    ensure!(dtypes.zip(inputs).all(|(a, b)| a == b), "cross entropy of other dtypes");
    let dtypes = signature.outputs.iter().map(|d| d.dtype);
    ensure!(dtypes.zip(outputs).all(|(a, b)| a == b), "cross entropy to other dtypes");
    let ranks = signature.inputs.iter().map(|d| d.ndim);
    ensure!(
        ranks.eq([2, 1, 1, 1].into_iter().take(signature.inputs.len())),
        "cross entropy of other ranks"
    );
    Ok(match dtype {
        DType::F16 => Box::new(Of::<f16>::new(gradient)),
        DType::BF16 => Box::new(Of::<bf16>::new(gradient)),
        DType::F32 => Box::new(Of::<f32>::new(gradient)),
        DType::F64 => Box::new(Of::<f64>::new(gradient)),
        _ => return Err(Refusal::Unsupported),
    })
}

/// The kernel for logits of a dtype.
struct Of<S> {
    gradient: bool,
    dtype: core::marker::PhantomData<fn(S)>,
}

impl<S> Of<S> {
    fn new(gradient: bool) -> Of<S> {
        Of { gradient, dtype: core::marker::PhantomData }
    }
}

impl<S: Storage> Kernel for Of<S>
where
    S::Acc: Real,
{
    unsafe fn run(&self, cx: &Context, args: &Args<'_>) -> Result<(), String> {
        let (inputs, outputs) = (args.inputs, args.outputs);
        let [rows, classes] = [0, 1].map(|i| inputs[0].shape[i] as usize);
        let per_row = |views: &[View<'_>]| views.iter().all(|v| v.shape == [rows as i64]);
        let fits = per_row(&inputs[1..])
            && match self.gradient {
                true => outputs[0].shape == inputs[0].shape,
                false => per_row(outputs),
            };
        ensure!(fits, "cross entropy of {rows} rows with tensors of other shapes");
        let call = Call {
            cx,
            logits: Tensor::new(&inputs[0]),
            targets: Tensor::new(&inputs[1]),
            rows,
            classes,
        };
        let [first, second] = match self.gradient {
            true => [&inputs[2], &inputs[3]],
            false => [&outputs[0], &outputs[1]],
        }
        .map(Tensor::new);
        // SAFETY: the tensors are valid, and their shapes were checked.
        unsafe {
            match self.gradient {
                true => call.gradient::<S>([first, second], Tensor::new(&outputs[0])),
                false => call.forward::<S>([first, second]),
            }
        }
        Ok(())
    }
}

/// The index of a tensor that has one element per row.
fn of_row(row: usize) -> [usize; 4] {
    [row, 0, 0, 0]
}

struct Call<'a> {
    cx: &'a Context,
    logits: Tensor,
    targets: Tensor,
    rows: usize,
    classes: usize,
}

impl Call<'_> {
    /// Calls `body` with rows and classes of each task: many rows, or part of one.
    fn run(&self, body: impl Fn(usize, core::ops::Range<usize>) + Sync) {
        in_parts(self.cx.par, (self.rows, self.classes), |rows, classes| {
            rows.for_each(|row| body(row, classes.clone()));
        });
    }

    /// The class of a row's target.
    ///
    /// # Safety
    /// There is such a row.
    unsafe fn target(&self, row: usize) -> usize {
        // SAFETY: there is a target for each row.
        let target = unsafe { *self.targets.at::<i32>(of_row(row)) } as isize;
        let classes = self.classes as isize;
        (if target < 0 { target + classes } else { target }).clamp(0, classes - 1) as usize
    }

    /// Losses and logarithms.
    ///
    /// # Safety
    /// The tensors are valid, and of the call's shapes.
    unsafe fn forward<S: Storage>(&self, [losses, logarithms]: [Tensor; 2])
    where
        S::Acc: Real,
    {
        let finish = |row: usize, sum: Sum<S::Acc>| {
            let logarithm = sum.logarithm();
            // SAFETY: the target is held to the axis; no other task writes the row.
            unsafe {
                let own = (*self.logits.at::<S>([row, self.target(row), 0, 0])).widen();
                *losses.at::<S::Acc>(of_row(row)) = logarithm.minus(own);
                *logarithms.at::<S::Acc>(of_row(row)) = logarithm;
            }
        };
        let sum = |row: usize, classes: core::ops::Range<usize>| {
            let from = self.logits.at::<S>([row, classes.start, 0, 0]);
            level::at(
                self.cx.level,
                Add { from, step: self.logits.strides[1], size: classes.len() },
            )
        };
        let parts = self.classes.div_ceil(PART);
        if parts == 1 {
            return self.run(|row, classes| finish(row, sum(row, classes)));
        }
        let memory = Scratch::new(Slot::Call, self.rows * parts * size_of::<Sum<S::Acc>>());
        let sums = Shared(memory.get().cast::<Sum<S::Acc>>());
        self.run(|row, classes| {
            let part = classes.start / PART;
            // SAFETY: there is room for each part; no other task writes this one.
            unsafe { sums.get().wrapping_add(row * parts + part).write(sum(row, classes)) };
        });
        for row in 0..self.rows {
            // SAFETY: all parts were written.
            let of_row =
                unsafe { core::slice::from_raw_parts(sums.get().wrapping_add(row * parts), parts) };
            finish(row, of_row.iter().fold(Sum::NOTHING, |a, b| a.join(*b)));
        }
    }

    /// The gradient with respect to the logits.
    ///
    /// # Safety
    /// As [`Call::forward`].
    unsafe fn gradient<S: Storage>(&self, [logarithms, cotangents]: [Tensor; 2], to: Tensor)
    where
        S::Acc: Real,
    {
        self.run(|row, classes| {
            // SAFETY: an element for each row; within the logits and their gradient, of which no other task writes this part.
            unsafe {
                let slopes = Slopes::<S> {
                    from: self.logits.at([row, classes.start, 0, 0]),
                    step: self.logits.strides[1],
                    to: to.at([row, classes.start, 0, 0]),
                    to_step: to.strides[1],
                    size: classes.len(),
                    target: self.target(row).wrapping_sub(classes.start),
                    logarithm: *logarithms.at(of_row(row)),
                    cotangent: *cotangents.at(of_row(row)),
                };
                level::at(self.cx.level, slopes);
            }
        });
    }
}

/// The gradient with respect to some logits.
struct Slopes<S: Storage> {
    from: *const S,
    step: isize,
    to: *mut S,
    to_step: isize,
    size: usize,
    /// The target's index, if it is among these logits.
    target: usize,
    logarithm: S::Acc,
    cotangent: S::Acc,
}

impl<S: Storage> level::Body for Slopes<S>
where
    S::Acc: Real,
{
    type Output = ();
    #[inline(always)]
    fn call<I: Isa>(self, _: I) {
        let mut chunk = [S::Acc::ZERO; CHUNK];
        for first in (0..self.size).step_by(CHUNK) {
            let chunk = &mut chunk[..CHUNK.min(self.size - first)];
            // SAFETY: within the logits.
            unsafe {
                widen(self.from.wrapping_offset(first as isize * self.step), self.step, chunk)
            };
            for x in chunk.iter_mut() {
                *x = x.minus(self.logarithm).exp::<I>();
            }
            if let Some(x) = chunk.get_mut(self.target.wrapping_sub(first)) {
                *x = x.minus(S::Acc::ONE);
            }
            chunk.iter_mut().for_each(|x| *x = x.times(self.cotangent));
            let to = self.to.wrapping_offset(first as isize * self.to_step);
            // SAFETY: within the gradient, which nothing else reads or writes here.
            unsafe { narrow(chunk, to, self.to_step) };
        }
    }
}
