//! How fast this machine's memory is: what the benchmark compares with.

use pyo3::prelude::*;
use std::alloc::Layout;
use std::ptr::NonNull;
use std::sync::{Barrier, Mutex, PoisonError};
use std::time::Instant;
use ultramarine_extension::{Error, Result, copy_past_cache, thread_count};

/// Two streams of float32 that are read and one that is written past the caches, by all threads, each in its own part of memory that
/// was written before: what an elementwise function of two operands cannot be faster than.
///
/// Args:
///     bytes (int): Bytes of each stream.
#[pyclass(frozen, module = "ultramarine_axpby._native")]
pub struct Streams(Mutex<[Stream; 3]>);

/// Elements in memory of large pages, where the system has them, as Ultramarine's arrays are.
struct Stream {
    first: NonNull<f32>,
    n: usize,
}

// SAFETY: it owns its elements.
unsafe impl Send for Stream {}

/// Bytes of a large page.
const PAGE: usize = 2 << 20;

impl Stream {
    fn layout(n: usize) -> Result<Layout> {
        let bytes = n.checked_mul(size_of::<f32>()).and_then(|b| b.checked_next_multiple_of(PAGE));
        bytes
            .and_then(|bytes| Layout::from_size_align(bytes, PAGE).ok())
            .ok_or_else(|| Error::out_of_memory(format!("[Streams] no memory for {n} elements.")))
    }

    /// Elements of one value.
    fn new(n: usize, value: f32) -> Result<Self> {
        let layout = Self::layout(n)?;
        // SAFETY: the layout has a size; what is advised is the memory that was got, all of which is written.
        unsafe {
            let first = NonNull::new(std::alloc::alloc(layout).cast::<f32>());
            let first = first.ok_or_else(|| Error::out_of_memory("[Streams] no memory."))?;
            #[cfg(target_os = "linux")]
            libc::madvise(first.as_ptr().cast(), layout.size(), libc::MADV_HUGEPAGE);
            (0..n).for_each(|i| first.add(i).write(value));
            Ok(Self { first, n })
        }
    }

    fn all(&mut self) -> &mut [f32] {
        // SAFETY: that many elements, which were written.
        unsafe { std::slice::from_raw_parts_mut(self.first.as_ptr(), self.n) }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if let Ok(layout) = Self::layout(self.n) {
            // SAFETY: of this layout.
            unsafe { std::alloc::dealloc(self.first.as_ptr().cast(), layout) };
        }
    }
}

#[pymethods]
impl Streams {
    #[new]
    fn new(bytes: usize) -> Result<Self> {
        let n = bytes / size_of::<f32>();
        if n == 0 {
            return Err(Error::value("[Streams] takes 4 bytes or more."));
        }
        let streams = [Stream::new(n, 1.0)?, Stream::new(n, 2.0)?, Stream::new(n, 3.0)?];
        Ok(Self(Mutex::new(streams)))
    }

    /// Goes over them once.
    ///
    /// Returns:
    ///     float: Seconds.
    fn run(&self, py: Python<'_>) -> f64 {
        py.detach(|| {
            let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let [x, y, z] = all.each_mut().map(Stream::all);
            let part = x.len().div_ceil(thread_count());
            let ready = Barrier::new(x.len().div_ceil(part) + 1);
            std::thread::scope(|scope| {
                let parts = x.chunks(part).zip(y.chunks(part)).zip(z.chunks_mut(part));
                let threads: Vec<_> = parts
                    .map(|((x, y), z)| {
                        let ready = &ready;
                        scope.spawn(move || {
                            ready.wait();
                            add(x, y, z);
                        })
                    })
                    .collect();
                ready.wait();
                let start = Instant::now();
                threads.into_iter().for_each(|thread| _ = thread.join());
                start.elapsed().as_secs_f64()
            })
        })
    }
}

fn add(x: &[f32], y: &[f32], z: &mut [f32]) {
    const BLOCK: usize = 1024;
    let mut sums = [0f32; BLOCK];
    for ((x, y), z) in x.chunks(BLOCK).zip(y.chunks(BLOCK)).zip(z.chunks_mut(BLOCK)) {
        let sums = &mut sums[..z.len()];
        sums.iter_mut().zip(x).zip(y).for_each(|((sum, x), y)| *sum = x + y);
        copy_past_cache(sums, z);
    }
}
