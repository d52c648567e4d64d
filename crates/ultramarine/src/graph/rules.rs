//! Rules of operations: evaluation, fusion, decomposition, differentiation and batching.

use super::refit::{Fitted, Refit, cannot};
use super::{attribute::Attribute, composite::Composite, draft::Draft};
use crate::backend::{Exec, Operand, words_of};
use crate::error::{Error, Result};
use crate::{
    array::Array, device::Device, dtype::Dtype, node::Node, node::Value, scalar::Scalar, shape,
};
use smallvec::SmallVec;
use std::fmt::Debug;
use std::sync::Arc;
use ultramarine_abi::schema::OpId;

/// An instruction of a fused program, without its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Elementwise {
    /// A code of [`ultramarine_abi::fused::family`].
    pub family: u8,
    /// The code of the op in its family.
    pub code: u8,
}

/// The epilogue of a fused program: a reduction of its last result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Epilogue {
    /// A code of [`ultramarine_abi::schema::reduce`].
    pub code: u32,
    /// Bit `i`: axis `i` is reduced.
    pub axes: u64,
}

/// The operation of the schema that a fused program ends with. It reads the program's last result
/// as operand 0, and operand 0 has the operation's shape. Operands of fewer axes are broadcast to
/// that shape.
#[derive(Clone, Debug)]
pub(crate) struct Anchor {
    /// The operation.
    pub op: OpId,
    /// Its attribute struct, in words.
    pub attributes: SmallVec<[u64; 8]>,
    /// Its scalars.
    pub scalars: SmallVec<[Scalar; 1]>,
}

impl Anchor {
    /// Makes an anchor from an operation and its attribute struct of the schema.
    pub fn new<A: Copy>(op: OpId, attributes: &A, scalars: &[Scalar]) -> Anchor {
        let scalars = scalars.iter().copied().collect();
        Anchor { op, attributes: words_of(attributes), scalars }
    }
}

/// The arguments of an evaluation: the operands' values, and the shape and dtype of the result.
pub(crate) struct Call<'a> {
    /// Evaluated operands, on the op's device.
    pub inputs: &'a [Value],
    /// The operands' shapes and dtypes.
    pub descs: &'a [(&'a [usize], Dtype)],
    /// Shape of the result.
    pub shape: &'a [usize],
    /// Dtype of the result.
    pub dtype: Dtype,
    /// Bit `i`: nothing else needs operand `i`, so the output may take over its memory.
    pub donatable: u32,
}

impl Call<'_> {
    /// Returns operand `i`, as a kernel reads it.
    pub fn operand(&self, i: usize) -> Operand<'_> {
        let (shape, dtype) = self.descs[i];
        Operand { value: &self.inputs[i], shape, dtype }
    }

    /// Returns the result as a kernel writes it, into the memory of `value`.
    pub fn output<'v>(&'v self, value: &'v Value) -> Operand<'v> {
        Operand { value, shape: self.shape, dtype: self.dtype }
    }

    /// Returns the memory of operand `i` for the result, if it is row-major and nothing else needs
    /// it.
    pub fn donated(&self, exec: &Exec, i: usize) -> Option<Value> {
        let (value, (shape, dtype)) = (&self.inputs[i], self.descs[i]);
        let own = self.donatable >> i & 1 == 1
            && value.offset == 0
            && value.buffer.bytes() == shape::size(shape) * dtype.size()
            && shape::is_contiguous(shape, &value.strides);
        own.then(|| exec.donate(value))
    }

    /// Returns a row-major array with the elements of operand `i`, which may be written to. It is
    /// the operand's own memory if nothing else needs it, otherwise a copy. It has the result's
    /// shape and dtype.
    pub fn writable(&self, exec: &Exec, i: usize) -> Result<Value> {
        if let Some(own) = self.donated(exec, i) {
            return Ok(own);
        }
        let (shape, dtype) = self.descs[i];
        let copy = exec.alloc(shape, dtype)?;
        exec.copy(self.operand(i), Operand { value: &copy, shape, dtype })?;
        Ok(copy)
    }

    /// Runs an operation of the backend with all operands, into new memory.
    ///
    /// # Errors
    /// Those of the backend.
    pub fn run<A: Copy>(
        &self,
        exec: &Exec,
        op: OpId,
        attrs: &A,
        scalars: &[Scalar],
    ) -> Result<Value> {
        self.run_into(exec, exec.alloc(self.shape, self.dtype)?, op, attrs, scalars)
    }

    /// Runs an operation of the backend with all operands, into the memory of `value`.
    ///
    /// # Errors
    /// Those of the backend.
    pub fn run_into<A: Copy>(
        &self,
        exec: &Exec,
        value: Value,
        op: OpId,
        attrs: &A,
        scalars: &[Scalar],
    ) -> Result<Value> {
        let mut inputs: SmallVec<[Operand<'_>; 4]> = SmallVec::new();
        (0..self.inputs.len()).for_each(|i| inputs.push(self.operand(i)));
        exec.run(op, attrs, &inputs, &[self.output(&value)], scalars)?;
        Ok(value)
    }
}

/// The derivative rules of an op that passes no derivative on.
macro_rules! no_derivatives {
    () => {
        fn vjp(&self, _: &Vjp<'_>) -> Result<Cotangents> {
            Ok(Cotangents::new())
        }

        fn jvp(&self, _: &Jvp<'_>) -> Result<Option<Array>> {
            Ok(None)
        }
    };
}
pub(crate) use no_derivatives;

/// The arguments of a reverse rule: operands, result, and the result's cotangent.
pub(crate) struct Vjp<'a> {
    /// Operands.
    pub primals: &'a [Array],
    /// Result.
    pub output: &'a Array,
    /// Cotangent of the result, with the result's shape and dtype.
    pub cotangent: &'a Array,
    /// True for operands that need a cotangent.
    pub wanted: &'a [bool],
}

/// The arguments of a forward rule: operands, result, and the operands' tangents (`None`: zero).
pub(crate) struct Jvp<'a> {
    /// Operands.
    pub primals: &'a [Array],
    /// Result.
    pub output: &'a Array,
    /// Tangents, with the operands' shapes and dtypes.
    pub tangents: &'a [Option<Array>],
}

/// The arguments of a batching rule: the operands, and the axis of each that is mapped (`None`: not
/// mapped).
pub(crate) struct Vmap<'a> {
    /// Operands. A mapped operand has one more axis than the op was made for.
    pub inputs: &'a [Array],
    /// The mapped axis of each operand.
    pub axes: &'a [Option<usize>],
    /// The operands that the op was made for. Mapped operands have no values.
    pub operands: &'a [Array],
    /// Size of the mapped axis.
    pub size: usize,
    /// Shape of the unmapped result.
    pub shape: &'a [usize],
    /// Dtype of the result.
    pub dtype: Dtype,
}

/// An operation that its device has no kernel for, and that has to be decomposed.
pub(crate) struct Decompose<'a> {
    /// Evaluated operands, on the op's device.
    pub inputs: &'a [Array],
    /// Shape of the result.
    pub shape: &'a [usize],
    /// Dtype of the result.
    pub dtype: Dtype,
}

/// Candidates for the result of an operation, in the order of preference.
#[derive(Default)]
pub(crate) struct Candidates(pub Vec<Array>);

impl Candidates {
    /// Adds a candidate. A candidate that could not be built, for example because of its size, is
    /// left out.
    pub fn add(&mut self, candidate: Result<Array>) {
        self.0.extend(candidate.ok());
    }
}

/// One cotangent for each operand. `None` if the cotangent is not wanted, or zero.
pub(crate) type Cotangents = SmallVec<[Option<Array>; 2]>;

/// Work that makes a node's value outside all streams, such as reading a file.
pub(crate) trait Outside {
    /// Begins the work for a node that was claimed, and returns without waiting. The work ends with
    /// [`Node::finish`].
    ///
    /// `consumer` is the device on which the evaluation wants the value, if known. `sync` is true
    /// if a thread waits for the evaluation.
    fn begin(&self, node: &Arc<Node>, consumer: Option<Device>, sync: bool);

    /// Notes that a thread waits for the value.
    fn hurry(&self);
}

/// The rules of an operation. Its [`OperationKey`](super::operation_key::OperationKey) consists of
/// its name, its version and its attributes.
pub(crate) trait Rules: Attribute + Debug + Send + Sync + 'static {
    /// MLX's name of the operation.
    fn name(&self) -> &'static str;

    /// Version of the attributes. It is raised when the meaning of the same attributes changes.
    fn version(&self) -> u32 {
        1
    }

    /// Returns true if such a node is valid. It must check all that the node's other rules rely on,
    /// because files may contain anything: codes, axes, numbers of operands, shapes and dtypes.
    fn admits(&self, node: &Draft<'_>) -> bool;

    /// The instruction for the op in a fused program, if the op is elementwise.
    fn elementwise(&self) -> Option<Elementwise> {
        None
    }

    /// The op as an epilogue of a fused program, if it is a reduction.
    fn epilogue(&self) -> Option<Epilogue> {
        None
    }

    /// The op as the anchor of a fused program that computes its first operand, if that is
    /// possible.
    fn anchor(&self) -> Option<Anchor> {
        None
    }

    /// The value of each element, if the operation makes a constant.
    fn constant(&self) -> Option<Scalar> {
        None
    }

    /// Returns true for products of the rows of the first operand. Products of the same few rows
    /// run next to each other.
    fn is_product(&self) -> bool {
        false
    }

    /// Returns true if the value is an operand's own. The evaluator then leaves the operands on
    /// their devices, and copies none of them to the op's device.
    fn forwards_operands(&self) -> bool {
        false
    }

    /// Returns true for views and casts: without a scope, their result has a home only if their
    /// operand has one. The results of other operations with operands then have the default device
    /// as home.
    fn inherits_home(&self) -> bool {
        false
    }

    /// The work outside all streams that makes the value. Such a node is a constant in every traced
    /// graph, and no other node does its work.
    fn outside(&self) -> Option<&dyn Outside> {
        None
    }

    /// Evaluates the op by itself. By default no device has a kernel for the op, and the result
    /// comes from [`Rules::decompose`].
    fn eval(&self, exec: &Exec, _: &Call<'_>) -> Result<Value> {
        Err(exec.refuse(self.name()))
    }

    /// Adds candidates for the result, made of simpler operations, for a device that has no kernel
    /// for this operation. A candidate fails if it needs an operation that is being decomposed
    /// already.
    fn decompose(&self, d: &Decompose<'_>, candidates: &mut Candidates) {
        if let Some(composite) = self.composite() {
            candidates.add(composite.compose(d.inputs, d.dtype));
        }
    }

    /// The composition that replaces the op before planning, if its device has no kernel for the
    /// op.
    fn composite(&self) -> Option<&dyn Composite> {
        None
    }

    /// Adapts the operation to operands of other sizes, for graphs that were traced shapeless. By
    /// default this works only for elementwise operations, and for operations without operands.
    fn refit(&self, r: &Refit<'_>) -> Result<Fitted> {
        match self.elementwise() {
            Some(_) => r.elementwise(),
            None if r.inputs.is_empty() => r.first(),
            None => Err(cannot(self.name())),
        }
    }

    /// Reverse rule.
    fn vjp(&self, _: &Vjp<'_>) -> Result<Cotangents> {
        Err(Error::Value(format!("[vjp] {} has no vjp rule. Define a derivative by custom_function, or use stop_gradient.", self.name()).into()))
    }

    /// Forward rule. `None` if the tangent is zero.
    fn jvp(&self, _: &Jvp<'_>) -> Result<Option<Array>> {
        Err(Error::Value(format!("[jvp] {} has no jvp rule. Define a derivative by custom_function, or use stop_gradient.", self.name()).into()))
    }

    /// Batching rule. Returns the mapped result and its mapped axis.
    fn vmap(&self, _: &Vmap<'_>) -> Result<(Array, Option<usize>)> {
        Err(Error::Value(format!("[vmap] {} has no vmap rule. Define a rule by custom_function, or stack the results of single calls.", self.name()).into()))
    }
}
