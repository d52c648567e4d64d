//! The Python package `ultramarine`: classes and functions over the Rust crate.
//!
//! ```text
//! array/       the class: attributes, operators, indexing, construction, export
//! convert.rs   Python values as operands and arguments
//! dlpack/      arrays from other libraries and for them
//! argument_errors.rs  errors of arguments, completed by function and parameter
//! dtype.rs     Dtype, categories, finfo, iinfo
//! stream.rs    devices and streams
//! memory.rs    counters and limits of memory
//! precision.rs how exactly products are made
//! transfer.rs  copies between devices
//! distributed.rs  groups of processes
//! backends.rs  the loaded backends, and what they ran; profile.rs: when, and for how long
//! extension.rs arrays for modules in other languages: the capsule `ultramarine._C_API`
//! ops/         functions over arrays, by family, as tables; the modules fft, linalg and random
//! tree.rs      trees of arrays; substitution.rs: other arrays in the caller's own containers
//! stack.rs     the stack that recursion over them has left
//! compile/     compiled functions: keys, captured state
//! export.rs    functions as files
//! evaluate.rs, transforms.rs, vmap.rs, custom.rs (functions with transforms of their own), io.rs,
//! fast.rs (kernels in source form), print.rs, interpreter.rs (its exit, and Ctrl-C)
//! ```

// Everything public is so for the sake of Python; the documentation is its docstrings.
#![allow(missing_docs)]

mod argument_errors;
mod array;
mod backends;
mod compile;
mod convert;
mod custom;
mod determinism;
mod distributed;
mod dlpack;
mod dtype;
mod error;
mod evaluate;
mod export;
mod extension;
mod fast;
mod interpreter;
mod io;
mod lease;
mod memory;
mod ops;
mod precision;
mod print;
mod profile;
mod stack;
mod stream;
mod substitution;
mod transfer;
mod transforms;
mod tree;
mod vmap;

use pyo3::prelude::*;

/// One thread makes the nodes of a graph, and that of their stream frees them: with the system's allocator they wait for
/// each other's lock.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Adds functions to a module.
#[macro_export]
#[doc(hidden)]
macro_rules! functions {
    ($m:ident: $($name:ident)*) => {
        $({
            static WRAPPED: $crate::argument_errors::Wrapped =
                $crate::argument_errors::Wrapped::new();

            unsafe extern "C" fn call(
                slf: *mut pyo3::ffi::PyObject,
                args: *const *mut pyo3::ffi::PyObject,
                count: pyo3::ffi::Py_ssize_t,
                names: *mut pyo3::ffi::PyObject,
            ) -> *mut pyo3::ffi::PyObject {
                // SAFETY: the interpreter calls it in the place of the function.
                unsafe { WRAPPED.call(slf, args, count, names) }
            }

            $crate::argument_errors::add($m, pyo3::wrap_pyfunction!($name, $m)?, &WRAPPED, call)?;
        })*
    };
}

/// A class of context managers: `with` enters a scope of the core in its thread, until the end.
#[macro_export]
#[doc(hidden)]
macro_rules! context_manager {
    ($(#[$about:meta])* $class:ident($name:literal): $argument:ty => $value:ty, $scope:ty) => {
        thread_local! {
            /// Scopes entered by `with` statements of this thread.
            static SCOPES: std::cell::RefCell<Vec<$scope>> =
                const { std::cell::RefCell::new(Vec::new()) };
        }

        $(#[$about])*
        #[pyclass(name = $name, module = "ultramarine", frozen)]
        pub struct $class($value);

        #[pymethods]
        impl $class {
            #[new]
            fn new(s: $argument) -> $class {
                $class(s.0)
            }

            fn __enter__(&self) {
                SCOPES.with_borrow_mut(|scopes| scopes.push(<$scope>::new(self.0.clone().into())));
            }

            #[pyo3(signature = (exc_type=None, exc_value=None, traceback=None))]
            fn __exit__(
                &self,
                exc_type: Option<&Bound<'_, PyAny>>,
                exc_value: Option<&Bound<'_, PyAny>>,
                traceback: Option<&Bound<'_, PyAny>>,
            ) {
                let _ = (exc_type, exc_value, traceback);
                SCOPES.with_borrow_mut(|scopes| drop(scopes.pop()));
            }
        }
    };
}

/// Attributes of a function seen through a class that wraps it, in its field `function`: itself, its name and so on.
#[macro_export]
#[doc(hidden)]
macro_rules! seen_through {
    ($class:ident) => {
        #[pymethods]
        impl $class {
            /// The function itself.
            #[getter]
            fn __wrapped__(&self, py: Python<'_>) -> Py<PyAny> {
                self.function.clone_ref(py)
            }

            /// Name and so on are those of the function.
            fn __getattr__<'py>(
                &self,
                py: Python<'py>,
                name: &Bound<'py, PyString>,
            ) -> PyResult<Bound<'py, PyAny>> {
                self.function.bind(py).getattr(name)
            }
        }
    };
}

/// Rust part of the package `ultramarine`.
#[pymodule]
fn _core(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("__version__", env!("CARGO_PKG_VERSION"))?;
    // The tests ask whether they see what a failed assertion would show.
    m.add("_debug_assertions", cfg!(debug_assertions))?;
    interpreter::register(m)?;
    array::register(m)?;
    dtype::register(m)?;
    stream::register(m)?;
    ops::register(m)?;
    print::register(m)?;
    io::register(m)?;
    evaluate::register(m)?;
    transforms::register(m)?;
    vmap::register(m)?;
    custom::register(m)?;
    compile::register(m)?;
    export::register(m)?;
    fast::register(m)?;
    memory::register(m)?;
    precision::register(m)?;
    determinism::register(m)?;
    distributed::register(m)?;
    transfer::register(m)?;
    backends::register(m)?;
    profile::register(m)?;
    dlpack::register(m)?;
    extension::register(m)?;
    Ok(())
}
