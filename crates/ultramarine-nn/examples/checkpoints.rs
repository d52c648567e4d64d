//! Trains a model whose matrix is split over the processes, and goes on with another number of them.
//!
//! ```sh
//! cargo build --release -p ultramarine-nn --example checkpoints
//! mpirun -n 2 target/release/examples/checkpoints run   # trains 50 steps and saves them in the folder `run`
//! mpirun -n 3 target/release/examples/checkpoints run   # goes on where that ended; so does one process
//! ```
#![allow(clippy::print_stdout)] // It prints its results.

use std::path::PathBuf;
use ultramarine::distributed::{self, Group, all_sum};
use ultramarine::io::Metadata;
use ultramarine::{Array, Dtype, Result, random};
use ultramarine_nn::checkpoints::{Checkpoints, Split};
use ultramarine_nn::losses::{Reduction, mse_loss};
use ultramarine_nn::optimizers::{AdamW, Optimizer};
use ultramarine_nn::{Module, Param, value_and_grad};

const INPUTS: usize = 12;
const STEPS: u64 = 50;

/// A linear layer. Each process has the columns of some inputs.
#[derive(Module, Clone)]
struct Linear {
    weight: Param,
    bias: Param,
}

impl Linear {
    /// The sum of all processes' products with their inputs.
    fn forward(&self, own: &Array, group: &Group) -> Result<Array> {
        let product = own.matmul(self.weight.transpose()?)?;
        all_sum(&product, group)?.add(&self.bias)
    }
}

/// This process's columns of an array (n, INPUTS).
#[allow(clippy::single_range_in_vec_init, reason = "the columns are one range")]
fn columns(x: &Array, group: &Group) -> Result<Array> {
    let (size, rank) = (group.size(), group.rank());
    // As `Checkpoints` cuts them.
    let part = |rank: usize| INPUTS / size + usize::from(rank < INPUTS % size);
    let first = (0..rank).map(part).sum::<usize>();
    ultramarine::io::part(x, 1, &[first..first + part(rank)])
}

fn main() -> Result<()> {
    let folder = PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| "run".to_owned()));
    let group = distributed::init(false, "any")?;
    let normal = |shape: &[usize], seed| {
        random::normal(
            shape,
            None::<&Array>,
            None::<&Array>,
            Dtype::Float32,
            Some(&random::key(seed)?),
        )
    };
    let weight = columns(&normal(&[3, INPUTS], 0)?, &group)?;
    let mut model =
        Linear { weight: weight.into(), bias: Array::zeros(&[3], Dtype::Float32)?.into() };
    let mut optimizer = AdamW::new(3e-2);

    let files =
        Checkpoints::new(&group).split_by(|name, _| (name == "weight").then(|| Split::along(1)));
    let mut begin = 0;
    if folder.join("model.safetensors.index.json").exists() {
        let metadata = files.load(&folder, &mut model, Some(&mut optimizer))?;
        begin = metadata.get("step").and_then(|step| step.parse().ok()).unwrap_or(0);
    }
    let x = normal(&[64, INPUTS], 1)?;
    let y = x.matmul(normal(&[INPUTS, 3], 2)?)?;
    let own = columns(&x, &group)?;
    let mut loss = Array::scalar(0.0f32);
    for _ in 0..STEPS {
        let (value, gradients) = value_and_grad(&mut model, |model| {
            mse_loss(model.forward(&own, &group)?, &y, Reduction::Mean)
        })?;
        optimizer.step(&mut model, &gradients)?;
        loss = value;
    }
    let step = begin + STEPS;
    let metadata = Metadata::from([("step".to_owned(), step.to_string())]);
    files.save(&folder, &model, Some(&optimizer), &metadata)?;
    if group.rank() == 0 {
        println!("step {step} of {} processes, loss {:.4}", group.size(), loss.item::<f32>()?);
    }
    // In all processes, also what one has not evaluated.
    distributed::finish()
}
