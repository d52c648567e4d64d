//! Row-major copies.

pub(crate) mod cast;
mod decompose;
pub(crate) mod identity;
pub(crate) mod storage;
pub(crate) mod transfer;

use crate::ops::{Call, Cotangents, Draft, Fitted, Jvp, Refit, Rules, Vjp, Vmap, attributes};
use crate::shape::{self, Shape};
use crate::{array::Array, backend::Exec, error::Result, node::Value};
use smallvec::smallvec;

/// Returns the array, which evaluation makes row-major without gaps.
pub(crate) fn contiguous(a: &Array) -> Array {
    Array::of(Contiguous, &[a], Shape::from_slice(a.shape()), a.dtype())
}

/// Returns a row-major copy of the array. Evaluation always copies.
pub(crate) fn fresh(a: &Array) -> Array {
    Array::of(Fresh, &[a], Shape::from_slice(a.shape()), a.dtype())
}

impl Array {
    /// Returns the array, which evaluation makes row-major without gaps. If the array already has
    /// this layout, it is not copied.
    pub fn contiguous(&self) -> Array {
        contiguous(self)
    }

    /// Returns a row-major copy of the array, always in memory of its own.
    ///
    /// # Errors
    /// [`Error::Value`](crate::Error::Value) when the array is on another accelerator than the
    /// scope's stream.
    pub fn duplicate(&self) -> Result<Array> {
        fresh(self).placed()
    }
}

/// The rules of an identity operation, except the evaluation.
macro_rules! identity {
    ($make:ident) => {
        fn refit(&self, r: &Refit<'_>) -> Result<Fitted> {
            r.first()
        }

        fn vjp(&self, v: &Vjp<'_>) -> Result<Cotangents> {
            Ok(smallvec![Some(v.cotangent.clone())])
        }

        fn jvp(&self, j: &Jvp<'_>) -> Result<Option<Array>> {
            Ok(j.tangents[0].clone())
        }

        fn vmap(&self, v: &Vmap<'_>) -> Result<(Array, Option<usize>)> {
            Ok(($make(&v.inputs[0]), v.axes[0]))
        }
    };
}

attributes! {
    /// The identity, whose result is row-major.
    #[derive(Clone, Debug)]
    pub(crate) struct Contiguous;
}

impl Rules for Contiguous {
    fn name(&self) -> &'static str {
        "contiguous"
    }

    fn admits(&self, node: &Draft<'_>) -> bool {
        node.is_same()
    }

    fn eval(&self, exec: &Exec, call: &Call<'_>) -> Result<Value> {
        let input = &call.inputs[0];
        if shape::is_contiguous(call.shape, &input.strides) {
            return Ok(input.clone());
        }
        let value = exec.alloc(call.shape, call.dtype)?;
        exec.copy(call.operand(0), call.output(&value))?;
        Ok(value)
    }

    identity!(contiguous);

    fn inherits_home(&self) -> bool {
        true
    }
}

attributes! {
    /// The identity, whose result is in memory of its own.
    #[derive(Clone, Debug)]
    pub(crate) struct Fresh;
}

impl Rules for Fresh {
    fn name(&self) -> &'static str {
        "contiguous"
    }

    fn admits(&self, node: &Draft<'_>) -> bool {
        node.is_same()
    }

    fn eval(&self, exec: &Exec, call: &Call<'_>) -> Result<Value> {
        let value = exec.alloc(call.shape, call.dtype)?;
        exec.copy(call.operand(0), call.output(&value))?;
        Ok(value)
    }

    identity!(fresh);

    fn inherits_home(&self) -> bool {
        true
    }
}
