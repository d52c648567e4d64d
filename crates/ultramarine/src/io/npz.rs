//! NumPy's format of several arrays: a zip archive with a `.npy` file for each.

use super::file_reader::FileReader;
use super::lazy::{Contents, Member};
use super::source::Source;
use super::{Arrays, At, ReadSeek, npy, with_extension};
use crate::error::{Error, Result};
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;
use ultramarine_runtime::reads::SourceFile;
use zip::{CompressionMethod, ZipArchive, ZipWriter, write::SimpleFileOptions};

/// Deflate cannot compress more than this many bytes into one.
const MAX_RATIO: u64 = 1032;

/// Saves arrays by name as `.npz`. The extension is appended to a path without it.
///
/// # Errors
/// [`crate::Error::Io`] if the file cannot be opened, [`crate::Error::Runtime`] if it cannot be
/// written, and errors of evaluation.
pub fn save(path: impl AsRef<Path>, arrays: &Arrays) -> Result<()> {
    save_with(path.as_ref(), arrays, CompressionMethod::Stored)
}

/// Saves arrays as [`save`] does, compressed.
///
/// # Errors
/// As [`save`].
pub fn save_compressed(path: impl AsRef<Path>, arrays: &Arrays) -> Result<()> {
    save_with(path.as_ref(), arrays, CompressionMethod::Deflated)
}

/// Writes arrays to `writer`, in the format of `.npz`. `name` stands for the writer in errors.
///
/// # Errors
/// As [`save`].
pub fn write(writer: &mut dyn Write, arrays: &Arrays, compressed: bool, name: &str) -> Result<()> {
    let method = if compressed { CompressionMethod::Deflated } else { CompressionMethod::Stored };
    let at = At { op: "savez", name };
    let mut writer = members(ZipWriter::new_stream(Latch::new(writer)), arrays, method, at)?;
    writer.flush().map_err(|e| at.not_written(e))
}

/// Loads the arrays of a `.npz` file, by name. Each array's data is read, and its checksum compared, when the array is
/// evaluated.
///
/// # Errors
/// [`crate::Error::Io`] if the file cannot be opened, [`crate::Error::Value`] if it is not a zip archive,
/// [`crate::Error::Runtime`] if a member is damaged or not an npy file.
pub fn load(path: impl AsRef<Path>) -> Result<Arrays> {
    let name = path.as_ref().display().to_string();
    let at = At { op: "load_npz", name: &name };
    let file = SourceFile::open(path.as_ref())
        .map_err(|e| Error::io(format!("[{}] {name}: Failed to open file", at.op), e))?;
    let mut archive = opened(FileReader::new(file.clone()), at)?;
    let all = archive.clone();
    let later = |index: usize| Contents::Member(file.clone(), Arc::new((all.clone(), index)));
    members_of(&mut archive, file.bytes(), Some(&later), at)
}

/// Reads a whole `.npz` archive from a reader. `name` stands for the reader in errors.
///
/// # Errors
/// As [`load`].
pub fn read(reader: &mut dyn ReadSeek, name: &str) -> Result<Arrays> {
    let at = At { op: "load_npz", name };
    let mut bytes = || {
        let end = reader.seek(SeekFrom::End(0))?;
        reader.rewind().map(|()| end)
    };
    let bytes = bytes().map_err(|e| at.runtime(e))?;
    members_of(&mut opened(BufReader::new(reader), at)?, bytes, None, at)
}

fn opened<R: Read + Seek>(reader: R, at: At<'_>) -> Result<ZipArchive<R>> {
    ZipArchive::new(reader).map_err(|e| {
        at.value(format!("Not a readable zip archive: {e}. Save or copy the file again."))
    })
}

/// A member of an archive, identified by its index.
impl Member for (ZipArchive<FileReader>, usize) {
    fn open(&self, read: &mut dyn FnMut(&mut dyn Read) -> Result<()>) -> io::Result<Result<()>> {
        // A clone has its own position.
        let mut archive = self.0.clone();
        let mut member = archive.by_index(self.1)?;
        Ok(read(&mut member))
    }
}

/// The arrays of an archive of `bytes` bytes. With `later`, arrays are read later, from the contents that it makes for
/// a member's index.
fn members_of<R: Read + Seek>(
    archive: &mut ZipArchive<R>,
    bytes: u64,
    later: Option<&dyn Fn(usize) -> Contents>,
    at: At<'_>,
) -> Result<Arrays> {
    let name = at.name;
    // Members do not share bytes, so together they cannot claim more bytes than the archive has.
    let mut left = bytes;
    let mut arrays = Arrays::new();
    for index in 0..archive.len() {
        let mut member = archive.by_index(index).map_err(|e| {
            at.runtime(format!("Member {index} cannot be read: {e}. Save or copy the file again."))
        })?;
        let member_name = member.name().map_err(|e| at.runtime(e))?.into_owned();
        if member.is_dir() {
            continue;
        }
        let full_name = format!("{name}({member_name})");
        let at = At { op: at.op, name: &full_name };
        let (size, packed) = (member.size(), member.compressed_size());
        left = left.checked_sub(packed).ok_or_else(|| {
            at.runtime(format!("A member takes {packed} bytes, where {left} are left in the archive. Save or copy the file again."))
        })?;
        let possible = match member.compression() {
            CompressionMethod::Stored => size == packed,
            _ => size <= packed.saturating_mul(MAX_RATIO),
        };
        if !possible {
            return Err(at.runtime(format!(
                "A member of {packed} bytes cannot expand to {size}. Save the file again."
            )));
        }
        let later = later.map(|later| move || later(index));
        let later = later.as_ref().map(|later| later as &dyn Fn() -> Contents);
        let mut source = Source::of_stream(&mut member, size, later, at);
        let array = npy::read_from(&mut source)?;
        if source.left > 0 {
            return Err(at.runtime(format!(
                "{} bytes follow the array in its member. Save the file again.",
                source.left
            )));
        }
        // Reading at the end compares the checksum.
        match later {
            Some(_) => {}
            None => match member.read(&mut [0]) {
                Ok(0) => {}
                Ok(_) => {
                    return Err(at.runtime(format!(
                        "A member has more than its {size} bytes. Save the file again."
                    )));
                }
                Err(e) => return Err(at.runtime(e)),
            },
        }
        let key = member_name.strip_suffix(".npy").unwrap_or(&member_name);
        arrays.insert(key.to_owned(), array);
    }
    Ok(arrays)
}

fn save_with(path: &Path, arrays: &Arrays, method: CompressionMethod) -> Result<()> {
    let path = with_extension(path, ".npz");
    super::eval_all(arrays)?;
    let name = path.display().to_string();
    let at = At { op: "savez", name: &name };
    at.replace(&path, |file| {
        let mut file =
            members(ZipWriter::new(Latch::new(BufWriter::new(file))), arrays, method, at)?;
        file.flush().map_err(|e| at.not_written(e))
    })
}

fn members<W: Write + Seek>(
    mut zip: ZipWriter<W>,
    arrays: &Arrays,
    method: CompressionMethod,
    at: At<'_>,
) -> Result<W> {
    for (name, array) in arrays {
        // Deflate may enlarge data slightly if it cannot compress it.
        let large = npy::file_bytes(array) > u32::MAX as u64 / 16 * 15;
        let options = SimpleFileOptions::default().compression_method(method).large_file(large);
        zip.start_file(format!("{name}.npy"), options).map_err(|e| at.not_written(e))?;
        npy::write_to(&mut zip, array, at)?;
    }
    zip.finish().map_err(|e| at.not_written(e))
}

/// A writer that ignores all writes after its first error. Without it, a `ZipWriter` that is dropped after an error
/// would try to finish the archive, and print that it cannot.
struct Latch<W> {
    inner: W,
    failed: bool,
}

impl<W> Latch<W> {
    fn new(inner: W) -> Self {
        Latch { inner, failed: false }
    }

    fn unless_failed<T>(
        &mut self,
        swallowed: T,
        act: impl FnOnce(&mut W) -> io::Result<T>,
    ) -> io::Result<T> {
        if self.failed {
            return Ok(swallowed);
        }
        let result = act(&mut self.inner);
        self.failed = result.as_ref().is_err_and(|e| e.kind() != io::ErrorKind::Interrupted);
        result
    }
}

impl<W: Write> Write for Latch<W> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.unless_failed(data.len(), |inner| inner.write(data))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.unless_failed((), |inner| inner.flush())
    }
}

impl<W: Seek> Seek for Latch<W> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.unless_failed(0, |inner| inner.seek(to))
    }
}
