//! Times sums over all ranks, small and large:
//!
//! ```text
//! cargo build --release -p ultramarine-mpi --example rate
//! mpirun -n 2 target/release/examples/rate
//! ```

use std::time::Instant;
use ultramarine_mpi::{Dtype, Error, Kind, Request};

#[allow(clippy::print_stdout)]
fn main() -> Result<(), Error> {
    let world = ultramarine_mpi::world()?;
    for (dtype, count) in [
        (Dtype::Float32, 1),
        (Dtype::Float32, 1 << 10),
        (Dtype::Float32, 1 << 20),
        (Dtype::Float32, 1 << 24),
        (Dtype::Bfloat16, 1 << 24),
    ] {
        let words = (count * dtype.size()).div_ceil(8);
        // Memory of the error paths is never freed: the process ends with them.
        let input = Box::leak(vec![0u64; words].into_boxed_slice());
        let output = Box::leak(vec![0u64; words].into_boxed_slice());
        let request = Request {
            kind: Kind::AllSum,
            dtype,
            input: input.as_ptr().cast(),
            output: output.as_mut_ptr().cast(),
            count,
            description: "a sum that is timed",
        };
        let mut best = f64::INFINITY;
        for _ in 0..if count > 1 << 16 { 10 } else { 200 } {
            let start = Instant::now();
            // SAFETY: both hold `count` elements, for ever.
            unsafe { world.run(&request) }?;
            best = best.min(start.elapsed().as_secs_f64());
        }
        let bytes = (count * dtype.size()) as f64;
        if world.rank() == 0 {
            println!("{count:>9} {dtype}: {:9.1} us, {:6.2} GB/s", 1e6 * best, 1e-9 * bytes / best);
        }
    }
    Ok(())
}
