//! The interface `ultramarine.kernel/1` of a wrapped backend. Checks that users' kernels live from
//! compile to release, and that launches use buffers in the same way as commands.

use super::calls::{ErrorOut, Handle, HandleOut, context, made, open_context};
use super::state::{State, key};
use super::{Context, replaced, tensors};
use core::ffi::c_void;
use ultramarine_abi::interface::kernel::{
    KernelArgument, KernelInfo, KernelInterface, KernelLaunch, KernelSource, argument,
};
use ultramarine_abi::{self as abi, Status, ensure, inline_str, status};

fn interface(cx: &Context) -> Option<&KernelInterface> {
    cx.kernel.get().map(|(real, _)| real)
}

unsafe fn compile(
    slot: usize,
    device: Handle,
    source: *const KernelSource,
    kernel: HandleOut,
    error: ErrorOut,
) -> Status {
    let Some(cx) = context(slot) else { return status::ERROR };
    let Some(real) = interface(cx).and_then(|i| i.compile) else { return status::UNSUPPORTED };
    let before = |s: &mut State| {
        let languages = inline_str(&s.device(device)?.info.kernel_languages);
        // SAFETY: the caller's struct begins with its size, and an all-zero struct is valid.
        let source = unsafe { abi::read_sized(source) }.ok_or("no source")?;
        if source.language.is_null() || source.source.is_null() || source.entry.is_null() {
            return Err("a kernel without language, source or name".into());
        }
        // SAFETY: NUL-terminated by contract.
        let language = unsafe { std::ffi::CStr::from_ptr(source.language) }.to_string_lossy();
        match languages.split_whitespace().any(|l| l == language) {
            true => Ok(()),
            false => Err(format!("a kernel in {language}, for a device that takes {languages}")),
        }
    };
    // SAFETY: the arguments are the caller's.
    let real = |e| unsafe { real(device, source, kernel, e) };
    let after = |s: &mut State| {
        // SAFETY: the caller's pointer, to which the backend has written.
        let kernel = unsafe { made(kernel, "kernel") }?;
        ensure!(!kernel.is_null(), "it gave no kernel");
        s.kernels.add(key(device, kernel), Vec::new())
    };
    // SAFETY: the error pointer is the caller's.
    unsafe { cx.call("compile", error, None, &before, &real, &after) }
}

unsafe fn launch(
    slot: usize,
    device: Handle,
    stream: Handle,
    kernel: Handle,
    launch: *const KernelLaunch,
    error: ErrorOut,
) -> Status {
    let Some(cx) = context(slot) else { return status::ERROR };
    let Some(real) = interface(cx).and_then(|i| i.launch) else { return status::UNSUPPORTED };
    let own = cx.real.stream_create.is_some() && !(cx.is_cpu() && stream.is_null());
    let on = own.then(|| key(device, stream));
    let before = |s: &mut State| {
        s.kernels.get(key(device, kernel))?;
        // SAFETY: the caller's struct begins with its size, and an all-zero struct is valid.
        let launch = unsafe { abi::read_sized(launch) }.ok_or("no launch")?;
        if launch.grid.contains(&0) || launch.block.contains(&0) {
            return Err("a launch without threads".into());
        }
        let mut buffers = Vec::new();
        for i in 0..launch.n_arguments as usize {
            // SAFETY: the caller's arguments are `argument_stride` bytes apart, and begin with
            // their size.
            let one: Option<KernelArgument> = unsafe {
                let at = launch.arguments.cast::<u8>().add(i * launch.argument_stride as usize);
                abi::read_sized(at.cast())
            };
            let one = one.ok_or("no argument")?;
            match one.kind {
                argument::SCALAR => {}
                argument::TENSOR if !one.tensor.is_null() => {
                    // SAFETY: a tensor of the caller, with shape and strides of its rank.
                    let used = unsafe { tensors::bound(cx, s, device, &*one.tensor) };
                    buffers.extend(used.map_err(|e| format!("argument {i}: {e}"))?);
                }
                _ => return Err(format!("argument {i} is nothing that is known")),
            }
        }
        if let Some(on) = on {
            s.submitted(on, &buffers);
            s.kernel_used(key(device, kernel), on);
        }
        Ok(())
    };
    // SAFETY: the arguments are the caller's.
    let real = |e| unsafe { real(device, stream, kernel, launch, e) };
    // SAFETY: the error pointer is the caller's.
    let code = unsafe { cx.call("launch", error, on, &before, &real, &|_| Ok(())) };
    if code != status::OK && !cx.forked() {
        on.into_iter().for_each(|on| cx.state().not_submitted(on));
    }
    code
}

unsafe fn release(slot: usize, device: Handle, kernel: Handle) {
    let Some(cx) = open_context(slot) else { return };
    if !cx.forked()
        && let Err(what) = cx.state().kernel_gone(key(device, kernel))
    {
        cx.finding("release", &what);
        return;
    }
    if let Some(real) = interface(cx).and_then(|i| i.release) {
        // SAFETY: the kernel was alive, and is released once.
        unsafe { real(device, kernel) }
    }
}

unsafe fn info(
    slot: usize,
    device: Handle,
    kernel: Handle,
    info: *mut KernelInfo,
    error: ErrorOut,
) -> Status {
    let Some(cx) = context(slot) else { return status::ERROR };
    let Some(real) = interface(cx).and_then(|i| i.info) else { return status::UNSUPPORTED };
    let before = |s: &mut State| s.kernels.get(key(device, kernel)).map(|_| ());
    // SAFETY: the arguments are the caller's.
    let real = |e| unsafe { real(device, kernel, info, e) };
    // SAFETY: the error pointer is the caller's.
    unsafe { cx.call("info", error, None, &before, &real, &|_| Ok(())) }
}

slots! {
    fn compile(
        device: Handle, source: *const KernelSource, kernel: HandleOut, error: ErrorOut
    ) -> Status;
    fn launch(
        device: Handle, stream: Handle, kernel: Handle, launch: *const KernelLaunch, error: ErrorOut
    ) -> Status;
    fn release(device: Handle, kernel: Handle);
    fn info(device: Handle, kernel: Handle, info: *mut KernelInfo, error: ErrorOut) -> Status;
}

/// Returns the interface of a slot, which replaces the backend's own.
///
/// # Safety
/// `found` is NULL or the backend's interface.
pub(super) unsafe fn watched<const S: usize>(
    cx: &'static Context,
    found: *const c_void,
) -> *const c_void {
    let ours = |real: KernelInterface| KernelInterface {
        compile: real.compile.map(|_| of_slot::compile::<S> as _),
        launch: real.launch.map(|_| of_slot::launch::<S> as _),
        release: real.release.map(|_| of_slot::release::<S> as _),
        info: real.info.map(|_| of_slot::info::<S> as _),
        ..real
    };
    // SAFETY: by this function's contract.
    unsafe { replaced(&cx.kernel, found, ours) }
}
