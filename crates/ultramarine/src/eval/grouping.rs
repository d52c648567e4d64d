//! Grouping of the tape into tasks: nodes that run as one fused program, or alone.
//!
//! Nodes that their device has no kernel for are replaced by compositions first ([`super::lower`]).
//!
//! One pass from the last node to the first. A node joins the group of its
//! consumers if all of them are in one group, it is elementwise, has the group's
//! iteration shape and stream, and the group has room. One whose consumers are in
//! several groups joins the one that runs first, if that waits for nothing else, and
//! is written as an extra output that the others read (a value that a gradient needs
//! again; softmax: `exp` is written while it is summed). The group of a reduction takes only the reduction's
//! operand in that way, and as its first member.
//!
//! Groups in the order of their last nodes are in a valid order: a node's group runs
//! no later than those of its consumers. A norm, where the device takes anchors, is like a reduction
//! (a residual stream: the sum is written while its norm is computed).
//!
//! Small programs whose results no other task reads come last, behind one another ([`Grouping::are_last`]).

use super::lower::{Entry, Tape, lower};
use crate::{backend, node::Node, ops, ops::shape::view::View, stream::Stream};
use smallvec::{SmallVec, smallvec};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Most outputs of a fused program.
const MAX_OUTPUTS: usize = 8;
/// Most different constants of a fused program.
const MAX_CONSTANTS: usize = 32;

/// Most elements of a program that may wait until the end: what it reads has memory until then.
const SMALL: usize = 16 << 10;

const NONE: u32 = u32::MAX;
const SEVERAL: u32 = u32::MAX - 1;

/// The root of a group that is no instruction. It reads the last one's result.
#[derive(Clone, Copy)]
pub(super) enum Epilogue {
    /// A reduction.
    Reduction(ops::Epilogue),
    /// An operation of the contract, the program's anchor: [`ops::Rules::anchor`].
    Anchor,
}

/// Nodes that run as one command: a fused group, or one op by itself.
pub(super) struct Task {
    /// In the order of the tape; the last is the root, whose shape, stream and
    /// epilogue are the group's.
    pub members: SmallVec<[Member; 2]>,
    /// The root closes the program.
    pub epilogue: Option<Epilogue>,
    /// Run as a program: several members, or constants that it carries.
    pub program: bool,
}

pub(super) struct Member {
    pub entry: Entry,
    /// Its value is written; otherwise it exists in registers only.
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

    /// Takes the task, and leaves one without members.
    pub fn take(&mut self) -> Task {
        let members = std::mem::take(&mut self.members);
        Task { members, epilogue: self.epilogue, program: self.program }
    }

    /// Returns true if the task cannot be given up: its nodes cannot be lazy again.
    pub fn is_final(&self) -> bool {
        self.members.iter().any(|m| m.entry.is_final())
    }

    pub fn stream(&self) -> Stream {
        self.root().place.stream
    }
}

struct Group {
    members: SmallVec<[(u32, bool); 4]>,
    /// Nodes outside that members read (not the constants).
    inputs: SmallVec<[*const Node; 8]>,
    /// Of the inputs, those that have no value yet.
    pending: SmallVec<[*const Node; 4]>,
    /// Where a member is written for other groups, too: the nodes that all such members depend on. No member may depend on
    /// others, which could fail, or take memory until they are there.
    shared: Option<Vec<*const Node>>,
    constants: usize,
    outputs: usize,
    epilogue: Option<Epilogue>,
    fusable: bool,
}

/// Nodes that are looked at behind a node that several groups read.
const MOST_BEHIND: usize = 64;

/// Returns true if a node is a constant that programs carry as a scalar.
pub(super) fn is_constant(node: &Node) -> bool {
    node.constant().is_some()
}

/// Returns true unless the node is a view of something larger, which has to stay as long as the view.
fn keeps_little(node: &Arc<Node>) -> bool {
    let view = !node.is_done() && node.op.get::<View>().is_some();
    !view
        || node.with_inputs(|inputs| {
            inputs.iter().all(|of| of.is_done() || (of.size() <= SMALL && keeps_little(of)))
        })
}

/// The uses of a node of the tape, as far as the pass has seen them.
#[derive(Clone, Copy)]
struct Uses {
    /// References from nodes of the tape.
    references: u32,
    /// The group of all consumers, `NONE` or `SEVERAL`.
    consumers: u32,
    /// The consumers' group that runs first: groups are made from the last to the
    /// first, so the one with the highest number.
    first_consumer: u32,
    /// The group whose root is a reduction of the node, or `NONE`. Of a constant: `SEVERAL`
    /// if a consumer needs it as an array.
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

/// The end of a program that a node may be, with nothing before it so far.
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

/// The task of a node that is evaluated by itself: the smallest evaluations cost as much as their planning.
pub(super) fn single(entry: Entry) -> Task {
    let (node, work) = (&entry.node, entry.work());
    let device = super::device_of(node.place.stream).ok();
    let runs = node.size() > 0 && device.is_some_and(|d| d.fused_limit() > 0);
    let epilogue = match runs && super::fusion() {
        // Nothing hangs on an anchor by itself.
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
    // A few lie on the stack: allocations cost a small evaluation most.
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
            // Nothing hangs on an anchor by itself.
            let epilogue = group.epilogue.filter(|e| !(alone && matches!(e, Epilogue::Anchor)));
            let program = !alone || epilogue.is_some() || group.constants > 0;
            let tasks = if waits { &mut behind } else { &mut tasks };
            tasks.push(Task { members, epilogue, program });
        }
    }
    tasks.append(&mut behind);
    // Constants that every consumer carries itself are not needed: lazy again.
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

    /// Returns true if the node may be needed outside the tape.
    fn is_wanted(&self, i: usize) -> bool {
        let node = &self.tape[i].node;
        node.handles.load(Ordering::Acquire) > 0
            // One reference is the tape's own.
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
                // Only into the group that runs first: the others read what it writes.
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
            // One operation by itself is a program too: it carries its constants.
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

    /// The groups that run behind all others: small programs of elementwise operations that no other group reads. A step of
    /// training has one for each vector of weights, between products that need other memory: together, a device may run them
    /// by one command. Empty for fewer than two.
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

    /// A constant must have a value if an evaluation asked for it, or if something
    /// that is no fused program reads it.
    fn is_requested(&self, i: usize) -> bool {
        match self.uses[i].consumers {
            NONE => true,
            // Marked by `note_inputs` when a consumer cannot carry constants.
            _ => self.uses[i].reduced_by == SEVERAL,
        }
    }

    /// Records the operands of a member that just entered group `g`.
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

    /// The nearest nodes without a value that a node depends on.
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
        // An anchor's other operands have to be there before it.
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
        // The node itself was an input until now.
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
