//! Adapts nodes to operands of other sizes, for graphs that were traced shapeless.

use crate::error::{Error, Result, bail};
use crate::shape::{self, Shape, Show};
use crate::{graph::op::Op, scalar::Scalar};
use smallvec::SmallVec;

/// A node that has to be adapted to operands of other sizes. Dtypes and ranks are as traced.
pub(crate) struct Refit<'a> {
    /// The traced operation.
    pub op: &'a Op,
    /// The operands' traced shapes.
    pub traced: &'a [&'a [usize]],
    /// The operands' current shapes.
    pub inputs: &'a [&'a [usize]],
    /// Values of operands that are constants.
    pub constants: &'a [Option<Scalar>],
    /// The result's traced shape.
    pub shape: &'a [usize],
}

/// The result of a [`Refit`]: a node for operands of other sizes.
pub(crate) struct Fitted {
    /// The operation.
    pub op: Op,
    /// The operands that the node keeps, in order. `None` if it keeps all.
    pub operands: Option<SmallVec<[usize; 2]>>,
    /// The result's shape.
    pub shape: Shape,
}

/// The error for an operation if the result's shape does not follow from the operands' shapes.
pub(crate) fn cannot(name: &str) -> Error {
    Error::value(
        "compile",
        format!(
            "{name} cannot infer output shapes, so it cannot be compiled shapeless. Compile without `shapeless`."
        ),
    )
}

impl Op {
    /// Adapts the operation to operands of other sizes.
    ///
    /// # Errors
    /// [`Error::Value`] if the operation cannot be adapted, or the sizes do not match.
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

    /// Checks that the operands' shapes are equal except along one axis.
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
