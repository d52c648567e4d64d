//! Files: paths and file objects.

mod gguf;

use crate::array::PyArray;
use crate::convert::ArrayArg;
use crate::dtype::DtypeArg;
use crate::error::{Fail, Res, type_, value};
use crate::stream::{StreamArg, on};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};
use std::cell::RefCell;
use std::ffi::OsString;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;
use ultramarine::Error;
use ultramarine::io::{self as files, Format, Loaded, Metadata};

/// A Python file object as Rust's.
struct FileObject<'a, 'py> {
    file: &'a Bound<'py, PyAny>,
    /// The exception that a method raised: it is what the user should see.
    raised: &'a RefCell<Option<PyErr>>,
}

impl FileObject<'_, '_> {
    fn keep<T>(&self, result: PyResult<T>) -> io::Result<T> {
        result.map_err(|error| {
            let text = error.to_string();
            self.raised.replace(Some(error));
            io::Error::other(text)
        })
    }
}

impl Read for FileObject<'_, '_> {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        let bytes = self.keep(self.file.call_method1("read", (target.len(),)))?;
        let bytes = self.keep(bytes.extract::<Vec<u8>>())?;
        let n = bytes.len().min(target.len());
        target[..n].copy_from_slice(&bytes[..n]);
        Ok(n)
    }
}

impl Seek for FileObject<'_, '_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let (offset, whence) = match to {
            SeekFrom::Start(n) => (i64::try_from(n).map_err(io::Error::other)?, 0),
            SeekFrom::Current(n) => (n, 1),
            SeekFrom::End(n) => (n, 2),
        };
        let place = self.keep(self.file.call_method1("seek", (offset, whence)))?;
        self.keep(place.extract())
    }
}

impl Write for FileObject<'_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.keep(self.file.call_method1("write", (PyBytes::new(self.file.py(), bytes),)))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Calls `f` with a file object. An exception of the object's methods goes before the error of `f`.
fn with_file<T>(
    file: &Bound<'_, PyAny>,
    f: impl FnOnce(FileObject<'_, '_>) -> ultramarine::Result<T>,
) -> Res<T> {
    let raised = RefCell::new(None);
    let result = f(FileObject { file, raised: &raised });
    match raised.take() {
        Some(error) => Err(Fail::Py(error)),
        None => Ok(result?),
    }
}

/// The file that an argument names.
enum Target<'a, 'py> {
    Path(PathBuf),
    Object(&'a Bound<'py, PyAny>),
}

fn target<'a, 'py>(
    op: &str,
    file: &'a Bound<'py, PyAny>,
    methods: &[&str],
) -> Res<Target<'a, 'py>> {
    if let Ok(path) = file.extract::<PathBuf>() {
        return Ok(Target::Path(path));
    }
    if file.is_none() {
        return Err(type_(format!(
            "[{op}] Input must be a path or a file-like object, got None. Pass one."
        )));
    }
    for method in methods {
        if !file.hasattr(*method)? {
            return Err(value(format!(
                "[{op}] Input must be a path or a file-like object opened in binary mode. Pass one of these."
            )));
        }
    }
    Ok(Target::Object(file))
}

/// Saves to a path, to which `extension` is added if it is not there, or to a file object.
fn write(
    op: &str,
    file: &Bound<'_, PyAny>,
    extension: &str,
    f: impl Fn(&mut dyn Write, &str) -> ultramarine::Result<()>,
    to_path: impl Fn(PathBuf) -> ultramarine::Result<()> + Sync + Send,
) -> Res<()> {
    match target(op, file, &["write"])? {
        Target::Path(path) => {
            let mut name: OsString = path.into_os_string();
            if !name.to_string_lossy().ends_with(extension) {
                name.push(extension);
            }
            let path = PathBuf::from(name);
            Ok(file.py().detach(|| to_path(path))?)
        }
        Target::Object(object) => with_file(object, |writer| {
            let mut buffered = io::BufWriter::with_capacity(1 << 20, writer);
            f(&mut buffered, "file object")?;
            buffered.flush().map_err(|e| ultramarine::Error::runtime(op, e))
        }),
    }
}

/// Saves an array in NumPy's format `.npy`.
///
/// Args:
///     file (Path): Path, to which `.npy` is added if it lacks it; or a binary file object.
///     arr (array): Array to save, which is evaluated.
///
/// Raises:
///     RuntimeError: If the file cannot be written.
///     ValueError: If `file` is neither a path nor a file object.
///
/// Example:
///     >>> mx.save("x.npy", mx.arange(3))
///     >>> mx.load("x.npy")
///     array([0, 1, 2], dtype=int32)
#[pyfunction]
fn save(file: &Bound<'_, PyAny>, arr: ArrayArg) -> Res<()> {
    let write_to = |w: &mut dyn Write, name: &str| files::npy::write(w, &arr.0, name);
    write("save", file, ".npy", write_to, |path| files::npy::save(path, &arr.0))
}

/// The arrays of `savez`: positional ones are called `arr_0` and so on.
fn named(
    op: &str,
    args: &Bound<'_, PyTuple>,
    kwargs: Option<&Bound<'_, PyDict>>,
) -> Res<files::Arrays> {
    let mut all = match kwargs {
        Some(kwargs) => arrays(kwargs)?,
        None => files::Arrays::new(),
    };
    for (i, arg) in args.iter().enumerate() {
        let name = format!("arr_{i}");
        if all.contains_key(&name) {
            return Err(value(format!(
                "[{op}] Cannot use un-named variables and keyword {name}. Rename the keyword."
            )));
        }
        all.insert(name, arg.extract::<ArrayArg>()?.0);
    }
    Ok(all)
}

fn arrays(dict: &Bound<'_, PyDict>) -> Res<files::Arrays> {
    let mut all = files::Arrays::new();
    for (name, array) in dict.iter() {
        let name = name
            .extract::<String>()
            .map_err(|_| type_("Names of arrays must be strings. Convert them with str()."))?;
        all.insert(name, array.extract::<ArrayArg>()?.0);
    }
    Ok(all)
}

macro_rules! archives {
    ($($(#[doc = $doc:literal])* $name:ident $save:ident $compressed:literal;)*) => {$(
        $(#[doc = $doc])*
        #[pyfunction]
        #[pyo3(signature = (file, *args, **kwargs))]
        fn $name(
            file: &Bound<'_, PyAny>,
            args: &Bound<'_, PyTuple>,
            kwargs: Option<&Bound<'_, PyDict>>,
        ) -> Res<()> {
            let all = named(stringify!($name), args, kwargs)?;
            let write_to =
                |w: &mut dyn Write, name: &str| files::npz::write(w, &all, $compressed, name);
            write(stringify!($name), file, ".npz", write_to, |path| files::npz::$save(path, &all))
        }
    )*};
}

archives! {
    /// Saves arrays in NumPy's archive format `.npz`.
    ///
    /// Args:
    ///     file (Path): Path, to which `.npz` is added if it lacks it; or a binary file object.
    ///     *args (array): Arrays, which are named `arr_0` and so on.
    ///     **kwargs (array): Arrays by name.
    ///
    /// Raises:
    ///     RuntimeError: If the file cannot be written.
    ///     ValueError: If two arrays have one name, or `file` is neither a path nor a file object.
    ///
    /// Example:
    ///     >>> mx.savez("pair.npz", mx.arange(2), b=mx.ones(1))
    ///     >>> sorted(mx.load("pair.npz"))
    ///     ['arr_0', 'b']
    savez save false;
    /// Saves arrays in NumPy's archive format `.npz`, compressed.
    ///
    /// Args:
    ///     file (Path): Path, to which `.npz` is added if it lacks it; or a binary file object.
    ///     *args (array): Arrays, which are named `arr_0` and so on.
    ///     **kwargs (array): Arrays by name.
    ///
    /// Raises:
    ///     RuntimeError: If the file cannot be written.
    ///     ValueError: If two arrays have one name, or `file` is neither a path nor a file object.
    ///
    /// Example:
    ///     >>> mx.savez_compressed("pair.npz", a=mx.arange(2), b=mx.ones(1))
    ///     >>> mx.load("pair.npz")["a"]
    ///     array([0, 1], dtype=int32)
    savez_compressed save_compressed true;
}

/// Saves named arrays in the format `.safetensors`.
///
/// Args:
///     file (Path): Path, to which `.safetensors` is added if it lacks it; or a binary file
///         object.
///     arrays (Mapping[str, array]): Arrays by name.
///     metadata (Mapping[str, str] | None): Text by name, saved with the arrays.
///
/// Raises:
///     RuntimeError: If the file cannot be written.
///     ValueError: If metadata is not text, or `file` is neither a path nor a file object.
///
/// Example:
///     >>> mx.save_safetensors("w.safetensors", {"w": mx.ones(2)})
///     >>> mx.load("w.safetensors")["w"]
///     array([1, 1], dtype=float32)
#[pyfunction]
#[pyo3(signature = (file, arrays, metadata=None))]
fn save_safetensors(
    file: &Bound<'_, PyAny>,
    arrays: &Bound<'_, PyDict>,
    metadata: Option<&Bound<'_, PyDict>>,
) -> Res<()> {
    let all = self::arrays(arrays)?;
    let mut texts = Metadata::new();
    for (key, text) in metadata.into_iter().flat_map(|m| m.iter()) {
        match (key.extract::<String>(), text.extract::<String>()) {
            (Ok(key), Ok(text)) => texts.insert(key, text),
            _ => {
                return Err(value(
                    "[save_safetensors] Metadata must be a dictionary with string keys and values. Convert them with str().",
                ));
            }
        };
    }
    let write_to = |w: &mut dyn Write, name: &str| files::safetensors::write(w, &all, &texts, name);
    write("save_safetensors", file, ".safetensors", write_to, |path| {
        files::safetensors::save(path, &all, &texts)
    })
}

/// Loads arrays from a file.
///
/// Of a path the header is read at once, and each array's data when the array is evaluated: onto
/// the device of `stream`, else of the operation that needs it. A file object is read whole.
///
/// Args:
///     file (Path): Path, or a binary file object that can seek.
///     format (str | None): "npy", "npz", "safetensors", "gguf" or "index.json" (safetensors files
///         with an index); by default the ending of the file's name.
///     return_metadata (bool): Also returns the metadata; of `.safetensors`, `.gguf` and indexes
///         only.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///     packing (str | None): Tensors of `.gguf` that become quantised arrays: "common", those that
///         MLX gives as such (Q4_0, Q4_1 and Q8_0), which is the default; "lossless", also others
///         whose numbers such an array holds; "never", none.
///     dtype (Dtype | None): Of the other tensors of blocks in `.gguf`: float16 (default), bfloat16
///         or float32.
///
/// Returns:
///     Any: An array of a `.npy` file, or a dictionary of arrays of any other file; with
///         `return_metadata` a pair of that and a dictionary of text, for `.gguf` also of arrays,
///         bytes and lists.
///
/// Raises:
///     RuntimeError: If the file cannot be read; when an array is evaluated, if the file was
///         written to or cut since.
///     ValueError: If the format is unknown, or has no metadata, packing or dtype that is asked for.
///
/// Example:
///     >>> mx.save_safetensors("weights.safetensors", {"w": mx.ones(2), "b": mx.zeros(1)})
///     >>> sorted(mx.load("weights.safetensors"))
///     ['b', 'w']
#[pyfunction]
#[pyo3(signature = (file, /, format=None, return_metadata=false, *, stream=None, packing=None, dtype=None))]
fn load<'py>(
    py: Python<'py>,
    file: &Bound<'py, PyAny>,
    format: Option<&str>,
    return_metadata: bool,
    stream: Option<StreamArg>,
    packing: Option<&str>,
    dtype: Option<DtypeArg>,
) -> Res<Bound<'py, PyAny>> {
    let target = target("load", file, &["read", "seek"])?;
    let format = match (format, &target) {
        (Some(name), _) => Format::from_name(name)?,
        (None, Target::Path(path)) => Format::from_path(path)?,
        (None, Target::Object(file)) => {
            Format::from_path(file.getattr("name")?.extract::<PathBuf>()?)?
        }
    };
    if return_metadata && matches!(format, Format::Npy | Format::Npz) {
        let name = if format == Format::Npy { "npy" } else { "npz" };
        return Err(value(format!(
            "[load] metadata not supported for format {name}. Leave return_metadata out."
        )));
    }
    let options = gguf::options(format, packing, dtype)?;
    let loaded = on(stream, || match target {
        // Some files that are missing are a ValueError in mlx, others a RuntimeError.
        Target::Path(path) => match py.detach(|| match format {
            Format::Gguf => files::gguf::load_with(path, options).map(gguf::loaded),
            _ => files::load_as(path, format),
        }) {
            Err(error @ Error::Io { .. }) if matches!(format, Format::Npz | Format::Gguf) => {
                Err(value(error.to_string()))
            }
            loaded => Ok(loaded?),
        },
        Target::Object(file) => with_file(file, |mut reader| match format {
            Format::Gguf => {
                files::gguf::read(&mut reader, options, "file object").map(gguf::loaded)
            }
            _ => files::read(&mut reader, format, "file object"),
        }),
    })?;
    let dict = |arrays: files::Arrays| -> Res<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (name, array) in arrays {
            dict.set_item(name, Bound::new(py, PyArray::new(array))?)?;
        }
        Ok(dict)
    };
    Ok(match loaded {
        Loaded::Array(array) => Bound::new(py, PyArray::new(array))?.into_any(),
        Loaded::Arrays(arrays) => dict(arrays)?.into_any(),
        Loaded::Safetensors(arrays, metadata) if return_metadata => {
            let texts = PyDict::new(py);
            for (key, text) in metadata {
                texts.set_item(key, text)?;
            }
            PyTuple::new(py, [dict(arrays)?, texts])?.into_any()
        }
        Loaded::Gguf(arrays, metadata) if return_metadata => {
            PyTuple::new(py, [dict(arrays)?, gguf::to_python(py, metadata)?])?.into_any()
        }
        Loaded::Safetensors(arrays, _) | Loaded::Gguf(arrays, _) => dict(arrays)?.into_any(),
    })
}

/// Ranges of an axis of an array behind one another. Of an array of a file that was not evaluated yet, their bytes alone are
/// read: `nn.checkpoints` reads parts so.
#[pyfunction]
fn _part(arr: ArrayArg, axis: usize, ranges: Vec<(usize, usize)>) -> Res<PyArray> {
    let ranges: Vec<_> = ranges.into_iter().map(|(start, stop)| start..stop).collect();
    Ok(PyArray::new(files::part(&arr.0, axis, &ranges)?))
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    crate::functions!(m: _part save savez savez_compressed save_safetensors load);
    gguf::register(m)
}
