//! A trace as lists: the contents of a file, for programs that convert it.

use super::file::Trace;
use super::names::letters;
use super::operations;
use crate::ops::rules::multi_output::{MultiOutput, OutputOf};
use crate::shape::Shape;
use crate::transforms::compile::graph::{Source, Step};
use crate::{array::Array, dtype::Dtype};
use std::collections::HashMap;

/// Name, shape and dtype of an array of a [`Listing`].
pub type Named = (String, Shape, Dtype);

/// A trace as lists of arrays and operations, for programs that draw it or convert it to another
/// format. Arrays are named `A` to `Z`, then `AA` and so on. [`Exporter::listings`] makes it.
///
/// [`Exporter::listings`]: super::Exporter::listings
#[derive(Debug)]
pub struct Listing {
    /// The positional arguments, then the keyword arguments in the order of their names.
    pub inputs: Vec<Named>,
    /// Names of keyword arguments, and of their arrays.
    pub keywords: Vec<(String, String)>,
    /// The results of the function.
    pub outputs: Vec<Named>,
    /// Arrays that the function closes over.
    pub constants: Vec<(String, Array)>,
    /// Operations, each after the operations that it needs.
    pub operations: Vec<Operation>,
}

/// An operation of a [`Listing`]: its name, its operands and results, and its attributes.
#[derive(Debug)]
pub struct Operation {
    /// Its name.
    pub name: &'static str,
    /// The operands.
    pub inputs: Vec<Named>,
    /// The results.
    pub outputs: Vec<Named>,
    /// Its attributes as JSON. Together with the operands they define the operation; [docs/function-format.md] has
    /// their forms.
    ///
    /// [docs/function-format.md]: https://github.com/ultramarine/ultramarine/blob/main/docs/function-format.md
    pub attributes: String,
}

/// Names of values, by number: those of inputs, outputs and constants are assigned first.
struct Names(Vec<Option<String>>, usize);

impl Names {
    fn next(&mut self) -> String {
        self.1 += 1;
        letters(self.1 - 1)
    }

    fn of(&mut self, step: usize) -> String {
        if let Some(known) = &self.0[step] {
            return known.clone();
        }
        let name = self.next();
        self.0[step] = Some(name.clone());
        name
    }
}

impl Listing {
    pub(super) fn of(trace: &Trace) -> Listing {
        let (signature, graph) = (&trace.signature, &trace.graph);
        let mut names = Names(vec![None; graph.steps.len()], 0);
        let input = |(shape, dtype)| (names.next(), shape, dtype);
        let inputs: Vec<Named> = signature.types().into_iter().map(input).collect();
        for (i, step) in graph.steps.iter().enumerate() {
            if let Source::Input(n) = step.source {
                names.0[i] = Some(inputs[n as usize].0.clone());
            }
        }
        let of_keywords = inputs[signature.positional.len()..].iter();
        let keywords = signature.keywords.keys().cloned();
        let keywords = keywords.zip(of_keywords.map(|input| input.0.clone())).collect();
        let named = |names: &mut Names, i: usize| {
            let step: &Step = &graph.steps[i];
            (names.of(i), step.shape.clone(), step.dtype)
        };
        let outputs = graph.outputs.iter().map(|o| named(&mut names, *o as usize)).collect();
        let mut constants = Vec::new();
        for (i, step) in graph.steps.iter().enumerate() {
            if let Source::Constant(array) = &step.source {
                constants.push((names.of(i), array.clone()));
            }
        }
        let result = |(i, step): (usize, &Step)| {
            Some(((*step.operands.first()?, step.get::<OutputOf>()?.index), i))
        };
        let results: HashMap<(u32, usize), usize> =
            graph.steps.iter().enumerate().filter_map(result).collect();
        let mut listed = Vec::new();
        for (i, step) in graph.steps.iter().enumerate() {
            let Some(op) = step.op().filter(|op| !op.is::<OutputOf>()) else { continue };
            let operands = step.operands.iter();
            let inputs = operands.map(|x| named(&mut names, *x as usize)).collect();
            let outputs = match op.get::<MultiOutput>().filter(|multi| !multi.is_result()) {
                None => vec![named(&mut names, i)],
                Some(multi) => {
                    let result = |(index, (shape, dtype)): (usize, &(Shape, Dtype))| {
                        let step = results.get(&(i as u32, index));
                        let name = match step {
                            Some(at) => names.of(*at),
                            None => names.next(),
                        };
                        (name, shape.clone(), *dtype)
                    };
                    multi.results().iter().enumerate().map(result).collect()
                }
            };
            let attributes = operations::written(op).map(|(_, json)| json.to_string());
            let attributes = attributes.unwrap_or_default();
            listed.push(Operation { name: op.name(), inputs, outputs, attributes });
        }
        Listing { inputs, keywords, outputs, constants, operations: listed }
    }
}
