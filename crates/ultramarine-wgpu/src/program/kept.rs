//! Compiled kernels on disk: SPIR-V, for which neither naga nor the passes run again, and what the driver made of it.
//!
//! The key holds all that they depend on, so nothing is ever out of date: the program, modes of floating point, the
//! adapter and its driver with their versions, and the version of this crate.

use crate::context::Context;
use std::path::PathBuf;
use std::sync::OnceLock;
use ultramarine_abi::helper::disk::{self, Disk, Entry, Format};

/// The files of compiled kernels.
const FORMAT: Format = Format { magic: *b"UMVULK\0\x01", ending: "kernel" };
/// Set to 0, nothing is read or kept.
const SWITCH: &str = "ULTRAMARINE_VULKAN_CACHE";
/// Bytes of a word.
const WORD: usize = 4;

/// The directory of the user's compiled kernels, or `None` where none are kept.
pub fn directory() -> Option<PathBuf> {
    disk::place("vulkan", SWITCH)
}

/// A compiled kernel.
pub(super) struct Kept {
    /// SPIR-V, behind all passes.
    pub module: Vec<u32>,
    /// The driver's pipeline cache; empty if it has none.
    pub pipeline: Vec<u8>,
}

/// The user's compiled kernels, looked for once.
fn files() -> Option<&'static Disk> {
    static DISK: OnceLock<Option<Disk>> = OnceLock::new();
    // Without a place every process compiles for itself.
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
    let (module, pipeline) = rest.split_at_checked(length)?;
    let words = module.chunks_exact(WORD).filter_map(|word| word.try_into().ok());
    Some(Kept { module: words.map(u32::from_le_bytes).collect(), pipeline: pipeline.to_vec() })
}

/// Keeps a kernel.
pub(super) fn put(key: &[u8], kept: &Kept) {
    let Some(files) = files() else { return };
    let mut image = ((kept.module.len() * WORD) as u64).to_le_bytes().to_vec();
    image.extend(kept.module.iter().flat_map(|word| word.to_le_bytes()));
    image.extend_from_slice(&kept.pipeline);
    // Where it cannot be written, the next process compiles again.
    _ = files.put(key, &Entry { image, names: Vec::new() });
}
