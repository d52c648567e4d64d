//! Against the definition, in float64.

use crate::testing::{Array, Sample, desc, host, ravel, unravel};
use ultramarine_abi::schema::{FftAttrs, fft};
use ultramarine_cpu::dtype::{Element, c64};
use ultramarine_cpu::kernel::{Args, Context, Signature, View};
use ultramarine_cpu::tested::families::fft as prepare;
use ultramarine_cpu::tested::plan;
use ultramarine_cpu::{level::Level, par::Par};
use ultramarine_test_support::{Rng, Tolerance, assert_close};

/// Sums by the definition; `sign` of the exponent.
fn dft(x: &[(f64, f64)], sign: f64) -> Vec<(f64, f64)> {
    let n = x.len();
    let roots: Vec<(f64, f64)> = (0..n)
        .map(|i| (sign * std::f64::consts::TAU * i as f64 / n as f64).sin_cos())
        .map(|(s, c)| (c, s))
        .collect();
    (0..n)
        .map(|k| {
            x.iter().enumerate().fold((0.0, 0.0), |(re, im), (j, x)| {
                let w = roots[(j * k) % n];
                (re + x.0 * w.0 - x.1 * w.1, im + x.0 * w.1 + x.1 * w.0)
            })
        })
        .collect()
}

/// The expected line of `n` outputs.
fn expected(code: u32, x: &[(f64, f64)], n: usize) -> Vec<(f64, f64)> {
    match code {
        fft::REAL => dft(x, -1.0)[..n].to_vec(),
        fft::REAL_BACKWARD => {
            let mut whole = vec![(0.0, 0.0); n];
            for (k, x) in x.iter().enumerate() {
                whole[k] = *x;
                if k != 0 {
                    whole[n - k] = (x.0, -x.1);
                }
            }
            // These are their own partners, and so real.
            whole[0].1 = 0.0;
            if n.is_multiple_of(2) {
                whole[n / 2].1 = 0.0;
            }
            dft(&whole, 1.0)
        }
        _ => dft(x, if code == fft::FORWARD { -1.0 } else { 1.0 }),
    }
}

fn run(
    (code, axis, scale): (u32, usize, f64),
    source: &View<'_>,
    output: &View<'_>,
    level: Level,
    threads: bool,
) -> Result<(), String> {
    let (ins, outs) = ([desc(source)], [desc(output)]);
    let signature = Signature { inputs: &ins, outputs: &outs };
    let kernel = prepare(FftAttrs::new(code, axis as u32), &signature, level)
        .map_err(|r| format!("{r:?}"))?;
    let par = if threads { Par::new(host()) } else { Par::default() };
    let (inputs, outputs) = ([*source], [*output]);
    let args = Args { inputs: &inputs, outputs: &outputs, scalars: &[[scale.to_bits(), 0]] };
    // SAFETY: the arrays behind the views are valid and apart.
    unsafe { kernel.run(&Context { par, level }, &args) }
}

trait Number: Sample + Element {
    fn make(re: f64, im: f64) -> Self;
    fn parts(self) -> (f64, f64);
}
impl Number for f32 {
    fn make(re: f64, _: f64) -> f32 {
        re as f32
    }
    fn parts(self) -> (f64, f64) {
        (self as f64, 0.0)
    }
}
impl Number for c64 {
    fn make(re: f64, im: f64) -> c64 {
        c64 { re: re as f32, im: im as f32 }
    }
    fn parts(self) -> (f64, f64) {
        (self.re as f64, self.im as f64)
    }
}

fn random<T: Number>(shape: &[i64], plain: bool, rng: &mut Rng) -> Array<T> {
    let mut one = || rng.uniform(-1.0, 1.0);
    let values: Vec<T> =
        (0..shape.iter().product::<i64>()).map(|_| T::make(one(), one())).collect();
    Array::new(shape, &values, plain, rng)
}

/// Transforms of `n` along `axis` of a shape, of whose sizes that one does not count.
fn check<A: Number, B: Number>(code: u32, n: usize, shape: &[i64], axis: usize, round: usize) {
    let rng = &mut Rng::new(round as u64 + 1 + 977 * n as u64);
    let sized = |size: usize| {
        let mut shape = shape.to_vec();
        shape[axis] = size as i64;
        shape
    };
    let (size_in, size_out) = match code {
        fft::REAL => (n, n / 2 + 1),
        fft::REAL_BACKWARD => (n / 2 + 1, n),
        _ => (n, n),
    };
    let (shape, to) = (sized(size_in), sized(size_out));
    let scale = [1.0, 1.0 / n as f64, -2.5][round % 3];
    let source = random::<A>(&shape, round.is_multiple_of(2), rng);
    let output = random::<B>(&to, round % 3 != 1, rng);
    let levels = Level::available();
    let level = levels[round % levels.len()];
    run((code, axis, scale), &source.view(), &output.view(), level, round % 4 < 2).unwrap();
    let (source, output) = (source.values(), output.values());
    let line = |mut at: Vec<i64>, shape: &[i64]| -> Vec<usize> {
        let place = |i| {
            at[axis] = i;
            ravel(&at, shape)
        };
        (0..shape[axis]).map(place).collect()
    };
    for start in (0..source.len()).map(|i| unravel(i, &shape)).filter(|at| at[axis] == 0) {
        let x: Vec<_> = line(start.clone(), &shape).iter().map(|i| source[*i].parts()).collect();
        let size: f64 = x.iter().map(|(a, b)| a.hypot(*b)).sum::<f64>() * 2.0;
        // Random signs: errors grow with the root of the sum's terms.
        let slack = scale.abs() * size / (n as f64).sqrt() * (n as f64).log2().max(1.0) * 6e-7;
        let wanted = expected(code, &x, size_out);
        for ((k, place), want) in line(start.clone(), &to).iter().enumerate().zip(wanted) {
            let (got, want) = (output[*place].parts(), (want.0 * scale, want.1 * scale));
            let off = (got.0 - want.0).hypot(got.1 - want.1);
            assert!(
                off <= slack,
                "code {code}, n {n}, axis {axis} of {shape:?}, {level:?}, {start:?}, element {k}: \
                 {got:?}, not {want:?}"
            );
        }
    }
}

fn any(code: u32, n: usize, shape: &[i64], axis: usize, round: usize) {
    match code {
        fft::REAL => check::<f32, c64>(code, n, shape, axis, round),
        fft::REAL_BACKWARD => check::<c64, f32>(code, n, shape, axis, round),
        _ => check::<c64, c64>(code, n, shape, axis, round),
    }
}

#[test]
fn all_lengths() {
    let lengths = (1..=70).chain([97, 101, 121, 127, 128, 144, 256, 257, 331, 360, 1000, 1024]);
    for (round, n) in lengths.enumerate() {
        for code in 0..fft::NAMES.len() as u32 {
            any(code, n, &[3, 0], 1, round + code as usize);
            any(code, n, &[0], 0, round + code as usize + 1);
        }
    }
}

#[test]
fn all_axes_and_strides() {
    let shapes: [&[i64]; 5] = [&[0, 19], &[3, 0, 5], &[2, 9, 0], &[2, 0, 1], &[2, 3, 0, 2]];
    for (i, shape) in shapes.iter().enumerate() {
        for (j, n) in [1, 2, 5, 8, 12, 30, 37].into_iter().enumerate() {
            for code in 0..fft::NAMES.len() as u32 {
                let axis = shape.iter().position(|n| *n == 0).unwrap();
                (0..4).for_each(|k| any(code, n, shape, axis, 5 * i + 3 * j + k));
            }
        }
    }
}

#[test]
fn many_lines_make_several_tasks() {
    for code in 0..fft::NAMES.len() as u32 {
        any(code, 64, &[1500, 0], 1, code as usize);
        any(code, 30, &[0, 2500], 0, code as usize + 1);
    }
}

/// The same numbers all along: only element 0 is not zero. A line that is broadcast.
#[test]
fn broadcast_operands() {
    let source = Array::broadcast(&[4, 6], 1.5f32);
    let output = Array::new(&[4, 4], &[c64::default(); 16], true, &mut Rng::new(3));
    run((fft::REAL, 1, 1.0), &source.view(), &output.view(), Level::current(), false).unwrap();
    for (i, v) in output.values().into_iter().enumerate() {
        assert_eq!(v, c64 { re: if i % 4 == 0 { 9.0 } else { 0.0 }, im: 0.0 });
    }
}

#[test]
fn large_lengths() {
    // The transform of one wave is one spike.
    for n in [65536usize, 65521, 100_000, 3 << 15] {
        let k = n / 7;
        let wave = |j: usize| std::f64::consts::TAU * (j * k % n) as f64 / n as f64;
        let values: Vec<f32> = (0..n).map(|j| wave(j).cos() as f32).collect();
        let rng = &mut Rng::new(5);
        let source = Array::new(&[n as i64], &values, true, rng);
        let half = n / 2 + 1;
        let output = Array::new(&[half as i64], &vec![c64::default(); half], true, rng);
        let level = Level::current();
        run((fft::REAL, 0, 1.0), &source.view(), &output.view(), level, true).unwrap();
        for (i, v) in output.values().into_iter().enumerate() {
            let want = if i == k { n as f32 / 2.0 } else { 0.0 };
            assert!((v.re - want).hypot(v.im) < 2e-5 * n as f32, "{n} {i}: {v:?}");
        }
        let back = Array::new(&[n as i64], &vec![0f32; n], true, rng);
        let scale = 1.0 / n as f64;
        run((fft::REAL_BACKWARD, 0, scale), &output.view(), &back.view(), level, true).unwrap();
        let wide = |values: Vec<f32>| values.into_iter().map(f64::from).collect::<Vec<_>>();
        let what = format!("{n} there and back");
        assert_close(&what, &wide(back.values()), &wide(values), Tolerance::absolute(2e-6));
    }
}

#[test]
fn plans_are_forgotten() {
    // More than are kept, and longer ones than are kept together.
    for n in (1..200).chain([1 << 22, 8, 1 << 22]) {
        let plan = plan::get(fft::FORWARD, n, Level::current());
        assert!(plan.scratch_len() <= 4 * n + 4096);
    }
    assert!(plan::kept() <= 64);
}

#[test]
fn refuses() {
    let rng = &mut Rng::new(9);
    let source = random::<c64>(&[4, 5], true, rng);
    let real = random::<f32>(&[4, 5], true, rng);
    let to = random::<c64>(&[4, 4], true, rng);
    let run = |code, axis, from: &View<'_>, to: &View<'_>| {
        run((code, axis, 1.0), from, to, Level::current(), false).unwrap_err()
    };
    assert!(run(fft::FORWARD, 1, &source.view(), &to.view()).contains("shape"));
    assert!(run(fft::REAL, 1, &real.view(), &to.view()).contains("shape"));
    assert!(run(fft::FORWARD, 2, &source.view(), &source.view()).contains("axis"));
    assert!(run(fft::REAL, 1, &source.view(), &to.view()).contains("Unsupported"));
    assert!(run(9, 1, &source.view(), &source.view()).contains("Unsupported"));
}
