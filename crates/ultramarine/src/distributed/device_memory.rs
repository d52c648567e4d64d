//! GPU memory for a host engine: a CUDA-aware MPI library gets GPU addresses, without a copy to the
//! host.

use super::transport::Lent;
use crate::backend::{Exec, Operand};
use crate::device::Device;
use crate::devices;
use crate::error::Result;
use crate::node::Value;
use crate::shape;
use ultramarine_abi::dlpack::device_type;
use ultramarine_abi::interface::memory::{ForeignMemory, kind::DEVICE_POINTER};

/// Returns true if CUDA can use the addresses of a device's memory.
pub(super) fn has_addresses(device: Device) -> bool {
    devices::get(device).is_ok_and(|state| {
        let exports = state.memory_interface().map_or(0, |memory| memory.exports);
        state.dl.device_type == device_type::CUDA && exports >> DEVICE_POINTER & 1 == 1
    })
}

/// A buffer's memory as its backend describes it, and an owner that keeps the buffer alive.
struct Described {
    block: ForeignMemory,
    value: Value,
}

// SAFETY: it holds an address and a number of the backend. Any thread may call the backend's
// `release`.
unsafe impl Send for Described {}

impl Drop for Described {
    fn drop(&mut self) {
        if let Some(release) = self.block.release {
            // SAFETY: `release` is called once, as the backend's interface requires.
            unsafe { release(self.block.context) }
        }
    }
}

impl Described {
    fn address(&self) -> *mut u8 {
        let start = (self.block.handle + self.block.offset) as *mut u8;
        start.wrapping_add(self.value.offset)
    }
}

/// Returns the device addresses of the operands, once the work that writes or uses them is
/// complete. `None` on the host.
///
/// # Errors
/// Those of the backend, and those of the work.
pub(super) fn lend(
    exec: &Exec,
    input: Option<&Operand<'_>>,
    output: Option<&Operand<'_>>,
) -> Result<Option<Lent>> {
    let Some((stream, _)) = exec.position() else { return Ok(None) };
    let describe = |operand: Option<&Operand<'_>>| -> Result<Option<Described>> {
        let Some(operand) = operand.filter(|operand| shape::size(operand.shape) > 0) else {
            return Ok(None);
        };
        let buffer = &operand.value.buffer;
        for work in buffer.uses().iter() {
            work.wait()?;
        }
        let block = exec.device.export(buffer, DEVICE_POINTER)?;
        Ok(Some(Described { block, value: operand.value.clone() }))
    };
    let (input, output) = (describe(input)?, describe(output)?);
    // Another operation may use new memory until then.
    stream.drain()?;
    let address = |lent: &Option<Described>| {
        lent.as_ref().map_or(std::ptr::dangling_mut(), Described::address)
    };
    Ok(Some(Lent {
        input: address(&input),
        output: address(&output),
        device: exec.device.dl.device_id,
        owner: Box::new((input, output)),
    }))
}
