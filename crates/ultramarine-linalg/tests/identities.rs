//! What each decomposition promises, checked in float64: the factors multiply to the matrix, and
//! vectors are orthonormal. Errors are relative to the norm of the matrix.

#[allow(dead_code, reason = "each test uses a part of it")]
mod support;

use support::{Dense, kinds, sizes};
use ultramarine_linalg::{Number, Scalar, SingularVectors, Work, c32, c64};
use ultramarine_test_support::{Rng, Tolerance, assert_close};

/// Units in the last place, times the size of the matrix, that factors may be wrong.
const ULPS: f64 = 8.0;

fn tolerance<T: Number>(m: usize, n: usize) -> f64 {
    let eps = if T::LARGE > 1e50 { f64::EPSILON } else { f32::EPSILON as f64 };
    ULPS * eps * (m.max(n).max(4) as f64)
}

macro_rules! for_types {
    ($($name:ident)*) => {
        mod float32 { $(#[test] fn $name() { super::$name::<f32>() })* }
        mod float64 { $(#[test] fn $name() { super::$name::<f64>() })* }
        mod complex64 { $(#[test] fn $name() { super::$name::<ultramarine_linalg::c32>() })* }
    };
}
for_types! {
    lu qr svd eigh eig cholesky solve_triangular special_values no_matrix_without_end large_and_small
    jordan_blocks large_eig
}

/// All shapes and kinds of matrices.
fn each<T: Scalar>(mut f: impl FnMut(&str, &Dense, Vec<T>)) {
    for (m, n) in sizes() {
        for (kind, a) in kinds(m, n, T::IS_COMPLEX) {
            let narrow: Vec<T> = a.to();
            // What was rounded is the matrix that counts.
            let a = Dense::of(m, n, &narrow);
            f(&format!("{kind} {m} x {n}"), &a, narrow);
        }
    }
}

fn lu<T: Scalar>() {
    each(|what, a, mut lu: Vec<T>| {
        let (m, n) = (a.m, a.n);
        let k = m.min(n);
        let (mut pivots, mut rows) = (vec![0; k], vec![0; m]);
        T::lu(&mut lu, m, n, &mut pivots, &mut rows).unwrap();
        let packed = Dense::of(m, n, &lu);
        let l = Dense::new(m, k, |i, j| {
            if i == j {
                Dense::ONE
            } else if i > j {
                packed.at(i, j)
            } else {
                Dense::ZERO
            }
        });
        let u = Dense::new(k, n, |i, j| if i <= j { packed.at(i, j) } else { Dense::ZERO });
        let permuted = Dense::new(m, n, |i, j| a.at(rows[i] as usize, j));
        l.times(&u).near(&permuted, a.norm() * tolerance::<T>(m, n), what);
        let mut swapped: Vec<u32> = (0..m as u32).collect();
        pivots.iter().enumerate().for_each(|(i, p)| swapped.swap(i, *p as usize));
        assert_eq!(swapped, rows, "{what}");
        assert!(pivots.iter().enumerate().all(|(i, p)| *p as usize >= i), "{what}");
        assert!(l.largest() <= 1.5, "{what}: pivots were not the largest");
    });
}

fn qr<T: Scalar>() {
    each(|what, a, mut r: Vec<T>| {
        let (m, n) = (a.m, a.n);
        let k = m.min(n);
        let mut q = vec![T::of_parts([f64::NAN; 2]); m * k];
        T::qr(&mut r, m, n, &mut q).unwrap();
        let (q, r) = (Dense::of(m, k, &q), Dense::of(m, n, &r));
        let r = Dense::new(k, n, |i, j| r.at(i, j));
        q.times(&r).near(a, a.norm() * tolerance::<T>(m, n), what);
        q.orthonormal(tolerance::<T>(m, n), what);
        for i in 0..k {
            (0..i).for_each(|j| assert_eq!(r.at(i, j), Dense::ZERO, "{what}"));
            assert_eq!(r.at(i, i).im, 0.0, "{what}");
        }
    });
}

fn svd<T: Scalar>() {
    let mut work = Work::default();
    each(|what, a, given: Vec<T>| {
        let (m, n) = (a.m, a.n);
        let k = m.min(n);
        let mut alone = vec![T::Norm::default(); k];
        T::svd(&mut given.clone(), m, n, &mut alone, None, &mut work).unwrap();
        for full in [true, false] {
            let (left, right) = if full { (m, n) } else { (k, k) };
            let mut s = vec![T::Norm::default(); k];
            // What was there before does not matter.
            let nan = T::of_parts([f64::NAN; 2]);
            let (mut u, mut v) = (vec![nan; m * left], vec![nan; n * right]);
            let vectors = SingularVectors { u: &mut u, v: &mut v, full };
            T::svd(&mut given.clone(), m, n, &mut s, Some(vectors), &mut work).unwrap();
            let (u, v) = (Dense::of(m, left, &u), Dense::of(n, right, &v));
            let (s, alone) = (Dense::reals(&s), Dense::reals(&alone));
            u.orthonormal(tolerance::<T>(m, n), what);
            v.orthonormal(tolerance::<T>(m, n), what);
            let scaled = Dense::new(m, k, |i, j| u.at(i, j) * s[j]);
            let v = Dense::new(n, k, |i, j| v.at(i, j));
            let error = a.norm() * tolerance::<T>(m, n);
            scaled.times(&v.adjoint()).near(a, error, what);
            assert!(
                s.windows(2).all(|w| w[0] >= w[1]) && s.iter().all(|s| *s >= 0.0),
                "{what}: {s:?}"
            );
            assert_close(what, &s, &alone, Tolerance::absolute(error));
        }
    });
}

fn eigh<T: Scalar>() {
    let mut work = Work::default();
    each(|what, a, _: Vec<T>| {
        let n = a.n;
        if a.m != n {
            return;
        }
        let symmetric: Vec<T> = a.hermitian().to();
        let symmetric = Dense::of(n, n, &symmetric).hermitian();
        let mut lower: Vec<T> = symmetric.to();
        // Must not be read.
        (0..n).for_each(|j| (0..j).for_each(|i| lower[i + j * n] = T::of_parts([f64::NAN; 2])));
        (0..n).for_each(|i| lower[i + i * n] = T::of_parts([symmetric.at(i, i).re, 7.0]));
        let (mut w, mut v) = (vec![T::Norm::default(); n], vec![T::of_parts([f64::NAN; 2]); n * n]);
        T::eigh(&mut lower.clone(), n, &mut w, Some(&mut v), &mut work).unwrap();
        let mut alone = vec![T::Norm::default(); n];
        T::eigh(&mut lower, n, &mut alone, None, &mut work).unwrap();
        let (w, alone, v) = (Dense::reals(&w), Dense::reals(&alone), Dense::of(n, n, &v));
        v.orthonormal(tolerance::<T>(n, n), what);
        let error = symmetric.norm() * tolerance::<T>(n, n);
        let scaled = Dense::new(n, n, |i, j| v.at(i, j) * w[j]);
        symmetric.times(&v).near(&scaled, error, what);
        assert!(w.windows(2).all(|w| w[0] <= w[1]), "{what}: {w:?}");
        assert_close(what, &w, &alone, Tolerance::absolute(error));
    });
}

/// Eigenvalues and eigenvectors, checked for `a v = v diag(w)` and the vectors' norms.
fn general<T: Scalar>(what: &str, a: &Dense, given: &[T]) {
    let n = a.n;
    let mut work = Work::default();
    let (mut w, mut v) = (vec![c32::default(); n], vec![c32::default(); n * n]);
    T::eig(given, n, &mut w, Some(&mut v), &mut work).unwrap_or_else(|e| panic!("{what}: {e}"));
    let (w, v) = (Dense::of(n, 1, &w), Dense::of(n, n, &v));
    let scaled = Dense::new(n, n, |i, j| v.at(i, j) * w.at(j, 0));
    a.times(&v).near(&scaled, a.norm() * tolerance::<f32>(n, n), what);
    for j in 0..n {
        let norm: f64 = (0..n).map(|i| v.at(i, j).norm_sqr()).sum();
        assert!((norm - 1.0).abs() < 1e-5, "{what}: {norm}");
        let largest = (0..n)
            .map(|i| v.at(i, j))
            .fold(Dense::ZERO, |a, b| if b.norm() > a.norm() * 1.0001 { b } else { a });
        assert!(largest.im.abs() < 1e-3 * largest.norm() || n > 2, "{what}: {largest}");
    }
    let trace = (0..n).map(|i| a.at(i, i)).sum::<ultramarine_linalg::c64>();
    let sum = (0..n).map(|i| w.at(i, 0)).sum::<ultramarine_linalg::c64>();
    assert!((trace - sum).norm() <= a.norm() * tolerance::<f32>(n, n), "{what}: {trace} {sum}");
    let mut alone = vec![c32::default(); n];
    T::eig(given, n, &mut alone, None, &mut work).unwrap();
    let sum = alone
        .iter()
        .map(|w| ultramarine_linalg::c64::new(w.re.into(), w.im.into()))
        .sum::<ultramarine_linalg::c64>();
    assert!((trace - sum).norm() <= a.norm() * tolerance::<f32>(n, n), "{what}: {trace} {sum}");
}

fn eig<T: Scalar>() {
    each(|what, a, given: Vec<T>| {
        if a.m == a.n {
            general(what, a, &given);
        }
    });
    let rotation =
        Dense::new(
            2,
            2,
            |i, j| if i == j { Dense::ZERO } else { Dense::ONE * (i as f64 - j as f64) },
        );
    let given: Vec<T> = rotation.to();
    general("quarter turn", &rotation, &given);
}

/// Sizes from which on sweeps have other sizes.
fn large_eig<T: Scalar>() {
    let mut rng = Rng::new(9);
    let mut random = |n: usize| {
        let mut part = || rng.uniform(-1.0, 1.0);
        let a = Dense::new(n, n, |_, _| c64::new(part(), if T::IS_COMPLEX { part() } else { 0.0 }));
        let given: Vec<T> = a.to();
        (Dense::of(n, n, &given), given)
    };
    let (a, given) = random(200);
    general("random 200", &a, &given);
    // The sums of the eigenvalues and of their squares are traces.
    let n = 600;
    let (a, given) = random(n);
    let mut w = vec![c32::default(); n];
    T::eig(&given, n, &mut w, None, &mut Work::default()).unwrap();
    let w: Vec<c64> = w.iter().map(|w| c64::new(w.re.into(), w.im.into())).collect();
    let close = |what: &str, got: c64, want: c64| {
        assert!((got - want).norm() <= 1e-6 * a.norm() * a.norm(), "{what}: {got} is not {want}");
    };
    close("sum", w.iter().sum(), (0..n).map(|i| a.at(i, i)).sum());
    let square: c64 = (0..n * n).map(|i| a.at(i / n, i % n) * a.at(i % n, i / n)).sum();
    close("squares", w.iter().map(|w| w * w).sum(), square);
}

fn jordan_blocks<T: Scalar>() {
    for n in [2, 5, 40, 64] {
        for value in [0.0, 1.0, -3.0] {
            let a = Dense::new(n, n, |i, j| {
                Dense::ONE
                    * if i == j {
                        value
                    } else if j == i + 1 {
                        1.0
                    } else {
                        0.0
                    }
            });
            let given: Vec<T> = a.to();
            general(&format!("Jordan block of {n} with {value}"), &a, &given);
        }
    }
    // A shift that never is a contraction: eigenvalues on the unit circle.
    for n in [2, 3, 17, 64] {
        let a = Dense::new(n, n, |i, j| if j == (i + 1) % n { Dense::ONE } else { Dense::ZERO });
        let given: Vec<T> = a.to();
        general(&format!("cyclic shift of {n}"), &a, &given);
    }
}

fn cholesky<T: Scalar>() {
    let mut work = Work::default();
    for n in [0, 1, 2, 3, 17, 64, 130] {
        let (_, a) = kinds(n, n, T::IS_COMPLEX).remove(0);
        let square = a.times(&a.adjoint());
        let positive = Dense::new(n, n, |i, j| square.at(i, j) + if i == j { 1.0 } else { 0.0 });
        let mut l: Vec<T> = positive.to();
        let positive = Dense::of(n, n, &l);
        (0..n).for_each(|j| (0..j).for_each(|i| l[i + j * n] = T::of_parts([f64::NAN; 2])));
        assert!(T::cholesky(&mut l, n, &mut work).unwrap());
        let l = Dense::new(
            n,
            n,
            |i, j| if i >= j { Dense::of(n, n, &l).at(i, j) } else { Dense::ZERO },
        );
        l.times(&l.adjoint()).near(
            &positive,
            positive.norm() * tolerance::<T>(n, n),
            &format!("{n}"),
        );
        (0..n).for_each(|i| assert!(l.at(i, i).re > 0.0 && l.at(i, i).im == 0.0));
        if n > 0 {
            let indefinite = Dense::new(n, n, |i, j| {
                if (i, j) == (n / 2, n / 2) { Dense::ONE * -1.0 } else { positive.at(i, j) }
            });
            assert!(!T::cholesky(&mut indefinite.to::<T>(), n, &mut work).unwrap());
            assert!(!T::cholesky(&mut vec![T::default(); n * n], n, &mut work).unwrap());
            assert!(
                !T::cholesky(&mut vec![T::of_parts([f64::NAN, 0.0]); n * n], n, &mut work).unwrap()
            );
        }
    }
}

fn solve_triangular<T: Scalar>() {
    for n in [0, 1, 2, 3, 17, 64, 130] {
        for k in [0, 1, 5, 70] {
            for upper in [false, true] {
                let (_, a) = kinds(n, n, T::IS_COMPLEX).remove(0);
                let a: Vec<T> =
                    Dense::new(n, n, |i, j| a.at(i, j) + if i == j { n as f64 } else { 0.0 }).to();
                let b: Vec<T> = kinds(n, k, T::IS_COMPLEX).remove(0).1.to();
                let mut x = b.clone();
                T::solve_triangular(&a, n, upper, &mut x, k).unwrap();
                let a = Dense::of(n, n, &a);
                let triangle = Dense::new(n, n, |i, j| {
                    if (i <= j) == upper || i == j { a.at(i, j) } else { Dense::ZERO }
                });
                let x = Dense::of(n, k, &x);
                let error = a.norm() * x.norm() * tolerance::<T>(n, k);
                triangle.times(&x).near(&Dense::of(n, k, &b), error, &format!("{n} {k} {upper}"));
            }
        }
    }
    let mut a = vec![T::ONE; 9];
    a[4] = T::default();
    let error = T::solve_triangular(&a, 3, false, &mut [T::ONE; 3], 1).unwrap_err();
    assert!(error.contains("singular") && error.contains("(1, 1)"), "{error}");
}

fn special_values<T: Scalar>() {
    let mut work = Work::default();
    for n in [1, 2, 3, 17, 70] {
        for value in [f64::NAN, f64::INFINITY] {
            for everywhere in [false, true] {
                let a: Vec<T> = Dense::new(n, n, |i, j| {
                    let here = everywhere || (i, j) == (n / 2, n / 3);
                    Dense::ONE * if here { value } else { (i + 2 * j) as f64 }
                })
                .to();
                let mut s = vec![T::Norm::default(); n];
                let (mut u, mut v) = (vec![T::default(); n * n], vec![T::default(); n * n]);
                let vectors = SingularVectors { u: &mut u, v: &mut v, full: true };
                assert!(
                    T::svd(&mut a.clone(), n, n, &mut s, Some(vectors), &mut work)
                        .unwrap_err()
                        .contains("NaN")
                );
                assert!(
                    T::eigh(&mut a.clone(), n, &mut s, None, &mut work)
                        .unwrap_err()
                        .contains("NaN")
                );
                assert!(
                    T::eig(&a, n, &mut vec![c32::default(); n], None, &mut work)
                        .unwrap_err()
                        .contains("NaN")
                );
                // These take what comes, and end.
                T::lu(&mut a.clone(), n, n, &mut vec![0; n], &mut vec![0; n]).unwrap();
                T::qr(&mut a.clone(), n, n, &mut u).unwrap();
                T::cholesky(&mut a.clone(), n, &mut work).unwrap();
                if !everywhere {
                    let a: Vec<T> =
                        a.iter().map(|v| if *v == T::default() { T::ONE } else { *v }).collect();
                    T::solve_triangular(&a, n, true, &mut vec![T::ONE; n], 1).unwrap();
                }
            }
        }
    }
}

/// Matrices for which iterations are known to be slow.
fn no_matrix_without_end<T: Scalar>() {
    let mut work = Work::default();
    for n in [3usize, 20, 64] {
        let graded = Dense::new(n, n, |i, j| Dense::ONE * 10f64.powi(-((i + j) as i32) % 30));
        let ones = Dense::new(n, n, |_, _| Dense::ONE);
        let clustered = Dense::new(n, n, |i, j| Dense::ONE * if i == j { 1.0 } else { 1e-7 });
        for a in [graded, ones, clustered] {
            let given: Vec<T> = a.to();
            let mut s = vec![T::Norm::default(); n];
            T::svd(&mut given.clone(), n, n, &mut s, None, &mut work).unwrap();
            let mut v = vec![T::default(); n * n];
            T::eigh(&mut given.clone(), n, &mut s, Some(&mut v), &mut work).unwrap();
            general("slow", &Dense::of(n, n, &given), &given);
        }
    }
}

/// Squares of the elements would overflow, or vanish.
fn large_and_small<T: Scalar>() {
    let mut work = Work::default();
    let n = 9;
    let far = if T::LARGE > 1e50 { 1e200 } else { 1e30 };
    for size in [far, 1.0 / far] {
        let (_, a) = kinds(n, n, T::IS_COMPLEX).remove(0);
        let given: Vec<T> = Dense::new(n, n, |i, j| a.at(i, j) * size).to();
        let (mut s, mut unit) = (vec![T::Norm::default(); n], vec![T::Norm::default(); n]);
        T::svd(&mut given.clone(), n, n, &mut s, None, &mut work).unwrap();
        T::svd(&mut a.to::<T>(), n, n, &mut unit, None, &mut work).unwrap();
        for (s, unit) in Dense::reals(&s).iter().zip(Dense::reals(&unit)) {
            assert!((s / size - unit).abs() < a.norm() * tolerance::<T>(n, n), "{s} {unit}");
        }
        let mut q = vec![T::default(); n * n];
        T::qr(&mut given.clone(), n, n, &mut q).unwrap();
        Dense::of(n, n, &q).orthonormal(tolerance::<T>(n, n), "scaled qr");
        let mut v = vec![T::default(); n * n];
        T::eigh(&mut given.clone(), n, &mut s, Some(&mut v), &mut work).unwrap();
        Dense::of(n, n, &v).orthonormal(tolerance::<T>(n, n), "scaled eigh");
    }
}
