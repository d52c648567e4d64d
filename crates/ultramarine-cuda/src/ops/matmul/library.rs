//! Calls of cuBLASLt: the library's handle on a device, and calls that are kept for reuse.

use super::gemm::{Gemm, MOST_BATCH, alignment, places};
use super::kernels::Addresses;
use crate::context::{self, Context};
use crate::launch::{Device, Dtype, Job};
use crate::sys::cublaslt::{
    self, Algorithm, Code, CublasLt, Found, Handle, OP_T, REDUCTION_COMPUTE_TYPE, attribute, code,
    compute, data,
};
use crate::sys::driver::StreamHandle;
use core::ffi::{CStr, c_int, c_void};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use ultramarine_abi::helper::{Failure, Level, Result};
use ultramarine_abi::{precision, status};

/// Maximum number of calls that a plan keeps.
const MOST_KEPT: usize = 256;

/// cuBLASLt on a device. It is opened at the first product.
pub struct Library {
    table: &'static CublasLt,
    handle: Handle,
    context: Arc<Context>,
}

// SAFETY: the library may be called from any thread, even with the same handle.
unsafe impl Send for Library {}
// SAFETY: as above.
unsafe impl Sync for Library {}

impl Library {
    /// The device's library, opened at first use with the device's context current. `None` if none
    /// works, which is logged once.
    pub fn of(device: &Device) -> Option<&Self> {
        let made = device.library.get_or_init(|| Box::new(Self::open(device)));
        made.downcast_ref::<Option<Self>>()?.as_ref()
    }

    fn open(device: &Device) -> Option<Self> {
        match Self::make(device) {
            Ok(library) => Some(library),
            Err(failure) => {
                let text = format!(
                    "{}. Products of matrices are made by slower kernels instead",
                    failure.text
                );
                device.host.log(Level::Info, &text);
                None
            }
        }
    }

    fn make(device: &Device) -> Result<Self> {
        let table = cublaslt::cublaslt().map_err(Failure::new)?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: the output pointer is valid.
        let mut create = || unsafe { (table.create)(&mut handle) };
        let mut result = create();
        if result == code::ALLOC_FAILED && device.allocator.spare() {
            result = create();
        }
        check(table, "cublasLtCreate", result)?;
        Ok(Self { table, handle, context: device.context.clone() })
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        if context::forked() {
            return;
        }
        if let Ok(_entered) = self.context.enter() {
            // SAFETY: made once, destroyed once; no call of this device is running.
            unsafe { (self.table.destroy)(self.handle) };
        }
    }
}

/// Converts the library's code to a result.
fn check(table: &CublasLt, call: &str, result: Code) -> Result<()> {
    if result == code::SUCCESS {
        return Ok(());
    }
    // SAFETY: the library returns a static text for every code.
    let text = unsafe { (table.status_text)(result).as_ref().map(|text| CStr::from_ptr(text)) };
    let text = text.map(CStr::to_string_lossy).unwrap_or_default();
    let text = format!("{call} failed with cuBLAS status {result} ({text})");
    match result {
        code::ALLOC_FAILED => Err(Failure { code: status::OUT_OF_MEMORY, text }),
        _ => Err(Failure::new(text)),
    }
}

/// A descriptor, and the function that destroys it.
struct Descriptor {
    handle: Handle,
    destroy: unsafe extern "C" fn(Handle) -> Code,
}

impl Descriptor {
    /// Makes a descriptor with one of the library's functions.
    fn made(
        code: Code,
        handle: Handle,
        destroy: unsafe extern "C" fn(Handle) -> Code,
    ) -> Option<Self> {
        (code == code::SUCCESS).then_some(Self { handle, destroy })
    }

    /// Sets an attribute; returns whether that was possible.
    fn set<T>(
        &self,
        function: unsafe extern "C" fn(Handle, c_int, *const c_void, usize) -> Code,
        attribute: c_int,
        value: T,
    ) -> Option<()> {
        // SAFETY: the value has the attribute's type, by `cublaslt::attribute`.
        let code =
            unsafe { function(self.handle, attribute, (&raw const value).cast(), size_of::<T>()) };
        (code == code::SUCCESS).then_some(())
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        // SAFETY: made once, destroyed once.
        unsafe { (self.destroy)(self.handle) };
    }
}

/// A call that is kept for reuse: its descriptors, the algorithm that the library chose, and the
/// workspace that the algorithm requires.
pub struct Call {
    operation: Descriptor,
    matrices: [Descriptor; 3],
    algorithm: Algorithm,
    workspace: usize,
}

// SAFETY: descriptors are plain data, which is not changed after this.
unsafe impl Send for Call {}
// SAFETY: as above.
unsafe impl Sync for Call {}

/// The key of calls with equal descriptors.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    sizes: [i64; 3],
    transpose: [bool; 2],
    ld: [i64; 3],
    count: i64,
    step: [i64; 3],
    alignment: [u32; 3],
}

/// How numbers of a dtype are multiplied, for float32 in a given precision: the dtype's code, the compute type,
/// and the dtype of the factors alpha and beta.
fn numbers(dtype: Dtype, code: u32) -> Option<(c_int, c_int, c_int)> {
    let f32_sums = match code {
        precision::HIGH => compute::F32_FAST_TF32,
        precision::MEDIUM => compute::F32_FAST_16BF,
        _ => compute::F32,
    };
    Some(match dtype {
        Dtype::Float32 => (data::R_32F, f32_sums, data::R_32F),
        Dtype::Float64 => (data::R_64F, compute::F64, data::R_64F),
        Dtype::Float16 => (data::R_16F, compute::F32, data::R_32F),
        Dtype::Bfloat16 => (data::R_16BF, compute::F32, data::R_32F),
        Dtype::Complex64 => (data::C_32F, compute::F32, data::C_32F),
        _ => return None,
    })
}

/// The steps of a product: the library's calls, and the offsets of operands' copies in the
/// workspace.
pub struct Steps {
    gemm: Gemm,
    /// One call for full shares of the batch, and one for the remainder.
    calls: [Option<Arc<Call>>; 2],
    /// Offsets of the copies of A and B in the workspace, in bytes.
    packs: [u64; 2],
    /// Offset of the library's own workspace.
    own: u64,
}

impl Steps {
    /// Bytes of workspace.
    pub fn workspace(&self) -> u64 {
        let own = self.calls.iter().flatten().map(|call| call.workspace as u64).max();
        self.own + own.unwrap_or(0)
    }
}

/// Products of one dtype and precision by cuBLASLt, with the algorithms that it chose for earlier
/// calls.
pub struct Products {
    dtype: Dtype,
    /// A code of [`precision`].
    precision: u32,
    pack: super::kernels::Packer,
    kept: Mutex<HashMap<Key, Option<Arc<Call>>>>,
}

impl Products {
    /// `None` if the library does not support such products.
    pub fn new(dtype: Dtype, precision: u32) -> Option<Self> {
        numbers(dtype, precision)?;
        let pack = super::kernels::Packer::new(dtype);
        Some(Self { dtype, precision, pack, kept: Mutex::default() })
    }

    /// The steps by which the library computes a product. `None` if it cannot. The device's context
    /// is current.
    pub fn steps(&self, device: &Device, gemm: Gemm, at: Addresses) -> Option<Steps> {
        let library = Library::of(device)?;
        let bytes = self.dtype.bytes();
        let (mut packs, mut own) = ([0; 2], 0);
        for (place, pack) in packs.iter_mut().zip(&gemm.packs) {
            if let Some(pack) = pack {
                *place = own;
                own += (pack.axes.len() * bytes).next_multiple_of(256);
            }
        }
        let at = if gemm.swapped { [at[1], at[0], at[2]] } else { at };
        let aligned = |t: usize| {
            // Copies have the workspace's alignment.
            let address = if t < 2 && gemm.packs[t].is_some() { 256 } else { at[t] };
            let outer = gemm.outer.stride[t][..gemm.outer.count].iter().copied();
            alignment(address, outer.chain([gemm.step[t]]), bytes)
        };
        let key = |count: i64| Key {
            sizes: [gemm.m, gemm.n, gemm.k],
            transpose: gemm.transpose,
            ld: gemm.ld,
            count,
            step: gemm.step,
            alignment: [aligned(0), aligned(1), aligned(2)],
        };
        let mut calls = [None, None];
        let rest = if gemm.count > MOST_BATCH { gemm.count % MOST_BATCH } else { 0 };
        for (place, count) in calls.iter_mut().zip([gemm.count.min(MOST_BATCH), rest]) {
            if count > 0 {
                *place = Some(self.call(device, library, key(count))?);
            }
        }
        Some(Steps { gemm, calls, packs, own })
    }

    /// The call for a key. The library is asked only once for each key.
    fn call(&self, device: &Device, library: &Library, key: Key) -> Option<Arc<Call>> {
        let mut kept = self.kept.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(call) = kept.get(&key) {
            return call.clone();
        }
        let call = self.make(device, library, &key).map(Arc::new);
        if call.is_none() {
            device.host.log(
                Level::Debug,
                &format!("cuBLASLt has no product of {} for {key:?}", self.dtype.name()),
            );
        }
        if kept.len() >= MOST_KEPT {
            kept.clear();
        }
        kept.insert(key, call.clone());
        call
    }

    fn make(&self, device: &Device, library: &Library, key: &Key) -> Option<Call> {
        let (table, [m, n, k]) = (library.table, key.sizes);
        let (element, sums, factor) = numbers(self.dtype, self.precision)?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: the output pointer is valid.
        let made = unsafe { (table.operation_create)(&mut handle, sums, factor) };
        let operation = Descriptor::made(made, handle, table.operation_destroy)?;
        for (which, transpose) in
            [attribute::MATMUL_TRANSA, attribute::MATMUL_TRANSB].into_iter().zip(key.transpose)
        {
            if transpose {
                operation.set(table.operation_set, which, OP_T)?;
            }
        }
        let transpose = |[rows, cols]: [i64; 2], transpose: bool| {
            if transpose { [cols, rows] } else { [rows, cols] }
        };
        let shapes =
            [transpose([m, k], key.transpose[0]), transpose([k, n], key.transpose[1]), [m, n]];
        let matrix = |t: usize| {
            let ([rows, cols], mut handle) = (shapes[t].map(|n| n as u64), std::ptr::null_mut());
            // SAFETY: the output pointer is valid.
            let made =
                unsafe { (table.layout_create)(&mut handle, element, rows, cols, key.ld[t]) };
            let matrix = Descriptor::made(made, handle, table.layout_destroy)?;
            if key.count > 1 {
                let count = i32::try_from(key.count).ok()?;
                matrix.set(table.layout_set, attribute::LAYOUT_BATCH_COUNT, count)?;
                matrix.set(table.layout_set, attribute::LAYOUT_BATCH_STEP, key.step[t])?;
            }
            Some(matrix)
        };
        let matrices = [matrix(0)?, matrix(1)?, matrix(2)?];
        let mut handle = std::ptr::null_mut();
        // SAFETY: the output pointer is valid.
        let made = unsafe { (table.preference_create)(&mut handle) };
        let preference = Descriptor::made(made, handle, table.preference_destroy)?;
        let prefer = table.preference_set;
        let most: u64 = if device.properties.major >= 9 { 32 << 20 } else { 4 << 20 };
        preference.set(prefer, attribute::PREFERENCE_WORKSPACE, most)?;
        if self.dtype.is_half() {
            // Partial sums must not be rounded to a half dtype.
            preference.set(prefer, attribute::PREFERENCE_REDUCTIONS, REDUCTION_COMPUTE_TYPE)?;
        }
        let [a, b, d] = key.alignment;
        for (i, alignment) in (0..).zip([a, b, d, d]) {
            preference.set(prefer, attribute::PREFERENCE_ALIGNMENT + i, alignment)?;
        }
        let (mut found, mut count) = (Found::default(), 0);
        let [a, b, d] = &matrices;
        // SAFETY: descriptors of this library; there is room for the one result that is requested.
        let code = unsafe {
            (table.find)(
                library.handle,
                operation.handle,
                a.handle,
                b.handle,
                d.handle,
                d.handle,
                preference.handle,
                1,
                &mut found,
                &mut count,
            )
        };
        let usable = code == code::SUCCESS && count > 0 && found.state == code::SUCCESS;
        usable.then_some(Call {
            operation,
            matrices,
            algorithm: found.algorithm,
            workspace: found.workspace,
        })
    }

    /// Enqueues a product, whose workspace begins at the given offset into the command's. Returns
    /// `false` if the library refused the first call; nothing was written then.
    pub fn run(&self, job: &Job<'_>, steps: &Steps, at: Addresses, skip: u64) -> Result<bool> {
        let Some(library) = Library::of(job.device) else { return Ok(false) };
        let (gemm, bytes) = (&steps.gemm, self.dtype.bytes());
        let scratch = if steps.workspace() > 0 { job.scratch()? + skip } else { 0 };
        let mut at = if gemm.swapped { [at[1], at[0], at[2]] } else { at };
        for (t, pack) in gemm.packs.iter().enumerate() {
            if let Some(pack) = pack {
                let to = scratch + steps.packs[t];
                self.pack.run(job, &pack.axes, at[t], to)?;
                at[t] = to;
            }
        }
        let mut is_first = true;
        for outer in places(&gemm.outer) {
            let mut first = 0;
            while first < gemm.count {
                let count = (gemm.count - first).min(MOST_BATCH);
                let is_rest = first > 0 && count < MOST_BATCH;
                let call = steps.calls[usize::from(is_rest)].as_deref();
                let call =
                    call.ok_or_else(|| Failure::new("a share of a batch without its call"))?;
                let place = |t: usize| {
                    let elements = outer[t] + first * gemm.step[t];
                    at[t].wrapping_add((elements as u64).wrapping_mul(bytes))
                };
                let addresses = [place(0), place(1), place(2)];
                let own = scratch + steps.own;
                let code = job.library(
                    |queue| self.enqueue(queue, library, call, addresses, own),
                    |code| *code == code::SUCCESS,
                )?;
                let refused =
                    matches!(code, code::INVALID_VALUE | code::ARCH_MISMATCH | code::NOT_SUPPORTED);
                if refused && is_first {
                    return Ok(false);
                }
                check(library.table, "cublasLtMatmul", code)
                    .map_err(|own| job.fault().unwrap_or(own))?;
                is_first = false;
                first += count;
            }
        }
        Ok(true)
    }

    fn enqueue(
        &self,
        queue: StreamHandle,
        library: &Library,
        call: &Call,
        at: Addresses,
        own: u64,
    ) -> Code {
        // The numbers 1 and 0 in the dtype of alpha and beta, which has at most 8 bytes.
        let one: [u8; 8] = match self.dtype {
            Dtype::Float64 => 1f64.to_ne_bytes(),
            _ => {
                let mut bytes = [0; 8];
                bytes[..4].copy_from_slice(&1f32.to_ne_bytes());
                bytes
            }
        };
        let (one, zero) = (u64::from_ne_bytes(one), 0u64);
        let pointer = |address: u64| address as usize as *const c_void;
        let own = if call.workspace > 0 { own } else { 0 };
        // SAFETY: descriptors of this library. The matrices that they describe lie inside the
        // command's tensors or its workspace, which is as large as the algorithm requires.
        unsafe {
            (library.table.multiply)(
                library.handle,
                call.operation.handle,
                (&raw const one).cast(),
                pointer(at[0]),
                call.matrices[0].handle,
                pointer(at[1]),
                call.matrices[1].handle,
                (&raw const zero).cast(),
                pointer(at[2]),
                call.matrices[2].handle,
                pointer(at[2]).cast_mut(),
                call.matrices[2].handle,
                &call.algorithm,
                pointer(own).cast_mut(),
                call.workspace,
                queue,
            )
        }
    }
}
