//! Kernels that another library launches, as operations.

use super::typed;
use crate::array::PyArray;
use crate::convert::Operand;
use crate::dtype::DtypeArg;
use crate::error::{Fail, Res, type_, type_name};
use crate::stream::{StreamArg, on};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use ultramarine::{Array, fast::ForeignKernel};

/// Operation whose outputs a function of another library writes.
///
/// Made by `foreign_kernel`.
///
/// Example:
///     >>> kernel = mx.fast.foreign_kernel(lambda x, out: None, name="nothing")
///     >>> isinstance(kernel, mx.fast.ForeignKernel), kernel.name
///     (True, 'nothing')
#[pyclass(name = "ForeignKernel", module = "ultramarine.fast", frozen)]
pub struct PyForeignKernel {
    kernel: ForeignKernel,
}

fn call(function: &Py<PyAny>, inputs: &[Array], outputs: &[Array]) -> ultramarine::Result<()> {
    let call = |py: Python<'_>| -> PyResult<()> {
        let arrays = inputs.iter().chain(outputs).map(|a| PyArray::object(py, a.clone()));
        let arrays = PyTuple::new(py, arrays.collect::<PyResult<Vec<_>>>()?)?;
        function.bind(py).call1(arrays)?;
        Ok(())
    };
    Python::attach(call).map_err(|error| Fail::from(error).into())
}

#[pymethods]
impl PyForeignKernel {
    /// Calls the kernel.
    ///
    /// Args:
    ///     inputs (Sequence[ArrayLike]): Inputs.
    ///     output_shapes (Sequence[Sequence[int]]): Shapes of the outputs.
    ///     output_dtypes (Sequence[Dtype]): Dtypes of the outputs.
    ///     init_value (float | None): Value that outputs are filled with first.
    ///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
    ///         else the default device.
    ///
    /// Returns:
    ///     list[array]: Outputs. When one is computed, the function's exceptions are raised.
    ///
    /// Raises:
    ///     ValueError: If there is no output.
    #[pyo3(signature = (*, inputs, output_shapes, output_dtypes, init_value=None, stream=None))]
    fn __call__(
        &self,
        inputs: Vec<Operand>,
        output_shapes: Vec<Bound<'_, PyAny>>,
        output_dtypes: Vec<DtypeArg>,
        init_value: Option<f64>,
        stream: Option<StreamArg>,
    ) -> Res<Vec<PyArray>> {
        let outputs = typed("foreign_kernel", &output_shapes, &output_dtypes)?;
        let outputs: Vec<_> = outputs.iter().map(|(shape, dtype)| (&shape[..], *dtype)).collect();
        let inputs: Vec<_> = inputs.into_iter().map(|operand| operand.0).collect();
        let inputs: Vec<_> = inputs.iter().collect();
        let made = on(stream, || self.kernel.call(&inputs, &outputs, init_value))?;
        Ok(made.into_iter().map(PyArray::new).collect())
    }

    /// str: The kernel's name.
    #[getter]
    fn name(&self) -> &'static str {
        self.kernel.name()
    }

    fn __repr__(&self) -> String {
        format!("<ultramarine.fast.ForeignKernel '{}'>", self.kernel.name())
    }
}

/// Makes an operation of a function of another library, which launches a kernel that writes into arrays.
///
/// The function is called as `function(*inputs, *outputs)` when an output is computed. All of them have memory, which the
/// library takes by DLPack; the outputs' elements are uninitialised. On a GPU it launches on the stream that DLPack names, and
/// returns without a wait: what comes before and after the operation is in order with it, in `compile`, too. It runs on the
/// thread that evaluates, and computes no arrays of its own. docs/kernels.md has an example for each library.
///
/// Args:
///     function (Callable[..., Any]): Function of the inputs and outputs. Its result is ignored.
///     name (str | None): Name of the operation, for errors and profiles. Default: the function's.
///     ensure_row_contiguous (bool): Makes inputs row-major first.
///
/// Returns:
///     ForeignKernel: Kernel to call: `kernel(inputs=..., output_shapes=..., output_dtypes=...)`.
///
/// Raises:
///     TypeError: If the function cannot be called.
///
/// Example:
///     >>> import numpy
///     >>> @mx.fast.foreign_kernel
///     ... def double(x, out):
///     ...     numpy.multiply(numpy.from_dlpack(x), 2, out=numpy.from_dlpack(out))
///     >>> x = mx.array([1.0, 2.0])
///     >>> double(inputs=[x], output_shapes=[x.shape], output_dtypes=[x.dtype], stream=mx.cpu)
///     [array([2, 4], dtype=float32)]
#[pyfunction]
#[pyo3(signature = (function, /, *, name=None, ensure_row_contiguous=true))]
pub fn foreign_kernel(
    function: &Bound<'_, PyAny>,
    name: Option<String>,
    ensure_row_contiguous: bool,
) -> Res<PyForeignKernel> {
    if !function.is_callable() {
        let text = format!("expected a function, got {}.", type_name(function));
        return Err(type_(format!("[foreign_kernel] {text}")));
    }
    let own = || function.getattr("__name__").and_then(|name| name.extract::<String>());
    let name = name.or_else(|| own().ok()).unwrap_or_else(|| "foreign_kernel".to_owned());
    let function = function.clone().unbind();
    let kernel =
        ForeignKernel::new(&name, move |inputs, outputs| call(&function, inputs, outputs))?
            .ensure_row_contiguous(ensure_row_contiguous);
    Ok(PyForeignKernel { kernel })
}
