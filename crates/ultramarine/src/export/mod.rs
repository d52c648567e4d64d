//! Functions as files: one program exports traces of a function, and another one calls them, on any backend.
//!
//! ```text
//! export: function -> graph, recorded as compile does     transforms/compile/record.rs
//!                  -> operations that files have          program.rs, operations.rs
//!                  -> program as JSON, constants          text.rs, file.rs
//! import: file     -> every operation checked by the rule that admits it to the graph
//!                  -> a compiled function, whose body builds the program's operations
//! ```
//!
//! The format is described in [docs/function-format.md]. A file contains no code, only operations by name, and arrays.
//! Reading an untrusted file is therefore safe; a call computes what the file describes, which may take time and
//! memory.
//!
//! [docs/function-format.md]: https://github.com/ultramarine/ultramarine/blob/main/docs/function-format.md

mod constants;
mod dot;
mod file;
mod listing;
mod names;
mod operations;
mod program;
mod signature;
#[cfg(test)]
mod tests;
mod text;

pub use dot::export_to_dot;
pub use listing::{Listing, Named, Operation};
pub use signature::{Keywords, Signature};

use crate::error::{Error, Result};
use crate::ops::rules::shapeless::Shapeless;
use crate::transforms::compile::record::record;
use crate::transforms::compile::shapeless::fitted;
use crate::transforms::{Compiled, compile};
use crate::{array::Array, arrays::Arrays, io};
use file::{Contents, Trace};
use program::{built, check_fitted};
use std::fmt::{self, Write as _};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Arc;
use ultramarine_runtime::files::{self, Step};

const EXPORT: &str = "export_function";

/// Exports a function of arrays to a file. [`Function::load`] reads it.
///
/// The function is called once, with arrays of the arguments' shapes and dtypes that have no values. Arrays that it
/// closes over become constants of the file. The file contains no streams or devices: when the function is called, it
/// runs on its arguments' device.
///
/// ```
/// use ultramarine::{Array, Function, export_function};
/// let path = std::env::temp_dir().join("ultramarine-doc-export.safetensors");
/// let w = Array::from_slice(&[1.0f32, 2.0], &[2])?;
/// let x = Array::from_slice(&[3.0f32, 4.0], &[2])?;
/// export_function(&path, |x| Ok(vec![x[0].multiply(&w)?.sum(..)?]), [&x])?;
///
/// let f = Function::load(&path)?;
/// assert_eq!(f.call([&x])?[0].item::<f32>()?, 11.0);
/// # std::fs::remove_file(&path).ok();
/// # Ok::<(), ultramarine::Error>(())
/// ```
///
/// # Errors
/// Errors of the function; [`Error::Value`] if it evaluates a value that depends on an argument, or calls an operation
/// that files cannot contain, such as a user-defined kernel; [`Error::Io`] when the file cannot be written.
pub fn export_function(
    path: impl AsRef<Path>,
    f: impl FnOnce(&[Array]) -> Result<Vec<Array>>,
    arguments: impl Arrays,
) -> Result<()> {
    let mut exporter = Exporter::new();
    exporter.trace(f, arguments)?;
    exporter.save(path)
}

/// Several traces of a function, exported to one file.
///
/// ```
/// use ultramarine::{Array, Dtype, Exporter, Function};
/// let path = std::env::temp_dir().join("ultramarine-doc-exporter.safetensors");
/// let mut exporter = Exporter::new().metadata("doubles");
/// for n in [2, 3] {
///     exporter.trace(|x| Ok(vec![x[0].add(&x[0])?]), [Array::ones(&[n], Dtype::Float32)?])?;
/// }
/// exporter.save(&path)?;
///
/// let f = Function::load(&path)?;
/// assert_eq!((f.signatures().count(), f.metadata()), (2, Some("doubles")));
/// assert_eq!(f.call([Array::ones(&[3], Dtype::Float32)?])?[0].to_vec::<f32>()?, [2.0; 3]);
/// # std::fs::remove_file(&path).ok();
/// # Ok::<(), ultramarine::Error>(())
/// ```
#[derive(Default)]
pub struct Exporter {
    shapeless: bool,
    metadata: Option<String>,
    traces: Vec<Trace>,
}

impl fmt::Debug for Exporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exporter")
            .field("shapeless", &self.shapeless)
            .field("metadata", &self.metadata)
            .field("traces", &self.traces.len())
            .finish()
    }
}

impl Exporter {
    /// Makes an exporter without traces. Add traces with [`Exporter::trace`] before saving it.
    pub fn new() -> Exporter {
        Exporter::default()
    }

    /// Sets whether later traces accept arguments of any sizes, with the same number of dimensions; false by default.
    /// The limits are those of [`Compiled::shapeless`].
    pub fn shapeless(mut self, shapeless: bool) -> Exporter {
        self.shapeless = shapeless;
        self
    }

    /// Sets a text that is stored in the file, which [`Function::metadata`] returns.
    pub fn metadata(mut self, text: impl Into<String>) -> Exporter {
        self.metadata = Some(text.into());
        self
    }

    /// Traces the function for arguments of these shapes and dtypes.
    ///
    /// # Errors
    /// Errors of the function; [`Error::Runtime`] if there already is a trace for such arguments; else as
    /// [`export_function`].
    pub fn trace<E: From<Error>>(
        &mut self,
        f: impl FnOnce(&[Array]) -> Result<Vec<Array>, E>,
        arguments: impl Arrays,
    ) -> Result<(), E> {
        self.trace_keywords(|positional, _| f(positional), arguments, &Keywords::new())
    }

    /// As [`Exporter::trace`], for a function that also has keyword arguments.
    ///
    /// # Errors
    /// As [`Exporter::trace`].
    pub fn trace_keywords<E: From<Error>>(
        &mut self,
        f: impl FnOnce(&[Array], &Keywords) -> Result<Vec<Array>, E>,
        arguments: impl Arrays,
        keywords: &Keywords,
    ) -> Result<(), E> {
        let mut all = arguments.owned();
        let signature = Signature::of(&all, keywords, self.shapeless);
        if self.traces.iter().any(|trace| trace.signature.takes(&signature)) {
            let text = "Attempting to export a function twice with the same signature is not allowed. Pass arguments of other shapes or dtypes.";
            return Err(Error::runtime(EXPORT, text).into());
        }
        let positional = all.len();
        all.extend(keywords.values().cloned());
        let call = |all: &[Array]| {
            let (positional, values) = all.split_at(positional);
            let names = keywords.keys().cloned();
            f(positional, &names.zip(values.iter().cloned()).collect())
        };
        let recorded = {
            let _shapes = Shapeless::begin(self.shapeless);
            record(call, &all)?
        };
        if recorded.once {
            let text = "The function closes over an array that another transform traces. Make it an argument.";
            return Err(Error::value(EXPORT, text).into());
        }
        if !recorded.groups.is_empty() {
            let text = "The function communicates in a group of processes, and a file cannot hold a group. Export the parts \
                        between such calls.";
            return Err(Error::value(EXPORT, text).into());
        }
        self.traces.push(Trace::new(signature, recorded.graph)?);
        Ok(())
    }

    /// Writes the file. It replaces an existing file only when it is complete.
    ///
    /// # Errors
    /// [`Error::Io`] when the file cannot be written; [`Error::Type`] for constants of dtypes that safetensors files do not have.
    pub fn save(self, path: impl AsRef<Path>) -> Result<()> {
        let name = path.as_ref().display().to_string();
        let failed = |step, error| {
            let what = if step == Step::Open { "open" } else { "write" };
            Error::io(format!("[{EXPORT}] Failed to {what} {name}"), error)
        };
        files::replace(path.as_ref(), failed, |file| {
            self.write_to(&mut BufWriter::new(file), &name)
        })
    }

    /// Writes the file to `writer`. `name` stands for the writer in errors.
    ///
    /// # Errors
    /// As [`Exporter::save`].
    pub fn write(self, writer: &mut dyn Write, name: &str) -> Result<()> {
        self.write_to(writer, name)
    }

    fn write_to(self, writer: &mut dyn Write, name: &str) -> Result<()> {
        Contents { traces: self.traces, metadata: self.metadata }.write(writer, name)
    }

    /// Returns each trace as lists of its arrays and operations, in the order of the traces.
    pub fn listings(&self) -> impl Iterator<Item = Listing> {
        self.traces.iter().map(Listing::of)
    }

    /// Returns the function as [`Function::load`] would read it, without a file.
    ///
    /// ```
    /// use ultramarine::{Array, Exporter};
    /// let x = Array::from_slice(&[1.0f32, 2.0], &[2])?;
    /// let mut exporter = Exporter::new();
    /// exporter.trace(|x| Ok(vec![x[0].square()?]), [&x])?;
    /// let listing = exporter.listings().next();
    /// assert_eq!(listing.map(|l| l.operations[0].name), Some("square"));
    /// let f = exporter.into_function();
    /// assert_eq!(f.call([&x])?[0].to_vec::<f32>()?, [1.0, 4.0]);
    /// # Ok::<(), ultramarine::Error>(())
    /// ```
    pub fn into_function(self) -> Function {
        Function::of(Contents { traces: self.traces, metadata: self.metadata })
    }
}

/// A trace that can be called.
struct Callable {
    signature: Signature,
    compiled: Compiled,
}

impl Callable {
    fn new(trace: Trace) -> Callable {
        let Trace { signature, graph } = trace;
        let shapeless = signature.shapeless;
        let types = signature.types();
        let body = move |arguments: &[Array]| {
            let traced = arguments.iter().map(Array::shape).eq(types.iter().map(|(s, _)| &s[..]));
            if !shapeless || traced {
                return built(&graph, arguments);
            }
            let shapes: Vec<&[usize]> = arguments.iter().map(Array::shape).collect();
            let graph = fitted(&graph, &shapes)?;
            check_fitted(&graph)?;
            built(&graph, arguments)
        };
        Callable { signature, compiled: compile(body) }
    }
}

/// A function from a file that [`export_function`] (or Python's `export_function`) wrote. It has one or several traces,
/// each for different arguments.
///
/// Calls are compiled, as those of [`compile`](fn@crate::transforms::compile) are, and support all transforms. Clones
/// share the traces.
#[derive(Clone)]
pub struct Function(Arc<Inner>);

struct Inner {
    traces: Vec<Callable>,
    metadata: Option<String>,
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let signatures: Vec<&Signature> = self.signatures().collect();
        f.debug_struct("Function")
            .field("signatures", &signatures)
            .field("metadata", &self.0.metadata)
            .finish()
    }
}

impl Function {
    /// Loads the function of a file.
    ///
    /// # Errors
    /// [`Error::Io`] if the file cannot be opened. [`Error::Runtime`] if it is cut short, no file
    /// of a function, newer than this program, or has an invalid operation: every operation is
    /// checked.
    pub fn load(path: impl AsRef<Path>) -> Result<Function> {
        let name = path.as_ref().display().to_string();
        let file = io::safetensors::load(path)?;
        Ok(Function::of(Contents::of(file, &name)?))
    }

    /// Reads a function from the reader's present position to its end. `name` stands for the reader
    /// in errors.
    ///
    /// # Errors
    /// As [`Function::load`].
    pub fn read(reader: &mut dyn io::ReadSeek, name: &str) -> Result<Function> {
        let file = io::safetensors::read(reader, name)?;
        Ok(Function::of(Contents::of(file, name)?))
    }

    fn of(contents: Contents) -> Function {
        let Contents { traces, metadata } = contents;
        Function(Arc::new(Inner {
            traces: traces.into_iter().map(Callable::new).collect(),
            metadata,
        }))
    }

    /// Returns the signatures of the traces, in the order of their export. [`Function::call`] uses the first one that
    /// fits its arguments.
    pub fn signatures(&self) -> impl Iterator<Item = &Signature> {
        self.0.traces.iter().map(|trace| &trace.signature)
    }

    /// Returns the text stored in the file by [`Exporter::metadata`]; `None` if there is none.
    pub fn metadata(&self) -> Option<&str> {
        self.0.metadata.as_deref()
    }

    /// Calls the trace for arguments of these shapes and dtypes. The results are lazy.
    ///
    /// # Errors
    /// [`Error::Value`] if there is no such trace, or if it is shapeless and the sizes do not fit each other.
    pub fn call(&self, arguments: impl Arrays) -> Result<Vec<Array>> {
        self.call_keywords(arguments, &Keywords::new())
    }

    /// As [`Function::call`], with keyword arguments.
    ///
    /// # Errors
    /// As [`Function::call`].
    pub fn call_keywords(&self, arguments: impl Arrays, keywords: &Keywords) -> Result<Vec<Array>> {
        let mut all = arguments.owned();
        let given = Signature::of(&all, keywords, false);
        let trace = self.0.traces.iter().find(|trace| trace.signature.takes(&given));
        let Some(trace) = trace else { return Err(self.unknown(&given)) };
        all.extend(keywords.values().cloned());
        trace.compiled.call(&all)
    }

    #[cold]
    fn unknown(&self, given: &Signature) -> Error {
        let mut text = String::from(
            "No imported function found which matches the given positional and keyword arguments. \
             Possible functions include:",
        );
        for (i, signature) in self.signatures().enumerate() {
            let _ = write!(text, "\n{}. Function with {signature}", i + 1);
        }
        let _ = write!(text, "\nCalled with {given}");
        Error::value("import_function::call", text)
    }
}
