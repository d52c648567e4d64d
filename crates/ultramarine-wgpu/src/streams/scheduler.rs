//! The queue: batches are encoded and submitted in the order that streams and events allow.

use super::encode::{self, Encoded};
use super::lanes::{Item, Lanes};
use super::{Batch, Event};
use crate::context::{Context, lock, of_hal};
use crate::memory::{Block, Pool};
use crate::vulkan;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use ultramarine_abi::helper::{Failure, Result};
use ultramarine_abi::status;
use wgpu_hal::{CommandEncoder as _, CommandEncoderDescriptor, Device as _, Queue as _};

/// Bytes of words that a batch gets at least.
const WORDS: u64 = 16 << 10;

/// A submission that may not be done.
struct InFlight {
    submission: u64,
    encoder: vulkan::CommandEncoder,
    encoded: Encoded,
    /// All that the commands use.
    batch: Batch,
    _words: Option<Arc<Block>>,
}

/// The state behind the lock.
struct State {
    queue: vulkan::Queue,
    submitted: u64,
    in_flight: VecDeque<InFlight>,
    encoders: Vec<vulkan::CommandEncoder>,
    lanes: Lanes,
}

/// The queue of a device and its streams.
pub struct Scheduler {
    pub(super) context: Arc<Context>,
    pub(super) staging: Pool,
    words: Pool,
    state: Mutex<State>,
    /// Something was recorded or submitted.
    changed: Condvar,
}

impl Scheduler {
    /// The scheduler of a device's queue.
    pub fn new(context: Arc<Context>, queue: vulkan::Queue) -> Self {
        let state = State {
            queue,
            submitted: 0,
            in_flight: VecDeque::new(),
            encoders: Vec::new(),
            lanes: Lanes::default(),
        };
        Self {
            context,
            staging: Pool::default(),
            words: Pool::default(),
            state: Mutex::new(state),
            changed: Condvar::new(),
        }
    }

    pub(super) fn forked(&self) -> bool {
        self.context.forked()
    }

    pub(super) fn open_lane(&self) -> u64 {
        lock(&self.state).lanes.open()
    }

    pub(super) fn close_lane(&self, lane: u64) {
        lock(&self.state).lanes.close(lane);
    }

    /// Submits a batch on a stream, or keeps it for when the stream no longer waits.
    pub fn submit(&self, lane: u64, batch: Batch) -> Result<()> {
        if batch.actions.is_empty() {
            return Ok(());
        }
        self.add(lane, Item::Batch(batch))
    }

    /// An event takes a value once the stream's earlier work is done.
    pub fn record(&self, lane: u64, event: &Event, value: u64) -> Result<()> {
        self.add(lane, Item::Record(event.clone(), value))
    }

    /// A stream's later work waits for a value.
    pub fn wait_stream(&self, lane: u64, event: &Event, value: u64) -> Result<()> {
        self.add(lane, Item::Wait(event.clone(), value))
    }

    fn add(&self, lane: u64, item: Item) -> Result<()> {
        self.context.usable()?;
        let records = matches!(item, Item::Record(..));
        let mut state = lock(&self.state);
        let State { lanes, .. } = &mut *state;
        let mut lanes = std::mem::take(lanes);
        let mut run = |batch| self.run(&mut state, batch);
        let added = lanes.add(lane, item, &mut run);
        if records {
            lanes.advance(&mut run);
        }
        state.lanes = lanes;
        drop(state);
        self.changed.notify_all();
        added
    }

    /// Encodes and submits a batch. Returns its number. Short of memory, it waits for what runs and lets go of that.
    fn run(&self, state: &mut State, batch: Batch) -> Result<u64> {
        self.retire(state);
        let (failure, batch) = match self.try_run(state, batch) {
            Ok(submission) => return Ok(submission),
            Err(failed) => failed,
        };
        if failure.code != status::OUT_OF_MEMORY {
            return Err(failure);
        }
        self.reclaim_in(state)?;
        self.try_run(state, batch).map_err(|(failure, batch)| match batch.names.len() {
            0 | 1 => failure,
            // The host is told of the last one alone, and would use the results of the others.
            _ => self.context.abandon(&format!("{}: {}", named(&batch), failure.text)),
        })
    }

    fn try_run(
        &self,
        state: &mut State,
        batch: Batch,
    ) -> core::result::Result<u64, (Failure, Batch)> {
        let words = match self.place_words(&batch) {
            Ok(words) => words,
            Err(failure) => return Err((failure, batch)),
        };
        let mut encoder = match state.encoders.pop().map_or_else(|| self.encoder(state), Ok) {
            Ok(encoder) => encoder,
            Err(failure) => return Err((failure, batch)),
        };
        let encoded = encode::encode(&self.context, &mut encoder, &batch, words.as_deref());
        let encoded = match encoded {
            Ok(encoded) => encoded,
            Err(failure) => {
                state.encoders.push(encoder);
                return Err((failure, batch));
            }
        };
        let submission = state.submitted + 1;
        let fence = (self.context.fence(), submission);
        // SAFETY: the commands were ended and not submitted before; the lock makes this the only use of the queue.
        let submitted = unsafe { state.queue.submit(&[&encoded.commands], &[], fence) };
        if let Err(why) = submitted {
            let failure = self.context.lose(&format!("submitting {}", named(&batch)), why);
            self.recycle(state, encoder, encoded);
            return Err((failure, batch));
        }
        state.submitted = submission;
        let done = InFlight { submission, encoder, encoded, batch, _words: words };
        state.in_flight.push_back(done);
        Ok(submission)
    }

    /// Writes a batch's words to where kernels read them.
    fn place_words(&self, batch: &Batch) -> Result<Option<Arc<Block>>> {
        if batch.words.is_empty() {
            return Ok(None);
        }
        let bytes: Vec<u8> = batch.words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let block = self.words.take(&self.context, bytes.len() as u64, WORDS)?;
        // SAFETY: the pool gave it to nobody else.
        unsafe { block.write(0, &bytes)? };
        Ok(Some(block))
    }

    fn encoder(&self, state: &State) -> Result<vulkan::CommandEncoder> {
        let descriptor = CommandEncoderDescriptor { label: None, queue: &state.queue };
        // SAFETY: the queue is the device's.
        let made = unsafe { self.context.device.create_command_encoder(&descriptor) };
        made.map_err(|why| of_hal("a list of commands", why))
    }

    /// Waits for what runs, and gives back the memory that this used.
    pub fn reclaim(&self) -> Result<()> {
        self.reclaim_in(&mut lock(&self.state))
    }

    fn reclaim_in(&self, state: &mut State) -> Result<()> {
        let running = || running(&state.in_flight);
        self.context.wait(state.submitted, running)?;
        self.retire(state);
        self.staging.trim();
        self.words.trim();
        self.context.release_free();
        Ok(())
    }

    fn recycle(&self, state: &mut State, mut encoder: vulkan::CommandEncoder, encoded: Encoded) {
        // SAFETY: the commands are done, or were never submitted.
        unsafe {
            encoder.reset_all(std::iter::once(encoded.commands));
            for group in encoded.groups {
                self.context.device.destroy_bind_group(group);
            }
        }
        state.encoders.push(encoder);
    }

    /// Lets go of what submissions used that are done.
    fn retire(&self, state: &mut State) {
        let completed = self.context.completed();
        while state.in_flight.front().is_some_and(|first| first.submission <= completed) {
            if let Some(done) = state.in_flight.pop_front() {
                self.recycle(state, done.encoder, done.encoded);
            }
        }
    }

    /// Blocks until a submission is done.
    fn wait_submission(&self, submission: u64) -> Result<()> {
        let running = || running(&lock(&self.state).in_flight);
        self.context.wait(submission, running)?;
        self.retire(&mut lock(&self.state));
        Ok(())
    }

    /// Blocks until all work of a stream is done.
    pub fn synchronize(&self, lane: u64) -> Result<()> {
        self.context.usable()?;
        let mut state = lock(&self.state);
        while !state.lanes.get(lane)?.pending.is_empty() {
            self.context.usable()?;
            state = self.wait_change(state);
        }
        let (last, failed) = {
            let lane = state.lanes.get(lane)?;
            (lane.last, lane.failed.take())
        };
        drop(state);
        self.wait_submission(last)?;
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
        drop(state);
        self.wait_submission(submission)?;
        // So that a query says the value from now on.
        event.value(self.context.completed());
        Ok(())
    }

    fn wait_change<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// The event's present value.
    pub fn query(&self, event: &Event) -> u64 {
        match self.context.forked() {
            true => 0,
            false => event.value(self.context.completed()),
        }
    }
}

/// The names of running batches, for messages.
fn running(in_flight: &VecDeque<InFlight>) -> String {
    let batches: Vec<_> = in_flight.iter().map(|f| named(&f.batch)).take(4).collect();
    format!("running {}", batches.join(", "))
}

/// The names of a batch's commands, the first of many.
fn named(batch: &Batch) -> String {
    const SHOWN: usize = 6;
    match batch.names.len() {
        0 => "copies".to_owned(),
        n if n <= SHOWN => batch.names.join(", "),
        n => format!("{} and {} more", batch.names[..SHOWN].join(", "), n - SHOWN),
    }
}

impl Drop for Scheduler {
    fn drop(&mut self) {
        let mut state = lock(&self.state);
        // A lost device has nothing that could still run.
        _ = self.context.wait(state.submitted, String::new);
        while let Some(done) = state.in_flight.pop_front() {
            self.recycle(&mut state, done.encoder, done.encoded);
        }
        state.encoders.clear();
        self.staging.trim();
        self.words.trim();
    }
}
