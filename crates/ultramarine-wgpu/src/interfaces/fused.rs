//! `ultramarine.fused/1` and `/2`: elementwise programs, implemented by [`crate::ops::fused`].

use crate::dtype::Dtype;
use crate::launch::{Desc, Device, Plan};
use crate::ops::fused as ops;
use core::ffi::c_void;
use ultramarine_abi::fused::{self, AnchoredInterface, FusedInterface};
use ultramarine_abi::helper::{Failure, Result, give, with_device};
use ultramarine_abi::{Error, Status, TensorDesc, read_sized};

/// The interface's table.
pub static TABLE: FusedInterface =
    FusedInterface { size: size_of::<FusedInterface>() as u32, flags: 0, prepare: Some(prepare) };

/// The table for programs with an anchor.
pub static ANCHORED: AnchoredInterface = AnchoredInterface {
    size: size_of::<AnchoredInterface>() as u32,
    flags: 0,
    prepare: Some(prepare_anchored),
};

unsafe extern "C" fn prepare(
    device: *mut c_void,
    program: *const fused::Program,
    inputs: *const TensorDesc,
    outputs: *const TensorDesc,
    plan: *mut *mut c_void,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: guaranteed by the contract: a device of this backend, a program whose lists have the stated lengths, as many
    // descriptions as tensors, and writable output pointers.
    unsafe {
        with_device::<Device>(device, error, |device| {
            let given = read_sized(program).ok_or_else(|| Failure::invalid("no program"))?;
            give(plan, made(device, &given, None, inputs, outputs)?)
        })
    }
}

unsafe extern "C" fn prepare_anchored(
    device: *mut c_void,
    program: *const fused::Program,
    anchor: *const fused::Anchor,
    inputs: *const TensorDesc,
    outputs: *const TensorDesc,
    plan: *mut *mut c_void,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: as above, and an anchor.
    unsafe {
        with_device::<Device>(device, error, |device| {
            let given = read_sized(program).ok_or_else(|| Failure::invalid("no program"))?;
            let anchor = read_sized(anchor).ok_or_else(|| Failure::invalid("no anchor"))?;
            give(plan, made(device, &given, Some(&anchor), inputs, outputs)?)
        })
    }
}

/// The plan of a program.
///
/// # Safety
/// The program's lists have the stated lengths, and there are as many descriptions as the program and its anchor
/// have tensors.
unsafe fn made(
    device: &Device,
    given: &fused::Program,
    anchor: Option<&fused::Anchor>,
    inputs: *const TensorDesc,
    outputs: *const TensorDesc,
) -> Result<Plan> {
    device.context.usable()?;
    let most = ops::most_tensors(&device.context.properties);
    // SAFETY: by this function's contract.
    unsafe {
        let others = anchor.map_or(0, |anchor| anchor.n_inputs);
        let inputs = Desc::list(inputs, given.n_inputs.saturating_add(others), most)?;
        let outputs = Desc::list(outputs, given.n_outputs, most)?;
        let own = inputs.iter().take(given.n_inputs as usize);
        let dtypes: Vec<Dtype> = own.map(|d| d.dtype).collect();
        let program = ops::Program::of(given, &dtypes, &device.context.properties)?;
        ops::prepare(device, program, anchor, &inputs, &outputs)
    }
}
