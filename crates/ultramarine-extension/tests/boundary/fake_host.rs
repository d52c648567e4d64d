//! A fake host: arrays are vectors of bytes, and a primitive that is applied is kept for the test to call its rules. It
//! counts what is alive, and does no arithmetic.

use std::cell::{Cell, RefCell};
use std::ffi::{CStr, c_char, c_void};
use std::ptr::{null, null_mut};
use ultramarine_extension::abi::{
    Error as RawError, MAX_NDIM, ParallelBody, Status,
    dlpack::DLDataType,
    extension::{
        ArrayHandle, Attribute, Dispatch, EXTENSION_MAJOR, EXTENSION_MINOR, EvalCall,
        ExtensionHost, KernelHandle, KernelProperties, KernelText, PlaceCode, Primitive, Task,
        TaskDrop, TensorType, View, view,
    },
    status,
};

/// Handles and errors that exist. Tests of one thread see their own.
pub struct Counts {
    pub arrays: Cell<i64>,
    pub errors: Cell<i64>,
    pub enqueued: Cell<i64>,
}

thread_local! {
    pub static ALIVE: Counts =
        const { Counts { arrays: Cell::new(0), errors: Cell::new(0), enqueued: Cell::new(0) } };
    /// What was asked of the device, in words.
    pub static ASKED: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
    /// What was applied last.
    pub static APPLIED: Cell<Option<Primitive>> = const { Cell::new(None) };
    /// Loops that were handed to the fake host's threads.
    pub static LOOPS: Cell<i64> = const { Cell::new(0) };
}

#[derive(Clone)]
pub struct FakeArray {
    pub shape: Vec<i64>,
    pub strides: Vec<i64>,
    pub dtype: DLDataType,
    pub data: Vec<u64>,
    /// Bytes before the element with index 0.
    pub first: usize,
}

struct FakeError(Status, String);

fn count(of: impl Fn(&Counts) -> &Cell<i64>, by: i64) {
    ALIVE.with(|alive| of(alive).set(of(alive).get() + by));
}

fn give(array: FakeArray) -> *mut ArrayHandle {
    count(|c| &c.arrays, 1);
    Box::into_raw(Box::new(array)).cast()
}

unsafe fn get<'a>(array: *const ArrayHandle) -> &'a FakeArray {
    // SAFETY: tests hand in the host's own handles.
    unsafe { &*array.cast::<FakeArray>() }
}

unsafe extern "C" fn error_new(
    _: *mut c_void,
    code: Status,
    text: *const c_char,
    length: u64,
) -> *mut RawError {
    count(|c| &c.errors, 1);
    // SAFETY: as many bytes as said.
    let bytes = unsafe { std::slice::from_raw_parts(text.cast::<u8>(), length as usize) };
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    Box::into_raw(Box::new(FakeError(code, text))).cast()
}

unsafe extern "C" fn error_code(_: *mut c_void, error: *const RawError) -> Status {
    // SAFETY: the host's own error.
    unsafe { (*error.cast::<FakeError>()).0 }
}

unsafe extern "C" fn error_text(
    _: *mut c_void,
    error: *const RawError,
    length: *mut u64,
) -> *const c_char {
    // SAFETY: the host's own error; the place is writable.
    unsafe {
        let text = &(*error.cast::<FakeError>()).1;
        *length = text.len() as u64;
        text.as_ptr().cast()
    }
}

unsafe extern "C" fn error_free(_: *mut c_void, error: *mut RawError) {
    count(|c| &c.errors, -1);
    // SAFETY: the host's own error.
    drop(unsafe { Box::from_raw(error.cast::<FakeError>()) });
}

/// Takes over an error: its code and text.
pub unsafe fn take_error(error: *mut RawError) -> Option<(Status, String)> {
    if error.is_null() {
        return None;
    }
    count(|c| &c.errors, -1);
    // SAFETY: the host's own error.
    let error = unsafe { Box::from_raw(error.cast::<FakeError>()) };
    Some((error.0, error.1.clone()))
}

unsafe extern "C" fn array_retain(_: *mut c_void, array: *const ArrayHandle) -> *mut ArrayHandle {
    // SAFETY: the host's own handle.
    give(unsafe { get(array) }.clone())
}

unsafe extern "C" fn array_release(_: *mut c_void, array: *mut ArrayHandle) {
    if !array.is_null() {
        count(|c| &c.arrays, -1);
        // SAFETY: the host's own handle.
        drop(unsafe { Box::from_raw(array.cast::<FakeArray>()) });
    }
}

unsafe extern "C" fn array_type(
    _: *mut c_void,
    array: *const ArrayHandle,
    to: *mut TensorType,
) -> Status {
    // SAFETY: the host's own handle; a struct of this size.
    unsafe {
        let array = get(array);
        (*to).ndim = array.shape.len() as i32;
        (*to).dtype = array.dtype;
        (&mut (*to).shape)[..array.shape.len()].copy_from_slice(&array.shape);
    }
    status::OK
}

unsafe extern "C" fn array_view(
    _: *mut c_void,
    array: *const ArrayHandle,
    to: *mut View,
    _: *mut *mut RawError,
) -> Status {
    // SAFETY: the host's own handle; a struct of this size.
    unsafe {
        *to = view_of(get(array), 0);
    }
    status::OK
}

pub fn view_of(array: &FakeArray, flags: u32) -> View {
    View {
        size: size_of::<View>() as u32,
        flags,
        data: array.data.as_ptr().wrapping_byte_add(array.first).cast_mut().cast(),
        shape: array.shape.as_ptr(),
        strides: array.strides.as_ptr(),
        elements: array.shape.iter().product(),
        ndim: array.shape.len() as i32,
        dtype: array.dtype,
    }
}

unsafe extern "C" fn array_from_bytes(
    _: *mut c_void,
    of: *const TensorType,
    data: *const c_void,
    bytes: u64,
    array: *mut *mut ArrayHandle,
    _: *mut *mut RawError,
) -> Status {
    // SAFETY: structs, bytes and place as said.
    unsafe {
        let shape = (&(*of).shape)[..(*of).ndim as usize].to_vec();
        let mut made = vec![0u64; (bytes as usize).div_ceil(8)];
        std::ptr::copy_nonoverlapping(data.cast::<u8>(), made.as_mut_ptr().cast(), bytes as usize);
        let mut strides = vec![1; shape.len()];
        for i in (1..shape.len()).rev() {
            strides[i - 1] = strides[i] * shape[i];
        }
        *array = give(FakeArray { shape, strides, dtype: (*of).dtype, data: made, first: 0 });
    }
    status::OK
}

unsafe extern "C" fn operation(
    _: *mut c_void,
    name: *const c_char,
    inputs: *const *mut ArrayHandle,
    n_inputs: u32,
    attributes: *const Attribute,
    n_attributes: u32,
    place: *const PlaceCode,
    results: *mut *mut ArrayHandle,
    n_results: u32,
    error: *mut *mut RawError,
) -> Status {
    // SAFETY: texts, structs and places as said.
    unsafe {
        let name = CStr::from_ptr(name).to_str().unwrap();
        if name == "nothing" {
            return status::UNSUPPORTED;
        }
        if name == "refuse" {
            let attributes: Vec<_> =
                (0..n_attributes as usize).map(|i| *attributes.add(i)).collect();
            let names = attributes.iter().map(|a| {
                let name = CStr::from_ptr(a.name).to_str().unwrap();
                let ints: Vec<_> = (0..a.count as usize).map(|i| *a.integers.add(i)).collect();
                match a.kind {
                    0 => format!("{name}={}", a.integer),
                    1 => format!("{name}={}", a.real),
                    2 => format!("{name}={ints:?}"),
                    3 => format!("{name}={}/{}", a.dtype.code, a.dtype.bits),
                    _ => format!("{name}={}", CStr::from_ptr(a.text).to_str().unwrap()),
                }
            });
            let names: Vec<_> = names.collect();
            let text = format!("{n_inputs} {} {}", names.join(" "), place.is_null());
            *error =
                error_new(null_mut(), status::INVALID, text.as_ptr().cast(), text.len() as u64);
            return status::INVALID;
        }
        // Others give their first operand back, as often as asked.
        for i in 0..n_results as usize {
            *results.add(i) = array_retain(null_mut(), *inputs);
        }
    }
    status::OK
}

unsafe extern "C" fn apply(
    _: *mut c_void,
    primitive: *const Primitive,
    inputs: *const *mut ArrayHandle,
    _: u32,
    _: *const PlaceCode,
    outputs: *mut *mut ArrayHandle,
    _: *mut *mut RawError,
) -> Status {
    // SAFETY: structs and places as said.
    unsafe {
        APPLIED.set(Some(*primitive));
        for i in 0..(*primitive).n_outputs as usize {
            *outputs.add(i) = array_retain(null_mut(), *inputs);
        }
    }
    status::OK
}

unsafe extern "C" fn parallel_for(
    _: *mut c_void,
    count: u64,
    body: ParallelBody,
    context: *mut c_void,
) {
    LOOPS.set(LOOPS.get() + 1);
    let context = context as usize;
    std::thread::scope(|scope| {
        for thread in 0..2 {
            scope.spawn(move || {
                for i in (thread..count).step_by(2) {
                    // SAFETY: the body's context lives until all are done.
                    unsafe { body(context as *mut c_void, i) };
                }
            });
        }
    });
}

unsafe extern "C" fn thread_count(_: *mut c_void) -> u32 {
    2
}

/// What `host_call` points at.
pub struct FakeCall {
    /// Memory of outputs without one.
    pub outputs: Vec<FakeArray>,
    pub inputs: Vec<FakeArray>,
    /// Operands that may be taken.
    pub takes: Vec<bool>,
    pub tasks: Vec<(Task, Option<TaskDrop>, *mut c_void)>,
    /// Of kernels.
    pub languages: &'static CStr,
}

unsafe extern "C" fn allocate(
    call: *mut c_void,
    output: u32,
    strides: *const i64,
    to: *mut View,
    _: *mut *mut RawError,
) -> Status {
    // SAFETY: the test's own call; strides and place as said.
    unsafe {
        ask(format!("allocate {output}"));
        let output = &mut (&mut (*call.cast::<FakeCall>()).outputs)[output as usize];
        let elements: i64 = output.shape.iter().product();
        output.data = vec![0; elements as usize];
        if !strides.is_null() {
            output.strides = std::slice::from_raw_parts(strides, output.shape.len()).to_vec();
        }
        if !to.is_null() {
            *to = view_of(output, view::ROW_CONTIGUOUS);
        }
    }
    status::OK
}

unsafe extern "C" fn take(
    call: *mut c_void,
    _: u32,
    input: u32,
    to: *mut View,
    _: *mut *mut RawError,
) -> Status {
    // SAFETY: the test's own call.
    unsafe {
        let call = &mut *call.cast::<FakeCall>();
        if !call.takes[input as usize] {
            return status::UNSUPPORTED;
        }
        *to = view_of(&call.inputs[input as usize], view::ROW_CONTIGUOUS);
    }
    status::OK
}

unsafe extern "C" fn enqueue(
    call: *mut c_void,
    task: Task,
    drop: Option<TaskDrop>,
    context: *mut c_void,
    _: *mut *mut RawError,
) -> Status {
    // SAFETY: the test's own call.
    unsafe { (*call.cast::<FakeCall>()).tasks.push((task, drop, context)) };
    count(|c| &c.enqueued, 1);
    status::OK
}

fn ask(what: String) {
    ASKED.with(|asked| asked.borrow_mut().push(what));
}

unsafe extern "C" fn kernel(
    _: *mut c_void,
    text: *const KernelText,
    kernel: *mut *mut KernelHandle,
    error: *mut *mut RawError,
) -> Status {
    // SAFETY: texts and place as said.
    unsafe {
        let read = |text: *const c_char| match text.is_null() {
            true => "-".to_owned(),
            false => CStr::from_ptr(text).to_str().unwrap().to_owned(),
        };
        let t = *text;
        let arguments: Vec<_> = (0..t.n_template_arguments as usize)
            .map(|i| read(*t.template_arguments.add(i)))
            .collect();
        if t.source_bytes > 0 {
            let code = std::slice::from_raw_parts(t.source.cast::<u8>(), t.source_bytes as usize);
            ask(format!("{} {} of {code:?}", read(t.language), read(t.entry)));
            *kernel = 8 as *mut KernelHandle;
            return status::OK;
        }
        if read(t.source) == "wrong" {
            *error = error_new(null_mut(), status::ERROR, c"line 1".as_ptr(), 6);
            return status::ERROR;
        }
        ask(format!("{} {} {arguments:?} {}", read(t.language), read(t.entry), read(t.options)));
        *kernel = 8 as *mut KernelHandle;
    }
    status::OK
}

unsafe extern "C" fn kernel_properties(
    _: *mut c_void,
    _: *mut KernelHandle,
    properties: *mut KernelProperties,
    _: *mut *mut RawError,
) -> Status {
    // SAFETY: a struct of this size.
    unsafe {
        (*properties).max_group = 64;
    }
    status::OK
}

unsafe extern "C" fn temporary(
    _: *mut c_void,
    bytes: u64,
    number: *mut u32,
    _: *mut *mut RawError,
) -> Status {
    ask(format!("temporary of {bytes}"));
    // SAFETY: a place.
    unsafe { *number = 5 };
    status::OK
}

unsafe extern "C" fn contiguous(
    call: *mut c_void,
    input: u32,
    to: *mut View,
    _: *mut *mut RawError,
) -> Status {
    ask(format!("contiguous {input}"));
    // SAFETY: the test's own call; a struct of this size.
    unsafe {
        let input = &mut (&mut (*call.cast::<FakeCall>()).inputs)[input as usize];
        for i in (0..input.shape.len()).rev() {
            input.strides[i] = input.shape[i + 1..].iter().product();
        }
        *to = view_of(input, view::ROW_CONTIGUOUS);
    }
    status::OK
}

unsafe extern "C" fn launch(
    _: *mut c_void,
    kernel: *mut KernelHandle,
    dispatch: *const Dispatch,
    _: *mut *mut RawError,
) -> Status {
    // SAFETY: structs as said.
    unsafe {
        let d = *dispatch;
        let bindings = (0..d.n_bindings as usize).map(|i| {
            let at = d.bindings.wrapping_byte_add(i * d.binding_stride as usize);
            let b = *at;
            match b.kind {
                0 => format!("input {}", b.index),
                1 => format!("output {}", b.index),
                2 => format!("temporary {}", b.index),
                3 => format!("{}/{} {:x}", b.dtype.code, b.dtype.bits, b.scalar[0]),
                _ => {
                    let bytes =
                        std::slice::from_raw_parts(b.constants.cast::<u8>(), b.bytes as usize);
                    format!("{bytes:?}")
                }
            }
        });
        let bindings: Vec<_> = bindings.collect();
        let (kernel, all) = (kernel as usize, bindings.join(", "));
        ask(format!("launch {kernel}: {all}; {:?} {:?} {}", d.grid, d.group, d.shared_bytes));
    }
    status::OK
}

/// The table, in which functions that no test needs are missing.
pub fn table() -> ExtensionHost {
    ExtensionHost {
        size: size_of::<ExtensionHost>() as u32,
        major: EXTENSION_MAJOR,
        minor: EXTENSION_MINOR,
        host: null_mut(),
        version: c"0.0-fake".as_ptr(),
        error_new: Some(error_new),
        error_code: Some(error_code),
        error_text: Some(error_text),
        error_free: Some(error_free),
        array_retain: Some(array_retain),
        array_release: Some(array_release),
        array_type: Some(array_type),
        array_place: None,
        array_eval: None,
        array_view: Some(array_view),
        array_from_bytes: Some(array_from_bytes),
        array_full: None,
        promote_types: None,
        issubdtype: None,
        broadcast_types: None,
        broadcast_arrays: None,
        operation: Some(operation),
        apply: Some(apply),
        parallel_for: Some(parallel_for),
        thread_count: Some(thread_count),
        allocate: Some(allocate),
        take: Some(take),
        share: None,
        enqueue: Some(enqueue),
        kernel: Some(kernel),
        kernel_properties: Some(kernel_properties),
        temporary: Some(temporary),
        contiguous: Some(contiguous),
        launch: Some(launch),
        prelude: None,
        provide: None,
    }
}

/// Connects the SDK to it.
pub fn connect() {
    let table: &'static ExtensionHost = Box::leak(Box::new(table()));
    ultramarine_extension::connect(table).unwrap();
}

/// Types as they cross the boundary.
pub fn raw_type(shape: &[i64], dtype: DLDataType) -> TensorType {
    let mut to = TensorType {
        size: size_of::<TensorType>() as u32,
        ndim: shape.len() as i32,
        dtype,
        reserved: 0,
        shape: [0; MAX_NDIM],
    };
    to.shape[..shape.len()].copy_from_slice(shape);
    to
}

/// Calls `run` with a call about these arrays. Outputs without data have no memory.
pub fn with_call<R>(call: &mut FakeCall, run: impl FnOnce(&EvalCall) -> R) -> R {
    let flags = |i: usize| if call.takes[i] { view::MAY_TAKE } else { 0 };
    let inputs: Vec<_> =
        call.inputs.iter().enumerate().map(|(i, a)| view_of(a, flags(i))).collect();
    let outputs: Vec<_> = call
        .outputs
        .iter()
        .map(|a| {
            let data =
                if a.data.is_empty() { null_mut() } else { a.data.as_ptr().cast_mut().cast() };
            View { data, ..view_of(a, 0) }
        })
        .collect();
    run(&EvalCall {
        size: size_of::<EvalCall>() as u32,
        n_inputs: inputs.len() as u32,
        n_outputs: outputs.len() as u32,
        view_stride: size_of::<View>() as u32,
        inputs: inputs.as_ptr(),
        outputs: if outputs.is_empty() { null() } else { outputs.as_ptr() },
        languages: call.languages.as_ptr(),
        host_call: (&raw mut *call).cast(),
    })
}
