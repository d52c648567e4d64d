//! The other library of these tests: `foreign.c`, built and opened.

use crate::support::workshop;
use std::ffi::{CString, c_int, c_void};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use ultramarine::interchange::dlpack::{DLDataType, Description};
use ultramarine::interchange::{DLDevice, ManagedTensor};

type P = *mut c_void;

struct Library(P);
// SAFETY: handles of libraries may be used from any thread.
unsafe impl Send for Library {}
// SAFETY: as above.
unsafe impl Sync for Library {}

fn build() -> std::io::Result<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/integration/backends/opencl/dlpack/foreign.c");
    let name = format!("{}.so", workshop::fingerprint(std::slice::from_ref(&source), ())?);
    let kept = workshop::target().join("opencl-foreign").join(name);
    workshop::once(&kept, |own| {
        let mut cc = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()));
        cc.args(["-std=c11", "-O1", "-fPIC", "-shared", "-Wall", "-Wextra", "-Werror", "-o"]);
        workshop::run(cc.arg(own).arg(&source).arg("-lOpenCL"))
    })?;
    Ok(kept)
}

fn library() -> P {
    static OPENED: OnceLock<Library> = OnceLock::new();
    let open = || {
        let path = build().expect("the C compiler builds it");
        let path = CString::new(path.to_string_lossy().as_bytes()).unwrap();
        // SAFETY: a library of ours; the path is NUL-terminated.
        let opened = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        assert!(!opened.is_null(), "{path:?} does not open");
        Library(opened)
    };
    OPENED.get_or_init(open).0
}

macro_rules! functions {
    ($($name:ident($($arg:ident: $t:ty),*) $(-> $r:ty)?;)*) => {$(
        pub fn $name($($arg: $t),*) $(-> $r)? {
            let name = CString::new(concat!("foreign_", stringify!($name))).unwrap();
            // SAFETY: the function has this type by foreign.c, and the tests give it live
            // objects and memory of so many bytes.
            unsafe {
                let found = libc::dlsym(library(), name.as_ptr());
                assert!(!found.is_null(), "{name:?} is missing");
                std::mem::transmute::<P, unsafe extern "C" fn($($t),*) $(-> $r)?>(found)($($arg),*)
            }
        }
    )*};
}

functions! {
    context(memory: P) -> P;
    queue_context(queue: P) -> P;
    host_pointer(memory: P) -> P;
    other_context(first: P) -> P;
    queue(context: P) -> P;
    release_queue(queue: P);
    memory(context: P, bytes: usize) -> P;
    release(memory: P);
    write(queue: P, memory: P, offset: usize, bytes: usize, from: *const c_void) -> c_int;
    read(queue: P, memory: P, offset: usize, bytes: usize, to: *mut c_void) -> c_int;
    read_later(queue: P, memory: P, bytes: usize, to: *mut c_void) -> c_int;
    finish(queue: P) -> c_int;
    gate(context: P, queue: P) -> P;
    open(gate: P);
    fill_later(queue: P, memory: P, bytes: usize, value: f32) -> c_int;
}

/// Floats of a cl_mem.
pub fn floats(queue: P, memory: P, offset: usize, n: usize) -> Vec<f32> {
    let mut to = vec![0f32; n];
    assert_eq!(read(queue, memory, offset, 4 * n, to.as_mut_ptr().cast()), 0);
    to
}

/// Tensors that were given back.
pub static GIVEN_BACK: AtomicUsize = AtomicUsize::new(0);

/// Owns what a tensor stands on; the cl_mem, if it is one, goes with it.
struct Owner {
    memory: P,
    _host: Option<Box<[f32]>>,
}
// SAFETY: a cl_mem may be released by any thread.
unsafe impl Send for Owner {}
// SAFETY: as above.
unsafe impl Sync for Owner {}

impl Drop for Owner {
    fn drop(&mut self) {
        if !self.memory.is_null() {
            release(self.memory);
        }
        GIVEN_BACK.fetch_add(1, Ordering::SeqCst);
    }
}

pub const FLOAT: DLDataType = DLDataType { code: 2, bits: 32, lanes: 1 };

/// A tensor of a cl_mem, which it owns.
pub fn tensor(
    memory: P,
    device: DLDevice,
    shape: &[usize],
    strides: &[isize],
    byte_offset: u64,
    flags: u64,
) -> ManagedTensor {
    let owner = Owner { memory, _host: None };
    let description =
        Description { data: memory, device, dtype: FLOAT, shape, strides, byte_offset, flags };
    // SAFETY: the owner keeps the memory. Tests that lead out of it are refused.
    unsafe { ManagedTensor::new(owner, &description) }
}

/// A tensor of host memory, and the address of that.
pub fn host_tensor(data: &[f32], flags: u64) -> (ManagedTensor, *mut f32) {
    let mut host: Box<[f32]> = data.into();
    let address = host.as_mut_ptr();
    let owner = Owner { memory: std::ptr::null_mut(), _host: Some(host) };
    let description = Description {
        data: address.cast(),
        device: DLDevice { device_type: 1, device_id: 0 },
        dtype: FLOAT,
        shape: &[data.len()],
        strides: &[1],
        byte_offset: 0,
        flags,
    };
    // SAFETY: the owner keeps the memory.
    (unsafe { ManagedTensor::new(owner, &description) }, address)
}
