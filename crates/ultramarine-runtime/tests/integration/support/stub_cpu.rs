//! A CPU backend without kernels, for this crate's own tests: one device, which opens and refuses all operations.

use core::ffi::{CStr, c_void};
use ultramarine_abi as abi;

const NAME: &CStr = c"stub";

/// Fills in the table.
///
/// # Safety
/// The host's place for a table.
pub unsafe extern "C" fn init(
    _host: *const abi::HostTable,
    table: *mut abi::BackendTable,
    _error: *mut *mut abi::Error,
) -> abi::Status {
    // SAFETY: all-zero is a valid table: no functions, NULL pointers.
    let mut own: abi::BackendTable = unsafe { core::mem::zeroed() };
    own.size = size_of::<abi::BackendTable>() as u32;
    own.abi_major = abi::ABI_MAJOR as u16;
    own.abi_minor = abi::ABI_MINOR as u16;
    own.name = NAME.as_ptr();
    own.device_type = abi::dlpack::device_type::CPU;
    own.device_count = Some(device_count);
    own.device_info = Some(device_info);
    own.device_open = Some(device_open);
    own.prepare = Some(prepare);
    own.submit = Some(submit);
    // SAFETY: the host's place for a table.
    unsafe { table.write(own) };
    abi::status::OK
}

unsafe extern "C" fn device_count(_backend: *mut c_void) -> u32 {
    1
}

unsafe extern "C" fn device_info(
    _backend: *mut c_void,
    _index: u32,
    info: *mut abi::DeviceInfo,
    _error: *mut *mut abi::Error,
) -> abi::Status {
    // SAFETY: the host's struct, all-zero but for its size.
    let info = unsafe { &mut *info };
    info.synchronous = 1;
    info.host_memory = 1;
    info.name = abi::inline_text("stub");
    abi::status::OK
}

unsafe extern "C" fn device_open(
    _backend: *mut c_void,
    _index: u32,
    device: *mut *mut c_void,
    _error: *mut *mut abi::Error,
) -> abi::Status {
    // SAFETY: the host's place for a handle, of which this backend needs none.
    unsafe { device.write(core::ptr::null_mut()) };
    abi::status::OK
}

unsafe extern "C" fn prepare(
    _device: *mut c_void,
    _op: abi::schema::OpId,
    _revision: u32,
    _attributes: *const c_void,
    _inputs: *const abi::TensorDesc,
    _n_inputs: u32,
    _outputs: *const abi::TensorDesc,
    _n_outputs: u32,
    _plan: *mut *mut c_void,
    _error: *mut *mut abi::Error,
) -> abi::Status {
    abi::status::UNSUPPORTED
}

unsafe extern "C" fn submit(
    _device: *mut c_void,
    _stream: *mut c_void,
    _commands: *const abi::Command,
    _count: u32,
    _error: *mut *mut abi::Error,
) -> abi::Status {
    abi::status::UNSUPPORTED
}
