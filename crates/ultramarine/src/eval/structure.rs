//! The structure of a graph in words. Graphs of equal words are computed by the same commands, on other memory.
//!
//! The words name each node's operation with its attributes (but of constants not the number), its shape, its dtype and its operands, by their places on the
//! tape; the operands that have values already, with their layouts; and the nodes that are asked for, because others than
//! the tape hold them. References are counted before anything runs, as an evaluation counts them when it gets there.

use super::binding::{self, Bound};
use super::lower::Tape;
use crate::backend::{DeviceState, WordHasher};
use crate::graph::operation_key::OperationWords;
use crate::node::{Inputs, Node, Value};
use crate::ops::{create::fill::Fill, rules::multi_output::MultiOutput};
use crate::scalar::Scalar;
use smallvec::SmallVec;
use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Most words of a structure: of larger graphs the nodes are a small part of the cost.
pub(super) const MOST_WORDS: usize = 1 << 18;

/// Most different numbers of constants that may be others at the next evaluation. Further ones are part of the structure.
const MOST_NUMBERS: usize = 32;

/// Operands up to which looking at all costs less than a map.
const FEW: usize = 8;

/// An operand that has a value, and stays where it is while its commands run.
pub(super) struct External {
    pub node: Arc<Node>,
    /// References to it from nodes of the tape.
    edges: usize,
    /// Number of operands in its buffer, if that may be taken over; else 0.
    taken: u32,
}

impl External {
    fn bound<'a>(&'a self, value: &'a Value, device: &DeviceState) -> Bound<'a> {
        // Memory elsewhere is copied. The list has a reference, too.
        let here = value.buffer.device() == device.device;
        Bound { node: &self.node, value, references: if here { self.edges + 1 } else { 0 } }
    }

    /// Returns true if the memory may be taken over.
    pub fn may_be_taken(&self) -> bool {
        self.taken > 0
    }

    /// Returns true if the memory may be taken over still, where it was when the words were made.
    pub fn is_as_before(&self, device: &DeviceState) -> bool {
        let still = |value| binding::is_still_ours(&self.bound(value, device), self.taken);
        self.taken == 0 || self.node.value().is_some_and(still)
    }
}

/// The memory that structures are made in.
#[derive(Default)]
pub(super) struct Scratch {
    words: Vec<u64>,
    references: Vec<u32>,
    externals: Vec<External>,
    wanted: Vec<u32>,
    numbers: Vec<Scalar>,
    places: HashMap<*const Node, u32, BuildHasherDefault<WordHasher>>,
}

impl Scratch {
    /// The structure of what an evaluation claimed on one stream of a device. `None` if its commands are not to be had by
    /// their structure.
    pub fn structure(
        &mut self,
        tape: &Tape,
        device: &'static DeviceState,
        segment: Option<u32>,
    ) -> Option<Structure> {
        // A structure that was not given back leaves what was known of its nodes.
        self.references.clear();
        self.places.clear();
        let mut structure = Structure {
            words: std::mem::take(&mut self.words),
            externals: std::mem::take(&mut self.externals),
            wanted: std::mem::take(&mut self.wanted),
            numbers: std::mem::take(&mut self.numbers),
            hash: 0,
        };
        match self.describe(&mut structure, tape, (device, segment)) {
            Some(()) => Some(structure),
            None => {
                self.keep(structure);
                None
            }
        }
    }

    /// Takes the memory of a structure back, with the references to its operands.
    pub fn keep(&mut self, mut structure: Structure) {
        structure.words.clear();
        structure.externals.clear();
        structure.wanted.clear();
        structure.numbers.clear();
        let Structure { words, externals, wanted, numbers, .. } = structure;
        (self.words, self.externals) = (words, externals);
        (self.wanted, self.numbers) = (wanted, numbers);
    }

    /// Of each node of a tape a hash of its operation, operands and shape, and of the layouts of operands that have values;
    /// `None` where evaluations cannot be told apart. Numbers of constants are left out.
    pub fn hashes(&mut self, tape: &Tape, device: &'static DeviceState) -> Vec<Option<u64>> {
        self.references.clear();
        self.places.clear();
        self.references.resize(tape.entries.len(), 0);
        let (mut externals, mut numbers) = (Vec::new(), Vec::new());
        let mut hash = |node: &Node| {
            let mut words = OperationWords::new(Vec::new());
            numbers.clear();
            self.node(&mut words, node, tape, &mut externals, &mut numbers)?;
            node.with_inputs(|inputs| {
                inputs.iter().filter(|input| slot(tape, input).is_none()).try_for_each(|input| {
                    let value = input.value()?;
                    words.push((value.buffer.device() == device.device) as u64);
                    words.push(value.buffer.bytes() as u64);
                    words.push(value.offset as u64);
                    value.strides.iter().for_each(|s| words.push(*s as u64));
                    input.shape.iter().for_each(|size| words.push(*size as u64));
                    Some(())
                })
            })?;
            Some(hash_of(&words.into_list()))
        };
        tape.entries.iter().map(|entry| hash(&entry.node)).collect()
    }

    fn describe(
        &mut self,
        structure: &mut Structure,
        tape: &Tape,
        (device, segment): (&'static DeviceState, Option<u32>),
    ) -> Option<()> {
        let n = tape.entries.len();
        let Structure { words: list, externals, wanted, numbers, hash } = structure;
        let mut words = OperationWords::new(std::mem::take(list));
        words.push(std::ptr::from_ref(device).addr() as u64);
        words.push(device.plan_generation() << 1 | super::fusion() as u64);
        // Each segment has commands of its own, though another one has such operations, too: what a backend records of them
        // is for the same weights each time.
        words.push((n as u64) << 32 | segment.map_or(0, |segment| u64::from(segment) + 1));
        self.references.resize(n, 0);
        let whole = tape.entries.iter().all(|entry| {
            self.node(&mut words, &entry.node, tape, externals, numbers).is_some()
                && words.len() < MOST_WORDS
        });
        whole.then_some(())?;
        externals.iter().try_for_each(|e| external(&mut words, e, device))?;
        let bound = externals.iter().filter_map(|e| Some(e.bound(e.node.value()?, device)));
        let taken = binding::describe(bound, |word| words.push(word));
        externals.iter_mut().zip(taken).for_each(|(e, taken)| e.taken = taken);
        for (i, (entry, references)) in tape.entries.iter().zip(&self.references).enumerate() {
            let node = &entry.node;
            // One reference is the tape's own.
            if node.handles.load(Ordering::Acquire) > 0
                || Arc::strong_count(node) > *references as usize + 1
            {
                wanted.push(i as u32);
                words.push(i as u64);
            }
        }
        words.push(wanted.len() as u64);
        *list = words.into_list();
        *hash = hash_of(list);
        Some(())
    }

    fn node(
        &mut self,
        words: &mut OperationWords,
        node: &Node,
        tape: &Tape,
        externals: &mut Vec<External>,
        numbers: &mut Vec<Scalar>,
    ) -> Option<()> {
        // A trace keeps operands.
        if node.is_traced() {
            return None;
        }
        match node.op.get::<MultiOutput>() {
            Some(multi) => several(words, node, multi)?,
            None if constant(words, node, numbers) => {}
            None => words.operation(&node.op).then_some(())?,
        }
        node.with_inputs(|inputs| {
            let (dtype, place) = (node.dtype as u64, node.place);
            let place = (place.deterministic as u64) << 1 | place.firm as u64;
            let rank = node.shape.len() as u64;
            words.push((inputs.len() as u64) << 32 | rank << 16 | place << 8 | dtype);
            node.shape.iter().for_each(|size| words.push(*size as u64));
            inputs.iter().try_for_each(|input| {
                let word = match slot(tape, input) {
                    Some(slot) => {
                        self.references[slot] += 1;
                        (slot as u64) << 1
                    }
                    None => u64::from(self.external(externals, input)?) << 1 | 1,
                };
                words.push(word);
                Some(())
            })
        })
    }

    /// The number of an operand that is not on the tape.
    fn external(&mut self, externals: &mut Vec<External>, node: &Arc<Node>) -> Option<u32> {
        let known = match externals.len() <= FEW {
            true => externals.iter().position(|e| Arc::ptr_eq(&e.node, node)),
            false => self.places.get(&Arc::as_ptr(node)).map(|i| *i as usize),
        };
        let number = match known {
            Some(number) => number,
            None => {
                // Another evaluation computes it, or it failed; results of several outputs are more than the value.
                node.value()?;
                if node.op.get::<MultiOutput>().is_some_and(|multi| !multi.is_result()) {
                    return None;
                }
                externals.push(External { node: node.clone(), edges: 0, taken: 0 });
                if externals.len() == FEW + 1 {
                    let each = externals.iter().enumerate();
                    self.places.extend(each.map(|(i, e)| (Arc::as_ptr(&e.node), i as u32)));
                } else if externals.len() > FEW {
                    self.places.insert(Arc::as_ptr(node), externals.len() as u32 - 1);
                }
                externals.len() - 1
            }
        };
        externals[number].edges += 1;
        u32::try_from(number).ok()
    }
}

/// Describes a constant by the place of its number among those of the graph. False if it has none.
fn constant(words: &mut OperationWords, node: &Node, numbers: &mut Vec<Scalar>) -> bool {
    let Some(Fill { value, spread }) = node.op.get::<Fill>() else { return false };
    let place = match numbers.iter().position(|number| number == value) {
        Some(place) => place,
        None if numbers.len() < MOST_NUMBERS => {
            numbers.push(*value);
            numbers.len() - 1
        }
        None => {
            // No kind of operation.
            words.push(u64::MAX);
            return false;
        }
    };
    words.push(node.op.kind());
    words.push((place as u64) << 16 | (value.dtype() as u64) << 1 | *spread as u64);
    true
}

/// Describes an operation of several outputs.
fn several(words: &mut OperationWords, node: &Node, multi: &MultiOutput) -> Option<()> {
    if multi.rules().subgraph().is_some() {
        // It has executables of its own.
        return None;
    }
    if multi.rules().forwards_operands() {
        // The rules are for transforms: the results are the last operands.
        words.push(node.op.kind());
        words.push(multi.len() as u64);
        return Some(());
    }
    words.operation(&node.op).then_some(())?;
    words.push(multi.len() as u64);
    for (shape, dtype) in multi.results() {
        words.push((shape.len() as u64) << 16 | *dtype as u64);
        shape.iter().for_each(|size| words.push(*size as u64));
    }
    Some(())
}

/// Describes an operand that has a value, but for its layout.
fn external(words: &mut OperationWords, external: &External, device: &DeviceState) -> Option<()> {
    let node = &external.node;
    let value = node.value()?;
    let (constant, dtype) = (node.constant(), node.dtype as u64);
    let elsewhere = (value.buffer.device() != device.device) as u64;
    let rank = node.shape.len() as u64;
    words.push(rank << 16 | elsewhere << 9 | (constant.is_some() as u64) << 8 | dtype);
    node.shape.iter().for_each(|size| words.push(*size as u64));
    if let Some(constant) = constant {
        // Programs carry the number.
        words.push(constant.bits());
    }
    Some(())
}

/// The place of a node on the tape.
#[inline]
pub(super) fn slot(tape: &Tape, node: &Node) -> Option<usize> {
    if node.mark.load(Ordering::Relaxed) != tape.mark {
        return None;
    }
    let slot = node.slot.load(Ordering::Relaxed) as usize;
    tape.entries.get(slot).is_some_and(|e| std::ptr::eq(&*e.node, node)).then_some(slot)
}

/// A hash of the operations of a tape, their dtypes and ranks, and their operands, whatever the sizes.
pub(super) fn skeleton(tape: &Tape) -> u64 {
    let mut words: Vec<u64> = Vec::with_capacity(4 * tape.entries.len());
    for entry in &tape.entries {
        let node = &entry.node;
        words.push(node.op.kind());
        node.with_inputs(|inputs| {
            let (rank, dtype) = (node.shape.len() as u64, node.dtype as u64);
            words.push((inputs.len() as u64) << 32 | rank << 16 | dtype);
            words.extend(inputs.iter().map(|i| slot(tape, i).map_or(u64::MAX, |s| s as u64)));
        });
    }
    hash_of(&words)
}

/// A hash of words, of four sums that do not wait for each other.
fn hash_of(words: &[u64]) -> u64 {
    let mix =
        |sum: u64, word: u64| (sum ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
    let (blocks, rest) = words.as_chunks::<4>();
    let mut sums = [1u64, 2, 3, 4];
    for block in blocks {
        for (sum, word) in sums.iter_mut().zip(block) {
            *sum = mix(*sum, *word);
        }
    }
    sums.iter().chain(rest).fold(words.len() as u64, |sum, word| mix(sum, *word))
}

/// A graph's structure, with the nodes that its commands run for.
pub(super) struct Structure {
    pub words: Vec<u64>,
    pub hash: u64,
    /// Operands that have values.
    pub externals: Vec<External>,
    /// Places on the tape of nodes that others hold, too.
    pub wanted: Vec<u32>,
    /// Numbers of constants. The words say which constants have the same one, but not which.
    pub numbers: Vec<Scalar>,
}

/// The operands of all nodes of a tape, which nobody else can reach any more.
pub(super) fn take_inputs(tape: &Tape) -> Vec<Inputs> {
    tape.entries.iter().map(|e| e.node.release_inputs()).collect()
}

/// The values of operands on the device of `exec`. `None`, or an error, if an evaluation would not find them as before.
pub(super) fn values(
    exec: &crate::backend::Exec,
    externals: &[External],
) -> Option<SmallVec<[Value; 8]>> {
    let each = externals.iter().map(|external| {
        let (node, value) = (&external.node, external.node.value()?);
        let operand = crate::backend::Operand { value, shape: &node.shape, dtype: node.dtype };
        let here = exec.local(&operand).ok()?;
        // A copy of a part would be another one each time; a mirror is kept, and found.
        let same = value.buffer.device() == exec.device.device
            || (here.offset, here.buffer.bytes()) == (value.offset, value.buffer.bytes())
                && value.buffer.mirrored(exec.device.device).is_some();
        same.then_some(here)
    });
    each.collect()
}
