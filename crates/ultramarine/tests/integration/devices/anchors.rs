//! Programs with an anchor on backends that take them, refuse them, or do not know of them.

use crate::support::partial_backend::{Like, PLAIN, register};
use ultramarine::{
    Array, Device, OpCount, Result, default_stream, eval, fast, op_counts, reset_op_counts,
    reset_stats, stats, with_stream,
};
use ultramarine_abi::{Status, status};
use ultramarine_test_support::own_process;

/// The norm of a sum, and of a chain; the sum is held, too.
fn work(x: &Array, weight: &Array) -> Result<Vec<Array>> {
    let sum = x.add(x)?;
    let first = fast::rms_norm(&sum, Some(weight), 1e-5)?;
    let chain = x.multiply(x)?.add(x)?.sqrt()?;
    let second = fast::layer_norm(&chain, Some(weight), Some(weight), 1e-5)?;
    drop(chain);
    Ok(vec![sum, first, second])
}

/// Results, and the commands, programs and their operations.
fn round(stream: ultramarine::Stream) -> Result<(Vec<Vec<f32>>, [u64; 3])> {
    with_stream(stream, || {
        let numbers: Vec<f32> = (1..=600).map(|i| i as f32 / 7.0).collect();
        let x = Array::from_slice(&numbers, &[20, 30])?;
        let weight = Array::from_slice(&numbers[..30], &[30])?;
        eval(&[&x, &weight])?;
        reset_stats();
        reset_op_counts();
        let results = work(&x, &weight)?;
        eval(&results.iter().collect::<Vec<_>>())?;
        let s = stats();
        let values = results.iter().map(|r| r.to_vec::<f32>()).collect::<Result<_>>()?;
        Ok((values, [s.commands, s.fused, s.fused_operations]))
    })
}

#[test]
fn what_is_refused_is_taken_apart() -> Result<()> {
    own_process!();
    let (want, counts) = round(default_stream(Device::CPU)?)?;
    assert_eq!(counts, [2, 2, 6]);
    let cases: [(Option<Status>, [u64; 3]); 4] = [
        (Some(status::OK), [2, 2, 6]),
        // The sum by itself is no program.
        (Some(status::UNSUPPORTED), [4, 1, 3]),
        (Some(status::NOT_YET), [4, 1, 3]),
        (None, [4, 1, 3]),
    ];
    for (anchored, expected) in cases {
        let like = Like { fused: true, anchored, name: c"anchored", ..PLAIN };
        let gpu = register(like, Box::new(|_| status::OK));
        let (values, counts) = round(default_stream(gpu.device)?)?;
        assert_eq!(values, want, "{anchored:?}");
        assert_eq!(counts, expected, "{anchored:?}");
        let counts = op_counts();
        let native = |op: &str| counts.iter().filter(|c| c.op == op).map(|c| c.native).sum::<u64>();
        let all = ["add", "multiply", "sqrt", "rms_norm", "layer_norm"].map(native);
        assert_eq!(all, [2, 1, 1, 1, 1], "{anchored:?}");
        assert!(counts.iter().all(|c: &OpCount| c.decomposed == 0 && c.cpu == 0));
    }
    Ok(())
}
