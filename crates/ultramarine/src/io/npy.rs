//! NumPy's format of one array (`numpy.lib.format`, versions 1 to 3).
//!
//! The format is a magic string, a version, a length, a Python dict as text that names element
//! type, order and shape, and then the elements. NumPy has no bfloat16, so it is written as a
//! two-byte void type, as MLX does.

use super::decode::{Decode, Layout};
use super::source::Source;
use super::{At, ReadSeek, with_extension};
use crate::error::{Error, Result};
use crate::shape::{self, Shape};
use crate::{array::Array, dtype::Dtype};
use std::io::Write;
use std::path::Path;

const MAGIC: &[u8; 6] = b"\x93NUMPY";
/// Elements begin at a multiple of this, so that a file can be mapped.
const ALIGN: usize = 64;
/// More bytes than the header of any supported dtype can take.
const MAX_HEADER: u64 = 1 << 20;

/// Saves an array as `.npy`. The extension is appended to a path without it. A column-major array
/// is written in its own order.
///
/// # Errors
/// [`Error::Runtime`] if the file cannot be written, [`Error::Type`] for a dtype that the format
/// does not have, and errors of evaluation.
pub fn save(path: impl AsRef<Path>, array: &Array) -> Result<()> {
    let path = with_extension(path.as_ref(), ".npy");
    array.eval()?;
    let name = path.display().to_string();
    let at = At { op: "save", name: &name };
    at.replace(&path, |file| write_to(file, array, at))
}

/// Writes an array to `writer`, in the format of `.npy`. `name` stands for the writer in errors.
///
/// # Errors
/// As [`save`].
pub fn write(writer: &mut dyn Write, array: &Array, name: &str) -> Result<()> {
    write_to(writer, array, At { op: "save", name })
}

/// Loads the array of a `.npy` file. Its data is read when the array is evaluated.
///
/// # Errors
/// [`Error::Io`] if the file cannot be opened, [`Error::Runtime`] if it is truncated or not an npy
/// file, [`Error::Value`] if it has a dtype that arrays do not have.
pub fn load(path: impl AsRef<Path>) -> Result<Array> {
    let name = path.as_ref().display().to_string();
    let at = At { op: "load", name: &name };
    read_from(&mut Source::of_file(&at.open(path.as_ref())?, at))
}

/// Reads an array from the reader's present position, and leaves the position after it. `name`
/// stands for the reader in errors.
///
/// # Errors
/// As [`load`].
pub fn read(reader: &mut dyn ReadSeek, name: &str) -> Result<Array> {
    read_from(&mut Source::to_end(reader, At { op: "load", name })?)
}

/// Bytes that `array` would take in a file.
#[cfg(feature = "npz")]
pub(super) fn file_bytes(array: &Array) -> u64 {
    (array.nbytes() + header(array, false).map_or(0, |h| h.len())) as u64
}

pub(super) fn write_to(writer: &mut dyn Write, array: &Array, at: At<'_>) -> Result<()> {
    let strides = &array.value()?.strides;
    let reversed = |s: &[usize]| s.iter().rev().copied().collect::<Shape>();
    let fortran = !shape::is_contiguous(array.shape(), strides)
        && shape::is_contiguous(
            &reversed(array.shape()),
            &strides.iter().rev().copied().collect::<shape::Strides>(),
        );
    let rows = if fortran { array.transpose()? } else { array.clone() };
    let Some(header) = header(array, fortran) else {
        return Err(at.no_dtype("npy", array, "Use save_safetensors, or save its view(uint8)"));
    };
    rows.with_bytes(|bytes| {
        writer.write_all(&header)?;
        writer.write_all(bytes)?;
        writer.flush()
    })?
    .map_err(|e| at.not_written(e))
}

/// Returns `None` if the format does not have the dtype.
fn header(array: &Array, fortran: bool) -> Option<Vec<u8>> {
    let order = if fortran { "True" } else { "False" };
    let shape: String = array.shape().iter().map(|n| format!("{n}, ")).collect();
    // A single number keeps its comma; without it the text would not be a tuple.
    let shape = if array.ndim() > 1 { shape.trim_end_matches(", ") } else { shape.trim_end() };
    let mut text = format!(
        "{{'descr': '{}', 'fortran_order': {order}, 'shape': ({shape}), }}",
        descr(array.dtype())?
    );
    let before = MAGIC.len() + 4;
    let total = (before + text.len() + 1).next_multiple_of(ALIGN);
    text.extend(std::iter::repeat_n(' ', total - before - text.len() - 1));
    text.push('\n');
    let mut out = MAGIC.to_vec();
    out.extend([1, 0]);
    // The text has a few hundred characters at most, because shapes are short.
    out.extend((text.len() as u16).to_le_bytes());
    out.extend(text.as_bytes());
    Some(out)
}

/// The type in NumPy's array protocol.
fn descr(dtype: Dtype) -> Option<&'static str> {
    Some(match dtype {
        Dtype::Bool => "|b1",
        Dtype::Uint8 => "|u1",
        Dtype::Uint16 => "<u2",
        Dtype::Uint32 => "<u4",
        Dtype::Uint64 => "<u8",
        Dtype::Int8 => "|i1",
        Dtype::Int16 => "<i2",
        Dtype::Int32 => "<i4",
        Dtype::Int64 => "<i8",
        Dtype::Float16 => "<f2",
        Dtype::Float32 => "<f4",
        Dtype::Float64 => "<f8",
        Dtype::Bfloat16 => "<V2",
        Dtype::Complex64 => "<c8",
        _ => return None,
    })
}

/// The dtype for an array protocol string, and whether its bytes must be swapped.
fn from_descr(text: &str) -> Option<(Dtype, bool)> {
    let (order, kind) = text.split_at_checked(1)?;
    let swap = match order {
        "<" | "|" | "=" => false,
        ">" => true,
        _ => return None,
    };
    let dtype =
        Dtype::ALL.into_iter().find(|d| descr(*d).is_some_and(|text| &text[1..] == kind))?;
    Some((dtype, swap))
}

pub(super) fn read_from(source: &mut Source<'_>) -> Result<Array> {
    let at = source.at;
    let magic: [u8; 6] = source.bytes("the magic string")?;
    if &magic != MAGIC {
        return Err(
            at.runtime("Not an npy file: it does not begin with \\x93NUMPY. Check the path.")
        );
    }
    let [major, minor] = source.bytes("the version")?;
    let length = match major {
        1 => u16::from_le_bytes(source.bytes("the header's length")?) as u64,
        2 | 3 => u32::from_le_bytes(source.bytes("the header's length")?) as u64,
        _ => {
            return Err(at.runtime(format!(
                "Unsupported npy format version {major}.{minor}. Save it with numpy.save."
            )));
        }
    };
    if length > MAX_HEADER {
        return Err(
            at.runtime(format!("A header of {length} bytes is too long. Save the array again."))
        );
    }
    let header = source.text(length, "the header")?;
    let layout = Parser { text: &header, at }.header()?;
    source.array(layout, Decode::Same, "the array")
}

/// Parses a header, which is one Python dict.
struct Parser<'a> {
    /// The unparsed rest.
    text: &'a [u8],
    at: At<'a>,
}

impl<'a> Parser<'a> {
    fn header(mut self) -> Result<Layout> {
        let (mut dtype, mut fortran, mut shape) = (None, None, None);
        self.expect(b'{')?;
        while !self.take(b'}') {
            let key = self.string()?;
            self.expect(b':')?;
            match key {
                "descr" => dtype = Some(self.dtype()?),
                "fortran_order" => fortran = Some(self.boolean()?),
                "shape" => shape = Some(self.shape()?),
                _ => return Err(self.wrong(format!("unknown key '{key}'"))),
            }
            if !self.take(b',') {
                self.expect(b'}')?;
                break;
            }
        }
        if self.peek().is_some() {
            return Err(self.wrong("text after the dict"));
        }
        let this = &self;
        let missing = |key| move || this.wrong(format!("no key '{key}'"));
        let (dtype, swap) = dtype.ok_or_else(missing("descr"))?;
        let fortran = fortran.ok_or_else(missing("fortran_order"))?;
        let shape = shape.ok_or_else(missing("shape"))?;
        Ok(Layout { dtype, shape, fortran, swap })
    }

    fn wrong(&self, text: impl std::fmt::Display) -> Error {
        self.at.runtime(format!("Bad npy header: {text}. Save the array again."))
    }

    /// The next character that is not whitespace.
    fn peek(&mut self) -> Option<u8> {
        self.text = self.text.trim_ascii_start();
        self.text.first().copied()
    }

    fn take(&mut self, wanted: u8) -> bool {
        let found = self.peek() == Some(wanted);
        if found {
            self.text = &self.text[1..];
        }
        found
    }

    fn expect(&mut self, wanted: u8) -> Result<()> {
        if self.take(wanted) {
            return Ok(());
        }
        Err(self.wrong(format!("'{}' expected at {}", wanted as char, self.shown())))
    }

    /// The beginning of the unparsed text, for errors.
    fn shown(&self) -> String {
        match self.text.get(..20).unwrap_or(self.text) {
            [] => "the end".into(),
            text => format!("\"{}\"", text.escape_ascii()),
        }
    }

    /// Consumes bytes as long as `belongs` returns true.
    fn span(&mut self, belongs: impl Fn(u8) -> bool) -> &'a str {
        self.peek();
        let end = self.text.iter().position(|b| !belongs(*b)).unwrap_or(self.text.len());
        let (span, rest) = self.text.split_at(end);
        self.text = rest;
        // Valid headers are ASCII; other text becomes empty, which callers reject.
        std::str::from_utf8(span).unwrap_or("")
    }

    /// A string without escapes.
    fn string(&mut self) -> Result<&'a str> {
        let Some(quote @ (b'\'' | b'"')) = self.peek() else {
            return Err(self.wrong(format!("expected a string at {}", self.shown())));
        };
        self.take(quote);
        // `span` skips leading whitespace, which no key and no dtype has.
        let span = self.span(|b| b != quote && b != b'\\');
        self.expect(quote)?;
        Ok(span)
    }

    fn dtype(&mut self) -> Result<(Dtype, bool)> {
        let at = self.at;
        let unsupported = |text: &str| {
            at.value(format!("Unsupported array protocol type-string: {text}. Convert the array before it is saved."))
        };
        if let Some(b'[' | b'(') = self.peek() {
            return Err(unsupported("that of a structured array"));
        }
        let text = self.string()?;
        from_descr(text).ok_or_else(|| unsupported(text))
    }

    fn boolean(&mut self) -> Result<bool> {
        match self.span(|b| b.is_ascii_alphabetic()) {
            "True" => Ok(true),
            "False" => Ok(false),
            _ => Err(self.wrong("fortran_order is neither True nor False")),
        }
    }

    fn shape(&mut self) -> Result<Shape> {
        let mut shape = Shape::new();
        self.expect(b'(')?;
        while !self.take(b')') {
            let digits = self.span(|b| b.is_ascii_digit());
            let size = digits.parse().map_err(|_| {
                let digits = if digits.is_empty() { self.shown() } else { digits.into() };
                self.wrong(format!("expected a size at {digits}"))
            })?;
            shape.push(size);
            // Python 2 marked long integers with an L.
            self.take(b'L');
            if !self.take(b',') {
                self.expect(b')')?;
                break;
            }
        }
        Ok(shape)
    }
}
