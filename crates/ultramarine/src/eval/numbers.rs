//! Finds the numbers in commands that come from constants of the graph, such as a learning rate.
//! Their places are noted while an evaluation is recorded, so that its commands can run again with
//! other numbers.
//!
//! Fused programs carry constants as scalars. For any other consumer of a constant, a command
//! writes the number to memory. This command carries the number too.

use super::fused_program::FusedProgram;
use super::grouping::Task;
use super::lower::Tape;
use crate::node::Node;
use crate::ops::create::fill::Fill;
use crate::scalar::Scalar;
use smallvec::SmallVec;
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use ultramarine_runtime::backend::executable;

/// The number of a constant, if it is an operand that programs can carry.
pub(super) fn number(node: &Node) -> Option<Scalar> {
    node.op.get::<Fill>().map(|fill| fill.value)
}

/// The use of a number by a command.
pub(super) struct Use {
    pub command: usize,
    /// Index among the numbers of the command.
    pub index: usize,
    /// Index among the numbers of the graph.
    pub number: u32,
}

/// A constant of an evaluation that is being recorded.
struct Constant {
    /// A weak reference, so that no other node gets the same address.
    node: Weak<Node>,
    /// Index among the numbers of the graph.
    number: u32,
    /// References to the constant that are not yet known to be from programs that carry it.
    open: usize,
    /// True if a command writes the constant to memory, from which the other references may read
    /// it.
    written: bool,
    /// True if there are holders outside the evaluation.
    wanted: bool,
}

/// The constants of an evaluation that is being recorded, by address, and what is known about them.
struct Noted {
    constants: HashMap<*const Node, Constant>,
    uses: Vec<Use>,
    /// For each number: true if it must be equal when the commands run again.
    stays: Vec<bool>,
}

thread_local! {
    static NOTED: RefCell<Option<Noted>> = const { RefCell::new(None) };
}

/// Begins to note the places of the tape's constants. `wanted` are the nodes with other holders, in
/// order.
pub(super) fn begin(tape: &Tape, numbers: &[Scalar], wanted: &[u32]) {
    let mut noted =
        Noted { constants: HashMap::new(), uses: Vec::new(), stays: vec![false; numbers.len()] };
    for (i, entry) in tape.entries.iter().enumerate() {
        let node = &entry.node;
        let place = number(node).and_then(|n| numbers.iter().position(|m| *m == n));
        if let Some(place) = place {
            let constant = Constant {
                node: Arc::downgrade(node),
                number: place as u32,
                open: 0,
                written: false,
                wanted: wanted.binary_search(&(i as u32)).is_ok(),
            };
            noted.constants.insert(Arc::as_ptr(node), constant);
        }
        // The parts of a composition are not on the tape, so their uses of the number would be
        // missed.
        let stays = node.op.is_composite();
        node.with_inputs(|inputs| {
            for input in inputs {
                if let Some(constant) = noted.constants.get_mut(&Arc::as_ptr(input)) {
                    constant.open += 1;
                    noted.stays[constant.number as usize] |= stays;
                }
            }
        });
    }
    NOTED.set(Some(noted));
}

/// Returns the uses of numbers by commands, and for each number whether it must be equal when the
/// commands run again.
pub(super) fn end() -> (Vec<Use>, Vec<bool>) {
    let Some(Noted { constants, mut uses, mut stays }) = NOTED.take() else {
        return Default::default();
    };
    for constant in constants.values().filter(|c| !c.written) {
        // The value is in use, because the evaluation requested it or another evaluation wrote it.
        let has_value = || constant.node.upgrade().is_some_and(|node| node.is_done());
        stays[constant.number as usize] |= constant.open > 0 || constant.wanted && has_value();
    }
    uses.retain(|u| !stays[u.number as usize]);
    (uses, stays)
}

/// Notes that a constant is written to memory by the command that was recorded after the first
/// `before` commands.
pub(super) fn note_written(node: &Arc<Node>, before: usize) {
    if executable::recorded() == Some(before + 1) {
        with(|noted| {
            if let Some(constant) = noted.constants.get_mut(&Arc::as_ptr(node)) {
                constant.written = true;
                noted.uses.push(Use { command: before, index: 0, number: constant.number });
            }
        });
    }
}

/// Notes that an operation reads its operands as nodes, so its result may depend on the numbers of
/// constants among them.
pub(super) fn keep(operands: &[Arc<Node>]) {
    with(|noted| {
        for operand in operands {
            if let Some(constant) = noted.constants.get(&Arc::as_ptr(operand)) {
                noted.stays[constant.number as usize] = true;
            }
        }
    });
}

fn with(f: impl FnOnce(&mut Noted)) {
    NOTED.with_borrow_mut(|noted| noted.as_mut().map(f));
}

/// Notes the constants of a program that was just submitted to the device, if the calling thread is
/// recording.
#[inline]
pub(super) fn note(task: &Task, program: &FusedProgram) {
    if let Some(commands) = executable::recorded() {
        with(|noted| {
            if let Some(command) = commands.checked_sub(1) {
                noted.program(task, program, command);
            }
        });
    }
}

impl Noted {
    fn program(&mut self, task: &Task, program: &FusedProgram, command: usize) {
        // For each constant of the program: the index of the graph's number, and whether a constant
        // from elsewhere has an equal number.
        let mut origins: SmallVec<[(Option<u32>, bool); 8]> =
            SmallVec::from_elem((None, false), program.constants.len());
        for (i, member) in task.reading().iter().enumerate() {
            member.entry.work().with_inputs(|inputs| {
                for input in inputs {
                    let Some(index) = program.constant(task, i, input) else { continue };
                    match self.constants.get_mut(&Arc::as_ptr(input)) {
                        Some(constant) => {
                            origins[index].0 = Some(constant.number);
                            constant.open = constant.open.saturating_sub(1);
                        }
                        None => origins[index].1 = true,
                    }
                }
            });
        }
        for (index, (number, elsewhere)) in origins.into_iter().enumerate() {
            let Some(number) = number else { continue };
            self.stays[number as usize] |= elsewhere;
            self.uses.push(Use { command, index, number });
        }
    }
}
