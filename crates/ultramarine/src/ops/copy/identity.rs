//! Identity operations: the stand-in for a traced argument, `stop_gradient`, a check at evaluation, and an ordering of
//! evaluations.

use crate::error::{Error, Result};
use crate::graph::tracing::Tracing;
use crate::node::{Node, Value};
use crate::ops::{Call, Cotangents, Draft, Fitted, Jvp, Refit, Rules, Vjp, Vmap, attributes};
use crate::{array::Array, arrays::Arrays, backend::Exec, dtype::Dtype, shape::Shape};
use smallvec::smallvec;

impl Array {
    /// A node on the array's own device. The node does no work, so there is no reason to choose a device for it.
    fn itself(&self, kind: Identity) -> Array {
        let inputs = std::iter::once(self.node().clone()).collect();
        let shape = Shape::from_slice(self.shape());
        let place = self.node().place;
        Array::from_node(Node::new(kind.into(), inputs, shape, self.dtype(), place))
    }

    /// Returns the same array, which derivatives treat as a constant.
    ///
    /// ```
    /// use ultramarine::{Array, transforms::grad};
    /// let slope = grad(|x: &Array| x * x.stop_gradient())(&Array::scalar(3.0f32))?;
    /// assert_eq!(slope.item::<f32>()?, 3.0);
    /// # Ok::<(), ultramarine::Error>(())
    /// ```
    pub fn stop_gradient(&self) -> Array {
        self.itself(Identity::StopGradient)
    }

    /// Returns the same array. Its evaluation fails if `count` (0-d) is above `rows`. It checks a mask's updates,
    /// because the number of updates needed is known only at evaluation.
    pub(crate) fn enough(&self, count: &Array, rows: usize) -> Array {
        let count = count.astype(Dtype::Int32);
        let kind = Identity::Enough { rows };
        Array::of(kind, &[self, &count], Shape::from_slice(self.shape()), self.dtype())
    }

    /// Wraps the array in a node of its own, from which a transform starts.
    pub(crate) fn traced(&self, tracing: &Tracing) -> Array {
        let inputs = std::iter::once(self.node().clone()).collect();
        let shape = Shape::from_slice(self.shape());
        let (op, place) = (Identity::Traced.into(), self.node().place);
        Array::from_node(Node::argument(tracing, op, inputs, shape, self.dtype(), place))
    }

    /// The same array, hidden from all traces: transforms in progress get no derivatives of its results.
    pub(crate) fn untraced(&self) -> Array {
        let copy = self.itself(Identity::Traced);
        copy.node().leave_trace();
        copy
    }

    /// The same array, which is evaluated only after `others`.
    pub(crate) fn after(&self, others: impl Arrays) -> Array {
        let inputs =
            std::iter::once(self).chain(others.borrowed()).map(|a| a.node().clone()).collect();
        let shape = Shape::from_slice(self.shape());
        let place = self.node().place;
        Array::from_node(Node::new(Identity::After.into(), inputs, shape, self.dtype(), place))
    }
}

/// Returns the same arrays, which are evaluated only after all of `dependencies`. It orders operations that have
/// effects, or that need much memory. Derivatives flow to `inputs`, but not to `dependencies`.
pub fn depends(inputs: impl Arrays, dependencies: impl Arrays) -> Vec<Array> {
    inputs.borrowed().into_iter().map(|x| x.after(&dependencies)).collect()
}

attributes! {
    /// The operand itself.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum Identity {
        /// An argument of a transform.
        Traced,
        /// A barrier to derivatives.
        StopGradient,
        /// Has a second operand: the number of rows wanted of the first operand, which has `rows` rows.
        Enough {
            /// Rows that are available.
            rows: usize,
        },
        /// Has more operands, which only have to be evaluated first.
        After,
        /// A result whose derivatives are unknown, because the function that computed it had derivative rules of its
        /// own.
        Underivable,
    }
}

impl Identity {
    /// Returns true if the node runs on its operand's stream and home device, whatever the scope says.
    pub fn keeps_place(self) -> bool {
        !matches!(self, Identity::Enough { .. })
    }
}

#[cold]
fn underivable(transform: &str) -> Error {
    let text = "A function from a file has no derivative if it uses custom_function: files do not hold its \
                rules. Export the derivative as a function of its own.";
    Error::value(transform, text)
}

impl Rules for Identity {
    fn name(&self) -> &'static str {
        match self {
            Identity::Traced => "array",
            Identity::StopGradient => "stop_gradient",
            Identity::Enough { .. } => "masked_scatter",
            Identity::After => "depends",
            Identity::Underivable => "custom_function",
        }
    }

    fn admits(&self, node: &Draft<'_>) -> bool {
        let (Some(first), [output]) = (node.inputs.first(), node.outputs) else { return false };
        let operands = match self {
            Identity::Traced | Identity::StopGradient | Identity::Underivable => {
                node.inputs.len() == 1
            }
            Identity::Enough { .. } => matches!(node.inputs, [_, ([], Dtype::Int32)]),
            Identity::After => true,
        };
        operands && first == output
    }

    fn eval(&self, exec: &Exec, call: &Call<'_>) -> Result<Value> {
        if let Identity::Enough { rows } = self {
            let count = exec.on_host(&call.operand(1))?;
            // SAFETY: an evaluated 0-d int32, which lives as long as `count`.
            let wanted = unsafe { count.data().cast::<i32>().read_unaligned() };
            if usize::try_from(wanted).is_ok_and(|n| n > *rows) {
                return Err(Error::runtime(
                    "masked_scatter",
                    format!(
                        "Source does not have enough elements for mask: {wanted} positions are true, and updates are for {rows}. Pass at least {wanted}."
                    ),
                ));
            }
        }
        Ok(call.inputs[0].clone())
    }

    fn refit(&self, r: &Refit<'_>) -> Result<Fitted> {
        r.first()
    }

    fn vjp(&self, v: &Vjp<'_>) -> Result<Cotangents> {
        Ok(match self {
            Identity::Traced => smallvec![Some(v.cotangent.clone())],
            Identity::Enough { .. } => smallvec![Some(v.cotangent.clone()), None],
            Identity::After => {
                let mut all = Cotangents::from_elem(None, v.primals.len());
                all[0] = Some(v.cotangent.clone());
                all
            }
            Identity::StopGradient => Cotangents::new(),
            Identity::Underivable => return Err(underivable("vjp")),
        })
    }

    fn jvp(&self, j: &Jvp<'_>) -> Result<Option<Array>> {
        Ok(match self {
            Identity::Traced | Identity::Enough { .. } | Identity::After => j.tangents[0].clone(),
            Identity::StopGradient => None,
            Identity::Underivable => return Err(underivable("jvp")),
        })
    }

    fn vmap(&self, v: &Vmap<'_>) -> Result<(Array, Option<usize>)> {
        if let (Identity::Enough { rows }, [x, count]) = (self, v.inputs) {
            return Ok((x.enough(&count.max(None)?, *rows), v.axes[0]));
        }
        if *self == Identity::After {
            return Ok((v.inputs[0].after(&v.inputs[1..]), v.axes[0]));
        }
        Ok((v.inputs[0].itself(*self), v.axes[0]))
    }

    fn forwards_operands(&self) -> bool {
        true
    }
}
