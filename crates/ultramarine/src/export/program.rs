//! Programs: prepares the graphs of traces for a file, writes them, reads and checks them, and builds them.

use super::constants::Constants;
use super::operations;
use super::text::{OpText, StepText, TypeText};
use crate::error::{Error, Result, bail};
use crate::graph::draft::{Draft, Type};
use crate::ops::Op;
use crate::ops::copy::{identity::Identity, transfer::Transfer};
use crate::ops::rules::multi_output::{MultiOutput, OutputOf, Results};
use crate::ops::shape::view::View;
use crate::placement::Place;
use crate::shape::{Shape, Show};
use crate::transforms::compile::graph::{Graph, Operands, Source, Step};
use crate::{array::Array, dtype::Dtype, eval, io, node::Node, stream};
use smallvec::SmallVec;
use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use std::sync::Arc;

const EXPORT: &str = "export_function";
const IMPORT: &str = "import_function";

/// The value that replaces a step which is not an operation of its own. Stand-ins and copies between devices are
/// replaced by their operand, calls with rules of their own by the values that they compute. If these rules are
/// derivatives, the step becomes a barrier to derivatives.
fn stands_for(steps: &[Step], step: &mut Step) -> Option<u32> {
    let is_itself =
        matches!(step.get(), Some(Identity::Traced)) || step.get::<Transfer>().is_some();
    if is_itself {
        return Some(step.operands[0]);
    }
    let output: &OutputOf = step.get()?;
    let bundle = &steps[step.operands[0] as usize];
    let multi: &MultiOutput = bundle.get()?;
    if !multi.rules().forwards_operands() || bundle.op().and_then(operations::written).is_some() {
        return None;
    }
    let first = bundle.operands.len().checked_sub(multi.len())?;
    let computed = bundle.operands[first + output.index];
    if !multi.rules().has_own_derivatives() {
        return Some(computed);
    }
    step.source = Source::Op(Identity::Underivable.into());
    step.operands = [computed].into_iter().collect();
    None
}

/// Converts the graph of a trace to one that contains only what files can contain. Other steps that do not depend on
/// arguments are evaluated.
///
/// # Errors
/// [`Error::Value`] for an operation that files cannot contain; errors of evaluation.
pub(super) fn storable(mut graph: Graph) -> Result<Graph> {
    graph.rewrite(|steps, step| stands_for(steps, step));
    graph.drop_unused();
    let mut depends = vec![false; graph.steps.len()];
    let mut computed: Vec<u32> = Vec::new();
    for (i, step) in graph.steps.iter().enumerate() {
        let from = |x: &u32| depends[*x as usize];
        depends[i] = matches!(step.source, Source::Input(_)) || step.operands.iter().any(from);
        let Some(op) = step.op() else { continue };
        let bundle = |x: u32| graph.steps[x as usize].op();
        let of = if op.is::<OutputOf>() { bundle(step.operands[0]).unwrap_or(op) } else { op };
        if operations::written(of).is_some() {
            continue;
        }
        if depends[i] {
            return Err(refused(of));
        }
        let is_value = op.get::<MultiOutput>().is_none_or(MultiOutput::is_result);
        computed.extend(is_value.then_some(i as u32));
    }
    if !computed.is_empty() {
        let part = Graph { steps: graph.steps.clone(), outputs: computed.clone() };
        let values = built(&part, &[])?;
        for (i, value) in computed.into_iter().zip(values) {
            graph.steps[i as usize].source = Source::Constant(value);
            graph.steps[i as usize].operands.clear();
        }
        graph.drop_unused();
    }
    Ok(graph)
}

#[cold]
fn refused(op: &Op) -> Error {
    let name = op.name();
    let text = match operations::foreign(op) {
        Some(_) => format!(
            "{name} cannot be exported, because its package does not register it for import. Register it by \
             `provide` (docs/write-an-operation.md)."
        ),
        None => format!(
            "{name} cannot be exported, because files of functions hold no code. Export the parts before and after it."
        ),
    };
    Error::value(EXPORT, text)
}

/// The steps and outputs of a [`storable`] graph with `arguments` arguments.
///
/// # Errors
/// [`Error::Value`] for an operation that files cannot contain.
pub(super) fn written(
    graph: &Graph,
    arguments: usize,
    constants: &Constants,
) -> Result<(Vec<StepText>, Vec<u32>)> {
    let mut numbers = vec![0; graph.steps.len()];
    let mut steps = Vec::new();
    for (i, step) in graph.steps.iter().enumerate() {
        let next = (arguments + steps.len()) as u32;
        match &step.source {
            Source::Input(n) => {
                numbers[i] = *n;
                continue;
            }
            Source::Constant(array) => {
                let missing = || {
                    Error::runtime(
                        EXPORT,
                        "A constant has no value. Evaluate it before the export.",
                    )
                };
                steps.extend(constants.steps(array, next).ok_or_else(missing)?);
            }
            Source::Op(op) => {
                let of = step.operands.iter().map(|x| numbers[*x as usize]).collect();
                steps.push(op_text(op, step, of)?);
            }
        }
        numbers[i] = (arguments + steps.len()) as u32 - 1;
    }
    Ok((steps, graph.outputs.iter().map(|o| numbers[*o as usize]).collect()))
}

fn op_text(op: &Op, step: &Step, of: Vec<u32>) -> Result<StepText> {
    if let Some(output) = op.get::<OutputOf>() {
        return Ok(StepText::Result { of: of[0], index: output.index });
    }
    let (name, attributes) = operations::written(op).ok_or_else(|| refused(op))?;
    let gives = match op.get::<MultiOutput>() {
        Some(multi) => multi.results().iter().map(|(s, d)| TypeText::new(s, *d)).collect(),
        None => vec![TypeText::new(&step.shape, step.dtype)],
    };
    let (name, version) = (name.to_owned(), operations::version(op));
    Ok(StepText::Op(OpText { name, version, of, gives, attributes }))
}

/// Reads the steps of a program whose arguments have the given types.
pub(super) struct Reader<'a> {
    graph: Graph,
    constants: &'a io::Arrays,
}

impl<'a> Reader<'a> {
    pub fn new(arguments: &[(Shape, Dtype)], constants: &'a io::Arrays) -> Reader<'a> {
        let input = |(i, (shape, dtype)): (usize, &(Shape, Dtype))| {
            step(Source::Input(i as u32), Operands::new(), shape.clone(), *dtype)
        };
        let steps = arguments.iter().enumerate().map(input).collect();
        Reader { graph: Graph { steps, outputs: Vec::new() }, constants }
    }

    /// Reads the next step.
    ///
    /// # Errors
    /// A text that describes the error in the step.
    pub fn read(&mut self, text: &StepText) -> Result<(), String> {
        let read = match text {
            StepText::Constant(name) => {
                let array = self.constants.get(name);
                let array = array.ok_or_else(|| format!("there is no array `{name}`"))?;
                let shape = Shape::from_slice(array.shape());
                step(Source::Constant(array.clone()), Operands::new(), shape, array.dtype())
            }
            StepText::Result { of, index } => self.result(*of, *index)?,
            StepText::Op(op) => self.op(op)?,
        };
        self.graph.steps.push(read);
        Ok(())
    }

    fn result(&self, of: u32, index: usize) -> Result<Step, String> {
        let bundle = self.graph.steps.get(of as usize).and_then(Step::get::<MultiOutput>);
        let multi = bundle.filter(|multi| !multi.is_result());
        let (shape, dtype) = multi
            .and_then(|multi| multi.results().get(index).cloned())
            .ok_or_else(|| format!("value {of} has no result {index}"))?;
        let name = multi.map_or("", |multi| multi.rules().name());
        let op = Op::new(OutputOf { index, of: name });
        Ok(step(Source::Op(op), [of].into_iter().collect(), shape, dtype))
    }

    fn op(&self, text: &OpText) -> Result<Step, String> {
        let name = &text.name;
        let known = operations::named(name).ok_or_else(|| {
            format!("there is no operation `{name}`. Update ultramarine, or import the package that has it")
        })?;
        let results = text.gives.iter().map(TypeText::read).collect::<Result<Results, _>>()?;
        let Some((shape, dtype)) = results.first().cloned() else {
            return Err(format!("{name} has no result"));
        };
        let operands = text.of.iter().map(|x| self.value(*x)).collect::<Result<Operands, _>>()?;
        let dtypes: SmallVec<[Dtype; 4]> =
            operands.iter().map(|x| self.graph.steps[*x as usize].dtype).collect();
        let op = (known.read)(&text.attributes, &dtypes, results.clone())
            .map_err(|malformed| format!("{name}: {}", malformed.0))?;
        let now = operations::version(&op);
        if text.version != now {
            return Err(format!(
                "the file has version {} of {name}, this program {now}. Export the function again",
                text.version
            ));
        }
        let results: Vec<Type<'_>> = results.iter().map(|(s, d)| (&s[..], *d)).collect();
        self.check(&op, &operands, &results)
            .ok_or_else(|| format!("{name} {}", self.described(&operands, &results)))?;
        Ok(step(Source::Op(op), operands, shape, dtype))
    }

    /// Checks that a number refers to an earlier value.
    fn value(&self, number: u32) -> Result<u32, String> {
        match self.graph.steps.get(number as usize) {
            None => Err(format!("value {number} is used before it is computed")),
            Some(step) if step.get::<MultiOutput>().is_some_and(|multi| !multi.is_result()) => {
                Err(format!(
                    "value {number} is an operation with several results, not one of its results"
                ))
            }
            Some(_) => Ok(number),
        }
    }

    fn check(&self, op: &Op, operands: &[u32], outputs: &[Type<'_>]) -> Option<()> {
        admitted(&self.graph.steps, op, operands, outputs).then_some(())
    }

    fn described(&self, operands: &[u32], results: &[Type<'_>]) -> String {
        let show = |types: &mut dyn Iterator<Item = Type<'_>>| {
            let mut text = String::new();
            for (i, (shape, dtype)) in types.enumerate() {
                let _ = write!(text, "{}{dtype} {}", if i > 0 { ", " } else { "" }, Show(shape));
            }
            text
        };
        let steps = &self.graph.steps;
        let mut of =
            operands.iter().map(|x| (&steps[*x as usize].shape[..], steps[*x as usize].dtype));
        let (of, to) = (show(&mut of), show(&mut results.iter().copied()));
        format!("of ({of}) does not give ({to}) with these attributes. Export the function again")
    }

    /// Returns the graph with these outputs.
    ///
    /// # Errors
    /// A text that names the invalid number.
    pub fn finish(mut self, outputs: &[u32]) -> Result<Graph, String> {
        self.graph.outputs = outputs.iter().map(|o| self.value(*o)).collect::<Result<_, _>>()?;
        Ok(self.graph)
    }
}

fn step(source: Source, operands: Operands, shape: Shape, dtype: Dtype) -> Step {
    // The graph is placed when it is built.
    let place = Place::new(stream::current().0, false, false);
    Step { source, operands, shape, dtype, place, hidden: false }
}

/// Returns true if an operation on earlier steps can have results of these types.
fn admitted(steps: &[Step], op: &Op, operands: &[u32], outputs: &[Type<'_>]) -> bool {
    let of = |x: &u32| (&steps[*x as usize].shape[..], steps[*x as usize].dtype);
    let inputs: SmallVec<[Type<'_>; 4]> = operands.iter().map(of).collect();
    op.rules().is_some_and(|rules| rules.admits(&Draft { inputs: &inputs, outputs }))
}

/// Checks the operations of a graph that was fitted to other sizes.
///
/// # Errors
/// [`Error::Value`] for an operation that is invalid for these sizes.
pub(super) fn check_fitted(graph: &Graph) -> Result<()> {
    for step in &graph.steps {
        let Some(op) = step.op().filter(|op| !op.is::<OutputOf>()) else { continue };
        let results: Results = match op.get::<MultiOutput>() {
            Some(multi) => multi.results().iter().cloned().collect(),
            None => [(step.shape.clone(), step.dtype)].into_iter().collect(),
        };
        let results: SmallVec<[Type<'_>; 3]> = results.iter().map(|(s, d)| (&s[..], *d)).collect();
        if !admitted(&graph.steps, op, &step.operands, &results) {
            bail!(
                IMPORT,
                "{} does not accept operands of these sizes. Pass arguments of the shapes that the function was exported with.",
                op.name()
            );
        }
    }
    Ok(())
}

/// The lazy results of a graph for these arguments. Each operation is placed as if it were called now.
///
/// # Errors
/// [`Error::Value`] when operands are on accelerators that cannot be combined.
pub(super) fn built(graph: &Graph, inputs: &[Array]) -> Result<Vec<Array>> {
    let needed = graph.needed();
    let mut values: Vec<Option<Array>> = Vec::with_capacity(graph.steps.len());
    let mut results: HashMap<u32, Vec<Array>> = HashMap::new();
    let missing = || {
        Error::runtime(IMPORT, "A result comes before its operation. Export the function again.")
    };
    for (i, step) in graph.steps.iter().enumerate() {
        let value = match &step.source {
            _ if !needed[i] => None,
            Source::Input(n) => inputs.get(*n as usize).cloned(),
            Source::Constant(array) => Some(array.clone()),
            Source::Op(op) => match op.get::<OutputOf>() {
                Some(output) => {
                    results.get(&step.operands[0]).and_then(|all| all.get(output.index)).cloned()
                }
                None => {
                    let operand = |x: &u32| values[*x as usize].as_ref().ok_or_else(missing);
                    let operands: SmallVec<[&Array; 4]> =
                        step.operands.iter().map(operand).collect::<Result<_>>()?;
                    let (made, several) = node(op, &operands, step)?;
                    if let Some(several) = several {
                        results.insert(i as u32, several);
                    }
                    Some(made)
                }
            },
        };
        values.push(value);
    }
    graph.outputs.iter().map(|o| values[*o as usize].clone().ok_or_else(missing)).collect()
}

/// The node of an operation, and its results if it has several.
fn node(op: &Op, operands: &[&Array], step: &Step) -> Result<(Array, Option<Vec<Array>>)> {
    let (shape, dtype) = (step.shape.clone(), step.dtype);
    let Some(multi) = op.get::<MultiOutput>() else {
        if op.get::<Identity>().is_some_and(|identity| identity.keeps_place()) {
            let (place, inputs) =
                (operands[0].node().place, operands.iter().map(|a| a.node().clone()).collect());
            let node = Node::new(op.clone(), inputs, shape, dtype, place);
            return Ok((Array::from_node(node), None));
        }
        // As in the original trace, views of evaluated arrays are made at once.
        let view = op.get::<View>().filter(|view| !matches!(view, View::Bitcast));
        if let Some(made) = view.and_then(|view| view.at_once(operands[0], &shape)) {
            return Ok((made, None));
        }
        return Ok((Array::try_of(op.clone(), operands, shape, dtype)?, None));
    };
    let multi = multi.for_new_node();
    let (multi, bundle) = match operands.len().checked_sub(multi.len()) {
        Some(first) if multi.rules().forwards_operands() => {
            let forwarded: Vec<Array> = operands[first..].iter().copied().cloned().collect();
            let multi = multi.forwarding(&forwarded);
            let bundle = multi.bundle(operands, &forwarded[0]);
            (multi, bundle)
        }
        _ => {
            let bundle = Array::try_of(multi.clone(), operands, shape, dtype)?;
            (multi, bundle)
        }
    };
    let several = (!multi.is_result()).then(|| multi.outputs(bundle.node()));
    Ok((bundle, several))
}

/// Evaluates the constants of graphs.
///
/// # Errors
/// Errors of evaluation.
pub(super) fn evaluate_constants<'a>(graphs: impl Iterator<Item = &'a Graph>) -> Result<()> {
    let mut known = HashSet::new();
    let constants = graphs.flat_map(|graph| &graph.steps).filter_map(|step| match &step.source {
        Source::Constant(array) => known.insert(Arc::as_ptr(array.node())).then(|| array.clone()),
        _ => None,
    });
    eval::eval(&constants.collect::<Vec<_>>())
}
