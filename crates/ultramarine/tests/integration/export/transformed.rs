//! Transforms inside of exported functions, and transforms of these.

use super::{check, content, exported, read};
use crate::support::arrays::uniform_f32;
use crate::support::mock_device::init;
use ultramarine::transforms::{checkpoint, compile, grad, jvp, value_and_grad, vjp, vmap};
use ultramarine::{
    Array, Device, Dtype, Result, default_stream, index, random, register, set_default_device,
    with_stream,
};
use ultramarine_test_support::{Rng, own_process};

fn loss(x: &Array) -> Result<Array> {
    x.matmul(&x.transpose()?)?.tanh()?.softmax(-1, false)?.square()?.sum(..)
}

/// A function of one array, mapped over the first axis.
fn mapped(f: impl Fn(&Array) -> Result<Array>, x: &Array) -> Result<Array> {
    Ok(vmap(|x| Ok(vec![f(&x[0])?]), [&x], &[Some(0)], &[Some(0)])?.swap_remove(0))
}

fn sample() -> Array {
    uniform_f32(&mut Rng::new(3), &[4, 5], -1.0, 1.0)
}

#[test]
fn transforms_inside() -> Result<()> {
    let x = sample();
    check("grad", |x| Ok(vec![grad(loss)(&x[0])?]), [&x]);
    check("grad of grad", |x| Ok(vec![grad(|x: &Array| grad(loss)(x)?.sum(..))(&x[0])?]), [&x]);
    check(
        "value_and_grad",
        |x| {
            let (value, gradient) = value_and_grad(loss)(&x[0])?;
            Ok(vec![value, gradient])
        },
        [&x],
    );
    check("vmap", |x| Ok(vec![mapped(|x: &Array| x.cumsum(0, false, true)?.exp(), &x[0])?]), [&x]);
    let compiled = compile(|x| Ok(vec![loss(&x[0])?]));
    check("compile", |x| compiled.call(x), [&x]);
    let recomputed = checkpoint(|x: &Array| x.exp()?.sin());
    check("checkpoint", |x| Ok(vec![recomputed(&x[0])?]), [&x]);
    check(
        "gradient of a checkpoint",
        |x| Ok(vec![grad(|x: &Array| recomputed(x)?.sum(..))(&x[0])?]),
        &[x],
    );
    Ok(())
}

#[test]
fn a_compiled_call_that_depends_on_no_argument_is_a_constant() -> Result<()> {
    let (x, w) = (sample(), sample());
    let many = compile(|x| {
        (0..20)
            .try_fold(x[0].clone(), |y, _| y.matmul(&y.transpose()?)?.softmax(-1, false))
            .map(|y| vec![y])
    });
    check("compiled constant", move |x| Ok(vec![x[0].sum(..)?.add(&many.call([&w])?[0])?]), [&x]);
    Ok(())
}

#[test]
fn transforms_of_functions_from_files() -> Result<()> {
    let x = sample();
    let f = read(&exported(|x| Ok(vec![loss(&x[0])?]), [&x], false)?)?;
    let same = |a: &Array, b: &Array| assert_eq!(content(a), content(b));
    let of_file = |x: &Array| Ok(f.call([x])?.swap_remove(0));
    same(&grad(of_file)(&x)?, &grad(loss)(&x)?);
    let twice = |f: &dyn Fn(&Array) -> Result<Array>| grad(|x: &Array| grad(f)(x)?.sum(..))(&x);
    same(&twice(&of_file)?, &twice(&loss)?);
    let t = x.ones_like();
    same(&jvp(|x| f.call(x), [&x], [&t])?.1[0], &jvp(|x| Ok(vec![loss(&x[0])?]), [&x], [&t])?.1[0]);
    let one = Array::scalar(1.0f32);
    same(&vjp(|x| f.call(x), [&x], [&one])?.1[0], &grad(loss)(&x)?);
    let batch = x
        .broadcast_to(&[3, 4, 5])?
        .multiply(&Array::arange(1.0, 4.0, 1.0, Dtype::Float32)?.reshape(&[3, 1, 1])?)?;
    same(&mapped(of_file, &batch)?, &mapped(loss, &batch)?);
    let compiled = {
        let f = f.clone();
        compile(move |x| f.call(x))
    };
    same(&compiled.call([&x])?[0], &loss(&x)?);
    same(&compiled.call([&x.multiply(2.0)?])?[0], &loss(&x.multiply(2.0)?)?);
    Ok(())
}

#[test]
fn keys_are_arguments_or_constants() -> Result<()> {
    let key = random::key(11)?;
    check(
        "a key",
        |x| Ok(vec![random::uniform(&[3], 0.0, 1.0, Dtype::Float32, Some(&x[0]))?]),
        &[key],
    );
    let file = exported(
        |x| Ok(vec![random::bits(&[3], 4, None)?.add(&x[0])?]),
        &[Array::scalar(0u32)],
        false,
    )?;
    let (f, zero) = (read(&file)?, Array::scalar(0u32));
    let call = || Ok::<_, ultramarine::Error>(content(&f.call([&zero])?[0]));
    assert_eq!(call()?, call()?, "the state's key is a constant");
    Ok(())
}

/// The devices are mocks, of one backend.
#[test]
fn functions_run_where_their_arguments_are() -> Result<()> {
    own_process!();
    // SAFETY: the mock keeps to the contract.
    let gpus = unsafe { register(init) }?;
    set_default_device(Device::CPU)?;
    let (x, w) = (sample(), sample());
    // A copy to a device and a stream in the function are none in the file.
    let there = default_stream(gpus[1])?;
    let f = |x: &[Array]| {
        let y = with_stream(there, || x[0].copy_to(gpus[1])?.add(&w))?;
        Ok(vec![
            y.copy_to(Device::CPU)?.add(1.0)?,
            Array::ones(&[2], Dtype::Float32)?.add(&x[0].index(index!(0, ..2))?)?,
        ])
    };
    let file = exported(f, [&x], false)?;
    let function = read(&file)?;
    let wanted = function.call([&x])?;
    for device in [Device::CPU, gpus[0], gpus[1], Device::CPU] {
        let on_device = x.copy_to(device)?;
        let results = function.call([&on_device])?;
        for (got, wanted) in results.iter().zip(&wanted) {
            assert_eq!((got.device(), content(got)), (device, content(wanted)));
        }
    }
    // A scope wins.
    let scoped = with_stream(default_stream(gpus[0])?, || function.call([&x]))?;
    assert_eq!((scoped[0].device(), content(&scoped[0])), (gpus[0], content(&wanted[0])));
    // Arrays of a device are constants like others.
    let on_gpu = w.copy_to(gpus[0])?;
    let function = read(&exported(|x| Ok(vec![x[0].add(&on_gpu)?]), [&x], false)?)?;
    assert_eq!(function.call([&x])?[0].device(), Device::CPU);
    Ok(())
}
