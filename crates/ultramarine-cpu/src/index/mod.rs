//! Reads and writes through index arrays: gather and scatter, and windows whose start is read from memory.

pub mod dynamic_slice;
pub mod gather;
pub mod gather_axis;
mod indices;
pub mod scatter;
pub mod scatter_axis;
mod update;

use crate::kernel::{Op, Prepared, Refusal, Signature};
use crate::level::Level;
use ultramarine_abi::schema::op;

/// Prepares an operation of the family.
pub fn prepare(op: &Op, signature: &Signature<'_>, level: Level) -> Prepared {
    match op.id {
        op::GATHER => gather::prepare(op.attributes()?, signature, level),
        op::SCATTER => scatter::prepare(op.attributes()?, signature, level),
        op::GATHER_AXIS => gather_axis::prepare(op.attributes()?, signature, level),
        op::SCATTER_AXIS => scatter_axis::prepare(op.attributes()?, signature, level),
        op::DYNAMIC_SLICE => dynamic_slice::prepare(op.attributes()?, signature, level),
        op::DYNAMIC_SLICE_UPDATE => {
            dynamic_slice::prepare_update(op.attributes()?, signature, level)
        }
        _ => Err(Refusal::Unsupported),
    }
}

/// Index positions that are processed at a time. Their offsets stay in the L1 cache.
const BLOCK: usize = 256;
