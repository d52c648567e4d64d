//! Evaluations of one operation whose operands have values, and views of its result, by the calling thread, on the host.
//!
//! Such an evaluation waits for nothing, so it needs no place in the order of evaluations, and takes no lock of the
//! scheduler: it owns its stream, if that is idle, which is what a fork waits for.

use super::{FORKING, register_fork_hook, run};
use crate::array::Array;
use crate::device::Device;
use crate::memory::deferred_deleters;
use crate::node::Node;
use crate::ops::rules::multi_output::{MultiOutput, OutputOf};
use crate::ops::{Op, shape::view::View};
use crate::{profile, stream};
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use ultramarine_runtime::interrupt;

/// Most elements of the operands and of the result of an evaluation during which a caller may keep a lock.
const SMALL: usize = 4096;

/// Evaluates a lazy node. `Some(false)`: it was given up. `None`: it is not for here.
pub(super) fn run(node: &Arc<Node>) -> Option<bool> {
    run_up_to(node, usize::MAX)
}

/// Evaluates an array if that is one operation on a few elements, whose operands have values, on the host. Nothing is waited
/// for, so that a caller may hold an interpreter's lock meanwhile. False if the array is left as it was, for [`super::eval`].
pub fn eval_if_small(array: &Array) -> bool {
    run_up_to(array.node(), SMALL) == Some(true)
}

fn run_up_to(node: &Arc<Node>, most: usize) -> Option<bool> {
    let stream = node.place.stream;
    if stream.device != Device::CPU || node.size() > most || node.op.is_given() || node.is_done() {
        return None;
    }
    // A profile shows how an evaluation was planned; inside of a job the stream is owned.
    if profile::recorder().is_some() || deferred_deleters::in_job() {
        return None;
    }
    // Views on top of the operation, the outermost first.
    let mut views: SmallVec<[Arc<Node>; 2]> = SmallVec::new();
    let mut work = node.clone();
    while let Some(operand) = viewed(&work) {
        if operand.place.stream != stream {
            return None;
        }
        views.push(std::mem::replace(&mut work, operand));
    }
    if !is_alone(&work.op) || !work.with_inputs(|inputs| inputs.iter().all(|i| is_here(i, most))) {
        return None;
    }
    register_fork_hook();
    let owner = stream::state(stream)?.try_own()?;
    // A fork that began before the stream was owned may not see that it is; one that begins now does.
    if FORKING.load(Ordering::SeqCst) {
        return None;
    }
    // From the top, which others may know of.
    let nodes = || views.iter().chain([&work]);
    let claimed = nodes().take_while(|node| node.claim()).count();
    if claimed <= views.len() {
        nodes().take(claimed).for_each(|node| node.release_claim());
        return None;
    }
    let cut = interrupt::run(|| deferred_deleters::job(|| run::run_alone(work, &views)));
    drop(owner);
    deferred_deleters::release();
    Some(!cut)
}

/// The lazy operand of a view, if that is its only use.
fn viewed(node: &Node) -> Option<Arc<Node>> {
    node.op.get::<View>()?;
    node.with_inputs(|inputs| {
        let operand = inputs.first().filter(|operand| !operand.is_done())?;
        let sole = Arc::strong_count(operand) == 1 && operand.handles.load(Ordering::Acquire) == 0;
        sole.then(|| operand.clone())
    })
}

/// Returns true for an operation that is one task, whatever its device.
fn is_alone(op: &Op) -> bool {
    !op.is_given() && !op.is_composite() && !op.is::<MultiOutput>() && !op.is::<OutputOf>()
}

fn is_here(operand: &Node, most: usize) -> bool {
    let here = operand.value().is_some_and(|value| value.buffer.device() == Device::CPU);
    here && operand.size() <= most
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::Dtype;
    use crate::error::{Error, Result};

    #[test]
    fn one_operation_and_its_views_are_small() -> Result<()> {
        // Other tests do not work on it.
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
    fn all_else_is_left_alone() -> Result<()> {
        let x = Array::from_slice(&[1f32, 2., 3.], &[3])?;
        let lazy = x.exp()?;
        let above = lazy.add(&x)?;
        // Operands without values, and a view of what others hold.
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
