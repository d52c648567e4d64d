//! Operations. An operation is data: a variant of [`Op`] with its attributes.
//!
//! Each family has a folder: its public functions (with shape and dtype inference, so that errors come at the call),
//! the operations' attribute structs, and their [`Rules`]: how they are evaluated, fused and transformed. A file
//! `decompose.rs` has what replaces the family's operations on devices without a kernel. Parts that all families
//! use are in [`rules`].
//!
//! The rules of a new operation go into a node as [`Op::Open`] ([`Array::open`]), or, with several results, as
//! [`Op::Many`] ([`Array::many`]). The operations that tiny graphs are made of are variants of their own.

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
pub(crate) mod random;
pub(crate) mod reduce;
/// Parts that the rules of all families use: [`rules::builders`] makes nodes, [`rules::batching`] moves mapped axes,
/// [`rules::multi_output`] is for operations with several results, [`rules::shapeless`] for shapes that follow their
/// operands, and [`rules::decomposition`] for devices without a kernel.
pub(crate) mod rules {
    pub(crate) mod batching;
    pub(crate) mod builders;
    pub(crate) mod decomposition;
    pub(crate) mod multi_output;
    pub(crate) mod shapeless;
}
pub(crate) mod scan;
pub(crate) mod select;
pub(crate) mod shape;
pub(crate) mod sort;

pub(crate) use crate::graph::{
    attribute::{Attribute, attributes},
    composite::{Composite, Offers},
    operation_key::{Opaque, OperationKey},
    refit::{Fitted, Refit},
    rules::{
        Call, Candidates, Cotangents, Decompose, Elementwise, Epilogue, Jvp, Rules, Vjp, Vmap,
        no_derivatives,
    },
};
use crate::{
    array::Array,
    dtype::Dtype,
    error::Result,
    node::{Inputs, Node},
    placement,
    shape::Shape,
};
use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

macro_rules! families {
    ($($(#[$m:meta])* $variant:ident($rules:ty),)*) => {
        /// An operation with its attributes.
        #[derive(Clone, Debug)]
        pub(crate) enum Op {
            /// No operation: the node was made with its value, or is a stand-in of a
            /// transform, which never gets one.
            Given,
            /// Any operation without a variant of its own.
            Open(Open),
            $($(#[$m])* $variant($rules),)*
        }

        impl Op {
            /// The rules of the operation; `None` for [`Op::Given`].
            pub fn rules(&self) -> Option<&dyn Rules> {
                match self {
                    Op::Given => None,
                    Op::Open(Open(rules)) => Some(&**rules),
                    $(Op::$variant(rules) => Some(rules),)*
                }
            }
        }
        $(impl From<$rules> for Op {
            fn from(rules: $rules) -> Op { Op::$variant(rules) }
        })*
    };
}

families! {
    Binary(elementwise::binary::Binary),
    Unary(elementwise::unary::Unary),
    Cast(copy::cast::Cast),
    Recode(copy::storage::Recode),
    Fill(create::fill::Fill),
    Arange(create::fill::Arange),
    Reduce(reduce::Reduce),
    ArgReduce(arg_reduce::ArgReduce),
    Scan(scan::Scan),
    Matmul(matmul::Matmul),
    Sort(sort::Sort),
    RandomBits(random::RandomBits),
    Gather(index::gather::Gather),
    GatherAxis(index::gather::GatherAxis),
    Scatter(index::scatter::Scatter),
    ScatterAxis(index::scatter::ScatterAxis),
    Select(select::Select),
    View(shape::view::View),
    Update(index::update::Update),
    Concatenate(shape::concatenate::Concatenate),
    Contiguous(copy::Contiguous),
    Fresh(copy::Fresh),
    Identity(copy::identity::Identity),
    Transfer(copy::transfer::Transfer),
    /// Any operation with several results; its users are [`Op::Part`]s alone.
    Many(rules::multi_output::Many),
    /// One of these results.
    Part(rules::multi_output::Part),
}

/// The rules of an operation without a variant of its own.
#[derive(Clone)]
pub(crate) struct Open(Arc<dyn Rules + Send + Sync>);

impl Debug for Open {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Op {
    /// An operation without a variant of its own.
    pub fn open(rules: impl Rules + Send + Sync + 'static) -> Op {
        Op::Open(Open(Arc::new(rules)))
    }

    /// The operation for another node.
    pub fn for_new_node(&self) -> Op {
        match self {
            Op::Many(many) => many.for_new_node().into(),
            _ => self.clone(),
        }
    }

    /// MLX's name of the operation.
    pub fn name(&self) -> &'static str {
        self.rules().map_or("array", |r| r.name())
    }

    /// True if operands may stay on whatever device they are: it only hands one on.
    pub fn leaves_operands(&self) -> bool {
        match self {
            Op::Part(_) | Op::Identity(copy::identity::Identity::After) => true,
            Op::Many(many) => many.rules().hands_on(),
            _ => false,
        }
    }
}

impl Array {
    /// A lazy array: `op` of `inputs`, placed as [`crate::placement`] says. The caller
    /// has inferred shape and dtype. Here, and only here, operations are kept from storage
    /// dtypes.
    pub(crate) fn lazy(op: Op, inputs: &[&Array], shape: Shape, dtype: Dtype) -> Result<Array> {
        if dtype.is_storage() || inputs.iter().any(|a| a.dtype().is_storage()) {
            copy::storage::admit(&op, inputs, dtype)?;
        }
        let place = placement::place(&op, inputs)?;
        let inputs: Inputs = inputs.iter().map(|a| a.node().clone()).collect();
        Ok(Array::from_node(Node::new(op, inputs, shape, dtype, place)))
    }

    /// A lazy array whose error, if it cannot be placed, is raised by whoever needs it.
    pub(crate) fn lazy_or_failed(op: Op, inputs: &[&Array], shape: Shape, dtype: Dtype) -> Array {
        Array::lazy(op, inputs, shape.clone(), dtype)
            .unwrap_or_else(|error| Array::failed(error, shape, dtype))
    }

    /// A lazy array of an op's attribute struct. An operand on another accelerator than
    /// the scope's is an error for whoever needs the result.
    pub(crate) fn of(op: impl Into<Op>, inputs: &[&Array], shape: Shape, dtype: Dtype) -> Array {
        Array::lazy_or_failed(op.into(), inputs, shape, dtype)
    }

    /// A lazy array of an operation without a variant of its own.
    ///
    /// # Errors
    /// [`Error::Value`] when operands are on accelerators that do not mix.
    pub(crate) fn open(
        rules: impl Rules + Send + Sync + 'static,
        inputs: &[&Array],
        shape: Shape,
        dtype: Dtype,
    ) -> Result<Array> {
        Array::lazy(Op::open(rules), inputs, shape, dtype)
    }

    /// A lazy array of an op's attribute struct.
    ///
    /// # Errors
    /// [`Error::Value`] when operands are on accelerators that do not mix.
    pub(crate) fn try_of(
        op: impl Into<Op>,
        inputs: &[&Array],
        shape: Shape,
        dtype: Dtype,
    ) -> Result<Array> {
        Array::lazy(op.into(), inputs, shape, dtype)
    }
}
