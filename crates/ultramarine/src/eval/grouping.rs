//! Groups the tape into tasks. The nodes of a task run as one fused program, or a single node runs
//! alone.
//!
//! [`super::lower`] has already replaced nodes that their device has no kernel for by compositions.
//!
//! One pass goes from the last node to the first:
//!
//! - A node joins the group of its consumers if all consumers are in one group, the node is
//!   elementwise, it has the group's iteration shape and stream, and the group has room.
//! - If the consumers are in several groups, the node joins the group that runs first, unless it
//!   would make that group wait for other nodes. The node is then written as an extra output, which
//!   the other groups read. An example is a value that a gradient needs again; in softmax, `exp` is
//!   written while it is summed.
//! - The group of a reduction accepts only the reduction's operand in this way, and only as its
//!   first member.
//! - On devices that take anchors, a norm is treated like a reduction. In a residual stream, the
//!   sum is written while its norm is computed.
//!
//! Groups ordered by their last nodes are in a valid order, because the group of a node runs no
//! later than the groups of its consumers.
//!
//! Small programs whose results no other task reads are placed together at the end
//! ([`Grouping::are_last`]).

use super::lower::{Entry, Tape, lower};
use crate::{backend, node::Node, ops, ops::shape::view::View, stream::Stream};
use smallvec::{SmallVec, smallvec};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Limit on the outputs of a fused program.
const MAX_OUTPUTS: usize = 8;
/// Limit on the different constants of a fused program.
const MAX_CONSTANTS: usize = 32;

/// Limit on the elements of a program that may be moved to the end, because its operands keep their
/// memory until then.
const SMALL: usize = 16 << 10;

const NONE: u32 = u32::MAX;
const SEVERAL: u32 = u32::MAX - 1;

/// A group's root that is not an instruction. It reads the result of the last instruction.
#[derive(Clone, Copy)]
pub(super) enum Epilogue {
    /// A reduction.
    Reduction(ops::Epilogue),
    /// An operation of the schema that is the program's anchor: [`ops::Rules::anchor`].
    Anchor,
}

/// Nodes that run as one command: a fused group, or a single op.
pub(super) struct Task {
    /// The members in the order of the tape. The last member is the root, which determines the
    /// group's shape, stream and epilogue.
    pub members: SmallVec<[Member; 2]>,
    /// Set if the root is the program's epilogue.
    pub epilogue: Option<Epilogue>,
    /// True if the task runs as a program: it has several members, or constants that the program
    /// carries.
    pub program: bool,
}

pub(super) struct Member {
    pub entry: Entry,
    /// True if the value is written to memory. Otherwise it exists in registers only.
    pub materialised: bool,
}

impl Task {
    fn root_entry(&self) -> &Entry {
        &self.members[self.members.len() - 1].entry
    }

    pub fn root(&self) -> &Arc<Node> {
        &self.root_entry().node
    }

    /// Returns the operand of the task's epilogue, if it has one.
    pub fn reduced(&self) -> Option<Arc<Node>> {
        self.root_entry().work().with_inputs(|inputs| inputs.first().cloned())
    }

    /// Takes the task, and leaves a task without members in its place.
    pub fn take(&mut self) -> Task {
        let members = std::mem::take(&mut self.members);
        Task { members, epilogue: self.epilogue, program: self.program }
    }

    /// Returns true if the task cannot be given up, because its nodes cannot be made lazy again.
    pub fn is_final(&self) -> bool {
        self.members.iter().any(|m| m.entry.is_final())
    }

    pub fn stream(&self) -> Stream {
        self.root().place.stream
    }
}

struct Group {
    members: SmallVec<[(u32, bool); 4]>,
    /// Nodes outside the group that members read, without the constants.
    inputs: SmallVec<[*const Node; 8]>,
    /// The inputs that have no value yet.
    pending: SmallVec<[*const Node; 4]>,
    /// Set if a member is written for other groups too: the nodes that all such members depend on.
    /// A member must not depend on further nodes, because these could fail, or would hold memory
    /// until they are evaluated.
    shared: Option<Vec<*const Node>>,
    constants: usize,
    outputs: usize,
    epilogue: Option<Epilogue>,
    fusable: bool,
}

/// Limit on the nodes that are searched below a node with consumers in several groups.
const MOST_BEHIND: usize = 64;

/// Returns true if a node is a constant that programs can carry as a scalar.
pub(super) fn is_constant(node: &Node) -> bool {
    node.constant().is_some()
}

/// Returns true unless the node is a view of a larger array, which has to be kept as long as the
/// view.
fn keeps_little(node: &Arc<Node>) -> bool {
    let view = !node.is_done() && node.op.get::<View>().is_some();
    !view
        || node.with_inputs(|inputs| {
            inputs.iter().all(|of| of.is_done() || (of.size() <= SMALL && keeps_little(of)))
        })
}

/// The uses of a node of the tape that the pass has seen so far.
#[derive(Clone, Copy)]
struct Uses {
    /// References from nodes of the tape.
    references: u32,
    /// The group of all consumers, `NONE` or `SEVERAL`.
    consumers: u32,
    /// The consumers' group that runs first. Groups are created from the last to the first, so this
    /// group has the highest number.
    first_consumer: u32,
    /// The group whose root is a reduction of the node, or `NONE`. For a constant, `SEVERAL` means
    /// that a consumer needs the constant as an array.
    reduced_by: u32,
}

impl Uses {
    const NONE: Uses = Uses { references: 0, consumers: NONE, first_consumer: 0, reduced_by: NONE };
}

struct Grouping<'a> {
    tape: &'a [Entry],
    mark: u64,
    groups: Vec<Group>,
    /// In the order of the tape.
    uses: &'a mut [Uses],
}

/// The epilogue that the node would be as the root of a program, without looking at the nodes
/// before it.
pub(super) fn closes(work: &Node, device: Option<&backend::DeviceState>) -> Option<Epilogue> {
    let rules = work.op.rules()?;
    let epilogue = match rules.epilogue() {
        Some(reduction) => Some(Epilogue::Reduction(reduction)),
        None => rules
            .anchor()
            .filter(|_| device.is_some_and(|d| d.takes_anchors()))
            .map(|_| Epilogue::Anchor),
    };
    epilogue.filter(|_| work.with_inputs(|inputs| inputs.iter().all(|x| x.size() > 0)))
}

/// Makes the task of a node that is evaluated alone. It avoids the cost of planning, which would
/// double the cost of the smallest evaluations.
pub(super) fn single(entry: Entry) -> Task {
    let (node, work) = (&entry.node, entry.work());
    let device = super::device_of(node.place.stream).ok();
    let runs = node.size() > 0 && device.is_some_and(|d| d.fused_limit() > 0);
    let epilogue = match runs && super::fusion() {
        // An anchor alone is not a program.
        true => closes(work, None),
        false => None,
    };
    let carries = || work.with_inputs(|inputs| inputs.iter().any(|x| is_constant(x)));
    let program = epilogue.is_some() || (runs && work.op.elementwise().is_some() && carries());
    let members = smallvec![Member { entry, materialised: true }];
    Task { members, epilogue, program }
}

/// Cuts a tape into tasks, in an order in which they can run.
pub(super) fn group_into_tasks(tape: Tape) -> Vec<Task> {
    let mark = tape.mark;
    let mut tape = lower(tape);
    if tape.len() == 1 {
        return tape.pop().map(single).into_iter().collect();
    }
    let n = tape.len();
    // Keep a few entries on the stack, because an allocation would cost a small evaluation most of
    // its time.
    let mut uses: SmallVec<[Uses; 4]> = SmallVec::from_elem(Uses::NONE, n);
    let mut grouping =
        Grouping { tape: &tape, mark, groups: Vec::with_capacity(n.min(64)), uses: &mut uses };
    grouping.count_uses();
    let fusion = super::fusion();
    for i in (0..n).rev() {
        grouping.assign(i, fusion);
    }
    let mut last = grouping.are_last();
    let groups = grouping.groups;
    let mut entries: Vec<Option<Entry>> = tape.into_iter().map(Some).collect();
    let mut tasks = Vec::with_capacity(groups.len());
    let mut behind = Vec::new();
    for group in groups.into_iter().rev() {
        let waits = last.pop().unwrap_or(false);
        let mut members = SmallVec::with_capacity(group.members.len());
        for (i, materialised) in group.members.iter().rev() {
            if let Some(entry) = entries[*i as usize].take() {
                members.push(Member { entry, materialised: *materialised });
            }
        }
        if !members.is_empty() {
            let alone = members.len() == 1;
            // An anchor alone is not a program.
            let epilogue = group.epilogue.filter(|e| !(alone && matches!(e, Epilogue::Anchor)));
            let program = !alone || epilogue.is_some() || group.constants > 0;
            let tasks = if waits { &mut behind } else { &mut tasks };
            tasks.push(Task { members, epilogue, program });
        }
    }
    tasks.append(&mut behind);
    // Constants that all consumers carry as scalars need no value, so make them lazy again.
    entries.into_iter().flatten().for_each(|e| e.node.release_claim());
    tasks
}

impl Grouping<'_> {
    fn slot(&self, node: &Node) -> Option<usize> {
        (node.mark.load(Ordering::Relaxed) == self.mark)
            .then(|| node.slot.load(Ordering::Relaxed) as usize)
            .filter(|s| self.tape.get(*s).is_some_and(|e| std::ptr::eq(&*e.node, node)))
    }

    fn count_uses(&mut self) {
        for entry in self.tape {
            entry.each_reference(|input| {
                if let Some(s) = self.slot(input) {
                    self.uses[s].references += 1;
                }
            });
        }
    }

    /// Returns true if the node's value may be needed outside the tape.
    fn is_wanted(&self, i: usize) -> bool {
        let node = &self.tape[i].node;
        node.handles.load(Ordering::Acquire) > 0
            // One reference belongs to the tape.
            || Arc::strong_count(node) > self.uses[i].references as usize + 1
    }

    fn assign(&mut self, i: usize, fusion: bool) {
        let tape = self.tape;
        let (node, work) = (&tape[i].node, tape[i].work());
        let consumers = self.uses[i].consumers;
        if is_constant(node) && consumers != NONE && !self.is_requested(i) {
            return;
        }
        let limits = super::device_of(node.place.stream).ok();
        let elementwise = work.op.elementwise().is_some();
        let runs = node.size() > 0 && limits.is_some_and(|d| d.fused_limit() > 0);
        let fusable = fusion && runs;
        if fusable && elementwise {
            let target = match consumers {
                NONE => None,
                // Join only the group that runs first. The other groups read the value that it
                // writes.
                SEVERAL => Some(self.uses[i].first_consumer).filter(|g| {
                    let group = &self.groups[*g as usize];
                    group.epilogue.is_none()
                        || (*g == self.uses[i].reduced_by && group.members.len() == 1)
                }),
                group => Some(group),
            };
            if let Some(g) = target
                && let Some(device) = limits
            {
                let materialised = consumers == SEVERAL || self.is_wanted(i);
                if self.join(i, g, materialised, device) {
                    return;
                }
            }
        }
        let epilogue = if fusable { closes(work, limits) } else { None };
        let g = self.groups.len() as u32;
        self.groups.push(Group {
            members: SmallVec::from_slice(&[(i as u32, true)]),
            inputs: SmallVec::new(),
            pending: SmallVec::new(),
            shared: None,
            constants: 0,
            outputs: 1,
            epilogue,
            // A single operation can be a program too, which carries its constants.
            fusable: (runs && elementwise) || epilogue.is_some(),
        });
        self.note_inputs(i, g);
        if epilogue.is_some() {
            work.with_inputs(|inputs| {
                if let Some(s) = inputs.first().and_then(|x| self.slot(x)) {
                    self.uses[s].reduced_by = g;
                }
            });
        }
    }

    /// Finds the groups to run after all others: small programs of elementwise operations whose
    /// results no other group reads. A training step has such a program for each vector of weights,
    /// between products that need other memory. If the programs are adjacent, a device may run them
    /// by one command. The result is empty if there are fewer than two.
    fn are_last(&self) -> Vec<bool> {
        let mut last: Vec<bool> = Vec::new();
        if self.groups.len() < 4 {
            return last;
        }
        for (g, group) in self.groups.iter().enumerate() {
            if self.is_last(g as u32, group) {
                last.resize(self.groups.len(), false);
                last[g] = true;
            }
        }
        if last.iter().filter(|is_last| **is_last).count() < 2 {
            last.clear();
        }
        last
    }

    fn is_last(&self, g: u32, group: &Group) -> bool {
        let is_own = |i: u32| [NONE, g].contains(&self.uses[i as usize].consumers);
        let root = &self.tape[group.members[0].0 as usize].node;
        group.members.len() > 1
            && group.epilogue.is_none()
            && root.size() <= SMALL
            && group.members.iter().all(|(i, _)| is_own(*i))
            && group.members.iter().all(|(i, _)| {
                let work = self.tape[*i as usize].work();
                work.with_inputs(|inputs| inputs.iter().all(keeps_little))
            })
    }

    /// Returns true if a constant must have a value: the evaluation requested it, or a consumer
    /// that is not a fused program reads it.
    fn is_requested(&self, i: usize) -> bool {
        match self.uses[i].consumers {
            NONE => true,
            // `note_inputs` sets `SEVERAL` if a consumer cannot carry constants.
            _ => self.uses[i].reduced_by == SEVERAL,
        }
    }

    /// Records the operands of a member that has just joined group `g`.
    fn note_inputs(&mut self, i: usize, g: u32) {
        let tape = self.tape;
        tape[i].work().with_inputs(|inputs| {
            for input in inputs {
                let group = &mut self.groups[g as usize];
                let carried =
                    group.fusable && group.epilogue.is_none_or(|_| group.members.len() > 1);
                if carried && is_constant(input) {
                    group.constants += 1;
                } else if !group.inputs.contains(&Arc::as_ptr(input)) {
                    group.inputs.push(Arc::as_ptr(input));
                    if input.value().is_none() {
                        group.pending.push(Arc::as_ptr(input));
                    }
                }
                if let Some(s) = self.slot(input) {
                    let uses = &mut self.uses[s];
                    let only = uses.consumers == NONE || uses.consumers == g;
                    uses.consumers = if only { g } else { SEVERAL };
                    uses.first_consumer = uses.first_consumer.max(g);
                    if !carried && is_constant(input) {
                        uses.reduced_by = SEVERAL;
                    }
                }
            }
        });
    }

    /// Finds the nearest nodes without a value that a node depends on.
    fn behind(&self, i: usize) -> Vec<*const Node> {
        let (mut found, mut next) = (Vec::new(), vec![i]);
        while let Some(i) = next.pop() {
            self.tape[i].work().with_inputs(|inputs| {
                for input in inputs.iter().filter(|input| input.value().is_none()) {
                    let at = Arc::as_ptr(input);
                    if found.len() < MOST_BEHIND && !found.contains(&at) {
                        found.push(at);
                        next.extend(self.slot(input));
                    }
                }
            });
        }
        found
    }

    fn join(
        &mut self,
        i: usize,
        g: u32,
        materialised: bool,
        device: &backend::DeviceState,
    ) -> bool {
        let tape = self.tape;
        let (node, work) = (&tape[i].node, tape[i].work());
        let group = &self.groups[g as usize];
        let root = &tape[group.members[0].0 as usize];
        // An epilogue iterates over its operand's shape.
        let same_shape = if group.epilogue.is_some() {
            root.work().with_inputs(|ins| ins.first().is_some_and(|x| x.shape == node.shape))
        } else {
            root.node.shape == node.shape
        };
        // The anchor's other operands must have values before the program runs, so they cannot be
        // members.
        let read_besides = matches!(group.epilogue, Some(Epilogue::Anchor))
            && root.work().with_inputs(|ins| ins.iter().skip(1).any(|x| Arc::ptr_eq(x, node)));
        if read_besides
            || !group.fusable
            || !same_shape
            || root.node.place.stream != node.place.stream
        {
            return false;
        }
        let (mut inputs, mut constants) = (0, 0);
        work.with_inputs(|ins| {
            for x in ins {
                if is_constant(x) {
                    constants += 1;
                } else if !group.inputs.contains(&Arc::as_ptr(x)) {
                    inputs += 1;
                }
            }
        });
        // Until now, the node itself was one of the group's inputs.
        if group.members.len() >= device.fused_limit()
            || group.inputs.len() + inputs > device.fused_inputs() + 1
            || group.constants + constants > MAX_CONSTANTS
            || group.outputs + materialised as usize > MAX_OUTPUTS
        {
            return false;
        }
        let own = Arc::as_ptr(node);
        let behind =
            (self.uses[i].consumers == SEVERAL && group.epilogue.is_none()).then(|| self.behind(i));
        let among = |nodes: &Option<Vec<*const Node>>, p: *const Node| {
            nodes.as_ref().is_none_or(|nodes| nodes.contains(&p))
        };
        let depends_as_others = work.with_inputs(|ins| {
            ins.iter().all(|x| x.value().is_some() || among(&group.shared, Arc::as_ptr(x)))
        });
        if !depends_as_others || !group.pending.iter().all(|p| *p == own || among(&behind, *p)) {
            return false;
        }
        let group = &mut self.groups[g as usize];
        if let Some(mut behind) = behind {
            behind.retain(|p| among(&group.shared, *p));
            group.shared = Some(behind);
        }
        group.inputs.retain(|p| *p != own);
        group.pending.retain(|p| *p != own);
        group.outputs += materialised as usize;
        group.members.push((i as u32, materialised));
        self.note_inputs(i, g);
        true
    }
}
