//! The profile that runs, and what it has recorded.

use super::{Clock, Event, Planning, Report};
use crate::backend::{self, DeviceState, Mark};
use crate::error::{Error, Result};
use crate::{stream, sync::lock};
use std::cell::{Cell, RefCell};
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Instant;
use ultramarine_runtime::fork::{self, ForkStage, Hook};

/// Tasks that one profile records.
const MAX_EVENTS: usize = 1_000_000;

/// Tasks whose times are open, after which the devices are asked for them. A stream is never more than a few hundred
/// submissions ahead, so that most are known then.
const MANY_OPEN: usize = 1024;

/// Nanoseconds of a profile from which on it is looked at its end how far clocks went apart: some microseconds a second,
/// as many as one look at a clock may be wrong.
const LONG: i64 = 1_000_000_000;

/// Number of the profile that runs; 0: none does.
static RUNNING: AtomicU32 = AtomicU32::new(0);

static SESSION: Mutex<Option<Session>> = Mutex::new(None);

/// The right to record to one profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Recorder(NonZeroU32);

/// The profile that runs, if one does: the whole cost of profiles where none does.
#[inline]
pub(crate) fn recorder() -> Option<Recorder> {
    NonZeroU32::new(RUNNING.load(Ordering::Relaxed)).map(Recorder)
}

/// Marks around a task, until the device has got there.
struct Open {
    /// Index of the event.
    event: usize,
    marks: [Arc<Mark>; 2],
    /// From the device's clock to the host's.
    offset: i64,
}

struct Session {
    recorder: Recorder,
    /// By the clock of [`now`].
    began: i64,
    events: Vec<Event>,
    open: Vec<Open>,
    /// Number of open marks at which the devices are asked.
    ask_at: usize,
    plannings: Vec<Planning>,
    /// The offsets of devices' clocks to the host's, when the profile began.
    offsets: Vec<(&'static DeviceState, Option<i64>)>,
    threads: Vec<(u32, String)>,
    dropped: u64,
}

/// Nanoseconds of the host's clock since the first call.
pub(super) fn now() -> i64 {
    static ORIGIN: OnceLock<Instant> = OnceLock::new();
    i64::try_from(ORIGIN.get_or_init(Instant::now).elapsed().as_nanos()).unwrap_or(i64::MAX)
}

thread_local! {
    static THREAD: Cell<u32> = const { Cell::new(u32::MAX) };
}

/// The number of the calling thread, counted over the process from its first task in any profile.
fn thread() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    THREAD.with(|thread| {
        if thread.get() == u32::MAX {
            thread.set(NEXT.fetch_add(1, Ordering::Relaxed));
        }
        thread.get()
    })
}

fn since(began: i64, time: i64) -> u64 {
    u64::try_from(time - began).unwrap_or(0)
}

impl Session {
    fn thread(&mut self) -> u32 {
        let number = thread();
        if let Some(at) = self.threads.iter().position(|(n, _)| *n == number) {
            return at as u32;
        }
        let name = std::thread::current().name().unwrap_or("unnamed").to_owned();
        self.threads.push((number, name));
        self.threads.len() as u32 - 1
    }

    /// Takes the times of marks that their devices have got to. What a device that failed does not say stays the host's.
    fn ask(&mut self, ask: fn(&Mark) -> Result<Option<u64>>) {
        let (events, began) = (&mut self.events, self.began);
        self.open.retain(|open| {
            let times = open.marks.each_ref().map(|mark| ask(mark));
            let [Ok(Some(start)), Ok(Some(end))] = times else {
                return times.iter().all(Result::is_ok);
            };
            let start_here = i64::try_from(start).unwrap_or(i64::MAX).saturating_add(open.offset);
            let event = &mut events[open.event];
            event.start = since(began, start_here);
            event.duration = end.saturating_sub(start);
            event.clock = Clock::Device;
            false
        });
    }

    /// Corrects times of devices whose clocks went apart from the host's since the profile began, evenly.
    fn follow_clocks(&mut self) {
        for (device, before) in &self.offsets {
            let length = now() - self.began;
            let after = if length < LONG { None } else { device.clock_offset(now) };
            let (Some(before), Some(after)) = (before, after) else { continue };
            let corrected = |time: u64| {
                let drift = i128::from(after - before) * i128::from(time) / i128::from(length);
                time.saturating_add_signed(drift as i64)
            };
            let those = |e: &&mut Event| e.clock == Clock::Device && e.device == device.device;
            for event in self.events.iter_mut().filter(those) {
                // Ends, too, so that what followed on each other still does.
                let end = corrected(event.start.saturating_add(event.duration));
                event.start = corrected(event.start);
                event.duration = end.saturating_sub(event.start);
            }
        }
    }
}

/// The session, if it is the recorder's.
fn session<'a>(
    guard: &'a mut MutexGuard<'_, Option<Session>>,
    recorder: Recorder,
) -> Option<&'a mut Session> {
    guard.as_mut().filter(|s| s.recorder == recorder)
}

pub(super) fn start() -> Result<Recorder> {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    fork::register(ForkStage::Profile, &FORK_HOOK);
    let number = NonZeroU32::new(NEXT.fetch_add(1, Ordering::Relaxed)).unwrap_or(NonZeroU32::MIN);
    let recorder = Recorder(number);
    {
        let mut running = lock(&SESSION);
        if running.is_some() {
            return Err(Error::runtime(
                "profile",
                "A profile is running already, and a process has only one at a time. Finish it before you start another.",
            ));
        }
        *running = Some(Session {
            recorder,
            began: now(),
            events: Vec::new(),
            open: Vec::new(),
            ask_at: MANY_OPEN,
            plannings: Vec::new(),
            offsets: Vec::new(),
            threads: Vec::new(),
            dropped: 0,
        });
    }
    // Devices that are loaded later are looked at before their first task.
    for device in std::iter::once(backend::host()).chain(backend::gpus().iter().copied()) {
        offset(recorder, device);
    }
    RUNNING.store(number.get(), Ordering::Relaxed);
    Ok(recorder)
}

/// Nanoseconds to add to a time of the device's clock to get one of [`now`]'s.
pub(super) fn offset(recorder: Recorder, device: &'static DeviceState) -> Option<i64> {
    let known = |session: &Session| {
        let found = session.offsets.iter().find(|(d, _)| std::ptr::eq(*d, device));
        found.map(|(_, offset)| *offset)
    };
    if let Some(known) = session(&mut lock(&SESSION), recorder).and_then(|s| known(s)) {
        return known;
    }
    // Without the lock: it takes a while.
    let found = device.clock_offset(now);
    let mut guard = lock(&SESSION);
    let session = session(&mut guard, recorder)?;
    if let Some(known) = known(session) {
        return known;
    }
    session.offsets.push((device, found));
    found
}

/// Keeps an event, whose times are the host's as [`now`] has them, with the marks by which the device times it.
pub(super) fn record(
    recorder: Recorder,
    mut event: Event,
    [start, end]: [i64; 2],
    marks: Option<([Arc<Mark>; 2], i64)>,
) {
    let mut guard = lock(&SESSION);
    let Some(session) = session(&mut guard, recorder) else { return };
    if session.events.len() >= MAX_EVENTS {
        session.dropped += 1;
        return;
    }
    event.thread = session.thread();
    event.host_start = since(session.began, start);
    event.host_duration = since(start, end);
    (event.start, event.duration) = (event.host_start, event.host_duration);
    if let Some((marks, offset)) = marks {
        session.open.push(Open { event: session.events.len(), marks, offset });
    }
    session.events.push(event);
    if session.open.len() >= session.ask_at {
        session.ask(Mark::time);
        session.ask_at = MANY_OPEN.max(2 * session.open.len());
    }
}

impl Recorder {
    /// Runs the planning of an evaluation of so many operations, and records it. `count` says how many tasks it gave.
    pub(crate) fn planning<T>(
        self,
        operations: usize,
        plan: impl FnOnce() -> T,
        count: impl FnOnce(&T) -> usize,
    ) -> T {
        let start = now();
        let planned = plan();
        let end = now();
        let tasks = count(&planned);
        if let Some(session) = session(&mut lock(&SESSION), self)
            && session.plannings.len() < MAX_EVENTS
        {
            let (start, duration) = (since(session.began, start), since(start, end));
            let thread = session.thread();
            session.plannings.push(Planning { operations, tasks, start, duration, thread });
        }
        planned
    }
}

/// Ends a profile; `None` if it is not the one that runs.
fn end(recorder: Recorder) -> Option<Session> {
    lock(&SESSION).take_if(|s| s.recorder == recorder)
}

fn stop(recorder: Recorder) {
    let (number, order) = (recorder.0.get(), Ordering::Relaxed);
    let _ = RUNNING.compare_exchange(number, 0, order, order);
}

pub(super) fn cancel(recorder: Recorder) {
    stop(recorder);
    // Without the lock: slots go back to their backends.
    drop(end(recorder));
}

pub(super) fn finish(recorder: Recorder) -> Option<Report> {
    stop(recorder);
    // Work that was begun while the profile ran is done; then the devices get to the marks behind it.
    stream::synchronize_all();
    let mut session = end(recorder)?;
    session.ask(Mark::wait);
    session.follow_clocks();
    Some(Report {
        events: session.events,
        plannings: session.plannings,
        threads: session.threads.into_iter().map(|(_, name)| name).collect(),
        dropped: session.dropped,
    })
}

thread_local! {
    static HELD: RefCell<Option<MutexGuard<'static, Option<Session>>>> = const { RefCell::new(None) };
}

/// A profile stays with the parent: the child's devices do not answer.
static FORK_HOOK: Hook = Hook {
    prepare: || fork::keep(&HELD, lock(&SESSION)),
    parent: || drop(fork::take(&HELD)),
    child: || {
        RUNNING.store(0, Ordering::Relaxed);
        if let Some(mut session) = fork::take(&HELD) {
            std::mem::forget(session.take());
        }
    },
};
