//! Evaluations that run the commands of an earlier one. (`python/tests/runtime/test_repeated_evaluations.py` has random
//! graphs, and runs on all devices.)

use crate::support::random_graph::random_graph;
use ultramarine::{
    Array, Device, Result, default_stream, eval, new_stream, set_executables, stats,
};
use ultramarine_test_support::own_process;

fn repeated() -> u64 {
    stats().repeated
}

fn step(x: &Array, w: &Array) -> Result<Array> {
    let mut y = x.clone();
    for _ in 0..4 {
        y = y.matmul(w)?.tanh()?.add(Array::scalar(0.5f32))?;
    }
    Ok(y)
}

fn array(seed: usize) -> Result<Array> {
    let data: Vec<f32> = (0..16).map(|i| ((i * 7 + seed * 5) % 11) as f32 * 0.1).collect();
    let array = Array::from_slice(&data, &[4, 4])?;
    array.eval()?;
    Ok(array)
}

#[test]
fn the_third_evaluation_runs_the_commands_of_the_second() -> Result<()> {
    own_process!();
    let w = array(9)?;
    let runs = |n: usize| -> Result<Vec<u64>> {
        let run = |i: usize| {
            let before = repeated();
            step(&array(i)?, &w)?.eval()?;
            Ok(repeated() - before)
        };
        (0..n).map(run).collect()
    };
    assert_eq!(runs(4)?, [0, 0, 1, 1]);
    set_executables(false);
    assert_eq!(runs(2)?, [0, 0]);
    set_executables(true);
    assert_eq!(runs(2)?, [1, 1]);
    Ok(())
}

#[test]
fn other_structures_are_other_evaluations() -> Result<()> {
    own_process!();
    let w = array(9)?;
    let expected = |x: &Array| -> Result<Vec<f32>> {
        set_executables(false);
        let values = step(x, &w)?.to_vec();
        set_executables(true);
        values
    };
    for i in 0..5 {
        // A row of a larger array, a transposed one, one that is held by a lazy array, the weights themselves.
        let base = array(i)?;
        let wide = ultramarine::concatenate(&[base.clone(), base.clone()], 1)?;
        wide.eval()?;
        let part = wide.index(&ultramarine::index![0..4, 2..6])?;
        let transposed = base.transpose()?;
        eval(&[part.clone(), transposed.clone()])?;
        let lazy = base.add(&w)?;
        for x in [&base, &part, &transposed, &w] {
            assert_eq!(step(x, &w)?.to_vec::<f32>()?, expected(x)?, "{i}");
        }
        drop(base);
        lazy.eval()?;
    }
    Ok(())
}

#[test]
fn random_graphs_on_several_streams_stay_what_they_are() -> Result<()> {
    own_process!();
    let cpu = default_stream(Device::CPU)?;
    let streams = [cpu, new_stream(Device::CPU)?];
    for seed in 0..60 {
        set_executables(false);
        let expected = random_graph(seed, &streams)?;
        set_executables(true);
        for _ in 0..4 {
            assert_eq!(random_graph(seed, &[cpu, cpu])?, expected, "{seed}");
            assert_eq!(random_graph(seed, &streams)?, expected, "{seed}");
        }
    }
    assert!(repeated() > 0);
    Ok(())
}
