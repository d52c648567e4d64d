//! The C exchange API: a table of functions that belongs to a tensor type. With it, other libraries
//! take and make tensors of this type without Python calls.
//!
//! The type's attribute [`ATTRIBUTE`] is a capsule named [`CAPSULE`] with a [`DLPackExchangeAPI`],
//! which lives as long as the process.

use crate::{DLManagedTensorVersioned, DLPackVersion, DLTensor};
use core::ffi::{CStr, c_char, c_int, c_void};

/// The type's attribute (since DLPack 1.3).
pub const ATTRIBUTE: &CStr = c"__dlpack_c_exchange_api__";
/// The attribute's name in DLPack 1.2, where it had the table's address as an integer.
pub const ATTRIBUTE_1_2: &CStr = c"__c_dlpack_exchange_api__";
/// The name of the capsule.
pub const CAPSULE: &CStr = c"dlpack_exchange_api";

/// The fields that every version of [`DLPackExchangeAPI`] begins with.
#[repr(C)]
#[derive(Debug)]
pub struct DLPackExchangeAPIHeader {
    /// Version of the table. The reader must know its major version before it uses anything else.
    pub version: DLPackVersion,
    /// A table of an older version, or NULL.
    pub prev_api: *mut DLPackExchangeAPIHeader,
}

/// Reports an error to the requester of an allocation: the context that came with the request, the
/// name of a Python exception, and a message.
pub type SetError =
    unsafe extern "C" fn(context: *mut c_void, kind: *const c_char, message: *const c_char);

/// Makes a tensor with the shape, dtype and device of the prototype. It is called without the
/// interpreter's lock. Returns 0, or -1 after it has called `set_error`.
pub type ManagedTensorAllocator = unsafe extern "C" fn(
    prototype: *mut DLTensor,
    out: *mut *mut DLManagedTensorVersioned,
    error_context: *mut c_void,
    set_error: Option<SetError>,
) -> c_int;

/// Exports a Python object as a tensor, which the caller owns. Returns 0, or -1 with an exception
/// set.
pub type ManagedTensorFromPyObject =
    unsafe extern "C" fn(object: *mut c_void, out: *mut *mut DLManagedTensorVersioned) -> c_int;

/// Makes a Python object from a tensor and takes over the tensor. Returns 0, or -1 with an
/// exception set; then the caller still owns the tensor.
pub type ManagedTensorToPyObject =
    unsafe extern "C" fn(tensor: *mut DLManagedTensorVersioned, out: *mut *mut c_void) -> c_int;

/// Lends a Python object's tensor until control returns to the interpreter. Returns 0, or -1 with
/// an exception set.
pub type DLTensorFromPyObject =
    unsafe extern "C" fn(object: *mut c_void, out: *mut DLTensor) -> c_int;

/// Stores in `out_current_stream` the stream to which the library's work on a device goes. Returns
/// 0, or -1 with an exception set.
pub type CurrentWorkStream = unsafe extern "C" fn(
    device_type: i32,
    device_id: i32,
    out_current_stream: *mut *mut c_void,
) -> c_int;

/// The function table of a tensor type. None of the functions waits for streams: the caller orders
/// its work by [`CurrentWorkStream`].
#[repr(C)]
#[derive(Debug)]
pub struct DLPackExchangeAPI {
    /// Version and older tables.
    pub header: DLPackExchangeAPIHeader,
    /// Required.
    pub managed_tensor_allocator: Option<ManagedTensorAllocator>,
    /// Required.
    pub managed_tensor_from_py_object_no_sync: Option<ManagedTensorFromPyObject>,
    /// Required.
    pub managed_tensor_to_py_object_no_sync: Option<ManagedTensorToPyObject>,
    /// May be NULL.
    pub dltensor_from_py_object_no_sync: Option<DLTensorFromPyObject>,
    /// Required.
    pub current_work_stream: Option<CurrentWorkStream>,
}

// SAFETY: the tables are constants of a process: nothing in them changes.
unsafe impl Sync for DLPackExchangeAPI {}

#[cfg(target_pointer_width = "64")]
const _: () = {
    use core::mem::offset_of;
    assert!(size_of::<DLPackExchangeAPIHeader>() == 16);
    assert!(size_of::<DLPackExchangeAPI>() == 56);
    assert!(offset_of!(DLPackExchangeAPI, dltensor_from_py_object_no_sync) == 40);
};
