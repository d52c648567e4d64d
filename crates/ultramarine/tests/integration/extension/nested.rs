//! Rules that call other primitives, and transforms of transforms through them.

use super::raw::{Call, Outcome, Table, elements, write};
use crate::support::arrays::assert_near;
use std::sync::atomic::{AtomicUsize, Ordering};
use ultramarine::extension::{borrow_handle, host_table};
use ultramarine::transforms::{grad, jvp, vjp, vmap};
use ultramarine::{Array, Dtype, Error, KeepDims, Result};
use ultramarine_test_support::Tolerance;

fn x() -> Array {
    Array::from_slice(&[0.1f32, 0.5, 1.0, 1.5, 2.0, 3.0], &[2, 3]).unwrap()
}

fn map(f: fn(f32) -> f32) -> impl Fn(&Call) -> Outcome + Send + Sync + 'static {
    move |call| {
        write(&call.output(0), elements::<f32>(&call.input(0)).into_iter().map(f));
        Ok(())
    }
}

/// A wave with rules of its own: the derivative of one is the other, turned by `sign`.
fn wave(
    name: &'static str,
    f: fn(f32) -> f32,
    other: fn(&Array) -> Result<Array>,
    sign: f64,
) -> Table {
    let slope = move |x: &Array| &other(x)? * sign;
    Table::new(name)
        .eval(map(f))
        .vjp(move |x, _, c, _| match &c[0] {
            Some(c) => Ok(vec![Some(slope(&x[0])?.multiply(c)?)]),
            None => Ok(vec![None]),
        })
        .jvp(move |x, t| match &t[0] {
            Some(t) => Ok(vec![Some(slope(&x[0])?.multiply(t)?)]),
            None => Ok(vec![None]),
        })
        .vmap(move |x, axes, _| {
            let table = if name == "sine" { sine(&x[0]) } else { cosine(&x[0]) };
            Ok((vec![Some(table?)], axes.to_vec()))
        })
}

fn sine(x: &Array) -> Result<Array> {
    wave("sine", f32::sin, cosine, 1.0).one(std::slice::from_ref(x))
}

fn cosine(x: &Array) -> Result<Array> {
    wave("cosine", f32::cos, sine, -1.0).one(std::slice::from_ref(x))
}

#[track_caller]
fn close(got: &Array, want: impl Fn(f32) -> f32) {
    let want: Vec<f64> =
        x().to_vec::<f32>().unwrap().into_iter().map(|x| f64::from(want(x))).collect();
    assert_near("values", got, &want, Tolerance::absolute(1e-5));
}

#[test]
fn derivatives_of_derivatives() {
    let sum = |x: &Array| sine(x)?.sum(None);
    let first = |x: &Array| grad(sum)(x);
    let second = |x: &Array| grad(|x: &Array| first(x)?.sum(None))(x);
    let third = |x: &Array| grad(|x: &Array| second(x)?.sum(None))(x);
    close(&first(&x()).unwrap(), f32::cos);
    close(&second(&x()).unwrap(), |x| -x.sin());
    close(&third(&x()).unwrap(), |x| -x.cos());
    let ones = Array::ones(&[2, 3], Dtype::Float32).unwrap();
    // Forward over reverse, and reverse over forward.
    let f = |x: &[Array]| Ok::<_, Error>(vec![grad(sum)(&x[0])?]);
    close(&jvp(f, &[x()], std::slice::from_ref(&ones)).unwrap().1[0], |x| -x.sin());
    let g = |x: &[Array]| {
        let inner = |x: &[Array]| Ok::<_, Error>(vec![sine(&x[0])?]);
        Ok::<_, Error>(jvp(inner, x, &[Array::ones(&[2, 3], Dtype::Float32)?])?.1)
    };
    close(&vjp(g, &[x()], &[ones]).unwrap().1[0], |x| -x.sin());
}

#[test]
fn gradients_of_batches_of_gradients() {
    let row = |x: &Array| sine(x)?.sum(None);
    let rows = |x: &Array| {
        let each = |x: &[Array]| Ok::<_, Error>(vec![grad(row)(&x[0])?]);
        let all = vmap(each, std::slice::from_ref(x), [Some(0)], 0)?;
        all[0].sum(None)
    };
    close(&grad(rows)(&x()).unwrap(), |x| -x.sin());
    // A batch in a batch.
    let columns = |x: &[Array]| {
        let each = |x: &[Array]| Ok::<_, Error>(vec![sine(&x[0])?]);
        vmap(each, x, [Some(0)], 0)
    };
    let all = vmap(columns, &[x()], [Some(1)], 1).unwrap();
    close(&all[0], f32::sin);
}

/// Rules are called with nothing of ours held: they may evaluate, and apply, from whichever thread.
#[test]
fn rules_may_do_what_programs_do() {
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    fn busy(x: &Array) {
        CALLS.fetch_add(1, Ordering::SeqCst);
        let y = (x * 3.0).unwrap();
        std::thread::scope(|s| {
            s.spawn(|| {
                let y = sine(&Array::ones(&[4], Dtype::Float32).unwrap()).unwrap();
                y.eval().unwrap();
            });
        });
        let handle = borrow_handle(&y);
        let eval = host_table().array_eval.unwrap();
        let none = std::ptr::null_mut();
        assert_eq!(unsafe { eval(none, &handle, 1, std::ptr::null_mut()) }, 0);
        assert!(y.is_evaluated());
    }
    let table = || {
        let mut table = Table::new("busy").eval(map(|x| x));
        let plain = table.infer.take().unwrap();
        table.infer = Some(Box::new(move |inputs, outputs| {
            busy(&Array::ones(&[2], Dtype::Float32)?);
            plain(inputs, outputs)
        }));
        table
            .vjp(|x, _, c, _| {
                busy(&x[0]);
                Ok(vec![c[0].clone()])
            })
            .jvp(|x, t| {
                busy(&x[0]);
                Ok(vec![t[0].clone()])
            })
    };
    let f = |x: &[Array]| Ok::<_, Error>(vec![table().one(&x[..1])?]);
    vjp(f, &[x()], &[x()]).unwrap().1[0].eval().unwrap();
    jvp(f, &[x()], &[x()]).unwrap().1[0].eval().unwrap();
    assert_eq!(CALLS.load(Ordering::SeqCst), 4);
}

/// Derivatives with respect to some operands only, and of outputs that nobody needs.
#[test]
fn unwanted_results_may_be_left_out() {
    let table = || {
        let mut table = Table::new("pair").eval(|call| {
            let (a, b) = (elements::<f32>(&call.input(0)), elements::<f32>(&call.input(1)));
            write(&call.output(0), a.iter().zip(&b).map(|(a, b)| a * b));
            write(&call.output(1), a.iter().zip(&b).map(|(a, b)| a - b));
            Ok(())
        });
        table.n_outputs = 2;
        table.vjp(|x, _, c, wanted| {
            assert_eq!(wanted, [false, true]);
            assert!(c[1].is_none());
            Ok(vec![None, Some(c[0].as_ref().unwrap().multiply(&x[0])?)])
        })
    };
    let other = Array::full(&[2, 3], 7.0f32).unwrap();
    let f = |x: &Array| table().apply(&[other.clone(), x.clone()])?.remove(0).sum(None);
    assert_eq!(grad(f)(&x()).unwrap().to_vec::<f32>().unwrap(), [7.0; 6]);
}

/// The kind of an error survives the way through rules.
#[test]
fn errors_keep_their_variant() {
    let y = Table::new("indexing").compose(|x| Ok(vec![Some(x[0].sum(KeepDims(9))?)]));
    let error = y.one(&[x()]).unwrap().eval().unwrap_err();
    assert!(matches!(error.root(), Error::Index(_)), "{error:?}");
    assert!(error.to_string().starts_with("[indexing] compose: [sum] Invalid axis 9"), "{error}");
    let memory = Table::new("huge").eval(|_| Err(Error::Memory("none left".into()).into()));
    let error = memory.one(&[x()]).unwrap().eval().unwrap_err();
    assert!(matches!(error.root(), Error::Memory(_)), "{error:?}");
    assert_eq!(error.to_string(), "[huge] none left");
}
