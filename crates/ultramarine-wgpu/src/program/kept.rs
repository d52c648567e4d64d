//! Compiled kernels on disk: the code for the driver, so that neither naga nor the passes have to run again, and the
//! driver's own compiled form.
//!
//! The key contains everything that these depend on, so entries are never out of date: the program, the
//! floating-point modes, the adapter and its driver with their versions, and the version of this crate.

use crate::context::Context;
use crate::hal::{self, Code};
use std::path::PathBuf;
use std::sync::OnceLock;
use ultramarine_abi::helper::disk::{self, Disk, Entry, Format};

/// The file format of compiled kernels.
const FORMAT: Format = Format { magic: *b"UMVULK\0\x02", ending: "kernel" };
/// Setting that, if it is 0, disables reading and writing.
const SWITCH: &str = "CACHE";

/// The directory of the user's compiled kernels, or `None` if none are kept.
pub fn directory() -> Option<PathBuf> {
    disk::place(hal::NAME, &hal::variable(SWITCH))
}

/// A compiled kernel.
pub(super) struct Kept {
    /// The code for the driver.
    pub code: Code,
    /// The driver's pipeline cache; empty if it has none.
    pub pipeline: Vec<u8>,
}

/// The user's directory of compiled kernels, looked for once.
fn files() -> Option<&'static Disk> {
    static DISK: OnceLock<Option<Disk>> = OnceLock::new();
    // Without a directory, each process compiles its own kernels.
    DISK.get_or_init(|| Disk::open(directory()?, FORMAT).ok()).as_ref()
}

/// The key of a program on a device.
pub(super) fn key(context: &Context, program: &[&[u8]]) -> Vec<u8> {
    let properties = &context.properties;
    let device = format!("{} {:?} ", properties.code_key, properties.floats);
    let version = concat!(env!("CARGO_PKG_VERSION"), " ");
    let mut key = [version.as_bytes(), device.as_bytes()].concat();
    for part in program {
        key.extend((part.len() as u64).to_le_bytes());
        key.extend_from_slice(part);
    }
    key
}

/// The kernel under a key.
pub(super) fn get(key: &[u8]) -> Option<Kept> {
    let Entry { image, .. } = files()?.get(key)?;
    let (length, rest) = image.split_first_chunk::<8>()?;
    let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
    let (code, pipeline) = rest.split_at_checked(length)?;
    Some(Kept { code: Code::of_bytes(code)?, pipeline: pipeline.to_vec() })
}

/// Stores a kernel.
pub(super) fn put(key: &[u8], kept: &Kept) {
    let Some(files) = files() else { return };
    let code = kept.code.to_bytes();
    let image = [&(code.len() as u64).to_le_bytes(), &*code, &kept.pipeline].concat();
    // If the file cannot be written, the next process compiles the kernel again.
    _ = files.put(key, &Entry { image, names: Vec::new() });
}
