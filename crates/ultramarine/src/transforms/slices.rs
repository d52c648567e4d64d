//! Cotangents of slices of one array, which are joined instead of padded.
//!
//! The cotangent of one slice is an array of zeros with a part written over. Of an array that is cut into `n`
//! slices (`split`, `unstack`, the steps of a recurrent net), `n` such arrays would cost `n` times its size, and
//! so would their sum. Slices along one axis therefore wait for each other: those that do not
//! overlap are concatenated, with zeros in the gaps.

use crate::ops::rules::{builders::plus, shapeless};
use crate::ops::shape::{concatenate::concatenate, view::View};
use crate::ops::{create::fill, index::update::Update};
use crate::placement::{self, Place, follow};
use crate::{array::Array, error::Result, scalar::Scalar, shape::Shape};
use smallvec::SmallVec;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// A slice that is cut off along one axis: the axis, its first element and the one behind its last.
type Section = (usize, usize, usize);

/// The cotangents of slices of one array.
pub(super) struct Slices {
    /// In the order of their sections; slices of the same elements are added up as they come.
    sections: BTreeMap<Section, (View, Array)>,
    /// Where the slices run.
    place: Place,
}

/// The section that a slice is; `None` if it is none, or skips elements.
fn section(view: &View, of: &[usize], shape: &[usize]) -> Option<Section> {
    let View::Slice { start, step } = view else { return None };
    let mut cut = (0..of.len()).filter(|i| shape[*i] != of[*i]);
    let axis = cut.next()?;
    let is_whole = cut.next().is_none() && step.iter().all(|step| *step == 1);
    is_whole.then(|| (axis, start[axis], start[axis] + shape[axis]))
}

impl Slices {
    /// No cotangents yet, of slices that run at a place.
    pub fn new(place: Place) -> Slices {
        Slices { sections: BTreeMap::new(), place }
    }

    /// Takes the cotangent of a slice of `x`. Returns false for a view that is no section of one axis.
    ///
    /// # Errors
    /// As addition.
    pub fn take(&mut self, view: &View, x: &Array, cotangent: &Array) -> Result<bool> {
        let Some(section) = section(view, x.shape(), cotangent.shape()) else { return Ok(false) };
        if section.1 == section.2 {
            return Ok(true);
        }
        match self.sections.get_mut(&section) {
            Some((_, sum)) => *sum = sum.add(cotangent)?,
            None => _ = self.sections.insert(section, (view.clone(), cotangent.clone())),
        }
        Ok(true)
    }

    /// The cotangent of `x`, if any of its slices has one.
    ///
    /// # Errors
    /// As concatenation and addition.
    pub fn joined(self, x: &Array) -> Result<Option<Array>> {
        let _place = placement::enter(self.place);
        let _home = follow(&[x]);
        let mut sum = None;
        for layer in layers(self.sections) {
            sum = plus(sum, Some(layer.joined(x)?))?;
        }
        Ok(sum)
    }
}

/// Sections along one axis that do not overlap, in their order.
#[derive(Default)]
struct Layer(Vec<(Section, View, Array)>);

/// As few layers as hold all sections.
fn layers(sections: BTreeMap<Section, (View, Array)>) -> Vec<Layer> {
    let mut layers: Vec<Layer> = Vec::new();
    // The layers of the axis at hand, by where they end: the next section begins no earlier than any before.
    let mut ends: BinaryHeap<Reverse<(usize, usize)>> = BinaryHeap::new();
    let mut last = 0;
    for (section, (view, cotangent)) in sections {
        let (axis, start, stop) = section;
        if axis != last {
            (ends, last) = (BinaryHeap::new(), axis);
        }
        let free = ends.peek().is_some_and(|Reverse((end, _))| *end <= start);
        let at = match free.then(|| ends.pop()).flatten() {
            Some(Reverse((_, at))) => at,
            None => {
                layers.push(Layer::default());
                layers.len() - 1
            }
        };
        layers[at].0.push((section, view, cotangent));
        ends.push(Reverse((stop, at)));
    }
    layers
}

impl Layer {
    /// The cotangent of `x`. Where `x` is a transposition, it is laid out in memory as the array behind it, whose cotangent
    /// is then a view.
    fn joined(self, x: &Array) -> Result<Array> {
        // Where sizes are those of other calls, too, gaps have none that is known.
        if self.0.len() == 1 || shapeless::shapeless() {
            return Ok(self.written(x));
        }
        let Some(((axis, ..), _, first)) = self.0.first() else { return Ok(x.zeros_like()) };
        let (axis, zero) = (*axis, Scalar::from_i64(first.dtype(), 0));
        let gap = |from: usize, to: usize| {
            let mut shape = Shape::from_slice(x.shape());
            shape[axis] = to - from;
            (to > from).then(|| fill::filled(shape, zero))
        };
        let (mut parts, mut at) = (Vec::with_capacity(self.0.len()), 0);
        for ((_, start, stop), _, cotangent) in self.0 {
            parts.extend(gap(at, start));
            parts.push(cotangent);
            at = stop;
        }
        parts.extend(gap(at, x.shape()[axis]));
        let Some(View::Transpose(order)) = x.node().op.get::<View>() else {
            return concatenate(&parts, axis as isize);
        };
        let order: SmallVec<[isize; 8]> = order.iter().map(|a| *a as isize).collect();
        let mut inverse = order.clone();
        order.iter().enumerate().for_each(|(i, a)| inverse[*a as usize] = i as isize);
        let parts: Vec<Array> =
            parts.iter().map(|part| part.transpose_axes(&inverse)).collect::<Result<_>>()?;
        concatenate(&parts, order[axis])?.transpose_axes(&order)
    }

    /// Zeros with the sections written over them, one after the other in the same memory.
    fn written(self, x: &Array) -> Array {
        let mut sum = None;
        for (_, view, cotangent) in self.0 {
            let zero = Scalar::from_i64(cotangent.dtype(), 0);
            let base = sum.unwrap_or_else(|| shapeless::filled_like(x, zero));
            sum = Some(Update(view).apply(&base, &cotangent));
        }
        sum.unwrap_or_else(|| x.zeros_like())
    }
}
