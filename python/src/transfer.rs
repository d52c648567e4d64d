//! Copies between devices, and what happens when arrays of two accelerators meet.

use crate::{
    array::PyArray,
    error::{Res, value},
    stream::DeviceArg,
};
use pyo3::prelude::*;
use ultramarine::{TransferPolicy, TransferScope};

/// Copies an array to a device, lazily.
///
/// Within one backend the copy is its own, else it goes through the host. The gradient flows
/// back to the device of `a`.
///
/// Args:
///     a (array): Array to copy.
///     device (Device | DeviceType): Device of the copy.
///
/// Returns:
///     array: Array on the device.
///
/// Raises:
///     ValueError: If there is no such device.
///
/// Example:
///     >>> mx.copy(mx.ones(2), mx.cpu)
///     array([1, 1], dtype=float32)
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

/// Sets what happens when arrays of two accelerators meet in an operation.
///
/// Args:
///     policy (Literal["error", "host"]): "error" for a ValueError; "host" for copies through
///         the host to where the operation runs.
///
/// Returns:
///     Literal["error", "host"]: The former policy.
///
/// Raises:
///     ValueError: If the policy is another word.
///
/// Example:
///     >>> mx.set_transfer_policy("host")
///     'error'
///     >>> mx.set_transfer_policy("error")
///     'host'
#[pyfunction]
fn set_transfer_policy(policy: Policy) -> &'static str {
    name(ultramarine::set_transfer_policy(policy.0))
}

/// Returns what happens when arrays of two accelerators meet in an operation.
///
/// Returns:
///     Literal["error", "host"]: "error" or "host"; see `set_transfer_policy`.
///
/// Example:
///     >>> mx.get_transfer_policy()
///     'error'
#[pyfunction]
fn get_transfer_policy() -> &'static str {
    name(ultramarine::transfer_policy())
}

crate::context_manager! {
    /// Context manager in which operations use a transfer policy.
    ///
    /// Args:
    ///     s (Literal["error", "host"]): Policy; see `set_transfer_policy`.
    ///
    /// Example:
    ///     >>> with mx.TransferContext("host"):
    ///     ...     mx.get_transfer_policy()
    ///     'host'
    TransferContext("TransferContext"): Policy => TransferPolicy, TransferScope
}

/// Returns a context manager in which operations use a transfer policy.
///
/// Args:
///     policy (Literal["error", "host"]): "error" or "host"; see `set_transfer_policy`.
///
/// Returns:
///     TransferContext: Context manager.
///
/// Example:
///     >>> with mx.transfers("host"):
///     ...     mx.get_transfer_policy()
///     'host'
#[pyfunction]
fn transfers(policy: Policy) -> TransferContext {
    TransferContext(policy.0)
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<TransferContext>()?;
    crate::functions!(m: copy set_transfer_policy get_transfer_policy transfers);
    Ok(())
}
