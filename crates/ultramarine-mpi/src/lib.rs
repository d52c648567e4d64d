//! MPI for processes that hold arrays: collectives and messages over host memory, and over GPU
//! memory if MPI accepts it.
//!
//! ```no_run
//! use ultramarine_mpi::{Dtype, Kind, Request};
//!
//! let world = ultramarine_mpi::world()?;
//! let input = vec![world.rank() as f32; 4];
//! let mut output = vec![0f32; 4];
//! let request = Request {
//!     kind: Kind::AllSum,
//!     dtype: Dtype::Float32,
//!     input: input.as_ptr().cast(),
//!     output: output.as_mut_ptr().cast(),
//!     count: 4,
//!     description: "all_sum(float32, (4,))",
//! };
//! let done = unsafe { world.run(&request) };
//! if done.as_ref().is_err_and(ultramarine_mpi::Error::keeps_memory) {
//!     std::mem::forget((input, output));
//! }
//! done?;
//! # Ok::<(), ultramarine_mpi::Error>(())
//! ```
//!
//! # Design
//!
//! - **MPI is not linked.** [`find()`] looks for the library at run time, and takes the one whose
//!   `mpirun` started the process. Open MPI and MPICH have the same functions but different
//!   handles: addresses of global objects in the first, integers in the second. One table of
//!   functions is generic over the handle, so that all other code exists only once.
//! - **One thread talks to MPI.** It starts MPI, asks for `MPI_THREAD_MULTIPLE` and works with any
//!   level that is granted. Callers give it their requests and wait. Requests are non-blocking
//!   calls, so any number of communicators make progress at the same time.
//! - **Cores stay free.** While the thread waits, it yields between two tests, and then sleeps for
//!   up to half a millisecond. A test that moved data keeps it awake.
//! - **Reductions follow the rules for arrays.** Sums of 16-bit floats are computed in `float32`
//!   and rounded once; NaN wins a maximum; bools are combined by `or`; results are bitwise
//!   identical on all ranks. MPI's own sums are used for 32 and 64 bits, this crate's operations
//!   for all others.
//! - **Nothing hangs silently.** Requests that take longer than `ULTRAMARINE_DISTRIBUTED_TIMEOUT`
//!   seconds (300; 0: no limit) fail, and each rank reports everything that it waits for. After
//!   that MPI cannot be trusted: later requests fail, and the process ends its job by `MPI_Abort`
//!   when it exits.
//! - **The end.** `MPI_Finalize` runs at exit, after undelivered messages, unless another part of
//!   the process started MPI. Programs that exit because of a failure call [`abort_at_exit`]. A
//!   forked child gets errors.
//!
//! | file | content |
//! | --- | --- |
//! | `find`, `launcher` | the library; marks of launchers in the environment |
//! | `table`, `operations` | functions and predefined objects of both interfaces; own reductions |
//! | `call` | one non-blocking call |
//! | `board` | the watchdog |
//! | `engine`, `worker` | state that threads share; the thread of MPI |
//! | `communicator` | requests as calls, in pieces where counts exceed MPI's `int` |
//! | `cuda` | a GPU's context for MPI's thread |
//! | `process` | start and end |

mod board;
mod call;
mod communicator;
mod cuda;
mod dtype;
mod engine;
mod error;
mod find;
mod launcher;
mod operations;
mod process;
mod request;
mod table;
mod worker;

pub use communicator::Communicator;
pub use dtype::Dtype;
pub use error::Error;
pub use find::{Found, find};
pub use launcher::{Flavour, Launcher, launcher};
pub use process::{abort, abort_at_exit, finalize, set_timeout, world};
pub use request::{Kind, Request};
