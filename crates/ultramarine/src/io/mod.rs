//! Arrays in files: NumPy's `.npy` and `.npz`, `.safetensors` and `.gguf`.
//!
//! Loading a file by its path opens it, and reads and checks its header. Each array's data is read when the array is
//! evaluated (`lazy.rs`). Readers, in contrast, are read at once. Every size in a file is checked against the bytes
//! that exist before memory is allocated, and errors name the file. Saving to a path evaluates the arrays, writes a
//! temporary file beside the target and renames it, so that a failure leaves an older file unchanged. Nothing is synced
//! to the disk.
//!
//! Files are little-endian, as are all hosts that this crate supports.

mod decode;
mod file_reader;
pub mod gguf;
#[cfg_attr(not(feature = "npz"), allow(dead_code, reason = "members of archives"))]
mod lazy;
pub mod npy;
#[cfg(feature = "npz")]
pub mod npz;
mod runs;
pub mod safetensors;
pub mod shards;
#[cfg_attr(not(feature = "npz"), allow(dead_code, reason = "members of archives"))]
mod source;

use crate::array::Array;
use crate::error::{Error, Result};
use crate::ops::rules::builders::slice_axis;
use crate::shape::Show;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use ultramarine_runtime::files::{self, Step};
use ultramarine_runtime::reads::{self, SourceFile};

/// Arrays by name, as `.npz`, `.safetensors` and `.gguf` files hold them.
pub type Arrays = BTreeMap<String, Array>;
/// Texts of a safetensors file, by key.
pub type Metadata = BTreeMap<String, String>;

/// A reader that can read from any position: every type that implements [`Read`] and [`Seek`].
pub trait ReadSeek: Read + Seek {}
impl<T: Read + Seek + ?Sized> ReadSeek for T {}

/// The content of a file, from [`load`]. The variant is that of the file's [`Format`].
#[derive(Clone)]
pub enum Loaded {
    /// The array of a `.npy` file.
    Array(Array),
    /// The arrays of a `.npz` file.
    Arrays(Arrays),
    /// The arrays of a `.safetensors` file, or of all files of an index, and its metadata (empty if there is none).
    Safetensors(Arrays, Metadata),
    /// The arrays of a `.gguf` file and its metadata.
    Gguf(Arrays, gguf::Metadata),
}

/// A file format. [`load`] derives it from the file's extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// One array.
    Npy,
    /// A zip archive of `.npy` files.
    Npz,
    /// Named tensors behind a JSON header.
    Safetensors,
    /// An index of several safetensors files, `.index.json`.
    Index,
    /// Tensors of language models, often of few-bit numbers, and metadata.
    Gguf,
}

impl Format {
    /// Returns the format of a name: a file extension without its dot.
    ///
    /// # Errors
    /// [`Error::Value`] for an unknown name.
    pub fn from_name(name: &str) -> Result<Format> {
        match name {
            "npy" => Ok(Format::Npy),
            "npz" => Ok(Format::Npz),
            "safetensors" => Ok(Format::Safetensors),
            "index.json" => Ok(Format::Index),
            "gguf" => Ok(Format::Gguf),
            _ => Err(Error::value(
                "load",
                format!("Unknown file format {name}. Use npy, npz, safetensors or gguf."),
            )),
        }
    }

    /// Returns the format by a path's extension.
    ///
    /// # Errors
    /// [`Error::Value`] if the path has no extension, or an unknown one.
    pub fn from_path(path: impl AsRef<Path>) -> Result<Format> {
        let path = path.as_ref();
        if path.as_os_str().as_encoded_bytes().ends_with(b".index.json") {
            return Ok(Format::Index);
        }
        match path.extension() {
            Some(extension) => Format::from_name(&extension.to_string_lossy()),
            None => Err(Error::value(
                "load",
                "Could not infer file format from extension. Pass `format`.",
            )),
        }
    }
}

/// Loads a file. The extension determines its format ([`Format::from_path`]). Each array's data is read when the array
/// is evaluated.
///
/// # Errors
/// [`Error::Io`] if the file cannot be opened ([`Error::io_kind`] has the reason). [`Error::Value`] for an unknown
/// extension, and for a `.npz` that is not a zip archive. [`Error::Runtime`] for other files that are truncated or
/// malformed. [`Error::Memory`] if memory runs out.
///
/// ```
/// use std::io::ErrorKind;
/// use ultramarine::io::load;
/// let error = load("missing.npz").err();
/// assert_eq!(error.and_then(|e| e.io_kind()), Some(ErrorKind::NotFound));
/// ```
pub fn load(path: impl AsRef<Path>) -> Result<Loaded> {
    load_as(&path, Format::from_path(&path)?)
}

/// Loads a file of the given format, and otherwise behaves as [`load`].
///
/// # Errors
/// As [`load`].
pub fn load_as(path: impl AsRef<Path>, format: Format) -> Result<Loaded> {
    Ok(match format {
        Format::Npy => Loaded::Array(npy::load(path)?),
        #[cfg(feature = "npz")]
        Format::Npz => Loaded::Arrays(npz::load(path)?),
        #[cfg(not(feature = "npz"))]
        Format::Npz => return Err(without_npz()),
        Format::Safetensors => {
            let (arrays, metadata) = safetensors::load(path)?;
            Loaded::Safetensors(arrays, metadata)
        }
        Format::Index => {
            let (arrays, metadata) = shards::load(path)?;
            Loaded::Safetensors(arrays, metadata)
        }
        Format::Gguf => {
            let (arrays, metadata) = gguf::load(path)?;
            Loaded::Gguf(arrays, metadata)
        }
    })
}

/// Reads a file of the given format, from the reader's present position. `name` stands for the
/// reader in errors.
///
/// # Errors
/// As [`load`].
pub fn read(reader: &mut dyn ReadSeek, format: Format, name: &str) -> Result<Loaded> {
    Ok(match format {
        Format::Npy => Loaded::Array(npy::read(reader, name)?),
        #[cfg(feature = "npz")]
        Format::Npz => Loaded::Arrays(npz::read(reader, name)?),
        #[cfg(not(feature = "npz"))]
        Format::Npz => return Err(without_npz()),
        Format::Safetensors => {
            let (arrays, metadata) = safetensors::read(reader, name)?;
            Loaded::Safetensors(arrays, metadata)
        }
        Format::Index => {
            let text =
                format!("{name}: an index refers to files in its folder. Load it by its path.");
            return Err(Error::value("load", text));
        }
        Format::Gguf => {
            let (arrays, metadata) = gguf::read(reader, gguf::Options::default(), name)?;
            Loaded::Gguf(arrays, metadata)
        }
    })
}

/// Returns the given ranges of an axis, joined, in memory of their own. If the array comes from a file ([`load`]) and
/// has not been evaluated, only the bytes of the ranges are read, unless the pieces are shorter than 4 KiB.
///
/// # Errors
/// [`Error::Value`] for an axis that the array does not have, and for a range out of bounds.
///
/// ```
/// use ultramarine::{Array, io};
/// let path = std::env::temp_dir().join("ultramarine-part.npy");
/// io::npy::save(&path, &Array::from_slice(&[0i32, 1, 2, 3, 4, 5], &[3, 2])?)?;
/// let io::Loaded::Array(whole) = io::load(&path)? else { unreachable!() };
/// let part = io::part(&whole, 0, &[2..3, 0..1])?;
/// assert_eq!(part.to_vec::<i32>()?, [4, 5, 0, 1]);
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn part(array: &Array, axis: usize, ranges: &[Range<usize>]) -> Result<Array> {
    let shape = array.shape();
    let Some(length) = shape.get(axis).copied() else {
        return Err(Error::value(
            "part",
            format!(
                "an array of the shape {} has no axis {axis}. Name one that it has.",
                Show(shape)
            ),
        ));
    };
    if let Some(range) = ranges.iter().find(|range| range.start > range.end || range.end > length) {
        return Err(Error::value(
            "part",
            format!(
                "the range {range:?} is not in an axis of length {length}. Give ranges inside of it."
            ),
        ));
    }
    if let Some(part) = lazy::part(array, axis, ranges) {
        return part;
    }
    let cut = |range: &Range<usize>| slice_axis(array, axis, range.start, range.len());
    match ranges {
        [] => Ok(slice_axis(array, axis, 0, 0)?.contiguous()),
        [range] => Ok(cut(range)?.contiguous()),
        _ => {
            let parts = ranges.iter().map(cut).collect::<Result<Vec<_>>>()?;
            crate::concatenate(&parts, axis as isize)
        }
    }
}

#[cfg(not(feature = "npz"))]
fn without_npz() -> Error {
    let text =
        "This build does not read npz files. Enable the feature `npz` of the crate `ultramarine`.";
    Error::value("load", text)
}

/// Names of the file and of the operation, for errors.
#[derive(Clone, Copy)]
struct At<'a> {
    op: &'static str,
    name: &'a str,
}

impl At<'_> {
    fn runtime(&self, text: impl Display) -> Error {
        Error::runtime(self.op, format!("{}: {text}", self.name))
    }

    fn value(&self, text: impl Display) -> Error {
        Error::value(self.op, format!("{}: {text}", self.name))
    }

    fn not_opened(&self, error: io::Error) -> Error {
        if self.op == "savez" {
            // MLX leaves this error to Python's zipfile, which raises the operating system's error.
            return Error::io(self.name, error);
        }
        Error::io(format!("[{}] Failed to open file {}", self.op, self.name), error)
    }

    /// The error for an array whose dtype a file format does not support.
    #[cold]
    fn no_dtype(self, format: &str, array: &Array, hint: &str) -> Error {
        let (name, dtype) = (self.name, array.dtype());
        Error::type_(self.op, format!("{name}: {format} files have no {dtype}. {hint}."))
    }

    fn not_written(&self, error: impl Display) -> Error {
        Error::runtime(self.op, format!("Failed to write {}: {error}", self.name))
    }

    /// Lets `write` write a new file. It replaces the file at `path` only if nothing fails.
    fn replace(self, path: &Path, write: impl FnOnce(&mut File) -> Result<()>) -> Result<()> {
        let failed = |step, error| match step {
            Step::Open => self.not_opened(error),
            Step::Write => Error::io(format!("[{}] Failed to write {}", self.op, self.name), error),
        };
        reads::keep_open(path);
        files::replace(path, failed, write)
    }

    /// Opens a file whose arrays are read later.
    fn open(&self, path: &Path) -> Result<Arc<SourceFile>> {
        SourceFile::open(path).map_err(|e| self.not_opened(e))
    }
}

/// The path, with `extension` appended unless its name already ends in it.
fn with_extension(path: &Path, extension: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    if !name.as_encoded_bytes().ends_with(extension.as_bytes()) {
        name.push(extension);
    }
    name.into()
}

/// Evaluates all arrays together, before any file is touched.
fn eval_all(arrays: &Arrays) -> Result<()> {
    crate::eval::eval(&arrays.values().cloned().collect::<Vec<_>>())
}
