//! Primitives that behave.

use super::raw::{Call, Outcome, Table, elements, released_once, write};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use ultramarine::transforms::{grad, jvp, vjp, vmap};
use ultramarine::{Array, Dtype, Error, Result};

/// `2 x + 1` of float32.
fn eval(call: &Call) -> Outcome {
    write(&call.output(0), elements::<f32>(&call.input(0)).iter().map(|x| 2.0 * x + 1.0));
    Ok(())
}

fn composed(x: &Array) -> Result<Array> {
    &(x * 2.0)? + 1.0
}

fn affine() -> Table {
    Table::new("affine").eval(eval).compose(|x| Ok(vec![Some(composed(&x[0])?)]))
}

fn x() -> Array {
    Array::from_slice(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3]).unwrap()
}

fn values(a: &Array) -> Vec<f32> {
    a.to_vec::<f32>().unwrap()
}

#[test]
fn an_output_is_lazy_and_has_its_values() {
    let table = affine();
    let released = table.released.clone();
    let y = table.one(&[x()]).unwrap();
    assert!(!y.is_evaluated());
    assert_eq!((y.shape(), y.dtype()), (&[2, 3][..], Dtype::Float32));
    assert_eq!(values(&y), [3.0, 5.0, 7.0, 9.0, 11.0, 13.0]);
    drop(y);
    released_once(&released);
}

#[test]
fn views_have_any_strides() {
    let column = Array::from_slice(&[1.0f32, 2.0], &[2, 1]).unwrap();
    for input in [
        x().transpose().unwrap(),
        x().flip(None).unwrap(),
        column.broadcast_to(&[2, 4]).unwrap(),
        x().slice(&[0, 0], &[2, 3], &[1, 2]).unwrap(),
        Array::scalar(3.0f32),
        Array::zeros(&[0, 3], Dtype::Float32).unwrap(),
    ] {
        let y = affine().one(std::slice::from_ref(&input)).unwrap();
        assert_eq!(values(&y), values(&composed(&input).unwrap()), "{:?}", input.shape());
    }
}

#[test]
fn several_outputs_come_of_one_evaluation() {
    let runs = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let count = runs.clone();
    let outputs = Table::new("both")
        .giving(&[(&[2, 3], Dtype::Float32), (&[], Dtype::Int32)])
        .eval(move |call| {
            count.fetch_add(1, Ordering::SeqCst);
            write(&call.output(0), elements::<f32>(&call.input(0)).iter().map(|x| -x));
            write(&call.output(1), [call.input(0).elements as i32]);
            Ok(())
        })
        .apply(&[x()])
        .unwrap();
    assert_eq!(outputs[1].item::<i32>().unwrap(), 6);
    assert_eq!(values(&outputs[0]), [-1.0, -2.0, -3.0, -4.0, -5.0, -6.0]);
    assert_eq!(runs.load(Ordering::SeqCst), 1);
}

#[test]
fn derivatives_and_batches_follow_from_compose() {
    let f = |x: &Array| affine().one(&[x.square()?])?.sum(None);
    let d = grad(f)(&x()).unwrap();
    assert_eq!(values(&d), [4.0, 8.0, 12.0, 16.0, 20.0, 24.0]);
    let g = |x: &[Array]| Ok::<_, Error>(vec![affine().one(&[x[0].clone()])?]);
    let (_, t) = jvp(g, &[x()], &[x()]).unwrap();
    assert_eq!(values(&t[0]), [2.0, 4.0, 6.0, 8.0, 10.0, 12.0]);
    let b = vmap(g, &[x()], [Some(1)], 1).unwrap();
    assert_eq!(values(&b[0]), values(&composed(&x()).unwrap()));
    // Nested: the gradient of a batch of gradients.
    let inner = |x: &Array| affine().one(&[x.square()?.multiply(x)?])?.sum(None);
    let outer = |x: &Array| {
        let each = |x: &[Array]| Ok::<_, Error>(vec![grad(inner)(&x[0])?]);
        vmap(each, std::slice::from_ref(x), [Some(0)], 0)?[0].sum(None)
    };
    assert_eq!(values(&grad(outer)(&x()).unwrap()), [12.0, 24.0, 36.0, 48.0, 60.0, 72.0]);
}

#[test]
fn rules_of_its_own_come_first() {
    let table = || {
        affine()
            .vjp(|x, y, c, wanted| {
                assert_eq!((x.len(), y.len(), wanted), (1, 1, &[true][..]));
                assert_eq!(values(&y[0]).len(), 6);
                Ok(vec![Some((c[0].as_ref().unwrap() * 10.0)?)])
            })
            .jvp(|_, t| Ok(vec![Some((t[0].as_ref().unwrap() * 100.0)?)]))
            .vmap(|x, axes, batch| {
                assert_eq!((axes, batch), (&[1][..], 3));
                Ok((vec![Some((&x[0] * 1000.0)?)], vec![axes[0]]))
            })
    };
    let g = move |x: &[Array]| Ok::<_, Error>(vec![table().one(&[x[0].clone()])?]);
    let ones = Array::ones(&[2, 3], Dtype::Float32).unwrap();
    let (_, d) = vjp(g, &[x()], std::slice::from_ref(&ones)).unwrap();
    assert_eq!(values(&d[0]), [10.0; 6]);
    let (_, t) = jvp(g, &[x()], &[ones]).unwrap();
    assert_eq!(values(&t[0]), [100.0; 6]);
    let b = vmap(g, &[x()], [Some(1)], 1).unwrap();
    assert_eq!(values(&b[0])[..2], [1000.0, 2000.0]);
}

#[test]
fn without_an_evaluation_compose_evaluates() {
    let y =
        Table::new("composed").compose(|x| Ok(vec![Some(composed(&x[0])?)])).one(&[x()]).unwrap();
    assert_eq!(values(&y), values(&composed(&x()).unwrap()));
}
