//! Lowering replaces an operation by its composition ([`Composite`]) if the device has no kernel
//! for the operation.
//!
//! A graph means the same on every device. For example, softmax is a single node for derivatives,
//! traces and files. Only lowering, when an evaluation is planned, asks which kernels the device
//! offers. The parts of a composition are planned like any other nodes, so they fuse with each
//! other and with the operations around them.

use super::adjacent;
use super::run::panicked;
use crate::backend::{DeviceState, Dispatch};
use crate::error::{Error, Result};
use crate::node::{Inputs, Node};
use crate::ops::{Composite, Offers, copy::identity::Identity};
use crate::{array::Array, placement, stream::Stream};
use smallvec::SmallVec;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The nodes that an evaluation claimed.
pub(super) struct Tape {
    /// Each node comes after its operands.
    pub entries: Vec<Entry>,
    /// The mark that the nodes bear.
    pub mark: u64,
    /// The stream that evaluates all nodes except those on a group's stream ([`super::beside`]).
    /// `None`: the nodes' own stream.
    stream: Option<Stream>,
    /// True if some operation has a composition. Set while the nodes are in the cache, because
    /// another pass costs cache misses.
    pub composite: bool,
}

impl Tape {
    /// Makes a tape for nodes that bear a new mark.
    pub fn new(mark: u64, capacity: usize) -> Tape {
        Tape { entries: Vec::with_capacity(capacity), mark, stream: None, composite: false }
    }

    /// Sets the stream that evaluates the tape, if its nodes are on several.
    pub fn set_stream(&mut self, stream: Option<Stream>) {
        self.stream = stream;
    }

    /// Returns the stream that evaluates the tape, which must not be empty.
    pub fn stream(&self) -> Stream {
        self.stream.unwrap_or_else(|| self.entries[0].node.place.stream)
    }

    /// Appends a claimed node, after its operands.
    #[inline]
    pub fn push(&mut self, node: Arc<Node>) {
        node.slot.store(self.entries.len() as u32, Ordering::Relaxed);
        self.composite |= node.op.is_composite();
        self.entries.push(Entry::new(node));
    }
}

/// A node on the tape, and the form in which it runs.
pub(super) struct Entry {
    /// The node that gets the value.
    pub node: Arc<Node>,
    /// The last operation of the node's composition, which runs instead of the node.
    composed: Option<Arc<Node>>,
    /// True if the node is part of the composition of a later node.
    part: bool,
}

impl Entry {
    /// Makes an entry for a node that runs without lowering.
    #[inline]
    pub fn new(node: Arc<Node>) -> Entry {
        Entry { node, composed: None, part: false }
    }

    /// Returns the node whose operation runs: the entry's node, or the last node of its
    /// composition.
    #[inline]
    pub fn work(&self) -> &Node {
        self.composed.as_ref().unwrap_or(&self.node)
    }

    /// Calls `f` for each reference that the entry holds to an operand.
    pub fn each_reference(&self, mut f: impl FnMut(&Arc<Node>)) {
        self.node.with_inputs(|inputs| inputs.iter().for_each(&mut f));
        if let Some(composed) = &self.composed {
            composed.with_inputs(|inputs| inputs.iter().for_each(f));
        }
    }

    /// Returns the operands of the operation that runs. The entry's nodes release them, unless a
    /// trace retains them.
    pub fn take_inputs(&self) -> Inputs {
        match &self.composed {
            None => self.node.take_inputs(),
            Some(composed) => {
                drop(self.node.take_inputs());
                composed.take_inputs()
            }
        }
    }

    /// Releases the operands, unless a trace retains them.
    pub fn release_inputs(&self) {
        drop(self.node.take_inputs());
        if let Some(composed) = &self.composed {
            drop(composed.take_inputs());
        }
    }

    /// Returns true if the node cannot be made lazy again, because its operands are now those of
    /// its composition.
    pub fn is_final(&self) -> bool {
        self.composed.is_some() || self.part
    }

    /// Returns how the entry's run is counted. `None` for a part of a composition, because the
    /// composition is counted as a whole.
    pub fn dispatch(&self) -> Option<Dispatch> {
        match (&self.composed, self.part) {
            (_, true) => None,
            (Some(_), _) => Some(Dispatch::Decomposed),
            (None, _) => Some(Dispatch::Native),
        }
    }
}

/// Replaces operations that the device lacks by compositions. A node fails if its composition
/// cannot be built.
pub(super) fn lower(tape: Tape) -> Vec<Entry> {
    let Tape { entries, mark, composite, .. } = tape;
    if !composite {
        return adjacent::order(entries, mark);
    }
    let mut lowering = Lowering { entries: Vec::with_capacity(2 * entries.len()), mark };
    entries.into_iter().for_each(|entry| lowering.push(entry.node, false));
    adjacent::order(lowering.entries, mark)
}

struct Lowering {
    entries: Vec<Entry>,
    mark: u64,
}

impl Lowering {
    fn push(&mut self, node: Arc<Node>, part: bool) {
        let composed = match composition(&node) {
            None => None,
            Some(Ok(root)) => {
                let operands = node.take_inputs();
                self.push_parts(&root, &operands);
                Some(root)
            }
            Some(Err(error)) => {
                drop(node.take_inputs());
                node.finish(Err(Arc::new(error)));
                return;
            }
        };
        node.slot.store(self.entries.len() as u32, Ordering::Relaxed);
        self.entries.push(Entry { node, composed, part });
    }

    /// Claims the operands of a new node and puts them on the tape, lowest first. Claiming the
    /// nodes of a composition needs no scheduler lock, because no other thread knows them. Its
    /// `operands` are on the tape already, or have values.
    fn push_parts(&mut self, of: &Node, operands: &Inputs) {
        of.leave_trace();
        for input in of.inputs() {
            let known = operands.iter().any(|o| Arc::ptr_eq(o, &input));
            if known || input.is_done() || !input.claim() {
                continue;
            }
            input.mark.store(self.mark, Ordering::Relaxed);
            self.push_parts(&input, operands);
            self.push(input, true);
        }
    }
}

/// The composite rules of a node, if its device has no kernel for it.
pub(super) fn lacking(node: &Node) -> Option<&dyn Composite> {
    let composite = node.op.rules()?.composite()?;
    // Without a device, leave the node as it is: its run then fails with an error.
    let device = super::device_of(node.place.stream).ok()?;
    (node.size() == 0 || !is_offered(composite, node, device)).then_some(composite)
}

/// Builds the node's composition and returns its root, if the device has no kernel for the node.
fn composition(node: &Arc<Node>) -> Option<Result<Arc<Node>>> {
    let composite = lacking(node)?;
    let composed = catch_unwind(AssertUnwindSafe(|| composed(composite, node)));
    Some(composed.unwrap_or_else(|panic| Err(panicked(node, &*panic))))
}

fn is_offered(composite: &dyn Composite, node: &Node, device: &'static DeviceState) -> bool {
    let inputs: SmallVec<[_; 4]> =
        node.with_inputs(|all| all.iter().map(|i| (i.dtype, i.shape.len())).collect());
    composite.is_offered(&Offers {
        device,
        inputs: &inputs,
        output: (node.dtype, node.shape.len()),
    })
}

fn composed(composite: &dyn Composite, node: &Arc<Node>) -> Result<Arc<Node>> {
    let _place = placement::enter(node.place);
    let operands: SmallVec<[Array; 4]> =
        node.with_inputs(|all| all.iter().map(|i| Array::from_node(i.clone())).collect());
    let root = composite.compose(&operands, node.dtype)?;
    if (root.shape(), root.dtype()) != (&node.shape[..], node.dtype) {
        let (shape, dtype) = (&node.shape, node.dtype);
        let text = format!("composed of {:?} {} for {shape:?} {dtype}", root.shape(), root.dtype());
        return Err(Error::runtime(node.op.name(), text));
    }
    let ready =
        root.node().is_done() || operands.iter().any(|o| Arc::ptr_eq(o.node(), root.node()));
    if !ready {
        return Ok(root.node().clone());
    }
    // Do not change an array that existed before.
    let inputs = Inputs::from_elem(root.node().clone(), 1);
    let (shape, place) = (node.shape.clone(), node.place);
    Ok(Node::new(Identity::Traced.into(), inputs, shape, node.dtype, place))
}
