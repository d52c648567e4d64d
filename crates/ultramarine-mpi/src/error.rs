//! Errors of this crate, each with its remedy.

use std::sync::Arc;
use thiserror::Error as ThisError;

/// An error of this crate. Its text says what failed and what to do.
#[derive(Clone, Debug, ThisError)]
#[non_exhaustive]
pub enum Error {
    /// No library could be opened.
    #[error("{0}")]
    NotFound(String),
    /// A library was found, but this process cannot use it.
    #[error("{0}")]
    Unusable(String),
    /// An argument is out of range.
    #[error("{0}")]
    Argument(String),
    /// A function of MPI returned an error.
    #[error("{call} failed on rank {rank}, in {description}: {text}")]
    Mpi {
        /// MPI's function, such as `MPI_Iallreduce`.
        call: &'static str,
        /// The rank of this process in the communicator.
        rank: usize,
        /// The request, as its caller described it.
        description: String,
        /// MPI's own message.
        text: String,
    },
    /// A message was shorter or longer than its receiver expected.
    #[error(
        "[receive] {description}: rank {from} sent {sent} bytes, {expected} were expected. \
         Give the shape and dtype that the sender has"
    )]
    Length {
        /// The request, as its caller described it.
        description: String,
        /// The sender.
        from: usize,
        /// Bytes of the message; "more than N" if MPI does not report the length.
        sent: String,
        /// Bytes that the receiver has room for.
        expected: usize,
    },
    /// A request took longer than the limit. MPI is given up, and the process ends its job when it
    /// exits.
    #[error("{0}")]
    Timeout(Arc<str>),
    /// MPI was given up because of another request's failure while this request was in progress.
    #[error("MPI was given up while this request was under way: {0}")]
    Abandoned(Arc<str>),
    /// An earlier failure leaves MPI in an unknown state.
    #[error("MPI is not usable after an earlier failure: {0}")]
    Broken(Arc<str>),
    /// The parent of this process started MPI.
    #[error(
        "process {child} is a fork of process {parent}, which started MPI; MPI does not work in forked children. \
         Start new processes instead (multiprocessing: the method \"spawn\")"
    )]
    Forked {
        /// The process that started MPI.
        parent: u32,
        /// This process.
        child: u32,
    },
    /// MPI has already ended, by this process's exit or by another user of MPI.
    #[error(
        "MPI has ended in this process. Run collectives before the program exits or calls MPI_Finalize"
    )]
    Finished,
}

impl Error {
    /// Returns true if MPI may still write to a request's output or read its input. The memory then
    /// has to stay allocated until the process ends.
    pub fn keeps_memory(&self) -> bool {
        matches!(self, Error::Timeout(_) | Error::Abandoned(_) | Error::Mpi { .. })
    }
}
