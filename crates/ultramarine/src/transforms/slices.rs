//! Joins the cotangents of slices of one array, instead of padding each.
//!
//! The cotangent of one slice is an array of zeros in which the slice is overwritten. If an array
//! is cut into `n` slices (`split`, `unstack`, the steps of a recurrent network), `n` such arrays
//! would cost `n` times its size, and so would their sum. Therefore slices along one axis are
//! collected. Those that do not overlap are concatenated, with zeros in the gaps.

use crate::ops::rules::{builders::plus, shapeless};
use crate::ops::shape::{concatenate::concatenate, view::View};
use crate::ops::{create::fill, index::update::Update};
use crate::placement::{self, Place, follow};
use crate::{array::Array, error::Result, scalar::Scalar, shape::Shape};
use smallvec::SmallVec;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// A slice along one axis: the axis, the first element, and the end (exclusive).
type Section = (usize, usize, usize);

/// The cotangents of slices of one array.
pub(super) struct Slices {
    /// The cotangents by section, in the order of sections. Cotangents of equal sections are added
    /// at once.
    sections: BTreeMap<Section, (View, Array)>,
    /// The place where the slices run.
    place: Place,
}

/// Returns the section of a slice. `None` if the view is not a section of one axis, or skips
/// elements.
fn section(view: &View, of: &[usize], shape: &[usize]) -> Option<Section> {
    let View::Slice { start, step } = view else { return None };
    let mut cut = (0..of.len()).filter(|i| shape[*i] != of[*i]);
    let axis = cut.next()?;
    let is_whole = cut.next().is_none() && step.iter().all(|step| *step == 1);
    is_whole.then(|| (axis, start[axis], start[axis] + shape[axis]))
}

impl Slices {
    /// Makes an empty collection for slices that run at `place`.
    pub fn new(place: Place) -> Slices {
        Slices { sections: BTreeMap::new(), place }
    }

    /// Takes the cotangent of a slice of `x`. Returns false if the view is not a section of one
    /// axis.
    ///
    /// # Errors
    /// Those of addition.
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

    /// Returns the cotangent of `x`, if any of its slices has a cotangent.
    ///
    /// # Errors
    /// Those of concatenation and addition.
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

/// Sections along one axis that do not overlap, in order.
#[derive(Default)]
struct Layer(Vec<(Section, View, Array)>);

/// Distributes the sections over as few layers as possible.
fn layers(sections: BTreeMap<Section, (View, Array)>) -> Vec<Layer> {
    let mut layers: Vec<Layer> = Vec::new();
    // The layers of the current axis, by their ends. Sections are sorted, so the next one begins no
    // earlier than any before it.
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
    /// Returns the cotangent of `x`. If `x` is a transposition, the cotangent has the memory layout
    /// of the transposed array, so that the cotangent of that array is a view.
    fn joined(self, x: &Array) -> Result<Array> {
        // In a shapeless trace the sizes of gaps are not known, so overwrite zeros instead of
        // concatenating.
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

    /// Makes zeros and writes the sections over them, one after the other in the same memory.
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
