//! The precision of float32 products: a setting of the process or of a device, and a scope. An
//! operation keeps the setting in force where it is called. Its derivatives and traces of compiled
//! functions keep it too.

use super::attribute::attributes;
use super::per_device::{Few, PerDevice};
use crate::{array::Array, device::Device, dtype::Dtype, stream};
use std::cell::Cell;
use std::sync::LazyLock;
use ultramarine_runtime::log::{Level, log};

attributes! {
    /// Precision of the factors of float32 matrix products and convolutions. It is the lowest
    /// precision that a device may use. A device that gains nothing by a lower precision uses a
    /// higher one, as the CPU does. Other dtypes are not affected.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum MatmulPrecision {
        /// Factors in float32, with 24 significant bits.
        #[default]
        Highest,
        /// Factors may be rounded to TensorFloat-32, with 11 significant bits. Sums are in float32.
        High,
        /// Factors may be rounded to bfloat16, with 8 significant bits. Sums are in float32.
        Medium,
    }
}

impl MatmulPrecision {
    const ALL: [MatmulPrecision; 3] =
        [MatmulPrecision::Highest, MatmulPrecision::High, MatmulPrecision::Medium];

    /// Returns its name: `highest`, `high` or `medium`.
    pub fn name(self) -> &'static str {
        match self {
            MatmulPrecision::Highest => "highest",
            MatmulPrecision::High => "high",
            MatmulPrecision::Medium => "medium",
        }
    }

    /// Returns the precision of a name: `highest`, `high` or `medium`. `None` for any other name.
    pub fn from_name(name: &str) -> Option<MatmulPrecision> {
        MatmulPrecision::ALL.into_iter().find(|p| p.name() == name)
    }

    /// Its code in the backend contract.
    pub(crate) fn code(self) -> u32 {
        self as u32
    }
}

impl Few for MatmulPrecision {
    fn number(self) -> u8 {
        self as u8
    }

    fn of(number: u8) -> Option<MatmulPrecision> {
        MatmulPrecision::ALL.get(number as usize).copied()
    }
}

static SETTING: LazyLock<PerDevice<MatmulPrecision>> =
    LazyLock::new(|| PerDevice::new(from_environment(|name| std::env::var(name).ok())));

thread_local! {
    static SCOPED: Cell<Option<MatmulPrecision>> = const { Cell::new(None) };
}

/// `ULTRAMARINE_MATMUL_PRECISION`, else what MLX's `MLX_ENABLE_TF32` says, else the highest.
fn from_environment(variable: impl Fn(&str) -> Option<String>) -> MatmulPrecision {
    let said = |name| variable(name).map(|v| v.trim().to_lowercase()).filter(|v| !v.is_empty());
    if let Some(name) = said("ULTRAMARINE_MATMUL_PRECISION") {
        return MatmulPrecision::from_name(&name).unwrap_or_else(|| {
            let text = format!(
                "ULTRAMARINE_MATMUL_PRECISION is \"{name}\", so products are computed in float32. Set it to \"highest\", \"high\" or \"medium\"."
            );
            log(Level::Warning, text);
            MatmulPrecision::Highest
        });
    }
    match said("MLX_ENABLE_TF32") {
        Some(value) if value != "0" => MatmulPrecision::High,
        _ => MatmulPrecision::Highest,
    }
}

/// Returns the precision of products of float32 on a device. Without a device it is that of all
/// devices without a setting of their own. In a [`PrecisionScope`] it is the scope's.
pub fn matmul_precision(device: Option<Device>) -> MatmulPrecision {
    SCOPED.get().unwrap_or_else(|| SETTING.get(device))
}

/// Sets the precision of products of float32 on a device, or without one on all devices, for every
/// thread. A [`PrecisionScope`] has precedence. Returns the former setting.
///
/// The setting holds for operations that are called from now on. The first setting is
/// `ULTRAMARINE_MATMUL_PRECISION` (`highest`, `high` or `medium`); without it `high` if
/// `MLX_ENABLE_TF32` is 1, else `highest`.
///
/// # Examples
/// ```
/// use ultramarine::{MatmulPrecision, matmul_precision, set_matmul_precision};
///
/// set_matmul_precision(MatmulPrecision::High, None);
/// assert_eq!(matmul_precision(None), MatmulPrecision::High);
/// ```
pub fn set_matmul_precision(precision: MatmulPrecision, device: Option<Device>) -> MatmulPrecision {
    SETTING.set(precision, device)
}

/// Sets the precision of float32 products of this thread, on all devices, while the scope lives.
/// Scopes nest; drop them in the reverse order. [`set_matmul_precision`] sets the precision for all
/// threads.
///
/// ```
/// use ultramarine::{Array, Dtype, MatmulPrecision, PrecisionScope};
/// let x = Array::ones(&[64, 64], Dtype::Float32)?;
/// let y = {
///     let _scope = PrecisionScope::new(MatmulPrecision::Medium);
///     x.matmul(&x)? // keeps the precision, although it is evaluated later
/// };
/// assert_eq!(y.sum(..)?.item::<f32>()?, 64.0f32.powi(3));
/// # Ok::<(), ultramarine::Error>(())
/// ```
#[derive(Debug)]
pub struct PrecisionScope {
    before: Option<MatmulPrecision>,
    // The scope belongs to the thread that made it.
    _thread: std::marker::PhantomData<*const ()>,
}

impl PrecisionScope {
    /// Enters a scope with this precision. The scope ends when it is dropped.
    pub fn new(precision: MatmulPrecision) -> PrecisionScope {
        PrecisionScope {
            before: SCOPED.replace(Some(precision)),
            _thread: std::marker::PhantomData,
        }
    }
}

impl Drop for PrecisionScope {
    fn drop(&mut self) {
        SCOPED.set(self.before);
    }
}

/// Returns the precision of a product of these operands, which have the same dtype.
pub(crate) fn of_product(operands: &[&Array]) -> MatmulPrecision {
    if operands.iter().any(|a| a.dtype() != Dtype::Float32) {
        return MatmulPrecision::Highest;
    }
    if let Some(precision) = SCOPED.get().or_else(|| SETTING.common()) {
        return precision;
    }
    let home = operands.iter().find_map(|a| a.node().home());
    let device = home.unwrap_or_else(|| stream::current().0.device);
    SETTING.get(Some(device))
}

/// The setting as part of a trace's key.
pub(crate) fn key() -> u64 {
    match SCOPED.get() {
        Some(precision) => u64::from(precision.code()),
        None => SETTING.key(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_variable_that_is_set_counts() {
        let of = |ours: Option<&str>, mlx: Option<&str>| {
            let [ours, mlx] = [ours, mlx].map(|v| v.map(str::to_owned));
            from_environment(
                |name| if name.starts_with("MLX") { mlx.clone() } else { ours.clone() },
            )
        };
        use MatmulPrecision::{High, Highest, Medium};
        assert_eq!(
            [of(None, None), of(None, Some("0")), of(None, Some("1"))],
            [Highest, Highest, High]
        );
        assert_eq!([of(Some("highest"), Some("1")), of(Some(""), Some("1"))], [Highest, High]);
        assert_eq!([of(Some(" Medium "), None), of(Some("half"), None)], [Medium, Highest]);
    }
}
