//! Numbers of commands that come from constants of the graph, such as a learning rate: where each is, is noted while an
//! evaluation is recorded, so that its commands can run with others.
//!
//! Only fused programs carry constants. A constant that anything else reads has its number written to memory by a
//! command of its own, and stays as it is in the recording.

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

/// The number of a constant, if it is an operand that programs may carry.
pub(super) fn number(node: &Node) -> Option<Scalar> {
    node.op.get::<Fill>().map(|fill| fill.value)
}

/// A number of a command.
pub(super) struct Use {
    pub command: usize,
    /// Its place among the command's numbers.
    pub index: usize,
    /// Its place among the numbers of the graph.
    pub number: u32,
}

/// The constants of an evaluation that is recorded, and what was seen of them.
struct Noted {
    /// By address, which the weak reference keeps from being another node's.
    constants: HashMap<*const Node, (Weak<Node>, u32)>,
    uses: Vec<Use>,
    /// Of each number: references to its constants that no program was seen to carry, and whether it has to stay.
    open: Vec<(usize, bool)>,
}

thread_local! {
    static NOTED: RefCell<Option<Noted>> = const { RefCell::new(None) };
}

/// Begins to note where the numbers of a tape's constants are. `wanted` are the nodes that others hold, in order.
pub(super) fn begin(tape: &Tape, numbers: &[Scalar], wanted: &[u32]) {
    let mut noted = Noted {
        constants: HashMap::new(),
        uses: Vec::new(),
        open: vec![(0, false); numbers.len()],
    };
    for (i, entry) in tape.entries.iter().enumerate() {
        let node = &entry.node;
        let place = number(node).and_then(|n| numbers.iter().position(|m| *m == n));
        if let Some(place) = place {
            noted.constants.insert(Arc::as_ptr(node), (Arc::downgrade(node), place as u32));
            noted.open[place].1 |= wanted.binary_search(&(i as u32)).is_ok();
        }
        // The parts of a composition are not on the tape.
        let stays = node.op.is_composite();
        node.with_inputs(|inputs| {
            for (_, place) in inputs.iter().filter_map(|n| noted.constants.get(&Arc::as_ptr(n))) {
                let open = &mut noted.open[*place as usize];
                *open = (open.0 + 1, open.1 | stays);
            }
        });
    }
    NOTED.set(Some(noted));
}

/// The places of numbers in commands, and of each number whether it has to be the same again.
pub(super) fn end() -> (Vec<Use>, Vec<bool>) {
    let Some(Noted { mut uses, open, .. }) = NOTED.take() else { return Default::default() };
    let stays: Vec<bool> = open.into_iter().map(|open| open != (0, false)).collect();
    uses.retain(|u| !stays[u.number as usize]);
    (uses, stays)
}

/// Notes the constants of a program that was just given to the device, if the calling thread records.
#[inline]
pub(super) fn note(task: &Task, program: &FusedProgram) {
    if let Some(commands) = executable::recorded() {
        NOTED.with_borrow_mut(|noted| {
            if let (Some(noted), Some(command)) = (noted, commands.checked_sub(1)) {
                noted.program(task, program, command);
            }
        });
    }
}

impl Noted {
    fn program(&mut self, task: &Task, program: &FusedProgram, command: usize) {
        // Of each constant of the program: the graph's number, and whether a constant from elsewhere has the same.
        let mut origins: SmallVec<[(Option<u32>, bool); 8]> =
            SmallVec::from_elem((None, false), program.constants.len());
        for (i, member) in task.members.iter().enumerate() {
            member.entry.work().with_inputs(|inputs| {
                for input in inputs {
                    let Some(index) = program.constant(task, i, input) else { continue };
                    match self.constants.get(&Arc::as_ptr(input)) {
                        Some((_, number)) => {
                            origins[index].0 = Some(*number);
                            let open = &mut self.open[*number as usize];
                            open.0 = open.0.saturating_sub(1);
                        }
                        None => origins[index].1 = true,
                    }
                }
            });
        }
        for (index, (number, elsewhere)) in origins.into_iter().enumerate() {
            let Some(number) = number else { continue };
            self.open[number as usize].1 |= elsewhere;
            self.uses.push(Use { command, index, number });
        }
    }
}
