//! Extensions inside the program itself: the library of primitives that is linked into the program uses this core.

use super::{errors::code_of, handles, table::host_table};
use crate::{
    array::Array,
    device::DeviceType,
    error::{Error, Result},
    stream::Stream,
};
use std::sync::Once;
use ultramarine_abi::status;
use ultramarine_extension as library;

/// Connects the library of primitives that is linked into the program to this core. Conversions of arrays connect
/// automatically, so only a program that begins with the library's own arrays needs this call.
pub fn connect_here() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // The library is built with the same contract, so it has no reason to reject it.
        let connected = library::connect(host_table());
        debug_assert!(connected.is_ok(), "{connected:?}");
    });
}

/// Converts an array for the rules of primitives. Both share one node, which is computed once.
impl From<Array> for library::Array {
    fn from(array: Array) -> library::Array {
        connect_here();
        // SAFETY: a new handle of this core, to which the library is connected.
        match unsafe { library::Array::from_raw(handles::own_handle(array)) } {
            Ok(array) => array,
            Err(error) => unreachable!("a handle that is not NULL: {error}"),
        }
    }
}

impl From<&Array> for library::Array {
    fn from(array: &Array) -> library::Array {
        array.clone().into()
    }
}

/// Converts the array of a rule. Both share one node.
impl From<library::Array> for Array {
    fn from(array: library::Array) -> Array {
        // SAFETY: an owned handle of the host to which the library is connected. That host is this core: a process has
        // only one, and the library is linked to it.
        unsafe { handles::take_handle(array.into_raw()) }
    }
}

/// Applies a primitive. Its lazy results are evaluated when they are needed. It runs on the operands' home device, or
/// on the stream of the scope ([`with_stream`](crate::with_stream)), as any operation does.
///
/// # Errors
/// Errors of [`infer`](library::Primitive::infer); operands on accelerators that cannot be combined.
pub fn call<P: library::Primitive>(
    primitive: P,
    inputs: &[impl AsRef<Array>],
) -> Result<Vec<Array>> {
    let inputs: Vec<library::Array> = inputs.iter().map(|a| a.as_ref().into()).collect();
    let inputs: Vec<&library::Array> = inputs.iter().collect();
    let results = library::apply(primitive, &inputs, library::Place::Default);
    Ok(results.map_err(from_library)?.into_iter().map(Array::from).collect())
}

/// [`call`] of a primitive with one result.
///
/// # Errors
/// As [`call`]; [`Error::Runtime`] for a primitive that has several results.
pub fn call_one<P: library::Primitive>(
    primitive: P,
    inputs: &[impl AsRef<Array>],
) -> Result<Array> {
    let name = primitive.name().to_owned();
    let mut results = call(primitive, inputs)?;
    match (results.pop(), results.is_empty()) {
        (Some(one), true) => Ok(one),
        _ => Err(Error::runtime(&name, "The primitive has several results. Use `call`.")),
    }
}

/// Registers a type of primitives that this program can restore, for functions in files. `package` is the crate that
/// contains the type; programs without it name it in their errors.
///
/// # Errors
/// [`Error::Value`] for names that contain a NUL.
pub fn provide<P: library::Restore>(package: &str) -> Result<()> {
    connect_here();
    library::provide::<P>(package).map_err(from_library)
}

/// Converts an error of the crate `ultramarine-extension` to one of this crate, as [`call`] does. Invalid arguments
/// become [`Error::Value`], running out of memory [`Error::Memory`], everything else [`Error::Runtime`].
pub fn from_library(error: library::Error) -> Error {
    let text = error.text().to_owned();
    match error.code() {
        status::INVALID => Error::Value(text.into()),
        status::OUT_OF_MEMORY => Error::Memory(text.into()),
        _ => Error::Runtime(text.into()),
    }
}

/// Converts an error of this crate to one of the crate `ultramarine-extension`, for rules that call operations:
/// `x.exp().map_err(to_library)?`. Message and kind are kept.
pub fn to_library(error: Error) -> library::Error {
    library::Error::with_code(code_of(&error), error.to_string())
}

/// Converts a stream to a place of the crate `ultramarine-extension`.
pub fn library_place(stream: Stream) -> library::Place {
    let kind = match stream.device.kind {
        DeviceType::Cpu => library::DeviceKind::Cpu,
        DeviceType::Gpu => library::DeviceKind::Gpu,
    };
    let index = stream.device.index as u32;
    library::Place::Stream { kind, index, stream: stream.index }
}
