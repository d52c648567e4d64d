//! Composites: operations that are one node on every device, and that are replaced by a *composition* of ordinary
//! operations before an evaluation is planned, where the device has no kernel for them.
//!
//! A *decomposition* ([`Rules::decompose`](super::rules::Rules::decompose)) is found later, for an operation that the
//! device refused while it ran.

use crate::{array::Array, backend::DeviceState, dtype::Dtype, error::Result};
use ultramarine_abi::schema::OpId;

/// The rules of a composite. To transforms, traces and files it is one operation on every device; the evaluator's
/// lowering pass decides whether its kernel or its composition runs.
pub(crate) trait Composite {
    /// Returns true if the device has the kernel that the operation needs.
    fn is_offered(&self, offers: &Offers<'_>) -> bool;

    /// The composition: the same by ordinary operations, in `dtype`. Derivatives and mapped axes are the operation's own: none flow
    /// through the composition.
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
