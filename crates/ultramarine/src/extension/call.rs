//! A call of an evaluation: memory of outputs, tasks, kernels. Functions that take a `host_call` compare it with the
//! thread's current call. If an extension keeps a call too long, or uses it on another thread, it only gets an error.

use super::boundary::{Failure, check_if, fill_if, guard, list};
use super::{poison::Pattern, primitive::Primitive};
use crate::backend::{Exec, UserKernel};
use crate::error::{Error, Result, bail, ensure};
use crate::shape::{self, Shape, Show, Strides};
use crate::{dtype::Dtype, node::Value, ops::Call};
use core::ffi::c_void;
use std::cell::{Cell, RefCell, UnsafeCell};
use std::sync::Arc;
use ultramarine_abi::extension::{self, Task, TaskDrop, View, view};
use ultramarine_abi::{self as abi, Status};

pub(super) use super::launch::{contiguous, kernel, kernel_properties, launch, temporary};

thread_local! {
    static CURRENT: Cell<*const State<'static>> = const { Cell::new(std::ptr::null()) };
}

/// Work that a call enqueued. Its context is dropped once, whether the work ran or not.
pub(super) struct Queued {
    task: Task,
    drop: Option<TaskDrop>,
    context: *mut c_void,
}

impl Queued {
    /// Runs the task.
    pub fn run(self, name: &str) -> Result<()> {
        let mut error = std::ptr::null_mut();
        // SAFETY: the extension's task with its context, once.
        unsafe {
            let code = (self.task)(self.context, &raw mut error);
            match super::errors::answer(name, "a task", code, error)? {
                true => Ok(()),
                false => Err(Error::runtime(
                    name,
                    "A task returned UM_UNSUPPORTED. Return it from eval_cpu, before tasks are queued.",
                )),
            }
        }
    }
}

impl Drop for Queued {
    fn drop(&mut self) {
        if let Some(drop) = self.drop {
            // SAFETY: the extension's function with its context, once.
            unsafe { drop(self.context) }
        }
    }
}

/// An output and the origin of its memory.
pub(super) struct Output {
    pub value: Value,
    /// True if this evaluation wrote it, and not an earlier one.
    pub own: bool,
}

/// State of a call, which the functions of the table use.
pub(super) struct State<'a> {
    pub primitive: &'a Primitive,
    pub exec: &'a Exec,
    pub call: &'a Call<'a>,
    pub results: &'a [(Shape, Dtype)],
    /// If set, outputs are filled with this pattern, and no input's memory is reused.
    pub poison: Option<Pattern>,
    /// The views that the primitive sees. Only the call's own thread accesses them.
    inputs: UnsafeCell<Vec<View>>,
    outputs_seen: UnsafeCell<Vec<View>>,
    /// Of fixed length, because views point to the strides inside.
    outputs: RefCell<Vec<Option<Output>>>,
    /// Row-major copies of inputs, of fixed length.
    pub copies: RefCell<Vec<Option<Value>>>,
    /// Inputs whose memory was given to an output.
    taken: RefCell<Vec<usize>>,
    pub tasks: RefCell<Vec<Queued>>,
    pub temporaries: RefCell<Vec<Value>>,
    pub kernels: RefCell<Vec<Arc<UserKernel>>>,
}

/// Makes the view of a tensor. The view points to `shape` and to the value's strides.
pub(super) fn seen(value: &Value, shape: &[usize], dtype: Dtype, host: bool) -> View {
    let row_major = shape::is_contiguous(shape, &value.strides);
    View {
        size: size_of::<View>() as u32,
        flags: if row_major { view::ROW_CONTIGUOUS } else { 0 },
        data: if host { value.data().cast() } else { std::ptr::null_mut() },
        // usize and isize are 64 bits wide on every supported target.
        shape: shape.as_ptr().cast(),
        strides: value.strides.as_ptr().cast(),
        elements: shape::size(shape) as i64,
        ndim: shape.len() as i32,
        dtype: dtype.to_dl(),
    }
}

impl<'a> State<'a> {
    pub fn new(
        primitive: &'a Primitive,
        exec: &'a Exec,
        call: &'a Call<'a>,
        results: &'a [(Shape, Dtype)],
        poison: Option<Pattern>,
    ) -> Result<State<'a>> {
        let host = exec.device.is_host();
        let copy = |i| if host { Ok(None) } else { exec.reachable(&call.operand(i)) };
        let copies = (0..call.inputs.len()).map(copy).collect::<Result<_>>()?;
        let state = State {
            primitive,
            exec,
            call,
            results,
            poison,
            inputs: UnsafeCell::default(),
            outputs_seen: UnsafeCell::default(),
            outputs: RefCell::new(results.iter().map(|_| None).collect()),
            copies: RefCell::new(copies),
            taken: RefCell::default(),
            tasks: RefCell::default(),
            temporaries: RefCell::default(),
            kernels: RefCell::default(),
        };
        let input = |i: usize| {
            let (shape, dtype) = call.descs[i];
            let copies = state.copies.borrow();
            let value = copies[i].as_ref().unwrap_or(&call.inputs[i]);
            let mut view = seen(value, shape, dtype, host);
            if primitive.allocates && state.may_take(i) {
                view.flags |= view::MAY_TAKE;
            }
            view
        };
        let inputs: Vec<View> = (0..call.inputs.len()).map(input).collect();
        let output = |(shape, dtype): &(Shape, Dtype)| View {
            size: size_of::<View>() as u32,
            flags: 0,
            data: std::ptr::null_mut(),
            shape: shape.as_ptr().cast(),
            strides: shape.as_ptr().cast(),
            elements: shape::size(shape) as i64,
            ndim: shape.len() as i32,
            dtype: dtype.to_dl(),
        };
        let outputs: Vec<View> = results.iter().map(output).collect();
        let mut state = state;
        *state.inputs.get_mut() = inputs;
        *state.outputs_seen.get_mut() = outputs;
        for (i, (shape, _)) in results.iter().enumerate() {
            // An empty output has no memory that the primitive could write.
            if !primitive.allocates || shape.contains(&0) {
                let value = state.memory(i, shape::contiguous_strides(shape))?;
                state.give(i, value, true);
            } else {
                let mut outputs = state.outputs_seen.get_mut()[i];
                outputs.strides = UNKNOWN.as_ptr();
                state.outputs_seen.get_mut()[i] = outputs;
            }
        }
        Ok(state)
    }

    /// Returns the views of inputs and outputs, as the extension reads them.
    pub fn views(&self) -> (*const View, *const View) {
        // SAFETY: the lists are never resized, and only this thread changes their elements.
        unsafe { ((*self.inputs.get()).as_ptr(), (*self.outputs_seen.get()).as_ptr()) }
    }

    /// Replaces the view of input `i`, for later reads by the extension.
    pub fn see_input(&self, i: usize, view: View) {
        // SAFETY: as `views`; no reference into the list is held.
        unsafe { (&mut *self.inputs.get())[i] = view }
    }

    /// The view of output `i`.
    fn output_view(&self, i: usize) -> View {
        // SAFETY: as `views`.
        unsafe { (&*self.outputs_seen.get())[i] }
    }

    /// New memory for output `i`.
    fn memory(&self, i: usize, strides: Strides) -> Result<Value> {
        let (shape, dtype) = &self.results[i];
        let mut value = match &self.poison {
            Some(pattern) => pattern.memory(self.exec, shape, *dtype)?,
            None => self.exec.alloc(shape, *dtype)?,
        };
        value.strides = strides;
        Ok(value)
    }

    /// Gives output `i` row-major memory if it has none.
    pub fn give_memory(&self, i: usize) -> Result<()> {
        if self.outputs.borrow()[i].is_none() {
            let strides = shape::contiguous_strides(&self.results[i].0);
            self.give(i, self.memory(i, strides)?, true);
        }
        Ok(())
    }

    /// Sets the memory of output `i`.
    fn give(&self, i: usize, value: Value, own: bool) {
        let mut outputs = self.outputs.borrow_mut();
        let output = outputs[i].insert(Output { value, own });
        let (shape, dtype) = &self.results[i];
        let view = seen(&output.value, shape, *dtype, self.exec.device.is_host());
        // SAFETY: as `views`; no reference into the list is held.
        unsafe { (&mut *self.outputs_seen.get())[i] = view }
    }

    /// Returns true if an output of input `i`'s size can use its memory.
    fn may_take(&self, i: usize) -> bool {
        let (shape, dtype) = self.call.descs[i];
        let value = &self.call.inputs[i];
        self.poison.is_none()
            && i < 32
            && self.call.donatable >> i & 1 == 1
            && value.offset == 0
            && value.buffer.bytes() == dtype.bytes_of(shape::size(shape))
            && shape::is_contiguous(shape, &value.strides)
            && !self.taken.borrow().contains(&i)
            && self.copies.borrow()[i].is_none()
    }

    /// Returns true if an input's memory was given away.
    pub fn has_taken(&self) -> bool {
        !self.taken.borrow().is_empty()
    }

    /// Calls `f` with the outputs.
    pub fn outputs<T>(&self, f: impl FnOnce(&[Option<Output>]) -> T) -> T {
        f(&self.outputs.borrow())
    }

    /// Ends the call and returns the outputs.
    ///
    /// # Errors
    /// [`Error::Runtime`] if an output has no memory.
    pub fn finish(self, rule: &str) -> Result<Vec<Output>> {
        let name = self.primitive.name;
        let each = self.outputs.into_inner().into_iter().enumerate();
        each.map(|(i, output)| {
            let missing = || {
                Error::runtime(
                    name,
                    format!("{rule} gave output {i} no memory. Call allocate or share for it."),
                )
            };
            output.ok_or_else(missing)
        })
        .collect()
    }

    /// The index of an output that must not have memory yet.
    fn bare(&self, function: &str, output: u32) -> Result<usize> {
        let name = self.primitive.name;
        let i = output as usize;
        let wrong = |text: String| Err(Error::value(name, format!("{function}: {text}")));
        if !self.primitive.allocates {
            return wrong(
                "the primitive does not allocate its outputs. Set the flag UM_PRIMITIVE_ALLOCATES."
                    .into(),
            );
        }
        match self.outputs.borrow().get(i) {
            Some(None) => Ok(i),
            Some(Some(_)) if self.results[i].0.contains(&0) => Ok(i),
            Some(Some(_)) => {
                wrong(format!("output {i} has memory already. Allocate or share once."))
            }
            None => wrong(format!("there is no output {i}. Outputs are numbered from 0.")),
        }
    }

    /// Returns the index of an input, or an error that names `function`.
    pub fn input(&self, function: &str, input: u32) -> Result<usize> {
        let i = input as usize;
        if i < self.call.inputs.len() {
            return Ok(i);
        }
        Err(Error::value(
            self.primitive.name,
            format!("{function}: there is no input {i}. Inputs are numbered from 0."),
        ))
    }
}

/// Strides in the view of an output without memory, whose strides are not known yet.
static UNKNOWN: [i64; abi::MAX_NDIM] = [0; abi::MAX_NDIM];

/// While this guard lives, the call is the thread's current one.
pub(super) struct Current(*const State<'static>);

impl Current {
    pub fn enter(state: &State<'_>) -> Current {
        Current(CURRENT.replace(std::ptr::from_ref(state).cast()))
    }
}

impl Drop for Current {
    fn drop(&mut self) {
        CURRENT.set(self.0);
    }
}

/// Runs a function of the table that takes a call.
///
/// # Safety
/// `error` is NULL or the caller's pointer.
pub(super) unsafe fn with_call(
    function: &str,
    host_call: *mut c_void,
    error: *mut *mut abi::Error,
    f: impl FnOnce(&State<'_>) -> Result<(), Failure>,
) -> Status {
    // SAFETY: by this function's contract.
    unsafe {
        guard(function, error, || {
            let current = CURRENT.get();
            if current.is_null() || current.cast::<c_void>() != host_call.cast_const() {
                bail!(
                    function,
                    "host_call does not belong to the evaluation on this thread. Pass the one that the rule received, on the same thread."
                );
            }
            // SAFETY: a current call lives at least until it is no longer current; access is shared only.
            f(&*current)
        })
    }
}

/// The strides of an output, if they are dense for some order of the axes.
fn dense(shape: &[usize], strides: &[i64]) -> Option<Strides> {
    if shape.contains(&0) {
        return Some(shape::contiguous_strides(shape));
    }
    let mut order: Vec<usize> = (0..shape.len()).filter(|i| shape[*i] != 1).collect();
    order.sort_by_key(|i| strides[*i]);
    let mut expected = 1;
    for i in &order {
        if strides[*i] != expected {
            return None;
        }
        expected *= shape[*i] as i64;
    }
    // Strides that are never applied can have any value, and could overflow later.
    let mut own = shape::contiguous_strides(shape);
    order.iter().for_each(|i| own[*i] = strides[*i] as isize);
    Some(own)
}

pub(super) unsafe extern "C" fn allocate(
    host_call: *mut c_void,
    output: u32,
    strides: *const i64,
    view: *mut View,
    error: *mut *mut abi::Error,
) -> Status {
    const NAME: &str = "allocate";
    // SAFETY: the caller's pointers, by contract.
    unsafe {
        with_call(NAME, host_call, error, |state| {
            let i = state.bare(NAME, output)?;
            check_if(NAME, view)?;
            let shape = &state.results[i].0;
            let strides = match strides.is_null() {
                true => shape::contiguous_strides(shape),
                false => {
                    let given = list(NAME, "the strides", strides, shape.len() as u64)?;
                    dense(shape, given).ok_or_else(|| {
                        let text = format!(
                            "allocate: strides {given:?} do not fill shape {} without gaps. Pass strides of a dense layout, or NULL.",
                            Show(shape)
                        );
                        Error::value(state.primitive.name, text)
                    })?
                }
            };
            let value = state.memory(i, strides)?;
            state.give(i, value, true);
            Ok(fill_if(NAME, view, state.output_view(i))?)
        })
    }
}

pub(super) unsafe extern "C" fn take(
    host_call: *mut c_void,
    output: u32,
    input: u32,
    view: *mut View,
    error: *mut *mut abi::Error,
) -> Status {
    const NAME: &str = "take";
    // SAFETY: the caller's pointers, by contract.
    unsafe {
        with_call(NAME, host_call, error, |state| {
            let (i, from) = (state.bare(NAME, output)?, state.input(NAME, input)?);
            check_if(NAME, view)?;
            let (shape, dtype) = &state.results[i];
            let value = &state.call.inputs[from];
            let fits = value.buffer.bytes() == dtype.bytes_of(shape::size(shape));
            if !fits || !state.may_take(from) {
                return Err(Failure::Unsupported);
            }
            let strides = shape::contiguous_strides(shape);
            let value = Value { strides, ..state.exec.donate(value) };
            state.taken.borrow_mut().push(from);
            state.give(i, value, true);
            Ok(fill_if(NAME, view, state.output_view(i))?)
        })
    }
}

pub(super) unsafe extern "C" fn share(
    host_call: *mut c_void,
    output: u32,
    input: u32,
    offset: i64,
    strides: *const i64,
    error: *mut *mut abi::Error,
) -> Status {
    const NAME: &str = "share";
    // SAFETY: the caller's pointers, by contract.
    unsafe {
        with_call(NAME, host_call, error, |state| {
            let (i, from) = (state.bare(NAME, output)?, state.input(NAME, input)?);
            let (shape, dtype) = &state.results[i];
            let (its, of) = state.call.descs[from];
            let name = state.primitive.name;
            ensure!(
                of == *dtype,
                name,
                "share: output {i} is {dtype}, input {from} is {of}. Share an input of the same dtype."
            );
            if shape.contains(&0) {
                return Ok(());
            }
            let copies = state.copies.borrow();
            let value = copies[from].as_ref().unwrap_or(&state.call.inputs[from]);
            let own = shape::contiguous_strides(shape);
            let own: Strides = match strides.is_null() {
                true => own,
                false => list(NAME, "the strides", strides, shape.len() as u64)?
                    .iter()
                    .map(|s| *s as isize)
                    .collect(),
            };
            let inside = || {
                let (low, high) = shape::element_range(shape::axes(shape, &own))?;
                let (first, last) = shape::element_range(shape::axes(its, &value.strides))?;
                let inside = offset.checked_add(low)? >= first && offset.checked_add(high)? <= last;
                Some(inside && !its.contains(&0))
            };
            if inside() != Some(true) {
                bail!(
                    name,
                    "share: shape {} with strides {own:?} and offset {offset} reaches outside input {from}. Pass strides and an offset inside it.",
                    Show(shape)
                );
            }
            // Strides that are never applied can have any value, and could overflow later.
            let mut strides = shape::contiguous_strides(shape);
            for ((to, from), n) in strides.iter_mut().zip(&own).zip(shape) {
                *to = if *n == 1 { *to } else { *from };
            }
            let offset = value.offset as i64 + offset * dtype.size() as i64;
            let value = Value { buffer: value.buffer.clone(), offset: offset as usize, strides };
            drop(copies);
            state.give(i, value, false);
            Ok(())
        })
    }
}

pub(super) unsafe extern "C" fn enqueue(
    host_call: *mut c_void,
    task: Task,
    drop: Option<TaskDrop>,
    context: *mut c_void,
    error: *mut *mut abi::Error,
) -> Status {
    const NAME: &str = "enqueue";
    // The context is taken over even if the function fails.
    let queued = Queued { task, drop, context };
    // SAFETY: the caller's pointers, by contract.
    unsafe {
        with_call(NAME, host_call, error, |state| {
            if !state.exec.device.is_host() {
                bail!(
                    state.primitive.name,
                    "enqueue: tasks run on the CPU only. Launch a kernel on a device."
                );
            }
            state.tasks.borrow_mut().push(queued);
            Ok(())
        })
    }
}

/// Languages of kernels, in the form of [`extension::EvalCall::languages`].
pub(super) fn languages(exec: &Exec) -> std::ffi::CString {
    let all = if exec.device.is_host() { String::new() } else { exec.languages().join(" ") };
    std::ffi::CString::new(all).unwrap_or_default()
}

/// The call in the form that the primitive gets.
pub(super) fn described(state: &State<'_>, languages: &core::ffi::CStr) -> extension::EvalCall {
    let (inputs, outputs) = state.views();
    extension::EvalCall {
        size: size_of::<extension::EvalCall>() as u32,
        n_inputs: state.call.inputs.len() as u32,
        n_outputs: state.results.len() as u32,
        view_stride: size_of::<View>() as u32,
        inputs,
        outputs,
        languages: languages.as_ptr(),
        host_call: std::ptr::from_ref(state).cast_mut().cast(),
    }
}
