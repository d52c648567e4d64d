//! Kernels under transforms: with rules of the user's own, and without.

use super::*;
use crate::opencl_process;
use ultramarine::transforms::{CustomFunction, grad, vmap};
use ultramarine::{Error, stats};

fn exp_kernel() -> Result<Kernel> {
    kernel("myexp", &["x"], &["y"], "uint i = thread_position_in_grid.x; y[i] = exp(x[i]);")
}

#[test]
fn without_rules_the_error_says_what_to_do() -> Result<()> {
    opencl_process!();
    let Some(gpu) = gpu() else { return Ok(()) };
    let k = exp_kernel()?;
    let x = count(&[3])?;
    let f = |x: &Array| with_stream(gpu, || k.call(&[x], &line(3)))?[0].sum(None);
    let failed = grad(f)(&x).expect_err("no vjp");
    assert!(matches!(failed, Error::Value(_)), "{failed:?}");
    assert!(
        failed
            .to_string()
            .contains("[vjp] The kernel myexp has no vjp rule. Wrap its call in custom_function")
    );
    let rows = |x: &[Array]| with_stream(gpu, || k.call(&[&x[0]], &line(3)));
    let failed = vmap(rows, &[count(&[2, 3])?], [Some(0)], 0);
    assert!(error(failed).contains("[vmap] The kernel myexp has no vmap rule"));
    Ok(())
}

#[test]
fn kernels_follow_their_operands_and_run_ahead() -> Result<()> {
    opencl_process!();
    let Some(gpu) = gpu() else { return Ok(()) };
    let step =
        kernel("step", &["x"], &["y"], "uint i = thread_position_in_grid.x; y[i] = x[i] + 1;")?;
    let other = ultramarine::new_stream(gpu.device)?;
    let mut x = with_stream(gpu, || {
        Array::from_slice(&[0.0f32; 1000], &[1000])?.add(Array::scalar(0.0f32))
    })?;
    let before = stats().commands;
    for i in 0..50 {
        // Without a scope it runs where its operand is.
        let next = match i % 3 {
            0 => step.call(&[&x], &line(1000))?,
            1 => with_stream(other, || step.call(&[&x], &line(1000)))?,
            _ => vec![with_stream(gpu, || x.add(Array::scalar(1.0f32)))?],
        };
        x = next[0].clone();
        if i % 7 == 0 {
            x.eval()?;
        }
    }
    assert_eq!(x.to_vec::<f32>()?, vec![50.0; 1000]);
    assert!(stats().commands - before >= 34, "launches count as commands");
    Ok(())
}

#[test]
fn custom_functions_give_them_rules() -> Result<()> {
    opencl_process!();
    let Some(gpu) = gpu() else { return Ok(()) };
    let k = exp_kernel()?;
    let reverse = kernel(
        "myexp_vjp",
        &["y", "c"],
        &["d"],
        "uint i = thread_position_in_grid.x; d[i] = y[i] * c[i];",
    )?;
    let exp = CustomFunction::new(move |x| with_stream(gpu, || k.call(&[&x[0]], &line(3))))
        .with_vjp(move |_, cotangents, outputs| {
            let made = with_stream(gpu, || reverse.call(&[&outputs[0], &cotangents[0]], &line(3)))?;
            Ok(made.into_iter().map(Some).collect())
        });
    let x = Array::from_slice(&[0.0f32, 1.0, 2.0], &[3])?;
    let f = |x: &Array| exp.call(std::slice::from_ref(x))?[0].square()?.sum(None);
    let got = grad(f)(&x)?.to_vec::<f32>()?;
    for (g, x) in got.iter().zip([0.0f32, 1.0, 2.0]) {
        let want = 2.0 * (2.0 * x).exp();
        assert!((g - want).abs() < 1e-4 * want, "{g} for {want}");
    }
    Ok(())
}
