//! Operations that are one node on every device, and other operations where a device has no kernel for them.

use crate::{array::Array, backend::DeviceState, dtype::Dtype, error::Result};
use ultramarine_abi::schema::OpId;

/// An operation that some devices have a kernel for, and that is made of ordinary operations elsewhere. To transforms,
/// traces and files it is one operation on every device; the evaluator's lowering pass decides where it runs.
pub(crate) trait Composite {
    /// Asks for the kernel that the operation needs.
    fn is_offered(&self, offers: &Offers<'_>) -> bool;

    /// The same by ordinary operations, in `dtype`. Derivatives and mapped axes are the operation's own: none flow
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
    /// True if there is a kernel for contiguous tensors of these dtypes and ranks.
    pub fn kernel<A: Copy>(&self, op: OpId, attributes: &A, inputs: &[(Dtype, usize)]) -> bool {
        self.device.offers(op, attributes, inputs, &[self.output]).unwrap_or(false)
    }
}
