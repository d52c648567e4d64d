//! Shapes, dtypes and places in the form of the boundary to extensions.

use super::boundary::{fill, guard, read, read_all, text};
use crate::device::{Device, DeviceType};
use crate::dtype::{Category, Dtype};
use crate::error::{Error, Result, bail, ensure};
use crate::shape::{self, Shape};
use crate::stream::Scope;
use crate::stream::{self, Stream};
use core::ffi::{c_char, c_void};
use ultramarine_abi::extension::{PlaceCode, TensorType, place};
use ultramarine_abi::{self as abi, MAX_NDIM, Status, dlpack::DLDataType};

/// Shape and dtype as a struct of the contract.
pub(super) fn tensor_type(shape: &[usize], dtype: Dtype) -> TensorType {
    let mut sizes = [0; MAX_NDIM];
    for (to, n) in sizes.iter_mut().zip(shape) {
        *to = *n as i64;
    }
    TensorType {
        size: size_of::<TensorType>() as u32,
        ndim: shape.len() as i32,
        dtype: dtype.to_dl(),
        reserved: 0,
        shape: sizes,
    }
}

/// The dtype for a DLPack type that operations support.
pub(super) fn dtype(function: &str, dl: DLDataType) -> Result<Dtype> {
    Dtype::from_dl(dl).ok_or_else(|| {
        let text = format!(
            "There is no dtype of code {}, {} bits and {} lanes. Pass one of the dtypes of ultramarine.",
            dl.code, dl.bits, dl.lanes
        );
        Error::value(function, text)
    })
}

/// Shape and dtype, if an array may have them. Errors begin with `what`, for example "output 0".
pub(super) fn validated(function: &str, what: &str, of: &TensorType) -> Result<(Shape, Dtype)> {
    let ndim = usize::try_from(of.ndim).ok().filter(|n| *n <= MAX_NDIM);
    let Some(ndim) = ndim else {
        bail!(function, "{what} has {} dimensions. Use 0 to {MAX_NDIM}.", of.ndim);
    };
    let sizes = of.shape[..ndim].iter().map(|n| usize::try_from(*n).ok());
    let Some(sizes) = sizes.collect::<Option<Shape>>() else {
        bail!(
            function,
            "{what} has a negative size: {:?}. Use sizes of 0 or more.",
            &of.shape[..ndim]
        );
    };
    let in_words = |error: Error| match error {
        Error::Value(t) => Error::Value(t.map(|t| t.replacen("] ", &format!("] {what}: "), 1))),
        other => other,
    };
    shape::check(function, &sizes).map_err(in_words)?;
    Ok((sizes, dtype(function, of.dtype).map_err(in_words)?))
}

/// The stream for a place code; `None`: the operands' own place.
///
/// # Errors
/// [`Error::Value`] for a device or a stream that does not exist.
pub fn stream_of(code: &PlaceCode) -> Result<Option<Stream>> {
    const OP: &str = "place";
    if code.kind == place::DEFAULT {
        return Ok(None);
    }
    let kind = match code.device_type {
        place::CPU => DeviceType::Cpu,
        place::GPU => DeviceType::Gpu,
        other => {
            return Err(Error::value(
                OP,
                format!("There is no device type {other}. Use CPU or GPU."),
            ));
        }
    };
    let missing = || {
        Error::value(
            OP,
            format!(
                "There is no device {kind}:{}. Use the index of a loaded device.",
                code.device_index
            ),
        )
    };
    let index = u16::try_from(code.device_index).map_err(|_| missing())?;
    let device = Device { kind, index };
    match code.kind {
        place::DEVICE => stream::default_stream(device).map(Some),
        place::STREAM => {
            let found = Stream { index: code.stream_index, device };
            ensure!(stream::exists(found), OP, "There is no {found:?}. Use a stream that exists.");
            Ok(Some(found))
        }
        other => Err(Error::value(
            OP,
            format!(
                "There is no kind {other} of places. Use UM_PLACE_DEFAULT, UM_PLACE_DEVICE or UM_PLACE_STREAM."
            ),
        )),
    }
}

/// Returns the place code of a stream, which the boundary to extensions uses. [`stream_of`] is the
/// inverse.
pub fn place_of(stream: Stream) -> PlaceCode {
    PlaceCode {
        size: size_of::<PlaceCode>() as u32,
        kind: place::STREAM,
        device_type: match stream.device.kind {
            DeviceType::Cpu => place::CPU,
            DeviceType::Gpu => place::GPU,
        },
        device_index: stream.device.index as u32,
        stream_index: stream.index,
        reserved: 0,
    }
}

/// Enters the scope of a place; NULL and the default place enter none.
///
/// # Safety
/// `at` is NULL or points to a place of the size that it states.
pub(super) unsafe fn enter(function: &str, at: *const PlaceCode) -> Result<Option<Scope>> {
    if at.is_null() {
        return Ok(None);
    }
    // SAFETY: by this function's contract.
    let code = unsafe { read(function, at)? };
    Ok(stream_of(&code)?.map(Scope::new))
}

pub(super) unsafe extern "C" fn promote_types(
    _: *mut c_void,
    a: DLDataType,
    b: DLDataType,
    promoted: *mut DLDataType,
    error: *mut *mut abi::Error,
) -> Status {
    const NAME: &str = "promote_types";
    // SAFETY: the caller's pointers, by contract.
    unsafe {
        guard(NAME, error, || {
            let found = dtype(NAME, a)?.promote(dtype(NAME, b)?);
            match promoted.as_mut() {
                Some(promoted) => *promoted = found.to_dl(),
                None => {
                    return Err(Error::value(
                        NAME,
                        "The pointer to the result is NULL. Pass an address.",
                    )
                    .into());
                }
            }
            Ok(())
        })
    }
}

/// The category of that name.
fn category(name: &str) -> Option<Category> {
    Some(match name {
        "generic" => Category::Generic,
        "number" => Category::Number,
        "integer" => Category::Integer,
        "signedinteger" => Category::SignedInteger,
        "unsignedinteger" => Category::UnsignedInteger,
        "inexact" => Category::Inexact,
        "floating" => Category::Floating,
        "complexfloating" => Category::ComplexFloating,
        _ => return None,
    })
}

pub(super) unsafe extern "C" fn issubdtype(
    _: *mut c_void,
    of: DLDataType,
    name: *const c_char,
) -> i32 {
    // SAFETY: NULL or a NUL-terminated text, by contract.
    let Ok(name) = (unsafe { text("issubdtype", "the category", name) }) else { return -1 };
    let found = Dtype::from_dl_with(of, 0);
    match (category(name), Dtype::from_name(name)) {
        (Some(category), _) => found.is_some_and(|d| d.is_subtype(category)).into(),
        (None, Some(other)) => (found == Some(other)).into(),
        (None, None) => -1,
    }
}

pub(super) unsafe extern "C" fn broadcast_types(
    _: *mut c_void,
    types: *const TensorType,
    n: u32,
    broadcast: *mut TensorType,
    error: *mut *mut abi::Error,
) -> Status {
    const NAME: &str = "broadcast_types";
    // SAFETY: the caller's pointers, by contract.
    unsafe {
        guard(NAME, error, || {
            let types = read_all(NAME, types, n, 0)?;
            let mut all =
                types.iter().enumerate().map(|(i, t)| validated(NAME, &format!("type {i}"), t));
            let Some(first) = all.next() else {
                bail!(NAME, "There is no type to broadcast. Pass at least one.")
            };
            let (mut shape, mut dtype) = first?;
            for next in all {
                let next = next?;
                shape = shape::broadcast_shapes(&shape, &next.0)?;
                dtype = dtype.promote(next.1);
            }
            shape::check(NAME, &shape)?;
            Ok(fill(NAME, broadcast, tensor_type(&shape, dtype))?)
        })
    }
}
