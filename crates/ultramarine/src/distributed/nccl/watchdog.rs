//! The watchdog of groups of devices. A rank that is missing halts a stream, and with it whatever waits for that stream. So a
//! thread looks at what groups have enqueued: where another process has ended, the engine has failed, or an operation takes
//! longer than the limit, it says what waits, marks the values as lost, and has the backend end the group. Threads that
//! wait for these values wake up with the error.

use super::control::{Bad, Control};
use crate::backend::{CollectiveGroup, DeviceStream};
use crate::error::{Error, Result};
use crate::sync::lock;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, Once, OnceLock, Weak};
use std::time::{Duration, Instant};
use ultramarine_runtime::log::{self, Level};

/// Longest time that an operation may take, unless `ULTRAMARINE_DISTRIBUTED_TIMEOUT` says another one.
const LIMIT: Duration = Duration::from_secs(300);

/// Time that an operation gets to end by itself when another process has ended: its part may be done.
const GRACE: Duration = Duration::from_secs(3);

/// Time that the reason of an engine's failure gets to arrive: a process that has ended, most often.
const REASON: Duration = Duration::from_secs(1);

/// Time between looks.
const PERIOD: Duration = Duration::from_millis(100);

/// Operations that are kept before those that are done are looked for.
const MANY: usize = 32;

/// Waiting operations that a report names.
const SHOWN: usize = 4;

/// The limit of `ULTRAMARINE_DISTRIBUTED_TIMEOUT`, in seconds; `None` for 0.
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

/// An operation that is enqueued, or was.
struct Pending {
    description: String,
    since: Instant,
    /// Its number on a stream; `None` while the backend is asked to enqueue it, which may wait for other ranks at the first
    /// operations of a group.
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
    /// "rank 0 of 2".
    place: String,
    control: Option<Arc<Control>>,
    pending: Mutex<VecDeque<Pending>>,
    /// The engine's failure, and its time.
    trouble: OnceLock<(String, Instant)>,
    /// Why the group cannot be used any more.
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

    /// Fails once the group has.
    ///
    /// # Errors
    /// [`Error::Runtime`] with the reason.
    pub fn check(&self, op: &str) -> Result<()> {
        match self.failed.get() {
            None => Ok(()),
            Some(why) => Err(Error::runtime(
                op,
                format!("{why}. The group cannot be used any more. Start the processes again."),
            )),
        }
    }

    /// Watches an operation that `enqueue` enqueues, at the place that it returns. One at a time.
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
            // Work that was enqueued meanwhile is lost, too.
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

    /// The trouble that is known of other processes.
    fn bad(&self) -> Option<Bad> {
        self.control.as_ref().and_then(|control| control.bad())
    }

    /// An engine's error with what is known of other processes.
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

    /// Looks once.
    fn look(&self) {
        if self.failed.get().is_some() {
            return;
        }
        let waited = {
            let mut pending = lock(&self.pending);
            prune(&mut pending);
            pending.front().map(|first| first.since.elapsed())
        };
        // A group that has failed is not asked again.
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
        // Before the stream goes on.
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
