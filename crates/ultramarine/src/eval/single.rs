//! Evaluates a single task and views of its result on the host, by the calling thread, if all
//! operands have values.
//!
//! The task is one operation, or a tree of a few elementwise operations that have no other
//! references, with a reduction as an optional epilogue. Planning would make a single task of these
//! too. The evaluation waits for nothing, so it needs no place in the order of evaluations, and
//! takes no scheduler lock. It runs only if its stream is idle, and then owns the stream. A fork
//! waits until streams have no owner.

use super::grouping::{Epilogue, Member, Task, closes, is_constant, single};
use super::lower::{self, Entry};
use super::{FORKING, device_of, register_fork_hook, run};
use crate::array::Array;
use crate::backend::DeviceState;
use crate::device::Device;
use crate::memory::deferred_deleters;
use crate::node::{Inputs, Node};
use crate::ops::rules::multi_output::{MultiOutput, OutputOf};
use crate::ops::shape::view::View;
use crate::{profile, stream, stream::Stream};
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use ultramarine_runtime::interrupt;

/// Limit on the elements of an array in an evaluation during which a caller may hold a lock.
const SMALL: usize = 4096;

/// Limit on the operations of a tree. Larger graphs have executables.
const MOST: usize = 6;

/// Evaluates a lazy node. `Some(false)`: the evaluation was given up. `None`: the node has to be
/// evaluated in another way.
pub(super) fn run(node: Arc<Node>) -> Option<bool> {
    run_up_to(node, usize::MAX)
}

/// An evaluation on the host that runs only if it is one command on a few elements, whose operands
/// have values. It needs no handle of the array.
pub struct SmallEvaluation(Arc<Node>);

impl SmallEvaluation {
    /// Makes the evaluation of an array. Nothing runs before [`SmallEvaluation::run`].
    #[inline]
    pub fn of(array: &Array) -> SmallEvaluation {
        SmallEvaluation(array.node().clone())
    }

    /// Evaluates the array if the evaluation is small. It waits for nothing, so a caller may hold
    /// an interpreter's lock. Returns false if the array was left unchanged, for [`super::eval`].
    pub fn run(self) -> bool {
        run_up_to(self.0, SMALL) == Some(true)
    }
}

fn run_up_to(node: Arc<Node>, most: usize) -> Option<bool> {
    let stream = node.place.stream;
    if stream.device != Device::CPU || node.op.is_given() || node.is_done() {
        return None;
    }
    // A profile needs the planned evaluation. Inside a job, the job owns the stream.
    if profile::recorder().is_some() || deferred_deleters::in_job() {
        return None;
    }
    let mut plan = Plan {
        device: device_of(stream).ok()?,
        stream,
        most,
        below: Inputs::new(),
        operations: 1,
        inputs: 0,
        fuses: false,
        carries: false,
        epilogue: None,
    };
    // The outermost view comes first.
    let mut views = Inputs::new();
    let mut root = node;
    while let Some(operand) = viewed(&root).filter(|operand| plan.takes(operand)) {
        views.push(std::mem::replace(&mut root, operand));
    }
    let constants = plan.find(&root)?;
    register_fork_hook();
    let owner = stream::state(stream)?.try_own()?;
    // A fork that began before the stream was owned may not see the owner, so give up. A later fork
    // sees it.
    if FORKING.load(Ordering::SeqCst) {
        return None;
    }
    // Claim from the top down, because only the top nodes may be known to other threads.
    let nodes = || views.iter().chain([&root]).chain(plan.below.iter().rev()).chain(&constants);
    if let Some(taken) = nodes().position(|node| !node.claim()) {
        nodes().take(taken).for_each(|node| node.release_claim());
        return None;
    }
    let task = plan.into_task(root);
    let cut = interrupt::run(|| {
        deferred_deleters::job(|| run::run_alone(task, constants, &views));
    });
    drop(owner);
    deferred_deleters::release();
    Some(!cut)
}

/// The state of the search for a task.
struct Plan {
    device: &'static DeviceState,
    stream: Stream,
    /// Limit on the elements of an array.
    most: usize,
    /// The nodes of the tree except its root, operands first.
    below: Inputs,
    /// Number of operations of the tree, from the root down.
    operations: usize,
    /// Number of operands that have values.
    inputs: usize,
    /// True if the device has programs for such a root.
    fuses: bool,
    /// True if the tree has constants.
    carries: bool,
    /// The root, if it is a reduction.
    epilogue: Option<Epilogue>,
}

impl Plan {
    /// Collects the nodes below the root. Returns the constants that have to be evaluated first, or
    /// `None` if the nodes are not one task.
    fn find(&mut self, root: &Arc<Node>) -> Option<Inputs> {
        if !is_alone(root) || root.size() > self.most {
            return None;
        }
        let mut constants = Inputs::new();
        let elementwise = root.op.elementwise().is_some();
        self.fuses = super::fusion() && self.device.fused_limit() >= MOST && root.size() > 0;
        if !elementwise && self.fuses {
            self.epilogue = closes(root, None);
        }
        let found = root.with_inputs(|inputs| match inputs.first() {
            _ if elementwise && self.fuses => self.grow(inputs, &root.shape),
            Some(operand) if self.epilogue.is_some() => self.grow(inputs, &operand.shape),
            _ => inputs.iter().all(|operand| {
                let lazy = is_constant(operand) && self.takes(operand);
                if lazy && !elementwise {
                    constants.push(operand.clone());
                }
                lazy || self.is_here(operand)
            }),
        });
        (found && self.inputs <= self.device.fused_inputs()).then_some(constants)
    }

    /// Adds operations of this shape to the tree, beginning with the operands of their consumer.
    fn grow(&mut self, inputs: &[Arc<Node>], shape: &[usize]) -> bool {
        inputs.iter().all(|operand| {
            let constant = is_constant(operand);
            self.carries |= constant;
            if self.is_here(operand) {
                self.inputs += 1;
                return true;
            }
            if constant {
                // Programs carry the constant. But a reduction of only a constant would have no
                // operand left.
                return !operand.is_done() && inputs.len() + self.operations > 2;
            }
            let grows = operand.op.elementwise().is_some()
                && operand.shape[..] == *shape
                && self.takes(operand)
                && is_sole(operand)
                && self.counts_in()
                && operand.with_inputs(|inputs| self.grow(inputs, shape));
            if grows {
                self.below.push(operand.clone());
            }
            grows
        })
    }

    /// Counts an operation before those below it. Returns false if there are too many.
    fn counts_in(&mut self) -> bool {
        self.operations += 1;
        self.operations <= MOST
    }

    /// Returns true for a lazy node on the root's stream that is small enough.
    fn takes(&self, node: &Node) -> bool {
        !node.is_done() && node.place.stream == self.stream && node.size() <= self.most
    }

    fn is_here(&self, operand: &Node) -> bool {
        let here = operand.value().is_some_and(|value| value.buffer.device() == Device::CPU);
        here && operand.size() <= self.most
    }

    fn into_task(self, root: Arc<Node>) -> Task {
        if !self.fuses {
            return single(Entry::new(root));
        }
        // A reduction alone runs as an operation, because its plan is found faster than a
        // program's.
        let program = self.carries || !self.below.is_empty();
        let mut members = SmallVec::new();
        for node in self.below {
            members.push(Member { entry: Entry::new(node), materialised: false });
        }
        members.push(Member { entry: Entry::new(root), materialised: true });
        Task { members, epilogue: self.epilogue.filter(|_| program), program }
    }
}

/// The lazy operand of a view, if the view is its only use.
fn viewed(node: &Node) -> Option<Arc<Node>> {
    node.op.get::<View>()?;
    node.with_inputs(|inputs| inputs.first().filter(|operand| is_sole(operand)).cloned())
}

/// Returns true if only one operation refers to the node.
fn is_sole(node: &Arc<Node>) -> bool {
    Arc::strong_count(node) == 1 && node.handles.load(Ordering::Acquire) == 0
}

/// Returns true for an operation that is a task by itself.
fn is_alone(node: &Node) -> bool {
    let op = &node.op;
    let whole = !op.is_composite() || lower::lacking(node).is_none();
    let here = !op.is_given() && !op.is_outside();
    whole && here && !op.is::<MultiOutput>() && !op.is::<OutputOf>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::Dtype;
    use crate::error::{Error, Result};

    fn eval_if_small(array: &Array) -> bool {
        SmallEvaluation::of(array).run()
    }

    #[test]
    fn one_operation_and_its_views_are_small() -> Result<()> {
        // A stream of its own, so that no other test uses it.
        let _scope = stream::Scope::new(stream::new_stream(Device::CPU)?);
        let x = Array::from_slice(&[1f32, 2., 3., 4., 5., 6.], &[2, 3])?;
        let sum = x.add(&x)?;
        assert!(eval_if_small(&sum) && sum.is_evaluated() && !eval_if_small(&sum));
        let viewed = x.multiply(&x)?.transpose()?.reshape(&[6])?;
        assert!(eval_if_small(&viewed));
        assert_eq!(viewed.to_vec::<f32>()?, [1f32, 16., 4., 25., 9., 36.]);
        Ok(())
    }

    #[test]
    fn trees_and_constants_are_small() -> Result<()> {
        let _scope = stream::Scope::new(stream::new_stream(Device::CPU)?);
        let x = Array::from_slice(&[1f32, 2., 3., 4.], &[2, 2])?;
        let line = x.multiply(&(&x * 2.0)?)?.add(1.0)?;
        assert!(eval_if_small(&line));
        assert_eq!(line.to_vec::<f32>()?, [3f32, 9., 19., 33.]);
        let sum = x.multiply(&x)?.sum(0)?;
        assert!(eval_if_small(&sum));
        assert_eq!(sum.to_vec::<f32>()?, [10f32, 20.]);
        let of_constants = x.ones_like().add(&x.full_like(2.0f32))?.sum(..)?;
        assert!(eval_if_small(&of_constants));
        assert_eq!(of_constants.item::<f32>()?, 12.0);
        let updated = x.index_update(crate::index![1, 0], 7.0, crate::Update::Set)?;
        assert!(eval_if_small(&updated));
        assert_eq!(updated.to_vec::<f32>()?, [1f32, 2., 7., 4.]);
        Ok(())
    }

    #[test]
    fn larger_trees_are_planned() -> Result<()> {
        let x = Array::from_slice(&[1f32, 2.], &[2])?;
        let mut deep = x.exp()?;
        for _ in 0..100_000 {
            deep = deep.multiply(1.0)?;
        }
        let square = |y: Array| y.multiply(&y);
        let twice = square(x.exp()?)?;
        for left in [&deep, &twice] {
            assert!(!eval_if_small(left) && !left.is_evaluated());
            left.eval()?;
        }
        Ok(())
    }

    #[test]
    fn all_else_is_left_alone() -> Result<()> {
        let x = Array::from_slice(&[1f32, 2., 3.], &[3])?;
        let lazy = x.exp()?;
        let above = lazy.add(&x)?;
        // Operands without values, and a view of an array with other holders.
        for left in [&above, &lazy.reshape(&[3, 1])?] {
            assert!(!eval_if_small(left) && !left.is_evaluated() && !lazy.is_evaluated());
        }
        let large = Array::from_slice(&vec![1f32; SMALL + 1], &[SMALL + 1])?;
        let sum = large.sum(..)?;
        assert!(!eval_if_small(&sum) && !sum.is_evaluated());
        super::super::eval(&[&sum, &above])?;
        assert_eq!(sum.item::<f32>()?, (SMALL + 1) as f32);
        Ok(())
    }

    #[test]
    fn errors_stay_with_their_arrays() -> Result<()> {
        let memory = |outcome| matches!(outcome, Err(Error::Memory(_)));
        let large = Array::zeros(&[1 << 45], Dtype::Float32)?;
        assert!(memory(large.eval()) && memory(large.eval()));
        let below =
            Array::zeros(&[1 << 45], Dtype::Float32)?.astype(Dtype::Int32).reshape(&[32, -1])?;
        assert!(below.eval().is_err() && below.eval().is_err());
        Ok(())
    }
}
