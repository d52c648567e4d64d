//! Nodes fitted to operands of other sizes, for graphs that were traced shapeless.

use crate::error::{Error, Result, bail};
use crate::shape::{self, Shape, Show};
use crate::{graph::op::Op, scalar::Scalar};
use smallvec::SmallVec;

/// A node that is to be fitted to operands of other sizes. Dtypes and numbers of dimensions are as traced.
pub(crate) struct Refit<'a> {
    /// The traced operation.
    pub op: &'a Op,
    /// The operands' shapes when traced.
    pub traced: &'a [&'a [usize]],
    /// Their shapes now.
    pub inputs: &'a [&'a [usize]],
    /// Values of operands that are constants.
    pub constants: &'a [Option<Scalar>],
    /// The result's shape when traced.
    pub shape: &'a [usize],
}

/// The result of a [`Refit`]: a node for operands of other sizes.
pub(crate) struct Fitted {
    /// The operation.
    pub op: Op,
    /// The operands that it keeps, in order; `None`: all.
    pub operands: Option<SmallVec<[usize; 2]>>,
    /// The result's shape.
    pub shape: Shape,
}

/// The error of an operation whose result's shape cannot be told from its operands'.
pub(crate) fn cannot(name: &str) -> Error {
    Error::value(
        "compile",
        format!(
            "{name} cannot infer output shapes, so it cannot be compiled shapeless. Compile without `shapeless`."
        ),
    )
}

impl Op {
    /// The operation among operands of other sizes.
    ///
    /// # Errors
    /// [`Error::Value`] if it cannot follow, or the sizes do not fit each other.
    pub fn refit(&self, r: &Refit<'_>) -> Result<Fitted> {
        match self.rules() {
            Some(rules) => rules.refit(r),
            None => Err(cannot("array")),
        }
    }
}

impl Refit<'_> {
    /// Returns the traced operation with a result of another shape.
    pub fn same(&self, shape: Shape) -> Result<Fitted> {
        shape::check("compile", &shape)?;
        Ok(Fitted { op: self.op.clone(), operands: None, shape })
    }

    /// Returns the traced operation with a result of its first operand's shape.
    pub fn first(&self) -> Result<Fitted> {
        self.same(Shape::from_slice(self.inputs.first().copied().unwrap_or(self.shape)))
    }

    /// Returns the traced operation with operands and result of one shape.
    pub fn elementwise(&self) -> Result<Fitted> {
        let first = self.inputs.first().copied().unwrap_or(self.shape);
        if let Some(other) = self.inputs.iter().find(|s| **s != first) {
            bail!(
                "broadcast_shapes",
                "Shapes {} and {} cannot be broadcast. Compile without `shapeless`.",
                Show(first),
                Show(other)
            );
        }
        self.first()
    }

    /// Checks that the operands' shapes agree but for one axis.
    pub fn agree_but(&self, axis: usize) -> Result<()> {
        let first = self.inputs[0];
        let differs = |s: &&[usize]| (0..first.len()).any(|i| i != axis && s[i] != first[i]);
        match self.inputs.iter().find(|s| differs(s)) {
            None => Ok(()),
            Some(other) => Err(Error::value(
                "compile",
                format!(
                    "Shapes {} and {} differ, and must be equal. Compile without `shapeless`.",
                    Show(first),
                    Show(other)
                ),
            )),
        }
    }
}
