//! Kernels of a call on a device: compiling, querying and launching them.

use super::boundary::{Failure, fill, fill_if, list, read, read_all, text};
use super::call::{Output, State, seen, with_call};
use super::types;
use crate::backend::{Argument, KernelSource, Operand, UserKernel};
use crate::error::{Error, Result, bail, ensure};
use crate::{dtype::Dtype, fast, node::Value, scalar::Scalar};
use core::ffi::{CStr, c_void};
use std::sync::Arc;
use ultramarine_abi::{
    self as abi, Status,
    extension::{Binding, Dispatch, KernelHandle, KernelProperties, KernelText, View, bind},
};

/// Rejects calls on the CPU, because only devices have kernels.
fn on_device(state: &State<'_>, function: &str) -> Result<()> {
    if !state.exec.device.is_host() {
        return Ok(());
    }
    Err(Error::value(
        state.primitive.name,
        format!("{function}: the CPU has no kernels. Queue a task."),
    ))
}

/// The kernel of a handle.
fn known(state: &State<'_>, function: &str, handle: *mut KernelHandle) -> Result<Arc<UserKernel>> {
    let kernels = state.kernels.borrow();
    let found = kernels.iter().find(|k| std::ptr::eq(Arc::as_ptr(k).cast(), handle.cast_const()));
    found.cloned().ok_or_else(|| {
        let text = format!(
            "{function}: the kernel was not made in this call. Pass what `kernel` returned in it."
        );
        Error::value(state.primitive.name, text)
    })
}

pub(in super::super) unsafe extern "C" fn kernel(
    host_call: *mut c_void,
    at: *const KernelText,
    to: *mut *mut KernelHandle,
    error: *mut *mut abi::Error,
) -> Status {
    const NAME: &str = "kernel";
    // SAFETY: the caller's pointers, by contract.
    unsafe {
        with_call(NAME, host_call, error, |state| {
            on_device(state, NAME)?;
            let given = read(NAME, at)?;
            let language = text(NAME, "the language", given.language)?;
            if !state.exec.languages().iter().any(|l| l == language) {
                state.primitive.note_missing_language(language);
                return Err(Failure::Unsupported);
            }
            let n = given.n_template_arguments as u64;
            let arguments = list(NAME, "template arguments", given.template_arguments, n)?;
            let arguments = arguments.iter().map(|a| text(NAME, "a template argument", *a));
            let arguments: Vec<String> =
                arguments.map(|a| a.map(str::to_owned)).collect::<Result<_>>()?;
            let options = match given.options.is_null() {
                true => None,
                false => Some(text(NAME, "the options", given.options)?),
            };
            let bytes = match given.source_bytes {
                0 if given.source.is_null() => &[][..],
                0 => CStr::from_ptr(given.source).to_bytes(),
                n => list(NAME, "the source", given.source.cast::<u8>(), n)?,
            };
            ensure!(
                !given.source.is_null(),
                NAME,
                "The pointer to the source is NULL. Pass a string."
            );
            let code = fast::COMPILED.contains(&language).then_some(bytes);
            let plain = std::str::from_utf8(if code.is_some() { &[] } else { bytes });
            let plain =
                plain.map_err(|_| Error::value(NAME, "The source is not UTF-8. Pass UTF-8."))?;
            let source = KernelSource {
                op: state.primitive.name,
                language,
                head: fast::prelude(language).unwrap_or(""),
                tail: "",
                source: plain,
                code,
                entry: text(NAME, "the entry", given.entry)?,
                template_arguments: &arguments,
                options,
            };
            ensure!(!to.is_null(), NAME, "The pointer to the result is NULL. Pass an address.");
            let found = state.exec.user_kernel(&source)?;
            to.write(Arc::as_ptr(&found).cast_mut().cast());
            state.kernels.borrow_mut().push(found);
            Ok(())
        })
    }
}

pub(in super::super) unsafe extern "C" fn kernel_properties(
    host_call: *mut c_void,
    handle: *mut KernelHandle,
    to: *mut KernelProperties,
    error: *mut *mut abi::Error,
) -> Status {
    const NAME: &str = "kernel_properties";
    // SAFETY: the caller's pointers, by contract.
    unsafe {
        with_call(NAME, host_call, error, |state| {
            let kernel = known(state, NAME, handle)?;
            let properties = state.exec.kernel_properties(&kernel)?;
            let properties = KernelProperties {
                size: size_of::<KernelProperties>() as u32,
                max_group: properties.max_group,
                group_multiple: properties.group_multiple,
                max_shared: properties.max_shared,
            };
            Ok(fill(NAME, to, properties)?)
        })
    }
}

pub(in super::super) unsafe extern "C" fn temporary(
    host_call: *mut c_void,
    bytes: u64,
    to: *mut u32,
    error: *mut *mut abi::Error,
) -> Status {
    const NAME: &str = "temporary";
    // SAFETY: the caller's pointers, by contract.
    unsafe {
        with_call(NAME, host_call, error, |state| {
            on_device(state, NAME)?;
            ensure!(!to.is_null(), NAME, "The pointer to the result is NULL. Pass an address.");
            let n = usize::try_from(bytes).ok().filter(|n| *n <= isize::MAX as usize);
            let no_memory = || Error::Memory(format!("no memory for {bytes} bytes").into());
            let value = state.exec.alloc(&[n.ok_or_else(no_memory)?], Dtype::Uint8)?;
            let mut all = state.temporaries.borrow_mut();
            to.write(all.len() as u32);
            all.push(value);
            Ok(())
        })
    }
}

pub(in super::super) unsafe extern "C" fn contiguous(
    host_call: *mut c_void,
    input: u32,
    to: *mut View,
    error: *mut *mut abi::Error,
) -> Status {
    const NAME: &str = "contiguous";
    // SAFETY: the caller's pointers, by contract.
    unsafe {
        with_call(NAME, host_call, error, |state| {
            let i = state.input(NAME, input)?;
            let (shape, dtype) = state.call.descs[i];
            let mut copies = state.copies.borrow_mut();
            if copies[i].is_none() {
                // A copy is row-major.
                copies[i] = state.exec.contiguous(&state.call.operand(i))?;
            }
            let host = state.exec.device.is_host();
            let view = match &copies[i] {
                Some(copy) => {
                    let view = seen(copy, shape, dtype, host);
                    state.see_input(i, view);
                    view
                }
                None => *state.views().0.add(i),
            };
            Ok(fill_if(NAME, to, view)?)
        })
    }
}

/// A parameter of a launch, before its operand is known.
enum Wanted<'a> {
    Input(usize),
    Output(usize),
    Temporary(usize),
    Scalar(Scalar),
    Constants(&'a [u8]),
}

/// Content of a binding.
///
/// # Safety
/// Its constants are NULL or of the stated length, and live as long as `'a`.
unsafe fn wanted<'a>(state: &State<'_>, at: usize, b: &Binding) -> Result<Wanted<'a>> {
    let name = state.primitive.name;
    let wrong = |text: String| Error::value(name, format!("launch: binding {at} {text}"));
    let i = b.index as usize;
    Ok(match b.kind {
        bind::INPUT if i < state.call.inputs.len() => Wanted::Input(i),
        bind::OUTPUT if i < state.results.len() => Wanted::Output(i),
        bind::TEMPORARY if i < state.temporaries.borrow().len() => Wanted::Temporary(i),
        bind::INPUT | bind::OUTPUT | bind::TEMPORARY => {
            let what = match b.kind {
                bind::INPUT => "input",
                bind::OUTPUT => "output",
                _ => "temporary",
            };
            return Err(wrong(format!(
                "names {what} {i}, which does not exist. Use an index below the number of {what}s."
            )));
        }
        bind::SCALAR => {
            Wanted::Scalar(Scalar::from_bits(types::dtype(name, b.dtype)?, b.scalar[0]))
        }
        // SAFETY: by this function's contract.
        bind::CONSTANTS => Wanted::Constants(unsafe {
            list(name, "constants of a launch", b.constants.cast::<u8>(), b.bytes)?
        }),
        other => {
            return Err(wrong(format!(
                "has kind {other}, which does not exist. Use one of UM_BIND_INPUT, UM_BIND_OUTPUT, UM_BIND_TEMPORARY, UM_BIND_SCALAR and UM_BIND_CONSTANTS."
            )));
        }
    })
}

pub(in super::super) unsafe extern "C" fn launch(
    host_call: *mut c_void,
    handle: *mut KernelHandle,
    at: *const Dispatch,
    error: *mut *mut abi::Error,
) -> Status {
    const NAME: &str = "launch";
    // SAFETY: the caller's pointers, by contract.
    unsafe {
        with_call(NAME, host_call, error, |state| {
            on_device(state, NAME)?;
            let name = state.primitive.name;
            let kernel = known(state, NAME, handle)?;
            let dispatch = read(NAME, at)?;
            if dispatch.group.contains(&0) {
                bail!(
                    name,
                    "launch: a group of {:?} threads is empty. Pass sizes of at least 1.",
                    dispatch.group
                );
            }
            let (n, stride) = (dispatch.n_bindings, dispatch.binding_stride);
            let bindings = read_all(NAME, dispatch.bindings, n, stride)?;
            let each = bindings.iter().enumerate();
            let wanted: Vec<Wanted<'_>> =
                each.map(|(i, b)| wanted(state, i, b)).collect::<Result<_>>()?;
            if dispatch.grid.contains(&0) {
                return Ok(());
            }
            for w in &wanted {
                // The primitive allocates its outputs, but has not allocated this one.
                if let Wanted::Output(i) = w {
                    state.give_memory(*i)?;
                }
            }
            let (copies, temporaries) = (state.copies.borrow(), state.temporaries.borrow());
            let lengths: Vec<[usize; 1]> = temporaries.iter().map(|t| [t.buffer.bytes()]).collect();
            state.outputs(|outputs| {
                let arguments: Vec<Argument<'_>> = wanted
                    .iter()
                    .map(|w| match w {
                        Wanted::Input(i) => {
                            let (shape, dtype) = state.call.descs[*i];
                            let value = copies[*i].as_ref().unwrap_or(&state.call.inputs[*i]);
                            Ok(Argument::Read(Operand { value, shape, dtype }))
                        }
                        Wanted::Output(i) => {
                            let (shape, dtype) = &state.results[*i];
                            let value = writable(name, *i, outputs[*i].as_ref())?;
                            Ok(Argument::Write(Operand { value, shape, dtype: *dtype }))
                        }
                        Wanted::Temporary(i) => {
                            let (value, shape) = (&temporaries[*i], &lengths[*i][..]);
                            Ok(Argument::Write(Operand { value, shape, dtype: Dtype::Uint8 }))
                        }
                        Wanted::Scalar(scalar) => Ok(Argument::Scalar(*scalar)),
                        Wanted::Constants(bytes) => Ok(Argument::Constants(bytes)),
                    })
                    .collect::<Result<_>>()?;
                let (grid, group) = (dispatch.grid, dispatch.group);
                Ok(state.exec.launch(&kernel, &arguments, grid, group, dispatch.shared_bytes)?)
            })
        })
    }
}

/// The memory of an output that a launch is allowed to write.
fn writable<'a>(name: &str, i: usize, output: Option<&'a Output>) -> Result<&'a Value> {
    match output {
        Some(output) if output.own => Ok(&output.value),
        Some(_) => {
            bail!(
                name,
                "launch: output {i} is a view of an input and cannot be written. Allocate it instead of sharing."
            )
        }
        None => Err(Error::value(
            name,
            format!(
                "launch: output {i} has no memory yet. Allocate or share it before the launch."
            ),
        )),
    }
}
