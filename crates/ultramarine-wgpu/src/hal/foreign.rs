//! Buffers of other libraries: which of them are imported, and how they are returned.

use core::ffi::c_void;
use ultramarine_abi::interface::memory::ForeignMemory;

/// The storage mode of a Metal buffer, which decides whether it can be imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Storage {
    /// Memory that host and device access.
    Shared,
    /// A copy on each side; the copies are synchronised explicitly.
    Managed,
    /// Memory that only the device can access.
    Private,
    /// Memory of a render pass.
    Memoryless,
}

/// Checks that a tensor's buffer can be used without a copy. Kernels read and write shared, managed and private memory alike;
/// the host never accesses it. `ours` means that the buffer belongs to this device. The tensor needs the first `bytes` bytes
/// of the buffer.
pub fn check(storage: Storage, ours: bool, length: u64, bytes: u64) -> Result<(), String> {
    if !ours {
        return Err("the buffer belongs to another Metal device. Copy it to this one".to_owned());
    }
    if storage == Storage::Memoryless {
        return Err("memoryless buffers have no content. Use another storage mode".to_owned());
    }
    match bytes <= length {
        true => Ok(()),
        false => Err(format!(
            "the tensor reaches byte {bytes} of a buffer of {length} bytes. Export a tensor inside the buffer"
        )),
    }
}

/// The release of imported memory. It is called once, when this value is dropped.
pub struct Owner {
    release: Option<unsafe extern "C" fn(context: *mut c_void)>,
    context: *mut c_void,
}

// SAFETY: by the contract, releases may be called on any thread.
unsafe impl Send for Owner {}
// SAFETY: shared references give no access to its fields.
unsafe impl Sync for Owner {}

impl Owner {
    /// The release for memory that was imported successfully.
    pub fn of(memory: &ForeignMemory) -> Self {
        Self { release: memory.release, context: memory.context }
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: the owner's own function with its argument, called once.
            unsafe { release(self.context) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_that_kernels_can_use_are_taken() {
        for storage in [Storage::Shared, Storage::Managed, Storage::Private] {
            assert_eq!(check(storage, true, 64, 64), Ok(()));
        }
        let why = |storage, ours, bytes| check(storage, ours, 64, bytes).unwrap_err();
        assert!(why(Storage::Memoryless, true, 64).contains("memoryless"));
        assert!(why(Storage::Shared, false, 64).contains("another Metal device"));
        assert!(why(Storage::Private, true, 65).contains("byte 65 of a buffer of 64"));
    }

    #[test]
    fn owners_are_told_once() {
        unsafe extern "C" fn count(context: *mut c_void) {
            // SAFETY: the context is the test's counter.
            unsafe { *context.cast::<u32>() += 1 };
        }
        let mut told = 0u32;
        let memory = ForeignMemory {
            size: size_of::<ForeignMemory>() as u32,
            kind: 0,
            flags: 0,
            reserved: 0,
            handle: 0,
            offset: 0,
            bytes: 0,
            release: Some(count),
            context: (&raw mut told).cast(),
            ready: 0,
        };
        drop(Owner::of(&memory));
        assert_eq!(told, 1);
    }
}
