//! Composites: operations that are a single node on every device. If the device has no kernel for a
//! composite, a *composition* of ordinary operations replaces it before an evaluation is planned.
//!
//! A *decomposition* ([`Rules::decompose`](super::rules::Rules::decompose)) is chosen later: only
//! after the device refused an operation while it ran.

use crate::{array::Array, backend::DeviceState, dtype::Dtype, error::Result};
use ultramarine_abi::schema::OpId;

/// The rules of a composite. Transforms, traces and files see one operation on every device. The
/// evaluator's lowering pass decides whether its kernel or its composition runs.
pub(crate) trait Composite {
    /// Returns true if the device has the kernel that the operation needs.
    fn is_offered(&self, offers: &Offers<'_>) -> bool;

    /// Builds the result from ordinary operations, in `dtype`. Derivatives and batching use the
    /// rules of the composite itself, and never go through the composition.
    fn compose(&self, operands: &[Array], dtype: Dtype) -> Result<Array>;
}

/// The kernels of the device where an operation will run.
pub(crate) struct Offers<'a> {
    pub device: &'static DeviceState,
    /// Dtype and rank of each operand.
    pub inputs: &'a [(Dtype, usize)],
    /// Dtype and rank of the result.
    pub output: (Dtype, usize),
}

impl Offers<'_> {
    /// Returns true if the device has a kernel for contiguous tensors of these dtypes and ranks.
    pub fn kernel<A: Copy>(&self, op: OpId, attributes: &A, inputs: &[(Dtype, usize)]) -> bool {
        self.device.offers(op, attributes, inputs, &[self.output]).unwrap_or(false)
    }
}
