//! Fourier transforms against a float64 reference: lengths, axes, layouts, norms, derivatives, batching.

use crate::support::arrays::{assert_near_complex, complexes, f64s, uniform_complex, uniform_f32};
use std::f64::consts::TAU;
use ultramarine::fft::{self, Norm};
use ultramarine::transforms::{grad, jvp, vjp, vmap};
use ultramarine::{Array, Complex32, Dtype, Error, Result, hamming, hanning, stack};
use ultramarine_test_support::{Rng, Tolerance, directional};

type C = (f64, f64);

fn times(a: C, b: C) -> C {
    (a.0 * b.0 - a.1 * b.1, a.0 * b.1 + a.1 * b.0)
}

/// The transform by its definition, halves of even lengths apart so that long ones end.
fn dft(x: &[C], sign: f64) -> Vec<C> {
    let n = x.len();
    let root = |k: usize| {
        let (sin, cos) = (sign * TAU * (k % n) as f64 / n as f64).sin_cos();
        (cos, sin)
    };
    if n > 8 && n.is_multiple_of(2) {
        let part = |first: usize| -> Vec<C> {
            dft(&x.iter().skip(first).step_by(2).copied().collect::<Vec<_>>(), sign)
        };
        let (even, odd) = (part(0), part(1));
        let one = |k: usize| {
            let (a, b) = (even[k % (n / 2)], times(odd[k % (n / 2)], root(k)));
            (a.0 + b.0, a.1 + b.1)
        };
        return (0..n).map(one).collect();
    }
    let one = |k: usize| {
        x.iter().enumerate().fold((0.0, 0.0), |sum, (j, v)| {
            let term = times(*v, root(j * k));
            (sum.0 + term.0, sum.1 + term.1)
        })
    };
    (0..n).map(one).collect()
}

/// A row-major array of the reference.
#[derive(Clone)]
struct Reference {
    shape: Vec<usize>,
    data: Vec<C>,
}

impl Reference {
    fn of(a: &Array) -> Result<Reference> {
        Ok(Reference { shape: a.shape().to_vec(), data: complexes(a) })
    }

    /// Every line along an axis, by `f`.
    fn lines(&self, axis: usize, f: impl Fn(Vec<C>) -> Vec<C>) -> Reference {
        let inner: usize = self.shape[axis + 1..].iter().product();
        let outer: usize = self.shape[..axis].iter().product();
        let n = self.shape[axis];
        let line =
            |o: usize, i: usize| f((0..n).map(|j| self.data[(o * n + j) * inner + i]).collect());
        let lines: Vec<Vec<C>> = (0..outer * inner).map(|k| line(k / inner, k % inner)).collect();
        let mut shape = self.shape.clone();
        shape[axis] = lines.first().map_or(0, Vec::len);
        let at = |k: usize| {
            let (o, rest) = (k / (shape[axis] * inner), k % (shape[axis] * inner));
            lines[o * inner + rest % inner][rest / inner]
        };
        let data = (0..shape.iter().product()).map(at).collect();
        Reference { shape, data }
    }
}

/// Fills up with zeros, or cuts off.
fn fit(mut x: Vec<C>, n: usize) -> Vec<C> {
    x.resize(n, (0.0, 0.0));
    x
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Forward,
    Inverse,
    Real,
    RealInverse,
}
use Kind::*;

const KINDS: [Kind; 4] = [Forward, Inverse, Real, RealInverse];

impl Kind {
    fn run(self, a: &Array, n: Option<usize>, axis: isize, norm: Norm) -> Result<Array> {
        match self {
            Forward => fft::fft(a, n, axis, norm),
            Inverse => fft::ifft(a, n, axis, norm),
            Real => fft::rfft(a, n, axis, norm),
            RealInverse => fft::irfft(a, n, axis, norm),
        }
    }

    fn line(self, x: Vec<C>, n: usize, norm: Norm) -> Vec<C> {
        let inverse = matches!(self, Inverse | RealInverse);
        let factor = match (norm, inverse) {
            (Norm::Ortho, _) => 1.0 / (n as f64).sqrt(),
            (Norm::Backward, true) | (Norm::Forward, false) => 1.0 / n as f64,
            _ => 1.0,
        };
        let scaled = |x: Vec<C>| x.into_iter().map(|v| (v.0 * factor, v.1 * factor)).collect();
        match self {
            Forward => scaled(dft(&fit(x, n), -1.0)),
            Inverse => scaled(dft(&fit(x, n), 1.0)),
            Real => {
                let x: Vec<C> = fit(x, n).into_iter().map(|v| (v.0, 0.0)).collect();
                scaled(dft(&x, -1.0)[..n / 2 + 1].to_vec())
            }
            RealInverse => {
                let x = fit(x, n / 2 + 1);
                let mut all = vec![(x[0].0, 0.0); n];
                for k in 1..x.len() {
                    all[k] = x[k];
                    all[n - k] = (x[k].0, -x[k].1);
                }
                if n.is_multiple_of(2) {
                    all[n / 2].1 = 0.0;
                }
                scaled(dft(&all, 1.0).into_iter().map(|v| (v.0, 0.0)).collect())
            }
        }
    }
}

/// Errors relative to the largest number; they grow with the logarithm of the length.
fn assert_near(what: &str, got: &Array, want: &Reference) -> Result<()> {
    assert_eq!(got.shape(), want.shape, "{what}");
    let largest = want.data.iter().fold(1e-30f64, |m, v| m.max(v.0.hypot(v.1)));
    assert_near_complex(what, got, &want.data, Tolerance::absolute(2e-6 * largest));
    Ok(())
}

fn complex(shape: &[usize], seed: u64) -> Result<Array> {
    Ok(uniform_complex(&mut Rng::new(seed), shape, -1.0, 1.0))
}

fn real(shape: &[usize], seed: u64) -> Result<Array> {
    Ok(uniform_f32(&mut Rng::new(seed), shape, -1.0, 1.0))
}

/// Operands for a transform of `n` elements, of the size that needs nothing cut off or added.
fn operand(kind: Kind, shape: &[usize], axis: usize, n: usize, seed: u64) -> Result<Array> {
    let mut shape = shape.to_vec();
    shape[axis] = if kind == RealInverse { n / 2 + 1 } else { n };
    if kind == Real { real(&shape, seed) } else { complex(&shape, seed) }
}

#[test]
fn lengths() -> Result<()> {
    for n in (1..=40).chain([97, 263, 1000, 1024, 65536, 30720]) {
        for kind in KINDS {
            let rows = if n > 2000 { 1 } else { 3 };
            let x = operand(kind, &[rows, 0], 1, n, n as u64)?;
            for norm in [Norm::Backward, Norm::Ortho, Norm::Forward] {
                let got = kind.run(&x, Some(n), -1, norm)?;
                let want = Reference::of(&x)?.lines(1, |line| kind.line(line, n, norm));
                assert_near(&format!("{kind:?} of {n}, {norm:?}"), &got, &want)?;
            }
        }
    }
    Ok(())
}

#[test]
fn axes_and_layouts() -> Result<()> {
    for kind in KINDS {
        for n in [1, 2, 7, 12, 16] {
            for axis in 0..3 {
                let x = operand(kind, &[4, 3, 5], axis, n, 5)?;
                let views = [
                    x.clone(),
                    x.transpose()?,
                    x.flip(None)?,
                    x.swapaxes(0, 1)?,
                    x.slice(&[0, 0, 0], &[99, 99, 99], &[2, 1, 1])?,
                    x.slice(&[0, 0, 0], &[1, 99, 99], &[1, 1, 1])?.broadcast_to(&{
                        let mut shape = x.shape().to_vec();
                        shape[0] = 3;
                        shape
                    })?,
                ];
                for (i, view) in views.iter().enumerate() {
                    for axis in [axis as isize, axis as isize - 3] {
                        let got = kind.run(view, Some(n), axis, Norm::Backward)?;
                        let at = axis.rem_euclid(3) as usize;
                        let want = Reference::of(view)?
                            .lines(at, |line| kind.line(line, n, Norm::Backward));
                        let what = format!("{kind:?} of {n}, axis {axis}, view {i}");
                        assert_near(&what, &got, &want)?;
                    }
                }
            }
        }
    }
    Ok(())
}

#[test]
fn cut_off_and_filled_up() -> Result<()> {
    for kind in KINDS {
        for n in [1, 2, 3, 6, 7, 20] {
            let x = complex(&[2, 6], 3)?;
            let got = kind.run(&x, Some(n), 1, Norm::Ortho)?;
            let want = Reference::of(&x)?.lines(1, |line| kind.line(line, n, Norm::Ortho));
            assert_near(&format!("{kind:?} of 6 as {n}"), &got, &want)?;
        }
    }
    let got = fft::irfft(&complex(&[2, 6], 3)?, None, -1, Norm::Backward)?;
    assert_eq!((got.shape(), got.dtype()), (&[2, 10][..], Dtype::Float32));
    Ok(())
}

#[test]
fn several_axes() -> Result<()> {
    let x = complex(&[3, 4, 5], 8)?;
    let back = Norm::Backward;
    let lines = |r: Reference, axis: usize, kind: Kind, n: usize| {
        r.lines(axis, |line| kind.line(line, n, Norm::Backward))
    };
    let all = |kind: Kind| -> Result<Reference> {
        let r = lines(lines(Reference::of(&x)?, 0, kind, 3), 1, kind, 4);
        Ok(lines(r, 2, kind, 5))
    };
    assert_near("fftn", &fft::fftn(&x, None, None, back)?, &all(Forward)?)?;
    assert_near("ifftn", &fft::ifftn(&x, None, None, back)?, &all(Inverse)?)?;
    let two = lines(lines(Reference::of(&x)?, 1, Forward, 6), 0, Forward, 2);
    assert_near("fftn, sizes", &fft::fftn(&x, Some(&[6, 2]), [1, -3], back)?, &two)?;
    let two = lines(lines(Reference::of(&x)?, 1, Forward, 4), 2, Forward, 5);
    assert_near("fft2", &fft::fft2(&x, None, None, back)?, &two)?;
    // The last axis that is named is that of the real transform.
    let x = x.real()?;
    let real = lines(lines(Reference::of(&x)?, 0, Real, 3), 2, Forward, 5);
    assert_near("rfft2", &fft::rfft2(&x, None, [2, 0], back)?, &real)?;
    for (s, axes) in [(&[4, 5][..], &[-2, -1][..]), (&[5, 3], &[2, 0]), (&[4], &[1])] {
        let there = fft::rfftn(&x, None, Some(axes), back)?;
        let again = fft::irfftn(&there, Some(s), Some(axes), back)?;
        assert_near("there and back", &again, &Reference::of(&x)?)?;
        let there = fft::fftn(&x, None, Some(axes), Norm::Forward)?;
        let again = fft::ifftn(&there, None, Some(axes), Norm::Forward)?;
        assert_near("there and back", &again, &Reference::of(&x)?)?;
    }
    Ok(())
}

#[test]
fn dtypes_and_empty_batches() -> Result<()> {
    for dtype in Dtype::ALL {
        let x = Array::arange(0.0, 6.0, 1.0, Dtype::Int32)?.reshape(&[2, 3])?.astype(dtype);
        for kind in KINDS {
            let got = kind.run(&x, None, -1, Norm::Backward)?;
            let to = if kind == RealInverse { Dtype::Float32 } else { Dtype::Complex64 };
            assert_eq!(got.dtype(), to, "{kind:?} of {dtype}");
            let n = if kind == RealInverse { 4 } else { 3 };
            let want = Reference::of(&x)?.lines(1, |line| kind.line(line, n, Norm::Backward));
            assert_near(&format!("{kind:?} of {dtype}"), &got, &want)?;
            let none = Array::zeros(&[0, 3], dtype)?;
            let none = kind.run(&none, None, -1, Norm::Backward)?;
            assert_eq!((none.shape()[0], none.dtype()), (0, to));
            none.eval()?;
        }
    }
    let zeros = fft::fft(&Array::zeros(&[2, 0], Dtype::Float32)?, Some(3), -1, Norm::Backward)?;
    assert_eq!(zeros.to_vec::<Complex32>()?, [Complex32::ZERO; 6]);
    Ok(())
}

#[test]
fn errors() -> Result<()> {
    let x = complex(&[2, 3], 0)?;
    let back = Norm::Backward;
    let value = |r: Result<Array>| assert!(matches!(r, Err(Error::Value(_))), "{r:?}");
    let index = |r: Result<Array>| assert!(matches!(r, Err(Error::Index(_))), "{r:?}");
    index(fft::fft(&x, None, 2, back));
    index(fft::irfft(&x, Some(4), -3, back));
    index(fft::fft(&Array::scalar(1.0f32), None, -1, back));
    value(fft::fft(&Array::scalar(1.0f32), Some(4), -1, back));
    value(fft::fftn(&Array::scalar(1.0f32), None, None, back));
    value(fft::fft(&x, Some(0), -1, back));
    value(fft::irfft(&complex(&[2, 1], 0)?, None, -1, back));
    value(fft::fftn(&x, None, [1, -1], back));
    value(fft::fftn(&x, Some(&[2]), None, back));
    value(fft::fftn(&x, Some(&[2]), [0, 1], back));
    value(fft::fftn(&Array::zeros(&[0, 3], Dtype::Float32)?, None, None, back));
    value(fft::fftfreq(0, 1.0));
    value(fft::rfftfreq(4, 0.0));
    index(fft::fftshift(&x, 2));
    assert!("backward".parse::<Norm>().is_ok() && "forwards".parse::<Norm>().is_err());
    let same = fft::rfftn(&x, None, [0; 0], back)?;
    assert_eq!((same.shape(), same.dtype()), (x.shape(), x.dtype()));
    Ok(())
}

#[test]
fn frequencies() -> Result<()> {
    assert_eq!(fft::fftfreq(5, 0.5)?.to_vec::<f32>()?, [0.0, 0.4, 0.8, -0.8, -0.4]);
    assert_eq!(fft::fftfreq(4, 1.0)?.to_vec::<f32>()?, [0.0, 0.25, -0.5, -0.25]);
    assert_eq!(fft::rfftfreq(5, 0.5)?.to_vec::<f32>()?, [0.0, 0.4, 0.8]);
    assert_eq!(fft::fftfreq(1, 1.0)?.to_vec::<f32>()?, [0.0]);
    let x = Array::arange(0.0, 15.0, 1.0, Dtype::Int32)?.reshape(&[3, 5])?;
    let shifted = fft::fftshift(&x, None)?;
    assert_eq!(shifted.to_vec::<i32>()?[..6], [13, 14, 10, 11, 12, 3]);
    assert_eq!(fft::ifftshift(&shifted, None)?.to_vec::<i32>()?, x.to_vec::<i32>()?);
    let rows = fft::ifftshift(&x, 1)?;
    assert_eq!(rows.to_vec::<i32>()?[..5], [2, 3, 4, 0, 1]);
    Ok(())
}

/// The functions whose derivatives are tested: they are linear.
type Linear = (&'static str, bool, fn(&Array) -> Result<Array>);
const LINEAR: &[Linear] = &[
    ("fft", false, |x| fft::fft(x, None, 0, Norm::Backward)),
    ("ifft", false, |x| fft::ifft(x, Some(7), 1, Norm::Backward)),
    ("fft of real", true, |x| fft::fft(x, Some(3), 1, Norm::Ortho)),
    ("rfft", true, |x| fft::rfft(x, None, 1, Norm::Backward)),
    ("rfft, odd", true, |x| fft::rfft(x, Some(5), 0, Norm::Forward)),
    ("irfft", false, |x| fft::irfft(x, None, 1, Norm::Backward)),
    ("irfft, odd", false, |x| fft::irfft(x, Some(5), 1, Norm::Ortho)),
    ("irfft of real", true, |x| fft::irfft(x, Some(8), 0, Norm::Backward)),
    ("rfft2", true, |x| fft::rfft2(x, Some(&[2, 7]), None, Norm::Ortho)),
    ("irfft2", false, |x| fft::irfft2(x, None, [1, 0], Norm::Ortho)),
    ("fftn", false, |x| fft::fftn(x, None, None, Norm::Ortho)),
    ("fftshift", false, |x| fft::fftshift(x, None)),
    ("diff", true, |x| x.diff(2, 1)),
    ("diff of rows", false, |x| x.diff(1, 0)),
    ("stft", true, |x| {
        let options =
            fft::StftOptions { n_fft: 4, window: Some(hanning(4)?), ..Default::default() };
        fft::stft(x, &options)
    }),
    ("istft", false, |x| {
        fft::istft(x, &fft::IstftOptions { n_fft: Some(4), ..Default::default() })
    }),
    ("istft, hop 3", false, |x| {
        let options = fft::IstftOptions {
            hop_length: Some(3),
            onesided: Some(false),
            n_fft: Some(5),
            center: false,
            ..Default::default()
        };
        fft::istft(x, &options)
    }),
];

/// The real inner product, of which the reverse rules are the adjoints.
fn inner(a: &Array, b: &Array) -> Result<f64> {
    let (a, b) = (Reference::of(a)?, Reference::of(b)?);
    assert_eq!(a.shape, b.shape);
    Ok(a.data.iter().zip(&b.data).map(|(x, y)| x.0 * y.0 + x.1 * y.1).sum())
}

fn any(is_real: bool, shape: &[usize], seed: u64) -> Result<Array> {
    if is_real { real(shape, seed) } else { complex(shape, seed) }
}

#[test]
fn derivatives() -> Result<()> {
    for &(name, is_real, f) in LINEAR {
        let (x, t) = (any(is_real, &[3, 6], 1)?, any(is_real, &[3, 6], 2)?);
        let run = |a: &[Array]| Ok::<_, Error>(vec![f(&a[0])?]);
        let (_, forward) = jvp(run, std::slice::from_ref(&x), std::slice::from_ref(&t))?;
        // A linear function is its own derivative.
        assert_near(name, &forward[0], &Reference::of(&f(&t)?)?)?;
        let out = &forward[0];
        let c = any(!out.dtype().is_complex(), out.shape(), 3)?;
        let (_, back) = vjp(run, &[x], std::slice::from_ref(&c))?;
        assert_eq!((back[0].shape(), back[0].dtype()), (t.shape(), t.dtype()), "{name}");
        let (left, right) = (inner(&c, out)?, inner(&back[0], &t)?);
        assert!((left - right).abs() < 1e-4 * (1.0 + left.abs()), "{name}: {right} for {left}");
    }
    Ok(())
}

/// Of a polynomial of fourth degree, in float32: steps are large, so that rounding counts little.
#[test]
fn finite_differences_and_second_derivatives() -> Result<()> {
    let energy = |x: &Array| {
        let y = fft::rfft(x, Some(5), -1, Norm::Ortho)?;
        let y = fft::irfft(&y.multiply(&y)?, Some(6), -1, Norm::Backward)?;
        y.multiply(&y)?.sum(None)
    };
    let x = real(&[6], 4)?;
    let slope = grad(energy)(&x)?;
    for seed in 10..14 {
        let t = real(&[6], seed)?;
        let (at, along) = (f64s(&x), f64s(&t));
        let difference = |f: &dyn Fn(&Array) -> Result<f64>| -> Result<f64> {
            let f = |x: &[f64]| Ok(vec![f(&Array::from_slice(x, &[6])?.astype(Dtype::Float32))?]);
            Ok(directional(f, &at, &along, 1e-2)?[0])
        };
        let first = difference(&|x| Ok(energy(x)?.item::<f32>()? as f64))?;
        let got = inner(&slope, &t)?;
        assert!((got - first).abs() < 2e-3 * (1.0 + first.abs()), "{got} for {first}");
        let c = real(&[6], 90)?;
        let second = difference(&|x| inner(&grad(energy)(x)?, &c))?;
        let (_, ahead) = jvp(
            |a| Ok::<_, Error>(vec![grad(energy)(&a[0])?]),
            std::slice::from_ref(&x),
            std::slice::from_ref(&t),
        )?;
        let got = inner(&ahead[0], &c)?;
        assert!((got - second).abs() < 5e-3 * (1.0 + second.abs()), "{got} for {second}");
    }
    Ok(())
}

#[test]
fn vmap_as_loop() -> Result<()> {
    for &(name, is_real, f) in LINEAR {
        for axis in 0..3usize {
            let mut shape = vec![3, 6];
            shape.insert(axis, 4);
            let x = any(is_real, &shape, 6)?;
            let mapped = vmap(
                |a: &[Array]| Ok::<_, Error>(vec![f(&a[0])?]),
                std::slice::from_ref(&x),
                [Some(axis as isize)],
                0,
            )?;
            let each: Vec<Array> =
                x.unstack(axis as isize)?.iter().map(f).collect::<Result<_>>()?;
            let what = format!("{name}, axis {axis}");
            assert_near(&what, &mapped[0], &Reference::of(&stack(&each, 0)?)?)?;
        }
    }
    Ok(())
}

#[test]
fn short_time() -> Result<()> {
    let x = real(&[2, 50], 3)?;
    for (n_fft, hop, center) in [(8, 2, true), (8, 3, true), (9, 4, false), (40, 2, true)] {
        let window = Some(hamming(n_fft)?);
        let options = fft::StftOptions {
            n_fft,
            hop_length: Some(hop),
            window: window.clone(),
            center,
            ..Default::default()
        };
        let spectra = fft::stft(&x, &options)?;
        // Frame 3, by hand.
        let start = (3 * hop) as isize - if center { n_fft as isize / 2 } else { 0 };
        if start >= 0 {
            let part = x.slice(&[0, start], &[2, start + n_fft as isize], &[1, 1])?;
            let part = part.multiply(window.as_ref().unwrap_or(&part))?;
            let want = fft::rfft(&part, None, -1, Norm::Backward)?;
            let got = spectra.take(Array::scalar(3i32), Some(-1))?;
            assert_near("a frame", &got, &Reference::of(&want)?)?;
        }
        let options = fft::IstftOptions {
            n_fft: Some(n_fft),
            hop_length: Some(hop),
            window,
            center,
            length: Some(50),
            ..Default::default()
        };
        let back = fft::istft(&spectra, &options)?;
        assert_eq!(back.shape(), [2, 50]);
        // Without room at the end the last samples may be in no frame.
        let whole = |a: &Array| a.slice(&[0, 0], &[2, 44], &[1, 1]);
        let (back, x) = (whole(&back)?, whole(&x)?);
        let off = back.subtract(&x)?.abs()?.max(None)?.item::<f32>()?;
        assert!(off < 1e-4, "{n_fft} {hop}: {off}");
    }
    Ok(())
}
