//! Turns a primitive into a node of the graph.

use super::handles::{arrays, hand_out};
use super::primitive::{Applied, Primitive};
use super::types::{enter, tensor_type};
use super::{boundary::guard, derive, evaluate};
use crate::error::{Result, ensure};
use crate::ops::rules::multi_output::{
    Compose, ForeignIdentity, MultiOutputJvp, MultiOutputRules, MultiOutputVjp, Results,
};
use crate::ops::{Call, Cotangents, Draft, Refit, Vmap, rules::shapeless::cannot};
use crate::{array::Array, backend::Exec, dtype::Dtype, node::Value, shape::Shape};
use core::ffi::c_void;
use std::sync::Arc;
use ultramarine_abi::extension::{self, ArrayHandle, PlaceCode};
use ultramarine_abi::{self as abi, Status};

pub(super) unsafe extern "C" fn apply(
    _: *mut c_void,
    primitive: *const extension::Primitive,
    inputs: *const *mut ArrayHandle,
    n_inputs: u32,
    place: *const PlaceCode,
    outputs: *mut *mut ArrayHandle,
    error: *mut *mut abi::Error,
) -> Status {
    // SAFETY: the caller's pointers, valid by contract.
    unsafe {
        guard("apply", error, || {
            let primitive = Primitive::new(primitive)?;
            let name = primitive.name;
            let inputs = arrays(name, inputs, n_inputs)?;
            ensure!(
                !outputs.is_null(),
                name,
                "The pointer to the outputs is NULL. Pass an array of handles."
            );
            let _scope = enter(name, place)?;
            Ok(hand_out(name, applied(primitive, &inputs)?, outputs)?)
        })
    }
}

/// The lazy outputs of a primitive.
fn applied(primitive: Primitive, inputs: &[Array]) -> Result<Vec<Array>> {
    let results = primitive.infer(inputs)?;
    let dtypes = inputs.iter().map(Array::dtype).collect();
    let applied = Applied { primitive: Arc::new(primitive), dtypes };
    let inputs: Vec<&Array> = inputs.iter().collect();
    Array::multi_output(applied, &inputs, results)
}

impl MultiOutputRules for Applied {
    fn name(&self) -> &'static str {
        self.primitive.name
    }

    /// The primitive's `infer` rule decides.
    fn admits(&self, node: &Draft<'_>) -> bool {
        let dtypes = node.inputs.iter().map(|(_, dtype)| dtype);
        let types = node.inputs.iter().map(|(shape, dtype)| tensor_type(shape, *dtype)).collect();
        dtypes.eq(self.dtypes.iter())
            && self.primitive.infer_types(types).is_ok_and(|results| node.gives_all(&results))
    }

    fn foreign(&self) -> Option<ForeignIdentity> {
        Some(self.primitive.identity())
    }

    fn version(&self) -> u32 {
        self.primitive.version
    }

    fn eval(&self, exec: &Exec, call: &Call<'_>, results: &[(Shape, Dtype)]) -> Result<Vec<Value>> {
        evaluate::run(&self.primitive, exec, call, results)
    }

    fn compose(&self, c: &Compose<'_>) -> Option<Result<Vec<Value>>> {
        Some(evaluate::composed(self, c))
    }

    fn refit(&self, r: &Refit<'_>, before: &[(Shape, Dtype)]) -> Result<Results> {
        let types = r.inputs.iter().zip(&*self.dtypes).map(|(s, d)| tensor_type(s, *d));
        let now = self.primitive.infer_types(types.collect())?;
        // The operations after this one were traced for these dtypes.
        match now.iter().zip(before).all(|(a, b)| a.1 == b.1) {
            true => Ok(now),
            false => Err(cannot(self.primitive.name)),
        }
    }

    fn vjp(&self, v: &MultiOutputVjp<'_>) -> Result<Cotangents> {
        derive::vjp(self, v)
    }

    fn jvp(&self, j: &MultiOutputJvp<'_>) -> Result<Vec<Option<Array>>> {
        derive::jvp(self, j)
    }

    fn vmap(&self, v: &Vmap<'_>) -> Result<Vec<(Array, Option<usize>)>> {
        derive::vmap(self, v)
    }
}
