//! Profiles: what evaluations ran, where, by which means, and for how long.
//!
//! ```text
//! session.rs     the profile that runs, and what it has recorded
//! span.rs        one operation while it runs: marks around it
//! event.rs       what is recorded of an operation, and of planning
//! table.rs       events by operation, as a table
//! trace_file.rs  events as a file for Perfetto and Chrome
//! ```
//!
//! While none runs, an evaluation reads one atomic number and nothing else.

mod event;
mod session;
mod span;
mod table;
mod trace_file;

pub use event::{Clock, Dispatch, Event, Planning, Tensor};
pub(crate) use event::{Description, Tensors};
pub(crate) use session::{Recorder, recorder};
pub(crate) use span::{Span, compiled, took};
pub use table::Row;

use crate::error::{Error, Result};
use std::fmt;
use std::path::Path;

/// A running profile of all evaluations of the process. [`Profile::finish`] ends it; if it is
/// dropped, its records are lost.
#[must_use = "a profile that is dropped ends, and what it recorded is lost"]
#[derive(Debug)]
pub struct Profile(Recorder);

/// Starts a profile of all evaluations of the process.
///
/// Evaluations that begin while it runs are recorded: each task with its operation, shapes, device,
/// means, bytes and time. Devices that run ahead take the times themselves, so nothing waits for
/// them. Where a backend cannot, times are the host's; see [`Event::clock`].
///
/// ```
/// use ultramarine::{Array, Dtype, profile};
/// let x = Array::from_slice(&[1.0f32, 2.0, 3.0], &[3])?;
/// let running = profile()?;
/// (&x.exp()? + 1.0)?.eval()?;
/// let report = running.finish()?;
/// println!("{report}");
/// let event = &report.events()[0];
/// assert_eq!((event.operation().as_str(), event.outputs[0].dtype), ("exp+add", Dtype::Float32));
/// # Ok::<(), ultramarine::Error>(())
/// ```
///
/// # Errors
/// [`Error::Runtime`] while another profile runs.
pub fn profile() -> Result<Profile> {
    session::start().map(Profile)
}

impl Profile {
    /// Ends the profile: waits for the recorded work of all streams, and collects the times of the
    /// devices.
    ///
    /// # Errors
    /// [`Error::Runtime`] if the profile ended with a fork of the process, whose child has none.
    pub fn finish(self) -> Result<Report> {
        let ended = session::finish(self.0);
        std::mem::forget(self);
        ended.ok_or_else(|| {
            Error::runtime(
                "profile",
                "The profile belongs to the parent of this forked process. Start another one here.",
            )
        })
    }
}

impl Drop for Profile {
    fn drop(&mut self) {
        session::cancel(self.0);
    }
}

/// The records of a profile, from [`Profile::finish`]. `Display` writes the table of all
/// [`Report::rows`].
#[derive(Clone, Debug, Default)]
pub struct Report {
    events: Vec<Event>,
    plannings: Vec<Planning>,
    /// Names of host threads, by [`Event::thread`].
    threads: Vec<String>,
    dropped: u64,
}

impl Report {
    /// Returns the tasks, in the order in which the host finished them. Parts of a decomposition,
    /// and operations of a compiled function's call, come before the whole.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// Returns the times that the host spent on planning evaluations.
    pub fn plannings(&self) -> &[Planning] {
        &self.plannings
    }

    /// Returns the number of tasks that were not recorded, because there were more than a million.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Returns the events, summed up by operation, tensors, device and means, the longest first.
    /// Parts of decompositions count in their operation's row, calls of compiled functions in those
    /// of their operations.
    pub fn rows(&self) -> Vec<Row> {
        table::rows(&self.events)
    }

    /// Returns the [`Report::rows`] as a text for a terminal, at most `limit` of them.
    pub fn table(&self, limit: usize) -> String {
        table::text(self, limit)
    }

    /// Returns the events as JSON in Chrome's trace event format, which Perfetto and
    /// `chrome://tracing` show: a row for each stream of a device and each thread of the host.
    /// Times are in microseconds since the profile began.
    pub fn trace(&self) -> String {
        trace_file::json(self)
    }

    /// Writes [`Report::trace`] to a file.
    ///
    /// # Errors
    /// [`Error::Io`] if the file cannot be written.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        std::fs::write(path, self.trace()).map_err(|e| Error::io(path.display().to_string(), e))
    }
}

/// The table, whole.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.table(usize::MAX))
    }
}
