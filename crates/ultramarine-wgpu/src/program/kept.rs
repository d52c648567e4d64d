//! Compiled kernels on disk: code for the driver, so that naga and the passes need not run again,
//! and the driver's compiled form of it.
//!
//! The key contains everything that they depend on, so entries are never outdated: the program,
//! floating-point modes, the adapter and its driver with their versions, and the version of this
//! crate.

use crate::context::Context;
use crate::hal::{self, Code};
use std::path::PathBuf;
use std::sync::OnceLock;
use ultramarine_abi::helper::disk::{self, Disk, Entry, Format};

/// The file format of compiled kernels.
const FORMAT: Format = Format { magic: *b"UMVULK\0\x02", ending: "kernel" };
/// If set to 0, no kernels are read or stored.
const SWITCH: &str = "CACHE";

/// Returns the directory of the user's compiled kernels. `None` if none are stored.
pub fn directory() -> Option<PathBuf> {
    disk::place(hal::NAME, &hal::variable(SWITCH))
}

/// A compiled kernel.
pub(super) struct Kept {
    /// Code for the driver.
    pub code: Code,
    /// The driver's pipeline cache; empty if it has none.
    pub pipeline: Vec<u8>,
}

/// Returns the user's cache of compiled kernels. It is looked up once.
fn files() -> Option<&'static Disk> {
    static DISK: OnceLock<Option<Disk>> = OnceLock::new();
    // Without a directory, every process compiles its kernels again.
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

/// Returns the kernel with a key.
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
    // If it cannot be written, the next process compiles it again.
    _ = files.put(key, &Entry { image, names: Vec::new() });
}
