//! Plans: requests are decoded and passed to the families of kernels.

use super::{Plan, no_device, state};
#[cfg(feature = "fft")]
use crate::fft;
use crate::kernel::{Desc, Op, Prepared, Refusal, Signature};
#[cfg(feature = "linalg")]
use crate::linalg;
use crate::{
    arg_reduce, conv, create, fused as fused_kernels, index, level::Level, matmul, nn, quantized,
    random, scan, sort,
};
use core::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use ultramarine_abi::helper::{Failure, guard};
use ultramarine_abi::{self as abi, Status, fused, schema::Family};

/// Prepares an operation in the module of its family.
fn prepare_op(family: Family, op: &Op, signature: &Signature<'_>, level: Level) -> Prepared {
    match family {
        Family::Copy | Family::Elementwise | Family::Select | Family::Reduce => {
            fused_kernels::prepare_op(op, signature, level)
        }
        Family::Create => create::prepare(op, signature, level),
        Family::ArgReduce => arg_reduce::prepare(op.attributes()?, signature, level),
        Family::Scan => scan::prepare(op.attributes()?, signature, level),
        Family::Sort => sort::prepare_op(op, signature, level),
        Family::Index => index::prepare(op, signature, level),
        Family::Matmul => matmul::prepare_op(op, signature, level),
        Family::Conv => conv::prepare_op(op, signature, level),
        #[cfg(feature = "fft")]
        Family::Fft => fft::prepare(op.attributes()?, signature, level),
        #[cfg(not(feature = "fft"))]
        Family::Fft => left_out("Fourier transforms", "fft"),
        #[cfg(feature = "linalg")]
        Family::Linalg => linalg::prepare_op(op, signature),
        #[cfg(not(feature = "linalg"))]
        Family::Linalg => left_out("decompositions of matrices", "linalg"),
        Family::Random => random::prepare(signature, level),
        Family::Nn => nn::prepare_op(op, signature, level),
        Family::Quantized => quantized::prepare_op(op, signature),
    }
}

/// Rejects operations for which this build has no kernels.
#[cfg(not(all(feature = "fft", feature = "linalg")))]
fn left_out(what: &str, feature: &str) -> Prepared {
    Err(Refusal::Invalid(format!(
        "this build has no {what} on the CPU: enable the feature `{feature}` of the crate `ultramarine`"
    )))
}

/// The descriptions of a request; `None` for an unknown dtype or rank.
///
/// # Safety
/// The descriptions are readable: `n` of them, at the distance that the first one states.
unsafe fn decode(descs: *const abi::TensorDesc, n: u32) -> Option<Vec<Desc>> {
    if n == 0 {
        return Some(Vec::new());
    }
    if descs.is_null() {
        return None;
    }
    // SAFETY: there is a first one, and its size comes first.
    let stride = unsafe { descs.cast::<u32>().read_unaligned() } as usize;
    if stride < size_of::<abi::TensorDesc>() {
        return None;
    }
    let at = |i: usize| descs.cast::<u8>().wrapping_add(i * stride).cast::<abi::TensorDesc>();
    // SAFETY: each is at least as long as the struct that is known here.
    (0..n as usize).map(|i| Desc::new(unsafe { &*at(i) })).collect()
}

/// Passes a prepared kernel to the host.
///
/// # Safety
/// `plan` is writable.
unsafe fn finish(
    prepared: Prepared,
    inputs: &[Desc],
    outputs: &[Desc],
    plan: *mut *mut c_void,
) -> Result<(), Failure> {
    let kernel = prepared.map_err(|refusal| match refusal {
        Refusal::Unsupported => Failure::unsupported("not supported by the CPU backend"),
        Refusal::NeedsContiguous => Failure::needs_contiguous(),
        Refusal::Invalid(text) => Failure::new(text),
    })?;
    if plan.is_null() {
        return Err(Failure::invalid("no place for the plan"));
    }
    let dtypes = |d: &[Desc]| d.iter().map(|d| d.dtype).collect();
    let made = Plan { kernel, inputs: dtypes(inputs), outputs: dtypes(outputs) };
    // SAFETY: by this function's contract.
    unsafe { *plan = Box::into_raw(Box::new(made)) as *mut c_void };
    Ok(())
}

/// A request's descriptions, decoded and prepared by `prepare`.
///
/// # Safety
/// `device` is NULL or what [`backend_init`] gave; the descriptions are readable, `plan` and
/// `error` NULL or writable.
unsafe fn prepare_with(
    device: *mut c_void,
    (inputs, n_inputs): (*const abi::TensorDesc, u32),
    (outputs, n_outputs): (*const abi::TensorDesc, u32),
    plan: *mut *mut c_void,
    error: *mut *mut abi::Error,
    prepare: impl FnOnce(&Signature<'_>, Level) -> Prepared,
) -> Status {
    // SAFETY: by this function's contract.
    let state = unsafe { state(device) };
    let work = || {
        let level = state.ok_or_else(no_device)?.context.level;
        // SAFETY: by this function's contract.
        let (ins, outs) = unsafe { (decode(inputs, n_inputs), decode(outputs, n_outputs)) };
        let (Some(ins), Some(outs)) = (ins, outs) else {
            return Err(Failure::unsupported("a dtype or rank is unknown"));
        };
        let signature = Signature { inputs: &ins, outputs: &outs };
        // SAFETY: by this function's contract.
        unsafe { finish(prepare(&signature, level), &ins, &outs, plan) }
    };
    // SAFETY: by this function's contract.
    unsafe { guard(state.map(|s| &s.host), error, work) }
}

#[allow(clippy::too_many_arguments, reason = "the contract has it so")]
pub(super) unsafe extern "C" fn prepare(
    device: *mut c_void,
    id: u32,
    revision: u32,
    attributes: *const c_void,
    inputs: *const abi::TensorDesc,
    n_inputs: u32,
    outputs: *const abi::TensorDesc,
    n_outputs: u32,
    plan: *mut *mut c_void,
    error: *mut *mut abi::Error,
) -> Status {
    let known = abi::schema::find(id).filter(|op| (1..=op.revision).contains(&revision));
    // SAFETY: the host passes the op's attribute struct, or NULL.
    let op = unsafe { Op::new(id, attributes) };
    // Operations without attributes read none, so attributes of a later version are rejected here. SAFETY: NULL, or a
    // struct that begins with its size.
    let later = unsafe { !abi::tail_is_zero(attributes.cast::<abi::schema::NoAttrs>()) };
    let work = |signature: &Signature<'_>, level| match known {
        Some(row) if later && row.attributes.fields.is_empty() => Err(Refusal::Unsupported),
        Some(row) => prepare_op(row.family, &op, signature, level),
        None => Err(Refusal::Unsupported),
    };
    // SAFETY: the contract's arguments.
    unsafe { prepare_with(device, (inputs, n_inputs), (outputs, n_outputs), plan, error, work) }
}

/// Reads a struct that begins with its size. A shorter struct is rejected, because no version has it. The additional
/// part of a longer struct must be zero; otherwise it requests something that is not known here.
///
/// # Safety
/// `given` is NULL, or points at a struct that begins with its size.
unsafe fn whole<T: Copy>(given: *const T) -> Option<T> {
    // SAFETY: by this function's contract.
    unsafe {
        let size = given.cast::<u32>().as_ref().map_or(0, |size| *size as usize);
        let known = size >= size_of::<T>() && abi::tail_is_zero(given);
        abi::read_sized(given).filter(|_| known)
    }
}

pub(super) unsafe extern "C" fn prepare_fused(
    device: *mut c_void,
    program: *const fused::Program,
    inputs: *const abi::TensorDesc,
    outputs: *const abi::TensorDesc,
    plan: *mut *mut c_void,
    error: *mut *mut abi::Error,
) -> Status {
    // SAFETY: the host passes NULL or a program, which begins with its size.
    let program = unsafe { whole(program) };
    let (n_inputs, n_outputs) = program.map_or((0, 0), |p| (p.n_inputs, p.n_outputs));
    let work = |signature: &Signature<'_>, level| {
        let Some(program) = &program else { return Err(Refusal::Unsupported) };
        // SAFETY: the program's arrays have the lengths that it says.
        unsafe { fused_kernels::prepare_program(program, signature, level) }
    };
    // SAFETY: the contract's arguments.
    unsafe { prepare_with(device, (inputs, n_inputs), (outputs, n_outputs), plan, error, work) }
}

pub(super) unsafe extern "C" fn prepare_anchored(
    device: *mut c_void,
    program: *const fused::Program,
    anchor: *const fused::Anchor,
    inputs: *const abi::TensorDesc,
    outputs: *const abi::TensorDesc,
    plan: *mut *mut c_void,
    error: *mut *mut abi::Error,
) -> Status {
    // SAFETY: the host passes NULL, or what begins with its size.
    let (program, anchor) = unsafe { (whole(program), whole(anchor)) };
    let (n_inputs, n_outputs) = match (&program, &anchor) {
        (Some(p), Some(a)) => (p.n_inputs.saturating_add(a.n_inputs), p.n_outputs),
        _ => (0, 0),
    };
    let work = |signature: &Signature<'_>, level| {
        let (Some(program), Some(anchor)) = (&program, &anchor) else {
            return Err(Refusal::Unsupported);
        };
        // SAFETY: the program's arrays have the lengths that it says.
        unsafe { fused_kernels::prepare_anchored(program, anchor, signature, level) }
    };
    // SAFETY: the contract's arguments.
    unsafe { prepare_with(device, (inputs, n_inputs), (outputs, n_outputs), plan, error, work) }
}

pub(super) unsafe extern "C" fn plan_release(_device: *mut c_void, plan: *mut c_void) {
    if !plan.is_null() {
        // SAFETY: the host gives back, once, what `finish` made.
        let plan = unsafe { Box::from_raw(plan as *mut Plan) };
        let _ = catch_unwind(AssertUnwindSafe(|| drop(plan)));
    }
}
