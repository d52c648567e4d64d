//! From batches to submissions: batches are recorded one after the other, and submitted together.

use super::groups::Groups;
use super::recording::{self, Recording, Words};
use super::{Action, Batch};
use crate::context::{Context, of_hal};
use crate::hal::{self, Place};
use crate::memory::{Arena, Block};
use std::collections::VecDeque;
use std::sync::Arc;
use ultramarine_abi::helper::{Failure, Result};
use ultramarine_abi::status;
use wgpu_hal::{CommandEncoder as _, CommandEncoderDescriptor, Device as _};

/// Resources that commands use until they are complete.
#[derive(Default)]
struct Uses {
    batches: Vec<Batch>,
    words: Vec<Arc<Block>>,
    /// Groups that no later command uses.
    groups: Vec<hal::BindGroup>,
}

/// Minimum alignment of small uploads and of words.
const ALIGNMENT: u64 = 16;
/// Approximate limit on the actions of a submission.
const ACTIONS: usize = 256;
/// Approximate limit on the workgroups of a submission, because systems abort a submission that
/// takes seconds.
const WORKGROUPS: u64 = 1 << 18;

/// Commands that have not been submitted yet.
struct Open {
    recording: Recording,
    uses: Uses,
    actions: usize,
    workgroups: u64,
}

/// A submission that may not be complete.
struct InFlight {
    submission: u64,
    encoder: hal::CommandEncoder,
    commands: hal::List,
    uses: Uses,
}

/// The queue, and the work that was submitted to it.
pub(super) struct Submissions {
    context: Arc<Context>,
    queue: hal::Queue,
    /// The number of the last submission.
    submitted: u64,
    open: Option<Open>,
    in_flight: VecDeque<InFlight>,
    encoders: Vec<hal::CommandEncoder>,
    groups: Groups,
    /// Words of commands and small uploads.
    arena: Arena,
    /// Bound instead of words, if a kernel has none in memory.
    no_words: Option<Arc<Block>>,
}

impl Submissions {
    pub fn new(context: Arc<Context>, queue: hal::Queue) -> Self {
        Self {
            context,
            queue,
            submitted: 0,
            open: None,
            in_flight: VecDeque::new(),
            encoders: Vec::new(),
            groups: Groups::default(),
            arena: Arena::default(),
            no_words: None,
        }
    }

    pub fn submitted(&self) -> u64 {
        self.submitted
    }

    /// Number of actions that have not been submitted yet.
    pub fn open_actions(&self) -> usize {
        self.open.as_ref().map_or(0, |open| open.actions)
    }

    /// Returns the submissions that are not complete, the oldest first.
    pub fn running(&mut self) -> impl ExactSizeIterator<Item = u64> {
        self.retire();
        self.in_flight.iter().map(|one| one.submission)
    }

    /// Records a batch. Returns the number of its submission, which may not have been made yet. If
    /// memory is short, waits for running work and releases its memory.
    pub fn add(&mut self, batch: Batch) -> Result<u64> {
        let prepared = match self.prepare(&batch) {
            Err(failure) if failure.code == status::OUT_OF_MEMORY => {
                self.reclaim()?;
                self.prepare(&batch).map_err(|failure| match batch.names.len() {
                    0 | 1 => failure,
                    // The host waits only for the last one, and would use the results of the
                    // others.
                    _ => {
                        self.context.abandon(&format!("{}: {}", named(&batch.names), failure.text))
                    }
                })
            }
            prepared => prepared,
        };
        let (words, places) = prepared?;
        let Self { open: Some(open), groups, context, .. } = self else {
            return Err(Failure::new("no list of commands is open"));
        };
        if let Err(failure) = open.recording.add(context, groups, &batch, (&words, &places)) {
            // A part of it may have been recorded.
            return Err(context.abandon(&format!("{}: {}", named(&batch.names), failure.text)));
        }
        open.actions += batch.actions.len();
        open.workgroups += batch.actions.iter().map(workgroups).sum::<u64>();
        let full = open.actions >= ACTIONS || open.workgroups >= WORKGROUPS;
        open.uses.words.extend(words.map(|(block, _)| block));
        open.uses.words.dedup_by(|a, b| Arc::ptr_eq(a, b));
        open.uses.batches.push(batch);
        let submission = self.submitted + 1;
        if full {
            self.flush()?;
        }
        Ok(submission)
    }

    /// Writes bytes to memory that commands read. If memory is short, waits for running work and
    /// releases its memory.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(Arc<Block>, u64)> {
        match self.arena.write(&self.context, bytes, ALIGNMENT) {
            Err(failure) if failure.code == status::OUT_OF_MEMORY => {
                self.reclaim()?;
                self.arena.write(&self.context, bytes, ALIGNMENT)
            }
            written => written,
        }
    }

    /// Makes all steps that may fail, so that a batch is never recorded partially.
    fn prepare(&mut self, batch: &Batch) -> Result<(Words, Vec<usize>)> {
        if self.open.is_none() {
            self.begin()?;
        }
        let words = match batch.words_in_memory() {
            false => Some((self.no_words()?, 0)),
            true => {
                let mut bytes = Vec::with_capacity(batch.words.len() * 4);
                for word in &batch.words {
                    bytes.extend_from_slice(&word.to_le_bytes());
                }
                let alignment = self.context.properties.binding_alignment.max(ALIGNMENT);
                Some(self.arena.write(&self.context, &bytes, alignment)?)
            }
        };
        let places = recording::prepare(&self.context, &mut self.groups, batch, &words)?;
        Ok((words, places))
    }

    /// Returns memory that replaces the words of kernels whose words are all immediates.
    fn no_words(&mut self) -> Result<Arc<Block>> {
        if let Some(block) = &self.no_words {
            return Ok(block.clone());
        }
        let block = Block::new(&self.context, ALIGNMENT, Place::Upload)?;
        Ok(self.no_words.insert(block).clone())
    }

    fn begin(&mut self) -> Result<()> {
        self.retire();
        let encoder = match self.encoders.pop() {
            Some(encoder) => encoder,
            None => {
                let descriptor = CommandEncoderDescriptor { label: None, queue: &self.queue };
                // SAFETY: the queue is the device's.
                let made = unsafe { self.context.device.create_command_encoder(&descriptor) };
                made.map_err(|why| of_hal("a list of commands", why))?
            }
        };
        let recording = Recording::begin(&self.context, encoder)?;
        let groups = self.groups.overflow(&self.context);
        self.open = Some(Open {
            recording,
            uses: Uses { groups, ..Uses::default() },
            actions: 0,
            workgroups: 0,
        });
        Ok(())
    }

    /// Submits the recorded commands. After a failure the device is lost, because the host relies
    /// on the submission.
    pub fn flush(&mut self) -> Result<()> {
        let Some(Open { recording, uses, .. }) = self.open.take() else { return Ok(()) };
        // Earlier work may have caused the loss of the device.
        let before = match self.in_flight.is_empty() {
            true => String::new(),
            false => format!(" and {}", self.names()),
        };
        let names = || format!("submitting {}{before}", names_of(&uses.batches));
        let (encoder, commands) = match recording.end(&self.context) {
            Ok(ended) => ended,
            Err(failure) => {
                let lost = self.context.abandon(&format!("{}: {}", names(), failure.text));
                self.destroy(uses);
                return Err(lost);
            }
        };
        let submission = self.submitted + 1;
        let fence = (self.context.fence(), submission);
        // SAFETY: the commands were ended and not submitted before; the state's lock guarantees exclusive use of the
        // queue.
        if let Err(why) = unsafe { commands.submit(&self.queue, fence) } {
            let lost = self.context.abandon(&format!("{}: {why}", names()));
            self.recycle(InFlight { submission, encoder, commands, uses });
            return Err(lost);
        }
        self.submitted = submission;
        self.in_flight.push_back(InFlight { submission, encoder, commands, uses });
        Ok(())
    }

    /// Waits for all recorded commands, and drops unused memory.
    pub fn reclaim(&mut self) -> Result<()> {
        self.flush()?;
        let names = || self.names();
        self.context.wait(self.submitted, names)?;
        self.retire();
        self.trim();
        Ok(())
    }

    fn trim(&mut self) {
        self.arena.trim();
        if self.in_flight.is_empty() && self.open.is_none() {
            for group in self.groups.take() {
                // SAFETY: nothing that could use it is running.
                unsafe { self.context.device.destroy_bind_group(group) };
            }
        }
    }

    /// Releases the resources of completed submissions.
    pub fn retire(&mut self) {
        if self.in_flight.is_empty() {
            return;
        }
        let completed = self.context.completed();
        while let Some(done) = self.in_flight.pop_front_if(|first| first.submission <= completed) {
            self.recycle(done);
        }
    }

    fn recycle(&mut self, done: InFlight) {
        let InFlight { mut encoder, commands, uses, .. } = done;
        // SAFETY: the commands have completed, or were never submitted.
        unsafe { encoder.reset_all(std::iter::once(commands.into_commands())) };
        self.encoders.push(encoder);
        self.destroy(uses);
    }

    fn destroy(&self, uses: Uses) {
        for group in uses.groups {
            // SAFETY: everything that used it came before this submission, and has completed.
            unsafe { self.context.device.destroy_bind_group(group) };
        }
    }

    /// Returns the names of the running commands, for messages.
    pub fn names(&self) -> String {
        let running = self.in_flight.iter().take(4).map(|one| names_of(&one.uses.batches));
        format!("running {}", running.collect::<Vec<_>>().join(", "))
    }
}

/// The workgroups of an action.
fn workgroups(action: &Action) -> u64 {
    match action {
        Action::Dispatch { groups, .. } => groups.iter().copied().map(u64::from).product(),
        Action::Copy { .. } | Action::Timestamp(_) => 0,
    }
}

/// Returns the names of commands, or only the first ones if there are many.
fn names_of(batches: &[Batch]) -> String {
    let names: Vec<_> = batches.iter().flat_map(|batch| batch.names.iter().cloned()).collect();
    named(&names)
}

fn named(names: &[Arc<str>]) -> String {
    const SHOWN: usize = 6;
    match names.len() {
        0 => "copies".to_owned(),
        n if n <= SHOWN => names.join(", "),
        n => format!("{} and {} more", names[..SHOWN].join(", "), n - SHOWN),
    }
}

impl Drop for Submissions {
    fn drop(&mut self) {
        if let Some(Open { recording, uses, .. }) = self.open.take() {
            recording.discard();
            self.destroy(uses);
        }
        if !self.context.settle(self.submitted) {
            // Commands may still use this memory, which holds a reference to the device. Both leak.
            std::mem::forget(std::mem::take(&mut self.in_flight));
        }
        while let Some(done) = self.in_flight.pop_front() {
            self.recycle(done);
        }
        self.encoders.clear();
        self.trim();
    }
}
