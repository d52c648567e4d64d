//! Compiled functions: what they compute, when they are traced, what is merged, and how they go with
//! other transforms.

mod counts;
mod fusion;
mod shapeless;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use ultramarine::transforms::{CustomFunction, checkpointed, compile, grad, jvp, vmap};
use ultramarine::{Array, Dtype, Error, KeepDims, Result, random};
use ultramarine_test_support::own_process;

fn x() -> Array {
    Array::from_slice(&[0.5f32, -1.25, 2.0, 3.5], &[4]).unwrap()
}

fn bits(a: &Array) -> Vec<u32> {
    a.to_vec::<f32>().unwrap().into_iter().map(f32::to_bits).collect()
}

/// A function that counts its calls.
fn counted(
    f: impl Fn(&[Array]) -> Result<Vec<Array>> + Send + Sync + 'static,
) -> (Arc<AtomicUsize>, impl Fn(&[Array]) -> Result<Vec<Array>> + Send + Sync + 'static) {
    let count = Arc::new(AtomicUsize::new(0));
    let own = count.clone();
    let f = move |x: &[Array]| {
        own.fetch_add(1, Ordering::Relaxed);
        f(x)
    };
    (count, f)
}

fn some_function(x: &Array) -> Result<Array> {
    let y = (&x.exp()?.add(&x.exp()?)? * 2.0)?;
    y.subtract(&x.sin()?)?.sum(None)?.multiply(x)
}

#[test]
fn traced_once_for_each_shape_and_dtype() -> Result<()> {
    let (count, f) = counted(|x| Ok(vec![some_function(&x[0])?]));
    let f = compile(f);
    for _ in 0..3 {
        let y = f.call(&[x()])?;
        assert_eq!(bits(&y[0]), bits(&some_function(&x())?));
    }
    assert_eq!(count.load(Ordering::Relaxed), 1);
    f.call(&[x().reshape(&[2, 2])?])?;
    f.call(&[x().astype(Dtype::Float16)])?;
    f.call(&[x()])?;
    assert_eq!((count.load(Ordering::Relaxed), f.traces()), (3, 3));
    Ok(())
}

/// 256 traces are kept: the one that was called least recently goes, with the arrays that it holds.
#[test]
fn traces_that_are_not_called_are_let_go() -> Result<()> {
    let (count, f) = counted(|x| Ok(vec![x[0].exp()?]));
    let f = compile(f);
    let call = |n: usize| f.call(&[Array::zeros(&[n], Dtype::Float32)?]).map(drop);
    for n in 1..=300 {
        call(n)?;
        // One that is in use stays.
        call(1)?;
    }
    assert_eq!((count.load(Ordering::Relaxed), f.traces()), (300, 256));
    // Those that were called last are there.
    [1, 46, 47, 299, 300].into_iter().try_for_each(call)?;
    assert_eq!(count.load(Ordering::Relaxed), 300);
    [2, 45].into_iter().try_for_each(call)?;
    assert_eq!((count.load(Ordering::Relaxed), f.traces()), (302, 256));
    Ok(())
}

#[test]
fn arguments_and_captured_arrays_are_results() -> Result<()> {
    let captured = x();
    let f = compile(move |a| Ok(vec![a[0].clone(), captured.clone(), a[0].clone()]));
    let y = f.call(&[(&x() * 2.0)?])?;
    assert_eq!(bits(&y[0]), bits(&(&x() * 2.0)?));
    assert_eq!(bits(&y[1]), bits(&x()));
    assert_eq!(bits(&y[2]), bits(&y[0]));
    Ok(())
}

#[test]
fn evaluating_a_stand_in_is_an_error() {
    let f = compile(|a| {
        a[0].exp()?.eval()?;
        Ok(vec![a[0].clone()])
    });
    let error = f.call(&[x()]).unwrap_err();
    assert!(matches!(error, Error::Value(_)), "{error:?}");
    assert!(error.to_string().contains("during function transformations"), "{error}");
}

#[test]
fn errors_of_the_function_leave_nothing_behind() -> Result<()> {
    let (count, f) =
        counted(|a| if a[0].ndim() == 1 { Err(Error::value("f", "no.")) } else { Ok(a.to_vec()) });
    let f = compile(f);
    assert!(f.call(&[x()]).is_err() && f.call(&[x()]).is_err());
    assert_eq!((count.load(Ordering::Relaxed), f.traces()), (2, 0));
    assert_eq!(f.call(&[x().reshape(&[2, 2])?])?.len(), 1);
    // Nothing is traced any more: values may be had.
    x().exp()?.eval()
}

#[test]
fn gradients_go_through_and_inside() -> Result<()> {
    let loss = |a: &Array| some_function(a)?.sum(None);
    let expected = grad(loss)(&x())?;
    let compiled = Arc::new(compile(move |a| Ok(vec![loss(&a[0])?])));
    let of = compiled.clone();
    for _ in 0..2 {
        let outside = grad(|a: &Array| Ok(of.call(std::slice::from_ref(a))?.remove(0)))(&x())?;
        assert_eq!(bits(&outside), bits(&expected));
    }
    assert_eq!(compiled.traces(), 1);
    let inside = compile(move |a| Ok(vec![grad(loss)(&a[0])?]));
    let both = compile(move |a| {
        Ok(vec![grad(|a: &Array| Ok(of.call(std::slice::from_ref(a))?.remove(0)))(&a[0])?])
    });
    for _ in 0..2 {
        assert_eq!(bits(&inside.call(&[x()])?[0]), bits(&expected));
        assert_eq!(bits(&both.call(&[x()])?[0]), bits(&expected));
    }
    // Without a transform again.
    assert_eq!(bits(&compiled.call(&[x()])?[0]), bits(&loss(&x())?));
    Ok(())
}

#[test]
fn forward_mode_and_batches_go_through_and_inside() -> Result<()> {
    let f = |a: &[Array]| Ok(vec![some_function(&a[0])?]);
    let tangent = Array::ones(&[4], Dtype::Float32)?;
    let (_, expected) = jvp(f, &[x()], std::slice::from_ref(&tangent))?;
    let c = compile(f);
    let (_, products) = jvp(|a| c.call(a), &[x()], &[tangent])?;
    assert_eq!(bits(&products[0]), bits(&expected[0]));

    let batch = Array::from_slice(&[0.1f32, 0.2, 0.3, 0.4, 0.5, 0.6], &[2, 3])?;
    let mapped = |f: &dyn Fn(&[Array]) -> Result<Vec<Array>>, b: &Array| {
        vmap(f, std::slice::from_ref(b), [Some(0)], 0)
    };
    let expected = mapped(&f, &batch)?;
    let inside = compile(move |b| mapped(&f, &b[0]));
    for _ in 0..2 {
        assert_eq!(bits(&mapped(&|a| c.call(a), &batch)?[0]), bits(&expected[0]));
        assert_eq!(bits(&inside.call(std::slice::from_ref(&batch))?[0]), bits(&expected[0]));
    }
    Ok(())
}

#[test]
fn arrays_of_a_transform_outside_are_not_kept() -> Result<()> {
    // The function that is compiled closes over the argument of the gradient.
    let of = |w: &Array| {
        let w = w.clone();
        let f = compile(move |a| Ok(vec![a[0].multiply(&w)?]));
        let y = f.call(&[Array::scalar(3.0f32)])?.remove(0);
        assert_eq!(f.traces(), 0);
        y.multiply(&y)
    };
    assert_eq!(grad(of)(&Array::scalar(2.0f32))?.item::<f32>()?, 36.0);
    Ok(())
}

#[test]
fn custom_functions_keep_their_rules() -> Result<()> {
    let round = Arc::new(
        CustomFunction::new(|x| Ok(vec![x[0].round(0)?]))
            .with_vjp(|_, c, _| Ok(vec![Some((&c[0] * 10.0)?)])),
    );
    let f = compile(move |a| Ok(vec![round.call(a)?[0].square()?]));
    let loss = |a: &Array| Ok(f.call(std::slice::from_ref(a))?.remove(0));
    let at = Array::scalar(2.6f32);
    for _ in 0..2 {
        assert_eq!(loss(&at)?.item::<f32>()?, 9.0);
        assert_eq!(grad(loss)(&at)?.item::<f32>()?, 60.0);
    }
    Ok(())
}

#[test]
fn checkpoints_inside() -> Result<()> {
    let block = |a: &[Array]| Ok(vec![a[0].exp()?.sin()?]);
    let loss = move |a: &Array| checkpointed(block, std::slice::from_ref(a))?[0].sum(None);
    let expected = grad(loss)(&x())?;
    let inside = compile(move |a| Ok(vec![grad(loss)(&a[0])?]));
    let f = compile(move |a| Ok(vec![loss(&a[0])?]));
    let outside = grad(|a: &Array| Ok(f.call(std::slice::from_ref(a))?.remove(0)));
    for _ in 0..2 {
        assert_eq!(bits(&inside.call(&[x()])?[0]), bits(&expected));
        assert_eq!(bits(&outside(&x())?), bits(&expected));
    }
    Ok(())
}

#[test]
fn several_results_of_one_operation() -> Result<()> {
    let m = Array::from_slice(&[2.0f32, 1.0, 1.0, 3.0], &[2, 2])?;
    let f = |a: &[Array]| {
        let (q, r) = ultramarine::linalg::qr(&a[0])?;
        Ok(vec![q.matmul(&r)?, r])
    };
    let c = compile(f);
    for _ in 0..2 {
        let (found, expected) = (c.call(std::slice::from_ref(&m))?, f(std::slice::from_ref(&m))?);
        assert_eq!(bits(&found[0]), bits(&expected[0]));
        assert_eq!(bits(&found[1]), bits(&expected[1]));
    }
    Ok(())
}

#[test]
fn random_numbers_by_key() -> Result<()> {
    let f = |a: &[Array]| {
        let keys = random::split(&a[0], 2)?;
        let key = |i: isize| keys.slice(&[i, 0], &[i + 1, 2], &[1, 1])?.reshape(&[2]);
        let first = random::bits(&[3], 4, Some(&key(0)?))?;
        Ok(vec![first, random::bits(&[3], 4, Some(&key(1)?))?])
    };
    let c = compile(f);
    for seed in 0..3 {
        let key = random::key(seed)?;
        let (found, expected) = (c.call(std::slice::from_ref(&key))?, f(&[key])?);
        for (a, b) in found.iter().zip(&expected) {
            assert_eq!(a.to_vec::<u32>()?, b.to_vec::<u32>()?);
        }
        assert_ne!(found[0].to_vec::<u32>()?, found[1].to_vec::<u32>()?);
    }
    assert_eq!(c.traces(), 1);
    Ok(())
}

#[test]
fn deep_graphs_do_not_recurse() -> Result<()> {
    let f = compile(|a| {
        let mut y = a[0].clone();
        for _ in 0..100_000 {
            y = y.add(&a[0])?;
        }
        Ok(vec![y])
    });
    for _ in 0..2 {
        let y = f.call(&[Array::from_slice(&[1i32, 2], &[2])?])?;
        assert_eq!(y[0].to_vec::<i32>()?, [100_001, 200_002]);
    }
    Ok(())
}

#[test]
fn results_that_do_not_depend_on_arguments_are_new_each_time() -> Result<()> {
    let f = compile(|_| Ok(vec![Array::arange(0.0, 4.0, 1.0, Dtype::Float32)?]));
    let (a, b) = (f.call(&[x()])?.remove(0), f.call(&[x()])?.remove(0));
    assert_eq!(bits(&a), bits(&b));
    assert_ne!(a.value()?.data(), b.value()?.data());
    Ok(())
}

#[test]
fn different_attributes_are_different_operations() -> Result<()> {
    use ultramarine::fft::{self, Norm};
    let f = |x: &[Array]| {
        let of = |norm| fft::fft(&x[0], None, -1, norm)?.abs();
        let a = of(Norm::Backward)?.add(&of(Norm::Forward)?)?;
        let b = x[0].sum(KeepDims(0))?.add(&x[0].max(KeepDims(0))?)?;
        Ok(vec![a, b])
    };
    let c = compile(f);
    let (found, expected) = (c.call(&[x()])?, f(&[x()])?);
    assert_eq!(bits(&found[0]), bits(&expected[0]));
    assert_eq!(bits(&found[1]), bits(&expected[1]));
    Ok(())
}

#[test]
fn numbers_are_folded() -> Result<()> {
    // Without a program for the numbers, only the product is left.
    let f = |x: &[Array]| {
        let two = Array::full(&[3, 3], 2.0f32)?;
        let k = two.exp()?.sin()?.add(two.astype(Dtype::Int32).astype(Dtype::Float32))?;
        Ok(vec![x[0].matmul(&x[0])?, x[0].multiply(&k)?])
    };
    let m = Array::ones(&[3, 3], Dtype::Float32)?;
    let (found, expected) = (compile(f).call(std::slice::from_ref(&m))?, f(&[m])?);
    assert_eq!(bits(&found[1]), bits(&expected[1]));
    Ok(())
}

#[test]
fn placements_are_kept() -> Result<()> {
    use ultramarine::{Device, new_stream, with_stream};
    let stream = new_stream(Device::CPU)?;
    let f = compile(move |x| Ok(vec![with_stream(stream, || x[0].exp())?, x[0].exp()?]));
    for _ in 0..2 {
        let y = f.call(&[x()])?;
        assert_eq!(y[0].stream(), stream);
        assert_ne!(y[1].stream(), stream);
        assert_eq!(bits(&y[0]), bits(&y[1]));
    }
    // Another default stream is another trace.
    let y = with_stream(stream, || f.call(&[x()]))?;
    assert_eq!((y[1].stream(), f.traces()), (stream, 2));
    Ok(())
}

#[test]
fn switched_off_it_is_the_function() -> Result<()> {
    own_process!("ULTRAMARINE_DISABLE_COMPILE" = "1");
    let (count, f) = counted(|x| Ok(vec![(&x[0] * x[0].sum(None)?.item::<f32>()? as f64)?]));
    let f = compile(f);
    f.call(&[x()])?;
    assert_eq!(f.call(&[x()])?.len(), 1);
    assert_eq!((count.load(Ordering::Relaxed), f.traces()), (2, 0));
    ultramarine::transforms::set_compile(true);
    assert!(f.call(&[x()]).is_err());
    Ok(())
}
