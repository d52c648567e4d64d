//! The structure of a graph as a list of words. Graphs with equal words run the same commands, on
//! other memory.
//!
//! The words contain:
//! - for each node its operation with the attributes (except the numbers of constants), its shape,
//!   its dtype, and its operands by their places on the tape
//! - the operands that already have values, with their layouts
//! - the nodes that are requested, because there are holders outside the tape
//!
//! References are counted before anything runs, with the result that an evaluation would get at the
//! node.

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

/// Limit on the words of a structure. In larger graphs, nodes cause only a small part of the cost.
pub(super) const MOST_WORDS: usize = 1 << 18;

/// Limit on the different numbers of constants that may change between evaluations. Further numbers
/// are part of the structure.
const MOST_NUMBERS: usize = 32;

/// Up to this many operands, a linear search costs less than a map.
const FEW: usize = 8;

/// An operand that has a value, and keeps it while the commands run.
pub(super) struct External {
    pub node: Arc<Node>,
    /// References to it from nodes of the tape.
    edges: usize,
    /// Number of operands in its buffer if the buffer may be overwritten, otherwise 0.
    taken: u32,
}

impl External {
    fn bound<'a>(&'a self, value: &'a Value, device: &DeviceState) -> Bound<'a> {
        // Memory on another device is copied. The list itself holds a reference too.
        let here = value.buffer.device() == device.device;
        Bound { node: &self.node, value, references: if here { self.edges + 1 } else { 0 } }
    }

    /// Returns true if the memory may be overwritten.
    pub fn may_be_taken(&self) -> bool {
        self.taken > 0
    }

    /// Returns true if the memory may still be overwritten, and is still where it was when the
    /// words were made.
    pub fn is_as_before(&self, device: &DeviceState) -> bool {
        let still = |value| binding::is_still_ours(&self.bound(value, device), self.taken);
        self.taken == 0 || self.node.value().is_some_and(still)
    }
}

/// Reusable memory for making structures.
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
    /// Makes the structure of the nodes that an evaluation claimed on one stream of a device.
    /// `None` if the commands cannot be identified by their structure.
    pub fn structure(
        &mut self,
        tape: &Tape,
        device: &'static DeviceState,
        segment: Option<u32>,
    ) -> Option<Structure> {
        // A structure that was not returned by `keep` may have left entries about its nodes.
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

    /// Takes back the memory of a structure, and drops its references to operands.
    pub fn keep(&mut self, mut structure: Structure) {
        structure.words.clear();
        structure.externals.clear();
        structure.wanted.clear();
        structure.numbers.clear();
        let Structure { words, externals, wanted, numbers, .. } = structure;
        (self.words, self.externals) = (words, externals);
        (self.wanted, self.numbers) = (wanted, numbers);
    }

    /// Hashes each node of a tape: its operation, operands and shape, and the layouts of operands
    /// that have values. `None` if evaluations of the node cannot be distinguished. Numbers of
    /// constants are left out.
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
        // Each segment has its own commands, even if another segment has equal operations, because
        // a backend's recording is tied to the same weights each time.
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
            // One reference belongs to the tape.
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
        // A trace keeps the operands.
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

    /// Returns the index of an operand that is not on the tape.
    fn external(&mut self, externals: &mut Vec<External>, node: &Arc<Node>) -> Option<u32> {
        let known = match externals.len() <= FEW {
            true => externals.iter().position(|e| Arc::ptr_eq(&e.node, node)),
            false => self.places.get(&Arc::as_ptr(node)).map(|i| *i as usize),
        };
        let number = match known {
            Some(number) => number,
            None => {
                // Without a value, the operand failed or another evaluation computes it. A node of
                // several outputs has more than one value.
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

/// Describes a constant by the index of its number among the graph's numbers. Returns false if the
/// node has no number.
fn constant(words: &mut OperationWords, node: &Node, numbers: &mut Vec<Scalar>) -> bool {
    let Some(Fill { value, spread }) = node.op.get::<Fill>() else { return false };
    let place = match numbers.iter().position(|number| number == value) {
        Some(place) => place,
        None if numbers.len() < MOST_NUMBERS => {
            numbers.push(*value);
            numbers.len() - 1
        }
        None => {
            // No kind of operation has this number.
            words.push(u64::MAX);
            return false;
        }
    };
    words.push(node.op.kind());
    words.push((place as u64) << 16 | (value.dtype() as u64) << 1 | *spread as u64);
    true
}

/// Describes an operation with several outputs.
fn several(words: &mut OperationWords, node: &Node, multi: &MultiOutput) -> Option<()> {
    if multi.rules().subgraph().is_some() {
        // The operation has executables of its own.
        return None;
    }
    if multi.rules().forwards_operands() {
        // The rules matter to transforms only, and the results are the last operands.
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

/// Describes an operand that has a value, without its layout.
fn external(words: &mut OperationWords, external: &External, device: &DeviceState) -> Option<()> {
    let node = &external.node;
    let value = node.value()?;
    let (constant, dtype) = (node.constant(), node.dtype as u64);
    let elsewhere = (value.buffer.device() != device.device) as u64;
    let rank = node.shape.len() as u64;
    words.push(rank << 16 | elsewhere << 9 | (constant.is_some() as u64) << 8 | dtype);
    node.shape.iter().for_each(|size| words.push(*size as u64));
    if let Some(constant) = constant {
        // Programs carry the number, so it is part of the words.
        words.push(constant.bits());
    }
    Some(())
}

/// Returns the place of a node on the tape.
#[inline]
pub(super) fn slot(tape: &Tape, node: &Node) -> Option<usize> {
    if node.mark.load(Ordering::Relaxed) != tape.mark {
        return None;
    }
    let slot = node.slot.load(Ordering::Relaxed) as usize;
    tape.entries.get(slot).is_some_and(|e| std::ptr::eq(&*e.node, node)).then_some(slot)
}

/// Hashes the operations of a tape with their dtypes, ranks and operands, but not the sizes.
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

/// Hashes words by four independent sums, which the processor can compute in parallel.
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

/// The structure of a graph, and the nodes that its commands run for.
pub(super) struct Structure {
    pub words: Vec<u64>,
    pub hash: u64,
    /// Operands that have values.
    pub externals: Vec<External>,
    /// Places on the tape of nodes that have other holders.
    pub wanted: Vec<u32>,
    /// Numbers of constants. The words say which constants share a number, but not its value.
    pub numbers: Vec<Scalar>,
}

/// Takes the operands of all nodes of a tape. No other thread can reach the nodes.
pub(super) fn take_inputs(tape: &Tape) -> Vec<Inputs> {
    tape.entries.iter().map(|e| e.node.release_inputs()).collect()
}

/// The values of operands on the device of `exec`. `None`, or an error, if an evaluation would not
/// find them as before.
pub(super) fn values(
    exec: &crate::backend::Exec,
    externals: &[External],
) -> Option<SmallVec<[Value; 8]>> {
    let each = externals.iter().map(|external| {
        let (node, value) = (&external.node, external.node.value()?);
        let operand = crate::backend::Operand { value, shape: &node.shape, dtype: node.dtype };
        let here = exec.local(&operand).ok()?;
        // A copy of a part of the memory would differ each time, but a mirror is kept and found
        // again.
        let same = value.buffer.device() == exec.device.device
            || (here.offset, here.buffer.bytes()) == (value.offset, value.buffer.bytes())
                && value.buffer.mirrored(exec.device.device).is_some();
        same.then_some(here)
    });
    each.collect()
}
