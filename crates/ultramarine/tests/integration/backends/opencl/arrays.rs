//! Arrays on the OpenCL backend: memory that the host cannot see, streams that run ahead, ops placed by
//! their stream, values that go back and forth; in strict mode, where nothing may go to the CPU.

use crate::opencl_process;
use crate::support::arrays::f64s;
use crate::support::opencl::register_stream as stream;
use ultramarine::transforms::{grad, vmap};
use ultramarine::{
    Array, Dtype, Error, Result, new_stream, op_counts, random, stats, where_, with_stream,
};
use ultramarine_test_support::{Tolerance, assert_close};

/// The function on the device and on the CPU, of which the second must not notice the first.
fn both(f: impl Fn() -> Result<Array>) -> Result<()> {
    let Some(gpu) = stream() else { return Ok(()) };
    let got = with_stream(gpu, &f)?;
    got.eval()?;
    assert_eq!(got.value()?.buffer.device(), gpu.device);
    let want = f()?;
    assert_eq!((got.shape(), got.dtype()), (want.shape(), want.dtype()));
    assert_close("on the device", &f64s(&got), &f64s(&want), Tolerance::mixed(1e-5));
    Ok(())
}

fn matrix(rows: usize, columns: usize) -> Result<Array> {
    random::normal(&[rows, columns], None, None, Dtype::Float32, Some(&random::key(rows as u64)?))
}

#[test]
fn a_layer_and_its_gradient() -> Result<()> {
    opencl_process!();
    let loss = |w: &Array| {
        let x = matrix(64, 32)?;
        let y = x.matmul(w)?.tanh()?.softmax(1, false)?;
        y.log()?.mean(None)
    };
    both(|| grad(loss)(&matrix(32, 10)?))
}

#[test]
fn indexing_sorting_and_views() -> Result<()> {
    opencl_process!();
    both(|| {
        let x = matrix(40, 50)?;
        let order = x.argsort(Some(1))?;
        let sorted = x.take_along_axis(&order, Some(1))?;
        let top = sorted.slice(&[1, 48], &[30, -51], &[3, -2])?.transpose()?;
        let at = Array::from_slice(&[3i32, -1, 3, 100], &[4])?;
        top.take(&at, Some(0))?.cumsum(Some(0), true, false)
    })
}

#[test]
fn conditions_and_vectorised_functions() -> Result<()> {
    opencl_process!();
    both(|| {
        let x = matrix(20, 30)?;
        let f = |rows: &[Array]| {
            let row = &rows[0];
            Ok(vec![where_(&row.greater(&row.mean(None)?)?, row, &row.square()?)?])
        };
        let out = vmap(f, &[x], [Some(0)], 0)?;
        out.into_iter().next().ok_or_else(|| Error::Runtime("no output".into()))
    })
}

#[test]
fn values_go_back_and_forth_between_streams() -> Result<()> {
    opencl_process!();
    let Some(first) = stream() else { return Ok(()) };
    let second = new_stream(first.device)?;
    let mut x = Array::from_slice(&[0.0f32; 1000], &[1000])?;
    let one = Array::scalar(1.0f32);
    for i in 0..60 {
        let stream = if i % 2 == 0 { first } else { second };
        x = with_stream(stream, || x.add(&one))?;
        if i % 15 == 14 {
            // The host takes a turn.
            x = x.add(&one)?;
        }
    }
    assert_eq!(x.to_vec::<f32>()?, vec![64.0; 1000]);
    Ok(())
}

#[test]
fn nothing_goes_to_the_cpu_and_memory_comes_back() -> Result<()> {
    opencl_process!();
    let Some(gpu) = stream() else { return Ok(()) };
    let x = matrix(100, 100)?;
    x.eval()?;
    let mirrors = stats().mirrors;
    let y = with_stream(gpu, || x.matmul(&x)?.exp()?.sum(0)?.sort(None))?;
    y.eval()?;
    assert_eq!(stats().mirrors - mirrors, 1, "only x was copied to the device");
    for count in op_counts().iter().filter(|c| c.backend == "opencl") {
        assert_eq!((count.decomposed, count.cpu), (0, 0), "{count:?}");
    }
    Ok(())
}
