//! Identities that transforms see: the stand-in of a traced argument, and
//! `stop_gradient`.

use super::{Call, Cotangents, Jvp, Rules, Vjp, Vmap};
use crate::{array::Array, backend::Exec, error::Result, node::Value, shape::Shape};
use smallvec::smallvec;

impl Array {
    fn itself(&self, kind: Identity) -> Array {
        Array::of(kind, &[self], Shape::from_slice(self.shape()), self.dtype())
    }

    /// The same array, through which no derivative flows.
    pub fn stop_gradient(&self) -> Array {
        self.itself(Identity::StopGradient)
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
}

impl Rules for Identity {
    fn name(&self) -> &'static str {
        match self {
            Identity::Traced => "array",
            Identity::StopGradient => "stop_gradient",
        }
    }

    fn eval(&self, _: &Exec, call: &Call<'_>) -> Result<Value> {
        Ok(call.inputs[0].clone())
    }

    fn vjp(&self, v: &Vjp<'_>) -> Result<Cotangents> {
        Ok(match self {
            Identity::Traced => smallvec![Some(v.cotangent.clone())],
            Identity::StopGradient => Cotangents::new(),
        })
    }

    fn jvp(&self, j: &Jvp<'_>) -> Result<Option<Array>> {
        Ok(match self {
            Identity::Traced => j.tangents[0].clone(),
            Identity::StopGradient => None,
        })
    }

    fn vmap(&self, v: &Vmap<'_>) -> Result<(Array, Option<usize>)> {
        Ok((v.inputs[0].itself(*self), v.axes[0]))
    }
}
