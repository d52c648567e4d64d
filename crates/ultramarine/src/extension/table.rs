//! The table of functions that extensions get.

use super::{apply, boundary::text, call, errors, handles, operations, provided, types};
use crate::{fast, sync::lock};
use core::ffi::{CStr, c_char, c_void};
use std::{ffi::CString, sync::Mutex};
use ultramarine_abi::extension::{EXTENSION_MAJOR, EXTENSION_MINOR, ExtensionHost};
use ultramarine_runtime::host_table::{parallel_for, thread_count};

/// Returns the functions that Ultramarine provides to extensions: one table, which lives as long as
/// the process.
pub fn host_table() -> &'static ExtensionHost {
    static TABLE: ExtensionHost = ExtensionHost {
        size: size_of::<ExtensionHost>() as u32,
        major: EXTENSION_MAJOR,
        minor: EXTENSION_MINOR,
        host: std::ptr::null_mut(),
        version: concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast(),
        error_new: Some(errors::error_new),
        error_code: Some(errors::error_code),
        error_text: Some(errors::error_text),
        error_free: Some(errors::error_free),
        array_retain: Some(handles::array_retain),
        array_release: Some(handles::array_release),
        array_type: Some(handles::array_type),
        array_place: Some(handles::array_place),
        array_eval: Some(handles::array_eval),
        array_view: Some(handles::array_view),
        array_from_bytes: Some(handles::array_from_bytes),
        array_full: Some(handles::array_full),
        promote_types: Some(types::promote_types),
        issubdtype: Some(types::issubdtype),
        broadcast_types: Some(types::broadcast_types),
        broadcast_arrays: Some(handles::broadcast_arrays),
        operation: Some(operations::operation),
        apply: Some(apply::apply),
        parallel_for: Some(parallel_for),
        thread_count: Some(thread_count),
        allocate: Some(call::allocate),
        take: Some(call::take),
        share: Some(call::share),
        enqueue: Some(call::enqueue),
        kernel: Some(call::kernel),
        kernel_properties: Some(call::kernel_properties),
        temporary: Some(call::temporary),
        contiguous: Some(call::contiguous),
        launch: Some(call::launch),
        prelude: Some(prelude),
        provide: Some(provided::provide),
    };
    &TABLE
}

/// The preludes that were requested, NUL-terminated.
static PRELUDES: Mutex<Vec<(&'static str, &'static CStr)>> = Mutex::new(Vec::new());

unsafe extern "C" fn prelude(_: *mut c_void, language: *const c_char) -> *const c_char {
    // SAFETY: NULL or a NUL-terminated text, by contract.
    let Ok(language) = (unsafe { text("prelude", "the language", language) }) else {
        return std::ptr::null();
    };
    let Some(text) = fast::prelude(language) else { return std::ptr::null() };
    let mut known = lock(&PRELUDES);
    if let Some((_, text)) = known.iter().find(|(t, _)| *t == text) {
        return text.as_ptr();
    }
    // The leak is bounded, because there are only a few languages.
    let Ok(made) = CString::new(text) else { return std::ptr::null() };
    let made: &'static CStr = Box::leak(made.into_boxed_c_str());
    known.push((text, made));
    made.as_ptr()
}
