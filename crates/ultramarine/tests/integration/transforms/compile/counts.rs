//! What compiled functions save, in commands, counted.

use ultramarine::transforms::compile;
use ultramarine::{Array, Dtype, Error, Result, eval, stats};
use ultramarine_test_support::own_process;

/// Commands that the second call runs, of a function that is compiled and of one that is not.
fn commands(f: fn(&[Array]) -> Result<Vec<Array>>, inputs: &[Array]) -> Result<[u64; 2]> {
    let compiled = compile(f);
    let count = |f: &dyn Fn(&[Array]) -> Result<Vec<Array>>| {
        eval(&f(inputs)?)?;
        let before = stats().commands;
        eval(&f(inputs)?)?;
        Ok::<_, Error>(stats().commands - before)
    };
    Ok([count(&|x| compiled.call(x))?, count(&|x| f(x))?])
}

#[test]
fn common_subexpressions_are_computed_once() -> Result<()> {
    own_process!();
    let m = Array::ones(&[3, 3], Dtype::Float32)?;
    let twice = |x: &[Array]| {
        let product = || x[0].matmul(&x[1]);
        Ok(vec![product()?.exp()?.add(&product()?.sin()?)?])
    };
    assert_eq!(commands(twice, &[m.clone(), m.clone()])?, [2, 3]);
    // Results keep memory of their own.
    let results = |x: &[Array]| Ok(vec![x[0].matmul(&x[1])?, x[0].matmul(&x[1])?]);
    assert_eq!(commands(results, &[m.clone(), m])?, [2, 2]);
    Ok(())
}

#[test]
fn steps_without_arguments_are_computed_once() -> Result<()> {
    own_process!();
    let f = |x: &[Array]| {
        let eye = Array::eye(4, 4, 0, Dtype::Float32)?;
        let weights = eye.matmul(&(&eye * 3.0)?)?;
        let unused = x[0].matmul(&weights)?.matmul(&weights)?;
        drop(unused);
        Ok(vec![x[0].matmul(&weights)?])
    };
    let m = Array::ones(&[4, 4], Dtype::Float32)?;
    let [compiled, plain] = commands(f, std::slice::from_ref(&m))?;
    assert!(compiled == 1 && plain > 2, "{compiled} {plain}");
    let y = compile(f).call(&[m])?;
    assert_eq!(y[0].to_vec::<f32>()?, [3.0; 16]);
    Ok(())
}
