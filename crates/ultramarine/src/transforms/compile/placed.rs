//! Adapts the placement of a graph to arguments whose homes differ from those during the trace.

use super::graph::{Graph, Source, Step};
use crate::ops::copy::{identity::Identity, transfer::Transfer};
use crate::ops::rules::multi_output::{MultiOutput, OutputOf};
use crate::placement::{Place, place_among};
use crate::{array::Array, device::Device, error::Result};
use smallvec::SmallVec;

/// The home of each argument.
pub(super) type Homes = SmallVec<[Option<Device>; 8]>;

pub(super) fn homes(inputs: &[Array]) -> Homes {
    inputs.iter().map(|i| i.node().home()).collect()
}

/// Returns true if the arguments have these homes.
#[inline]
pub(super) fn are_at(homes: &Homes, inputs: &[Array]) -> bool {
    homes.len() == inputs.len()
        && inputs.iter().zip(homes).all(|(i, home)| i.node().home() == *home)
}

/// The operation, if it passes its last operands on.
fn forwarding(step: &Step) -> Option<&MultiOutput> {
    step.get::<MultiOutput>().filter(|multi| multi.rules().forwards_operands())
}

impl Graph {
    /// Returns the graph for arguments like these. Operations whose place was not named follow
    /// their operands, as in a call of the function with these arguments.
    ///
    /// # Errors
    /// [`Error::Value`](crate::Error::Value) if operands are on accelerators that cannot be
    /// combined.
    pub fn placed(mut self, inputs: &[Array]) -> Result<Graph> {
        for i in 0..self.steps.len() {
            let (before, rest) = self.steps.split_at_mut(i);
            let step = &mut rest[0];
            let operand = |k: usize| &before[step.operands[k] as usize];
            let op = match &step.source {
                Source::Input(n) => {
                    step.place = inputs[*n as usize].node().place;
                    continue;
                }
                Source::Constant(_) => continue,
                Source::Op(op) => op,
            };
            if op.is::<Transfer>() {
                let from = operand(0).place.home();
                step.source = Source::Op(Transfer::out_of(from).into());
            } else if !step.place.named {
                let n = step.operands.len();
                step.place = if op.get::<Identity>().is_some_and(|i| i.keeps_place()) {
                    operand(0).place
                } else if let Some(multi) = forwarding(step) {
                    operand(n - multi.len()).place
                } else if let Some(output) = op.get::<OutputOf>() {
                    let bundle = operand(0);
                    match forwarding(bundle) {
                        Some(multi) => {
                            let first = bundle.operands.len() - multi.len();
                            before[bundle.operands[first + output.index] as usize].place
                        }
                        None => bundle.place,
                    }
                } else {
                    let homes = (0..n).filter_map(|k| operand(k).place.home());
                    let deterministic = step.place.deterministic;
                    Place { deterministic, ..place_among(op, n == 0, homes)? }
                };
            }
        }
        self.place_creation();
        Ok(self)
    }

    /// Places arrays without a home where they are first read.
    fn place_creation(&mut self) {
        for i in (0..self.steps.len()).rev() {
            if self.steps[i].op().is_none() || self.steps[i].place.home().is_none() {
                continue;
            }
            let place = Place { named: false, ..self.steps[i].place };
            for k in self.steps[i].operands.clone() {
                let operand = &mut self.steps[k as usize];
                if operand.op().is_some() && !operand.place.named && !operand.place.firm {
                    operand.place = place;
                }
            }
        }
    }
}
