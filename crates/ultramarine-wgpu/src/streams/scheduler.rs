//! The streams of a device. Batches are recorded in an order that streams and events allow. They
//! are submitted when something waits for them, or when the queue would become empty.

use super::feeder::Feeder;
use super::lanes::{Item, Lanes};
use super::submission::Submissions;
use super::{Batch, Event};
use crate::context::{Context, lock};
use crate::hal::{self, Place};
use crate::memory::Pool;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use ultramarine_abi::helper::Result;
use wgpu_hal::Queue as _;

/// Number of running submissions from which on the queue is busy.
const BUSY: usize = 2;
/// Number of actions that justify a submission, if the queue has little work.
const WORTH: usize = 32;
/// Minimum time between two smaller submissions, because a submission takes drivers a large part of
/// this time.
const PAUSE: Duration = Duration::from_micros(50);
/// Time between two checks whether a device is lost.
const PATIENCE: Duration = Duration::from_secs(1);
/// Default limit on the bytes of uploads in flight.
const STAGING: u64 = 256 << 20;

/// The state behind the lock.
struct State {
    submissions: Submissions,
    lanes: Lanes,
    feeder: Option<Feeder>,
    /// True if the feeder takes care of recorded commands.
    watched: bool,
    /// Time of the last submission that nothing waited for.
    flushed: Option<Instant>,
}

/// The feeder's next step.
pub(super) enum Next {
    /// Wait for a submission.
    Wait(u64),
    /// Waits for this time.
    Sleep(Duration),
}

impl State {
    /// Returns true if the queue has little work, and the recorded commands justify a submission.
    fn is_due(&mut self) -> bool {
        let worth = self.submissions.open_actions() >= WORTH
            || self.flushed.is_none_or(|at| at.elapsed() >= PAUSE);
        worth && self.submissions.running().len() < BUSY
    }

    fn flush(&mut self) -> Result<()> {
        self.flushed = Some(Instant::now());
        self.submissions.flush()
    }
}

/// The queue of a device and its streams. It records batches in an order that streams and events
/// allow, and decides when to submit them.
pub struct Scheduler {
    pub(super) context: Arc<Context>,
    pub(super) uploads: Pool,
    pub(super) downloads: Pool,
    staging: AtomicU64,
    tick: f32,
    state: Mutex<State>,
    /// Signals that something was recorded or submitted.
    changed: Condvar,
}

impl Scheduler {
    /// Makes the scheduler of a device's queue.
    pub fn new(context: Arc<Context>, queue: hal::Queue) -> Self {
        // SAFETY: the queue is open.
        let tick = unsafe { queue.get_timestamp_period() };
        let state = State {
            submissions: Submissions::new(context.clone(), queue),
            lanes: Lanes::default(),
            feeder: None,
            watched: false,
            flushed: None,
        };
        Self {
            context,
            uploads: Pool::new(Place::Upload),
            downloads: Pool::new(Place::Download),
            staging: AtomicU64::new(STAGING),
            tick,
            state: Mutex::new(state),
            changed: Condvar::new(),
        }
    }

    /// Returns the limit on the bytes of uploads in flight.
    pub fn staging_limit(&self) -> u64 {
        self.staging.load(Ordering::Relaxed)
    }

    /// Sets the limit on the bytes of uploads in flight.
    pub fn set_staging_limit(&self, bytes: u64) {
        self.staging.store(bytes, Ordering::Relaxed);
    }

    /// Returns the nanoseconds of a step of the queue's clock.
    pub fn tick(&self) -> f32 {
        self.tick
    }

    pub(super) fn forked(&self) -> bool {
        self.context.forked()
    }

    pub(super) fn open_lane(&self) -> u64 {
        lock(&self.state).lanes.open()
    }

    pub(super) fn close_lane(&self, lane: u64) {
        let mut state = lock(&self.state);
        state.lanes.close(lane);
        self.context.hold_work(state.lanes.pending());
    }

    /// Enqueues a batch on a stream.
    pub fn submit(self: &Arc<Self>, lane: u64, batch: Batch) -> Result<()> {
        if batch.actions.is_empty() {
            return Ok(());
        }
        self.submit_with(lane, |_| Ok(batch))
    }

    /// Enqueues a batch that is made while the lock is held.
    pub(super) fn submit_with(
        self: &Arc<Self>,
        lane: u64,
        make: impl FnOnce(&mut Submissions) -> Result<Batch>,
    ) -> Result<()> {
        self.context.usable()?;
        let mut state = lock(&self.state);
        let batch = make(&mut state.submissions)?;
        self.add(&mut state, lane, Item::Batch(batch))?;
        self.pace(&mut state)
    }

    /// Makes an event reach a value once the stream's earlier work is complete.
    pub fn record(self: &Arc<Self>, lane: u64, event: &Event, value: u64) -> Result<()> {
        self.context.usable()?;
        let mut state = lock(&self.state);
        let added = self.add(&mut state, lane, Item::Record(event.clone(), value));
        let State { lanes, submissions, .. } = &mut *state;
        if lanes.pending() > 0 {
            lanes.advance(&mut |batch| submissions.add(batch));
            self.context.hold_work(lanes.pending());
            self.pace(&mut state)?;
        }
        drop(state);
        self.changed.notify_all();
        added
    }

    /// Makes a stream's later work wait for a value.
    pub fn wait_stream(&self, lane: u64, event: &Event, value: u64) -> Result<()> {
        self.context.usable()?;
        self.add(&mut lock(&self.state), lane, Item::Wait(event.clone(), value))
    }

    fn add(&self, state: &mut State, lane: u64, item: Item) -> Result<()> {
        let State { lanes, submissions, .. } = state;
        let added = lanes.add(lane, item, &mut |batch| submissions.add(batch));
        self.context.hold_work(lanes.pending());
        added
    }

    /// Submits the recorded commands if the queue has little work. Otherwise the feeder will submit
    /// them.
    fn pace(self: &Arc<Self>, state: &mut State) -> Result<()> {
        let open = state.submissions.open_actions();
        if open == 0 || state.watched && open < WORTH {
            return Ok(());
        }
        if state.is_due() {
            return state.flush();
        }
        if state.watched {
            return Ok(());
        }
        if state.feeder.is_none() {
            state.feeder = Feeder::start(self);
        }
        match &state.feeder {
            Some(feeder) => {
                state.watched = true;
                feeder.wake();
                Ok(())
            }
            None => state.flush(),
        }
    }

    /// Submits the remaining commands if a submission is due. Returns what to wait for before the
    /// next check, or `None` if no commands remain.
    pub(super) fn feed(&self) -> Option<Next> {
        let mut state = lock(&self.state);
        let left = state.submissions.open_actions() > 0;
        // A failed submission means that the device is lost, which all waiting threads report.
        if left && state.is_due() {
            _ = state.flush();
        } else if left {
            let mut running = state.submissions.running();
            let behind = running.len().checked_sub(BUSY);
            let oldest = behind.and_then(|behind| running.nth(behind)).map(Next::Wait);
            drop(running);
            let rest = || PAUSE.saturating_sub(state.flushed.map_or(PAUSE, |at| at.elapsed()));
            return Some(oldest.unwrap_or_else(|| Next::Sleep(rest())));
        }
        state.watched = false;
        None
    }

    /// Returns the names of the running commands, for messages.
    pub(super) fn names(&self) -> String {
        lock(&self.state).submissions.names()
    }

    /// Waits for the running commands, and frees the memory that they used.
    pub fn reclaim(&self) -> Result<()> {
        lock(&self.state).submissions.reclaim()?;
        self.uploads.trim();
        self.downloads.trim();
        Ok(())
    }

    /// Blocks until a submission is complete.
    fn wait_submission(&self, mut state: MutexGuard<'_, State>, submission: u64) -> Result<()> {
        if submission > state.submissions.submitted() {
            state.submissions.flush()?;
        }
        drop(state);
        self.context.wait(submission, || self.names())?;
        lock(&self.state).submissions.retire();
        Ok(())
    }

    /// Blocks until the oldest submission is complete. Returns false if there is none.
    pub(super) fn wait_oldest(&self) -> Result<bool> {
        let mut state = lock(&self.state);
        state.submissions.flush()?;
        let Some(oldest) = state.submissions.running().next() else { return Ok(false) };
        self.wait_submission(state, oldest)?;
        Ok(true)
    }

    /// Blocks until all work of a stream is complete.
    pub fn synchronize(&self, lane: u64) -> Result<()> {
        self.context.usable()?;
        let mut state = lock(&self.state);
        while !state.lanes.get(lane)?.pending.is_empty() {
            self.context.usable()?;
            state = self.wait_change(state);
        }
        let lane = state.lanes.get(lane)?;
        let (last, failed) = (lane.last, lane.failed.take());
        self.wait_submission(state, last)?;
        failed.map_or(Ok(()), Err)
    }

    /// Blocks until an event has a value.
    pub fn wait_host(&self, event: &Event, value: u64) -> Result<()> {
        self.context.usable()?;
        let mut state = lock(&self.state);
        let submission = loop {
            match event.submission(value) {
                Some(submission) => break submission,
                None => {
                    self.context.usable()?;
                    state = self.wait_change(state);
                }
            }
        };
        self.wait_submission(state, submission)?;
        // Update the event, so that queries return the value from now on.
        event.value(self.context.completed());
        Ok(())
    }

    /// Blocks until something was recorded, or for a limited time, because the device may be lost
    /// meanwhile.
    fn wait_change<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed.wait_timeout(state, PATIENCE).unwrap_or_else(PoisonError::into_inner).0
    }

    /// The event's current value.
    pub fn query(&self, event: &Event) -> u64 {
        match self.context.forked() {
            true => 0,
            false => event.value(self.context.completed()),
        }
    }
}
