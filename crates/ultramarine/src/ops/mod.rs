//! Operations. An operation is data: its attributes, in an [`Op`].
//!
//! Each family of operations has a folder. It contains its public functions (with shape and dtype inference, so that
//! errors come at the call), the operations' attribute structs, and their [`Rules`] for evaluation, fusion and
//! transforms. A file `decompose.rs` replaces the family's operations on devices without a kernel. Parts that all
//! families use are in [`rules`].
//!
//! Attributes with [`Rules`] are an operation. [`Array::try_of`] makes its node; [`Array::of`] does too, but reports
//! errors at evaluation. [`Array::multi_output`] makes the nodes of an operation with several results.

pub(crate) mod arg_reduce;
pub(crate) mod conv;
pub(crate) mod copy;
pub(crate) mod create;
pub(crate) mod elementwise;
pub(crate) mod fft;
pub(crate) mod index;
pub(crate) mod linalg;
pub(crate) mod matmul;
pub(crate) mod nn;
pub(crate) mod quantized;
pub(crate) mod random;
pub(crate) mod reduce;
/// Parts that the rules of all families use: [`rules::builders`] makes nodes, [`rules::batching`] moves mapped axes,
/// [`rules::multi_output`] is for operations with several results, [`rules::subgraph`] for operations that stand for a
/// graph, [`rules::shapeless`] for shapes that follow their operands, and [`rules::decomposition`] for devices without
/// a kernel.
pub(crate) mod rules {
    pub(crate) mod batching;
    pub(crate) mod builders;
    pub(crate) mod decomposition;
    pub(crate) mod multi_output;
    pub(crate) mod shapeless;
    pub(crate) mod subgraph;
}
pub(crate) mod scan;
pub(crate) mod select;
pub(crate) mod shape;
pub(crate) mod sort;

pub(crate) use crate::graph::attribute::{Attribute, attributes};
pub(crate) use crate::graph::composite::{Composite, Offers};
pub(crate) use crate::graph::draft::{self, Draft};
pub(crate) use crate::graph::op::Op;
pub(crate) use crate::graph::operation_key::{Opaque, OperationKey};
pub(crate) use crate::graph::refit::{Fitted, Refit};
pub(crate) use crate::graph::rules::{
    Anchor, Call, Candidates, Cotangents, Decompose, Elementwise, Epilogue, Jvp, Rules, Vjp, Vmap,
    no_derivatives,
};
use crate::node::{Inputs, Node};
use crate::{array::Array, dtype::Dtype, error::Result, placement, shape::Shape};

// A view is the largest of the operations that occur in small graphs.
const _: () =
    assert!(Op::is_inline::<shape::view::View>() && Op::is_inline::<index::update::Update>());

impl Array {
    /// Makes a lazy array: an operation on `inputs`, placed as described in [`crate::placement`]. The caller has
    /// inferred shape and dtype. This function is the only place that rejects storage dtypes.
    ///
    /// # Errors
    /// [`Error::Value`](crate::Error::Value) when operands are on accelerators that cannot be combined,
    /// [`Error::Type`](crate::Error::Type) for a storage dtype that the operation does not accept.
    pub(crate) fn try_of(
        op: impl Into<Op>,
        inputs: &[&Array],
        shape: Shape,
        dtype: Dtype,
    ) -> Result<Array> {
        Array::lazy(op.into(), inputs, shape, dtype)
    }

    /// As [`Array::try_of`], but keeps an error in the array: evaluation returns it.
    pub(crate) fn of(op: impl Into<Op>, inputs: &[&Array], shape: Shape, dtype: Dtype) -> Array {
        Array::lazy(op.into(), inputs, shape.clone(), dtype)
            .unwrap_or_else(|error| Array::failed(error, shape, dtype))
    }

    /// [`Array::try_of`], compiled once for all operations.
    fn lazy(op: Op, inputs: &[&Array], shape: Shape, dtype: Dtype) -> Result<Array> {
        if dtype.is_storage() || inputs.iter().any(|a| a.dtype().is_storage()) {
            copy::storage::admit(&op, inputs, dtype)?;
        }
        #[cfg(debug_assertions)]
        admitted(&op, inputs, &shape, dtype);
        let place = placement::place(&op, inputs)?;
        let mut operands = Inputs::new();
        inputs.iter().for_each(|a| operands.push(a.node().clone()));
        Ok(Array::of_new(Node::new(op, operands, shape, dtype, place)))
    }
}

/// Asserts that a node satisfies the checks that nodes loaded from files must pass.
#[cfg(debug_assertions)]
fn admitted(op: &Op, inputs: &[&Array], shape: &[usize], dtype: Dtype) {
    let types: Vec<draft::Type<'_>> = inputs.iter().map(|a| (a.shape(), a.dtype())).collect();
    let outputs: Vec<draft::Type<'_>> = match op.get::<rules::multi_output::MultiOutput>() {
        Some(multi) => multi.results().iter().map(|(shape, dtype)| (&shape[..], *dtype)).collect(),
        None => vec![(shape, dtype)],
    };
    // User-defined operations have just been asked, and are not asked twice.
    let multi = op.get::<rules::multi_output::MultiOutput>();
    if multi.is_some_and(|multi| multi.rules().foreign().is_some()) {
        return;
    }
    let node = Draft { inputs: &types, outputs: &outputs };
    // Only decompositions make bools from bytes, which they know to be 0 or 1.
    let bools = matches!(op.get(), Some(shape::view::View::Bitcast)) && dtype == Dtype::Bool;
    assert!(
        bools || op.rules().is_none_or(|rules| rules.admits(&node)),
        "{op:?} does not admit {node:?}"
    );
}
