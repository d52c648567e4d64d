//! What belongs to a trace, and for how long: a trace keeps the operands of its own arrays and of no others.
//!
//! Bytes in use are the process's, so these tests run in processes of their own.

#![allow(clippy::cloned_ref_to_slice_refs, reason = "lists of one array look like lists of two")]

use crate::support::arrays::f64s;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Barrier;
use std::sync::mpsc::channel;
use std::thread;
use ultramarine::transforms::{CustomFunction, checkpoint, compile, grad, vjp, vmap};
use ultramarine::{Array, Error, Result, eval, memory};
use ultramarine_test_support::own_process;

/// Elements of the arrays whose memory is counted.
const N: usize = 1024;
const BYTES: usize = 4 * N;

fn of(data: &[f32]) -> Array {
    Array::from_slice(data, &[data.len()]).expect("as many elements as the shape says")
}

fn filled(value: f32) -> Array {
    of(&[value; N])
}

fn one(x: &Array) -> Result<Vec<Array>> {
    Ok(vec![x.clone()])
}

/// Calls `f` while another thread is inside of `vjp`, `vmap` and the trace of a compiled function.
fn beside_traces<T>(f: impl FnOnce() -> T) -> T {
    let (begun, over) = (Barrier::new(2), Barrier::new(2));
    thread::scope(|scope| {
        scope.spawn(|| {
            let compiled = compile(|x: &[Array]| one(&x[0].exp()?));
            let inner = |x: &[Array]| {
                let y = compiled.call(x)?.swap_remove(0);
                begun.wait();
                over.wait();
                one(&y)
            };
            let mapped = |x: &[Array]| vmap(inner, x, [Some(0)], 0);
            let x = of(&[1.0, 2.0]);
            let outcome: Result<_> = vjp(mapped, &[x.clone()], &[x]);
            assert!(outcome.is_ok());
        });
        begun.wait();
        let result = catch_unwind(AssertUnwindSafe(f));
        over.wait();
        result.unwrap_or_else(|panic| resume_unwind(panic))
    })
}

/// Steps of gradient descent, each evaluated.
fn train(mut w: Array, steps: usize) -> Result<Array> {
    let loss = |w: &Array| w.square()?.sin()?.sum(None);
    for _ in 0..steps {
        let gradient = grad(loss)(&w)?;
        w = w.subtract(&gradient.multiply(Array::scalar(0.01f32))?)?;
        w.eval()?;
    }
    Ok(w)
}

/// Eight threads make 2,000 steps while another one traces: nothing of a step stays.
#[test]
fn training_beside_traces_keeps_its_size() {
    own_process!();
    let sizes = beside_traces(|| {
        let (at, go) = (Barrier::new(9), Barrier::new(9));
        thread::scope(|scope| {
            for i in 0..8 {
                let (at, go) = (&at, &go);
                scope.spawn(move || {
                    let w = train(filled(1.0 + i as f32 / 8.0), 10).expect("trains");
                    at.wait();
                    go.wait();
                    let w = train(w, 250).expect("trains");
                    at.wait();
                    go.wait();
                    drop(w);
                });
            }
            let mut sizes = Vec::new();
            for _ in 0..2 {
                at.wait();
                sizes.push(memory::active());
                go.wait();
            }
            sizes
        })
    });
    // A thread may hold a buffer a moment longer than its step; 250 steps would keep hundreds.
    assert!(sizes[1] <= sizes[0] + 8 * BYTES, "{sizes:?}");
}

/// What a transform returned is memory like any other once it is over, whoever else traces.
#[test]
fn results_of_transforms_are_donated_beside_traces() -> Result<()> {
    own_process!();
    beside_traces(|| {
        let gradient = grad(|x: &Array| x.exp()?.sum(None))(&filled(1.0))?;
        gradient.eval()?;
        let memory = gradient.value()?.buffer.as_ptr();
        let y = gradient.multiply(Array::scalar(3.0f32))?;
        drop(gradient);
        y.eval()?;
        assert_eq!(y.value()?.buffer.as_ptr(), memory);
        Ok(())
    })
}

/// A trace that is over keeps nothing: its arrays let go of operands that were computed in it.
#[test]
fn operands_go_with_the_trace() -> Result<()> {
    own_process!();
    let x = filled(0.5);
    let before = memory::active();
    let f = |x: &[Array]| {
        let y = x[0].exp()?.matmul(&x[0])?.add(&x[0].sin()?)?;
        let z = y.cumsum(Some(0), false, true)?;
        eval(&[y, z.clone()])?;
        assert!(memory::active() > before + 2 * BYTES, "what the gradient needs is there");
        one(&z)
    };
    let (outputs, gradients) = vjp(f, &[x.clone()], &[filled(1.0)])?;
    eval(&gradients)?;
    drop(gradients);
    assert_eq!(memory::active() - before, BYTES, "the output alone");
    drop(outputs);
    assert_eq!(memory::active(), before);
    Ok(())
}

/// A trace inside of another one is over before it.
#[test]
fn inner_traces_end_before_outer_ones() -> Result<()> {
    own_process!();
    let outer = |x: &[Array]| {
        let w = train(filled(1.0), 5)?;
        let before = memory::active();
        let w = train(w, 100)?;
        assert_eq!(memory::active(), before);
        // Of what depends on the outer trace's argument all is kept, and differentiated.
        let y = x[0].multiply(&w)?;
        let inner = grad(|w: &Array| w.multiply(&x[0])?.square()?.sum(None))(&w)?;
        eval(&[y.clone(), inner.clone()])?;
        one(&inner)
    };
    let x = filled(2.0);
    let (outputs, gradients) = vjp(outer, &[x.clone()], &[filled(1.0)])?;
    // d(2 w x^2)/dx = 4 w x
    let w = f64s(&outputs[0])[0] / 8.0;
    assert!((f64s(&gradients[0])[0] - 8.0 * w).abs() < 1e-4);
    Ok(())
}

/// Arrays that do not depend on a live trace leave no record behind, however long it goes on.
#[test]
fn evaluations_inside_of_a_trace_leave_nothing() -> Result<()> {
    own_process!();
    let f = |x: &[Array]| {
        let step = || -> Result<()> { x[0].sin()?.exp()?.cumsum(Some(0), false, true)?.eval() };
        step()?;
        let before = memory::active();
        (0..1000).try_for_each(|_| step())?;
        assert_eq!(memory::active(), before);
        one(&x[0])
    };
    vjp(f, &[filled(1.0)], &[filled(1.0)]).map(drop)
}

/// An array of a trace is computed with on another thread, and evaluated there.
#[test]
fn another_thread_may_work_for_a_trace() -> Result<()> {
    let f = |x: &[Array]| {
        let x = x[0].clone();
        let work = move || {
            let square = CustomFunction::new(|x| one(&x[0].square()?))
                .with_vjp(|x, c, _| Ok(vec![Some(x[0].multiply(&c[0])?)]));
            let y = square.call(&[x.sin()?])?.swap_remove(0);
            y.eval()?;
            Ok::<_, Error>(y)
        };
        one(&thread::spawn(work).join().expect("no panic")?)
    };
    let (_, gradients) = vjp(f, &[of(&[0.3, 0.7])], &[of(&[1.0, 1.0])])?;
    // By the rule the square's derivative is its argument: sin(x) cos(x).
    let wanted = [0.3f64, 0.7].map(|x| x.sin() * x.cos());
    for (got, wanted) in f64s(&gradients[0]).iter().zip(wanted) {
        assert!((got - wanted).abs() < 1e-6, "{got} is not {wanted}");
    }
    Ok(())
}

/// A checkpoint may share its work among threads: what they make of a closed-over array is inside.
#[test]
fn checkpoints_may_use_threads() -> Result<()> {
    let x = of(&[1.0, 2.0]);
    let f = |w: &Array| {
        let w = w.clone();
        let block = checkpoint(move |x: &Array| {
            let w = w.clone();
            let other = thread::spawn(move || w.multiply(&w)?.sin()).join().expect("no panic")?;
            x.multiply(&other)
        });
        block(&x)?.sum(None)
    };
    let gradient = f64s(&grad(f)(&of(&[0.3, 0.4]))?);
    // d x sin(w^2) / dw = 2 x w cos(w^2)
    let wanted = [2.0 * 0.3 * 0.09f64.cos(), 4.0 * 0.4 * 0.16f64.cos()];
    for (got, wanted) in gradient.iter().zip(wanted) {
        assert!((got - wanted).abs() < 1e-6, "{got} is not {wanted}");
    }
    Ok(())
}

/// An array of the traces of two threads keeps its operands until both are over, whichever began or ends first.
#[test]
fn arrays_of_two_traces_serve_both() {
    for (x_begins, x_ends) in [(true, true), (true, false), (false, true), (false, false)] {
        let (give_x, take_x) = channel::<Array>();
        let (give_product, take_product) = channel::<Array>();
        let ((z_begun, await_z_begun), (z_over, await_z_over)) = (channel(), channel());
        let (x_over, await_x_over) = channel();
        let of_x = move || -> Result<f64> {
            if !x_begins {
                await_z_begun.recv().expect("the other trace begins");
            }
            let f = |x: &[Array]| {
                give_x.send(x[0].clone()).expect("taken");
                let product = take_product.recv().expect("given");
                if !x_ends {
                    await_z_over.recv().expect("the other trace ends");
                }
                one(&product.square()?)
            };
            let (_, gradients) = vjp(f, &[of(&[3.0])], &[of(&[1.0])])?;
            let _ = x_over.send(());
            Ok(f64s(&gradients[0])[0])
        };
        let of_z = move || -> Result<f64> {
            let early = x_begins.then(|| take_x.recv().expect("given"));
            let f = |z: &[Array]| {
                let _ = z_begun.send(());
                let x = early.unwrap_or_else(|| take_x.recv().expect("given"));
                let product = z[0].multiply(&x.sin()?)?;
                product.eval()?;
                give_product.send(product.clone()).expect("taken");
                if x_ends {
                    await_x_over.recv().expect("the other trace ends");
                }
                one(&product)
            };
            let (_, gradients) = vjp(f, &[of(&[2.0])], &[of(&[1.0])])?;
            let _ = z_over.send(());
            Ok(f64s(&gradients[0])[0])
        };
        let (x, z) = thread::scope(|scope| {
            let (x, z) = (scope.spawn(of_x), scope.spawn(of_z));
            (x.join().expect("no panic"), z.join().expect("no panic"))
        });
        // d (z sin x)^2 / dx = 2 z^2 sin x cos x; d z sin x / dz = sin x
        let wanted = (8.0 * 3f64.sin() * 3f64.cos(), 3f64.sin());
        let (x, z) = (x.expect("a gradient"), z.expect("a gradient"));
        assert!((x - wanted.0).abs() < 1e-5, "{x} is not {}", wanted.0);
        assert!((z - wanted.1).abs() < 1e-6, "{z} is not {}", wanted.1);
    }
}
