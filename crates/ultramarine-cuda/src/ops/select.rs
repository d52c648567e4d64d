//! SELECT, which arrays call `where`.

use super::elementwise::rule::Weight;
use super::elementwise::{Elementwise, MOVES, Map, Spec};
use crate::launch::{Dtype, OpRequest, Work};
use ultramarine_abi::helper::{Failure, Result};

/// SELECT. Elements are moved as words.
pub fn prepare(request: &OpRequest<'_>) -> Result<Box<dyn Work>> {
    request.elementwise(3)?;
    let dtype = request.output(0)?.dtype;
    if request.input(0)?.dtype != Dtype::Bool
        || request.input(1)?.dtype != dtype
        || request.input(2)?.dtype != dtype
    {
        return Err(Failure::invalid("select takes a bool and two values of the output's dtype"));
    }
    let word = dtype.word();
    Ok(Box::new(Elementwise(Map::new(Spec {
        name: format!("select {}", word.tag()),
        headers: MOVES,
        function: "x ? y : z".to_owned(),
        dtypes: [Dtype::Bool, word, word, word],
        weight: Weight::Light,
    }))))
}
