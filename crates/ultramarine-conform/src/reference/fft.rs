//! Fourier transforms, by their definition.

use super::lanes::lanes;
use crate::compare::Expected;
use crate::dtype::{DType, Num};
use crate::tensor::{Array, each_index};
use num_complex::Complex64;
use std::collections::HashMap;
use std::f64::consts::TAU;
use ultramarine_abi::schema::fft;

/// Computes the FFT of an array along an axis, for an output with the shape `to`.
pub fn fft(code: u32, axis: usize, scale: f64, to: &[i64], array: &Array) -> Vec<Expected> {
    let count = to[axis] as usize;
    // The output's lanes, keyed by their index with 0 along the axis.
    let mut results: HashMap<Vec<i64>, Vec<Expected>> = HashMap::new();
    lanes(array, axis, |index, values| {
        let values: Vec<Complex64> = values.iter().map(|v| v.complex()).collect();
        results.insert(index.to_vec(), lane(code, scale, count, &values));
    });
    let mut expected = Vec::new();
    each_index(to, |index| {
        let mut start = index.to_vec();
        start[axis] = 0;
        expected.push(results[&start][index[axis] as usize]);
    });
    expected
}

fn lane(code: u32, scale: f64, count: usize, values: &[Complex64]) -> Vec<Expected> {
    let mut all = values.to_vec();
    if code == fft::REAL_BACKWARD {
        // Complete the other half of the spectrum. An element that is its own mirror image is real.
        all = vec![Complex64::ZERO; count];
        for (k, value) in values.iter().enumerate() {
            let image = (count - k) % count;
            if image == k {
                all[k] = value.re.into();
            } else {
                (all[k], all[image]) = (*value, value.conj());
            }
        }
    }
    let n = all.len();
    let sign = if matches!(code, fft::FORWARD | fft::REAL) { -1.0 } else { 1.0 };
    let size: f64 = scale.abs() * all.iter().map(|v| v.norm()).sum::<f64>();
    let slack = 4.0 * (n as f64).log2() * DType::F32.epsilon() * size;
    let one = |k: usize| {
        let wave = |j: usize| Complex64::cis(sign * TAU * ((j * k) % n) as f64 / n as f64);
        let sum: Complex64 = all.iter().enumerate().map(|(j, v)| v * wave(j)).sum();
        let value = match code {
            fft::REAL_BACKWARD => Num::Real(scale * sum.re),
            _ => Num::Complex(scale * sum.re, scale * sum.im),
        };
        // The scale factor is rounded to float32 too.
        let slack = slack + DType::F32.epsilon() * scale.abs() * sum.norm();
        Expected { at: size, ..Expected::near(value, slack) }
    };
    (0..count).map(one).collect()
}
