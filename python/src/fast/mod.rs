//! Kernels in source form: the module `ultramarine.fast`, which also holds functions of `ops/nn.rs`.

mod foreign;

use crate::array::PyArray;
use crate::convert::{Operand, integers};
use crate::dtype::{DtypeArg, PyDtype};
use crate::error::{Res, type_, type_name, value};
use crate::stream::{StreamArg, on};
use foreign::{PyForeignKernel, foreign_kernel};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyString, PyTuple};
use ultramarine::fast::{CompiledKernel, Kernel, LANGUAGES, Launch, Template};
use ultramarine::{Dtype, Scalar};

/// Kernel that is called with arrays and returns a list of arrays.
///
/// Made by `kernel`, `metal_kernel` and `cuda_kernel`.
///
/// Example:
///     >>> source = {"cuda-c": "y[thread_position_in_grid.x] = 1.0f;"}
///     >>> kernel = mx.fast.kernel("fill", [], ["y"], source)
///     >>> isinstance(kernel, mx.fast.CustomKernel), kernel.name
///     (True, 'fill')
#[pyclass(name = "CustomKernel", module = "ultramarine.fast", frozen)]
pub struct CustomKernel {
    kernel: Kernel,
    /// The function that made it, for errors.
    of: &'static str,
}

/// Three numbers of threads.
fn three(of: &str, what: &str, object: &Bound<'_, PyAny>) -> Res<[u32; 3]> {
    let wrong =
        || type_(format!("[{of}] {what} must be three integers. Pass for example (256, 1, 1)."));
    let all = integers(object).map_err(|_| wrong())?;
    let all: [isize; 3] = all.try_into().map_err(|_| wrong())?;
    let mut out = [0; 3];
    for (to, from) in out.iter_mut().zip(all) {
        *to = u32::try_from(from).map_err(|_| {
            value(format!("[{of}] {what} has {from} threads along an axis. Pass 1 to 4294967295."))
        })?;
    }
    Ok(out)
}

fn shape(of: &str, object: &Bound<'_, PyAny>) -> Res<Vec<usize>> {
    let sizes = integers(object).map_err(|_| {
        type_(format!("[{of}] A shape must be a sequence of integers. Pass for example (2, 3)."))
    })?;
    let size = |n: isize| {
        usize::try_from(n).map_err(|_| {
            value(format!("[{of}] A shape has the negative size {n}. Use sizes of 0 or more."))
        })
    };
    sizes.into_iter().map(size).collect()
}

/// Shapes and dtypes of outputs.
fn typed(
    of: &str,
    shapes: &[Bound<'_, PyAny>],
    dtypes: &[DtypeArg],
) -> Res<Vec<(Vec<usize>, Dtype)>> {
    if shapes.len() != dtypes.len() {
        let (shapes, dtypes) = (shapes.len(), dtypes.len());
        let text = format!("{shapes} shapes and {dtypes} dtypes of outputs were given.");
        return Err(value(format!("[{of}] {text}")));
    }
    shapes.iter().zip(dtypes).map(|(s, dtype)| Ok((shape(of, s)?, **dtype))).collect()
}

/// The launch with outputs of these shapes and dtypes.
fn with_outputs(
    of: &str,
    launch: Launch,
    shapes: &[Bound<'_, PyAny>],
    dtypes: &[DtypeArg],
) -> Res<Launch> {
    let outputs = typed(of, shapes, dtypes)?;
    Ok(outputs.iter().fold(launch, |launch, (shape, dtype)| launch.output(shape, *dtype)))
}

/// A template argument; bool is tested first, because Python counts it among the integers.
fn template(of: &str, object: &Bound<'_, PyAny>) -> Res<Template> {
    if let Ok(flag) = object.cast::<PyBool>() {
        return Ok(Template::Bool(flag.is_true()));
    }
    if let Ok(dtype) = object.cast::<PyDtype>() {
        return Ok(Template::Dtype(dtype.get().0));
    }
    if object.is_instance_of::<PyInt>() {
        return match object.extract::<i32>() {
            Ok(v) => Ok(Template::Int(v)),
            Err(_) => Err(value(format!(
                "[{of}] The template argument {object} does not fit in 32 bits. Pass a smaller int."
            ))),
        };
    }
    let words = "Invalid template argument. Must be `Dtype`, `int` or `bool`.";
    Err(value(format!("[{of}] {words}")))
}

fn templates(of: &str, object: &Bound<'_, PyAny>) -> Res<Vec<(String, Template)>> {
    let wrong = || {
        type_(format!(
            "[{of}] template must be a list of pairs: a name and a value. Pass for example [(\"T\", mx.float32)]."
        ))
    };
    if object.is_instance_of::<PyDict>() || object.is_instance_of::<PyString>() {
        return Err(wrong());
    }
    let mut all = Vec::new();
    for pair in object.try_iter().map_err(|_| wrong())? {
        let pair = pair?;
        let pair = pair.cast::<PyTuple>().map_err(|_| wrong())?;
        if pair.len() != 2 {
            return Err(wrong());
        }
        let name = pair.get_item(0)?.extract::<String>().map_err(|_| wrong())?;
        all.push((name, template(of, &pair.get_item(1)?)?));
    }
    Ok(all)
}

#[pymethods]
impl CustomKernel {
    /// Runs the kernel.
    ///
    /// Args:
    ///     inputs (list of array or number): The inputs, in the order of `input_names`.
    ///     output_shapes (list of sequence of int): The outputs' shapes.
    ///     output_dtypes (list of Dtype): The outputs' dtypes.
    ///     grid (tuple of int): The threads in all, along x, y and z. Threads of the last group that lie
    ///         beyond it return at once, so a body with barriers wants a multiple of the group.
    ///     threadgroup (tuple of int): The threads of a group; cut to the grid.
    ///     template (list of tuple, optional): Names and what they stand for in the body: a Dtype, an int or a bool.
    ///     init_value (float, optional): Fills the outputs first. By default they hold anything at all.
    ///     verbose (bool, optional): Prints the generated source.
    ///     stream (Stream or Device, optional): Where it runs.
    ///
    /// Returns:
    ///     list of array: The outputs.
    ///
    /// Raises:
    ///     RuntimeError: If the device takes none of the kernel's languages; when an output is computed, if the
    ///         source does not compile (with the compiler's log).
    ///     ValueError: If arguments do not fit the kernel; when an output is computed, if the device does not
    ///         take groups of that size.
    #[pyo3(signature = (*, inputs, output_shapes, output_dtypes, grid, threadgroup, template=None, init_value=None,
                        verbose=false, stream=None))]
    #[allow(clippy::too_many_arguments)]
    fn __call__(
        &self,
        py: Python<'_>,
        inputs: &Bound<'_, PyAny>,
        output_shapes: Vec<Bound<'_, PyAny>>,
        output_dtypes: Vec<DtypeArg>,
        grid: &Bound<'_, PyAny>,
        threadgroup: &Bound<'_, PyAny>,
        template: Option<&Bound<'_, PyAny>>,
        init_value: Option<f64>,
        verbose: bool,
        stream: Option<StreamArg>,
    ) -> Res<Vec<PyArray>> {
        let of = self.of;
        let operand = |item: PyResult<Bound<'_, PyAny>>| Ok(item?.extract::<Operand>()?.0);
        let inputs = inputs.try_iter()?.map(operand).collect::<PyResult<Vec<_>>>()?;
        let inputs: Vec<_> = inputs.iter().collect();
        let (grid, group) = (three(of, "grid", grid)?, three(of, "threadgroup", threadgroup)?);
        let launch = Launch::new(grid, group);
        let mut launch = with_outputs(of, launch, &output_shapes, &output_dtypes)?;
        for (name, value) in template.map_or(Ok(Vec::new()), |t| templates(of, t))? {
            launch = launch.template(&name, value);
        }
        if let Some(value) = init_value {
            launch = launch.init_value(value);
        }
        let (outputs, text) = on(stream, || -> ultramarine::Result<_> {
            let outputs = self.kernel.call(&inputs, &launch)?;
            let text =
                verbose.then(|| self.kernel.whole_source_here(&inputs, &launch)).transpose()?;
            Ok((outputs, text))
        })?;
        if let Some(text) = text {
            py.import("builtins")?.call_method1("print", (text,))?;
        }
        Ok(outputs.into_iter().map(PyArray::new).collect())
    }

    /// str: The kernel's name.
    #[getter]
    fn name(&self) -> &'static str {
        self.kernel.name()
    }

    fn __repr__(&self) -> String {
        format!("<ultramarine.fast.CustomKernel '{}'>", self.kernel.name())
    }
}

fn start(
    of: &'static str,
    name: &str,
    inputs: &[String],
    outputs: &[String],
) -> ultramarine::Result<Kernel> {
    let inputs: Vec<&str> = inputs.iter().map(String::as_str).collect();
    let outputs: Vec<&str> = outputs.iter().map(String::as_str).collect();
    Kernel::named(of, name, &inputs, &outputs)
}

/// Refuses a language in which no signature can be made.
fn known(of: &str, language: &str) -> Res<()> {
    if LANGUAGES.contains(&language) {
        return Ok(());
    }
    let all = LANGUAGES.join(", ");
    Err(value(format!("[{of}] Unknown language of kernels `{language}`. Use one of {all}.")))
}

/// Makes a kernel of its body in one or more languages. docs/kernels.md is the guide.
///
/// Args:
///     name (str): Name of the kernel, for errors.
///     input_names (Sequence[str]): Names of the inputs in the body.
///     output_names (Sequence[str]): Names of the outputs in the body.
///     source (Mapping[str, str]): Body in each language: "opencl-c", "cuda-c", "msl", "wgsl".
///         The signature around it is made of the names and of the arguments of a call.
///     header (str | Mapping[str, str]): Text before the function, for all languages or for
///         each.
///     ensure_row_contiguous (bool): Makes inputs row-major first.
///     atomic_outputs (bool): Makes outputs pointers to atomics.
///     shared_memory (int): Bytes of shared memory of a group that is sized at the launch.
///
/// Returns:
///     CustomKernel: Kernel to call with `inputs`, `grid`, `threadgroup`, `output_shapes` and
///         `output_dtypes`.
///
/// Raises:
///     ValueError: If there is no output or no source, a name is no identifier, or a language
///         is unknown.
///
/// Example:
///     >>> source = {
///     ...     "cuda-c": "unsigned int i = thread_position_in_grid.x; y[i] = x[i] * x[i];",
///     ...     "wgsl": "let i = thread_position_in_grid.x; y[i] = x[i] * x[i];",
///     ... }
///     >>> square = mx.fast.kernel("square", ["x"], ["y"], source)
///     >>> square.name
///     'square'
#[pyfunction]
#[pyo3(signature = (name, input_names, output_names, source, header=None, ensure_row_contiguous=true,
                    atomic_outputs=false, shared_memory=0),
       text_signature = "(name, input_names, output_names, source, header='', ensure_row_contiguous=True, \
                         atomic_outputs=False, shared_memory=0)")]
#[allow(clippy::too_many_arguments)]
fn kernel(
    name: &str,
    input_names: Vec<String>,
    output_names: Vec<String>,
    source: &Bound<'_, PyDict>,
    header: Option<&Bound<'_, PyAny>>,
    ensure_row_contiguous: bool,
    atomic_outputs: bool,
    shared_memory: u32,
) -> Res<CustomKernel> {
    let of = "kernel";
    let mut kernel = start(of, name, &input_names, &output_names)?;
    if source.is_empty() {
        return Err(value(format!(
            "[{of}] Must specify a source in at least one language. Pass a string or a non-empty dict."
        )));
    }
    for (language, body) in source {
        let (language, body): (String, String) = (language.extract()?, body.extract()?);
        known(of, &language)?;
        kernel = kernel.source(&language, &body);
    }
    match header {
        None => {}
        Some(header) => {
            if let Ok(all) = header.cast::<PyDict>() {
                for (language, text) in all {
                    let (language, text): (String, String) = (language.extract()?, text.extract()?);
                    known(of, &language)?;
                    kernel = kernel.header_of(&language, &text);
                }
            } else if let Ok(text) = header.extract::<String>() {
                kernel = kernel.header(&text);
            } else {
                let text = format!("header must be a string or a dict, not {}.", type_name(header));
                return Err(type_(format!("[{of}] {text}")));
            }
        }
    }
    let kernel = kernel
        .ensure_row_contiguous(ensure_row_contiguous)
        .atomic_outputs(atomic_outputs)
        .shared_memory(shared_memory);
    Ok(CustomKernel { kernel, of })
}

/// Options of Metal's compiler, as text for it.
fn metal_options(object: &Bound<'_, PyAny>) -> Res<String> {
    let of = "metal_kernel";
    let Ok(all) = object.cast::<PyDict>() else {
        return Err(value(format!(
            "[{of}] Expected `compile_options` to be a dict. Pass for example {{\"math_mode\": \"safe\"}}."
        )));
    };
    let mut mode = "safe".to_owned();
    for (name, option) in all {
        if !name.extract::<String>().is_ok_and(|n| n == "math_mode") {
            return Err(value(format!("[{of}] Unknown compile option `{name}`.")));
        }
        mode = option.extract::<String>().unwrap_or_default();
        if !["safe", "relaxed", "fast"].contains(&&mode[..]) {
            let text = "Expected math_mode to be 'safe', 'relaxed', or 'fast'.";
            return Err(value(format!("[{of}] {text}")));
        }
    }
    Ok(format!("-fmetal-math-mode={mode}"))
}

/// Makes a kernel of its body in the Metal Shading Language.
///
/// As `kernel` with one language, and with names of MLX's headers: `elem_to_loc`, `float16_t`,
/// `bfloat16_t`, `complex64_t`.
///
/// Args:
///     name (str): Name of the kernel, for errors.
///     input_names (Sequence[str]): Names of the inputs in the body.
///     output_names (Sequence[str]): Names of the outputs in the body.
///     source (str): Body.
///     header (str): Text before the function.
///     ensure_row_contiguous (bool): Makes inputs row-major first.
///     atomic_outputs (bool): Makes outputs `device atomic<T>*`.
///     compile_options (Mapping[str, str] | None): "math_mode": "safe", "relaxed" or "fast".
///
/// Returns:
///     CustomKernel: Kernel to call. On a device that takes no Metal a call raises a
///         RuntimeError.
///
/// Raises:
///     ValueError: If there is no output, a name is no identifier, or an option is unknown.
///
/// Example:
///     >>> source = "uint i = thread_position_in_grid.x; y[i] = x[i] * x[i];"
///     >>> square = mx.fast.metal_kernel("square", ["x"], ["y"], source)
///     >>> square.name
///     'square'
#[pyfunction]
#[pyo3(signature = (name, input_names, output_names, source, header="", ensure_row_contiguous=true,
                    atomic_outputs=false, compile_options=None))]
#[allow(clippy::too_many_arguments)]
fn metal_kernel(
    name: &str,
    input_names: Vec<String>,
    output_names: Vec<String>,
    source: &str,
    header: &str,
    ensure_row_contiguous: bool,
    atomic_outputs: bool,
    compile_options: Option<&Bound<'_, PyAny>>,
) -> Res<CustomKernel> {
    let of = "metal_kernel";
    let mut kernel = start(of, name, &input_names, &output_names)?
        .source("msl", source)
        .header(header)
        .ensure_row_contiguous(ensure_row_contiguous)
        .atomic_outputs(atomic_outputs)
        .with_names_of_mlx();
    if let Some(options) = compile_options {
        kernel = kernel.options("msl", &metal_options(options)?);
    }
    Ok(CustomKernel { kernel, of })
}

/// Makes a kernel of its body in CUDA C++.
///
/// As `kernel` with one language, and with names of MLX's headers: `elem_to_loc`,
/// `complex64_t`, `inf`.
///
/// Args:
///     name (str): Name of the kernel, for errors.
///     input_names (Sequence[str]): Names of the inputs in the body.
///     output_names (Sequence[str]): Names of the outputs in the body.
///     source (str): Body.
///     header (str): Text before the function.
///     ensure_row_contiguous (bool): Makes inputs row-major first.
///     shared_memory (int): Bytes of dynamic shared memory.
///
/// Returns:
///     CustomKernel: Kernel to call. On a device that takes no CUDA a call raises a
///         RuntimeError.
///
/// Raises:
///     ValueError: If there is no output, or a name is no identifier.
///
/// Example:
///     >>> source = "unsigned int i = thread_position_in_grid.x; y[i] = x[i] * x[i];"
///     >>> square = mx.fast.cuda_kernel("square", ["x"], ["y"], source)
///     >>> square.name
///     'square'
#[pyfunction]
#[pyo3(signature = (name, input_names, output_names, source, header="", ensure_row_contiguous=true, shared_memory=0))]
fn cuda_kernel(
    name: &str,
    input_names: Vec<String>,
    output_names: Vec<String>,
    source: &str,
    header: &str,
    ensure_row_contiguous: bool,
    shared_memory: u32,
) -> Res<CustomKernel> {
    let of = "cuda_kernel";
    let kernel = start(of, name, &input_names, &output_names)?
        .source("cuda-c", source)
        .header(header)
        .ensure_row_contiguous(ensure_row_contiguous)
        .shared_memory(shared_memory)
        .with_names_of_mlx();
    Ok(CustomKernel { kernel, of })
}

/// A number for a compiled kernel; bool is tested first, because Python counts it among the integers.
fn scalar(of: &str, object: &Bound<'_, PyAny>) -> Res<Scalar> {
    if let Ok(flag) = object.cast::<PyBool>() {
        return Ok(Scalar::from_i64(Dtype::Bool, flag.is_true().into()));
    }
    if object.is_instance_of::<PyInt>() {
        return match object.extract::<i32>() {
            Ok(v) => Ok(Scalar::from_i64(Dtype::Int32, v.into())),
            Err(_) => Err(value(format!(
                "[{of}] {object} does not fit in int32, the type of an int. Pass a pair of it and a dtype."
            ))),
        };
    }
    if object.is_instance_of::<PyFloat>() {
        return Ok(Scalar::from_f64(Dtype::Float32, object.extract()?));
    }
    if let Ok((number, dtype)) = object.extract::<(Bound<'_, PyAny>, DtypeArg)>() {
        return match number.extract::<i64>() {
            Ok(v) => Ok(Scalar::from_i64(*dtype, v)),
            Err(_) => Ok(Scalar::from_f64(*dtype, number.extract()?)),
        };
    }
    let text =
        "Invalid scalar argument. Must be a bool, int, float, or a pair of a number and its Dtype";
    Err(type_(format!("[{of}] {text}, not {}.", type_name(object))))
}

/// Runs a kernel of compiled code: PTX or a cubin on a CUDA device, SPIR-V on a Vulkan device.
///
/// The kernel's parameters are the inputs, the outputs and the scalars, in this order: on CUDA addresses and values, on Vulkan
/// bindings of descriptor set 0, storage buffers and for each scalar a uniform buffer. There is no
/// guard around it: of threads beyond the grid, which a grid has that is no multiple of the group, the kernel takes care.
///
/// Args:
///     name (str): Name of the kernel in the code: mangled, unless its CUDA source said `extern "C"`; of SPIR-V the entry point.
///     compiled_source (bytes): PTX, a cubin, or an archive of several; or SPIR-V.
///     inputs (Sequence[ArrayLike]): Inputs.
///     output_shapes (Sequence[Sequence[int]]): Shapes of the outputs.
///     output_dtypes (Sequence[Dtype]): Dtypes of the outputs.
///     scalars (Sequence[bool | int | float | tuple[float, Dtype]]): Numbers: a bool is passed as one byte, an int as int32, a
///         float as float32, a pair of a number and a dtype as that.
///     grid (tuple[int, int, int]): Threads in all, along x, y and z.
///     threadgroup (tuple[int, int, int]): Threads of a group, along x, y and z; cut to the grid, but for SPIR-V,
///         which says itself how many it has.
///     shared_memory (int): Bytes of dynamic shared memory; SPIR-V has none.
///     init_value (float | None): Value that outputs are filled with first.
///     ensure_row_contiguous (bool): Makes inputs row-major first.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///
/// Returns:
///     list[array]: Outputs.
///
/// Raises:
///     RuntimeError: If the device takes no such code; when an output is computed, if the driver refuses the code (another
///         architecture), or it has no kernel of that name, or another number of parameters.
///     ValueError: If there is no output, or a group without threads.
#[pyfunction]
#[pyo3(signature = (*, name, compiled_source, inputs, output_shapes, output_dtypes, scalars, grid, threadgroup,
                    shared_memory=0, init_value=None, ensure_row_contiguous=false, stream=None))]
#[allow(clippy::too_many_arguments)]
fn precompiled_kernel(
    name: &str,
    compiled_source: &[u8],
    inputs: Vec<Operand>,
    output_shapes: Vec<Bound<'_, PyAny>>,
    output_dtypes: Vec<DtypeArg>,
    scalars: Vec<Bound<'_, PyAny>>,
    grid: &Bound<'_, PyAny>,
    threadgroup: &Bound<'_, PyAny>,
    shared_memory: u32,
    init_value: Option<f64>,
    ensure_row_contiguous: bool,
    stream: Option<StreamArg>,
) -> Res<Vec<PyArray>> {
    let of = "precompiled_kernel";
    let (grid, group) = (three(of, "grid", grid)?, three(of, "threadgroup", threadgroup)?);
    let mut launch = with_outputs(of, Launch::new(grid, group), &output_shapes, &output_dtypes)?;
    if let Some(value) = init_value {
        launch = launch.init_value(value);
    }
    let mut kernel = CompiledKernel::new(name, compiled_source)?
        .shared_memory(shared_memory)
        .ensure_row_contiguous(ensure_row_contiguous);
    for object in &scalars {
        kernel = kernel.scalar_of(scalar(of, object)?);
    }
    let inputs: Vec<_> = inputs.into_iter().map(|operand| operand.0).collect();
    let inputs: Vec<_> = inputs.iter().collect();
    let outputs = on(stream, || kernel.call(&inputs, &launch))?;
    Ok(outputs.into_iter().map(PyArray::new).collect())
}

pub fn register(parent: &Bound<'_, PyModule>) -> PyResult<()> {
    let m = &PyModule::new(parent.py(), "ultramarine.fast")?;
    m.add_class::<CustomKernel>()?;
    m.add_class::<PyForeignKernel>()?;
    crate::functions!(m: kernel metal_kernel cuda_kernel precompiled_kernel foreign_kernel);
    crate::ops::nn::register_fast(m)?;
    parent.add("_fast", m)
}
