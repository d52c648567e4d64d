//! Shapes that follow their operands. A graph that was traced shapeless can be fitted to other argument sizes: each
//! node returns its operation and shape for operands of the new sizes ([`Rules::refit`]).
//!
//! While such a trace is in progress ([`Shapeless`]), operations that would fix a size are recorded symbolically. A
//! broadcast to the shape of a partner has the partner as an operand that provides only its shape. A reshape knows
//! which sizes are its operand's ([`SymbolicSize`]). A mean counts its elements once they are known. Such nodes exist
//! in traces only; fitted graphs have ordinary nodes in their place. (MLX's tracing does the same with its `Broadcast`,
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

/// While this guard lives, the thread records shapes that follow their operands.
pub(crate) struct Shapeless {
    before: bool,
}

impl Shapeless {
    /// Begins a shapeless trace, or (`false`) an ordinary trace inside a shapeless one.
    pub fn begin(on: bool) -> Shapeless {
        Shapeless { before: ON.replace(on) }
    }
}

impl Drop for Shapeless {
    fn drop(&mut self) {
        ON.set(self.before);
    }
}

/// True if this thread records shapes that follow their operands.
#[inline]
pub(crate) fn shapeless() -> bool {
    ON.get()
}

impl Refit<'_> {
    /// Returns a constant that replaces the node.
    pub fn constant(&self, value: Scalar, shape: Shape) -> Result<Fitted> {
        shape::check("compile", &shape)?;
        Ok(Fitted {
            op: Fill { value, spread: false }.into(),
            operands: Some(SmallVec::new()),
            shape,
        })
    }

    /// Returns a view of the first operand that replaces the node.
    pub fn view(&self, view: View, shape: Shape) -> Result<Fitted> {
        if let Some(value) = self.constants.first().copied().flatten() {
            return self.constant(value, shape);
        }
        shape::check("compile", &shape)?;
        Ok(Fitted { op: view.into(), operands: Some(smallvec![0]), shape })
    }
}
