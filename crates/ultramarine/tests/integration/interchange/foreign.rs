//! Fabricated tensors, as another library would make them.

use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use ultramarine::interchange::dlpack::{
    DLDataType, DLDevice, DLManagedTensor, DLManagedTensorVersioned, DLPackVersion, DLTensor,
    ManagedTensor, device_type,
};
use ultramarine::{Dtype, Element};

/// Memory that outlives the tensors over it: the tests look at it when these are gone.
pub struct Memory {
    start: *mut u8,
    bytes: usize,
}

// SAFETY: the tests write to it from one thread at a time.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    pub fn new(bytes: &[u8]) -> Arc<Memory> {
        // Words, so that it is aligned for all dtypes; some more, so that it may be shifted.
        let words: Box<[u128]> = vec![0; bytes.len() / 16 + 2].into();
        let start = Box::into_raw(words).cast::<u8>();
        // SAFETY: there are that many bytes and more.
        unsafe { start.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        Arc::new(Memory { start, bytes: bytes.len() })
    }

    pub fn of<T: Element>(values: &[T]) -> Arc<Memory> {
        // SAFETY: elements are plain data.
        Memory::new(unsafe {
            std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values))
        })
    }

    pub fn at(&self, offset: usize) -> *mut u8 {
        self.start.wrapping_add(offset)
    }

    pub fn write<T: Element>(&self, index: usize, value: T) {
        assert!((index + 1) * size_of::<T>() <= self.bytes + 16);
        // SAFETY: inside; nobody else looks at it now.
        unsafe { self.start.cast::<T>().add(index).write(value) }
    }

    pub fn read<T: Element>(&self, index: usize) -> T {
        assert!((index + 1) * size_of::<T>() <= self.bytes);
        // SAFETY: inside; nobody else writes to it now.
        unsafe { self.start.cast::<T>().add(index).read() }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let words =
            std::ptr::slice_from_raw_parts_mut(self.start.cast::<u128>(), self.bytes / 16 + 2);
        // SAFETY: as it was made, and nobody has it any more.
        drop(unsafe { Box::from_raw(words) });
    }
}

/// How often deleters ran.
#[derive(Clone, Default)]
pub struct Count(Arc<AtomicUsize>);

impl Count {
    pub fn get(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

/// What a tensor shall be.
#[derive(Clone)]
pub struct Tensor {
    pub header: DLTensor,
    pub shape: Option<Vec<i64>>,
    pub strides: Option<Vec<i64>>,
    pub flags: u64,
    pub minor: u32,
    /// Called by the deleter, before all else.
    pub on_delete: Option<fn()>,
    _memory: Arc<Memory>,
    pub count: Count,
}

// SAFETY: the pointer leads to the memory.
unsafe impl Send for Tensor {}

/// The allocation behind a header.
struct Whole<M> {
    managed: M,
    tensor: Tensor,
}

impl Tensor {
    /// Row-major, at the beginning of the memory, without strides.
    pub fn new(memory: &Arc<Memory>, dtype: Dtype, shape: &[i64]) -> Tensor {
        Tensor::typed(memory, dtype.to_dl(), shape)
    }

    pub fn typed(memory: &Arc<Memory>, dtype: DLDataType, shape: &[i64]) -> Tensor {
        Tensor {
            header: DLTensor {
                data: memory.at(0).cast(),
                device: DLDevice { device_type: device_type::CPU, device_id: 0 },
                ndim: shape.len() as i32,
                dtype,
                shape: null_mut(),
                strides: null_mut(),
                byte_offset: 0,
            },
            shape: Some(shape.to_vec()),
            strides: None,
            flags: 0,
            minor: 3,
            on_delete: None,
            _memory: memory.clone(),
            count: Count::default(),
        }
    }

    pub fn strides(mut self, strides: &[i64]) -> Tensor {
        self.strides = Some(strides.to_vec());
        self
    }

    pub fn offset(mut self, bytes: usize) -> Tensor {
        self.header.byte_offset = bytes as u64;
        self
    }

    pub fn data(mut self, data: *mut u8) -> Tensor {
        self.header.data = data.cast::<c_void>();
        self
    }

    pub fn flags(mut self, flags: u64) -> Tensor {
        self.flags = flags;
        self
    }

    pub fn device(mut self, device_type: i32, device_id: i32) -> Tensor {
        self.header.device = DLDevice { device_type, device_id };
        self
    }

    fn filled<M>(self, managed: impl FnOnce(DLTensor, u64) -> M) -> *mut Whole<M> {
        let (header, flags) = (self.header, self.flags);
        Box::into_raw(Box::new(Whole { managed: managed(header, flags), tensor: self }))
    }

    /// A versioned tensor, and how often its deleter ran.
    pub fn make(&self) -> (ManagedTensor, Count) {
        let count = Count::default();
        let tensor = Tensor { count: count.clone(), ..self.clone() };
        let minor = self.minor;
        let whole = tensor.filled(|dl_tensor, flags| DLManagedTensorVersioned {
            version: DLPackVersion { major: 1, minor },
            manager_ctx: null_mut(),
            deleter: Some(delete_versioned),
            flags,
            dl_tensor,
        });
        // SAFETY: just made; shape and strides have as many numbers as the header says.
        let made = unsafe {
            let tensor = &mut (*whole).tensor;
            (*whole).managed.dl_tensor.shape = pointer(&mut tensor.shape);
            (*whole).managed.dl_tensor.strides = pointer(&mut tensor.strides);
            (*whole).managed.manager_ctx = whole.cast();
            ManagedTensor::from_versioned(&raw mut (*whole).managed)
        };
        (made.expect("a valid tensor").0, count)
    }

    /// The same without a version.
    pub fn make_legacy(&self) -> (ManagedTensor, Count) {
        let count = Count::default();
        let tensor = Tensor { count: count.clone(), ..self.clone() };
        let whole = tensor.filled(|dl_tensor, _| DLManagedTensor {
            dl_tensor,
            manager_ctx: null_mut(),
            deleter: Some(delete_legacy),
        });
        // SAFETY: as above.
        let made = unsafe {
            let tensor = &mut (*whole).tensor;
            (*whole).managed.dl_tensor.shape = pointer(&mut tensor.shape);
            (*whole).managed.dl_tensor.strides = pointer(&mut tensor.strides);
            (*whole).managed.manager_ctx = whole.cast();
            ManagedTensor::from_legacy(&raw mut (*whole).managed)
        };
        (made.expect("a valid tensor").0, count)
    }
}

fn pointer(numbers: &mut Option<Vec<i64>>) -> *mut i64 {
    numbers.as_mut().map_or(null_mut(), |n| n.as_mut_ptr())
}

/// # Safety
/// The whole of a tensor that was made here, once.
unsafe fn done<M>(whole: *mut c_void) {
    // SAFETY: a second time would show as a crash, or in the count.
    let whole = unsafe { Box::from_raw(whole.cast::<Whole<M>>()) };
    if let Some(f) = whole.tensor.on_delete {
        f();
    }
    whole.tensor.count.0.fetch_add(1, Ordering::SeqCst);
}

unsafe extern "C" fn delete_versioned(managed: *mut DLManagedTensorVersioned) {
    // SAFETY: the context is the whole.
    unsafe { done::<DLManagedTensorVersioned>((*managed).manager_ctx) }
}

unsafe extern "C" fn delete_legacy(managed: *mut DLManagedTensor) {
    // SAFETY: as above.
    unsafe { done::<DLManagedTensor>((*managed).manager_ctx) }
}
