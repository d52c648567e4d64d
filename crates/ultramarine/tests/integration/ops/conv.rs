//! Convolutions against sums in float64, over dimensions, groups, strides, dilations, padding and
//! layouts; what vmap and derivatives give against the same by hand; errors.

use crate::support::arrays::assert_near;
use ultramarine::transforms::vmap;
use ultramarine::{
    Array, Convolution, ConvolveMode, Dtype, Error, Result, conv_general, conv_transpose1d,
    conv_transpose2d, conv1d, conv2d, convolve,
};
use ultramarine_test_support::{Rng, Tolerance};

/// Multiples of an eighth from -2 to 2.
fn eighths(r: &mut Rng, shape: &[usize]) -> Array {
    let n: usize = shape.iter().product();
    let data: Vec<f64> = (0..n).map(|_| r.below(33) as f64 / 8.0 - 2.0).collect();
    Array::from_slice(&data, shape).expect("the shape is its size")
}

/// A convolution of float64 arrays by its definition.
fn naive(x: &Array, w: &Array, how: &Convolution) -> (Vec<usize>, Vec<f64>) {
    let n = x.ndim() - 2;
    let one = |list: &[i64], i: usize, default: i64| match list {
        [] => default,
        [v] => *v,
        all => all[i],
    };
    let (xs, ws) = (x.shape().to_vec(), w.shape().to_vec());
    let (xv, wv) = (x.to_vec::<f64>().unwrap(), w.to_vec::<f64>().unwrap());
    let mut shape = vec![xs[0]];
    for i in 0..n {
        let seen = |n: usize, by: i64| 1 + by * (n as i64 - 1);
        let room = seen(xs[1 + i], one(&how.input_dilation, i, 1))
            + one(&how.padding_low, i, 0)
            + one(&how.padding_high, i, 0)
            - seen(ws[1 + i], one(&how.kernel_dilation, i, 1));
        shape.push((room / one(&how.stride, i, 1) + 1) as usize);
    }
    shape.push(ws[0]);
    let unravel = |mut i: usize, shape: &[usize]| {
        let mut at = vec![0; shape.len()];
        for (at, n) in at.iter_mut().zip(shape).rev() {
            (*at, i) = (i % n, i / n);
        }
        at
    };
    let ravel = |at: &[usize], shape: &[usize]| at.iter().zip(shape).fold(0, |s, (i, n)| s * n + i);
    let filters = ws[0] / how.groups as usize;
    let out = (0..shape.iter().product()).map(|position| {
        let p = unravel(position, &shape);
        let mut sum = 0.0;
        for t in 0..ws[1..].iter().product() {
            let k = unravel(t, &ws[1..]);
            let (mut from, mut weight) = (vec![p[0]], vec![p[n + 1]]);
            for i in 0..n {
                let at = p[1 + i] as i64 * one(&how.stride, i, 1) - one(&how.padding_low, i, 0)
                    + k[i] as i64 * one(&how.kernel_dilation, i, 1);
                let by = one(&how.input_dilation, i, 1);
                if at < 0 || at % by != 0 || at / by >= xs[1 + i] as i64 {
                    break;
                }
                from.push((at / by) as usize);
                weight.push(if how.flip { ws[1 + i] - 1 - k[i] } else { k[i] });
            }
            if from.len() == n + 1 {
                from.push(p[n + 1] / filters * ws[n + 1] + k[n]);
                weight.push(k[n]);
                sum += xv[ravel(&from, &xs)] * wv[ravel(&weight, &ws)];
            }
        }
        sum
    });
    (shape.clone(), out.collect())
}

/// A random convolution whose output is not empty.
fn random(r: &mut Rng) -> (Array, Array, Convolution) {
    loop {
        let n = 1 + r.below(3);
        let list = |r: &mut Rng, f: &dyn Fn(&mut Rng) -> i64| -> Vec<i64> {
            (0..if r.below(3) == 0 { 1 } else { n }).map(|_| f(r)).collect()
        };
        let step = |r: &mut Rng| [1, 1, 2, 3][r.below(4)];
        let pad = |r: &mut Rng| r.below(5) as i64 - 1;
        let how = Convolution {
            stride: list(r, &step),
            padding_low: list(r, &pad),
            padding_high: list(r, &pad),
            kernel_dilation: list(r, &step),
            input_dilation: list(r, &step),
            output_padding: Vec::new(),
            groups: [1, 1, 2, 3][r.below(4)],
            flip: r.below(2) == 0,
        };
        let groups = how.groups as usize;
        let (channels, filters) = (1 + r.below(4), 1 + r.below(4));
        let mut x = vec![1 + r.below(3)];
        let mut w = vec![groups * filters];
        for _ in 0..n {
            x.push(1 + r.below(6));
            w.push(1 + r.below(4));
        }
        x.push(groups * channels);
        w.push(channels);
        let (x, w) = (eighths(r, &x), eighths(r, &w));
        if conv_general(&x, &w, &how).is_ok() {
            return (x, w, how);
        }
    }
}

fn near(got: &Array, shape: &[usize], want: &[f64], eps: f64, what: &str) {
    assert_eq!(got.shape(), shape, "{what}");
    let size = want.iter().fold(1.0, |a: f64, b| a.max(b.abs()));
    assert_near(what, got, want, Tolerance::absolute(eps * size));
}

#[test]
fn random_configurations_in_every_dtype() {
    let mut r = Rng::new(0xC0FFEE);
    let dtypes = [
        (Dtype::Float64, 1e-13),
        (Dtype::Float32, 1e-5),
        (Dtype::Float16, 1e-3),
        (Dtype::Bfloat16, 8e-3),
    ];
    for _ in 0..300 {
        let (x, w, how) = random(&mut r);
        let (shape, want) = naive(&x, &w, &how);
        for (dtype, eps) in dtypes {
            let got = conv_general(x.astype(dtype), w.astype(dtype), &how).unwrap();
            assert_eq!(got.dtype(), dtype);
            near(&got, &shape, &want, eps, &format!("{how:?} in {dtype}"));
        }
    }
}

#[test]
fn views_as_operands() -> Result<()> {
    let mut r = Rng::new(5);
    let how = Convolution { padding_low: vec![1], padding_high: vec![2], ..Convolution::default() };
    let x = eighths(&mut r, &[6, 7, 8, 2]).transpose_axes([3, 1, 2, 0])?.flip([1, 3])?;
    let w = eighths(&mut r, &[6, 3, 2, 5]).transpose_axes([3, 1, 2, 0])?.flip(2)?;
    let (shape, want) = naive(&x, &w, &how);
    near(&conv_general(&x, &w, &how)?, &shape, &want, 1e-13, "transposed");
    let x = eighths(&mut r, &[1, 1, 8, 1]).broadcast_to(&[2, 5, 8, 3])?;
    let w = eighths(&mut r, &[1, 2, 2, 3]).broadcast_to(&[4, 2, 2, 3])?;
    let (shape, want) = naive(&x, &w, &how);
    near(&conv_general(&x, &w, &how)?, &shape, &want, 1e-13, "broadcast");
    Ok(())
}

/// vmap over either operand or both gives what a loop gives.
#[test]
fn mapped() -> Result<()> {
    let mut r = Rng::new(99);
    for _ in 0..40 {
        let (x, w, how) = random(&mut r);
        let f = |a: &[Array]| Ok::<_, Error>(vec![conv_general(&a[0], &a[1], &how)?]);
        let many = |r: &mut Rng, a: &Array, axis: usize| {
            let mut shape = a.shape().to_vec();
            shape.insert(axis, 3);
            eighths(r, &shape)
        };
        let (i, j) = (r.below(x.ndim() + 1), r.below(w.ndim() + 1));
        let (xs, ws) = (many(&mut r, &x, i), many(&mut r, &w, j));
        let cases = [
            ([xs.clone(), w.clone()], [Some(i), None]),
            ([x.clone(), ws.clone()], [None, Some(j)]),
            ([xs, ws], [Some(i), Some(j)]),
        ];
        for (inputs, axes) in cases {
            let places = axes.map(|a| a.map(|a| a as isize));
            let got = vmap(f, &inputs, places, 0)?.remove(0);
            for k in 0..3 {
                let part = |a: &Array, axis: Option<usize>| match axis {
                    Some(axis) => a.take(Array::scalar(k), Some(axis as isize)),
                    None => Ok(a.clone()),
                };
                let (x, w) = (part(&inputs[0], axes[0])?, part(&inputs[1], axes[1])?);
                let (shape, want) = naive(&x, &w, &how);
                let got = got.take(Array::scalar(k), Some(0))?;
                near(&got, &shape, &want, 1e-13, &format!("{how:?} {axes:?}"));
            }
        }
    }
    Ok(())
}

#[test]
fn transposed_is_the_derivative() -> Result<()> {
    // The weight of a transposed convolution has the channels that come out first.
    let mut r = Rng::new(4);
    let (x, w) = (eighths(&mut r, &[2, 7, 8, 3]), eighths(&mut r, &[4, 3, 2, 3]));
    let how = Convolution::default().stride([2, 3]).padding([1, 0]).dilation([1, 2]);
    let y = conv2d(&x, &w, &how)?;
    let ct = eighths(&mut r, y.shape());
    let f = |a: &[Array]| Ok::<_, Error>(vec![conv2d(&a[0], &w, &how)?]);
    let (_, back) =
        ultramarine::transforms::vjp(f, std::slice::from_ref(&x), std::slice::from_ref(&ct))?;
    let turned = w.swapaxes(0, 3)?;
    let plain = conv_transpose2d(&ct, &turned, &how)?;
    let more = [1, 2].map(|i| x.shape()[i] as i64 - plain.shape()[i] as i64);
    let want = conv_transpose2d(&ct, &turned, how.output_padding(more))?;
    near(&back[0], want.shape(), &want.to_vec::<f64>()?, 1e-13, "vjp");
    Ok(())
}

#[test]
fn empty_and_huge() -> Result<()> {
    let one = |s: &[usize]| Array::ones(s, Dtype::Float32);
    assert_eq!(conv1d(one(&[0, 5, 2])?, one(&[3, 3, 2])?, ())?.shape(), [0, 3, 3]);
    assert_eq!(conv1d(one(&[1, 5, 2])?, one(&[0, 3, 2])?, ())?.shape(), [1, 3, 0]);
    let none = conv1d(one(&[1, 5, 0])?, one(&[3, 3, 0])?, ())?;
    assert_eq!(none.to_vec::<f32>()?, [0.0; 9]);
    let padded = conv1d(one(&[1, 0, 2])?, one(&[1, 3, 2])?, Convolution::default().padding(2))?;
    assert_eq!(padded.to_vec::<f32>()?, [0.0; 2]);
    let far = conv1d(one(&[1, 5, 2])?, one(&[3, 3, 2])?, Convolution::default().padding(i64::MAX));
    assert!(matches!(far, Err(Error::Value(_))), "{far:?}");
    // Strides beyond the input are fine: there is one window.
    assert_eq!(
        conv1d(one(&[1, 5, 2])?, one(&[1, 3, 2])?, Convolution::default().stride(1i64 << 40))?
            .to_vec::<f32>()?,
        [6.0]
    );
    Ok(())
}

#[test]
fn refused() -> Result<()> {
    let one = |s: &[usize]| Array::ones(s, Dtype::Float32).expect("small");
    let (x, w) = (one(&[1, 5, 4]), one(&[4, 3, 4]));
    let no = |r: Result<Array>, what: &str| match r {
        Err(Error::Value(text)) => assert!(text.contains(what), "{text} does not say {what}"),
        other => panic!("{what}: {other:?}"),
    };
    no(conv1d(one(&[5, 4]), &w, ()), "1-3 spatial dimensions");
    no(conv1d(x.astype(Dtype::Int32), &w, ()), "floating point");
    no(conv1d(&x, one(&[4, 4]), ()), "Invalid weight array with 2 dimensions");
    no(conv1d(&x, one(&[4, 3, 3]), ()), "channels");
    no(conv1d(&x, &w, Convolution::default().groups(0)), "groups");
    no(conv1d(&x, &w, Convolution::default().groups(3)), "divisible");
    no(conv1d(&x, &w, Convolution::default().groups(2)), "expected to have 8 input channels");
    no(conv1d(&x, &w, Convolution::default().stride(0)), "Stride sizes");
    no(conv1d(&x, &w, Convolution::default().dilation(-1)), "Kernel dilation sizes");
    no(conv1d(&x, &w, Convolution::default().dilation(3)), "cannot be smaller");
    no(conv2d(&x, &w, ()), "1D convolution");
    no(conv1d(&x, &w, Convolution::default().stride([1, 2])), "Invalid strides (1, 2)");
    no(conv1d(&x, &w, Convolution::default().output_padding(1)), "Only transposed convolutions");
    no(conv_transpose1d(&x, &w, Convolution::default().flip(true)), "nor a flip");
    no(conv_transpose1d(&x, &w, Convolution::default().input_dilation(2)), "input dilation");
    no(convolve(&x, &w, ConvolveMode::Full), "1D");
    no(convolve(&one(&[0]), &one(&[2]), ConvolveMode::Full), "empty");
    Ok(())
}

#[test]
fn vectors() -> Result<()> {
    let a = Array::from_slice(&[1.0f64, 2., 3., 4.], &[4])?;
    let v = Array::from_slice(&[0.0f64, 1., 0.5], &[3])?;
    for (mode, want) in [
        (ConvolveMode::Full, &[0.0, 1., 2.5, 4., 5.5, 2.][..]),
        (ConvolveMode::Same, &[1., 2.5, 4., 5.5]),
        (ConvolveMode::Valid, &[2.5, 4.]),
    ] {
        assert_eq!(convolve(&a, &v, mode)?.to_vec::<f64>()?, want);
        assert_eq!(convolve(&v, &a, mode)?.to_vec::<f64>()?, want);
    }
    Ok(())
}

/// A weight may be complex where the input is real.
#[test]
fn complex_weight() -> Result<()> {
    let mut r = Rng::new(8);
    let (x, re, im) =
        (eighths(&mut r, &[1, 5, 2]), eighths(&mut r, &[3, 2, 2]), eighths(&mut r, &[3, 2, 2]));
    let i = Array::scalar(ultramarine::Complex32::new(0.0, 1.0));
    let w = re.astype(Dtype::Complex64).add(&im.astype(Dtype::Complex64).multiply(&i)?)?;
    let y = conv1d(x.astype(Dtype::Float32), &w, ())?;
    for (part, of) in [(y.real()?, re), (y.imag()?, im)] {
        let (shape, want) = naive(&x, &of, &Convolution::default());
        near(&part, &shape, &want, 1e-5, "complex");
    }
    Ok(())
}
