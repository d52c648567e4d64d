//! Memory that detects accesses outside of its bounds.

use pyo3::exceptions::{PyMemoryError, PyValueError};
use pyo3::prelude::*;
use std::ffi::c_void;
use std::sync::Arc;

/// The byte that fills the margins around memory without guard pages.
const CANARY: u8 = 0xc5;
/// Bytes of the margin on either side. The memory is aligned to this.
const MARGIN: usize = 256;

/// Memory in a separate mapping.
pub struct Memory {
    mapping: *mut u8,
    mapped: usize,
    pub start: *mut u8,
    pub size: usize,
    guarded: bool,
}

// SAFETY: plain bytes that any thread may touch. Tests have to avoid races.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    /// Allocates `size` zero bytes. With a guard, they end at the beginning of an inaccessible
    /// page. Without a guard, they are aligned to 256 bytes, with canaries around them.
    pub fn new(size: usize, guarded: bool) -> PyResult<Memory> {
        // SAFETY: the call only returns a number.
        let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096);
        let needed = if guarded { size } else { size + 2 * MARGIN };
        let usable = needed.max(1).next_multiple_of(page);
        let mapped = usable + if guarded { page } else { 0 };
        // SAFETY: a new anonymous mapping, at an address that the system chooses.
        let mapping = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                mapped,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANON,
                -1,
                0,
            )
        };
        if mapping == libc::MAP_FAILED {
            return Err(PyMemoryError::new_err("no memory for the lab"));
        }
        let mapping = mapping.cast::<u8>();
        // SAFETY: all addresses lie in the mapping.
        let start = unsafe {
            if guarded {
                libc::mprotect(mapping.add(usable).cast::<c_void>(), page, libc::PROT_NONE);
                mapping.add(usable - size)
            } else {
                mapping.write_bytes(CANARY, usable);
                let start = mapping.add(MARGIN);
                start.write_bytes(0, size);
                start
            }
        };
        Ok(Memory { mapping, mapped, start, size, guarded })
    }

    /// Returns true if the bytes around it are unchanged.
    pub fn intact(&self) -> bool {
        if self.guarded {
            return true;
        }
        // SAFETY: the margins lie in the mapping.
        unsafe {
            let before = std::slice::from_raw_parts(self.start.sub(MARGIN), MARGIN);
            let after = std::slice::from_raw_parts(self.start.add(self.size), MARGIN);
            before.iter().chain(after).all(|b| *b == CANARY)
        }
    }

    fn place(&self, offset: usize, length: usize) -> PyResult<*mut u8> {
        match offset.checked_add(length) {
            // SAFETY: in the mapping.
            Some(end) if end <= self.size => Ok(unsafe { self.start.add(offset) }),
            _ => Err(PyValueError::new_err(format!("outside of {} bytes", self.size))),
        }
    }

    pub fn read(&self, offset: usize, length: usize) -> PyResult<Vec<u8>> {
        let place = self.place(offset, length)?;
        // SAFETY: `place` validated it.
        Ok(unsafe { std::slice::from_raw_parts(place, length) }.to_vec())
    }

    pub fn write(&self, offset: usize, bytes: &[u8]) -> PyResult<()> {
        let place = self.place(offset, bytes.len())?;
        // SAFETY: `place` validated it.
        unsafe { place.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        Ok(())
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: exactly this range was mapped.
        unsafe { libc::munmap(self.mapping.cast::<c_void>(), self.mapped) };
    }
}

/// Memory of the lab, with an address.
#[pyclass(name = "Memory", module = "ultramarine_dlpack_check._lab", frozen)]
pub struct PyMemory(pub Arc<Memory>);

#[pymethods]
impl PyMemory {
    #[new]
    #[pyo3(signature = (size, *, guard=false))]
    fn new(size: usize, guard: bool) -> PyResult<PyMemory> {
        Ok(PyMemory(Arc::new(Memory::new(size, guard)?)))
    }

    #[getter]
    fn address(&self) -> usize {
        self.0.start as usize
    }

    #[getter]
    fn size(&self) -> usize {
        self.0.size
    }

    #[getter]
    fn intact(&self) -> bool {
        self.0.intact()
    }

    #[pyo3(signature = (offset=0, length=None))]
    fn read(&self, offset: usize, length: Option<usize>) -> PyResult<Vec<u8>> {
        self.0.read(offset, length.unwrap_or(self.0.size.saturating_sub(offset)))
    }

    #[pyo3(signature = (data, offset=0))]
    fn write(&self, data: &[u8], offset: usize) -> PyResult<()> {
        self.0.write(offset, data)
    }
}
