//! The watchdog of device groups. If a rank is missing, it blocks a stream, and all work that waits
//! for that stream. Therefore a thread watches the operations that groups have enqueued. It acts if
//! another process has ended, the engine has failed, or an operation exceeds the time limit: it
//! reports the waiting operations, marks their values as lost, and makes the backend abort the
//! group. Threads that wait for these values then wake up with the error.

use super::control::{Bad, Control};
use crate::backend::{CollectiveGroup, DeviceStream};
use crate::error::{Error, Result};
use crate::sync::lock;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, Once, OnceLock, Weak};
use std::time::{Duration, Instant};
use ultramarine_runtime::log::{self, Level};

/// Time limit for an operation, unless `ULTRAMARINE_DISTRIBUTED_TIMEOUT` sets another one.
const LIMIT: Duration = Duration::from_secs(300);

/// Time for an operation to complete after another process has ended. That process's part may be
/// done already.
const GRACE: Duration = Duration::from_secs(3);

/// Time to wait for the reason of an engine's failure. Usually the reason is that a process has
/// ended.
const REASON: Duration = Duration::from_secs(1);

/// Time between two checks.
const PERIOD: Duration = Duration::from_millis(100);

/// Number of recorded operations from which on completed ones are removed.
const MANY: usize = 32;

/// Number of waiting operations that a report names.
const SHOWN: usize = 4;

/// The limit from `ULTRAMARINE_DISTRIBUTED_TIMEOUT`, in seconds. `None` if it is 0.
pub(super) fn limit() -> Option<Duration> {
    static SAID: OnceLock<Option<Duration>> = OnceLock::new();
    *SAID.get_or_init(|| {
        let said = std::env::var("ULTRAMARINE_DISTRIBUTED_TIMEOUT");
        let seconds = said.ok().and_then(|text| text.trim().parse::<f64>().ok());
        match seconds.map(Duration::try_from_secs_f64) {
            Some(Ok(Duration::ZERO)) => None,
            Some(Ok(limit)) => Some(limit),
            _ => Some(LIMIT),
        }
    })
}

/// An operation that is being enqueued, or has been.
struct Pending {
    description: String,
    since: Instant,
    /// Its number on a stream. `None` while the backend enqueues the operation. In the first
    /// operations of a group, this may wait for other ranks.
    at: Option<(&'static DeviceStream, u64)>,
}

impl Pending {
    fn is_done(&self) -> bool {
        self.at.is_some_and(|(stream, number)| stream.has_completed(number))
    }
}

/// A group that is watched.
pub(super) struct Watched {
    pub group: Arc<CollectiveGroup>,
    /// For example "rank 0 of 2".
    place: String,
    control: Option<Arc<Control>>,
    pending: Mutex<VecDeque<Pending>>,
    /// The engine's failure, and its time.
    trouble: OnceLock<(String, Instant)>,
    /// The reason why the group cannot be used any more.
    failed: OnceLock<String>,
}

/// Groups that are watched.
static ALL: Mutex<Vec<Weak<Watched>>> = Mutex::new(Vec::new());

impl Watched {
    /// Begins to watch a group.
    pub fn new(
        group: Arc<CollectiveGroup>,
        (rank, size): (usize, usize),
        control: Option<Arc<Control>>,
    ) -> Arc<Watched> {
        let watched = Arc::new(Watched {
            group,
            place: format!("rank {rank} of {size}"),
            control,
            pending: Mutex::default(),
            trouble: OnceLock::new(),
            failed: OnceLock::new(),
        });
        let mut all = lock(&ALL);
        all.retain(|watched| watched.strong_count() > 0);
        all.push(Arc::downgrade(&watched));
        drop(all);
        static ONCE: Once = Once::new();
        ONCE.call_once(|| {
            let thread = std::thread::Builder::new().name("ultramarine-watch".to_owned());
            if let Err(why) = thread.spawn(watch) {
                log::log(
                    Level::Warning,
                    format_args!("cannot start the thread that watches groups of devices ({why}), so a lost process is not noticed. Raise the limit of threads"),
                );
            }
        });
        watched
    }

    /// Returns an error if the group has failed.
    ///
    /// # Errors
    /// [`Error::Runtime`] with the reason of the failure.
    pub fn check(&self, op: &str) -> Result<()> {
        match self.failed.get() {
            None => Ok(()),
            Some(why) => Err(Error::runtime(
                op,
                format!("{why}. The group cannot be used any more. Start the processes again."),
            )),
        }
    }

    /// Watches the operation that `enqueue` enqueues. `enqueue` returns the operation's stream and
    /// number. Only one call at a time.
    ///
    /// # Errors
    /// Those of `enqueue`.
    pub fn watch(
        &self,
        description: &str,
        enqueue: impl FnOnce() -> Result<Option<(&'static DeviceStream, u64)>>,
    ) -> Result<()> {
        let mut pending = lock(&self.pending);
        if pending.len() >= MANY {
            prune(&mut pending);
        }
        let (description, since) = (description.to_owned(), Instant::now());
        pending.push_back(Pending { description, since, at: None });
        drop(pending);
        let outcome = enqueue();
        let mut pending = lock(&self.pending);
        if self.failed.get().is_some() {
            // The group failed in the meantime, so the enqueued work is lost, too.
            return self.check("distributed").and(outcome.map(drop));
        }
        match outcome {
            Err(why) => {
                pending.pop_back();
                drop(pending);
                return Err(self.explained(why));
            }
            Ok(None) => _ = pending.pop_back(),
            Ok(at) => pending.back_mut().into_iter().for_each(|last| last.at = at),
        }
        Ok(())
    }

    /// The known failure or end of another process.
    fn bad(&self) -> Option<Bad> {
        self.control.as_ref().and_then(|control| control.bad())
    }

    /// Adds the reason to an engine's error, if it is known from other processes.
    fn explained(&self, why: Error) -> Error {
        let until = Instant::now() + REASON;
        while self.control.is_some() && Instant::now() < until {
            if let Some(Bad { text, .. }) = self.bad() {
                return Error::Runtime(format!("{why}. {}: {text}.", self.place).into());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        why
    }

    /// Checks the group once.
    fn look(&self) {
        if self.failed.get().is_some() {
            return;
        }
        let waited = {
            let mut pending = lock(&self.pending);
            prune(&mut pending);
            pending.front().map(|first| first.since.elapsed())
        };
        // Do not query a group that has failed.
        if self.trouble.get().is_none()
            && let Err(why) = self.group.is_ready()
        {
            let _ = self.trouble.set((why.to_string(), Instant::now()));
        }
        let bad = self.bad();
        if let Some((why, since)) = self.trouble.get() {
            return match &bad {
                Some(bad) => self.fail(&format!("{} ({why})", bad.text), false),
                None if since.elapsed() < REASON => {}
                None => self.fail(&format!("the group failed: {why}"), true),
            };
        }
        let Some(waited) = waited else { return };
        if let Some(Bad { text, since }) = bad
            && waited.min(since.elapsed()) >= GRACE
        {
            return self.fail(&text, false);
        }
        if limit().is_some_and(|limit| waited >= limit) {
            let seconds = waited.as_secs_f64();
            self.fail(&format!("the other ranks did not answer for {seconds:.0} s"), true);
        }
    }

    /// Ends the group.
    fn fail(&self, why: &str, tell: bool) {
        let mut waited = lock(&self.pending);
        let pending: Vec<Pending> = waited.drain(..).collect();
        let waiting: Vec<String> = pending
            .iter()
            .take(SHOWN)
            .map(|p| format!("{} (for {:.1} s)", p.description, p.since.elapsed().as_secs_f64()))
            .collect();
        let more = match pending.len().saturating_sub(SHOWN) {
            0 => String::new(),
            n => format!(" and {n} more"),
        };
        let waiting = match waiting.is_empty() {
            true => "nothing waits".to_owned(),
            false => format!("waiting: {}{more}", waiting.join("; ")),
        };
        let text = format!("{}: {why}; {waiting}", self.place);
        if self.failed.set(text.clone()).is_err() {
            return;
        }
        // An operation that is being enqueued finds the failure.
        drop(waited);
        log::log(Level::Error, &text);
        let error = Error::Runtime(format!("{text}.").into());
        // Mark the results as lost before the abort lets the stream continue.
        let mut streams: Vec<&'static DeviceStream> = Vec::new();
        for (stream, _) in pending.iter().filter_map(|p| p.at) {
            if !streams.iter().any(|known| std::ptr::eq(*known, stream)) {
                streams.push(stream);
            }
        }
        streams.iter().for_each(|stream| stream.lose(&error));
        self.group.abort();
        if tell && let Some(control) = &self.control {
            control.report(&text);
        }
    }
}

fn prune(pending: &mut VecDeque<Pending>) {
    while pending.front().is_some_and(Pending::is_done) {
        pending.pop_front();
    }
}

/// The watching thread.
fn watch() {
    loop {
        std::thread::sleep(PERIOD);
        if crate::backend::shutdown::is_gone() {
            return;
        }
        let all: Vec<_> = lock(&ALL).iter().filter_map(Weak::upgrade).collect();
        all.iter().for_each(|watched| watched.look());
    }
}
