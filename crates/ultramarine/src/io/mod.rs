//! Arrays in files: NumPy's `.npy` and `.npz`, and `.safetensors`.
//!
//! Loading is eager. A reader checks every size that a file claims against the
//! bytes that are there before it allocates, and an error names the file. Saving to
//! a path writes a temporary file beside it and renames that, so a failure leaves
//! an older file as it was; nothing is synced to the disk.
//!
//! Files are little-endian, as are all hosts that this crate supports.

pub mod npy;
#[cfg(feature = "npz")]
pub mod npz;
pub mod safetensors;

use crate::error::{Error, Result};
use crate::shape::{self, Shape, Show, Strides};
use crate::{array::Array, backend, backend::buffer::Buffer, dtype::Dtype, node::Value};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::mem::MaybeUninit;
use std::path::{Path, PathBuf};
use ultramarine_runtime::files::{self, Step};

/// Arrays by name.
pub type Arrays = BTreeMap<String, Array>;
/// Free text that a safetensors file carries.
pub type Metadata = BTreeMap<String, String>;

/// Something that can be read from any position.
pub trait ReadSeek: Read + Seek {}
impl<T: Read + Seek + ?Sized> ReadSeek for T {}

/// What a file holds.
#[derive(Clone)]
pub enum Loaded {
    /// The array of a `.npy` file.
    Array(Array),
    /// The arrays of a `.npz` file.
    Arrays(Arrays),
    /// The arrays of a `.safetensors` file and its metadata, empty if it has none.
    Safetensors(Arrays, Metadata),
}

/// A file format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// One array.
    Npy,
    /// A zip archive of `.npy` files.
    Npz,
    /// Named tensors behind a JSON header.
    Safetensors,
}

impl Format {
    /// The format of that name, which is its file extension without the dot.
    ///
    /// # Errors
    /// [`Error::Value`] when there is none.
    pub fn from_name(name: &str) -> Result<Format> {
        match name {
            "npy" => Ok(Format::Npy),
            "npz" => Ok(Format::Npz),
            "safetensors" => Ok(Format::Safetensors),
            _ => Err(Error::value("load", format!("Unknown file format {name}"))),
        }
    }

    /// The format by a path's extension.
    ///
    /// # Errors
    /// [`Error::Value`] when it has none or an unknown one.
    pub fn from_path(path: impl AsRef<Path>) -> Result<Format> {
        match path.as_ref().extension() {
            Some(extension) => Format::from_name(&extension.to_string_lossy()),
            None => Err(Error::value("load", "Could not infer file format from extension")),
        }
    }
}

/// Loads a file; its extension says which format it has.
///
/// # Errors
/// [`Error::Io`] for a file that cannot be opened ([`Error::io_kind`] says why), [`Error::Value`] for an
/// unknown extension or something that is no zip archive where one should be, [`Error::Runtime`] for other files that are
/// cut short or wrong, [`Error::Memory`] when there is no memory.
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

/// Loads a file of the given format.
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
    })
}

/// Reads from `reader`'s position on; `name` stands for it in errors.
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
    })
}

#[cfg(not(feature = "npz"))]
fn without_npz() -> Error {
    let text = "This build reads no npz files: enable the feature `npz` of the crate `ultramarine`";
    Error::value("load", text)
}

/// Which file is worked on, and by which operation: for errors.
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
            // MLX leaves this one to Python's zipfile, which raises the system's error.
            return Error::io(self.name, error);
        }
        Error::io(format!("[{}] Failed to open file {}", self.op, self.name), error)
    }

    /// The error for an array whose dtype a file format does not have.
    #[cold]
    fn no_dtype(self, format: &str, array: &Array, hint: &str) -> Error {
        let (name, dtype) = (self.name, array.dtype());
        Error::type_(self.op, format!("{name}: {format} files have no {dtype}: {hint}."))
    }

    fn not_written(&self, error: impl Display) -> Error {
        Error::runtime(self.op, format!("Failed to write {}: {error}", self.name))
    }

    /// Lets `write` write a new file, which takes the place of the one at `path` unless anything fails.
    fn replace(self, path: &Path, write: impl FnOnce(&mut File) -> Result<()>) -> Result<()> {
        let failed = |step, error| match step {
            Step::Open => self.not_opened(error),
            Step::Write => Error::io(format!("[{}] Failed to write {}", self.op, self.name), error),
        };
        files::replace(path, failed, write)
    }

    fn open(&self, path: &Path) -> Result<File> {
        File::open(path).map_err(|e| self.not_opened(e))
    }
}

/// The path with `extension` appended to its name unless it ends in that.
fn with_extension(path: &Path, extension: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    if !name.as_encoded_bytes().ends_with(extension.as_bytes()) {
        name.push(extension);
    }
    name.into()
}

/// Bytes from the reader's position to its end.
fn remaining(reader: &mut dyn ReadSeek) -> io::Result<u64> {
    let position = reader.stream_position()?;
    let end = reader.seek(SeekFrom::End(0))?;
    reader.seek(SeekFrom::Start(position))?;
    Ok(end.saturating_sub(position))
}

/// Bytes that are read at a time: what near caches hold.
const PIECE: usize = 256 << 10;

/// A reader of which `left` more bytes may be asked.
struct Source<'a> {
    reader: &'a mut dyn Read,
    left: u64,
    at: At<'a>,
}

impl<'a> Source<'a> {
    fn to_end(reader: &'a mut dyn ReadSeek, at: At<'a>) -> Result<Source<'a>> {
        let left = remaining(reader).map_err(|e| at.runtime(e))?;
        Ok(Source { reader, left, at })
    }

    /// Checks that `bytes` more are there, before memory is taken for them.
    fn need(&self, bytes: u64, what: &str) -> Result<()> {
        if bytes <= self.left {
            return Ok(());
        }
        let left = self.left;
        Err(self.at.runtime(format!("cut short: {what} takes {bytes} bytes, {left} are left.")))
    }

    /// Fills `target`, which is part of `what`.
    fn fill(&mut self, target: &mut [u8], what: &str) -> Result<()> {
        self.need(target.len() as u64, what)?;
        self.reader
            .read_exact(target)
            .map_err(|e| self.at.runtime(format!("reading {what} failed: {e}")))?;
        self.left -= target.len() as u64;
        Ok(())
    }

    /// Fills new memory. The reader may be foreign code, which has to see initialised bytes: each piece is cleared just
    /// before it is read, while it is in a near cache.
    fn fill_new<'m>(
        &mut self,
        target: &'m mut [MaybeUninit<u8>],
        what: &str,
    ) -> Result<&'m mut [u8]> {
        self.need(target.len() as u64, what)?;
        for piece in target.chunks_mut(PIECE) {
            piece.fill(MaybeUninit::new(0));
            // SAFETY: it was cleared.
            self.fill(unsafe { piece.assume_init_mut() }, what)?;
        }
        // SAFETY: all pieces were cleared.
        Ok(unsafe { target.assume_init_mut() })
    }

    fn bytes<const N: usize>(&mut self, what: &str) -> Result<[u8; N]> {
        let mut target = [0; N];
        self.fill(&mut target, what)?;
        Ok(target)
    }

    /// A piece of the file that is no array's data.
    fn text(&mut self, bytes: u64, what: &str) -> Result<Vec<u8>> {
        self.need(bytes, what)?;
        let mut target = vec![0; bytes as usize];
        self.fill(&mut target, what)?;
        Ok(target)
    }

    /// Reads an array's elements, straight into its memory. `swap`: they are
    /// big-endian. `fortran`: the first axis is the fastest.
    fn array(&mut self, layout: Layout, what: &str) -> Result<Array> {
        let Layout { dtype, shape, fortran, swap } = layout;
        shape::check(self.at.op, &shape).map_err(|_| {
            self.at.runtime(format!("{what} has impossible shape {}.", Show(&shape)))
        })?;
        let bytes = dtype.bytes_of(shape::size(&shape));
        self.need(bytes as u64, what)?;
        let buffer = Buffer::new(bytes, backend::host())?;
        // SAFETY: the buffer is new, so nobody else sees it, and has `bytes` bytes.
        let target = unsafe { std::slice::from_raw_parts_mut(buffer.as_ptr().cast(), bytes) };
        let target = self.fill_new(target, what)?;
        if swap {
            swap_bytes(target, if dtype.is_complex() { 4 } else { dtype.size() });
        }
        if dtype == Dtype::Bool {
            target.iter_mut().for_each(|b| *b = (*b != 0) as u8);
        }
        let strides =
            if fortran { fortran_strides(&shape) } else { shape::contiguous_strides(&shape) };
        Ok(Array::given(Value { buffer, offset: 0, strides }, shape, dtype))
    }
}

/// How an array's elements lie in a file.
struct Layout {
    dtype: Dtype,
    shape: Shape,
    fortran: bool,
    swap: bool,
}

/// Strides of an array without gaps whose first axis is the fastest.
fn fortran_strides(shape: &[usize]) -> Strides {
    let mut next = 1;
    let step = |n: &usize| {
        let stride = next;
        next *= (*n).max(1) as isize;
        stride
    };
    shape.iter().map(step).collect()
}

/// Reverses the bytes of each unit of `unit` bytes.
fn swap_bytes(bytes: &mut [u8], unit: usize) {
    fn swap<const N: usize>(bytes: &mut [u8]) {
        bytes.as_chunks_mut::<N>().0.iter_mut().for_each(|unit| unit.reverse());
    }
    match unit {
        2 => swap::<2>(bytes),
        4 => swap::<4>(bytes),
        8 => swap::<8>(bytes),
        _ => {}
    }
}

/// Evaluates all arrays, at best together and before a file is touched.
fn eval_all(arrays: &Arrays) -> Result<()> {
    crate::eval::eval(&arrays.values().cloned().collect::<Vec<_>>())
}
