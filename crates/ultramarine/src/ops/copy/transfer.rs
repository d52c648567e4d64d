//! Copies to another device.

use crate::node::{Node, Value};
use crate::ops::{Call, Cotangents, Draft, Fitted, Jvp, Refit, Rules, Vjp, Vmap, attributes};
use crate::{
    array::Array, backend::Exec, device::Device, error::Result, placement::Place, shape::Shape,
    stream,
};
use smallvec::smallvec;

impl Array {
    /// Returns a lazy copy of the array on another device. Later operations with the copy run
    /// there. Between devices of one backend the copy is direct if the backend supports it, and
    /// goes through the host otherwise. The gradient flows back to this array's device.
    ///
    /// # Errors
    /// [`Error::Value`](crate::Error::Value) when no loaded backend has the device.
    pub fn copy_to(&self, device: Device) -> Result<Array> {
        let stream = stream::default_stream(device)?;
        let op = Transfer::out_of(self.node().home());
        let place = Place::new(stream, true, true);
        let inputs = std::iter::once(self.node().clone()).collect();
        let shape = Shape::from_slice(self.shape());
        Ok(Array::from_node(Node::new(op.into(), inputs, shape, self.dtype(), place)))
    }
}

attributes! {
    /// Copies the operand to the device of the node's stream.
    #[derive(Clone, Debug)]
    pub(crate) struct Transfer {
        /// The operand's home device, or the CPU if it has none.
        from: Device,
    }
}

impl Transfer {
    /// A transfer of an operand with this home device.
    pub fn out_of(home: Option<Device>) -> Transfer {
        Transfer { from: home.unwrap_or(Device::CPU) }
    }
}

impl Rules for Transfer {
    fn name(&self) -> &'static str {
        "copy"
    }

    fn admits(&self, node: &Draft<'_>) -> bool {
        node.is_same()
    }

    fn eval(&self, _: &Exec, call: &Call<'_>) -> Result<Value> {
        // The evaluator has already copied the operand to the operation's device.
        Ok(call.inputs[0].clone())
    }

    fn refit(&self, r: &Refit<'_>) -> Result<Fitted> {
        r.first()
    }

    fn vjp(&self, v: &Vjp<'_>) -> Result<Cotangents> {
        Ok(smallvec![Some(v.cotangent.copy_to(self.from)?)])
    }

    fn jvp(&self, j: &Jvp<'_>) -> Result<Option<Array>> {
        let to = j.output.device();
        j.tangents[0].as_ref().map(|t| t.copy_to(to)).transpose()
    }

    fn vmap(&self, v: &Vmap<'_>) -> Result<(Array, Option<usize>)> {
        // The scope here is the node's own scope.
        Ok((v.inputs[0].copy_to(stream::current().0.device)?, v.axes[0]))
    }
}
