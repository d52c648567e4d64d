//! Programs that a backend is still compiling run one op at a time, and are asked for again.

use crate::support::partial_backend::{Like, PLAIN, register};
use ultramarine::{Array, KeepDims, Result, default_stream, stats, with_stream};
use ultramarine_abi::status;
use ultramarine_test_support::own_process;

const TIMES: u64 = 3;

/// Three ops that are one program, and a program that a reduction closes.
fn work(x: &Array) -> Result<[Array; 2]> {
    let y = x.multiply(x)?.add(x)?.sqrt()?;
    let z = x.subtract(x)?.exp()?.sum(KeepDims(1))?;
    Ok([y, z])
}

/// Results, programs and commands of one evaluation.
fn round(x: &Array, commands: &dyn Fn() -> u64) -> Result<(Vec<Vec<f32>>, u64, u64)> {
    let (programs, before) = (stats().fused, commands());
    let results = work(x)?;
    let mut values = Vec::new();
    for result in &results {
        result.eval()?;
    }
    let (programs, after) = (stats().fused - programs, commands());
    for result in &results {
        values.push(result.to_vec::<f32>()?);
    }
    Ok((values, programs, after - before))
}

#[test]
fn programs_that_are_not_there_yet_run_unfused() -> Result<()> {
    own_process!();
    let numbers: Vec<f32> = (1..=600).map(|i| i as f32 / 7.0).collect();
    let input = || Array::from_slice(&numbers, &[20, 30]);
    let want = with_stream(default_stream(ultramarine::Device::CPU)?, || {
        round(&input()?, &|| 0).map(|(values, ..)| values)
    })?;
    // Both programs of a round are asked for, each once.
    let like = Like { fused: true, not_yet: 2 * TIMES, name: c"busy", ..PLAIN };
    let gpu = register(like, Box::new(|_| status::OK));
    with_stream(default_stream(gpu.device)?, || {
        let x = input()?;
        x.eval()?;
        let mut rounds = Vec::new();
        for _ in 0..TIMES + 2 {
            let (values, programs, commands) = round(&x, &|| gpu.commands())?;
            assert_eq!(values, want);
            rounds.push((programs, commands));
        }
        let (first, later) = rounds.split_at(TIMES as usize);
        assert!(first.iter().all(|r| *r == (0, 6)), "unfused at first: {rounds:?}");
        assert!(later.iter().all(|r| *r == (2, 2)), "programs later: {rounds:?}");
        Ok(())
    })?;
    Ok(())
}
