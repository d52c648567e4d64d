//! Tensors there and back between Rust and C, and Rust and C++, by `ultramarine/dlpack.h`.

use crate::compile;
use libloading::Library;
use std::ffi::{CStr, c_char, c_void};
use std::ptr::{null, null_mut};
use std::sync::Arc;
use ultramarine_abi::dlpack::{
    DLDataType, DLDevice, DLManagedTensor, DLManagedTensorVersioned, DLTensor, Description,
    Invalid, ManagedTensor, device_type, exchange::DLPackExchangeAPI, flag, type_code,
};

const FLOAT64: DLDataType = DLDataType { code: type_code::FLOAT, bits: 64, lanes: 1 };
const CPU: DLDevice = DLDevice { device_type: device_type::CPU, device_id: 0 };

/// The other side, whichever language it is in.
struct Other {
    make: unsafe extern "C" fn(i64, i64) -> *mut DLManagedTensorVersioned,
    make_legacy: unsafe extern "C" fn(i64, i64) -> *mut DLManagedTensor,
    deleted: unsafe extern "C" fn() -> i32,
    consume: unsafe extern "C" fn(*mut DLManagedTensorVersioned) -> f64,
    consume_legacy: unsafe extern "C" fn(*mut DLManagedTensor) -> f64,
    table: unsafe extern "C" fn() -> *const DLPackExchangeAPI,
    _library: Library,
}

impl Other {
    fn open(source: &str, name: &str) -> Other {
        let path = compile::library(&format!("dlpack/{source}"), name, &[]);
        // SAFETY: a library of this repository; its functions have these types.
        unsafe {
            let library = Library::new(path).unwrap();
            Other {
                make: *library.get(b"make\0").unwrap(),
                make_legacy: *library.get(b"make_legacy\0").unwrap(),
                deleted: *library.get(b"deleted\0").unwrap(),
                consume: *library.get(b"consume\0").unwrap(),
                consume_legacy: *library.get(b"consume_legacy\0").unwrap(),
                table: *library.get(b"table\0").unwrap(),
                _library: library,
            }
        }
    }

    fn deleted(&self) -> i32 {
        // SAFETY: it reads a number.
        unsafe { (self.deleted)() }
    }
}

#[test]
fn there_and_back_with_c() {
    all(&Other::open("in_c.c", "dlpack-in-c"));
}

#[test]
fn there_and_back_with_cpp() {
    all(&Other::open("in_cpp.cpp", "dlpack-in-cpp"));
}

fn all(other: &Other) {
    theirs(other);
    ours(other);
    back_where_it_came_from(other);
    exchange(other);
}

/// Elements by rows, read by what the header says.
fn numbers(tensor: &ManagedTensor) -> Vec<f64> {
    let first = tensor.tensor().data.cast::<f64>();
    let (step, rotation) = (tensor.stride(0).unwrap(), tensor.stride(1).unwrap());
    let indices = (0..tensor.size(0)).flat_map(|i| (0..tensor.size(1)).map(move |j| (i, j)));
    // SAFETY: within what the other side made.
    indices
        .map(|(i, j)| unsafe { *first.offset(i as isize * step + j as isize * rotation) })
        .collect()
}

/// Rust takes what the other side makes, and deletes it.
fn theirs(other: &Other) {
    let before = other.deleted();
    // SAFETY: the other side's tensors are whole, and taken once.
    let (new, old) = unsafe {
        let new = ManagedTensor::from_versioned((other.make)(2, 3)).unwrap();
        (new, ManagedTensor::from_legacy((other.make_legacy)(2, 3)).unwrap())
    };
    assert!(new.0.is_copied() && !new.0.is_read_only() && !old.0.is_copied());
    for (tensor, found) in [&new, &old] {
        assert_eq!((tensor.dtype(), tensor.device()), (FLOAT64, CPU));
        assert_eq!((tensor.size(0), tensor.size(1)), (2, 3));
        assert_eq!((tensor.stride(0), tensor.stride(1)), (Some(1), Some(2)));
        assert_eq!((found.elements, found.bytes, found.contiguous), (6, 48, false));
        assert_eq!(numbers(tensor), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    }
    assert_eq!(other.deleted(), before);
    std::thread::spawn(move || drop(new)).join().unwrap();
    assert_eq!(other.deleted(), before + 1);
    drop(old);
    assert_eq!(other.deleted(), before + 2);

    // One that is refused stays theirs until it is given back.
    // SAFETY: as above.
    unsafe {
        let made = (other.make)(2, 3);
        (*made).version.major = 2;
        let error = ManagedTensor::from_versioned(made).unwrap_err();
        assert_eq!(error, Invalid::Version { major: 2, minor: 3 });
        assert_eq!(other.deleted(), before + 2);
        ManagedTensor::discard_versioned(made);
    }
    assert_eq!(other.deleted(), before + 3);
}

/// The other side reads what Rust makes, writes it, and deletes it.
fn ours(other: &Other) {
    let memory: Arc<[std::cell::UnsafeCell<f64>]> = (0..8).map(|i| f64::from(i).into()).collect();
    /// Keeps the numbers; only one side uses them at a time.
    struct Owner(#[allow(dead_code)] Arc<[std::cell::UnsafeCell<f64>]>);
    // SAFETY: the test waits for the other side.
    unsafe impl Send for Owner {}
    // SAFETY: as above.
    unsafe impl Sync for Owner {}

    // Backwards in the second dimension, from the third number on: 3 2, 5 4, 7 6 ...
    let mut description = Description {
        data: memory[0].get().cast(),
        device: CPU,
        dtype: FLOAT64,
        shape: &[2, 2],
        strides: &[2, -1],
        byte_offset: 24,
        flags: 0,
    };
    let value = |i: usize| {
        // SAFETY: nobody else uses it now.
        unsafe { *memory[i].get() }
    };
    let owner = || Owner(Arc::clone(&memory));
    // SAFETY: the owner keeps the memory; the other side deletes what it is given.
    unsafe {
        let tensor = ManagedTensor::new(owner(), &description).into_versioned().unwrap();
        assert_eq!(Arc::strong_count(&memory), 2);
        assert_eq!((other.consume)(tensor.as_ptr()), 3.0 + 2.0 + 5.0 + 4.0);
        assert_eq!(Arc::strong_count(&memory), 1);
        assert_eq!([1, 2, 5, 6].map(value), [1.0, 0.0, 0.0, 6.0]);

        (description.strides, description.byte_offset) = (&[6, 1], 0);
        let tensor = ManagedTensor::new_legacy(owner(), &description).into_legacy().unwrap();
        assert_eq!((other.consume_legacy)(tensor.as_ptr()), 0.0 + 1.0 + 6.0 + 7.0);
        assert_eq!(Arc::strong_count(&memory), 1);
        assert_eq!([0, 1, 6, 7].map(value), [0.0; 4]);

        // What must not be written is not.
        description.flags = flag::READ_ONLY;
        let tensor = ManagedTensor::new(owner(), &description).into_versioned().unwrap();
        assert_eq!((other.consume)(tensor.as_ptr()), -1.0);
        assert_eq!(Arc::strong_count(&memory), 1);
    }
}

/// Theirs, taken by Rust, given on as a tensor of Rust's, and consumed by them.
fn back_where_it_came_from(other: &Other) {
    let before = other.deleted();
    // SAFETY: whole tensors, each taken once; the first owns the memory of the second.
    unsafe {
        let (theirs, _) = ManagedTensor::from_versioned((other.make)(2, 3)).unwrap();
        let description = Description {
            data: theirs.tensor().data,
            device: theirs.device(),
            dtype: theirs.dtype(),
            shape: &[3, 2],
            strides: &[2, 1],
            byte_offset: 0,
            flags: theirs.flags(),
        };
        let ours = ManagedTensor::new(theirs, &description).into_versioned().unwrap();
        assert_eq!(other.deleted(), before);
        assert_eq!((other.consume)(ours.as_ptr()), 15.0);
    }
    assert_eq!(other.deleted(), before + 1);
}

/// The table of functions means the same on both sides.
fn exchange(other: &Other) {
    unsafe extern "C" fn set_error(context: *mut c_void, kind: *const c_char, text: *const c_char) {
        // SAFETY: the context is the test's, the texts are the other side's.
        unsafe {
            let reported =
                [kind, text].map(|t| CStr::from_ptr(t).to_str().unwrap_or("").to_owned());
            *context.cast::<Vec<String>>() = reported.to_vec();
        }
    }

    let before = other.deleted();
    // SAFETY: a table that lives as long as the library.
    let table = unsafe { &*(other.table)() };
    assert_eq!((table.header.version.major, table.header.version.minor), (1, 3));
    assert!(table.header.prev_api.is_null());
    assert!(table.dltensor_from_py_object_no_sync.is_none());

    let mut shape = [4i64, 5];
    let mut prototype = DLTensor {
        data: null_mut(),
        device: CPU,
        ndim: 2,
        dtype: FLOAT64,
        shape: shape.as_mut_ptr(),
        strides: null_mut(),
        byte_offset: 0,
    };
    let allocate = table.managed_tensor_allocator.unwrap();
    let (mut out, mut reported) = (null_mut(), Vec::<String>::new());
    let context = (&raw mut reported).cast();
    // SAFETY: the table's functions, with what they want.
    unsafe {
        assert_eq!(allocate(&mut prototype, &mut out, context, Some(set_error)), 0);
        let (tensor, found) = ManagedTensor::from_versioned(out).unwrap();
        assert_eq!((tensor.size(0), tensor.size(1), found.elements), (4, 5, 20));
        drop(tensor);
        prototype.ndim = 1;
        assert_eq!(allocate(&mut prototype, &mut out, context, Some(set_error)), -1);
        assert_eq!(reported, ["BufferError", "matrices on the CPU only"]);

        let mut stream = null::<c_void>().wrapping_add(1).cast_mut();
        let current = table.current_work_stream.unwrap();
        assert_eq!(current(device_type::CPU, 0, &mut stream), 0);
        assert!(stream.is_null());
        assert_eq!(current(device_type::CUDA, 0, &mut stream), -1);
        let (mut object, mut tensor) = (null_mut(), null_mut());
        assert_eq!(
            table.managed_tensor_from_py_object_no_sync.unwrap()(null_mut(), &mut tensor),
            -1
        );
        assert_eq!(table.managed_tensor_to_py_object_no_sync.unwrap()(null_mut(), &mut object), -1);
    }
    assert_eq!(other.deleted(), before + 1);
}
