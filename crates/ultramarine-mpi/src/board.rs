//! The watchdog: the requests that this rank waits for, when each began, and how long it may take.

use crate::error::Error;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant};

/// Environment variable with the limit in seconds. 0 means no limit.
const VARIABLE: &str = "ULTRAMARINE_DISTRIBUTED_TIMEOUT";
const DEFAULT: Duration = Duration::from_secs(300);

struct Entry {
    description: String,
    since: Instant,
}

/// The watchdog's board: the requests that are not complete, when each began, and how long it may
/// take. If a request exceeds the limit, the board reports all of them, the request fails, and MPI
/// is given up.
pub struct Board {
    limit: Mutex<Option<Duration>>,
    /// `rank 1 of 4`, once the rank is known.
    place: OnceLock<String>,
    entries: Mutex<BTreeMap<u64, Entry>>,
    next: AtomicU64,
    broken: OnceLock<Arc<str>>,
    expired: AtomicBool,
}

/// A request on the [`Board`], until [`Board::remove`].
#[derive(Clone, Copy, Debug)]
pub struct Watched {
    id: u64,
    since: Instant,
}

/// Returns the limit that the environment sets, or the default one; `None` for no limit.
///
/// # Errors
/// [`Error::Argument`] for a value that is not a number of seconds.
pub fn limit() -> Result<Option<Duration>, Error> {
    parse(std::env::var(VARIABLE).ok().as_deref())
}

fn parse(text: Option<&str>) -> Result<Option<Duration>, Error> {
    let Some(text) = text.map(str::trim).filter(|text| !text.is_empty()) else {
        return Ok(Some(DEFAULT));
    };
    let seconds = text.parse::<f64>().ok().and_then(|s| Duration::try_from_secs_f64(s).ok());
    match seconds {
        Some(Duration::ZERO) => Ok(None),
        Some(limit) => Ok(Some(limit)),
        None => Err(Error::Argument(format!(
            "{VARIABLE} is {text:?}. Give a number of seconds, 0 for no limit"
        ))),
    }
}

impl Board {
    pub fn new(limit: Option<Duration>) -> Self {
        Board {
            limit: Mutex::new(limit),
            place: OnceLock::new(),
            entries: Mutex::new(BTreeMap::new()),
            next: AtomicU64::new(0),
            broken: OnceLock::new(),
            expired: AtomicBool::new(false),
        }
    }

    /// Names this process in reports.
    pub fn set_place(&self, rank: usize, size: usize) {
        let _ = self.place.set(format!("rank {rank} of {size}"));
    }

    /// Returns `rank 1 of 4`, or the process's number before MPI runs.
    pub fn place(&self) -> String {
        let process = || format!("process {}", std::process::id());
        self.place.get().cloned().unwrap_or_else(process)
    }

    /// Begins to watch a request, until [`Board::remove`].
    pub fn watch(&self, description: &str) -> Watched {
        let (id, since) = (self.next.fetch_add(1, Ordering::Relaxed), Instant::now());
        self.entries().insert(id, Entry { description: description.to_owned(), since });
        Watched { id, since }
    }

    /// Called when a request is complete.
    pub fn remove(&self, watched: Watched) {
        self.entries().remove(&watched.id);
    }

    /// Returns the time that a request has left; `None` if there is no limit.
    pub fn left(&self, watched: Watched) -> Option<Duration> {
        self.limit().map(|limit| limit.saturating_sub(watched.since.elapsed()))
    }

    /// Returns the longest time that a request may take; `None` means no limit.
    pub fn limit(&self) -> Option<Duration> {
        *self.limit.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Sets the longest time that a request may take.
    pub fn set_limit(&self, limit: Option<Duration>) {
        *self.limit.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = limit;
    }

    /// Fails if MPI is no longer used after a failure.
    ///
    /// # Errors
    /// An [`Error`] with the reason.
    pub fn usable(&self) -> Result<(), Error> {
        self.broken.get().map_or(Ok(()), |why| Err(Error::Broken(why.clone())))
    }

    /// Gives up MPI: every later request fails with this reason. If MPI was given up before, the
    /// first reason stays.
    pub fn give_up(&self, why: &str) {
        let _ = self.broken.set(Arc::from(why));
    }

    /// Returns the error of requests that were not complete when MPI was given up.
    pub fn abandoned(&self) -> Option<Error> {
        let why = self.broken()?;
        Some(if self.is_expired() { Error::Timeout(why) } else { Error::Abandoned(why) })
    }

    /// Returns the reason why MPI was given up.
    pub fn broken(&self) -> Option<Arc<str>> {
        self.broken.get().cloned()
    }

    /// Returns true if a request has taken longer than the limit.
    pub fn is_expired(&self) -> bool {
        self.expired.load(Ordering::Acquire)
    }

    /// If a request exceeds the limit, reports all requests and gives up MPI. Returns the error
    /// with which they fail.
    pub fn expire(&self) -> Option<Error> {
        let limit = self.limit()?;
        let entries = self.entries();
        let now = Instant::now();
        let oldest = entries.values().map(|entry| now - entry.since).max()?;
        if oldest < limit {
            return None;
        }
        let mut report = format!(
            "{} has waited for other ranks for {:.1} s, longer than {VARIABLE} allows ({} s). It waits for:\n",
            self.place(),
            oldest.as_secs_f64(),
            limit.as_secs_f64()
        );
        for entry in entries.values() {
            let seconds = (now - entry.since).as_secs_f64();
            report.push_str(&format!("  {seconds:.1} s: {}\n", entry.description));
        }
        report.push_str(
            "Another rank has ended, makes its calls in another order, or is slow: compare the reports of all ranks, or raise \
             the limit. The job ends when this process exits",
        );
        drop(entries);
        // Only the first thread that gets here writes the report.
        let mut first = false;
        let report = self.broken.get_or_init(|| {
            first = true;
            Arc::from(report.as_str())
        });
        if first {
            self.expired.store(true, Ordering::Release);
            say(report);
        }
        self.abandoned()
    }

    fn entries(&self) -> MutexGuard<'_, BTreeMap<u64, Entry>> {
        self.entries.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// Writes to standard error in one call, so that the reports of ranks do not mix.
pub fn say(text: &str) {
    use std::io::Write;
    let lines: Vec<String> = text.lines().map(|line| format!("[ultramarine] {line}\n")).collect();
    // Ignore errors: if standard error is closed, nothing can be done.
    let _ = std::io::stderr().write_all(lines.concat().as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_seconds() {
        assert_eq!(parse(None).unwrap(), Some(DEFAULT));
        assert_eq!(parse(Some(" ")).unwrap(), Some(DEFAULT));
        assert_eq!(parse(Some("0")).unwrap(), None);
        assert_eq!(parse(Some("2.5")).unwrap(), Some(Duration::from_millis(2500)));
        for wrong in ["-1", "soon", "inf", "nan"] {
            assert!(parse(Some(wrong)).unwrap_err().to_string().contains(wrong));
        }
    }

    #[test]
    fn all_that_waits_is_reported_once() {
        let board = Board::new(Some(Duration::from_millis(20)));
        board.set_place(1, 4);
        board.watch("all_sum(float32, (4,))");
        std::thread::sleep(Duration::from_millis(25));
        let second = board.watch("recv(int8, ()) from rank 3");
        let Some(Error::Timeout(report)) = board.expire() else { panic!("no report") };
        for part in
            ["rank 1 of 4", "all_sum(float32, (4,))", "recv(int8, ()) from rank 3", VARIABLE]
        {
            assert!(report.contains(part), "{part}: {report}");
        }
        board.remove(second);
        let again = board.expire().unwrap().to_string();
        assert_eq!(again, &*report);
        assert!(matches!(board.usable(), Err(Error::Broken(_))));
    }

    #[test]
    fn nothing_expires_without_a_limit_or_before_it() {
        for limit in [None, Some(Duration::from_secs(100))] {
            let board = Board::new(limit);
            let watched = board.watch("all_sum");
            assert!(board.expire().is_none());
            assert_eq!(board.left(watched).is_some(), limit.is_some());
        }
    }
}
