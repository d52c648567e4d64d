//! Moves elementwise operations from before a view to after it, so that they can fuse with the
//! consumers of the view. `view(op(x, y))` is bitwise identical to `op(view(x), view(y))`, because
//! each element is computed independently.
//!
//! The views are transposes, reshapes of arrays without gaps, slices that select no more elements
//! than the array has, and small broadcasts. In a small broadcast, one command less saves more than
//! computing the elements again costs.

use super::{Graph, makes_memory};
use crate::ops::copy::{Contiguous, cast::Cast};
use crate::ops::elementwise::{binary::Binary, unary::Unary};
use crate::ops::{Op, select::Select, shape::view::View};
use crate::shape::{self, Shape};
use crate::transforms::compile::graph::{Operands, Source, Step};
use smallvec::SmallVec;

/// Limit on the elements of a broadcast that is computed again instead of read.
const SMALL: usize = 4096;
/// Limit on the operands that are read through the view instead of a single result.
const MOST_OPERANDS: usize = 3;

/// Moves views up past elementwise operations.
pub(super) fn raise(graph: &mut Graph) {
    let properties = StepProperties::new(graph);
    let mut mover = Mover { movable: Vec::new() };
    let mut number = 0;
    graph.rewrite(|steps, step| {
        let i = number;
        number += 1;
        // Steps that were made in between precede this step, and are not moved again.
        mover.movable.resize(steps.len(), false);
        let raised = match step.get::<View>() {
            Some(view) if properties.fuses[i] => {
                let view = view.clone();
                mover.raised(steps, step.operands[0], &view, step, 0)
            }
            _ => None,
        };
        mover.movable.resize(steps.len(), false);
        match raised {
            None => mover.movable.push(properties.movable[i] && is_elementwise(step)),
            // The view of an operand may be moved further.
            Some(made) => mover.movable[made as usize] = properties.movable[i],
        }
        raised
    });
}

/// Properties of the steps before any step is moved.
struct StepProperties {
    /// True if the step is elementwise, and only views read it that together need no more elements
    /// than it has.
    movable: Vec<bool>,
    /// True for a view that is read only by elementwise operations, reductions, or other such
    /// views.
    fuses: Vec<bool>,
}

impl StepProperties {
    fn new(graph: &Graph) -> StepProperties {
        let n = graph.steps.len();
        let mut users: Vec<SmallVec<[u32; 2]>> = vec![SmallVec::new(); n];
        for (i, step) in graph.steps.iter().enumerate() {
            step.operands.iter().for_each(|x| users[*x as usize].push(i as u32));
        }
        let result = |i: usize| graph.outputs.contains(&(i as u32));
        let view = |i: usize| graph.steps[i].get::<View>();
        let mut fuses = vec![false; n];
        for i in (0..n).rev() {
            let fused =
                |u: &u32| fuses[*u as usize] || closes_or_computes(&graph.steps[*u as usize]);
            fuses[i] = view(i).is_some()
                && !result(i)
                && !users[i].is_empty()
                && users[i].iter().all(fused);
        }
        let movable = |i: usize| {
            let step = &graph.steps[i];
            // A moved view is replaced by an elementwise operation.
            if !(is_elementwise(step) || fuses[i]) || result(i) || users[i].is_empty() {
                return false;
            }
            if !users[i].iter().all(|u| fuses[*u as usize]) {
                return false;
            }
            let sizes = users[i].iter().map(|u| shape::size(&graph.steps[*u as usize].shape));
            let size = sizes.fold(0, usize::saturating_add);
            let grows = |u: &u32| matches!(view(*u as usize), Some(View::Broadcast));
            match users[i].iter().any(grows) {
                true => users[i].len() == 1 && size <= SMALL && is_cheap(step),
                false => size <= shape::size(&step.shape),
            }
        };
        let movable = (0..n).map(movable).collect();
        StepProperties { movable, fuses }
    }
}

/// Returns true if programs can contain the step.
fn closes_or_computes(step: &Step) -> bool {
    let rules = step.op().and_then(Op::rules);
    rules.is_some_and(|r| r.elementwise().is_some() || r.epilogue().is_some())
}

/// True if the step is elementwise.
pub(super) fn is_elementwise(step: &Step) -> bool {
    step.op().is_some_and(|op| op.elementwise().is_some())
}

/// Returns true if computing an element again costs no more than reading it.
pub(super) fn is_cheap(step: &Step) -> bool {
    use ultramarine_abi::schema::{binary, unary};
    let Some(op) = step.op() else { return false };
    if let Some(u) = op.get::<Unary>() {
        return matches!(
            u.code,
            unary::ABS
                | unary::NEGATIVE
                | unary::SQUARE
                | unary::SIGN
                | unary::LOGICAL_NOT
                | unary::BITWISE_INVERT
                | unary::REAL
                | unary::IMAG
                | unary::CONJUGATE
        );
    }
    if let Some(b) = op.get::<Binary>() {
        return !matches!(
            b.code,
            binary::POWER
                | binary::LOGADDEXP
                | binary::ARCTAN2
                | binary::REMAINDER
                | binary::FLOOR_DIVIDE
                | binary::DIVIDE
        );
    }
    op.is::<Cast>() || op.is::<Select>()
}

struct Mover {
    /// For each step of the new graph.
    movable: Vec<bool>,
}

impl Mover {
    /// Replaces the step of `view` of the elementwise step `of` by an operation of views. `None` if
    /// the view stays. `like` has the view's shape.
    fn raised(
        &mut self,
        steps: &mut Vec<Step>,
        of: u32,
        view: &View,
        like: &Step,
        depth: usize,
    ) -> Option<u32> {
        let step = steps[of as usize].clone();
        if !self.movable[of as usize] || step.place.stream != like.place.stream || depth > 32 {
            return None;
        }
        let full = step.operands.iter().filter(|i| steps[**i as usize].constant().is_none());
        if full.count() > MOST_OPERANDS {
            return None;
        }
        // Check all operands first, so that no step is made in vain.
        if !step.operands.iter().all(|i| viewable(steps, *i, view, &step.shape, &like.shape)) {
            return None;
        }
        let operands: Operands = (step.operands.iter())
            .map(|i| self.viewed(steps, *i, view, like, &step, depth))
            .collect();
        Some(push(steps, Step { operands, shape: like.shape.clone(), ..step }))
    }

    /// Makes step `of`, seen through `view`.
    fn viewed(
        &mut self,
        steps: &mut Vec<Step>,
        of: u32,
        view: &View,
        like: &Step,
        by: &Step,
        depth: usize,
    ) -> u32 {
        self.movable.resize(steps.len(), false);
        let step = &steps[of as usize];
        let shape = like.shape.clone();
        let (dtype, place, hidden) = (step.dtype, by.place, step.hidden);
        if step.constant().is_some() {
            let (source, operands) = (step.source.clone(), Operands::new());
            return push(steps, Step { source, operands, shape, dtype, place, hidden });
        }
        if let Some(raised) = self.raised(steps, of, view, like, depth + 1) {
            return raised;
        }
        let made = |view: View, of: u32, shape: Shape| Step {
            source: Source::Op(view.into()),
            operands: Operands::from_slice(&[of]),
            shape,
            dtype,
            place,
            hidden,
        };
        let step = &steps[of as usize];
        // A broadcast has gaps, so apply the reshape to the array before the broadcast.
        if let (View::Reshape, Some(View::Broadcast)) = (view, step.get())
            && let Some(narrow) =
                narrowed(&steps[step.operands[0] as usize].shape, &by.shape, &shape)
        {
            let source = step.operands[0];
            let mut inner = source;
            if narrow != steps[source as usize].shape {
                inner = push(steps, made(View::Reshape, source, narrow.clone()));
            }
            return match narrow == shape {
                true => inner,
                false => push(steps, made(View::Broadcast, inner, shape)),
            };
        }
        push(steps, made(view.clone(), of, shape))
    }
}

fn push(steps: &mut Vec<Step>, step: Step) -> u32 {
    steps.push(step);
    steps.len() as u32 - 1
}

/// Returns true if the view of an operand costs nothing.
fn viewable(steps: &[Step], of: u32, view: &View, from: &[usize], to: &[usize]) -> bool {
    let step = &steps[of as usize];
    if step.constant().is_some() {
        return true;
    }
    match view {
        View::Transpose(_) | View::Slice { .. } | View::Diagonal { .. } | View::Broadcast => true,
        View::Reshape => match (step.op(), step.get()) {
            (_, Some(View::Broadcast)) => {
                narrowed(&steps[step.operands[0] as usize].shape, from, to).is_some()
            }
            (Some(op), _) if makes_memory(op) || op.is::<Cast>() || op.is::<Contiguous>() => true,
            // Axes of size 1 can be added and removed in any memory layout.
            (Some(_), _) => without_ones(from).eq(without_ones(to)),
            // Arguments usually have no gaps. If one does, it is copied, as the result would have
            // been.
            (None, _) => true,
        },
        View::Strided { .. } | View::Bitcast => false,
    }
}

fn without_ones(shape: &[usize]) -> impl Iterator<Item = &usize> {
    shape.iter().filter(|n| **n != 1)
}

/// Returns the shape from which `own` can be broadcast to `to`, if `own` is broadcast to `from`,
/// and `to` has the elements of `from` in the same order. `None` if there is no such shape.
fn narrowed(own: &[usize], from: &[usize], to: &[usize]) -> Option<Shape> {
    if from.contains(&0) {
        return None;
    }
    let lead = from.len() - own.len();
    let at = |i: usize| if i < lead { 1 } else { own[i - lead] };
    let mut out = Shape::new();
    let mut i = 0;
    while i < from.len() || out.len() < to.len() {
        // The shortest run of axes on both sides with the same number of elements.
        let (first, start) = (i, out.len());
        let (mut p, mut q, mut end) = (1usize, 1usize, start);
        loop {
            if p <= q && i < from.len() && (p < q || p == 1) {
                p *= from[i];
                i += 1;
            } else if end < to.len() {
                q *= to[end];
                end += 1;
            } else if i < from.len() {
                p *= from[i];
                i += 1;
            } else {
                break;
            }
            if p == q && (p > 1 || (i == from.len() && end == to.len())) {
                break;
            }
        }
        if p != q {
            return None;
        }
        let whole = (first..i).all(|a| at(a) == from[a]);
        let none = (first..i).all(|a| at(a) == 1);
        match (whole, none) {
            (true, _) => out.extend_from_slice(&to[start..end]),
            (_, true) => out.extend(std::iter::repeat_n(1, end - start)),
            _ => return None,
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reshapes_move_before_broadcasts() {
        let narrow = |own: &[usize], from: &[usize], to: &[usize]| {
            narrowed(own, from, to).map(|s| s.to_vec())
        };
        // A bias before the heads are split.
        assert_eq!(narrow(&[12], &[2, 5, 12], &[2, 5, 3, 4]), Some(vec![1, 1, 3, 4]));
        assert_eq!(narrow(&[5, 1], &[2, 5, 12], &[2, 5, 3, 4]), Some(vec![1, 5, 1, 1]));
        assert_eq!(narrow(&[12], &[10, 12], &[2, 5, 12]), Some(vec![1, 1, 12]));
        assert_eq!(narrow(&[5, 12], &[2, 5, 12], &[10, 12]), None);
        assert_eq!(narrow(&[], &[2, 3], &[6]), Some(vec![1]));
        assert_eq!(narrow(&[1, 3], &[2, 3], &[2, 1, 3]), Some(vec![1, 1, 3]));
        assert_eq!(narrow(&[3], &[1, 3], &[3, 1]), Some(vec![3, 1]));
    }
}
