//! Identities: what transforms see (the stand-in of a traced argument, and
//! `stop_gradient`), and a check at evaluation.

use super::{Call, Cotangents, Jvp, Rules, Vjp, Vmap};
use crate::{
    array::Array,
    backend::Exec,
    dtype::Dtype,
    error::{Error, Result},
    node::{Node, Value},
    shape::Shape,
};
use smallvec::smallvec;

impl Array {
    /// A node where the array is: it does nothing that a device would be chosen for.
    fn itself(&self, kind: Identity) -> Array {
        let inputs = std::iter::once(self.node().clone()).collect();
        let shape = Shape::from_slice(self.shape());
        let place = self.node().place();
        Array::from_node(Node::new(kind.into(), inputs, shape, self.dtype(), place))
    }

    /// The same array, through which no derivative flows.
    pub fn stop_gradient(&self) -> Array {
        self.itself(Identity::StopGradient)
    }

    /// The same array, whose evaluation fails when `count` (0-d) is above `rows`: what is
    /// known only then of the updates of a mask.
    pub(crate) fn enough(&self, count: &Array, rows: usize) -> Array {
        let count = count.astype(Dtype::Int32);
        let kind = Identity::Enough { rows };
        Array::of(kind, &[self, &count], Shape::from_slice(self.shape()), self.dtype())
    }

    /// A node of its own for a transform to start from.
    pub(crate) fn traced(&self) -> Array {
        let copy = self.itself(Identity::Traced);
        copy.node().tracer.store(true, std::sync::atomic::Ordering::Relaxed);
        copy
    }
}

/// The operand itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Identity {
    /// An argument of a transform.
    Traced,
    /// A barrier to derivatives.
    StopGradient,
    /// Has a second operand, the rows that are wanted of the first, which has so many.
    Enough {
        /// Rows that there are.
        rows: usize,
    },
}

impl Rules for Identity {
    fn name(&self) -> &'static str {
        match self {
            Identity::Traced => "array",
            Identity::StopGradient => "stop_gradient",
            Identity::Enough { .. } => "masked_scatter",
        }
    }

    fn eval(&self, exec: &Exec, call: &Call<'_>) -> Result<Value> {
        if let (Identity::Enough { rows }, [_, count]) = (self, call.inputs) {
            let count = exec.on_host(count)?;
            // SAFETY: an evaluated 0-d int32, which lives as long as `count`.
            let wanted = unsafe { count.data().cast::<i32>().read_unaligned() };
            if usize::try_from(wanted).is_ok_and(|n| n > *rows) {
                return Err(Error::runtime(
                    "masked_scatter",
                    format!(
                        "Source does not have enough elements for mask: {wanted} positions are true, and updates are for {rows}."
                    ),
                ));
            }
        }
        Ok(call.inputs[0].clone())
    }

    fn vjp(&self, v: &Vjp<'_>) -> Result<Cotangents> {
        Ok(match self {
            Identity::Traced => smallvec![Some(v.cotangent.clone())],
            Identity::Enough { .. } => smallvec![Some(v.cotangent.clone()), None],
            Identity::StopGradient => Cotangents::new(),
        })
    }

    fn jvp(&self, j: &Jvp<'_>) -> Result<Option<Array>> {
        Ok(match self {
            Identity::Traced | Identity::Enough { .. } => j.tangents[0].clone(),
            Identity::StopGradient => None,
        })
    }

    fn vmap(&self, v: &Vmap<'_>) -> Result<(Array, Option<usize>)> {
        if let (Identity::Enough { rows }, [x, count]) = (self, v.inputs) {
            return Ok((x.enough(&count.max(None, false)?, *rows), v.axes[0]));
        }
        Ok((v.inputs[0].itself(*self), v.axes[0]))
    }
}
