//! Tensors on an OpenCL device: our memory in the hands of another library that makes raw OpenCL calls,
//! and its memory as our arrays. Watched by the validation layer.

mod export;
mod foreign;
mod import;

use crate::support::opencl;
use std::ffi::c_void;
use std::sync::atomic::Ordering;
use ultramarine::backends::validation_findings;
use ultramarine::interchange::{DLDevice, ExportOptions, ManagedTensor};
use ultramarine::{Array, Device, Result, default_stream, with_stream};

/// DLPack's number for OpenCL.
const OPENCL: i32 = 4;
const CPU: DLDevice = DLDevice { device_type: 1, device_id: 0 };

/// The device, and the other library.
struct Bench {
    device: Device,
    /// Our context, and a queue of the other library in it.
    context: *mut c_void,
    queue: *mut c_void,
    findings: u64,
    given_back: usize,
}

impl Bench {
    fn new() -> Option<Bench> {
        let device = opencl::register()?;
        let probe = on(device, &[0.0]).and_then(|a| a.to_dlpack()).expect("an export");
        let context = foreign::context(probe.tensor().data);
        Some(Bench {
            device,
            context,
            queue: foreign::queue(context),
            findings: validation_findings(),
            given_back: foreign::GIVEN_BACK.load(Ordering::SeqCst),
        })
    }

    /// The device as the other library names it.
    fn dl(&self) -> DLDevice {
        DLDevice { device_type: OPENCL, device_id: 0 }
    }

    /// Tensors that came back to the other library since the beginning.
    fn given_back(&self) -> usize {
        foreign::GIVEN_BACK.load(Ordering::SeqCst) - self.given_back
    }

    /// Waits until that many have come back: OpenCL gives memory up on threads of its own, a
    /// moment after the work that used it.
    fn expect_back(&self, n: usize) {
        for _ in 0..5000 {
            if self.given_back() >= n {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        assert_eq!(self.given_back(), n);
    }

    /// A cl_mem with these values.
    fn memory(&self, values: &[f32]) -> *mut c_void {
        let bytes = size_of_val(values);
        let memory = foreign::memory(self.context, bytes);
        assert_eq!(foreign::write(self.queue, memory, 0, bytes, values.as_ptr().cast()), 0);
        memory
    }

    /// A tensor of those values.
    fn tensor(&self, values: &[f32]) -> ManagedTensor {
        foreign::tensor(self.memory(values), self.dl(), &[values.len()], &[1], 0, 0)
    }

    fn floats(&self, tensor: &ManagedTensor, n: usize) -> Vec<f32> {
        let header = tensor.tensor();
        foreign::floats(self.queue, header.data, header.byte_offset as usize, n)
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert_eq!(validation_findings(), self.findings, "the validation layer objects");
        }
    }
}

/// An array on a device, with values of its own there.
fn on(device: Device, values: &[f32]) -> Result<Array> {
    let there = Array::from_slice(values, &[values.len()])?.copy_to(device)?;
    let own = with_stream(default_stream(device)?, || there.add(Array::scalar(0.0f32)))?;
    own.eval()?;
    Ok(own)
}

fn stream(n: isize) -> ExportOptions {
    ExportOptions { stream: Some(n), ..ExportOptions::default() }
}
