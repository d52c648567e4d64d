//! Functions compiled shapeless: traced once, right for every size.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use ultramarine::transforms::{compile, grad, vmap};
use ultramarine::{
    Array, Dtype, Error, KeepDims, Result, addmm, concatenate, index, stack, where_,
};

type Function = fn(&Array) -> Result<Array>;

fn of_shape(shape: &[usize]) -> Array {
    let n: usize = shape.iter().product();
    let data: Vec<f32> = (0..n).map(|i| ((i * 37) % 23) as f32 * 0.25 - 2.0).collect();
    Array::from_slice(&data, shape).unwrap()
}

fn start(at: i32) -> Array {
    Array::from_slice(&[at], &[1]).unwrap()
}

fn gradient(f: Function) -> impl Fn(&Array) -> Result<Array> + Send + Sync + Clone + 'static {
    move |x| grad(move |a: &Array| f(a))(x)
}

/// Compiles `f` shapeless and compares it with `f` itself, to the bit, for several shapes with one trace.
fn check(name: &str, f: impl Fn(&Array) -> Result<Array> + Send + Sync + Clone + 'static) {
    check_on(name, f, &[[4, 4], [8, 8], [2, 6], [6, 2], [1, 4], [3, 1], [4, 4]]);
}

fn check_on(
    name: &str,
    f: impl Fn(&Array) -> Result<Array> + Send + Sync + Clone + 'static,
    shapes: &[[usize; 2]],
) {
    let count = Arc::new(AtomicUsize::new(0));
    let (own, traced) = (count.clone(), f.clone());
    let compiled = compile(move |x: &[Array]| {
        own.fetch_add(1, Ordering::Relaxed);
        Ok(vec![traced(&x[0])?])
    })
    .shapeless();
    for &shape in shapes {
        let x = of_shape(&shape);
        let want = f(&x).unwrap_or_else(|e| panic!("{name} {shape:?}: {e}"));
        let got = compiled.call(&[x]).unwrap_or_else(|e| panic!("{name} {shape:?}: {e}"));
        assert_eq!(got[0].shape(), want.shape(), "{name} {shape:?}");
        assert_eq!(got[0].dtype(), want.dtype(), "{name} {shape:?}");
        let bits = |a: &Array| -> Vec<u32> {
            let a = a.astype(Dtype::Float32).to_vec::<f32>().unwrap();
            a.into_iter().map(f32::to_bits).collect()
        };
        assert_eq!(bits(&got[0]), bits(&want), "{name} {shape:?}");
    }
    assert_eq!(count.load(Ordering::Relaxed), 1, "{name} is traced once");
}

#[test]
fn shapeless_results_are_right_for_every_size() {
    let all: &[(&str, Function)] = &[
        ("elementwise", |x| x.exp()?.add(&x.abs()?)),
        ("numbers", |x| &(x * 2.0)? + 1.0),
        ("cast", |x| Ok(x.astype(Dtype::Float16))),
        ("sum", |x| x.sum(None)),
        ("window", |x| x.slice_at(&start(1), [1], &[1, 1])),
        ("window update", |x| {
            x.slice_update_at(&x.slice_at(&start(0), [0], &[1, 1])?, &start(1), [0])
        }),
        ("sum over an axis", |x| x.sum(1)),
        ("sum, kept", |x| x.sum(KeepDims(0))),
        ("max", |x| x.max(1)),
        ("mean", |x| x.mean(None)),
        ("mean over an axis", |x| x.mean(0)),
        ("variance", |x| x.var(1, 0)),
        ("less its mean", |x| x.subtract(&x.mean(KeepDims(1))?)),
        ("less its first row", |x| x.subtract(&x.index(&index![0])?)),
        ("less its last column", |x| x.subtract(&x.index(&index![.., -1])?.expand_dims([1])?)),
        ("argmax", |x| x.argmax(Some(1))),
        ("argmax of all", |x| x.argmax(KeepDims(None))),
        ("softmax", |x| x.softmax(-1, false)),
        ("logsumexp", |x| x.logsumexp(0)),
        ("x xT", |x| x.matmul(&x.transpose()?)),
        ("stacks of products", |x| {
            let a = stack(&[x.clone(), x.clone()], 0)?;
            a.matmul(&x.transpose()?)
        }),
        ("vector", |x| x.matmul(&x.index(&index![0])?)),
        ("addmm", |x| addmm(x, &x.matmul(&x.transpose()?)?, x, 2.0, 0.5)),
        ("expand and squeeze", |x| x.expand_dims([0, 2])?.squeeze(0)),
        ("flatten", |x| x.flatten(0, -1)),
        ("reshape to a row", |x| x.reshape(&[1isize, -1])),
        ("reshape by its sizes", |x| x.reshape(&[x.shape()[0], 1, x.shape()[1]])),
        ("merged by its sizes", |x| x.expand_dims([0])?.reshape(&[x.shape()[0], x.shape()[1]])),
        ("concatenate", |x| concatenate(&[x.clone(), (x * 2.0)?], 1)),
        ("stack", |x| stack(&[x.clone(), x.exp()?], 1)),
        ("take", |x| x.take(&Array::from_slice(&[0i32, -1], &[2])?, Some(0))),
        ("take along", |x| x.take_along_axis(&x.argsort(Some(1))?, Some(1))),
        ("sort", |x| x.sort(Some(0))),
        ("sort of all", |x| x.sort(None)),
        ("cumsum", |x| x.cumsum(Some(0), false, true)),
        ("flip", |x| x.flip(1)),
        ("zeros like", |x| x.zeros_like().add(x.ones_like())),
        ("where", |x| where_(&x.greater(Array::scalar(0f32))?, x, Array::scalar(0f32))),
        ("clip", |x| x.clip(Some(&Array::scalar(0f32)), Some(&Array::scalar(1f32)))),
        ("outer", |x| x.outer(x)),
        ("inner", |x| x.inner(x)),
        ("isfinite of integers", |x| x.astype(Dtype::Int32).isfinite()),
        ("diagonal", |x| x.diagonal(0, 0, 1)),
    ];
    for (name, f) in all {
        check(name, *f);
    }
}

/// What is the only element, when traced, is not the whole axis later.
#[test]
fn the_only_element_stays_an_element() {
    let shapes = [[1, 4], [3, 4], [2, 1], [1, 1]];
    check_on("x[0]", |x| x.index(&index![0]), &shapes);
    check_on("x[0] + sum", |x| x.index(&index![0])?.add(&x.sum(None)?), &shapes);
    check_on("x[0, 0]", |x| x.index(&index![0, 0]), &shapes);
    check_on("x - x[0]", |x| x.subtract(&x.index(&index![0])?), &shapes);
    check_on("gradient", gradient(|x| x.index(&index![0])?.square()?.sum(None)), &shapes);
}

#[test]
fn derivatives_follow() {
    let all: &[(&str, Function)] = &[
        ("squares", |x| x.square()?.sum(None)),
        ("mean of squares", |x| x.square()?.mean(None)),
        ("softmax", |x| x.softmax(-1, false)?.multiply(x)?.sum(None)),
        ("maximum", |x| x.max(0)?.sum(None)),
        ("variance", |x| x.var(KeepDims(1), 0)?.multiply(x)?.sum(None)),
        ("first row", |x| x.multiply(&x.index(&index![0])?)?.sum(None)),
        ("product", |x| x.matmul(&x.transpose()?)?.square()?.sum(None)),
        ("sorted", |x| x.sort(Some(1))?.multiply(x)?.sum(None)),
        ("cumsum", |x| x.cumsum(Some(1), false, true)?.multiply(x)?.sum(None)),
        ("logsumexp", |x| x.logsumexp(1)?.sum(None)),
        ("window", |x| x.square()?.slice_at(&start(1), [1], &[1, 1])?.sum(None)),
        ("window update", |x| {
            let part = x.square()?.slice_at(&start(0), [1], &[1, 1])?;
            x.slice_update_at(&part, &start(9), [0])?.multiply(x)?.sum(None)
        }),
        ("column", |x| x.sum(KeepDims(1))?.multiply(x)?.sum(None)),
    ];
    for (name, f) in all {
        check(name, gradient(*f));
    }
}

#[test]
fn mapped_functions_follow() {
    let row: Function = |r| r.softmax(-1, false)?.subtract(&r.mean(None)?);
    check("rows", move |x| {
        let f = |a: &[Array]| Ok::<_, Error>(vec![row(&a[0])?]);
        Ok(vmap(f, std::slice::from_ref(x), [Some(0)], 0)?.remove(0))
    });
}

#[test]
fn fixed_sizes_are_errors_at_the_first_call() {
    let all: &[(&str, Function)] = &[
        ("slice", |x| x.index(&index![..2])),
        ("as_strided", |x| x.as_strided(&[2, 2], &[1, 1], 0)),
        ("split", |x| Ok(x.split(2, 0)?.remove(0))),
    ];
    for (name, f) in all {
        let f = *f;
        let compiled = compile(move |x: &[Array]| Ok(vec![f(&x[0])?])).shapeless();
        let error = compiled.call(&[of_shape(&[4, 4])]).expect_err(name);
        assert!(matches!(error, Error::Value(_)), "{name}: {error}");
        assert!(error.to_string().contains("cannot infer output shapes"), "{name}: {error}");
        assert_eq!(compiled.traces(), 0, "{name}");
    }
}

#[test]
fn operands_that_do_not_fit_are_an_error() -> Result<()> {
    let f = compile(|x: &[Array]| Ok(vec![x[0].add(&x[1])?])).shapeless();
    f.call(&[of_shape(&[4, 4]), of_shape(&[4, 4])])?;
    assert!(f.call(&[of_shape(&[4, 4]), of_shape(&[3, 4])]).is_err());
    let g = compile(|x: &[Array]| Ok(vec![x[0].matmul(&x[1])?])).shapeless();
    g.call(&[of_shape(&[4, 3]), of_shape(&[3, 5])])?;
    assert!(matches!(g.call(&[of_shape(&[4, 3]), of_shape(&[4, 5])]), Err(Error::Value(_))));
    assert_eq!(g.call(&[of_shape(&[2, 6]), of_shape(&[6, 7])])?[0].shape(), [2, 7]);
    Ok(())
}
