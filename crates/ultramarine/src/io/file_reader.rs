//! A reader of a file with its own position and a read-ahead buffer.

use std::io::{self, BufRead, Read, Seek, SeekFrom};
use std::sync::Arc;
use ultramarine_runtime::reads::{Fault, SourceFile};

/// Bytes that are read at a time.
const AHEAD: usize = 64 << 10;

/// Reads a file from its beginning. Each clone has its own position.
#[derive(Clone)]
pub(super) struct FileReader {
    file: Arc<SourceFile>,
    /// Position in the file of the first byte of `ahead`.
    start: u64,
    ahead: Vec<u8>,
    /// Bytes of `ahead` that were consumed.
    taken: usize,
}

impl FileReader {
    pub fn new(file: Arc<SourceFile>) -> FileReader {
        FileReader { file, start: 0, ahead: Vec::new(), taken: 0 }
    }

    pub fn file(&self) -> &Arc<SourceFile> {
        &self.file
    }

    pub fn position(&self) -> u64 {
        self.start + self.taken as u64
    }

    /// Moves to a position, which may be beyond the end.
    pub fn go_to(&mut self, position: u64) {
        match position.checked_sub(self.start).and_then(|n| usize::try_from(n).ok()) {
            Some(taken) if taken <= self.ahead.len() => self.taken = taken,
            _ => {
                self.ahead.clear();
                (self.start, self.taken) = (position, 0);
            }
        }
    }
}

fn to_io(fault: Fault) -> io::Error {
    match fault {
        Fault::System(error) => error,
        Fault::Cut(bytes) => io::Error::other(format!("the file was truncated to {bytes} bytes")),
        Fault::Changed => io::Error::other("the file was changed"),
        Fault::Replaced => io::Error::other("the file was replaced"),
    }
}

impl BufRead for FileReader {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.taken == self.ahead.len() {
            (self.start, self.taken) = (self.position(), 0);
            self.ahead.resize(AHEAD, 0);
            let read = self.file.read_some_at(self.start, &mut self.ahead).map_err(to_io);
            self.ahead.truncate(*read.as_ref().unwrap_or(&0));
            read?;
        }
        Ok(&self.ahead[self.taken..])
    }

    fn consume(&mut self, bytes: usize) {
        self.taken = (self.taken + bytes).min(self.ahead.len());
    }
}

impl Read for FileReader {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        if self.taken == self.ahead.len() && target.len() >= AHEAD {
            let read = self.file.read_some_at(self.position(), target).map_err(to_io)?;
            self.go_to(self.position() + read as u64);
            return Ok(read);
        }
        let read = self.fill_buf()?.read(target)?;
        self.consume(read);
        Ok(read)
    }
}

impl Seek for FileReader {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let position = match to {
            SeekFrom::Start(position) => Some(position),
            SeekFrom::Current(by) => self.position().checked_add_signed(by),
            SeekFrom::End(by) => self.file.bytes().checked_add_signed(by),
        };
        let position = position.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        self.go_to(position);
        Ok(position)
    }
}
