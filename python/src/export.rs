//! Functions as files: `export_function`, `import_function`, `exporter` and `export_to_dot`.

use crate::array::PyArray;
use crate::convert::as_array;
use crate::dtype::PyDtype;
use crate::error::{Fail, Res, type_, value};
use crate::transforms::callable;
use crate::tree;
use pyo3::PyTraverseError;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use ultramarine::export::{Keywords, Listing, Named};
use ultramarine::{Array, Error, Exporter, Function};

const EXPORT: &str = "export_function";

/// The arguments of a call: arrays, or one tuple or list and one dictionary of them.
struct Arguments {
    positional: Vec<Array>,
    keywords: Keywords,
}

impl Arguments {
    fn of(
        py: Python<'_>,
        op: &str,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
    ) -> Res<Arguments> {
        let given: Vec<Bound<'_, PyAny>> = args.iter().collect();
        let named = kwargs.filter(|kwargs| !kwargs.is_empty());
        let found = match (&given[..], named) {
            ([only], None) => sequence(py, only)
                .map(|positional| (positional, Some(Keywords::new())))
                .or_else(|| Some((Vec::new(), Some(dictionary(only.cast().ok()?)?)))),
            ([first, second], None) => sequence(py, first).zip(second.cast().ok().map(dictionary)),
            _ => None,
        };
        let plain = || {
            let positional = given.iter().map(|a| Some(as_array(a)?.get().get(py))).collect();
            let keywords = named.map_or_else(|| Some(Keywords::new()), dictionary);
            Some((positional, keywords))
        };
        let found =
            found.or_else(|| plain().and_then(|(p, k): (Option<Vec<Array>>, _)| Some((p?, k))));
        match found {
            Some((positional, Some(keywords))) => Ok(Arguments { positional, keywords }),
            _ => Err(value(format!(
                "[{op}] Inputs can either be a variable number of positional and keyword arrays or a single tuple and/or \
                 dictionary of arrays. Convert numbers with mx.array."
            ))),
        }
    }
}

/// The arrays of a tuple or list of arrays.
fn sequence(py: Python<'_>, object: &Bound<'_, PyAny>) -> Option<Vec<Array>> {
    let items: Vec<Bound<'_, PyAny>> = match object.cast::<PyTuple>() {
        Ok(tuple) => tuple.iter().collect(),
        Err(_) => object.cast::<PyList>().ok()?.iter().collect(),
    };
    items.iter().map(|item| Some(as_array(item)?.get().get(py))).collect()
}

/// The arrays of a dictionary of arrays.
fn dictionary(dict: &Bound<'_, PyDict>) -> Option<Keywords> {
    let entry = |(name, array): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
        Some((name.extract().ok()?, as_array(&array)?.get().get(dict.py())))
    };
    dict.iter().map(entry).collect()
}

fn wrapped<'py>(py: Python<'py>, arrays: &[Array]) -> PyResult<Bound<'py, PyTuple>> {
    let each = arrays.iter().map(|a| Bound::new(py, PyArray::new(a.clone())));
    PyTuple::new(py, each.collect::<PyResult<Vec<_>>>()?)
}

/// Calls a function on arrays without values.
fn traced(
    py: Python<'_>,
    function: &Py<PyAny>,
    positional: &[Array],
    keywords: &Keywords,
) -> Res<Vec<Array>> {
    let named = PyDict::new(py);
    for (name, array) in keywords {
        named.set_item(name, Bound::new(py, PyArray::new(array.clone()))?)?;
    }
    let made = function.bind(py).call(wrapped(py, positional)?, Some(&named))?;
    let one = || as_array(&made).map(|array| vec![array.get().get(py)]);
    one().or_else(|| sequence(py, &made)).ok_or_else(|| {
        value(format!(
            "[{EXPORT}] Outputs can be either a single array, a tuple, or a list of arrays. Return one of these."
        ))
    })
}

/// Adds a trace of `function`.
fn trace(
    py: Python<'_>,
    exporter: &mut Exporter,
    function: &Py<PyAny>,
    arguments: &Arguments,
) -> Res<()> {
    // Constants are computed meanwhile, perhaps on a stream whose work needs the interpreter.
    py.detach(|| {
        let call = |positional: &[Array], keywords: &Keywords| {
            Python::attach(|py| traced(py, function, positional, keywords))
        };
        exporter.trace_keywords::<Fail>(call, &arguments.positional, &arguments.keywords)
    })
}

fn new_exporter(shapeless: bool, metadata: Option<String>) -> Exporter {
    let exporter = Exporter::new().shapeless(shapeless);
    metadata.into_iter().fold(exporter, Exporter::metadata)
}

/// Exports a function of arrays to a file, which `import_function` reads, and programs in Rust, too.
///
/// `fun` is called once, on arrays without values. Arrays that it closes over are constants of the file. Streams and devices
/// are not in the file: the function runs where its arguments are. A file holds no code, so that one from elsewhere is safe to
/// import.
///
/// A callback in place of a file is called with dictionaries that describe the trace: of the types `inputs`,
/// `keyword_inputs`, `outputs` and `constants`, and then `primitive` for each operation, in the order in which they run.
///
/// Args:
///     file_or_callback (Path | Callable[[dict[str, Any]], Any]): Path of the file, which is replaced; or a callback.
///     fun (Callable[..., Any]): Function of arrays that returns an array, or a tuple or list of them.
///     *args (Any): Arrays like the arguments; or a tuple or list of them, a dictionary of keyword arguments, or both.
///     shapeless (bool): Lets the function take arguments of other sizes, with as many dimensions.
///     metadata (str | None): Text that the file carries.
///     **kwargs (array): Arrays like the keyword arguments.
///
/// Raises:
///     ValueError: If arguments or results are no arrays, for metadata with a callback, and for operations that files do not
///         have, such as kernels of the caller's own.
///     RuntimeError: If the file cannot be written.
///
/// Example:
///     >>> def fun(x, y):
///     ...     return x + y
///     >>> mx.export_function("fun.mlxfn", fun, mx.array(1), y=mx.array([1, 2, 3]))
#[pyfunction]
#[pyo3(signature = (file_or_callback, fun, *args, shapeless=false, metadata=None, **kwargs))]
fn export_function(
    py: Python<'_>,
    file_or_callback: &Bound<'_, PyAny>,
    fun: &Bound<'_, PyAny>,
    args: &Bound<'_, PyTuple>,
    shapeless: bool,
    metadata: Option<String>,
    kwargs: Option<&Bound<'_, PyDict>>,
) -> Res<()> {
    let function = callable(EXPORT, fun)?;
    let path = file_or_callback.extract::<PathBuf>().ok();
    if path.is_none() {
        callable(EXPORT, file_or_callback)?;
        if metadata.is_some() {
            return Err(value(format!(
                "[{EXPORT}] The metadata argument is only supported when exporting to a file, not when using a callback. Leave it out."
            )));
        }
    }
    let arguments = Arguments::of(py, EXPORT, args, kwargs)?;
    let mut exporter = new_exporter(shapeless, metadata);
    trace(py, &mut exporter, &function, &arguments)?;
    match path {
        Some(path) => Ok(py.detach(|| exporter.save(path))?),
        None => exporter.listings().try_for_each(|listing| listed(file_or_callback, &listing)),
    }
}

/// Calls a callback with the parts of a trace.
fn listed(callback: &Bound<'_, PyAny>, listing: &Listing) -> Res<()> {
    let py = callback.py();
    let all = |named: &[Named]| -> PyResult<Bound<'_, PyList>> {
        let one = |(name, shape, dtype): &Named| {
            (name, PyTuple::new(py, shape.iter())?, PyDtype(*dtype)).into_pyobject(py)
        };
        PyList::new(py, named.iter().map(one).collect::<PyResult<Vec<_>>>()?)
    };
    let call = |of: &str, entries: &[(&str, Bound<'_, PyAny>)]| -> Res<()> {
        let dict = PyDict::new(py);
        dict.set_item("type", of)?;
        entries.iter().try_for_each(|(key, value)| dict.set_item(key, value))?;
        callback.call1((dict,))?;
        Ok(())
    };
    call("inputs", &[("inputs", all(&listing.inputs)?.into_any())])?;
    call("keyword_inputs", &[("keywords", PyList::new(py, &listing.keywords)?.into_any())])?;
    call("outputs", &[("outputs", all(&listing.outputs)?.into_any())])?;
    let constants = PyList::empty(py);
    for (name, array) in &listing.constants {
        constants.append((name, Bound::new(py, PyArray::new(array.clone()))?))?;
    }
    call("constants", &[("constants", constants.into_any())])?;
    let read = py.import("json")?.getattr("loads")?;
    for operation in &listing.operations {
        let attributes = read.call1((&operation.attributes,))?;
        let arguments = match attributes.cast::<PyDict>() {
            Ok(fields) => fields.values(),
            Err(_) => PyList::new(py, [&attributes])?,
        };
        call(
            "primitive",
            &[
                ("name", PyString::new(py, operation.name).into_any()),
                ("inputs", all(&operation.inputs)?.into_any()),
                ("outputs", all(&operation.outputs)?.into_any()),
                ("arguments", arguments.into_any()),
                ("attributes", attributes),
            ],
        )?;
    }
    Ok(())
}

/// Exports several traces of a function to one file. `exporter` makes it; a call traces the function for arguments like those of
/// the call.
///
/// The file is written at the end of the `with` statement, by `close`, or when the exporter goes.
///
/// Example:
///     >>> with mx.exporter("square.mlxfn", lambda x: x * x) as export:
///     ...     export(mx.ones(2))
///     ...     export(mx.ones((2, 3)))
///     >>> mx.import_function("square.mlxfn")(mx.array([2.0, 3.0]))
///     (array([4, 9], dtype=float32),)
#[pyclass(module = "ultramarine", frozen, weakref)]
pub struct FunctionExporter {
    function: Py<PyAny>,
    path: PathBuf,
    /// `None` once the file is written.
    exporter: Mutex<Option<Exporter>>,
}

impl FunctionExporter {
    fn lock(&self) -> MutexGuard<'_, Option<Exporter>> {
        self.exporter.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn save(&self) -> ultramarine::Result<()> {
        self.lock().take().map_or(Ok(()), |exporter| exporter.save(&self.path))
    }
}

impl Drop for FunctionExporter {
    fn drop(&mut self) {
        // As when a file object goes: there is nobody to tell.
        let _ = self.save();
    }
}

#[pymethods]
impl FunctionExporter {
    /// Traces the function.
    ///
    /// Args:
    ///     *args (Any): As those of `export_function`.
    ///     **kwargs (array): As those of `export_function`.
    ///
    /// Raises:
    ///     RuntimeError: If there is a trace for such arguments, or the file is written.
    ///     ValueError: As `export_function`.
    #[pyo3(signature = (*args, **kwargs))]
    fn __call__(
        &self,
        py: Python<'_>,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
    ) -> Res<()> {
        let arguments = Arguments::of(py, EXPORT, args, kwargs)?;
        // Taken meanwhile, for the function may be anything.
        let taken = self.lock().take();
        let Some(mut exporter) = taken else {
            let text = "Attempting to write after exporting is closed. Make another exporter.";
            return Err(Error::runtime(EXPORT, text).into());
        };
        let traced = trace(py, &mut exporter, &self.function, &arguments);
        self.lock().replace(exporter);
        traced
    }

    /// Writes the file. No traces can be added then.
    ///
    /// Raises:
    ///     RuntimeError: If the file cannot be written.
    ///
    /// Example:
    ///     >>> export = mx.exporter("double.mlxfn", lambda x: 2 * x)
    ///     >>> export(mx.ones(2))
    ///     >>> export.close()
    ///     >>> mx.import_function("double.mlxfn")(mx.array([2.0, 3.0]))
    ///     (array([4, 6], dtype=float32),)
    fn close(&self, py: Python<'_>) -> Res<()> {
        Ok(py.detach(|| self.save())?)
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (exc_type=None, exc_value=None, traceback=None))]
    fn __exit__(
        &self,
        py: Python<'_>,
        exc_type: Option<&Bound<'_, PyAny>>,
        exc_value: Option<&Bound<'_, PyAny>>,
        traceback: Option<&Bound<'_, PyAny>>,
    ) -> Res<()> {
        let _ = (exc_type, exc_value, traceback);
        self.close(py)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.function)
    }
}

/// Makes an exporter of several traces of a function, for arguments of other numbers, names, shapes and dtypes.
///
/// Args:
///     file (Path): Path of the file, which is replaced when the exporter is closed.
///     fun (Callable[..., Any]): Function of arrays that returns an array, or a tuple or list of them.
///     shapeless (bool): Lets the function take arguments of other sizes, with as many dimensions.
///     metadata (str | None): Text that the file carries.
///
/// Returns:
///     FunctionExporter: A context manager, which is called with arrays like the arguments.
///
/// Raises:
///     RuntimeError: If there is no folder for the file.
///
/// Example:
///     >>> def fun(*args):
///     ...     return sum(args)
///     >>> with mx.exporter("fun.mlxfn", fun) as exporter:
///     ...     exporter(mx.array(1))
///     ...     exporter(mx.array(1), mx.array(2))
#[pyfunction]
#[pyo3(signature = (file, fun, *, shapeless=false, metadata=None))]
fn exporter(
    file: PathBuf,
    fun: &Bound<'_, PyAny>,
    shapeless: bool,
    metadata: Option<String>,
) -> Res<FunctionExporter> {
    let function = callable("exporter", fun)?;
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    if folder.is_some_and(|folder| !folder.is_dir()) {
        let text =
            format!("Failed to open {}: there is no such folder. Make it first.", file.display());
        return Err(Error::runtime(EXPORT, text).into());
    }
    let exporter = Mutex::new(Some(new_exporter(shapeless, metadata)));
    Ok(FunctionExporter { function, path: file, exporter })
}

/// A function from a file, as `import_function` returns it. Its results are a tuple of arrays.
#[pyclass(name = "_ImportedFunction", module = "ultramarine", frozen, weakref)]
pub struct ImportedFunction(Function);

#[pymethods]
impl ImportedFunction {
    #[pyo3(signature = (*args, **kwargs))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> Res<Bound<'py, PyTuple>> {
        let arguments = Arguments::of(py, "import_function::call", args, kwargs)?;
        // The first call may compute numbers.
        let results =
            py.detach(|| self.0.call_keywords(&arguments.positional, &arguments.keywords))?;
        Ok(wrapped(py, &results)?)
    }

    fn __repr__(&self) -> String {
        format!("<imported function of {} traces>", self.0.signatures().count())
    }
}

/// Imports a function from a file that `export_function` or `exporter` wrote.
///
/// Every operation of the file is checked, and there is no code in it: a file from elsewhere is safe to import. (What it says
/// may take time and memory to compute.) The function is called with arrays, or with a tuple or list of arrays, a dictionary
/// of them, or both; it returns a tuple of arrays. Transforms go through it, and its calls are compiled.
///
/// Args:
///     file (Path): Path of the file.
///     return_metadata (bool): Returns the text that the file carries, too.
///
/// Returns:
///     Callable[..., tuple[array, ...]] | tuple[Callable[..., tuple[array, ...]], str]: The function; with `return_metadata` a
///         tuple of it and the text, which is empty if there is none.
///
/// Raises:
///     RuntimeError: If the file cannot be opened, is cut short or wrong, or newer than this package.
///
/// Example:
///     >>> x, y = mx.array(1), mx.array([1, 2, 3])
///     >>> mx.export_function("sum.mlxfn", lambda x, y: x + y, x, y=y)
///     >>> fun = mx.import_function("sum.mlxfn")
///     >>> fun(x, y=y)[0]
///     array([2, 3, 4], dtype=int32)
///     >>> fun((x,), {"y": y})[0]
///     array([2, 3, 4], dtype=int32)
#[pyfunction]
#[pyo3(signature = (file, return_metadata=false))]
fn import_function<'py>(
    py: Python<'py>,
    file: PathBuf,
    return_metadata: bool,
) -> Res<Bound<'py, PyAny>> {
    let function = py.detach(|| Function::load(&file))?;
    let metadata = function.metadata().unwrap_or_default().to_owned();
    let function = Bound::new(py, ImportedFunction(function))?;
    match return_metadata {
        true => Ok((function, metadata).into_pyobject(py)?.into_any()),
        false => Ok(function.into_any()),
    }
}

/// Writes the graph of what is to be computed for arrays in DOT, the language of graphviz.
///
/// Operations are rectangles, arrays ellipses. Arrays that have their values have no operation.
///
/// Args:
///     file (Path): Path of the file, or a file object for text.
///     *args (Any): Arrays, or trees of them.
///     **kwargs (array): Arrays with names, which are drawn, too. Others are called A, B and so on.
///
/// Raises:
///     ValueError: If `file` is neither a path nor a file object, and for what is no array.
///     OSError: If the file cannot be written.
///
/// Example:
///     >>> x, y = mx.array(1.0), mx.array(2.0)
///     >>> mx.export_to_dot("graph.dot", mx.exp(x + y), x=x, y=y)
#[pyfunction]
#[pyo3(signature = (file, *args, **kwargs))]
fn export_to_dot(
    py: Python<'_>,
    file: &Bound<'_, PyAny>,
    args: &Bound<'_, PyTuple>,
    kwargs: Option<&Bound<'_, PyDict>>,
) -> Res<()> {
    const OP: &str = "export_to_dot";
    let arrays_only = || {
        value(format!(
            "[{OP}] The arguments should contain only arrays. Convert numbers with mx.array."
        ))
    };
    let mut outputs = Vec::new();
    tree::visit(args.as_any(), &mut |leaf| {
        outputs.push(as_array(leaf).ok_or_else(arrays_only)?.get().get(py));
        Ok(())
    })?;
    let names = kwargs.map_or_else(|| Some(Keywords::new()), dictionary).ok_or_else(arrays_only)?;
    let names: Vec<(&str, &Array)> = names.iter().map(|(name, a)| (name.as_str(), a)).collect();
    let text = ultramarine::export_to_dot(&outputs, &names);
    if file.is_none() {
        return Err(type_(format!(
            "[{OP}] The file must be a path or a file-like object, got None. Pass one."
        )));
    }
    if let Ok(path) = file.extract::<PathBuf>() {
        std::fs::write(path, text).map_err(PyErr::from)?;
    } else if file.hasattr("write")? {
        file.call_method1("write", (text,))?;
    } else {
        return Err(value(format!(
            "[{OP}] Accepts file-like objects or strings to be used as filenames. Pass one of these."
        )));
    }
    Ok(())
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<FunctionExporter>()?;
    m.add_class::<ImportedFunction>()?;
    crate::functions!(m: export_function exporter import_function export_to_dot);
    Ok(())
}
