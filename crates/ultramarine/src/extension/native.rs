//! Extensions of the program itself: the library of primitives that is linked in belongs to this core.

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

/// Connects the library of primitives that is linked into the program to this core. Conversions of arrays do it by
/// themselves, so only a program that begins with arrays of the library's own needs it.
pub fn connect_here() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // It is built with this contract, so there is nothing that it could refuse.
        let connected = library::connect(host_table());
        debug_assert!(connected.is_ok(), "{connected:?}");
    });
}

/// An array for rules of primitives: the same one, computed once.
impl From<Array> for library::Array {
    fn from(array: Array) -> library::Array {
        connect_here();
        // SAFETY: a new handle of this core, which the library is connected to.
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

/// The array of a rule's: the same one.
impl From<library::Array> for Array {
    fn from(array: library::Array) -> Array {
        // SAFETY: an owned handle of the host that the library is connected to, which is this one: a
        // process has one core, and the library is linked to it.
        unsafe { handles::take_handle(array.into_raw()) }
    }
}

/// The results of a primitive, evaluated when somebody needs them. It runs where the operands are at home, or on the stream
/// of the scope ([`with_stream`](crate::with_stream)), as any operation does.
///
/// # Errors
/// Errors of [`infer`](library::Primitive::infer); operands that are on accelerators that do not mix.
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

/// Says that this program makes primitives of a type again, for functions in files. `package` is the crate that has it, for
/// errors of programs that do not.
///
/// # Errors
/// [`Error::Value`] for names with a NUL in them.
pub fn provide<P: library::Restore>(package: &str) -> Result<()> {
    connect_here();
    library::provide::<P>(package).map_err(from_library)
}

/// Converts an error of the crate `ultramarine-extension` to one of this crate, as [`call`] does.
/// Invalid arguments become [`Error::Value`], a lack of memory [`Error::Memory`], anything else
/// [`Error::Runtime`].
pub fn from_library(error: library::Error) -> Error {
    let text = error.text().to_owned();
    match error.code() {
        status::INVALID => Error::Value(text.into()),
        status::OUT_OF_MEMORY => Error::Memory(text.into()),
        _ => Error::Runtime(text.into()),
    }
}

/// Converts an error of this crate to one of the crate `ultramarine-extension`, for rules that call
/// operations: `x.exp().map_err(to_library)?`. The message and the kind of error stay.
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
