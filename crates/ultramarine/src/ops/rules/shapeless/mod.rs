//! Shapes that follow their operands. A graph that was traced shapeless is fitted to other sizes of its arguments: each
//! node is asked for its operation and shape among operands of new sizes ([`Rules::refit`]).
//!
//! While such a trace is under way ([`Shapeless`]), what would fix a size by the operands of the moment is recorded as
//! what it means: a broadcast to the shape of a partner has the partner as an operand that only lends its shape, a
//! reshape knows which sizes are its operand's ([`SymbolicSize`]), a mean counts its elements when they are known. These nodes exist
//! in traces only; fitted graphs have ordinary ones in their place. (MLX's tracing does the same with its `Broadcast`,
//! `ExpandDims`, `Flatten` and `NumberOfElements`.)

pub(crate) mod share;
pub(crate) mod symbolic_shape;

pub(crate) use share::share;
pub(crate) use symbolic_shape::{
    SymbolicShape, SymbolicSize, aligned, broadcast_by, broadcast_with, filled_like, literal,
    reshaped, reshaped_like, zeros_like,
};

pub(crate) use crate::graph::refit::cannot;

use crate::graph::refit::{Fitted, Refit};
use crate::ops::{create::fill::Fill, shape::view::View};
use crate::shape::{self, Shape};
use crate::{error::Result, scalar::Scalar};
use smallvec::{SmallVec, smallvec};
use std::cell::Cell;

thread_local! {
    static ON: Cell<bool> = const { Cell::new(false) };
}

/// While it lives, this thread records shapes that follow.
pub(crate) struct Shapeless {
    before: bool,
}

impl Shapeless {
    /// Starts such a trace, or (`false`) lets an ordinary one take place inside of one.
    pub fn begin(on: bool) -> Shapeless {
        Shapeless { before: ON.replace(on) }
    }
}

impl Drop for Shapeless {
    fn drop(&mut self) {
        ON.set(self.before);
    }
}

/// True if this thread records shapes that follow.
#[inline]
pub(crate) fn shapeless() -> bool {
    ON.get()
}

impl Refit<'_> {
    /// A constant in place of the node.
    pub fn constant(&self, value: Scalar, shape: Shape) -> Result<Fitted> {
        shape::check("compile", &shape)?;
        Ok(Fitted {
            op: Fill { value, spread: false }.into(),
            operands: Some(SmallVec::new()),
            shape,
        })
    }

    /// A view of the first operand in place of the node.
    pub fn view(&self, view: View, shape: Shape) -> Result<Fitted> {
        if let Some(value) = self.constants.first().copied().flatten() {
            return self.constant(value, shape);
        }
        shape::check("compile", &shape)?;
        Ok(Fitted { op: view.into(), operands: Some(smallvec![0]), shape })
    }
}
