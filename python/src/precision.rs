//! How exactly products of float32 are made.

use crate::{
    error::{Res, value},
    stream::DeviceArg,
};
use pyo3::prelude::*;
use ultramarine::{MatmulPrecision, PrecisionScope};

/// The `precision` of the functions below.
struct Precision(MatmulPrecision);

impl FromPyObject<'_, '_> for Precision {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        let name = object.extract::<&str>()?;
        MatmulPrecision::from_name(name).map(Precision).ok_or_else(|| {
            let text = format!(
                "[set_matmul_precision] expected \"highest\", \"high\" or \"medium\", got \"{name}\"."
            );
            value(text).into()
        })
    }
}

/// Sets how exactly matrix products and convolutions of float32 are made, in all threads.
///
/// It holds for operations that are called from now on, for their derivatives, and for functions that are compiled
/// from now on. It says what is allowed: a device that is no faster with less stays more exact, as the CPU does. Sums
/// are in float32, and other dtypes are not concerned. The first setting is "highest"; the environment can name
/// another (``ULTRAMARINE_MATMUL_PRECISION``, or ``MLX_ENABLE_TF32=1`` for "high").
///
/// Args:
///     precision (Literal["highest", "high", "medium"]): "highest" for factors in float32, of 24 significant bits; "high"
///         for TensorFloat-32, of 11; "medium" for bfloat16, of 8.
///     device (Device | DeviceType | None): Device it is for. Default: all devices.
///
/// Returns:
///     Literal["highest", "high", "medium"]: The former precision.
///
/// Raises:
///     ValueError: If the precision is another word.
///
/// Example:
///     >>> former = mx.set_matmul_precision("high")
///     >>> mx.set_matmul_precision(former)
///     'high'
#[pyfunction]
#[pyo3(signature = (precision, /, *, device=None))]
fn set_matmul_precision(precision: Precision, device: Option<DeviceArg>) -> Res<&'static str> {
    Ok(ultramarine::set_matmul_precision(precision.0, device.map(|d| d.0)).name())
}

/// Returns how exactly matrix products and convolutions of float32 are made.
///
/// Args:
///     device (Device | DeviceType | None): Device asked about. Default: those that have no precision of their own.
///
/// Returns:
///     Literal["highest", "high", "medium"]: The precision; see `set_matmul_precision`.
///
/// Example:
///     >>> mx.get_matmul_precision()
///     'highest'
#[pyfunction]
#[pyo3(signature = (*, device=None))]
fn get_matmul_precision(device: Option<DeviceArg>) -> &'static str {
    ultramarine::matmul_precision(device.map(|d| d.0)).name()
}

crate::context_manager! {
    /// Context manager in which products of float32 have a precision.
    ///
    /// Args:
    ///     s (Literal["highest", "high", "medium"]): Precision; see `set_matmul_precision`.
    ///
    /// Example:
    ///     >>> with mx.PrecisionContext("high"):
    ///     ...     y = mx.matmul(mx.ones((2, 3)), mx.ones((3, 2)))
    ///     >>> y.shape
    ///     (2, 2)
    PrecisionContext("PrecisionContext"): Precision => MatmulPrecision, PrecisionScope
}

/// Returns a context manager in which this thread's products of float32 have a precision, on all devices.
///
/// Args:
///     precision (Literal["highest", "high", "medium"]): Precision; see `set_matmul_precision`.
///
/// Returns:
///     PrecisionContext: Context manager.
///
/// Example:
///     >>> with mx.matmul_precision("high"):
///     ...     mx.get_matmul_precision()
///     'high'
#[pyfunction]
fn matmul_precision(precision: Precision) -> PrecisionContext {
    PrecisionContext(precision.0)
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PrecisionContext>()?;
    crate::functions!(m: set_matmul_precision get_matmul_precision matmul_precision);
    Ok(())
}
