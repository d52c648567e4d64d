//! Copies between devices, and what happens when arrays of two accelerators meet.

use crate::{
    array::PyArray,
    error::{Res, value},
    stream::DeviceArg,
};
use pyo3::prelude::*;
use ultramarine::{TransferPolicy, TransferScope};

/// The array on a device: a lazy copy, within one backend by its own way if it has one, else by way of the host.
/// The gradient flows back to the device that `a` is on.
#[pyfunction]
#[pyo3(signature = (a, /, device))]
fn copy(py: Python<'_>, a: &Bound<'_, PyArray>, device: DeviceArg) -> Res<PyArray> {
    let a = a.get().get(py);
    // The first need of a device loads the backends.
    Ok(py.detach(|| a.copy_to(device.0))?.into())
}

/// The `policy` of the functions below.
struct Policy(TransferPolicy);

impl FromPyObject<'_, '_> for Policy {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        match object.extract::<&str>()? {
            "error" => Ok(Policy(TransferPolicy::Error)),
            "host" => Ok(Policy(TransferPolicy::Host)),
            other => {
                let text = format!(
                    "[set_transfer_policy] expected \"error\" or \"host\", got \"{other}\"."
                );
                Err(value(text).into())
            }
        }
    }
}

fn name(policy: TransferPolicy) -> &'static str {
    match policy {
        TransferPolicy::Error => "error",
        TransferPolicy::Host => "host",
    }
}

/// Sets what happens when arrays of two accelerators meet in an operation: "error" (a ValueError) or "host" (they
/// are copied to where it runs). Returns what was set before.
#[pyfunction]
fn set_transfer_policy(policy: Policy) -> &'static str {
    name(ultramarine::set_transfer_policy(policy.0))
}

/// What happens when arrays of two accelerators meet in an operation: "error" or "host".
#[pyfunction]
fn get_transfer_policy() -> &'static str {
    name(ultramarine::transfer_policy())
}

crate::context_manager! {
    /// A context manager: operations in it use a transfer policy.
    TransferContext("TransferContext"): Policy => TransferPolicy, TransferScope
}

/// A context manager in which operations use a transfer policy, "error" or "host".
#[pyfunction]
fn transfers(policy: Policy) -> TransferContext {
    TransferContext(policy.0)
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<TransferContext>()?;
    crate::functions!(m: copy set_transfer_policy get_transfer_policy transfers);
    Ok(())
}
