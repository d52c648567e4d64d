//! Evaluations that mostly repeat: the parts that differ each time are planned each time, and the
//! rest runs by executables.
//!
//! For example, a step of a language model that appends to a cache reads a longer part of the cache
//! each time, so sizes differ there but nowhere else. Evaluations of the same operations on the
//! same operands, whatever the sizes, have one skeleton. They are compared node by node. Once the
//! differing nodes are known, the tape is cut at these nodes. Each segment of nodes that stay the
//! same is an evaluation of its own, which [`super::repeated`] can find again.

use super::lower::{Entry, Tape};
use super::repeated;
use super::structure::{self, Scratch};
use crate::backend::DeviceState;
use crate::node::{Node, next_mark};
use crate::ops::rules::multi_output::{MultiOutput, OutputOf};
use crate::sync::lock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use ultramarine_runtime::interrupt;

/// Evaluations with fewer nodes than `FEWEST` or more than `MOST` are not compared.
const FEWEST: usize = 24;
const MOST: usize = 1 << 14;
/// Limit on the skeletons that are kept.
const MOST_SKELETONS: usize = 16;
/// Number of evaluations after a cut before segments that are not found are examined. The first two
/// make executables.
const WARM_UP: u32 = 3;
/// Limit on the cuts of one skeleton.
const MOST_CUTS: u32 = 8;

/// A part of a tape: the places of its nodes. Each has a flag that is set if no later segment needs
/// the node. A constant may be in several segments.
pub(super) struct Segment {
    slots: Box<[(u32, bool)]>,
    steady: bool,
}

/// The evaluations of one skeleton.
struct Skeleton {
    hash: u64,
    nodes: Vec<Seen>,
    cut: Option<Arc<[Segment]>>,
    cuts: u32,
    /// Number of evaluations since the skeleton was cut.
    runs: u32,
    /// True if a segment was not found again, so that the next evaluation is compared.
    look: bool,
    /// Hash of all sizes of the last evaluation.
    sizes: u64,
    /// Number of consecutive evaluations that had the sizes of the previous one, but whose whole
    /// structure was new.
    new_wholes: u8,
}

/// A node of the last evaluation, and how it changed between evaluations.
struct Seen {
    /// Hash of the node and its operands. `None` if the node never repeats.
    hash: Option<u64>,
    /// Hash of its shape.
    size: u64,
    differs: bool,
    resized: bool,
}

/// The skeletons. The most recently used one comes last.
static SKELETONS: Mutex<Vec<Skeleton>> = Mutex::new(Vec::new());

/// For each number of nodes, modulo 64: a bit that is set if a skeleton of that size is cut.
static CUT: AtomicU64 = AtomicU64::new(0);

/// After this many evaluations whose whole structure was new, only one in `RARELY` is looked up as
/// a whole.
const MOST_NEW_WHOLES: u8 = 8;
const RARELY: u32 = 16;

/// The segments of a tape, with the hash of its skeleton.
pub(super) struct Cut {
    segments: Arc<[Segment]>,
    skeleton: u64,
    /// True if the evaluation has the sizes of the previous one, so that it may be known as a
    /// whole.
    pub may_be_known: bool,
}

/// Returns the segments of a tape if its skeleton was cut.
pub(super) fn find(
    tape: &Tape,
    device: &'static DeviceState,
    scratch: &mut Scratch,
) -> Option<Cut> {
    let n = tape.entries.len();
    if CUT.load(Ordering::Relaxed) >> (n % 64) & 1 == 0 || n < FEWEST {
        return None;
    }
    let hash = structure::skeleton(tape);
    let mut skeletons = lock(&SKELETONS);
    let place = skeletons.iter().rposition(|s| s.hash == hash && s.nodes.len() == n)?;
    skeletons[place..].rotate_left(1);
    let skeleton = skeletons.last_mut()?;
    if std::mem::take(&mut skeleton.look) {
        skeleton.compare(tape, scratch.hashes(tape, device));
    }
    skeleton.runs = skeleton.runs.saturating_add(1);
    let sizes =
        tape.entries.iter().fold(0, |all: u64, entry| all.rotate_left(5) ^ size(&entry.node));
    let same = std::mem::replace(&mut skeleton.sizes, sizes) == sizes;
    let often = skeleton.new_wholes < MOST_NEW_WHOLES || skeleton.runs.is_multiple_of(RARELY);
    let cut = skeleton.cut.clone();
    note_cuts(&skeletons);
    Some(Cut { segments: cut?, skeleton: hash, may_be_known: same && often })
}

/// Notes whether an evaluation with segments was known as a whole.
pub(super) fn note_whole(cut: &Cut, known: bool) {
    if let Some(skeleton) = lock(&SKELETONS).iter_mut().rfind(|s| s.hash == cut.skeleton) {
        skeleton.new_wholes = if known { 0 } else { skeleton.new_wholes.saturating_add(1) };
    }
}

/// Compares an evaluation with an earlier one of its skeleton. Call it if the evaluation and those
/// before it were new.
pub(super) fn compare(tape: &Tape, device: &'static DeviceState, scratch: &mut Scratch) {
    let n = tape.entries.len();
    if !(FEWEST..=MOST).contains(&n) {
        return;
    }
    let hash = structure::skeleton(tape);
    let hashes = scratch.hashes(tape, device);
    let mut skeletons = lock(&SKELETONS);
    match skeletons.iter().rposition(|s| s.hash == hash && s.nodes.len() == n) {
        Some(place) => {
            skeletons[place..].rotate_left(1);
            if let Some(skeleton) = skeletons.last_mut() {
                skeleton.compare(tape, hashes);
            }
        }
        None => {
            if skeletons.len() >= MOST_SKELETONS {
                skeletons.remove(0);
            }
            let node = |(entry, hash): (&Entry, Option<u64>)| {
                let size = size(&entry.node);
                Seen { hash, size, differs: hash.is_none(), resized: false }
            };
            skeletons.push(Skeleton {
                hash,
                nodes: tape.entries.iter().zip(hashes).map(node).collect(),
                cut: None,
                cuts: 0,
                runs: 0,
                look: false,
                sizes: 0,
                new_wholes: 0,
            });
        }
    }
    note_cuts(&skeletons);
}

fn note_cuts(skeletons: &[Skeleton]) {
    let cut = skeletons.iter().filter(|s| s.cut.is_some());
    CUT.store(cut.fold(0, |bits, s| bits | 1 << (s.nodes.len() % 64)), Ordering::Relaxed);
}

/// A hash of a node's shape.
fn size(node: &Node) -> u64 {
    let sizes = node.shape.iter();
    sizes.fold(1, |all: u64, n| all.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(*n as u64))
}

impl Skeleton {
    /// Updates which nodes differ, and cuts the tape at these nodes.
    fn compare(&mut self, tape: &Tape, hashes: Vec<Option<u64>>) {
        let mut learnt = false;
        for ((seen, entry), hash) in self.nodes.iter_mut().zip(&tape.entries).zip(hashes) {
            let size = size(&entry.node);
            let differs = hash != seen.hash || hash.is_none();
            let resized = size != seen.size;
            learnt |= differs && !seen.differs || resized && !seen.resized;
            *seen = Seen {
                hash,
                size,
                differs: seen.differs | differs,
                resized: seen.resized | resized,
            };
        }
        if learnt || self.cut.is_none() {
            self.cut = if self.cuts < MOST_CUTS { self.cut(tape) } else { None };
            self.cuts += 1;
            self.runs = 0;
        }
    }

    /// Cuts the tape into segments. `None` if few nodes stay the same.
    fn cut(&self, tape: &Tape) -> Option<Arc<[Segment]>> {
        let n = tape.entries.len();
        if !self.nodes.iter().any(|seen| seen.differs) {
            return None;
        }
        let steady = self.steady(tape);
        let mut bounds: Vec<(usize, bool)> = Vec::new();
        for part in runs(&steady) {
            let steady = steady[part.start] && part.len() >= repeated::FEWEST;
            match bounds.last_mut() {
                Some(last) if last.1 == steady => last.0 = part.end,
                _ => bounds.push((part.end, steady)),
            }
        }
        let mut start = 0;
        let mut segment_of = vec![0; n];
        for (i, (end, _)) in bounds.iter().enumerate() {
            segment_of[start..*end].fill(i);
            start = *end;
        }
        move_up(tape, &steady, &bounds, &mut segment_of);
        if segment_of.iter().filter(|s| bounds[**s].1).count() < n / 3 {
            return None;
        }
        let mut slots: Vec<Vec<(u32, bool)>> = vec![Vec::new(); bounds.len()];
        for (i, segments) in users(tape, &segment_of).into_iter().enumerate() {
            let last = segments.last().copied();
            segments.iter().for_each(|s| slots[*s].push((i as u32, Some(*s) == last)));
        }
        let each = slots.into_iter().zip(&bounds);
        Some(
            each.map(|(slots, (_, steady))| Segment { slots: slots.into(), steady: *steady })
                .collect(),
        )
    }

    /// Marks the nodes that are computed by the same commands each time.
    fn steady(&self, tape: &Tape) -> Vec<bool> {
        let mut steady = Vec::with_capacity(tape.entries.len());
        // For each node: true if its memory may have another layout.
        let mut moved: Vec<bool> = Vec::with_capacity(tape.entries.len());
        for (entry, seen) in tape.entries.iter().zip(&self.nodes) {
            let node = &entry.node;
            let on_moved = node.with_inputs(|inputs| {
                inputs.iter().filter_map(|o| structure::slot(tape, o)).any(|s| moved[s])
            });
            let same = !seen.differs && !on_moved;
            moved.push(seen.resized || !same && shows_operands(node));
            // Constants belong to the segments that read them.
            steady.push(same || node.op.is_constant() && steady.last().is_some_and(|s| *s));
        }
        steady
    }
}

/// Returns true for nodes whose values may lie in the memory of their operands, on whatever device.
fn shows_operands(node: &Node) -> bool {
    let op = &node.op;
    op.forwards_operands()
        || op.is::<MultiOutput>()
        || op.is::<OutputOf>()
        || op.rules().is_some_and(|rules| rules.inherits_home())
}

/// The ranges of equal entries.
fn runs(list: &[bool]) -> impl Iterator<Item = std::ops::Range<usize>> {
    let mut start = 0;
    list.chunk_by(|a, b| a == b).map(move |part| {
        start += part.len();
        start - part.len()..start
    })
}

/// Moves nodes that stay the same, but lie among nodes that differ. Each goes into the last earlier
/// segment of such nodes that has its operands.
fn move_up(tape: &Tape, steady: &[bool], bounds: &[(usize, bool)], segment_of: &mut [usize]) {
    for (i, entry) in tape.entries.iter().enumerate() {
        if !steady[i] || bounds[segment_of[i]].1 {
            continue;
        }
        let first = entry.node.with_inputs(|inputs| {
            let slots = inputs.iter().filter_map(|input| structure::slot(tape, input));
            slots.map(|slot| segment_of[slot]).max().unwrap_or(0)
        });
        if let Some(place) = (first..segment_of[i]).rev().find(|s| bounds[*s].1) {
            segment_of[i] = place;
        }
    }
}

/// Lists, for each node, the segments that need it on their tapes, in order: the node's own
/// segment, and those that read it as a constant.
fn users(tape: &Tape, segment_of: &[usize]) -> Vec<Vec<usize>> {
    let mut users: Vec<Vec<usize>> = vec![Vec::new(); tape.entries.len()];
    for (i, entry) in tape.entries.iter().enumerate() {
        let own = segment_of[i];
        entry.node.with_inputs(|inputs| {
            for slot in inputs.iter().filter_map(|input| structure::slot(tape, input)) {
                if tape.entries[slot].node.op.is_constant() {
                    users[slot].push(own);
                }
            }
        });
        if !entry.node.op.is_constant() {
            users[i].push(own);
        }
    }
    for (segments, own) in users.iter_mut().zip(segment_of) {
        // The constant itself was requested.
        if segments.is_empty() {
            segments.push(*own);
        }
        segments.sort_unstable();
        segments.dedup();
    }
    users
}

/// Computes the segments of a tape one after the other.
pub(super) fn run(tape: Tape, cut: Cut, scratch: &mut Scratch) {
    let Cut { segments, skeleton: hash, .. } = cut;
    let stream = tape.stream();
    // The flag is set while the node is claimed and not yet given to a segment.
    let mut nodes: Vec<Option<(Arc<Node>, bool)>> =
        tape.entries.into_iter().map(|entry| Some((entry.node, true))).collect();
    let mut found = true;
    for (number, segment) in (0..).zip(segments.iter()) {
        if interrupt::is_cut() {
            break;
        }
        let mut part = Tape::new(next_mark(), segment.slots.len());
        part.set_stream(Some(stream));
        for (slot, last) in &segment.slots {
            let place = &mut nodes[*slot as usize];
            let Some((node, claimed)) = place.as_mut().map(|(n, c)| (n.clone(), std::mem::take(c)))
            else {
                continue;
            };
            if *last {
                *place = None;
            }
            // A constant that programs carry becomes lazy again once they have run.
            if claimed || !node.is_done() && node.claim() {
                node.mark.store(part.mark, Ordering::Relaxed);
                part.push(node);
            }
        }
        match segment.steady {
            // All nodes of the segment were constants that other segments have.
            _ if part.entries.is_empty() => {}
            true => found &= repeated::run_known(part, scratch, Some(number)),
            false => super::run_tape(part, None),
        }
    }
    nodes
        .into_iter()
        .flatten()
        .filter(|(_, claimed)| *claimed)
        .for_each(|(n, _)| n.release_claim());
    if !found {
        let mut skeletons = lock(&SKELETONS);
        if let Some(skeleton) = skeletons.iter_mut().rfind(|s| s.hash == hash) {
            skeleton.look = skeleton.runs > WARM_UP;
        }
    }
}
