//! Vectors of tridiagonal and bidiagonal matrices by divide and conquer, checked in float64.

use ultramarine_linalg::{
    Real, Threads, bidiagonal_values, bidiagonal_vectors, tridiagonal_values, tridiagonal_vectors,
};
use ultramarine_test_support::Rng;

/// Loops over indices in any order, on some threads.
struct Pool {
    threads: usize,
}

impl<R: Real> Threads<R> for Pool {
    fn each(&self, count: usize, body: &(dyn Fn(usize) + Sync)) {
        if self.threads == 1 {
            return (0..count).rev().for_each(body);
        }
        let next = std::sync::atomic::AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..self.threads.min(count) {
                scope.spawn(|| {
                    loop {
                        let i = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                        if i >= count {
                            break;
                        }
                        body(i);
                    }
                });
            }
        });
    }

    fn product(
        &self,
        [m, n, k]: [usize; 3],
        c: (&mut [R], usize),
        a: (&[R], usize),
        b: (&[R], usize),
    ) {
        for j in 0..n {
            let column = &mut c.0[j * c.1..][..m];
            column.fill(R::default());
            for q in 0..k {
                let by = b.0[j * b.1 + q];
                column.iter_mut().zip(&a.0[q * a.1..]).for_each(|(c, a)| *c += *a * by);
            }
        }
    }
}

/// Diagonals and the elements beside them.
fn kinds(n: usize) -> Vec<(&'static str, Vec<f64>, Vec<f64>)> {
    let mut rng = Rng::new(n as u64);
    let mut random = |_: usize| rng.uniform(-1.0, 1.0);
    let (d, e): (Vec<f64>, Vec<f64>) =
        ((0..n).map(&mut random).collect(), (0..n).map(&mut random).collect());
    let each = |f: &dyn Fn(usize) -> f64| (0..n).map(f).collect::<Vec<f64>>();
    vec![
        ("random", d.clone(), e.clone()),
        ("zero", vec![0.0; n], vec![0.0; n]),
        ("identity", vec![1.0; n], vec![0.0; n]),
        ("Laplace", vec![2.0; n], vec![-1.0; n]),
        ("no diagonal", vec![0.0; n], e.clone()),
        ("Wilkinson", each(&|i| (i as f64 - (n / 2) as f64).abs()), vec![1.0; n]),
        (
            "glued",
            each(&|i| ((i % 21) as f64 - 10.0).abs()),
            each(&|i| if i % 21 == 20 { 1e-9 } else { 1.0 }),
        ),
        (
            "graded",
            each(&|i| d[i] * 10f64.powf(-30.0 * i as f64 / n as f64)),
            each(&|i| e[i] * 10f64.powf(-30.0 * i as f64 / n as f64)),
        ),
        (
            "graded far",
            each(&|i| d[i] * 10f64.powf(-280.0 * i as f64 / n as f64)),
            each(&|i| e[i] * 10f64.powf(-280.0 * i as f64 / n as f64)),
        ),
        (
            "graded up",
            each(&|i| d[i] * 10f64.powf(20.0 * i as f64 / n as f64)),
            each(&|i| e[i] * 10f64.powf(20.0 * i as f64 / n as f64)),
        ),
        (
            "clustered",
            each(&|i| if i % 3 == 0 { 1.0 } else { 1.0 + 1e-10 * d[i] }),
            each(&|i| 1e-8 * e[i]),
        ),
        ("repeated", each(&|i| (i % 4) as f64), each(&|i| if i % 5 == 0 { 0.0 } else { e[i] })),
        ("zeros on it", each(&|i| if i % 7 == 0 { 0.0 } else { d[i] }), e.clone()),
        ("large", each(&|i| d[i] * 1e150), each(&|i| e[i] * 1e150)),
        ("small", each(&|i| d[i] * 1e-150), each(&|i| e[i] * 1e-150)),
        ("weak joints", d.clone(), each(&|i| e[i] * if i % 16 == 15 { 1e-17 } else { 1.0 })),
    ]
}

fn unit<R>() -> f64 {
    if size_of::<R>() == 4 { f32::EPSILON as f64 } else { f64::EPSILON }
}

const SIZES: [usize; 12] = [0, 1, 2, 3, 31, 33, 65, 66, 100, 129, 200, 431];

/// The largest difference of `V^T V` from the identity.
fn skew<R: Real>(n: usize, v: &[R]) -> f64 {
    let v: Vec<f64> = v.iter().map(|v| v.to_f64()).collect();
    let mut most = 0.0f64;
    for i in 0..n {
        for j in 0..=i {
            let dot: f64 = v[i * n..][..n].iter().zip(&v[j * n..][..n]).map(|(a, b)| a * b).sum();
            let error = (dot - if i == j { 1.0 } else { 0.0 }).abs();
            // NaN counts.
            most = if error <= most { most } else { error };
        }
    }
    most
}

fn norm(d: &[f64], e: &[f64]) -> f64 {
    d.iter().chain(e).fold(f64::MIN_POSITIVE, |most: f64, v| most.max(v.abs()))
}

fn eigenvectors<R: Real + PartialEq>() {
    for n in SIZES {
        for (kind, d, e) in kinds(n) {
            let what = format!("{kind} {n}");
            let one = tridiagonal_vectors::<R>(&d, &e, &Pool { threads: 1 }).unwrap();
            let two = tridiagonal_vectors::<R>(&d, &e, &Pool { threads: 3 }).unwrap();
            assert!(
                one.vectors == two.vectors && one.values == two.values,
                "{what}: threads matter"
            );
            assert!(one.values.is_sorted(), "{what}");
            let bound = 8.0 * unit::<R>() * (n.max(8) as f64).sqrt();
            let error = skew(n, &one.vectors);
            assert!(error <= bound, "{what}: orthogonal within {error:e}, not {bound:e}");
            let size = norm(&d, &e);
            let alone = tridiagonal_values(&d, &e, &Pool { threads: 3 }).unwrap();
            assert!(alone == tridiagonal_values(&d, &e, &Pool { threads: 1 }).unwrap(), "{what}");
            close(&what, &alone, &one.values, 2.0 * bound * size);
            for (value, j) in one.values.iter().zip(&one.order) {
                let v: Vec<f64> = one.vectors[j * n..][..n].iter().map(|v| v.to_f64()).collect();
                for i in 0..n {
                    let above = if i > 0 { e[i - 1] * v[i - 1] } else { 0.0 };
                    let below = if i + 1 < n { e[i] * v[i + 1] } else { 0.0 };
                    let error = ((above + d[i] * v[i] + below) - value * v[i]).abs() / size;
                    assert!(error <= bound, "{what}: residual {error:e}, not {bound:e}");
                }
            }
        }
    }
}

#[track_caller]
fn close(what: &str, a: &[f64], b: &[f64], error: f64) {
    assert_eq!(a.len(), b.len(), "{what}");
    for (a, b) in a.iter().zip(b) {
        assert!((a - b).abs() <= error, "{what}: {a} and {b} differ by more than {error:e}");
    }
}

fn singular_vectors<R: Real + PartialEq>() {
    for n in SIZES {
        for (kind, d, e) in kinds(n) {
            let what = format!("{kind} {n}");
            let one = bidiagonal_vectors::<R>(&d, &e, &Pool { threads: 1 }).unwrap();
            let two = bidiagonal_vectors::<R>(&d, &e, &Pool { threads: 3 }).unwrap();
            assert!(
                one.left == two.left && one.right == two.right && one.values == two.values,
                "{what}: threads matter"
            );
            assert!(
                one.values.iter().rev().is_sorted() && one.values.iter().all(|v| *v >= 0.0),
                "{what}"
            );
            let bound = 8.0 * unit::<R>() * (n.max(8) as f64).sqrt();
            for vectors in [&one.left, &one.right] {
                let error = skew(n, vectors);
                assert!(error <= bound, "{what}: orthogonal within {error:e}, not {bound:e}");
            }
            let size = norm(&d, &e);
            let alone = bidiagonal_values(&d, &e, false, &Pool { threads: 3 }).unwrap();
            assert!(
                alone == bidiagonal_values(&d, &e, false, &Pool { threads: 1 }).unwrap(),
                "{what}"
            );
            close(&what, &alone, &one.values, 2.0 * bound * size);
            for (value, j) in one.values.iter().zip(&one.order) {
                let column =
                    |of: &[R]| of[j * n..][..n].iter().map(|v| v.to_f64()).collect::<Vec<f64>>();
                let (u, v) = (column(&one.left), column(&one.right));
                for i in 0..n {
                    let beside = if i + 1 < n { e[i] * v[i + 1] } else { 0.0 };
                    let above = if i > 0 { e[i - 1] * u[i - 1] } else { 0.0 };
                    let errors =
                        [d[i] * v[i] + beside - value * u[i], d[i] * u[i] + above - value * v[i]];
                    let error = errors[0].abs().max(errors[1].abs()) / size;
                    assert!(error <= bound, "{what}: residual {error:e}, not {bound:e}");
                }
            }
        }
    }
}

#[test]
fn eigenvectors_of_float32() {
    eigenvectors::<f32>();
}
#[test]
fn eigenvectors_of_float64() {
    eigenvectors::<f64>();
}
#[test]
fn singular_vectors_of_float32() {
    singular_vectors::<f32>();
}
#[test]
fn singular_vectors_of_float64() {
    singular_vectors::<f64>();
}
