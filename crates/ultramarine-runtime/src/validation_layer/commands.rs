//! The functions of a wrapped table that make plans and run commands.

use super::calls::{ErrorOut, Handle, HandleOut, context, made, open_context};
use super::state::{State, key};
use super::{Context, last_call, signature::Signature, tensors};
use crate::host_table;
use core::ffi::{CStr, c_char, c_void};
use std::cell::Cell;
use std::sync::Arc;
use ultramarine_abi::fused::{self, Anchor, AnchoredInterface, FusedInterface, Program};
use ultramarine_abi::interface::{
    collective, kernel, memory, replay, stream_memory, timing, upload,
};
use ultramarine_abi::{Command, Status, TensorDesc, ensure, status};

/// Records a plan that was made, or reports what is wrong with the answer.
///
/// # Safety
/// `plan` is NULL or writable.
unsafe fn keep(
    cx: &Context,
    device: Handle,
    signature: Result<Signature, String>,
    plan: HandleOut,
    error: ErrorOut,
    real: &dyn Fn(ErrorOut) -> Status,
) -> Status {
    let (signature, wrong) = match signature {
        Ok(signature) => (Some(Arc::new(signature)), None),
        Err(wrong) => (None, Some(wrong)),
    };
    let contiguous = signature.as_ref().is_some_and(|s| s.all_contiguous());
    let refused = Cell::new(false);
    let before = |s: &mut State| {
        if let Some(wrong) = &wrong {
            return Err(wrong.clone());
        }
        last_call::describe(signature.as_ref().map_or(String::new(), |s| s.describe()));
        s.device(device).map(|_| ())
    };
    let real = |e| {
        let code = real(e);
        refused.set(code == status::NEEDS_CONTIGUOUS && contiguous);
        code
    };
    let after = |s: &mut State| {
        // SAFETY: by this function's contract; the backend has filled it.
        let plan = key(device, unsafe { made(plan, "plan") }?);
        let Some(signature) = signature.clone() else { return Ok(()) };
        match s.plans.get_mut(plan) {
            Ok(known) => known.push(signature),
            Err(_) => s.plans.add(plan, vec![signature])?,
        }
        Ok(())
    };
    // SAFETY: the error pointer is the caller's.
    let code = unsafe { cx.call("prepare", error, None, &before, &real, &after) };
    if refused.get() {
        // SAFETY: as above. A refusal may come with or without an error object, and its text is not
        // used.
        return unsafe {
            let what = "it needs contiguous inputs, and all are";
            cx.refuse("prepare", what, status::UNSUPPORTED, std::ptr::null_mut())
        };
    }
    code
}

#[allow(clippy::too_many_arguments, reason = "the contract has it so")]
unsafe fn prepare(
    slot: usize,
    device: Handle,
    op: u32,
    revision: u32,
    attributes: *const c_void,
    inputs: *const TensorDesc,
    n_inputs: u32,
    outputs: *const TensorDesc,
    n_outputs: u32,
    plan: HandleOut,
    error: ErrorOut,
) -> Status {
    let Some(cx) = context(slot) else { return status::ERROR };
    let Some(real) = cx.real.prepare else { return status::UNSUPPORTED };
    let (scalars, donates) = (Signature::scalars_of(op), Signature::donates_of(op));
    // SAFETY: the caller's descriptions, in the number that the caller gives.
    let signature = unsafe {
        Signature::new(Some(op), scalars, donates, (inputs, n_inputs), (outputs, n_outputs))
            .map(|signature| signature.with_code(attributes))
    };
    // SAFETY: arguments of the caller, who keeps to the contract.
    let real = |e| unsafe {
        real(device, op, revision, attributes, inputs, n_inputs, outputs, n_outputs, plan, e)
    };
    // SAFETY: the caller's pointers.
    unsafe { keep(cx, device, signature, plan, error, &real) }
}

unsafe fn prepare_fused(
    slot: usize,
    device: Handle,
    program: *const Program,
    inputs: *const TensorDesc,
    outputs: *const TensorDesc,
    plan: HandleOut,
    error: ErrorOut,
) -> Status {
    let Some(cx) = context(slot) else { return status::ERROR };
    let Some(real) = cx.fused.get().and_then(|f| f.0.prepare) else { return status::UNSUPPORTED };
    // SAFETY: the caller's program and its descriptions, in the number that the program gives.
    let signature = unsafe {
        match program.as_ref() {
            Some(p) => Signature::new(
                None,
                p.n_constants,
                true,
                (inputs, p.n_inputs),
                (outputs, p.n_outputs),
            ),
            None => Err("no program".into()),
        }
    };
    // SAFETY: arguments of the caller, who keeps to the contract.
    let real = |e| unsafe { real(device, program, inputs, outputs, plan, e) };
    // SAFETY: the caller's pointers.
    unsafe { keep(cx, device, signature, plan, error, &real) }
}

#[allow(clippy::too_many_arguments, reason = "the contract has it so")]
unsafe fn prepare_anchored(
    slot: usize,
    device: Handle,
    program: *const Program,
    anchor: *const Anchor,
    inputs: *const TensorDesc,
    outputs: *const TensorDesc,
    plan: HandleOut,
    error: ErrorOut,
) -> Status {
    let Some(cx) = context(slot) else { return status::ERROR };
    let Some(real) = cx.anchored.get().and_then(|f| f.0.prepare) else {
        return status::UNSUPPORTED;
    };
    // SAFETY: the caller's program and anchor and their descriptions, in the numbers that they
    // give.
    let signature = unsafe {
        match (program.as_ref(), anchor.as_ref()) {
            (Some(p), Some(a)) => Signature::new(
                None,
                p.n_constants + a.n_scalars,
                true,
                (inputs, p.n_inputs + a.n_inputs),
                (outputs, p.n_outputs),
            ),
            _ => Err("no program, or no anchor".into()),
        }
    };
    // SAFETY: arguments of the caller, who keeps to the contract.
    let real = |e| unsafe { real(device, program, anchor, inputs, outputs, plan, e) };
    // SAFETY: the caller's pointers.
    unsafe { keep(cx, device, signature, plan, error, &real) }
}

unsafe fn submit(
    slot: usize,
    device: Handle,
    stream: Handle,
    commands: *const Command,
    n_commands: u32,
    error: ErrorOut,
) -> Status {
    let Some(cx) = context(slot) else { return status::ERROR };
    let Some(real) = cx.real.submit else { return status::UNSUPPORTED };
    // The CPU's streams exist only on the host.
    let own = cx.real.stream_create.is_some() && !(cx.is_cpu() && stream.is_null());
    let on = own.then(|| key(device, stream));
    let (refused, failed) = (Cell::new(false), Cell::new(None));
    let before = |s: &mut State| {
        s.device(device)?;
        ensure!(n_commands == 0 || !commands.is_null(), "no commands");
        let mut buffers = Vec::new();
        let mut described = Vec::new();
        for i in 0..n_commands as usize {
            // SAFETY: the caller's commands are `size` bytes apart. `tensors::command` reads what
            // they point at according to the contract.
            unsafe {
                let stride = (*commands).size as usize;
                let command = &*commands.cast::<u8>().add(i * stride).cast::<Command>();
                buffers.extend(tensors::command(cx, s, device, command)?);
                described.push(tensors::describe(s, device, command));
            }
        }
        last_call::describe(described.join("; "));
        // Record the submission before the call, because the work may be done before the call
        // returns.
        on.into_iter().for_each(|on| s.submitted(on, &buffers));
        Ok(())
    };
    let real = |e| {
        // SAFETY: arguments of the caller, who keeps to the contract. The error pointer is the
        // layer's.
        let code = unsafe {
            let code = real(device, stream, commands, n_commands, e);
            failed.set(host_table::failed_command(*e));
            code
        };
        refused.set(matches!(code, status::UNSUPPORTED | status::NEEDS_CONTIGUOUS));
        code
    };
    // SAFETY: the error pointer is the caller's.
    let code = unsafe { cx.call("submit", error, on, &before, &real, &|_| Ok(())) };
    // In a list of several commands, those before the failed one may be running.
    if code != status::OK && !cx.forked() && (n_commands <= 1 || failed.get() == Some(0)) {
        on.into_iter().for_each(|on| cx.state().not_submitted(on));
    }
    if let Some(index) = failed.get().filter(|index| *index >= n_commands) {
        cx.finding("submit", &format!("command {index} of a list of {n_commands} failed"));
    }
    if refused.get() {
        cx.finding("submit", "it made a plan and then refused its command");
    }
    code
}

unsafe fn plan_workspace(
    slot: usize,
    device: Handle,
    plan: Handle,
    command: *const Command,
) -> u64 {
    let Some(cx) = open_context(slot) else { return 0 };
    let Some(real) = cx.real.plan_workspace else { return 0 };
    if !cx.forked() {
        let known = cx.state().plans.get(key(device, plan)).map(|_| ());
        if let Err(what) = known {
            cx.finding("plan_workspace", &what);
            return 0;
        }
    }
    // SAFETY: the plan is alive; the command is the caller's.
    unsafe { real(device, plan, command) }
}

slots! {
    fn prepare(
        device: Handle, op: u32, revision: u32, attributes: *const c_void,
        inputs: *const TensorDesc, n_inputs: u32, outputs: *const TensorDesc, n_outputs: u32,
        plan: HandleOut, error: ErrorOut
    ) -> Status;
    fn prepare_fused(
        device: Handle, program: *const Program, inputs: *const TensorDesc,
        outputs: *const TensorDesc, plan: HandleOut, error: ErrorOut
    ) -> Status;
    fn prepare_anchored(
        device: Handle, program: *const Program, anchor: *const Anchor, inputs: *const TensorDesc,
        outputs: *const TensorDesc, plan: HandleOut, error: ErrorOut
    ) -> Status;
    fn submit(
        device: Handle, stream: Handle, commands: *const Command, n_commands: u32, error: ErrorOut
    ) -> Status;
    fn plan_workspace(device: Handle, plan: Handle, command: *const Command) -> u64;
}

pub(super) unsafe extern "C" fn interface<const S: usize>(
    backend: Handle,
    id: *const c_char,
) -> *const c_void {
    let Some(cx) = context(S) else { return std::ptr::null() };
    let Some(ask) = cx.real.interface else { return std::ptr::null() };
    // SAFETY: the arguments are the caller's.
    let found = unsafe { ask(backend, id) };
    // SAFETY: the caller's id is NUL-terminated.
    let id = if id.is_null() { c"" } else { unsafe { CStr::from_ptr(id) } };
    if id == memory::INTERFACE {
        // SAFETY: what the backend has under that id.
        return unsafe { super::memory::watched::<S>(cx, found) };
    }
    if id == stream_memory::INTERFACE {
        // SAFETY: as above.
        return unsafe { super::stream_memory::watched::<S>(cx, found) };
    }
    if id == replay::INTERFACE {
        // SAFETY: as above.
        return unsafe { super::replay::watched::<S>(cx, found) };
    }
    if id == timing::INTERFACE {
        // SAFETY: as above.
        return unsafe { super::timing::watched::<S>(cx, found) };
    }
    if id == upload::INTERFACE {
        // SAFETY: as above.
        return unsafe { super::upload::watched::<S>(cx, found) };
    }
    if id == collective::INTERFACE {
        // SAFETY: as above.
        return unsafe { super::collective::watched::<S>(cx, found) };
    }
    if id == kernel::INTERFACE {
        // SAFETY: as above.
        return unsafe { super::kernel::watched::<S>(cx, found) };
    }
    if id == fused::ANCHORED_INTERFACE {
        let ours = |real: AnchoredInterface| AnchoredInterface {
            prepare: real.prepare.map(|_| of_slot::prepare_anchored::<S> as _),
            ..real
        };
        // SAFETY: a static struct that begins with its size, or NULL; all-zero is a valid one.
        return unsafe { super::replaced(&cx.anchored, found, ours) };
    }
    if found.is_null() || id != fused::INTERFACE {
        return found;
    }
    let ours = |real: FusedInterface| FusedInterface {
        prepare: real.prepare.map(|_| of_slot::prepare_fused::<S> as _),
        ..real
    };
    // SAFETY: a static struct that begins with its size; all-zero is a valid one.
    unsafe { super::replaced(&cx.fused, found, ours) }
}
