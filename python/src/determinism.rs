//! Equal bits for equal calls.

use crate::stream::DeviceArg;
use pyo3::prelude::*;
use ultramarine::DeterministicScope;

/// The argument of the context manager.
#[derive(FromPyObject)]
struct On(bool);

/// Sets whether equal calls have to give equal bits, in all threads.
///
/// It holds for operations that are called from now on, for their derivatives, and for functions that are compiled from now on.
/// An operation whose bits may depend on the order of its work, on a device that does not say that they do not, is then an error
/// that names both, when its result is computed. Those of the CPU and of CUDA have equal bits always. Kernels of your own are not
/// concerned. The first setting is off; ``ULTRAMARINE_DETERMINISTIC=1`` is on.
///
/// Args:
///     on (bool): Whether they have to.
///     device (Device | DeviceType | None): Device it is for. Default: all devices.
///
/// Returns:
///     bool: The former setting.
///
/// Example:
///     >>> former = mx.set_deterministic(True)
///     >>> mx.get_deterministic()
///     True
///     >>> mx.set_deterministic(former)
///     True
#[pyfunction]
#[pyo3(signature = (on, /, *, device=None))]
fn set_deterministic(on: bool, device: Option<DeviceArg>) -> bool {
    ultramarine::set_deterministic(on, device.map(|d| d.0))
}

/// Returns whether equal calls have to give equal bits.
///
/// Args:
///     device (Device | DeviceType | None): Device asked about. Default: those that have no setting of their own.
///
/// Returns:
///     bool: The setting; see `set_deterministic`.
///
/// Example:
///     >>> mx.get_deterministic()
///     False
#[pyfunction]
#[pyo3(signature = (*, device=None))]
fn get_deterministic(device: Option<DeviceArg>) -> bool {
    ultramarine::deterministic(device.map(|d| d.0))
}

crate::context_manager! {
    /// Context manager in which equal calls have to give equal bits, or need not.
    ///
    /// Args:
    ///     s (bool): Whether they have to; see `set_deterministic`.
    ///
    /// Example:
    ///     >>> with mx.DeterministicContext(True):
    ///     ...     total = mx.sum(mx.ones(1000)).item()
    ///     >>> total
    ///     1000.0
    DeterministicContext("DeterministicContext"): On => bool, DeterministicScope
}

/// Returns a context manager in which equal calls of this thread have to give equal bits, or need not, on all devices.
///
/// Args:
///     on (bool): Whether they have to; see `set_deterministic`.
///
/// Returns:
///     DeterministicContext: Context manager.
///
/// Example:
///     >>> with mx.deterministic():
///     ...     total = mx.sum(mx.ones(1000)).item()
///     >>> total
///     1000.0
#[pyfunction]
#[pyo3(signature = (on=true, /))]
fn deterministic(on: bool) -> DeterministicContext {
    DeterministicContext(on)
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<DeterministicContext>()?;
    crate::functions!(m: set_deterministic get_deterministic deterministic);
    Ok(())
}
