//! Functions with transforms of their own, checkpoints, and `depends`.

#![allow(clippy::cloned_ref_to_slice_refs, reason = "lists of one array look like lists of two")]

use crate::support::arrays::f64s;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use ultramarine::transforms::{
    CustomFunction, checkpoint, checkpointed, grad, jvp, value_and_grad, vjp, vmap,
};
use ultramarine::{Array, Dtype, Error, Result, depends, eval, memory, stack};
use ultramarine_test_support::{Tolerance, assert_close, own_process};

fn of(data: &[f32]) -> Array {
    Array::from_slice(data, &[data.len()]).expect("as many elements as the shape says")
}

fn one(f: impl Fn(&Array) -> Result<Array>) -> impl Fn(&[Array]) -> Result<Vec<Array>> {
    move |x| Ok(vec![f(&x[0])?])
}

fn times(x: &Array, factor: f32) -> Result<Array> {
    x.multiply(Array::scalar(factor))
}

/// The sum of what a function of one array gives.
fn summed(f: &CustomFunction) -> impl Fn(&Array) -> Result<Array> + '_ {
    |x| f.call(std::slice::from_ref(x))?[0].sum(None)
}

/// The square, whose derivatives say which rule made them.
fn square() -> CustomFunction {
    CustomFunction::new(one(Array::square))
}

fn mapped(f: &dyn Fn(&Array) -> Result<Array>, x: &Array) -> Result<Array> {
    let run = |x: &[Array]| Ok::<_, Error>(vec![f(&x[0])?]);
    Ok(vmap(run, std::slice::from_ref(x), [Some(0)], 0)?.swap_remove(0))
}

fn pushed(f: &CustomFunction, x: &Array) -> Result<Vec<f32>> {
    let ones = Array::ones(x.shape(), x.dtype())?;
    jvp(|x: &[Array]| f.call(x), std::slice::from_ref(x), &[ones])?.1[0].to_vec()
}

#[test]
fn each_transform_has_its_rule_or_the_functions_own() -> Result<()> {
    let x = of(&[1.0, 2.0, 3.0]);
    let reverse = square().with_vjp(|_, c, _| Ok(vec![Some(times(&c[0], 100.0)?)]));
    let forward =
        square().with_jvp(|_, t| Ok(vec![t[0].as_ref().map(|t| times(t, 7.0)).transpose()?]));
    let batching = square().with_vmap(|x, axes| {
        assert_eq!(axes, [Some(0)]);
        Ok(vec![(times(&x[0], -1.0)?, Some(0))])
    });
    let own = [2.0, 4.0, 6.0];
    for (f, gradient, tangent, batch) in [
        (&square(), own, own, [1.0, 4.0, 9.0]),
        (&reverse, [100.0; 3], own, [1.0, 4.0, 9.0]),
        (&forward, own, [7.0; 3], [1.0, 4.0, 9.0]),
        (&batching, own, own, [-1.0, -2.0, -3.0]),
    ] {
        assert_eq!(f.call(&[x.clone()])?[0].to_vec::<f32>()?, [1.0, 4.0, 9.0]);
        assert_eq!(grad(summed(f))(&x)?.to_vec::<f32>()?, gradient, "{f:?}");
        assert_eq!(pushed(f, &x)?, tangent, "{f:?}");
        let made = mapped(&|x| Ok(f.call(&[x.clone()])?[0].clone()), &x)?;
        assert_eq!(made.to_vec::<f32>()?, batch, "{f:?}");
    }
    // Rules nest with other transforms: of a mapped gradient, and of a gradient's gradient.
    let made = mapped(&grad(summed(&reverse)), &x)?;
    assert_eq!(made.to_vec::<f32>()?, [100.0; 3]);
    let cube = CustomFunction::new(one(|x| x.square()?.multiply(x)))
        .with_vjp(|x, c, _| Ok(vec![Some(times(&x[0].square()?.multiply(&c[0])?, 5.0)?)]));
    let slope = |x: &Array| grad(summed(&cube))(x)?.sum(None);
    assert_eq!(grad(slope)(&x)?.to_vec::<f32>()?, [10.0, 20.0, 30.0]);
    assert_eq!(mapped(&grad(slope), &x)?.to_vec::<f32>()?, [10.0, 20.0, 30.0]);
    // Through a mapped function go the derivatives of its operations, as in MLX.
    let through = |x: &Array| mapped(&|x| Ok(reverse.call(&[x.clone()])?[0].clone()), x)?.sum(None);
    assert_eq!(grad(through)(&x)?.to_vec::<f32>()?, own);
    Ok(())
}

#[test]
fn rules_see_arguments_outputs_and_cotangents() -> Result<()> {
    let f = CustomFunction::new(|x| Ok(vec![x[0].multiply(&x[1])?, x[0].add(&x[1])?]))
        .with_vjp(|x, c, out| {
            assert_eq!((x.len(), c.len(), out.len()), (2, 2, 2));
            Ok(vec![Some(c[0].multiply(&out[0])?), Some(c[1].multiply(&out[1])?)])
        })
        .with_jvp(|x, t| {
            assert!(t[0].is_none() && t[1].is_some());
            Ok(vec![Some(x[0].clone()), None])
        });
    let (x, y) = (of(&[1.0, 2.0]), of(&[3.0, 4.0]));
    let (_, g) = vjp(|a: &[Array]| f.call(a), &[x.clone(), y.clone()], &[y.clone(), x.clone()])?;
    assert_eq!(g[0].to_vec::<f32>()?, [9.0, 32.0]);
    assert_eq!(g[1].to_vec::<f32>()?, [4.0, 12.0]);
    // An output that is not used has a cotangent of zeros.
    let first = |x: &Array| f.call(&[x.clone(), y.clone()])?[1].sum(None);
    assert_eq!(grad(first)(&x)?.to_vec::<f32>()?, [0.0, 0.0]);
    let of_y = |a: &[Array]| f.call(&[x.clone(), a[0].clone()]);
    let (_, t) = jvp(of_y, &[y.clone()], &[y.clone()])?;
    assert_eq!((t[0].to_vec::<f32>()?, t[1].to_vec::<f32>()?), (vec![1.0, 2.0], vec![0.0; 2]));
    Ok(())
}

#[test]
fn rules_that_do_not_fit_are_errors() -> Result<()> {
    let x = of(&[1.0, 2.0]);
    let text = |error: Option<Error>| match error {
        Some(Error::Value(text)) => text,
        other => panic!("{other:?}"),
    };
    let wrong = square().with_vjp(|_, _, _| Ok(vec![]));
    assert!(text(grad(summed(&wrong))(&x).err()).contains("0 arrays for 1 arguments"));
    let wrong = square().with_vjp(|_, _, _| Ok(vec![Some(Array::zeros(&[3], Dtype::Float32)?)]));
    assert!(text(grad(summed(&wrong))(&x).err()).contains("(3,) for argument 0"));
    let wrong = square().with_jvp(|_, _| Ok(vec![None, None]));
    assert!(text(pushed(&wrong, &x).err()).contains("2 arrays for 1 outputs"));
    let call = |f: &CustomFunction| mapped(&|x| Ok(f.call(&[x.clone()])?[0].clone()), &x);
    let wrong = square().with_vmap(|x, _| Ok(vec![(x[0].clone(), None)]));
    assert!(text(call(&wrong).err()).contains("mapped axis None for output 0"));
    let wrong = square().with_vmap(|x, _| Ok(vec![(x[0].clone(), Some(1))]));
    assert!(matches!(call(&wrong), Err(Error::Index(_))));

    // The dtype is made to fit; an error of the caller's own comes back as it is.
    let ints = square().with_vjp(|_, c, _| Ok(vec![Some(c[0].astype(Dtype::Int32))]));
    assert_eq!(grad(summed(&ints))(&x)?.dtype(), Dtype::Float32);
    let own = square().with_vjp(|_, _, _| Err(Error::other(std::fmt::Error)));
    match grad(summed(&own))(&x) {
        Err(Error::Other(cause)) => assert!(cause.downcast_ref::<std::fmt::Error>().is_some()),
        other => panic!("{other:?}"),
    }
    Ok(())
}

#[test]
fn closed_over_arrays() -> Result<()> {
    let (x, y) = (of(&[1.0, 2.0]), of(&[3.0, 4.0]));
    let product = |rule: bool| {
        move |a: &(Array, Array)| {
            let other = a.1.square()?;
            let f = CustomFunction::new(one(move |x| x.multiply(&other)));
            let f = if rule { f.with_vjp(|_, c, _| Ok(vec![Some(c[0].clone())])) } else { f };
            f.call(&[a.0.clone()])?[0].sum(None)
        }
    };
    let at = (x.clone(), y.clone());
    let (dx, dy) = grad(product(false))(&at)?;
    assert_eq!((dx.to_vec::<f32>()?, dy.to_vec::<f32>()?), (vec![9.0, 16.0], vec![6.0, 16.0]));
    // With a rule the function is pure.
    let (dx, dy) = grad(product(true))(&at)?;
    assert_eq!((dx.to_vec::<f32>()?, dy.to_vec::<f32>()?), (vec![1.0; 2], vec![0.0; 2]));
    // vmap maps over it nevertheless, unless a rule would have to.
    let closed = |rule: bool, x: Array| {
        move |y: &Array| {
            let y = y.clone();
            let f = CustomFunction::new(one(move |x| x.multiply(&y)))
                .with_vjp(|_, c, _| Ok(vec![Some(c[0].clone())]));
            let f = if rule { f.with_vmap(|x, _| Ok(vec![(x[0].clone(), None)])) } else { f };
            Ok(f.call(&[x.clone()])?[0].clone())
        }
    };
    let made = mapped(&closed(false, x.clone()), &y)?;
    assert_eq!(made.to_vec::<f32>()?, [3.0, 6.0, 4.0, 8.0]);
    assert!(matches!(mapped(&closed(true, x.clone()), &y), Err(Error::Value(_))));

    // A checkpoint has the gradients of both.
    let block = |a: &(Array, Array)| {
        let other = a.1.square()?;
        let outputs = checkpointed(one(move |x| x.multiply(&other)), &[a.0.clone()])?;
        outputs[0].sum(None)
    };
    let (dx, dy) = grad(block)(&at)?;
    assert_eq!((dx.to_vec::<f32>()?, dy.to_vec::<f32>()?), (vec![9.0, 16.0], vec![6.0, 16.0]));
    let pair = |a: &[Array]| Ok::<_, Error>(vec![block(&(a[0].clone(), a[1].clone()))?]);
    let (_, t) = jvp(pair, &[x.clone(), y.clone()], &[y.clone(), x.clone()])?;
    // 9 * 3 + 16 * 4 + 6 * 1 + 16 * 2
    assert_eq!(t[0].item::<f32>()?, 129.0);
    let batched = mapped(&|y| block(&(x.clone(), y.clone())), &y)?;
    assert_eq!(batched.to_vec::<f32>()?, [27.0, 48.0]);
    let through = |y: &Array| mapped(&|y| block(&(x.clone(), y.clone())), y)?.sum(None);
    assert_eq!(grad(through)(&y)?.to_vec::<f32>()?, [18.0, 24.0]);
    Ok(())
}

/// Some steps, each of which is needed for the gradient.
fn steps(x: &Array) -> Result<Array> {
    let mut y = x.clone();
    for _ in 0..4 {
        y = y.sin()?.multiply(&y.cos()?)?.add(&y)?;
    }
    Ok(y)
}

#[test]
fn checkpoints_have_the_same_gradients() -> Result<()> {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    let block = checkpoint(move |(x, more): &(Array, Vec<Array>)| {
        counted.fetch_add(1, Ordering::Relaxed);
        Ok((steps(x)?.multiply(&more[0])?, vec![more[0].exp()?, x.add(&more[1])?]))
    });
    let plain = |(x, more): &(Array, Vec<Array>)| {
        Ok((steps(x)?.multiply(&more[0])?, vec![more[0].exp()?, x.add(&more[1])?]))
    };
    type Out = (Array, Vec<Array>);
    let total =
        |(a, more): Out| -> Result<Array> { a.add(&more[0])?.multiply(&more[1])?.sum(None) };
    let at = (of(&[0.1, 0.7]), vec![of(&[0.3, -0.2]), of(&[1.0, 2.0])]);
    let (v, (dx, more)) = value_and_grad(|a: &Out| total(block(a)?))(&at)?;
    let (w, (ex, want)) = value_and_grad(|a: &Out| total(plain(a)?))(&at)?;
    assert_eq!(v.item::<f32>()?, w.item::<f32>()?);
    assert_eq!(dx.to_vec::<f32>()?, ex.to_vec::<f32>()?);
    assert_eq!(more[0].to_vec::<f32>()?, want[0].to_vec::<f32>()?);
    assert_eq!(more[1].to_vec::<f32>()?, want[1].to_vec::<f32>()?);
    assert_eq!(calls.load(Ordering::Relaxed), 2, "once forward, once backward");

    // In each other, in other transforms, and of themselves.
    let inner = Arc::new(checkpoint(steps));
    let outer = checkpoint(move |x: &Array| inner(&inner(x)?)?.square());
    let twice = |x: &Array| steps(&steps(x)?)?.square();
    let x = of(&[0.2, 0.5, 0.9]);
    let slope = |f: &dyn Fn(&Array) -> Result<Array>, x: &Array| -> Result<Array> {
        grad(|x: &Array| f(x)?.sum(None))(x)?.sum(None)
    };
    let near = |a: &Array, b: &Array| -> Result<()> {
        for (a, b) in f64s(a).iter().zip(f64s(b)) {
            let bound = Tolerance::absolute(1e-4 * b.abs().max(1.0));
            assert!(b.is_finite());
            assert_close("gradient", &[*a], &[b], bound);
        }
        Ok(())
    };
    near(&grad(|x: &Array| slope(&outer, x))(&x)?, &grad(|x: &Array| slope(&twice, x))(&x)?)?;
    let batch = stack(&[x.clone(), times(&x, 0.5)?], 0)?;
    let rows = |f: &dyn Fn(&Array) -> Result<Array>| mapped(&|x| slope(f, x), &batch);
    near(&rows(&outer)?, &rows(&twice)?)?;
    let through =
        |f: &dyn Fn(&Array) -> Result<Array>| grad(|b: &Array| mapped(f, b)?.sum(None))(&batch);
    near(&through(&outer)?, &through(&twice)?)?;
    Ok(())
}

#[test]
fn checkpoints_take_less_memory() -> Result<()> {
    own_process!();
    const N: usize = 1 << 18;
    const BYTES: usize = 4 * N;
    const BLOCKS: usize = 8;
    let x = Array::from_slice(&vec![0.5f32; N], &[N])?;
    // Four arrays for each block that the gradient needs; no elementwise program holds them all.
    let block = |x: &Array| -> Result<Array> {
        let mut y = x.clone();
        for _ in 0..4 {
            y = y.cumsum(None, false, true)?.tanh()?;
        }
        Ok(y)
    };
    let peak = |f: &dyn Fn(&Array) -> Result<Array>| -> Result<(usize, Vec<f32>)> {
        let run = |x: &Array| {
            let mut y = x.clone();
            for _ in 0..BLOCKS {
                y = f(&y)?;
            }
            y.sum(None)
        };
        let start = memory::active();
        memory::reset_peak();
        let (value, gradient) = value_and_grad(run)(&x)?;
        eval(&[value, gradient.clone()])?;
        Ok((memory::peak() - start, gradient.to_vec()?))
    };
    let recomputed = checkpoint(block);
    let (less, gradient) = peak(&recomputed)?;
    let (all, want) = peak(&block)?;
    assert_eq!(gradient, want);
    // Without: some four arrays a block. With: one a block, and those of the block at work.
    assert!(all >= (4 * BLOCKS - 1) * BYTES, "{} arrays", all / BYTES);
    assert!(less <= (BLOCKS + 12) * BYTES, "{} arrays, {} without", less / BYTES, all / BYTES);
    // Nothing of it stays.
    let before = memory::active();
    let (value, gradient) = value_and_grad(|x: &Array| recomputed(x)?.sum(None))(&x)?;
    eval(&[value.clone(), gradient.clone()])?;
    drop((value, gradient));
    // The stream may let go a moment later.
    let gone = || memory::active() < before + BYTES / 2;
    for _ in 0..1000 {
        if gone() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert!(gone(), "{} bytes stay", memory::active().saturating_sub(before));
    Ok(())
}

#[test]
fn dependencies_come_first() -> Result<()> {
    let (x, y) = (of(&[1.0, 2.0]), of(&[3.0, 4.0]));
    let first = y.exp()?;
    let after = depends(&[x.clone(), x.square()?], std::slice::from_ref(&first));
    assert!(!first.is_evaluated());
    assert_eq!(after[1].to_vec::<f32>()?, [1.0, 4.0]);
    assert!(first.is_evaluated());
    assert_eq!(after[0].to_vec::<f32>()?, [1.0, 2.0]);
    assert!(depends(&[] as &[Array], &[first]).is_empty());

    // Its error is theirs.
    let bad = x.item_scalar().err();
    assert!(bad.is_some());
    let f = |x: &Array| depends(&[x.square()?], &[x.exp()?])[0].sum(None);
    assert_eq!(grad(f)(&x)?.to_vec::<f32>()?, [2.0, 4.0]);
    let (_, t) = jvp(one(f), &[x.clone()], &[y.clone()])?;
    assert_eq!(t[0].item::<f32>()?, 22.0);
    let of_each = mapped(&|x| Ok(depends(&[x.square()?], &[y.clone()]).swap_remove(0)), &x)?;
    assert_eq!(of_each.to_vec::<f32>()?, [1.0, 4.0]);
    Ok(())
}
