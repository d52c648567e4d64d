//! How fast this machine's memory is: what the benchmark compares with.

use pyo3::prelude::*;
use std::sync::Barrier;
use std::time::Instant;
use ultramarine_extension::{Error, Result, copy_past_cache, thread_count};

/// Bytes per second of two streams that are read and one that is written past the caches, by all threads, each in its own
/// part of memory that was written before: what an elementwise function of two operands cannot exceed.
///
/// Args:
///     bytes (int): Bytes of each stream.
///     runs (int): Repetitions, of which the median counts.
///
/// Returns:
///     float: Bytes per second.
#[pyfunction]
#[pyo3(signature = (bytes, runs = 15))]
pub fn bandwidth(py: Python<'_>, bytes: usize, runs: usize) -> Result<f64> {
    let n = bytes / size_of::<f32>();
    if n == 0 || runs == 0 {
        return Err(Error::value("[bandwidth] takes 4 bytes or more, and one run or more."));
    }
    py.detach(|| {
        let (x, y, mut z) = (vec![1f32; n], vec![2f32; n], vec![0f32; n]);
        let threads = thread_count();
        let part = n.div_ceil(threads);
        let mut times = Vec::with_capacity(runs);
        for run in 0..=runs {
            let ready = Barrier::new(threads.min(n.div_ceil(part)) + 1);
            let seconds = std::thread::scope(|scope| {
                let parts = x.chunks(part).zip(y.chunks(part)).zip(z.chunks_mut(part));
                let all: Vec<_> = parts
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
                all.into_iter().for_each(|thread| _ = thread.join());
                start.elapsed().as_secs_f64()
            });
            // The first run warms up.
            if run > 0 {
                times.push(seconds);
            }
        }
        times.sort_by(f64::total_cmp);
        Ok((3 * n * size_of::<f32>()) as f64 / times[times.len() / 2])
    })
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
