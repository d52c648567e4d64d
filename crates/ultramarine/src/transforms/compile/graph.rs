//! The graph of a traced function: a list of steps. A step uses earlier steps only.

use crate::node::{Inputs, Node};
use crate::ops::{Op, Rules};
use crate::{array::Array, dtype::Dtype, placement::Place, scalar::Scalar, shape::Shape};
use smallvec::SmallVec;
use std::sync::Arc;

/// Indices of the steps that a step uses.
pub(crate) type Operands = SmallVec<[u32; 2]>;

/// The origin of a step's array.
#[derive(Clone)]
pub(crate) enum Source {
    /// The argument with this index.
    Input(u32),
    /// An array that existed before the call, or does not depend on the arguments.
    Constant(Array),
    /// An operation.
    Op(Op),
}

/// One array of the graph.
#[derive(Clone)]
pub(crate) struct Step {
    pub source: Source,
    pub operands: Operands,
    pub shape: Shape,
    pub dtype: Dtype,
    pub place: Place,
    /// True if transforms do not see the step, because it is inside a call that is one operation to
    /// them.
    pub hidden: bool,
}

impl Step {
    /// Returns the operation of a step, if it is one.
    pub fn op(&self) -> Option<&Op> {
        match &self.source {
            Source::Op(op) => Some(op),
            _ => None,
        }
    }

    /// Returns the attributes of a step's operation, if they are a `T`.
    pub fn get<T: Rules>(&self) -> Option<&T> {
        self.op()?.get()
    }

    /// Returns the value of each element, if the step is a constant.
    pub fn constant(&self) -> Option<Scalar> {
        self.op()?.constant()
    }

    /// Makes the node of an operation with these operands.
    pub fn node(&self, op: Op, operands: Inputs, shape: Shape) -> Arc<Node> {
        let node = Node::new(op, operands, shape, self.dtype, self.place);
        if self.hidden {
            node.leave_trace();
        }
        node
    }
}

/// A node for each step that is an operation.
pub(crate) type Made = SmallVec<[Option<Arc<Node>>; 8]>;

/// A recorded function: steps in an order in which they can run.
#[derive(Clone)]
pub(crate) struct Graph {
    pub steps: Vec<Step>,
    /// The steps of the results.
    pub outputs: Vec<u32>,
}

impl Graph {
    /// Returns lazy results for other arguments of the same shapes, dtypes and homes.
    pub fn replay(&self, inputs: &[Array]) -> Vec<Array> {
        let input = |i: usize| inputs[i].node();
        let made = self.nodes(input);
        let mut results = Vec::with_capacity(self.outputs.len());
        for output in &self.outputs {
            results.extend(self.node(*output, input, &made).map(Array::from_node));
        }
        results
    }

    /// Makes new nodes for the steps that are operations, from the inputs' nodes. Other steps get
    /// `None`.
    pub fn nodes<'a>(&self, input: impl Fn(usize) -> &'a Arc<Node>) -> Made {
        let mut made = Made::with_capacity(self.steps.len());
        for step in &self.steps {
            let Some(op) = step.op() else {
                made.push(None);
                continue;
            };
            let mut operands = Inputs::new();
            for i in &step.operands {
                if let Some(node) = self.node(*i, &input, &made) {
                    operands.push(node);
                }
            }
            made.push(Some(step.node(op.for_new_node(), operands, step.shape.clone())));
        }
        made
    }

    /// The node of a step. If the step is an operation, its node must have been made already.
    fn node<'a>(
        &self,
        step: u32,
        input: impl Fn(usize) -> &'a Arc<Node>,
        made: &[Option<Arc<Node>>],
    ) -> Option<Arc<Node>> {
        match &self.steps[step as usize].source {
            Source::Input(i) => Some(input(*i as usize).clone()),
            Source::Constant(array) => Some(array.node().clone()),
            Source::Op(_) => made.get(step as usize)?.clone(),
        }
    }

    /// Returns for each step whether a result depends on it.
    pub fn needed(&self) -> Vec<bool> {
        let mut needed = vec![false; self.steps.len()];
        self.outputs.iter().for_each(|o| needed[*o as usize] = true);
        for i in (0..self.steps.len()).rev() {
            if needed[i] {
                self.steps[i].operands.iter().for_each(|x| needed[*x as usize] = true);
            }
        }
        needed
    }

    /// Drops steps that no result depends on.
    pub fn drop_unused(&mut self) {
        let mut each = self.needed().into_iter();
        // A dropped step gets an arbitrary index, because no step uses it.
        self.rewrite(|_, _| if each.next() == Some(true) { None } else { Some(u32::MAX) });
    }

    /// Rebuilds the graph step by step. `f` gets the steps of the new graph, and the next step,
    /// whose operands are indices into the new graph. `f` returns the index of an earlier step that
    /// replaces the step, or `None` to keep the step.
    pub fn rewrite(&mut self, mut f: impl FnMut(&mut Vec<Step>, &mut Step) -> Option<u32>) {
        let before = std::mem::take(&mut self.steps);
        let mut now: Vec<u32> = Vec::with_capacity(before.len());
        let mut steps = Vec::with_capacity(before.len());
        for mut step in before {
            step.operands.iter_mut().for_each(|i| *i = now[*i as usize]);
            now.push(match f(&mut steps, &mut step) {
                Some(other) => other,
                None => {
                    steps.push(step);
                    steps.len() as u32 - 1
                }
            });
        }
        self.steps = steps;
        self.outputs.iter_mut().for_each(|o| *o = now[*o as usize]);
    }
}
