//! Large matrices: factors multiplied again, sizes around the blocks' boundaries, and what is not finite.

use super::{run, run_at, zeros};
use crate::testing::Array;
use ultramarine_abi::schema::op;
use ultramarine_cpu::dtype::{Element, c64};
use ultramarine_cpu::level::Level;
use ultramarine_test_support::Rng;

/// An element of a matrix, as a complex number of float64.
trait Number: Element {
    const EPSILON: f64;
    const COMPLEX: bool;
    type Real: Number;
    fn of(z: Z) -> Self;
    fn wide(self) -> Z;
}
/// Real and imaginary part.
type Z = [f64; 2];
impl Number for f32 {
    const EPSILON: f64 = f32::EPSILON as f64;
    const COMPLEX: bool = false;
    type Real = f32;
    fn of(z: Z) -> f32 {
        z[0] as f32
    }
    fn wide(self) -> Z {
        [self.into(), 0.0]
    }
}
impl Number for f64 {
    const EPSILON: f64 = f64::EPSILON;
    const COMPLEX: bool = false;
    type Real = f64;
    fn of(z: Z) -> f64 {
        z[0]
    }
    fn wide(self) -> Z {
        [self, 0.0]
    }
}
impl Number for c64 {
    const EPSILON: f64 = f32::EPSILON as f64;
    const COMPLEX: bool = true;
    type Real = f32;
    fn of(z: Z) -> c64 {
        c64 { re: z[0] as f32, im: z[1] as f32 }
    }
    fn wide(self) -> Z {
        [self.re.into(), self.im.into()]
    }
}

/// A matrix of rows.
#[derive(Clone)]
struct Dense {
    m: usize,
    n: usize,
    data: Vec<Z>,
}

impl Dense {
    fn new(m: usize, n: usize, mut f: impl FnMut(usize, usize) -> Z) -> Dense {
        let data = (0..m * n).map(|at| f(at / n, at % n)).collect();
        Dense { m, n, data }
    }
    fn of<T: Number>(m: usize, n: usize, values: &[T]) -> Dense {
        assert_eq!(values.len(), m * n);
        Dense { m, n, data: values.iter().map(|v| v.wide()).collect() }
    }
    fn values<T: Number>(&self) -> Vec<T> {
        self.data.iter().map(|z| T::of(*z)).collect()
    }
    /// Rounded to a type.
    fn rounded<T: Number>(self) -> Dense {
        Dense { data: self.data.iter().map(|z| T::of(*z).wide()).collect(), ..self }
    }
    fn at(&self, i: usize, j: usize) -> Z {
        self.data[i * self.n + j]
    }
    fn adjoint(&self) -> Dense {
        Dense::new(self.n, self.m, |i, j| [self.at(j, i)[0], -self.at(j, i)[1]])
    }
    fn times(&self, by: &Dense) -> Dense {
        assert_eq!(self.n, by.m);
        let mut out = Dense::new(self.m, by.n, |_, _| [0.0; 2]);
        for (i, row) in out.data.chunks_exact_mut(by.n).enumerate() {
            for k in 0..self.n {
                let [re, im] = self.at(i, k);
                let from = &by.data[k * by.n..][..by.n];
                if im == 0.0 {
                    row.iter_mut().zip(from).for_each(|(to, z)| {
                        to[0] += re * z[0];
                        to[1] += re * z[1];
                    });
                } else {
                    row.iter_mut().zip(from).for_each(|(to, z)| {
                        to[0] += re * z[0] - im * z[1];
                        to[1] += re * z[1] + im * z[0];
                    });
                }
            }
        }
        out
    }
    /// Frobenius'.
    fn norm(&self) -> f64 {
        self.data.iter().flatten().map(|v| v * v).sum::<f64>().sqrt()
    }
    /// The norm of the difference.
    fn distance(&self, other: &Dense) -> f64 {
        assert_eq!((self.m, self.n), (other.m, other.n));
        let square = |(a, b): (&Z, &Z)| (a[0] - b[0]).powi(2) + (a[1] - b[1]).powi(2);
        self.data.iter().zip(&other.data).map(square).sum::<f64>().sqrt()
    }
}

/// Random, graded by rows and by columns, of low rank, and nearly singular.
fn kinds<T: Number>(m: usize, n: usize, rng: &mut Rng) -> Vec<(&'static str, Dense)> {
    let mut number = |_: usize, _: usize| {
        [rng.uniform(-1.0, 1.0), if T::COMPLEX { rng.uniform(-1.0, 1.0) } else { 0.0 }]
    };
    let full = Dense::new(m, n, &mut number);
    let (left, right) = (Dense::new(m, 3, &mut number), Dense::new(3, n, &mut number));
    let low = left.times(&right);
    let scaled = |f: &dyn Fn(usize, usize) -> f64| {
        Dense::new(m, n, |i, j| full.at(i, j).map(|v| v * f(i, j))).rounded::<T>()
    };
    vec![
        ("rows graded", scaled(&|i, _| 10f64.powf(-12.0 * i as f64 / m as f64))),
        ("columns graded", scaled(&|_, j| 10f64.powf(12.0 * j as f64 / n as f64 - 8.0))),
        (
            "nearly singular",
            Dense::new(m, n, |i, j| {
                let small = full.at(i, j).map(|v| v * T::EPSILON.sqrt());
                [low.at(i, j)[0] + small[0], low.at(i, j)[1] + small[1]]
            })
            .rounded::<T>(),
        ),
        ("singular", low.rounded::<T>()),
        ("random", full.rounded::<T>()),
    ]
}

/// Sizes below, at and above multiples of the blocks.
const SIZES: [usize; 7] = [65, 64, 127, 192, 193, 256, 400];

/// One of the available levels, mostly the highest.
fn level(round: usize) -> Level {
    let levels = Level::available();
    levels[levels.len() - 1 - (round / 2) % levels.len()]
}

macro_rules! for_types {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            of::$name::<f32>();
            of::$name::<f64>();
            of::$name::<c64>();
        })*
    };
}
for_types! { lu_factors qr_factors triangular_solutions cholesky_factors hermitian_eigenvalues
singular_values not_finite }

/// The tests of each type.
mod of {
    use super::*;

    pub fn lu_factors<T: Number>() {
        let rng = &mut Rng::new(1);
        let shapes = SIZES.map(|n| (n, n)).into_iter().chain([(200, 330), (417, 195), (700, 700)]);
        for (round, (m, n)) in shapes.enumerate() {
            for (kind, a) in kinds::<T>(m, n, rng) {
                if round % 2 == 1 && kind != "random" {
                    continue;
                }
                let k = m.min(n);
                let values: Vec<T> = a.values();
                let mut results = Vec::new();
                for (plain, threads) in [(true, true), (round % 3 == 0, false)] {
                    let a = Array::new(&[m as i64, n as i64], &values, plain, rng);
                    let lu: Array<T> = zeros(&[m as i64, n as i64], plain, rng);
                    let pivots: Array<u32> = zeros(&[k as i64], plain, rng);
                    let rows: Array<u32> = zeros(&[m as i64], plain, rng);
                    let out = [lu.view(), pivots.view(), rows.view()];
                    run_at(level(round), op::LU, false, &[a.view()], &out, threads).unwrap();
                    results.push((lu.values(), pivots.values(), rows.values()));
                }
                // Neither strides nor threads matter.
                assert!(results[0] == results[1], "{kind} {m} x {n}");
                let (lu, pivots, rows) = &results[0];
                let lu = Dense::of(m, n, lu);
                let l = Dense::new(m, k, |i, j| match i.cmp(&j) {
                    std::cmp::Ordering::Less => [0.0; 2],
                    std::cmp::Ordering::Equal => [1.0, 0.0],
                    std::cmp::Ordering::Greater => lu.at(i, j),
                });
                let u = Dense::new(k, n, |i, j| if i <= j { lu.at(i, j) } else { [0.0; 2] });
                let permuted = Dense::new(m, n, |i, j| a.at(rows[i] as usize, j));
                let error = l.times(&u).distance(&permuted);
                let bound = k as f64 * T::EPSILON * (l.norm() * u.norm()).max(a.norm());
                assert!(error <= 0.2 * bound, "{kind} {m} x {n}: {error:e} > 0.2 * {bound:e}");
                let mut order: Vec<u32> = (0..m as u32).collect();
                pivots.iter().enumerate().for_each(|(i, p)| order.swap(i, *p as usize));
                assert!(order == *rows, "{kind} {m} x {n}");
                let largest = l.data.iter().map(|z| z[0].hypot(z[1])).fold(0.0, f64::max);
                assert!(largest <= 1.5, "{kind} {m} x {n}: pivots were not the largest");
            }
        }
    }

    pub fn qr_factors<T: Number>() {
        let rng = &mut Rng::new(5);
        let shapes = SIZES.map(|n| (n, n)).into_iter();
        let shapes = shapes.chain([(80, 330), (417, 71), (129, 130), (500, 5), (24, 90)]);
        for (round, (m, n)) in shapes.enumerate() {
            let k = m.min(n);
            for (kind, a) in kinds::<T>(m, n, rng) {
                if round % 2 == 1 && kind != "random" {
                    continue;
                }
                let mut results = Vec::new();
                for (plain, threads) in [(true, true), (round % 3 == 0, false)] {
                    let a = Array::new(&[m as i64, n as i64], &a.values::<T>(), plain, rng);
                    let q: Array<T> = zeros(&[m as i64, k as i64], plain, rng);
                    let r: Array<T> = zeros(&[k as i64, n as i64], plain, rng);
                    let out = [q.view(), r.view()];
                    run_at(level(round), op::QR, false, &[a.view()], &out, threads).unwrap();
                    results.push((q.values(), r.values()));
                }
                assert!(results[0] == results[1], "{kind} {m} x {n}");
                let (q, r) = (Dense::of(m, k, &results[0].0), Dense::of(k, n, &results[0].1));
                let product = q.times(&r);
                let eye = Dense::new(k, k, |i, j| [if i == j { 1.0 } else { 0.0 }, 0.0]);
                let unit = k.max(16) as f64 * T::EPSILON;
                let error = product.distance(&a);
                assert!(error <= unit * a.norm(), "{kind} {m} x {n}: {error:e}");
                let error = q.adjoint().times(&q).distance(&eye);
                assert!(error <= unit * (k as f64).sqrt(), "{kind} {m} x {n}: {error:e}");
                // Each column is as right as its size allows.
                for j in 0..n {
                    let column = |a: &Dense| Dense::new(m, 1, |i, _| a.at(i, j));
                    let (found, want) = (column(&product), column(&a));
                    let error = found.distance(&want);
                    assert!(error <= 2.0 * unit * want.norm(), "{kind} {m} x {n}, column {j}");
                }
                for i in 0..k {
                    assert!((0..i).all(|j| r.at(i, j) == [0.0; 2]), "{kind} {m} x {n}");
                    assert!(r.at(i, i)[1] == 0.0, "{kind} {m} x {n}");
                }
            }
        }
        // Squares would overflow or vanish.
        let (large, small) = if T::EPSILON < 1e-10 { (1e300, 1e-300) } else { (1e36, 1e-36) };
        for size in [large, small] {
            let n = 70;
            let a = kinds::<T>(n, n, rng).pop().unwrap().1;
            let scaled = Dense::new(n, n, |i, j| a.at(i, j).map(|v| v * size)).rounded::<T>();
            let given = Array::new(&[n as i64; 2], &scaled.values::<T>(), true, rng);
            let (q, r): (Array<T>, Array<T>) =
                (zeros(&[n as i64; 2], true, rng), zeros(&[n as i64; 2], true, rng));
            run(op::QR, false, &[given.view()], &[q.view(), r.view()], true).unwrap();
            let r = Dense::of(n, n, &r.values());
            let product = Dense::of(n, n, &q.values())
                .times(&Dense::new(n, n, |i, j| r.at(i, j).map(|v| v / size)));
            let want = Dense::new(n, n, |i, j| scaled.at(i, j).map(|v| v / size));
            assert!(product.distance(&want) <= n as f64 * T::EPSILON * want.norm(), "{size:e}");
        }
    }

    pub fn triangular_solutions<T: Number>() {
        let rng = &mut Rng::new(2);
        for (round, n) in SIZES.into_iter().chain([700]).enumerate() {
            let k = [16, 33, 64, 100, 257][round % 5];
            for (kind, a) in kinds::<T>(n, n, rng) {
                if round % 2 == 1 && kind != "random" {
                    continue;
                }
                // Elements beside the diagonal are small, lest the solutions overflow.
                let scale = |i: usize, j: usize| if i == j { 1.0 } else { 2.0 / n as f64 };
                let diagonal = |z: Z| [z[0] + z[0].signum() * 0.5, z[1]];
                let a = Dense::new(n, n, |i, j| {
                    let z = if i == j { diagonal(a.at(i, j)) } else { a.at(i, j) };
                    z.map(|v| v * scale(i, j))
                })
                .rounded::<T>();
                let b = kinds::<T>(n, k, rng).pop().unwrap().1;
                for upper in [false, true] {
                    let mut results = Vec::new();
                    for (plain, threads) in [(true, true), (false, false)] {
                        let shapes = [[n as i64, n as i64], [n as i64, k as i64]];
                        let a = Array::new(&shapes[0], &a.values::<T>(), plain, rng);
                        let b = Array::new(&shapes[1], &b.values::<T>(), plain, rng);
                        let x: Array<T> = zeros(&shapes[1], plain, rng);
                        let inputs = [a.view(), b.view()];
                        let (op, out) = (op::SOLVE_TRIANGULAR, [x.view()]);
                        run_at(level(round), op, upper, &inputs, &out, threads).unwrap();
                        results.push(x.values());
                    }
                    assert!(results[0] == results[1], "{kind} {n} {k} {upper}");
                    let x = Dense::of(n, k, &results[0]);
                    let within = |i: usize, j: usize| if upper { i <= j } else { i >= j };
                    let t =
                        Dense::new(n, n, |i, j| if within(i, j) { a.at(i, j) } else { [0.0; 2] });
                    let error = t.times(&x).distance(&b);
                    let bound = n as f64 * T::EPSILON * t.norm() * x.norm();
                    assert!(error <= 0.1 * bound, "{kind} {n} {k}: {error:e} > 0.1 * {bound:e}");
                }
            }
        }
        let (n, k) = (200, 40);
        let mut values = Dense::new(n, n, |_, _| [1.0, 0.0]);
        values.data[150 * n + 150] = [0.0; 2];
        let a = Array::new(&[n as i64, n as i64], &values.values::<T>(), true, rng);
        let b: Array<T> = zeros(&[n as i64, k], true, rng);
        let x: Array<T> = zeros(&[n as i64, k], true, rng);
        let error =
            run(op::SOLVE_TRIANGULAR, true, &[a.view(), b.view()], &[x.view()], true).unwrap_err();
        assert!(error.contains("(150, 150) is 0"), "{error}");
    }

    pub fn cholesky_factors<T: Number>() {
        let rng = &mut Rng::new(3);
        for (round, n) in SIZES.into_iter().chain([700]).enumerate() {
            for graded in [false, true] {
                let root = kinds::<T>(n, n, rng).pop().unwrap().1;
                let grade =
                    |i: usize| if graded { 10f64.powf(-6.0 * i as f64 / n as f64) } else { 1.0 };
                let mut a = root.times(&root.adjoint());
                (0..n).for_each(|i| a.data[i * n + i][0] += 1.0);
                let a = Dense::new(n, n, |i, j| a.at(i, j).map(|v| v * grade(i) * grade(j)));
                let a = a.rounded::<T>();
                for upper in [false, true] {
                    let within = |i: usize, j: usize| if upper { i <= j } else { i >= j };
                    // The other triangle is not read.
                    let given =
                        Dense::new(
                            n,
                            n,
                            |i, j| if within(i, j) { a.at(i, j) } else { [f64::NAN; 2] },
                        );
                    let mut results = Vec::new();
                    for (plain, threads) in [(true, true), (false, false)] {
                        let a = Array::new(&[n as i64; 2], &given.values::<T>(), plain, rng);
                        let out: Array<T> = zeros(&[n as i64; 2], plain, rng);
                        let (inputs, outputs) = ([a.view()], [out.view()]);
                        run_at(level(round), op::CHOLESKY, upper, &inputs, &outputs, threads)
                            .unwrap();
                        results.push(out.values());
                    }
                    assert!(results[0] == results[1], "{n} {upper}");
                    let factor = Dense::of(n, n, &results[0]);
                    let other = |i: usize, j: usize| within(i, j) || factor.at(i, j) == [0.0; 2];
                    assert!((0..n).all(|i| (0..n).all(|j| other(i, j))), "{n} {upper}");
                    assert!((0..n).all(|i| factor.at(i, i)[1] == 0.0 && factor.at(i, i)[0] > 0.0));
                    let (l, u) = (factor.adjoint(), factor.clone());
                    let (l, u) = if upper { (l, u) } else { (u, l) };
                    let product = l.times(&u);
                    let error = product.distance(&a);
                    let bound = n as f64 * T::EPSILON * a.norm();
                    assert!(error <= 0.2 * bound, "{n} {upper}: {error:e} > 0.2 * {bound:e}");
                    // Of graded matrices small elements are as right.
                    for i in 0..n {
                        let (found, want) = (product.at(i, i)[0], a.at(i, i)[0]);
                        assert!((found - want).abs() <= n as f64 * T::EPSILON * want, "{n} {i}");
                    }
                }
            }
        }
    }

    pub fn hermitian_eigenvalues<T: Number>() {
        let rng = &mut Rng::new(6);
        let scales = if T::EPSILON < 1e-10 { [1e290, 1e-290] } else { [1e36, 1e-34] };
        for (round, n) in [65, 64, 127, 193, 300].into_iter().enumerate() {
            let mut all = kinds::<T>(n, n, rng);
            all.push(("ones", Dense::new(n, n, |_, _| [1.0, 0.0])));
            all.push(("zeros", Dense::new(n, n, |_, _| [0.0; 2])));
            let block = |i: usize| i.min(n - 1 - i) / 3;
            let random = all[4].1.clone();
            let apart = |i, j| if block(i) == block(j) { random.at(i, j) } else { [0.0; 2] };
            all.push(("in blocks", Dense::new(n, n, apart)));
            for (number, (kind, a)) in all.into_iter().enumerate() {
                if round % 2 == 1 && number % 3 != 1 {
                    continue;
                }
                let size = if number == 4 { scales[round / 2 % 2] } else { 1.0 };
                let other = a.adjoint();
                let half = |i, j| [0, 1].map(|p| (a.at(i, j)[p] + other.at(i, j)[p]) / 2.0 * size);
                let a = Dense::new(n, n, half).rounded::<T>();
                let unit = Dense::new(n, n, |i, j| a.at(i, j).map(|v| v / size));
                for upper in [false, true] {
                    // The other triangle and the diagonal's imaginary part are not read.
                    let given = Dense::new(n, n, |i, j| match i.cmp(&j) {
                        std::cmp::Ordering::Equal => [a.at(i, i)[0], 7.0],
                        order if upper == order.is_lt() => a.at(i, j),
                        _ => [f64::NAN; 2],
                    });
                    let mut results = Vec::new();
                    for (plain, threads) in [(true, true), (false, false)] {
                        let a = Array::new(&[n as i64; 2], &given.values::<T>(), plain, rng);
                        let w: Array<T::Real> = zeros(&[n as i64], plain, rng);
                        let v: Array<T> = zeros(&[n as i64; 2], plain, rng);
                        let alone: Array<T::Real> = zeros(&[n as i64], plain, rng);
                        let (level, inputs) = (level(round), [a.view()]);
                        let outputs = [w.view(), v.view()];
                        run_at(level, op::EIGH, upper, &inputs, &outputs, threads).unwrap();
                        let outputs = [alone.view()];
                        run_at(level, op::EIGVALSH, upper, &inputs, &outputs, threads).unwrap();
                        results.push((w.values(), v.values(), alone.values()));
                    }
                    let what = format!("{kind} {n} {upper}");
                    assert!(results[0] == results[1], "{what}");
                    let (w, v, alone) = results.swap_remove(0);
                    let w: Vec<f64> = w.into_iter().map(|w| w.wide()[0] / size).collect();
                    let v = Dense::of(n, n, &v);
                    let bound = (n as f64).sqrt() * T::EPSILON * unit.norm();
                    let scaled = Dense::new(n, n, |i, j| v.at(i, j).map(|v| v * w[j]));
                    let error = unit.times(&v).distance(&scaled);
                    assert!(error <= 4.0 * bound, "{what}: {error:e} > 4 * {bound:e}");
                    let eye = Dense::new(n, n, |i, j| [if i == j { 1.0 } else { 0.0 }, 0.0]);
                    let error = v.adjoint().times(&v).distance(&eye);
                    assert!(error <= 4.0 * n as f64 * T::EPSILON, "{what}: {error:e}");
                    assert!(w.is_sorted(), "{what}");
                    for (w, alone) in w.iter().zip(alone) {
                        let error = (w - alone.wide()[0] / size).abs();
                        assert!(error <= 4.0 * bound, "{what}: {error:e} > 4 * {bound:e}");
                    }
                }
            }
        }
        for value in [f64::NAN, f64::INFINITY] {
            let n = 80;
            let mut a = Dense::new(n, n, |_, _| [1.0, 0.0]);
            a.data[50 * n + 20][0] = value;
            let a = Array::new(&[n as i64; 2], &a.values::<T>(), true, rng);
            let w: Array<T::Real> = zeros(&[n as i64], true, rng);
            let error = run(op::EIGVALSH, false, &[a.view()], &[w.view()], true).unwrap_err();
            assert!(error.contains("infinite or NaN"), "{error}");
        }
    }

    pub fn singular_values<T: Number>() {
        let rng = &mut Rng::new(7);
        let shapes = [(64, 64), (65, 65), (97, 64), (128, 193), (200, 100), (257, 257)];
        for (round, (m, n)) in shapes.into_iter().enumerate() {
            let k = m.min(n);
            let mut all = kinds::<T>(m, n, rng);
            all.push(("ones", Dense::new(m, n, |_, _| [1.0, 0.0])));
            all.push(("zeros", Dense::new(m, n, |_, _| [0.0; 2])));
            all.push(("diagonal", Dense::new(m, n, |i, j| [if i == j { 2.0 } else { 0.0 }, 0.0])));
            for (kind, a) in all {
                let what = format!("{kind} {m} x {n}");
                let full = round % 2 == 0;
                let [left, right] = if full { [m, n] } else { [k, k] };
                let mut results = Vec::new();
                for (plain, threads) in [(true, true), (false, false)] {
                    let a = Array::new(&[m as i64, n as i64], &a.values::<T>(), plain, rng);
                    let alone: Array<T::Real> = zeros(&[k as i64], plain, rng);
                    let (level, out) = (level(round), [alone.view()]);
                    run_at(level, op::SINGULAR_VALUES, false, &[a.view()], &out, threads).unwrap();
                    let u: Array<T> = zeros(&[m as i64, left as i64], plain, rng);
                    let s: Array<T::Real> = zeros(&[k as i64], plain, rng);
                    let v: Array<T> = zeros(&[right as i64, n as i64], plain, rng);
                    let out = [u.view(), s.view(), v.view()];
                    run_at(level, op::SVD, false, &[a.view()], &out, threads).unwrap();
                    results.push((alone.values(), u.values(), s.values(), v.values()));
                }
                // Neither strides nor threads matter.
                assert!(results[0] == results[1], "{what}");
                let (alone, u, s, v) = results.swap_remove(0);
                let numbers = |of: Vec<T::Real>| -> Vec<f64> {
                    of.into_iter().map(|s| s.wide()[0]).collect()
                };
                let (found, s) = (numbers(alone), numbers(s));
                let bound = (k as f64).sqrt() * T::EPSILON * a.norm();
                for (found, s) in found.iter().zip(&s) {
                    let error = (found - s).abs();
                    assert!(error <= 10.0 * bound, "{what}: {error:e} > 10 * {bound:e}");
                }
                for s in [&found, &s] {
                    assert!(s.is_sorted_by(|a, b| a >= b && *b >= 0.0), "{what}");
                }
                let (u, v) = (Dense::of(m, left, &u), Dense::of(right, n, &v));
                let scaled = Dense::new(m, k, |i, j| u.at(i, j).map(|u| u * s[j]));
                let error = scaled.times(&Dense::new(k, n, |i, j| v.at(i, j))).distance(&a);
                assert!(error <= 10.0 * bound, "{what}: {error:e} > 10 * {bound:e}");
                for vectors in [u, v.adjoint()] {
                    let n = vectors.n;
                    let eye = Dense::new(n, n, |i, j| [if i == j { 1.0 } else { 0.0 }, 0.0]);
                    let error = vectors.adjoint().times(&vectors).distance(&eye);
                    assert!(error <= 4.0 * n as f64 * T::EPSILON, "{what}: {error:e}");
                }
                let norm = found.iter().map(|s| s * s).sum::<f64>().sqrt();
                assert!((norm - a.norm()).abs() <= 10.0 * bound, "{what}: {norm} {}", a.norm());
            }
        }
        let (large, small) = if T::EPSILON < 1e-10 { (1e300, 1e-300) } else { (1e36, 1e-34) };
        for size in [large, small] {
            let a = Dense::new(70, 70, |i, j| [if i == j { size } else { 0.0 }, 0.0]);
            let a = Array::new(&[70; 2], &a.values::<T>(), true, rng);
            let s: Array<T::Real> = zeros(&[70], true, rng);
            run(op::SINGULAR_VALUES, false, &[a.view()], &[s.view()], true).unwrap();
            let near = |s: T::Real| (s.wide()[0] / size - 1.0).abs() < 70.0 * T::EPSILON;
            assert!(s.values().into_iter().all(near), "{size}");
        }
    }

    /// Matrices that are not positive definite give NaN; NaN and infinity spread and end.
    pub fn not_finite<T: Number>() {
        let rng = &mut Rng::new(4);
        let n = 230;
        let ones = Dense::new(n, n, |i, j| [if i == j { 2.0 } else { 1.0 }, 0.0]);
        for (at, value) in
            [(0, -1.0), (100, 0.0), (229, 1.0 - 1e-3), (31, f64::NAN), (64, f64::INFINITY)]
        {
            let mut a = ones.clone();
            // Elements are as if the rest was 1, less the others' sum: not positive.
            a.data[at * n + at] = [value - if at == 229 { 1.0 } else { 0.0 }, 0.0];
            for upper in [false, true] {
                let a = Array::new(&[n as i64; 2], &a.values::<T>(), true, rng);
                let out: Array<T> = zeros(&[n as i64; 2], true, rng);
                run(op::CHOLESKY, upper, &[a.view()], &[out.view()], true).unwrap();
                let out = Dense::of(n, n, &out.values());
                for i in 0..n {
                    for j in 0..n {
                        let within = if upper { i <= j } else { i >= j };
                        assert_eq!(out.at(i, j)[0].is_nan(), within, "{at} {value} {i} {j}");
                        assert!(within || out.at(i, j) == [0.0; 2]);
                    }
                }
            }
            let a = Array::new(&[n as i64; 2], &a.values::<T>(), true, rng);
            let lu: Array<T> = zeros(&[n as i64; 2], true, rng);
            let (pivots, rows): (Array<u32>, Array<u32>) =
                (zeros(&[n as i64], true, rng), zeros(&[n as i64], true, rng));
            let out = [lu.view(), pivots.view(), rows.view()];
            run(op::LU, false, &[a.view()], &out, true).unwrap();
            let mut order = rows.values();
            order.sort();
            assert!(order.into_iter().eq(0..n as u32), "{at} {value}");
        }
        // Of equal magnitudes the first one is the pivot.
        let a: Array<T> = Array::broadcast(&[n as i64; 2], T::of([-3.0, 0.0]));
        let lu: Array<T> = zeros(&[n as i64; 2], true, rng);
        let pivots: Array<u32> = zeros(&[n as i64], true, rng);
        let rows: Array<u32> = zeros(&[n as i64], true, rng);
        run(op::LU, false, &[a.view()], &[lu.view(), pivots.view(), rows.view()], true).unwrap();
        assert!(pivots.values().into_iter().eq(0..n as u32));
        let lu = Dense::of(n, n, &lu.values());
        assert!((0..n * n).all(|at| {
            let (i, j) = (at / n, at % n);
            let want = if i == 0 {
                -3.0
            } else if j == 0 {
                1.0
            } else {
                0.0
            };
            lu.at(i, j)[0] == want
        }));
    }
}
