//! The mean of a vector over all ranks:
//!
//! ```text
//! cargo build -p ultramarine-mpi --example mean
//! mpirun -n 2 target/debug/examples/mean
//! ```

use ultramarine_mpi::{Communicator, Dtype, Error, Kind, Request};

/// The sum over all ranks of a vector that each has.
fn all_sum(world: &Communicator, input: Vec<f32>) -> Result<Vec<f32>, Error> {
    let mut output = vec![0f32; input.len()];
    let request = Request {
        kind: Kind::AllSum,
        dtype: Dtype::Float32,
        input: input.as_ptr().cast(),
        output: output.as_mut_ptr().cast(),
        count: input.len(),
        description: "the sum of the example",
    };
    // SAFETY: both vectors hold `count` elements, and are kept below where MPI may still use them.
    let done = unsafe { world.run(&request) };
    match done {
        Ok(()) => Ok(output),
        Err(error) => {
            if error.keeps_memory() {
                std::mem::forget((input, output));
            }
            Err(error)
        }
    }
}

#[allow(clippy::print_stdout)]
fn main() -> Result<(), Error> {
    let found = ultramarine_mpi::find()?;
    let world = ultramarine_mpi::world()?;
    let (rank, size) = (world.rank(), world.size());
    let input: Vec<f32> = (0..4).map(|i| (10 * rank + i) as f32).collect();
    let mean: Vec<f32> = all_sum(&world, input)?.into_iter().map(|x| x / size as f32).collect();
    println!("rank {rank} of {size}, {}: {mean:?}", found.version);
    Ok(())
}
