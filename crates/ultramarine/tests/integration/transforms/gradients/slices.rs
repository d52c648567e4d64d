//! Gradients of arrays that are cut into slices: their values, and what they cost.

use crate::support::arrays::f64s;
use ultramarine::transforms::{compile, grad, jvp, vjp, vmap};
use ultramarine::{Array, Dtype, Error, Result, eval, stack, stats};
use ultramarine_test_support::own_process;

/// Elements `start..stop` along an axis, as a slice.
fn cut(x: &Array, axis: usize, start: usize, stop: usize) -> Result<Array> {
    let (mut first, mut last) = (vec![0; x.ndim()], vec![isize::MAX; x.ndim()]);
    (first[axis], last[axis]) = (start as isize, stop as isize);
    x.slice(&first, &last, &vec![1; x.ndim()])
}

/// The same elements, gathered.
fn gathered(x: &Array, axis: usize, start: usize, stop: usize) -> Result<Array> {
    let at = Array::arange(start as f64, stop as f64, 1.0, Dtype::Int32)?;
    x.take(&at, Some(axis as isize))
}

type Section = (usize, usize, usize);
type Part = fn(&Array, usize, usize, usize) -> Result<Array>;

/// The sum of squares of parts of `x` and of its own elements, each part by a weight of its own.
fn weighted(x: &Array, sections: &[Section], part: Part) -> Result<Array> {
    let mut sum = x.square()?.sum(None)?;
    for (i, (axis, start, stop)) in sections.iter().enumerate() {
        let squares = part(x, *axis, *start, *stop)?.square()?.sum(None)?;
        sum = sum.add(&squares.multiply(Array::scalar(i as f32 + 2.0).astype(x.dtype()))?)?;
    }
    Ok(sum)
}

const SECTIONS: &[&[Section]] = &[
    // Parts that fill an axis, in any order.
    &[(1, 0, 2), (1, 2, 3), (1, 3, 6)],
    &[(1, 3, 6), (1, 0, 2), (1, 2, 3)],
    // Gaps in front, between and behind.
    &[(1, 1, 2), (1, 4, 5)],
    &[(0, 0, 1), (0, 3, 4)],
    // One alone, the same twice, several that overlap, nothing.
    &[(2, 1, 3)],
    &[(0, 1, 2), (0, 1, 2)],
    &[(1, 0, 4), (1, 2, 5), (1, 3, 6), (1, 5, 6), (1, 0, 4)],
    &[(1, 2, 2), (1, 0, 3), (1, 3, 6)],
    &[(1, 2, 2)],
    // Two axes, and the whole.
    &[(0, 0, 2), (1, 0, 3), (0, 2, 4), (1, 3, 6), (2, 0, 3)],
];

fn sample(shape: &[usize], dtype: Dtype) -> Result<Array> {
    let numbers: Vec<f64> = (0..shape.iter().product()).map(|i| (i * 7 % 5) as f64).collect();
    Ok(Array::from_slice(&numbers, shape)?.astype(dtype))
}

#[test]
fn slices_have_the_gradients_of_what_they_pick() -> Result<()> {
    // Small integers: every sum is exact in every dtype.
    for dtype in [Dtype::Float16, Dtype::Bfloat16, Dtype::Float32, Dtype::Float64, Dtype::Complex64]
    {
        let x = sample(&[4, 6, 3], dtype)?;
        for sections in SECTIONS {
            let slope = |part: Part| grad(move |x: &Array| weighted(x, sections, part))(&x);
            let (got, want) = (slope(cut)?, slope(gathered)?);
            assert_eq!((got.shape(), got.dtype()), (x.shape(), dtype), "{sections:?}");
            assert_eq!(f64s(&got.real()?), f64s(&want.real()?), "{dtype} {sections:?}");
        }
    }
    Ok(())
}

#[test]
fn slices_go_through_every_transform() -> Result<()> {
    let x = sample(&[4, 6, 3], Dtype::Float32)?;
    for sections in SECTIONS {
        let slope =
            |part: Part| move |x: &Array| grad(move |x: &Array| weighted(x, sections, part))(x);
        let along = |part: Part| -> Result<Array> {
            let f = |x: &[Array]| Ok::<_, Error>(vec![slope(part)(&x[0])?]);
            Ok(jvp(f, std::slice::from_ref(&x), std::slice::from_ref(&x))?.1.swap_remove(0))
        };
        assert_eq!(f64s(&along(cut)?), f64s(&along(gathered)?), "jvp of grad, {sections:?}");
        let second = |part: Part| {
            let f = move |x: &Array| slope(part)(x)?.multiply(x)?.sum(None);
            grad(f)(&x)
        };
        assert_eq!(f64s(&second(cut)?), f64s(&second(gathered)?), "grad of grad, {sections:?}");

        let batch = stack(&[x.clone(), x.square()?], 0)?;
        for axis in [0, 2, 3] {
            let f = |x: &[Array]| Ok::<_, Error>(vec![slope(cut)(&x[0])?]);
            let mapped = [batch.moveaxis(0, axis)?];
            let got = vmap(f, &mapped, [Some(axis)], 0)?;
            let want = stack(&[slope(gathered)(&x)?, slope(gathered)(&x.square()?)?], 0)?;
            assert_eq!(f64s(&got[0]), f64s(&want), "vmap of grad by {axis}, {sections:?}");
        }
        let sections = *sections;
        let compiled = compile(move |x: &[Array]| {
            Ok(vec![grad(|x: &Array| weighted(x, sections, cut))(&x[0])?])
        });
        let want = f64s(&slope(gathered)(&x)?);
        for _ in 0..2 {
            let got = compiled.call(std::slice::from_ref(&x))?;
            assert_eq!(f64s(&got[0]), want, "compiled, {sections:?}");
        }
    }
    Ok(())
}

#[test]
fn gradients_of_steps_follow_the_sizes_of_shapeless_traces() -> Result<()> {
    // The first two steps, of however many: behind them there are zeros.
    let steps = |x: &Array| {
        let (a, b) = (cut(x, 1, 0, 1)?, cut(x, 1, 1, 2)?);
        a.exp()?.sum(None)?.add(&b.square()?.sum(None)?)
    };
    let slope = move |x: &[Array]| Ok(vec![grad(steps)(&x[0])?]);
    let compiled = compile(slope).shapeless();
    for shape in [[2, 3, 4], [3, 5, 1], [1, 2, 2]] {
        let x = [sample(&shape, Dtype::Float32)?];
        let (got, want) = (compiled.call(&x)?, slope(&x)?);
        assert_eq!(got[0].shape(), shape);
        assert_eq!(f64s(&got[0]), f64s(&want[0]), "{shape:?}");
    }
    Ok(())
}

#[test]
fn parts_of_a_traced_array_are_views() -> Result<()> {
    own_process!();
    let x = sample(&[6, 4], Dtype::Float32)?;
    eval(std::slice::from_ref(&x))?;
    let before = stats();
    let f = |x: &[Array]| {
        let parts = [x[0].split(3, 0)?, x[0].unstack(1)?, x[0].split_at(&[1, 5], 0)?].concat();
        eval(&parts)?;
        Ok::<_, Error>(vec![parts[0].sum(None)?])
    };
    let (_, slopes) = vjp(f, std::slice::from_ref(&x), &[Array::scalar(1.0f32)])?;
    let after = stats();
    assert_eq!(after.commands - before.commands, 0, "nothing is copied until it is read");
    let want: Vec<f64> = (0..24).map(|i| if i < 8 { 1.0 } else { 0.0 }).collect();
    assert_eq!(f64s(&slopes[0]), want);
    Ok(())
}

#[test]
fn gradients_of_parts_of_a_transposed_array_are_written_once() -> Result<()> {
    own_process!();
    // Queries, keys and values of heads, cut from the rows of one product.
    let (batch, length, heads, dim) = (2, 8, 3, 4);
    let x = sample(&[batch, length, 3 * heads * dim], Dtype::Float32)?;
    let weights = sample(&[batch, heads, length, dim], Dtype::Float32)?;
    eval(&[x.clone(), weights.clone()])?;
    let parts = |x: &Array| -> Result<Array> {
        let split = x.reshape(&[batch, length, 3, heads, dim])?.transpose_axes([2, 0, 3, 1, 4])?;
        let [q, k, v] = [0, 1, 2].map(|i| cut(&split, 0, i, i + 1));
        q?.multiply(k?)?.multiply(v?)?.multiply(&weights)?.sum(None)
    };
    let slope = grad(parts)(&x)?;
    let before = stats().bytes_written;
    eval(std::slice::from_ref(&slope))?;
    let written = stats().bytes_written - before;
    // The result once, the cotangents of its parts, and products that these need.
    assert!(written < 3 * slope.nbytes() as u64, "{written} bytes");
    let by_hand = |x: &Array| {
        let part = |i: usize| -> Result<Array> {
            let n = heads * dim;
            gathered(x, 2, i * n, (i + 1) * n)?
                .reshape(&[batch, length, heads, dim])?
                .transpose_axes([0, 2, 1, 3])
        };
        part(0)?.multiply(&part(1)?)?.multiply(&part(2)?)?.multiply(&weights)?.sum(None)
    };
    assert_eq!(f64s(&slope), f64s(&grad(by_hand)(&x)?));
    Ok(())
}

/// How the steps of a sequence are read.
#[derive(Clone, Copy, Debug)]
enum Reading {
    Split,
    Unstack,
    Index,
}

/// The loss of a recurrent net over a sequence of shape (steps, 4).
fn loss(x: &Array, weight: &Array, reading: Reading) -> Result<Array> {
    let steps = x.shape()[0];
    let parts = match reading {
        Reading::Split => x.split(steps, 0)?,
        Reading::Unstack => x.unstack(0)?,
        Reading::Index => (0..steps).map(|i| cut(x, 0, i, i + 1)).collect::<Result<_>>()?,
    };
    let mut state = parts[0].reshape(&[1, 4])?;
    for part in &parts {
        state = state.matmul(weight)?.add(&part.reshape(&[1, 4])?)?.tanh()?;
    }
    state.sum(None)
}

/// Bytes that the evaluation of `f(x)` reads and writes.
fn traffic(f: impl Fn(&Array) -> Result<Array>, x: &Array) -> Result<f64> {
    eval(std::slice::from_ref(x))?;
    let before = stats();
    eval(&[f(x)?])?;
    let after = stats();
    let bytes = |s: ultramarine::Stats| s.bytes_read + s.bytes_written;
    Ok((bytes(after) - bytes(before)) as f64)
}

#[test]
fn gradients_of_a_recurrent_net_are_linear_in_its_steps() -> Result<()> {
    own_process!();
    let weight = sample(&[4, 4], Dtype::Float32)?.multiply(Array::scalar(0.1f32))?;
    eval(std::slice::from_ref(&weight))?;
    for reading in [Reading::Split, Reading::Unstack, Reading::Index] {
        let first = |x: &Array| grad(|x: &Array| loss(x, &weight, reading))(x);
        let second = |x: &Array| {
            let f = |x: &Array| first(x)?.square()?.sum(None);
            grad(f)(x)
        };
        let run = |steps: usize| -> Result<[f64; 2]> {
            let x = sample(&[steps, 4], Dtype::Float32)?;
            Ok([traffic(first, &x)?, traffic(second, &x)?])
        };
        let (short, long) = (run(50)?, run(400)?);
        // Eight times the steps: eight times the bytes, where a gradient of its own for each step takes 64 times.
        for (i, (a, b)) in short.iter().zip(long).enumerate() {
            assert!(b < 9.0 * a, "{reading:?}, derivative {}: {a} and {b} bytes", i + 1);
        }
    }
    Ok(())
}
