//! Reads of files whose data is needed later: the files, and the threads that read them.

mod file;
mod threads;

pub use file::{Fault, SourceFile, keep_open};
pub use threads::{Read, consumed, hurry, rest, submit};
