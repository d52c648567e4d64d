//! Arrays from the random generator, and their comparison with numbers and with each other.

use ultramarine::{Array, Complex32, Dtype};
use ultramarine_test_support::{Rng, Tolerance, assert_close};

/// A float64 array with numbers in `low..high`.
pub fn uniform(rng: &mut Rng, shape: &[usize], low: f64, high: f64) -> Array {
    let numbers = rng.uniforms(shape.iter().product(), low, high);
    Array::from_slice(&numbers, shape).expect("the shape fits")
}

/// A float32 array with numbers in `low..high`.
pub fn uniform_f32(rng: &mut Rng, shape: &[usize], low: f64, high: f64) -> Array {
    uniform(rng, shape, low, high).astype(Dtype::Float32)
}

/// A complex64 array, real and imaginary parts in `low..high`.
pub fn uniform_complex(rng: &mut Rng, shape: &[usize], low: f64, high: f64) -> Array {
    let n = shape.iter().product();
    let mut part = || rng.uniform(low, high) as f32;
    let numbers: Vec<Complex32> = (0..n).map(|_| Complex32::new(part(), part())).collect();
    Array::from_slice(&numbers, shape).expect("the shape fits")
}

/// The elements of a real array.
pub fn f64s(a: &Array) -> Vec<f64> {
    a.astype(Dtype::Float64).to_vec().expect("it has a value")
}

/// The elements of any array as pairs of real and imaginary part.
pub fn complexes(a: &Array) -> Vec<(f64, f64)> {
    let elements: Vec<Complex32> = a.astype(Dtype::Complex64).to_vec().expect("it has a value");
    elements.iter().map(|z| (f64::from(z.re), f64::from(z.im))).collect()
}

/// Compares a real array with finite numbers in row-major order.
#[track_caller]
pub fn assert_near(what: &str, got: &Array, expected: &[f64], tolerance: Tolerance) {
    assert!(expected.iter().all(|e| e.is_finite()), "{what}: not finite: {expected:?}");
    assert_close(what, &f64s(got), expected, tolerance);
}

/// Compares an array with complex numbers, by the modulus of each difference.
#[track_caller]
pub fn assert_near_complex(what: &str, got: &Array, expected: &[(f64, f64)], tolerance: Tolerance) {
    let got = complexes(got);
    assert_eq!(got.len(), expected.len(), "{what}");
    for (i, (g, e)) in got.iter().zip(expected).enumerate() {
        let bound = tolerance.absolute + tolerance.relative * e.0.hypot(e.1);
        let distance = (g.0 - e.0).hypot(g.1 - e.1);
        let what = format!("{what}: distance of element {i}, {g:?}, from {e:?}");
        assert_close(&what, &[distance], &[0.0], Tolerance::absolute(bound));
    }
}
