//! Evaluations on the CPU.

mod blocks;
mod elementwise;
mod half;
mod parallel;
mod store;
mod view;

pub use half::Half;
pub use parallel::{parallel, thread_count};
pub use store::copy_past_cache;
pub use view::{Rows, RowsMut, View, ViewMut};

use crate::{
    dtype::{Dtype, Number},
    error::{Error, Result, guard},
    host::{self, asked},
    tensor::{Show, Tensor, structs},
};
use std::ffi::c_void;
use std::marker::PhantomData;
use std::ptr::null_mut;
use ultramarine_abi::{
    Error as Raw, Status,
    extension::{self as raw, EvalCall, view as flag},
    status,
};

/// An evaluation on the CPU: its operands, its outputs, and the host's threads and memory.
///
/// Views may be kept for the call's lifetime, which includes tasks of [`CpuCall::enqueue`]. Each
/// output can be requested only once, so that only one part of the code writes it.
///
/// For elementwise functions, [`CpuCall::map2`] and similar functions are the shortest. They
/// support any strides, use all threads, and write large outputs with stores that bypass the
/// caches. Other functions take views:
///
/// ```
/// use ultramarine_extension::{CpuCall, Result};
///
/// /// The sum of each row.
/// fn row_sums(call: &mut CpuCall<'_>) -> Result<()> {
///     let x = call.input::<f32>(0)?;
///     let mut sums = call.output::<f32>(0)?;
///     let sums = sums.rows_mut().flat_map(|row| row);
///     for (row, sum) in x.rows().zip(sums) {
///         *sum = row.sum();
///     }
///     Ok(())
/// }
/// ```
pub struct CpuCall<'a> {
    inputs: Vec<Input>,
    outputs: Vec<Output>,
    host_call: *mut c_void,
    /// Makes the type invariant in the call's lifetime, because tasks rely on exactly this
    /// lifetime.
    life: PhantomData<fn(&'a ()) -> &'a ()>,
}

struct Input {
    tensor: Tensor,
    /// True if a view of the operand was returned.
    lent: bool,
    /// True if an output has taken over the operand's memory.
    taken: bool,
}

struct Output {
    tensor: Tensor,
    lent: bool,
}

/// An output, and the operand whose memory it has taken over; see [`CpuCall::output_taking`].
pub struct Taken<'a, T> {
    /// The output.
    pub output: ViewMut<'a, T>,
    /// The operand whose memory the output has, with the operand's elements in it; `None` if the
    /// memory is new.
    pub from: Option<usize>,
}

impl<'a> CpuCall<'a> {
    /// The most elements of the slices that the functions of [`CpuCall::blocks2`] and similar
    /// functions get.
    pub const BLOCK: usize = blocks::BLOCK;

    /// # Safety
    /// The call obeys the contract, and is valid for `'a`.
    pub(crate) unsafe fn new(call: &EvalCall) -> Result<Self> {
        let stride = Some(call.view_stride);
        // SAFETY: as many views as the call says.
        unsafe {
            let inputs = structs(call.inputs, call.n_inputs, stride)?;
            let outputs = structs(call.outputs, call.n_outputs, stride)?;
            let input = |v| Input { tensor: Tensor::of(v), lent: false, taken: false };
            let output = |v| Output { tensor: Tensor::of(v), lent: false };
            Ok(Self {
                inputs: inputs.iter().map(input).collect(),
                outputs: outputs.iter().map(output).collect(),
                host_call: call.host_call,
                life: PhantomData,
            })
        }
    }

    /// Returns the number of operands.
    pub fn n_inputs(&self) -> usize {
        self.inputs.len()
    }

    /// Returns the number of outputs.
    pub fn n_outputs(&self) -> usize {
        self.outputs.len()
    }

    fn input_at(&self, i: usize) -> Result<&Input> {
        let n = self.inputs.len();
        self.inputs.get(i).ok_or_else(|| {
            Error::runtime(format!(
                "There is no input {i}: the call has {n}. Inputs are numbered from 0."
            ))
        })
    }

    fn output_at(&mut self, i: usize) -> Result<&mut Output> {
        let n = self.outputs.len();
        let missing = || {
            Error::runtime(format!(
                "There is no output {i}: the call has {n}. Outputs are numbered from 0."
            ))
        };
        self.outputs.get_mut(i).ok_or_else(missing)
    }

    /// Returns the dtype of an operand.
    ///
    /// # Errors
    /// An [`Error`] if there is no such operand, or if it only stores numbers.
    pub fn input_dtype(&self, i: usize) -> Result<Dtype> {
        self.input_at(i)?.tensor.dtype()
    }

    /// Returns the shape of an operand.
    ///
    /// # Errors
    /// An [`Error`] if there is no such operand.
    pub fn input_shape(&self, i: usize) -> Result<&[usize]> {
        Ok(&self.input_at(i)?.tensor.shape)
    }

    /// Returns the dtype of an output.
    ///
    /// # Errors
    /// An [`Error`] if there is no such output.
    pub fn output_dtype(&self, i: usize) -> Result<Dtype> {
        let n = self.outputs.len();
        let missing = || {
            Error::runtime(format!(
                "There is no output {i}: the call has {n}. Outputs are numbered from 0."
            ))
        };
        self.outputs.get(i).ok_or_else(missing)?.tensor.dtype()
    }

    /// Returns the shape of an output.
    ///
    /// # Errors
    /// An [`Error`] if there is no such output.
    pub fn output_shape(&self, i: usize) -> Result<&[usize]> {
        let n = self.outputs.len();
        let missing = || {
            Error::runtime(format!(
                "There is no output {i}: the call has {n}. Outputs are numbered from 0."
            ))
        };
        Ok(&self.outputs.get(i).ok_or_else(missing)?.tensor.shape)
    }

    /// Returns an operand's elements. Those of bool arrays are `u8`.
    ///
    /// # Errors
    /// An [`Error`] if there is no such operand, if it has another dtype, or if an output has taken
    /// over its memory.
    pub fn input<T: Number>(&mut self, i: usize) -> Result<View<'a, T>> {
        let input = self.input_at(i)?;
        if input.taken {
            return Err(Error::runtime(format!(
                "Input {i} was shared with an output. Read it before."
            )));
        }
        // SAFETY: the operand's memory is valid and unchanged during the call, because `take` is
        // refused from here on.
        let view = unsafe { View::new(input.tensor.clone()) }?;
        self.inputs[i].lent = true;
        Ok(view)
    }

    /// Returns an output's elements for writing. Those of bool arrays are `u8`. If the primitive
    /// [`allocates`](crate::Primitive::allocates), new memory is allocated for the output.
    ///
    /// # Errors
    /// An [`Error`] if there is no such output, if it has another dtype, if it was requested
    /// before, or if there is no memory.
    pub fn output<T: Number>(&mut self, i: usize) -> Result<ViewMut<'a, T>> {
        let output = self.output_at(i)?;
        if !output.lent && output.tensor.data.is_null() && output.tensor.elements() > 0 {
            return self.allocate(i, None);
        }
        self.hand_out(i)
    }

    fn hand_out<T: Number>(&mut self, i: usize) -> Result<ViewMut<'a, T>> {
        let output = self.output_at(i)?;
        if output.lent {
            return Err(Error::runtime(format!(
                "Output {i} was borrowed before. Borrow each output once."
            )));
        }
        if output.tensor.data.is_null() && output.tensor.elements() > 0 {
            return Err(Error::runtime(format!(
                "Output {i} has no memory. Allocate or share it first."
            )));
        }
        // SAFETY: the output's memory is valid during the call. The view has exclusive access,
        // because the output is returned only once.
        let view = unsafe { ViewMut::new(output.tensor.clone()) }?;
        output.lent = true;
        Ok(view)
    }

    /// Returns an output with new memory, for primitives that
    /// [`allocate`](crate::Primitive::allocates). `strides` are in elements, and dense in some
    /// order of the axes; `None` means row-major.
    ///
    /// # Errors
    /// As [`CpuCall::output`]; also if the primitive does not allocate.
    pub fn allocate<T: Number>(
        &mut self,
        i: usize,
        strides: Option<&[isize]>,
    ) -> Result<ViewMut<'a, T>> {
        let (host_call, output) = (self.host_call, self.output_at(i)?);
        let strides = wide_strides(&output.tensor, strides)?;
        let give = host::here()?.allocate.ok_or_else(|| Error::absent("allocate"))?;
        let mut view = empty_view(&output.tensor);
        let strides = strides.as_ref().map_or(std::ptr::null(), Vec::as_ptr);
        // SAFETY: the host's function with the call's pointer, as many strides as axes and a struct of that size.
        asked("allocate", |error| unsafe { give(host_call, i as u32, strides, &mut view, error) })?;
        // SAFETY: a view by contract.
        output.tensor = unsafe { Tensor::of(&view) };
        self.hand_out(i)
    }

    /// Returns an output that takes over the memory of the first of these operands that nothing
    /// else needs. This operand can then no longer be read separately. If there is no such operand,
    /// the output gets new memory. For primitives that [`allocate`](crate::Primitive::allocates).
    ///
    /// # Errors
    /// As [`CpuCall::allocate`].
    pub fn output_taking<T: Number>(&mut self, i: usize, inputs: &[usize]) -> Result<Taken<'a, T>> {
        let from = self.take_any(i, inputs)?;
        let output = if from.is_some() { self.hand_out(i)? } else { self.output(i)? };
        Ok(Taken { output, from })
    }

    /// Gives output `i` the memory of one of the operands. The operand has elements of the same
    /// size and the output's layout, and no view of it was returned.
    fn take_any(&mut self, i: usize, inputs: &[usize]) -> Result<Option<usize>> {
        let host_call = self.host_call;
        let output = self.output_at(i)?;
        if output.lent || !output.tensor.data.is_null() {
            return Ok(None);
        }
        let (bits, shape) = (output.tensor.dl.bits, output.tensor.shape.clone());
        let Some(take) = host::here()?.take else { return Ok(None) };
        for &from in inputs {
            let input = self.input_at(from)?;
            let suits = !input.lent
                && !input.taken
                && input.tensor.flags & flag::MAY_TAKE != 0
                && input.tensor.dl.bits == bits
                && input.tensor.shape == shape
                && input.tensor.is_row_contiguous();
            if !suits {
                continue;
            }
            let mut view = empty_view(&self.output_at(i)?.tensor);
            let mut error = null_mut();
            // SAFETY: the host's function with the call's pointer and a struct of that size.
            let code = unsafe { take(host_call, i as u32, from as u32, &mut view, &mut error) };
            match code {
                status::OK => {
                    // SAFETY: a view by contract.
                    self.output_at(i)?.tensor = unsafe { Tensor::of(&view) };
                    self.inputs[from].taken = true;
                    return Ok(Some(from));
                }
                status::UNSUPPORTED if error.is_null() => {}
                code => return Err(Error::of_host("take", code, error)),
            }
        }
        Ok(None)
    }

    /// Makes an output a view of an operand's elements, from element `offset` on. The output must
    /// not be written. For primitives that [`allocate`](crate::Primitive::allocates).
    ///
    /// # Errors
    /// An [`Error`] if the view leaves the operand's memory, if the output was requested before, or
    /// if the primitive does not allocate.
    pub fn share(
        &mut self,
        output: usize,
        input: usize,
        offset: isize,
        strides: &[isize],
    ) -> Result<()> {
        let host_call = self.host_call;
        self.input_at(input)?;
        let to = self.output_at(output)?;
        if to.lent {
            return Err(Error::runtime(format!(
                "Output {output} was borrowed before. Share it first."
            )));
        }
        let strides = wide_strides(&to.tensor, Some(strides))?.unwrap_or_default();
        let share = host::here()?.share.ok_or_else(|| Error::absent("share"))?;
        let (i, from, offset) = (output as u32, input as u32, offset as i64);
        // SAFETY: the host's function with the call's pointer, and as many strides as axes.
        asked("share", |error| unsafe {
            share(host_call, i, from, offset, strides.as_ptr(), error)
        })?;
        to.lent = true;
        self.inputs[input].lent = true;
        Ok(())
    }

    /// Enqueues a task on the stream. It runs after the evaluation and before anything that needs
    /// the outputs. If it returns an error or panics, the evaluation fails.
    ///
    /// # Errors
    /// An [`Error`] if the host accepts no tasks.
    pub fn enqueue(&mut self, task: impl FnOnce() -> Result<()> + Send + 'a) -> Result<()> {
        type Boxed = Option<Box<dyn FnOnce() -> Result<()> + Send + 'static>>;
        unsafe extern "C" fn run(context: *mut c_void, error: *mut *mut Raw) -> Status {
            // SAFETY: `enqueue` made the context, and only this call uses it.
            unsafe {
                guard(error, || match (*context.cast::<Boxed>()).take() {
                    Some(task) => task(),
                    None => Err(Error::runtime(
                        "A task was run twice. Report it to the authors of Ultramarine.",
                    )),
                })
            }
        }
        unsafe extern "C" fn end(context: *mut c_void) {
            // SAFETY: `enqueue` made the context from a box, and by the contract it is freed once.
            let boxed = unsafe { Box::from_raw(context.cast::<Boxed>()) };
            crate::error::guard_value((), || drop(boxed));
        }
        let enqueue = host::here()?.enqueue.ok_or_else(|| Error::absent("enqueue"))?;
        let task: Box<dyn FnOnce() -> Result<()> + Send + 'a> = Box::new(task);
        // SAFETY: only views have this lifetime (CpuCall is invariant in it, and rules are called
        // with any lifetime). By the contract, their memory is valid until the task has run.
        let task: Box<dyn FnOnce() -> Result<()> + Send + 'static> =
            unsafe { std::mem::transmute(task) };
        let context = Box::into_raw(Box::new(Some(task) as Boxed)).cast();
        let host_call = self.host_call;
        // SAFETY: the host's function with the call's pointer. It takes over the context.
        asked("enqueue", |error| unsafe { enqueue(host_call, run, Some(end), context, error) })
    }
}

/// Returns strides in the contract's form.
fn wide_strides(of: &Tensor, strides: Option<&[isize]>) -> Result<Option<Vec<i64>>> {
    let Some(strides) = strides else { return Ok(None) };
    if strides.len() != of.shape.len() {
        return Err(Error::runtime(format!(
            "There are {} strides for an output of shape {}. Pass one for each axis.",
            strides.len(),
            Show(&of.shape)
        )));
    }
    Ok(Some(strides.iter().map(|&s| s as i64).collect()))
}

/// Makes a view that the host can fill.
fn empty_view(like: &Tensor) -> raw::View {
    raw::View {
        size: size_of::<raw::View>() as u32,
        flags: 0,
        data: null_mut(),
        shape: std::ptr::null(),
        strides: std::ptr::null(),
        elements: 0,
        ndim: 0,
        dtype: like.dl,
    }
}
