//! Commands: tensors are decoded and passed to the kernels of plans.

use super::{Plan, no_device, state};
use crate::dtype::DType;
use crate::kernel::{Args, Context, View};
use core::ffi::c_void;
use core::mem::{MaybeUninit, offset_of};
use ultramarine_abi::helper::{Failure, guard};
use ultramarine_abi::{self as abi, Status, dlpack, status};

/// Largest number of tensors of a command that are viewed without an allocation.
const INLINE_TENSORS: usize = 24;

/// # Safety
/// `tensors` points at `dtypes.len()` tensors, `stride` bytes apart, valid for `'a`; a tensor
/// has at least its `dl`.
unsafe fn views<'a>(
    tensors: *const abi::Tensor,
    stride: u32,
    dtypes: &[DType],
    room: &mut [MaybeUninit<View<'a>>],
) {
    for (i, (dtype, room)) in dtypes.iter().zip(room).enumerate() {
        let at =
            tensors.cast::<u8>().wrapping_add(i * stride as usize + offset_of!(abi::Tensor, dl));
        // SAFETY: by this function's contract.
        let tensor = unsafe { &*at.cast::<dlpack::DLTensor>() };
        // SAFETY: a tensor of the host's obeys the contract.
        room.write(unsafe { View::new(tensor, *dtype) });
    }
}

/// A command must have all fields before this one.
const COMMAND_SIZE_MIN: usize = offset_of!(abi::Command, workspace);
/// A tensor must have all fields before this one.
const TENSOR_SIZE_MIN: usize = offset_of!(abi::Tensor, buffer);

pub(super) unsafe extern "C" fn submit(
    device: *mut c_void,
    _stream: *mut c_void,
    commands: *const abi::Command,
    n_commands: u32,
    error: *mut *mut abi::Error,
) -> Status {
    // SAFETY: the host passes what `device_open` gave.
    let state = unsafe { state(device) };
    let mut at_command = 0;
    let work = || {
        let state = state.ok_or_else(no_device)?;
        if n_commands == 0 {
            return Ok(());
        }
        if commands.is_null() {
            return Err(Failure::invalid("the commands are NULL"));
        }
        // SAFETY: there is a first one, and its size comes first.
        let stride = unsafe { commands.cast::<u32>().read_unaligned() } as usize;
        if stride < COMMAND_SIZE_MIN {
            return Err(Failure::invalid(format!("a command of {stride} bytes")));
        }
        for i in 0..n_commands as usize {
            at_command = i as u32;
            let at = commands.cast::<u8>().wrapping_add(i * stride).cast::<abi::Command>();
            // SAFETY: the host gives n_commands commands, each valid for the call; what is
            // read of it is no longer than what a command has.
            unsafe { run_command(&state.context, at, stride)? };
        }
        Ok(())
    };
    // SAFETY: the host's error place, in which `guard` leaves the error that it makes.
    unsafe {
        let code = guard(state.map(|s| &s.host), error, work);
        if let (Some(state), false, false) = (state, code == status::OK, error.is_null()) {
            state.host.error_command(*error, at_command);
        }
        code
    }
}

/// # Safety
/// `at` is a command of `size` bytes, at least [`COMMAND_SIZE_MIN`], of the contract.
#[inline]
unsafe fn run_command(cx: &Context, at: *const abi::Command, size: usize) -> Result<(), Failure> {
    let mut whole = MaybeUninit::<abi::Command>::zeroed();
    let command = if size < size_of::<abi::Command>() {
        // SAFETY: `size` bytes are readable, and the copy has room for them.
        unsafe {
            core::ptr::copy_nonoverlapping(at.cast::<u8>(), whole.as_mut_ptr().cast(), size);
            whole.assume_init_ref()
        }
    } else {
        // SAFETY: the command is at least as long as the struct known here.
        unsafe { &*at }
    };
    // SAFETY: the plan was made by this backend, and has not been released.
    let plan = unsafe { command.plan.cast::<Plan>().as_ref() }
        .ok_or_else(|| Failure::invalid("a command without plan"))?;
    if command.n_inputs as usize != plan.inputs.len()
        || command.n_outputs as usize != plan.outputs.len()
        || (command.tensor_stride as usize) < TENSOR_SIZE_MIN
    {
        return Err(Failure::invalid(format!(
            "a command with {} inputs and {} outputs, {} bytes apart, for a plan with {} and {}",
            command.n_inputs,
            command.n_outputs,
            command.tensor_stride,
            plan.inputs.len(),
            plan.outputs.len()
        )));
    }
    // SAFETY: counts were checked; the rest is the contract of `submit`.
    unsafe { run(cx, plan, command) }.map_err(Failure::new)
}

/// # Safety
/// `command` is valid and fits `plan`.
unsafe fn run(cx: &Context, plan: &Plan, command: &abi::Command) -> Result<(), String> {
    let (n_in, n_out) = (plan.inputs.len(), plan.outputs.len());
    let mut inline = [const { MaybeUninit::<View<'_>>::uninit() }; INLINE_TENSORS];
    let mut spilled = Vec::new();
    let room: &mut [MaybeUninit<View<'_>>] = if n_in + n_out <= INLINE_TENSORS {
        &mut inline[..n_in + n_out]
    } else {
        spilled.resize_with(n_in + n_out, MaybeUninit::uninit);
        &mut spilled
    };
    let (ins, outs) = room.split_at_mut(n_in);
    // SAFETY: the command holds that many tensors; every view is written before
    // the slices are read as initialised; View is plain data.
    let args = unsafe {
        views(command.inputs, command.tensor_stride, &plan.inputs, ins);
        views(command.outputs, command.tensor_stride, &plan.outputs, outs);
        Args {
            inputs: &*(ins as *const [MaybeUninit<View<'_>>] as *const [View<'_>]),
            outputs: &*(outs as *const [MaybeUninit<View<'_>>] as *const [View<'_>]),
            scalars: if command.n_scalars == 0 {
                &[]
            } else {
                std::slice::from_raw_parts(command.scalars, command.n_scalars as usize)
            },
        }
    };
    // SAFETY: the host's tensors obey the contract.
    unsafe { plan.kernel.run(cx, &args) }
}
