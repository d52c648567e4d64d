//! Devices with memory of their own, as mocks, and partial backends: placement, transfers, running ahead,
//! kernels that a device lacks.

mod anchors;
mod custom_functions;
mod dlpack;
mod exit;
mod fallback;
mod lists;
mod memory;
mod mirrors;
mod not_yet;
mod overlay;
mod parts;
mod placement;
mod records;
mod running_ahead;
mod stream_memory;
mod uploads;
mod validation;

use std::sync::atomic::Ordering::SeqCst;
use ultramarine::{Device, Result, Stream, new_stream, synchronize};

use crate::support::mock_device::{BUFFERS, VIOLATIONS};

/// Three streams of a device, and one of the CPU.
fn streams_of(device: u16) -> Result<Vec<Stream>> {
    let mut all = (0..3).map(|_| new_stream(Device::gpu(device))).collect::<Result<Vec<_>>>()?;
    all.push(new_stream(Device::CPU)?);
    Ok(all)
}

/// Checks that the mock's streams are idle, that no freed memory was touched, and that no buffer is left.
fn check_end(streams: &[Stream]) {
    check_memory(streams);
    assert_eq!(BUFFERS.load(SeqCst), 0, "device buffers left over");
}

/// Checks that the mock's streams are idle, and that no freed memory was touched.
fn check_memory(streams: &[Stream]) {
    for stream in streams {
        synchronize(*stream).unwrap();
    }
    assert_eq!(VIOLATIONS.load(SeqCst), 0, "freed memory was touched");
}
