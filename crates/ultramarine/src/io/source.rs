//! Source of a file format: a file whose arrays are read later, or a reader whose arrays are read at once.

use super::decode::{Decode, Layout, PIECE};
use super::file_reader::FileReader;
use super::lazy::{self, Contents, Place};
use super::{At, ReadSeek};
use crate::array::Array;
use crate::backend::{self, buffer::Buffer};
use crate::error::Result;
use crate::node::Value;
use crate::shape::{self, Show};
use std::io::{self, Read, SeekFrom};
use std::mem::MaybeUninit;
use std::sync::Arc;
use ultramarine_runtime::reads::SourceFile;

enum Input<'a> {
    /// A reader that reads in order only. If it has contents, arrays are read from them later.
    Stream(&'a mut dyn Read, Option<&'a dyn Fn() -> Contents>),
    /// A seekable reader, and the position at which the source begins.
    Seek(&'a mut dyn ReadSeek, u64),
    /// A file, whose arrays are read later.
    File(FileReader),
}

/// A reader or a file, with `left` bytes remaining. Positions count from where the source began.
pub(super) struct Source<'a> {
    input: Input<'a>,
    position: u64,
    pub left: u64,
    pub at: At<'a>,
}

impl<'a> Source<'a> {
    /// A reader, from its position to its end. Arrays are read at once.
    pub fn to_end(reader: &'a mut dyn ReadSeek, at: At<'a>) -> Result<Source<'a>> {
        let mut span = || {
            let start = reader.stream_position()?;
            let end = reader.seek(SeekFrom::End(0))?;
            reader.seek(SeekFrom::Start(start))?;
            io::Result::Ok((start, end.saturating_sub(start)))
        };
        let (start, left) = span().map_err(|e| at.runtime(e))?;
        Ok(Source { input: Input::Seek(reader, start), position: 0, left, at })
    }

    /// A file, whose arrays are read later.
    pub fn of_file(file: &Arc<SourceFile>, at: At<'a>) -> Source<'a> {
        let input = Input::File(FileReader::new(file.clone()));
        Source { input, position: 0, left: file.bytes(), at }
    }

    /// The next `left` bytes of a reader. With `later`, arrays are read later, from the contents that it makes; they
    /// begin where the source does.
    pub fn of_stream(
        reader: &'a mut dyn Read,
        left: u64,
        later: Option<&'a dyn Fn() -> Contents>,
        at: At<'a>,
    ) -> Source<'a> {
        Source { input: Input::Stream(reader, later), position: 0, left, at }
    }

    /// Position of the next byte.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Checks that `bytes` more bytes exist, before memory is allocated for them.
    pub fn need(&self, bytes: u64, what: &str) -> Result<()> {
        if bytes <= self.left {
            return Ok(());
        }
        let left = self.left;
        Err(self.at.runtime(format!("The file is truncated: {what} takes {bytes} bytes, {left} are left. Copy or save it again.")))
    }

    /// Moves to a position. A reader that cannot seek accepts later positions only.
    pub fn seek(&mut self, position: u64, what: &str) -> Result<()> {
        let end = self.position + self.left;
        if position > end {
            let text = format!(
                "The file is truncated: {what} begins at byte {position} of {end}. Copy or save it again."
            );
            return Err(self.at.runtime(text));
        }
        match &mut self.input {
            Input::Seek(reader, start) => {
                reader.seek(SeekFrom::Start(*start + position)).map_err(|e| self.at.runtime(e))?;
            }
            Input::Stream(reader, _) => {
                let skipped = position.checked_sub(self.position).map(|n| {
                    io::copy(&mut reader.by_ref().take(n), &mut io::sink()).map(|read| read == n)
                });
                if !matches!(skipped, Some(Ok(true))) {
                    return Err(self
                        .at
                        .runtime(format!("Cannot seek to {what}. Load a file that can seek.")));
                }
            }
            Input::File(reader) => reader.go_to(position),
        }
        (self.position, self.left) = (position, end - position);
        Ok(())
    }

    /// Fills `target`; errors name it as part of `what`.
    pub fn fill(&mut self, target: &mut [u8], what: &str) -> Result<()> {
        self.need(target.len() as u64, what)?;
        let failed = |e: io::Error| self.at.runtime(format!("Reading {what} failed: {e}"));
        match &mut self.input {
            Input::Stream(reader, _) => reader.read_exact(target).map_err(failed)?,
            Input::Seek(reader, _) => reader.read_exact(target).map_err(failed)?,
            Input::File(reader) => reader.read_exact(target).map_err(failed)?,
        }
        self.position += target.len() as u64;
        self.left -= target.len() as u64;
        Ok(())
    }

    pub fn bytes<const N: usize>(&mut self, what: &str) -> Result<[u8; N]> {
        let mut target = [0; N];
        self.fill(&mut target, what)?;
        Ok(target)
    }

    /// Reads bytes of the file that are not an array's data.
    pub fn text(&mut self, bytes: u64, what: &str) -> Result<Vec<u8>> {
        self.need(bytes, what)?;
        let mut target = vec![0; bytes as usize];
        self.fill(&mut target, what)?;
        Ok(target)
    }

    /// Returns the array whose bytes come next, and moves past them. If the source is a file, the array is lazy; else
    /// it is read directly into its memory.
    pub fn array(&mut self, layout: Layout, decode: Decode, what: &str) -> Result<Array> {
        let Layout { dtype, shape, .. } = &layout;
        shape::check(self.at.op, shape).map_err(|_| {
            self.at.runtime(format!(
                "{what} has impossible shape {}. Save the file again.",
                Show(shape)
            ))
        })?;
        let bytes = dtype.bytes_of(shape::size(shape));
        let Some(stored) = decode.stored(bytes) else {
            let text = format!(
                "{what} of shape {} does not hold whole blocks. Convert the model again.",
                Show(shape)
            );
            return Err(self.at.runtime(text));
        };
        self.need(stored, what)?;
        let contents = match &self.input {
            Input::File(reader) => Some(Contents::File(reader.file().clone())),
            Input::Stream(_, Some(later)) => Some(later()),
            _ => None,
        };
        if let Some(contents) = contents {
            let place = Place { contents, start: self.position };
            let array = lazy::array(self.at, place, layout, decode, what)?;
            match self.input {
                // The rest of the archive's member is not read now.
                Input::Stream(..) => {
                    (self.position, self.left) = (self.position + stored, self.left - stored);
                }
                _ => self.seek(self.position + stored, what)?,
            }
            return Ok(array);
        }
        let buffer = Buffer::new(bytes, backend::host())?;
        // SAFETY: the buffer is new, so nothing else uses it, and has `bytes` bytes.
        let target = unsafe { std::slice::from_raw_parts_mut(buffer.as_ptr().cast(), bytes) };
        self.fill_new(target, &layout, &decode, what)?;
        let value = Value { buffer, offset: 0, strides: layout.strides() };
        Ok(Array::given(value, layout.shape, layout.dtype))
    }

    /// Fills new memory. The reader may be foreign code, which must see initialised bytes. Each piece is therefore
    /// cleared just before it is read, while it is in a near cache.
    fn fill_new(
        &mut self,
        target: &mut [MaybeUninit<u8>],
        layout: &Layout,
        decode: &Decode,
        what: &str,
    ) -> Result<()> {
        let mut scratch = Vec::new();
        for piece in target.chunks_mut(decode.piece(PIECE)) {
            piece.fill(MaybeUninit::new(0));
            // SAFETY: it was cleared.
            let piece = unsafe { piece.assume_init_mut() };
            decode.fill(piece, &mut scratch, |bytes| self.fill(bytes, what))?;
            layout.finish(piece);
        }
        Ok(())
    }
}
