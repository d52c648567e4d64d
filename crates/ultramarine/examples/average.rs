//! Processes that average their gradients: `mpirun -n 2 target/debug/examples/average`. By itself it is one process with
//! all data.

#![allow(clippy::print_stdout, reason = "an example")]

use ultramarine::distributed::{all_sum, init};
use ultramarine::{Array, Dtype, Result, random, transforms::grad};

fn main() -> Result<()> {
    let group = init(false, "any")?;
    let (rank, size) = (group.rank(), group.size());
    // 64 points of a line, of which this process has its part.
    let points = random::normal(&[64, 3], None, None, Dtype::Float32, Some(&random::key(0)?))?;
    let part = (64 / size) as isize;
    let from = rank as isize * part;
    let x = points.slice(&[from, 0], &[from + part, 3], &[1, 1])?;
    let y = x.matmul(&Array::from_slice(&[1.0f32, -2.0, 0.5], &[3])?)?;
    let loss = |w: &Array| x.matmul(w)?.subtract(&y)?.square()?.mean(None);
    let mut w = Array::zeros(&[3], Dtype::Float32)?;
    for _ in 0..200 {
        let gradient = all_sum(&grad(loss)(&w)?, &group)?.divide(size as f32)?;
        w = w.subtract(&gradient.multiply(0.1f32)?)?;
    }
    if rank == 0 {
        println!("weights {:?} of {size} processes", w.to_vec::<f32>()?);
    }
    Ok(())
}
