//! cuDNN on a device, for convolutions and attention: operation graphs ([`graph`]), from which cuDNN makes plans
//! ([`plan`]).

pub mod graph;
pub mod plan;

use crate::context::{self, Context, lock};
use crate::launch::{Device, Dtype};
use crate::sys::cudnn::{self, Code, Cudnn, Handle, code, data};
use core::ffi::{CStr, c_char, c_int};
use std::sync::{Arc, Mutex, OnceLock};
use ultramarine_abi::helper::{Failure, Level, Result};
use ultramarine_abi::status;

/// The operations that cuDNN computes, as set by an environment variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// Never.
    Never,
    /// For sizes for which it was measured to be faster than this crate's kernels.
    WhereFaster,
    /// Wherever it is possible. Callers wait for its plan.
    Always,
}

impl Wish {
    /// The value of `ULTRAMARINE_CUDA_CUDNN`: 0, 1 or nothing.
    pub fn get() -> Self {
        static WISH: OnceLock<Wish> = OnceLock::new();
        let of = || Self::of(std::env::var("ULTRAMARINE_CUDA_CUDNN").ok().as_deref());
        *WISH.get_or_init(of)
    }

    fn of(text: Option<&str>) -> Self {
        match text.map(str::trim) {
            Some("0") => Self::Never,
            Some("1") => Self::Always,
            _ => Self::WhereFaster,
        }
    }
}

/// cuDNN on a device. Plans are made with one handle and run with another, so that making and
/// running do not wait for each other.
pub struct Library {
    table: &'static Cudnn,
    /// Each is used by one thread at a time.
    handles: [Mutex<Owned>; 2],
    context: Arc<Context>,
}

/// A handle, destroyed with the library.
struct Owned(Handle);

// SAFETY: handles may be used from any thread, but by only one at a time.
unsafe impl Send for Owned {}

/// Index of the handle that plans are made with, and of the one that runs them.
const MAKES: usize = 0;
const RUNS: usize = 1;

impl Library {
    /// The device's library. `None` if none works, which is logged once.
    pub fn of(device: &Device) -> Option<&Arc<Self>> {
        if Wish::get() == Wish::Never {
            return None;
        }
        let made = device.networks.get_or_init(|| Box::new(Self::open(device)));
        made.downcast_ref::<Option<Arc<Self>>>()?.as_ref()
    }

    fn open(device: &Device) -> Option<Arc<Self>> {
        let made = match Self::make(device) {
            Err(failure) if failure.code == status::OUT_OF_MEMORY && device.allocator.spare() => {
                Self::make(device)
            }
            made => made,
        };
        match made {
            Ok(library) => Some(Arc::new(library)),
            Err(why) => {
                let text = format!(
                    "{}. The backend's own kernels compute convolutions and attention until it is installed",
                    why.text
                );
                device.host.log(Level::Info, &text);
                None
            }
        }
    }

    fn make(device: &Device) -> Result<Self> {
        let table = cudnn::cudnn().map_err(Failure::new)?;
        let handles = [(); 2].map(|()| Mutex::new(Owned(std::ptr::null_mut())));
        let library = Self { table, handles, context: device.context.clone() };
        for handle in &library.handles {
            // SAFETY: the output pointer is valid; the context is current.
            let made = unsafe { (table.create)(&mut lock(handle).0) };
            check(table, "cudnnCreate", made)?;
        }
        Ok(library)
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        if context::forked() {
            return;
        }
        let Ok(_entered) = self.context.enter() else { return };
        for handle in &self.handles {
            let handle = lock(handle).0;
            if !handle.is_null() {
                // SAFETY: made once, destroyed once. The library waits for running calls.
                unsafe { (self.table.destroy)(handle) };
            }
        }
    }
}

/// Converts the library's code to a result.
fn check(table: &Cudnn, call: &str, result: Code) -> Result<()> {
    if result == code::SUCCESS {
        return Ok(());
    }
    let mut words = [0 as c_char; 512];
    // SAFETY: there is room for that many bytes, the last of which stays 0.
    let words = unsafe {
        (table.last_error)(words.as_mut_ptr(), words.len() - 1);
        CStr::from_ptr(words.as_ptr())
    };
    let words = words.to_string_lossy();
    let text = format!("{call} failed with cuDNN status {result} ({})", words.trim());
    match result {
        code::HOST_ALLOCATION_FAILED | code::DEVICE_ALLOCATION_FAILED => {
            Err(Failure { code: status::OUT_OF_MEMORY, text })
        }
        _ => Err(Failure::new(text)),
    }
}

/// cuDNN's code of a dtype, for the dtypes that it is used with.
pub fn data_of(dtype: Dtype) -> Option<c_int> {
    match dtype {
        Dtype::Float32 => Some(data::FLOAT),
        Dtype::Float16 => Some(data::HALF),
        Dtype::Bfloat16 => Some(data::BFLOAT16),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wishes_are_read() {
        let wishes = [None, Some(""), Some("0"), Some(" 1 "), Some("yes")].map(Wish::of);
        let faster = Wish::WhereFaster;
        assert_eq!(wishes, [faster, faster, Wish::Never, Wish::Always, faster]);
    }

    #[test]
    fn float64_has_no_name() {
        let names = [Dtype::Float32, Dtype::Float16, Dtype::Bfloat16, Dtype::Float64].map(data_of);
        assert_eq!(names, [Some(0), Some(2), Some(9), None]);
    }
}
