//! One side of a comparison: a backend's table with its first device, called as the host would.

use std::ffi::{c_char, c_void};
use std::ptr::null_mut;
use ultramarine_abi::dlpack::{DLDevice, DLTensor};
use ultramarine_abi::schema::DTYPES;
use ultramarine_abi::*;

/// A tensor of a case: `bytes` is the whole buffer, strides and offset count elements.
#[derive(Clone, Debug)]
pub struct Operand {
    pub dtype: usize,
    pub bytes: Vec<u8>,
    pub shape: Vec<i64>,
    pub strides: Vec<i64>,
    pub offset: i64,
}

/// One command.
#[derive(Clone, Debug)]
pub struct Case {
    pub op: u32,
    pub attributes: Vec<u32>,
    pub inputs: Vec<Operand>,
    pub dtype: usize,
    pub shape: Vec<i64>,
    pub scalars: Vec<u64>,
}

pub fn row_major(shape: &[i64]) -> Vec<i64> {
    let mut strides = vec![1; shape.len()];
    for i in (1..shape.len()).rev() {
        strides[i - 1] = strides[i] * shape[i];
    }
    strides
}

pub fn size(dtype: usize) -> usize {
    DTYPES[dtype].1.bits as usize / 8
}

pub fn count(shape: &[i64]) -> usize {
    shape.iter().product::<i64>() as usize
}

impl Operand {
    /// The same values, row-major.
    pub fn contiguous(&self) -> Operand {
        let (n, width) = (count(&self.shape), size(self.dtype));
        let mut bytes = Vec::with_capacity(n * width);
        for i in 0..n {
            let (mut rest, mut at) = (i as i64, self.offset);
            for (extent, stride) in self.shape.iter().zip(&self.strides).rev() {
                at += rest % extent * stride;
                rest /= extent;
            }
            let at = at as usize * width;
            bytes.extend_from_slice(&self.bytes[at..at + width]);
        }
        Operand { bytes, strides: row_major(&self.shape), offset: 0, ..self.clone() }
    }

    /// An output that was not written yet.
    pub fn room(dtype: usize, shape: &[i64]) -> Operand {
        let (shape, strides) = (shape.to_vec(), row_major(shape));
        Operand { dtype, bytes: vec![0xAA; count(&shape) * size(dtype)], shape, strides, offset: 0 }
    }

    fn is_contiguous(&self) -> bool {
        let wanted = row_major(&self.shape);
        self.shape.iter().zip(&self.strides).zip(&wanted).all(|((n, s), w)| *n == 1 || s == w)
    }
}

/// What `prepare` learns of tensors.
pub fn describe(tensors: &[Operand]) -> Vec<TensorDesc> {
    tensors
        .iter()
        .map(|t| TensorDesc {
            size: size_of::<TensorDesc>() as u32,
            ndim: t.shape.len() as i32,
            dtype: DTYPES[t.dtype].1,
            layout: if t.is_contiguous() { 0 } else { 1 },
        })
        .collect()
}

unsafe extern "C" fn error_new(
    _: *mut c_void,
    _: Status,
    text: *const c_char,
    len: u64,
) -> *mut Error {
    // SAFETY: the backend's text of that length.
    let text = unsafe { std::slice::from_raw_parts(text as *const u8, len as usize) };
    Box::into_raw(Box::new(String::from_utf8_lossy(text).into_owned())) as *mut Error
}

unsafe extern "C" fn parallel_for(_: *mut c_void, n: u64, body: ParallelBody, cx: *mut c_void) {
    for i in 0..n {
        // SAFETY: the body takes every index below the count.
        unsafe { body(cx, i) };
    }
}

static HOST: HostTable = HostTable {
    size: size_of::<HostTable>() as u32,
    abi_major: ABI_MAJOR as u16,
    abi_minor: ABI_MINOR as u16,
    host: null_mut(),
    log: None,
    error_new: Some(error_new),
    alloc: None,
    free: None,
    parallel_for: Some(parallel_for),
    thread_count: None,
    error_command: None,
};

/// A table with its first device and a stream.
pub struct Side {
    pub table: BackendTable,
    pub device: *mut c_void,
    pub stream: *mut c_void,
}

/// What an error object says; empty when there is none.
pub fn words(error: *mut Error) -> String {
    if error.is_null() {
        return String::new();
    }
    // SAFETY: made by `error_new` above, taken once.
    *unsafe { Box::from_raw(error as *mut String) }
}

impl Side {
    pub fn new(init: BackendInit) -> Side {
        // SAFETY: all-zero is a valid table.
        let mut table: BackendTable = unsafe { std::mem::zeroed() };
        table.size = size_of::<BackendTable>() as u32;
        let (mut device, mut stream, mut error) = (null_mut(), null_mut(), null_mut());
        // SAFETY: both tables are valid and the host's is static; the functions are the table's.
        unsafe {
            let code = init(&HOST, &mut table, &mut error);
            assert_eq!(code, 0, "{}", words(error));
            let open = table.device_open.expect("device_open");
            let code = open(table.backend, 0, &mut device, &mut error);
            assert_eq!(code, 0, "{}", words(error));
            if let Some(create) = table.stream_create {
                assert_eq!(create(device, &mut stream, &mut error), 0, "{}", words(error));
            }
        }
        Side { table, device, stream }
    }

    /// A buffer with these bytes: its handle, or its address in host memory.
    pub fn upload(&self, bytes: &[u8]) -> *mut c_void {
        let Some(alloc) = self.table.buffer_alloc else {
            let words = vec![0u64; bytes.len().div_ceil(8).max(1)];
            let place = Box::leak(words.into_boxed_slice()).as_mut_ptr() as *mut u8;
            // SAFETY: room for the bytes was just made.
            unsafe { place.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
            return place as *mut c_void;
        };
        let (mut buffer, mut error) = (null_mut(), null_mut());
        // SAFETY: the device is open; the source has that many bytes.
        unsafe {
            let code = alloc(self.device, bytes.len() as u64, &mut buffer, &mut error);
            assert_eq!(code, 0, "{}", words(error));
            let copy = self.table.copy_to_device.expect("copy_to_device");
            let data = bytes.as_ptr() as *const c_void;
            let n = bytes.len() as u64;
            let code = copy(self.device, self.stream, buffer, 0, data, n, &mut error);
            assert_eq!(code, 0, "{}", words(error));
        }
        buffer
    }

    pub fn download(&self, buffer: *mut c_void, n: usize) -> Vec<u8> {
        let mut bytes = vec![0u8; n];
        let mut error = null_mut();
        match self.table.copy_to_host {
            // SAFETY: host memory of at least n bytes.
            None => unsafe { bytes.as_mut_ptr().copy_from_nonoverlapping(buffer as *const u8, n) },
            // SAFETY: the device's buffer; the target has room.
            Some(copy) => unsafe {
                let data = bytes.as_mut_ptr() as *mut c_void;
                let n = n as u64;
                let code = copy(self.device, self.stream, buffer, 0, data, n, &mut error);
                assert_eq!(code, 0, "{}", words(error));
            },
        }
        bytes
    }

    pub fn free(&self, buffer: *mut c_void) {
        // Without `buffer_alloc` it is no buffer but host memory of `upload`.
        if let (Some(_), Some(free)) = (self.table.buffer_alloc, self.table.buffer_free) {
            // SAFETY: a buffer of `upload`; downloads have waited for its use.
            unsafe { free(self.device, buffer) };
        }
    }

    fn tensor(&self, buffer: *mut c_void, bytes: usize, t: &Operand) -> Tensor {
        let host = self.table.buffer_alloc.is_none();
        Tensor {
            size: size_of::<Tensor>() as u32,
            flags: 0,
            dl: DLTensor {
                data: if host { buffer } else { null_mut() },
                device: DLDevice { device_type: self.table.device_type, device_id: 0 },
                ndim: t.shape.len() as i32,
                dtype: DTYPES[t.dtype].1,
                shape: t.shape.as_ptr() as *mut i64,
                strides: t.strides.as_ptr() as *mut i64,
                byte_offset: t.offset as u64 * size(t.dtype) as u64,
            },
            buffer: if host { null_mut() } else { buffer },
            buffer_size: bytes as u64,
            wait: null_mut(),
            wait_value: 0,
        }
    }

    /// The output's bytes; an error is the status with the words.
    pub fn run(&self, case: &Case) -> Result<Vec<u8>, (Status, String)> {
        let mut inputs = case.inputs.clone();
        let out = Operand::room(case.dtype, &case.shape);
        let outs = describe(std::slice::from_ref(&out));
        let (mut plan, mut error) = (null_mut(), null_mut());
        let prepare = self.table.prepare.expect("prepare");
        loop {
            let ins = describe(&inputs);
            // SAFETY: attributes, descriptions and places are valid.
            let code = unsafe {
                prepare(
                    self.device,
                    case.op,
                    1,
                    case.attributes.as_ptr() as *const c_void,
                    ins.as_ptr(),
                    ins.len() as u32,
                    outs.as_ptr(),
                    1,
                    &mut plan,
                    &mut error,
                )
            };
            let text = words(std::mem::replace(&mut error, null_mut()));
            if code == status::NEEDS_CONTIGUOUS && ins.iter().any(|d| d.layout != 0) {
                inputs = inputs.iter().map(Operand::contiguous).collect();
                continue;
            }
            if code != 0 {
                return Err((code, text));
            }
            break;
        }
        let outputs = self.submit(plan, &inputs, &[out], &case.scalars)?;
        outputs.into_iter().next().ok_or((status::ERROR, "no output".into()))
    }

    /// Runs a plan, which is released, and returns the outputs' bytes.
    pub fn submit(
        &self,
        plan: *mut c_void,
        inputs: &[Operand],
        outputs: &[Operand],
        scalars: &[u64],
    ) -> Result<Vec<Vec<u8>>, (Status, String)> {
        let upload = |list: &[Operand]| -> (Vec<*mut c_void>, Vec<Tensor>) {
            list.iter()
                .map(|t| {
                    let buffer = self.upload(&t.bytes);
                    (buffer, self.tensor(buffer, t.bytes.len(), t))
                })
                .unzip()
        };
        let (buffers, tensors) = upload(inputs);
        let (targets, results) = upload(outputs);
        let scalars: Vec<[u64; 2]> = scalars.iter().map(|s| [*s, 0]).collect();
        let mut command = Command {
            size: size_of::<Command>() as u32,
            flags: 0,
            plan,
            inputs: tensors.as_ptr(),
            outputs: results.as_ptr(),
            scalars: scalars.as_ptr(),
            n_inputs: tensors.len() as u32,
            n_outputs: results.len() as u32,
            n_scalars: scalars.len() as u32,
            tensor_stride: size_of::<Tensor>() as u32,
            workspace: null_mut(),
        };
        // SAFETY: the command is valid; the plan is this device's.
        let scratch =
            self.table.plan_workspace.map_or(0, |ask| unsafe { ask(self.device, plan, &command) });
        let scratch = (scratch > 0).then(|| self.upload(&vec![0x55; scratch as usize]));
        command.workspace = scratch.unwrap_or(null_mut());
        let (run, mut error) = (self.table.submit.expect("submit"), null_mut());
        // SAFETY: as above; the outputs have room.
        let code = unsafe { run(self.device, self.stream, &command, 1, &mut error) };
        let result = if code == 0 {
            let bytes = targets.iter().zip(outputs);
            Ok(bytes.map(|(b, t)| self.download(*b, t.bytes.len())).collect())
        } else {
            Err((code, words(error)))
        };
        for buffer in buffers.into_iter().chain(targets).chain(scratch) {
            self.free(buffer);
        }
        if let Some(release) = self.table.plan_release {
            // SAFETY: a plan of this device, given back once.
            unsafe { release(self.device, plan) };
        }
        result
    }
}
