//! Evaluations that repeat: an evaluation whose structure was recorded before runs the recorded
//! commands again.
//!
//! The first evaluation of a structure leaves its hash. A later one is recorded, and all further
//! ones run the executable without lowering, grouping and planning. In these, nodes that only the
//! evaluation holds get no values. The cache keeps the most recently used structures.

use super::run::{self, interrupted, panicked};
use super::structure::{self, External, MOST_WORDS, Scratch, Structure};
use super::{device_of, lower::Tape};
use super::{numbers, segments};
use crate::backend::Exec;
use crate::error::{Error, Result};
use crate::node::{Inputs, Node, Value};
use crate::ops::rules::multi_output::MultiOutput;
use crate::profile::Recorder;
use crate::scalar::Scalar;
use crate::sync::lock;
use smallvec::SmallVec;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use ultramarine_runtime::backend::executable::{Executable, Failure, Recorded, Recording};
use ultramarine_runtime::interrupt;

/// An evaluation with fewer nodes is not worth an executable.
pub(super) const FEWEST: usize = 8;
/// Limit on the structures in the cache.
const MOST: usize = 128;
/// Limit on the structures in the cache that differ only by their numbers.
const MOST_ALIKE: usize = 4;
/// Size of the table of the hashes of seen structures: the number of rows, and the hashes in a row.
const ROWS: usize = 128;
const SEEN: usize = 4;
/// After this many consecutive new evaluations of the same number of nodes, most of them are not
/// looked up.
const MOST_MISSES: u8 = 32;
/// After that, one evaluation in this many is looked up.
const RARELY: u8 = 16;
/// After this many consecutive new evaluations of the same number of nodes, they are compared to
/// find the differences.
const MISSES_BEFORE_COMPARING: u8 = 3;

/// The recorded commands of a structure.
struct Replay {
    executable: Arc<Executable>,
    /// Nodes that have other holders, by their places on the tape, with the number of values of
    /// each. A constant that stays lazy has 0.
    held: Box<[(u32, u32)]>,
    /// Numbers of the commands that come from constants, each by its index among the commands'
    /// numbers and among the graph's.
    numbers: Box<[(u32, u32)]>,
}

/// A structure that was recorded. `replay` is `None` if its commands cannot run again.
struct Known {
    words: Box<[u64]>,
    /// The graph's numbers at the time of the recording, each with a flag that is set if the number
    /// must be equal again.
    numbers: Box<[(Scalar, bool)]>,
    replay: Option<Replay>,
}

/// A structure in the cache.
struct Entry {
    hash: u64,
    known: Arc<Known>,
    /// True if a later evaluation had the structure again.
    found: bool,
}

/// The cached structures. The most recently found structure comes last.
struct Cache {
    entries: Vec<Entry>,
    /// Total number of words of all structures.
    words: usize,
    /// Hashes of evaluations and how often each was seen. In a row, the most recent hash comes
    /// first.
    seen: [[(u64, u8); SEEN]; ROWS],
    /// Number of structures that were dropped without having been found again. The higher it is,
    /// the rarer are recordings.
    wasted: u8,
}

static CACHE: Mutex<Cache> =
    Mutex::new(Cache { entries: Vec::new(), words: 0, seen: [[(0, 0); SEEN]; ROWS], wasted: 0 });

/// Result of a lookup in the cache.
enum Found {
    Known(Arc<Known>),
    /// The structure was seen often enough to be recorded.
    Again,
    New,
}

impl Cache {
    fn find(&mut self, structure: &Structure) -> Found {
        let mut others = 0;
        let same = |Entry { hash, known, .. }: &Entry| {
            let alike = *hash == structure.hash && *known.words == structure.words[..];
            let mut numbers = known.numbers.iter().zip(&structure.numbers);
            let same = alike && numbers.all(|((known, stays), number)| !stays || known == number);
            others += (alike && !same) as usize;
            same
        };
        if let Some(i) = self.entries.iter().rposition(same) {
            self.wasted = self.wasted.saturating_sub(1);
            self.entries[i].found = true;
            let known = self.entries[i].known.clone();
            self.entries[i..].rotate_left(1);
            return Found::Known(known);
        }
        if others >= MOST_ALIKE {
            return Found::New;
        }
        if self.see(structure.hash) >= 2 + self.wasted / 8 { Found::Again } else { Found::New }
    }

    /// Counts one more sight of a hash, and returns how often the hash was seen.
    fn see(&mut self, hash: u64) -> u8 {
        let row = &mut self.seen[hash as usize % ROWS];
        let place = row.iter().position(|seen| seen.0 == hash).unwrap_or(SEEN - 1);
        row[..=place].rotate_right(1);
        let before = if row[0].0 == hash { row[0].1 } else { 0 };
        row[0] = (hash, before.saturating_add(1));
        row[0].1
    }

    /// Adds a structure. Returns the entries that it replaces, which the caller drops after it has
    /// released the lock.
    fn insert(&mut self, hash: u64, known: Known) -> Vec<Entry> {
        let mut dropped = Vec::new();
        let seen = &mut self.seen[hash as usize % ROWS];
        seen.iter_mut().filter(|seen| seen.0 == hash).for_each(|seen| *seen = (0, 0));
        self.words += known.words.len();
        self.entries.push(Entry { hash, known: Arc::new(known), found: false });
        while self.entries.len() > MOST || self.words > 4 * MOST_WORDS {
            let oldest = self.entries.remove(0);
            if !oldest.found {
                self.wasted = self.wasted.saturating_add(1);
            }
            self.words -= oldest.known.words.len();
            dropped.push(oldest);
        }
        dropped
    }
}

thread_local! {
    /// Memory for making structures. `None` while it is in use.
    static SCRATCH: Cell<Option<Box<Scratch>>> = const { Cell::new(None) };
    /// Numbers of consecutive evaluations without an executable, by the number of their nodes.
    static MISSES: [Cell<u8>; 32] = const { [const { Cell::new(0) }; 32] };
}

/// For each number of nodes, modulo 64: a bit that is set if the last such evaluation ran by an
/// executable.
static HITS: AtomicU64 = AtomicU64::new(0);

/// Returns true if an evaluation of `n` nodes is expected to run by an executable, because the last
/// one did.
pub(super) fn is_likely(n: usize) -> bool {
    n >= FEWEST && HITS.load(Ordering::Relaxed) >> (n % 64) & 1 == 1 && super::executables()
}

/// Computes the nodes that an evaluation claimed on one stream.
pub(super) fn run(tape: Tape, profile: Option<Recorder>) {
    let n = tape.entries.len();
    // A profile needs each operation separately.
    if n < FEWEST || profile.is_some() || !super::executables() {
        return super::run_tape(tape, profile);
    }
    let stream = tape.stream();
    let Ok(device) = device_of(stream) else { return super::run_tape(tape, None) };
    let mut scratch = SCRATCH.take().unwrap_or_default();
    if let Some(cut) = segments::find(&tape, device, &mut scratch) {
        let rest = match cut.may_be_known {
            true => {
                let rest = run_if_known(tape, &mut scratch);
                segments::note_whole(&cut, rest.is_none());
                rest
            }
            false => Some(tape),
        };
        match rest {
            Some(tape) => segments::run(tape, cut, &mut scratch),
            None => note(n, true),
        }
    } else if is_unlikely(n) {
        super::run_tape(tape, None);
    } else {
        let hit = run_known(tape, &mut scratch, None);
        note(n, hit);
    }
    SCRATCH.set(Some(scratch));
}

/// Computes the nodes of an evaluation, or of a segment of one, on one stream, by the commands of
/// an earlier evaluation. Returns false if there are no such commands. A later evaluation of the
/// same structure may have some.
pub(super) fn run_known(tape: Tape, scratch: &mut Scratch, segment: Option<u32>) -> bool {
    let stream = tape.stream();
    let exec =
        device_of(stream).and_then(|device| Exec::new(device, stream)).inspect(Exec::set_alone);
    let structure =
        exec.as_ref().ok().and_then(|exec| scratch.structure(&tape, exec.device, segment));
    match (exec, structure) {
        (Ok(exec), Some(structure)) => {
            run_found(&exec, tape, structure, scratch, segment.is_none())
        }
        (Ok(exec), None) => run_new(&exec, tape, scratch, segment.is_none()),
        (Err(_), _) => {
            super::run_tape(tape, None);
            false
        }
    }
}

/// Runs an evaluation by its executable, or records it if its structure was seen before. Otherwise
/// returns the tape.
fn run_if_known(tape: Tape, scratch: &mut Scratch) -> Option<Tape> {
    let stream = tape.stream();
    let exec = device_of(stream).and_then(|device| Exec::new(device, stream));
    let Ok(exec) = exec.inspect(Exec::set_alone) else { return Some(tape) };
    let Some(structure) = scratch.structure(&tape, exec.device, None) else { return Some(tape) };
    look_up(&exec, tape, structure, scratch).err().map(|left| left.tape)
}

/// A tape whose structure has no commands, or whose commands cannot run.
struct Left {
    tape: Tape,
    /// The structure is unknown, and was not seen often enough to be recorded.
    is_new: bool,
}

/// Runs the commands of a structure, or records them. Returns true if the structure has commands
/// afterwards.
fn look_up(
    exec: &Exec,
    tape: Tape,
    structure: Structure,
    scratch: &mut Scratch,
) -> std::result::Result<bool, Left> {
    let found = lock(&CACHE).find(&structure);
    let known = match found {
        Found::Known(known) => known,
        Found::Again => return Ok(record(exec, tape, structure)),
        Found::New => {
            scratch.keep(structure);
            return Err(Left { tape, is_new: true });
        }
    };
    let rest = match &known.replay {
        Some(replay) => replay.run(exec, tape, structure, &known.numbers, scratch),
        None => {
            scratch.keep(structure);
            Some(tape)
        }
    };
    rest.map_or(Ok(true), |tape| Err(Left { tape, is_new: false }))
}

/// Computes nodes that no executable is known for. Always returns false, because they have no
/// executable afterwards.
fn run_new(exec: &Exec, tape: Tape, scratch: &mut Scratch, whole: bool) -> bool {
    if whole && misses(tape.entries.len()) >= MISSES_BEFORE_COMPARING {
        segments::compare(&tape, exec.device, scratch);
    }
    super::run_tape(tape, None);
    false
}

/// Returns true if the previous evaluations of `n` nodes were all new, except for the few that are
/// looked up anyway.
fn is_unlikely(n: usize) -> bool {
    MISSES.with(|misses| {
        let misses = &misses[n % misses.len()];
        let count = misses.get();
        let unlikely = count >= MOST_MISSES && !count.is_multiple_of(RARELY);
        if unlikely {
            misses.set(count.checked_add(1).unwrap_or(MOST_MISSES));
        }
        unlikely
    })
}

/// Returns the number of consecutive evaluations of `n` nodes without an executable.
fn misses(n: usize) -> u8 {
    MISSES.with(|misses| misses[n % misses.len()].get())
}

/// Resets the calling thread's counts of new evaluations.
pub(super) fn forget_misses() {
    MISSES.with(|misses| misses.iter().for_each(|count| count.set(0)));
}

/// Notes whether an evaluation of `n` nodes had an executable, or will have one from now on.
fn note(n: usize, hit: bool) {
    MISSES.with(|misses| {
        let misses = &misses[n % misses.len()];
        let more = misses.get().checked_add(1).unwrap_or(MOST_MISSES);
        misses.set(if hit { 0 } else { more });
    });
    let bit = 1 << (n % 64);
    match (hit, HITS.load(Ordering::Relaxed) & bit != 0) {
        (true, false) => drop(HITS.fetch_or(bit, Ordering::Relaxed)),
        (false, true) => drop(HITS.fetch_and(!bit, Ordering::Relaxed)),
        _ => {}
    }
}

/// Runs the commands that are known for a structure. Returns false if none are known.
fn run_found(
    exec: &Exec,
    tape: Tape,
    structure: Structure,
    scratch: &mut Scratch,
    whole: bool,
) -> bool {
    match look_up(exec, tape, structure, scratch) {
        Ok(useful) => useful,
        Err(Left { tape, is_new: true }) => run_new(exec, tape, scratch, whole),
        Err(Left { tape, is_new: false }) => {
            super::run_tape(tape, None);
            false
        }
    }
}

/// Evaluates a tape and stores the commands for its structure. Returns false if the commands cannot
/// run again.
fn record(exec: &Exec, tape: Tape, structure: Structure) -> bool {
    let Structure { words, hash, externals, wanted, numbers: given } = structure;
    let held: Vec<(u32, Arc<Node>)> =
        wanted.iter().map(|i| (*i, tape.entries[*i as usize].node.clone())).collect();
    let Some(values) = structure::values(exec, &externals) else {
        drop(externals);
        super::run_tape(tape, None);
        return false;
    };
    let taken = externals.iter().map(External::may_be_taken);
    let recording = Recording::new(exec.device, values.iter().zip(taken));
    // Drop the references, because their number decides which memory may be overwritten.
    drop((values, externals));
    let mut counts = Vec::with_capacity(held.len());
    numbers::begin(&tape, &given, &wanted);
    let recorded = recording.run(|| {
        super::run_tape(tape, None);
        let mut values = Vec::new();
        for (i, node) in &held {
            let before = values.len();
            results(node, &mut values)?;
            counts.push((*i, (values.len() - before) as u32));
        }
        Ok(values)
    });
    let (uses, stays) = numbers::end();
    let replay = match recorded {
        // The error does not depend on the structure, and a missing kernel may be compiled by the
        // next time.
        Err(_) | Ok((_, Recorded::NotYet)) => return false,
        Ok((_, Recorded::Never)) => None,
        // If an operand was on another device, its view lies in memory that the commands do not
        // know.
        Ok((values, _)) if values.iter().any(|v| v.buffer.device() != exec.device.device) => None,
        Ok((_, Recorded::Executable(executable))) => {
            let place = |u: &numbers::Use| Some((executable.number(u.command, u.index)?, u.number));
            let numbers = uses.iter().filter_map(place).collect();
            Some(Replay { executable, held: counts.into(), numbers })
        }
    };
    let useful = replay.is_some();
    // Without an executable, no number has to be equal.
    let stays = stays.into_iter().map(|stays| stays && useful);
    let known =
        Known { words: words.into(), numbers: given.into_iter().zip(stays).collect(), replay };
    let dropped = lock(&CACHE).insert(hash, known);
    drop(dropped);
    useful
}

/// Appends the values of an evaluated node. A constant that programs carry has none.
fn results(node: &Node, values: &mut Vec<Value>) -> Result<()> {
    match node.outcome() {
        Some(Ok(value)) => match node.op.get::<MultiOutput>() {
            Some(multi) if !multi.is_result() => values.extend(multi.values().iter().cloned()),
            _ => values.push(value.clone()),
        },
        Some(Err(error)) => return Err(Error::clone(error)),
        None if node.op.is_constant() => {}
        None => return Err(interrupted()),
    }
    Ok(())
}

impl Replay {
    /// Runs the commands, and ends the evaluation of the tape. If the commands cannot run, returns
    /// the tape with its operands restored, for another kind of evaluation.
    fn run(
        &self,
        exec: &Exec,
        tape: Tape,
        structure: Structure,
        recorded: &[(Scalar, bool)],
        scratch: &mut Scratch,
    ) -> Option<Tape> {
        // From here on, nodes that only the tape holds cannot be reached from elsewhere.
        let inputs = structure::take_inputs(&tape);
        let same = structure.externals.iter().all(|e| e.is_as_before(exec.device));
        let values = if same { structure::values(exec, &structure.externals) } else { None };
        let Some(values) = values else {
            scratch.keep(structure);
            restore(&tape, inputs);
            return Some(tape);
        };
        let references: Vec<&Value> = values.iter().collect();
        let changed = |(_, number): &&(u32, u32)| {
            recorded[*number as usize].0 != structure.numbers[*number as usize]
        };
        let numbers: SmallVec<[(u32, Scalar); 8]> = self
            .numbers
            .iter()
            .filter(changed)
            .map(|(place, number)| (*place, structure.numbers[*number as usize]))
            .collect();
        let run = || self.executable.run(exec, &references, &numbers, None);
        let outcome = catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
            let root = &tape.entries[tape.entries.len() - 1].node;
            Err((panicked(root, &*panic), root.op.name()).into())
        });
        drop(references);
        drop(values);
        scratch.keep(structure);
        match outcome {
            Ok(values) => self.finish(exec, tape, inputs, values.into_iter().map(Ok)),
            Err(_) if interrupt::is_cut() => {
                restore(&tape, inputs);
                tape.entries.iter().for_each(|e| e.node.release_claim());
            }
            // Evaluate the tape without the executable, so that each operation fails with its own
            // error.
            Err(failure) if failure.intact => {
                restore(&tape, inputs);
                return Some(tape);
            }
            Err(Failure { error, op, outputs, .. }) => {
                let error = Error::Poisoned { op, cause: Arc::new(error) };
                run::keep(tape.stream(), &Arc::new(error.clone()));
                let lost = std::iter::repeat_with(|| Err(error.clone()));
                self.finish(exec, tape, inputs, outputs.into_iter().chain(lost));
            }
        }
        None
    }

    /// Ends the evaluation of all nodes. Nodes with other holders get their values.
    fn finish(
        &self,
        exec: &Exec,
        tape: Tape,
        mut inputs: Vec<Inputs>,
        mut outcomes: impl Iterator<Item = Result<Value>>,
    ) {
        let Tape { mut entries, .. } = tape;
        let mut held = self.held.iter().rev().peekable();
        let mut done: Vec<Arc<Node>> = Vec::with_capacity(self.held.len());
        // Consumers first, so that nodes that only they held are already unreferenced.
        while let (Some(entry), Some(operands)) = (entries.pop(), inputs.pop()) {
            let node = entry.node;
            match held.next_if(|(i, _)| *i as usize == entries.len()) {
                Some((_, 0)) => node.release_claim(),
                Some(_) => {
                    drop(operands);
                    done.push(node);
                }
                None if Arc::strong_count(&node) == 1 => drop((operands, node)),
                // Another thread has got hold of the node, and may evaluate it.
                None => {
                    node.restore(operands);
                    node.release_claim();
                }
            }
        }
        let counts = self.held.iter().map(|(_, count)| *count).filter(|count| *count > 0);
        for (node, count) in done.into_iter().rev().zip(counts) {
            let values: Result<Vec<Value>> = outcomes.by_ref().take(count as usize).collect();
            let outcome = values.and_then(|mut values| match node.op.get::<MultiOutput>() {
                Some(multi) => multi.keep(exec, values),
                None => values.pop().ok_or_else(interrupted),
            });
            node.finish(outcome.map_err(Arc::new));
        }
    }
}

/// Gives the nodes of the tape their operands back.
fn restore(tape: &Tape, inputs: Vec<Inputs>) {
    tape.entries.iter().zip(inputs).for_each(|(entry, operands)| entry.node.restore(operands));
}
