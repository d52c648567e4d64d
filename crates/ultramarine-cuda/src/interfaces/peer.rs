//! `ultramarine.peer/1`: copies between buffers of two devices, or of one, that do not pass through
//! the host.

use crate::context::failure::cuda;
use crate::context::lock;
use crate::launch::Device;
use crate::memory::Buffer;
use crate::streams::Stream;
use crate::sys::driver::code;
use core::ffi::c_void;
use std::sync::Mutex;
use ultramarine_abi::helper::{Failure, Result, handle, with_device};
use ultramarine_abi::interface::peer::PeerInterface;
use ultramarine_abi::{Error, Status};

/// The interface.
pub static TABLE: PeerInterface =
    PeerInterface { size: size_of::<PeerInterface>() as u32, flags: 0, copy: Some(copy) };

/// Lets the target's context access the source's memory, if the devices support it; copies then go
/// directly between the devices. Otherwise the driver copies through the host. The target's context
/// is current.
fn enable_peer_access(target: &Device, source: &Device) {
    /// Pairs of contexts for which this was already done.
    static SEEN: Mutex<Vec<[usize; 2]>> = Mutex::new(Vec::new());
    let pair = [target.context.handle() as usize, source.context.handle() as usize];
    let mut seen = lock(&SEEN);
    if seen.contains(&pair) {
        return;
    }
    seen.push(pair);
    let (driver, mut can) = (target.driver, 0);
    // SAFETY: the output pointer is valid; the context is current, and the other one is retained.
    unsafe {
        let (to, from) = (target.properties.ordinal, source.properties.ordinal);
        let asked = (driver.can_access_peer)(&mut can, to, from);
        if asked == code::SUCCESS && can != 0 {
            // Another library may have enabled the access already. If it cannot be enabled, copies
            // go through the host.
            (driver.enable_peer)(source.context.handle(), 0);
        }
    }
}

/// The interface's function; its safety follows from the contract.
#[allow(clippy::too_many_arguments, reason = "the contract has it so")]
unsafe extern "C" fn copy(
    target_device: *mut c_void,
    stream: *mut c_void,
    target: *mut c_void,
    target_offset: u64,
    source_device: *mut c_void,
    source: *mut c_void,
    source_offset: u64,
    bytes: u64,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: guaranteed by the contract: the handles belong to their devices, which are open.
    unsafe {
        with_device::<Device>(target_device, error, |to| {
            let from = ultramarine_abi::helper::device_of::<Device>(source_device)
                .ok_or_else(|| Failure::invalid("the pointer to the source's device is NULL"))?;
            let stream = stream.cast::<Stream>().as_ref().unwrap_or(&to.default_stream);
            let (target, source): (&Buffer, &Buffer) =
                (handle(target, "the target")?, handle(source, "the source")?);
            copy_between(
                to,
                stream,
                target.part(target_offset, length(bytes)?)?,
                from,
                source,
                source_offset,
                bytes,
            )
        })
    }
}

fn length(bytes: u64) -> Result<usize> {
    usize::try_from(bytes)
        .map_err(|_| Failure::invalid("the copy is larger than the address space"))
}

fn copy_between(
    to: &Device,
    stream: &Stream,
    target: u64,
    from: &Device,
    source: &Buffer,
    offset: u64,
    bytes: u64,
) -> Result<()> {
    let (driver, bytes) = (to.driver, length(bytes)?);
    let source = source.part(offset, bytes)?;
    if bytes == 0 {
        return Ok(());
    }
    let _entered = to.enter()?;
    if to.properties.ordinal == from.properties.ordinal {
        // SAFETY: both ranges are inside their buffers.
        return unsafe { cuda!(driver.copy_within(target, source, bytes, stream.handle())) };
    }
    enable_peer_access(to, from);
    // SAFETY: as above; the contexts are retained by the devices.
    unsafe {
        cuda!(driver.copy_peer(
            target,
            to.context.handle(),
            source,
            from.context.handle(),
            bytes,
            stream.handle(),
        ))
    }
}
