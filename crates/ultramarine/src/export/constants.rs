//! Arrays that functions close over, as stored in files: each memory is stored once, and views of it become operations.
//!
//! Operations on constants are often evaluated during tracing: biases are broadcast, weights transposed. If such views
//! were written as they are, they would take their full sizes.

use super::operations;
use super::text::{OpText, StepText, TypeText};
use crate::dtype::Dtype;
use crate::node::{Node, Value};
use crate::ops::Op;
use crate::ops::shape::view::View;
use crate::shape::{self, Shape, Strides};
use crate::transforms::compile::graph::{Graph, Source};
use crate::{array::Array, io};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::sync::Arc;

/// The elements that an array reads from its buffer, counted from the buffer's start: the first one, the lowest one,
/// and the one after the highest.
#[derive(Clone, Copy)]
struct Extent {
    first: i64,
    low: i64,
    end: i64,
}

impl Extent {
    /// Returns `None` for arrays without elements, and if elements do not lie at multiples of their size.
    fn of(array: &Array) -> Option<Extent> {
        let value = array.node().value()?;
        let item = array.dtype().size();
        let packed = array.dtype().is_packed() || array.size() == 0;
        let first = i64::try_from(value.offset / item).ok()?;
        let (low, high) = shape::element_range(shape::axes(array.shape(), &value.strides))?;
        let fits = !packed && value.offset.is_multiple_of(item);
        fits.then_some(Extent { first, low: first + low, end: first + high + 1 })
    }

    fn len(self) -> usize {
        (self.end - self.low) as usize
    }
}

/// The location of a constant: the name of a stored array, and if the constant is a view, the element where it begins.
struct Place {
    name: String,
    view: Option<usize>,
}

/// The constants of graphs.
#[derive(Default)]
pub(super) struct Constants {
    /// The stored arrays, by their names beside the program.
    pub arrays: io::Arrays,
    places: HashMap<*const Node, Place>,
}

impl Constants {
    /// Collects the constants of graphs. They must be evaluated.
    pub fn of<'a>(graphs: impl Iterator<Item = &'a Graph>) -> Constants {
        let mut order: Vec<(*const u8, Dtype)> = Vec::new();
        let mut groups: HashMap<(*const u8, Dtype), Vec<Array>> = HashMap::new();
        for step in graphs.flat_map(|graph| &graph.steps) {
            let Source::Constant(array) = &step.source else { continue };
            let memory = array
                .node()
                .value()
                .map_or(std::ptr::null(), |v| std::ptr::from_ref(&*v.buffer).cast());
            let key = (memory, array.dtype());
            let group = groups.entry(key).or_insert_with(|| {
                order.push(key);
                Vec::new()
            });
            if !group.iter().any(|a| Arc::ptr_eq(a.node(), array.node())) {
                group.push(array.clone());
            }
        }
        let mut all = Constants::default();
        order.iter().for_each(|key| all.add(&groups[key]));
        all
    }

    fn put(&mut self, array: Array) -> String {
        let name = format!("constant.{}", self.arrays.len());
        self.arrays.insert(name.clone(), array);
        name
    }

    /// Adds views of the same memory.
    fn add(&mut self, group: &[Array]) {
        let extents: Option<Vec<Extent>> = group.iter().map(Extent::of).collect();
        let base = extents.and_then(|extents| Some((shared(group, &extents)?, extents)));
        let Some((base, extents)) = base else {
            for array in group {
                let place = Place { name: self.put(array.clone()), view: None };
                self.places.insert(Arc::as_ptr(array.node()), place);
            }
            return;
        };
        let start = extents.iter().map(|e| e.low).min().unwrap_or(0);
        let name = self.put(base.clone());
        for (array, extent) in group.iter().zip(extents) {
            let itself = Arc::ptr_eq(array.node(), base.node());
            let view = (!itself).then_some((extent.first - start) as usize);
            self.places.insert(Arc::as_ptr(array.node()), Place { name: name.clone(), view });
        }
    }

    /// The steps that make a constant. `number` is the first step's number.
    pub fn steps(&self, array: &Array, number: u32) -> Option<SmallVec<[StepText; 2]>> {
        let place = self.places.get(&Arc::as_ptr(array.node()))?;
        let mut steps: SmallVec<[StepText; 2]> = SmallVec::new();
        steps.push(StepText::Constant(place.name.clone()));
        if let Some(offset) = place.view {
            let sizes = array.shape().iter().zip(&array.node().value()?.strides);
            let strides: Strides = sizes.map(|(n, s)| if *n == 1 { 0 } else { *s }).collect();
            let (name, attributes) =
                operations::written(&Op::new(View::Strided { strides, offset }))?;
            steps.push(StepText::Op(OpText {
                name: name.into(),
                version: 1,
                of: vec![number],
                gives: vec![TypeText::new(array.shape(), array.dtype())],
                attributes,
            }));
        }
        Some(steps)
    }
}

/// The array of which all arrays of a group are views. It is an array of the group that has all elements without gaps,
/// or a 1-d array of these elements if it is no larger than the arrays together.
fn shared(group: &[Array], extents: &[Extent]) -> Option<Array> {
    let all = Extent {
        first: 0,
        low: extents.iter().map(|e| e.low).min()?,
        end: extents.iter().map(|e| e.end).max()?,
    };
    let whole = group.iter().find(|a| {
        let contiguous = |value: &Value| shape::is_contiguous(a.shape(), &value.strides);
        a.size() == all.len() && a.node().value().is_some_and(contiguous)
    });
    if whole.is_some() {
        return whole.cloned();
    }
    if group.iter().fold(0, |sum, a| a.size().saturating_add(sum)) <= all.len() {
        return None;
    }
    let (value, dtype) = (group[0].node().value()?, group[0].dtype());
    let line = Value {
        buffer: value.buffer.clone(),
        offset: all.low as usize * dtype.size(),
        strides: Strides::from_elem(1, 1),
    };
    Some(Array::given(line, Shape::from_elem(all.len(), 1), dtype))
}
