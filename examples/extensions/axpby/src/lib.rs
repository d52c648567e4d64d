//! `ultramarine_axpby`: z = alpha x + beta y, as an operation of its own with kernels of its own.
//!
//! * `primitive.rs`: the operation and its rules;
//! * `cpu.rs`: its kernels on the CPU, `gpu.rs` and `kernels/`: those of accelerators;
//! * here: the functions of the Python module.

mod cpu;
mod gpu;
mod primitive;

use primitive::{Axpby, DTYPES};
use pyo3::prelude::*;
use ultramarine_extension::{
    Array, Dtype, Error, Place, Result, apply_one, broadcast_arrays, promote_types, provide, python,
};

/// The dtype that is computed in: floats promote, integers and bool count as float32.
fn dtype_of(x: &Array, y: &Array) -> Result<Dtype> {
    for (name, array) in [("x", x), ("y", y)] {
        if array.dtype().is_err() {
            let takes: Vec<_> = DTYPES.iter().map(|d| d.name()).collect();
            return Err(Error::value(format!(
                "[axpby] {name} may be of bool, an integer, {}; got {}.",
                takes.join(", "),
                array.dtype_name()
            )));
        }
    }
    let dtype = promote_types(x.dtype()?, y.dtype()?)?;
    if dtype.is_inexact() { Ok(dtype) } else { promote_types(dtype, Dtype::Float32) }
}

/// alpha * x + beta * y, for arrays that broadcast against each other.
fn axpby_arrays(x: &Array, y: &Array, alpha: f64, beta: f64, place: Place) -> Result<Array> {
    let dtype = dtype_of(x, y)?;
    let both = broadcast_arrays(&[&x.astype(dtype)?, &y.astype(dtype)?])?;
    apply_one(Axpby { alpha, beta }, &[&both[0], &both[1]], place)
}

/// alpha * x + beta * y, element by element, in one pass over memory.
///
/// The arrays are broadcast against each other. Floats are promoted to a common dtype (float16, bfloat16, float32, float64
/// or complex64); integers and bool count as float32. Results have the bits of `alpha * x + beta * y`: the products and
/// the sum are rounded one by one.
///
/// Args:
///     x (array): The first array.
///     y (array): The second array.
///     alpha (float): Factor of `x`.
///     beta (float): Factor of `y`.
///     stream (Stream or Device, optional): Where it runs.
///
/// Returns:
///     array: `alpha * x + beta * y`
///
/// Raises:
///     ValueError: The shapes cannot be broadcast, or there is no arithmetic with a dtype.
#[pyfunction]
#[pyo3(signature = (x, y, alpha, beta, *, stream = None))]
fn axpby(x: Array, y: Array, alpha: f64, beta: f64, stream: Option<Place>) -> Result<Array> {
    axpby_arrays(&x, &y, alpha, beta, stream.unwrap_or_default())
}

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    python::connect_python(module.py())?;
    provide::<Axpby>("ultramarine_axpby")?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_function(wrap_pyfunction!(axpby, module)?)
}
