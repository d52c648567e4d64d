//! A call of a compiled function as one operation. Its evaluation runs an executable.
//!
//! Small graphs of only elementwise operations are built among the caller's nodes instead, where
//! they fuse with the surrounding operations.

use super::graph::{Graph, Source, Step};
use crate::error::{Error, Result};
use crate::node::{Inputs, Node};
use crate::ops::rules::multi_output::{MultiOutput, MultiOutputRules, Results};
use crate::ops::rules::subgraph::{Built, Executables, Subgraph};
use crate::ops::{Attribute, Call, Draft, Opaque, OperationKey};
use crate::{
    array::Array, backend::Exec, dtype::Dtype, node::Value, placement::Place, shape::Shape,
};
use std::fmt;
use std::sync::Arc;

/// A call with fewer operations is not worth an executable.
const FEWEST: usize = 8;
/// An elementwise graph with up to this many operations is built among the caller's nodes.
const MOST_ELEMENTWISE: usize = 64;

/// A graph that can be called as a single operation.
pub(super) struct Callable {
    graph: Graph,
    place: Place,
    /// Outputs that are made by operations, by their index among all outputs.
    made: Vec<usize>,
    executables: Executables,
}

impl Callable {
    /// `None` if the graph should be built among the caller's nodes, or is on several streams.
    pub fn of(graph: &Graph) -> Option<Arc<Callable>> {
        let operations: Vec<&Step> = graph.steps.iter().filter(|s| s.op().is_some()).collect();
        let others =
            operations.iter().filter(|s| s.op().is_some_and(|op| op.elementwise().is_none()));
        let large = match others.count() {
            0 | 1 => operations.len() > MOST_ELEMENTWISE,
            _ => operations.len() >= FEWEST,
        };
        let place = operations.last()?.place;
        let one_stream = operations.iter().all(|s| s.place.stream == place.stream);
        let plain = operations.iter().all(|s| {
            !s.op().is_some_and(|op| {
                op.is_given()
                    || op
                        .get::<MultiOutput>()
                        .is_some_and(|m| m.rules().forwards_operands() || m.rules().communicates())
            })
        });
        let is_made = |o: &usize| graph.steps[graph.outputs[*o] as usize].op().is_some();
        let made: Vec<usize> = (0..graph.outputs.len()).filter(is_made).collect();
        let fits = large && one_stream && plain && !made.is_empty();
        let executables = Executables::default();
        fits.then(|| Arc::new(Callable { graph: graph.clone(), place, made, executables }))
    }

    /// Returns lazy results for these arguments. `None` as long as an array that the function
    /// closes over has no value.
    pub fn call(self: &Arc<Callable>, inputs: &[Array]) -> Option<Vec<Array>> {
        let lazy =
            |s: &Step| matches!(&s.source, Source::Constant(array) if !array.node().is_done());
        if self.graph.steps.iter().any(lazy) {
            return None;
        }
        let output = |o: usize| &self.graph.steps[self.graph.outputs[o] as usize];
        let results: Results =
            self.made.iter().map(|o| (output(*o).shape.clone(), output(*o).dtype)).collect();
        let places = self.made.iter().map(|o| output(*o).place).collect();
        let (shape, dtype) = results.first().cloned()?;
        let multi = MultiOutput::new(CompiledCall(self.clone()), results, places);
        let operands: Inputs = inputs.iter().map(|i| i.node().clone()).collect();
        let node = Node::new(multi.clone().into(), operands, shape, dtype, self.place);
        let mut made = multi.outputs(&node).into_iter();
        let all = self.graph.outputs.iter().map(|o| match &self.graph.steps[*o as usize].source {
            Source::Input(i) => Some(inputs[*i as usize].clone()),
            Source::Constant(array) => Some(array.clone()),
            Source::Op(_) => made.next(),
        });
        all.collect()
    }
}

impl Subgraph for Callable {
    fn build(&self, operands: &[Arc<Node>]) -> Built {
        let all = self.graph.nodes(|i| &operands[i]);
        let outputs = self.made.iter();
        let outputs = outputs.filter_map(|o| all[self.graph.outputs[*o] as usize].clone());
        Built { outputs: outputs.collect(), nodes: all.into_iter().flatten().collect() }
    }

    fn executables(&self) -> &Executables {
        &self.executables
    }
}

impl Opaque for Callable {}

/// The operation.
struct CompiledCall(Arc<Callable>);

impl fmt::Debug for CompiledCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Compiled({} operations)", self.0.graph.steps.len())
    }
}

impl Attribute for CompiledCall {
    fn encode(&self, key: &mut OperationKey) {
        key.opaque(self.0.clone());
    }
}

impl MultiOutputRules for CompiledCall {
    fn name(&self) -> &'static str {
        "compiled"
    }

    fn admits(&self, _: &Draft<'_>) -> bool {
        true
    }

    fn subgraph(&self) -> Option<&dyn Subgraph> {
        Some(&*self.0)
    }

    fn eval(&self, _: &Exec, _: &Call<'_>, _: &[(Shape, Dtype)]) -> Result<Vec<Value>> {
        Err(Error::runtime("compiled", "the evaluator runs the graph"))
    }
}
