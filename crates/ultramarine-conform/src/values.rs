//! Operands: edges of each dtype, and ordinary numbers between them.

use crate::dtype::{DType, Kind, Num};
use ultramarine_abi::schema::unary;

/// A deterministic pseudorandom generator.
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Self {
        Rng(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x1234_5678_9ABC_DEF1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Returns a number in [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 * 2f64.powi(-53)
    }

    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }
}

/// Returns values at which implementations are often wrong.
pub fn edges(dtype: DType, subnormals: bool) -> Vec<Num> {
    match dtype.kind() {
        Kind::Bool => vec![Num::Int(0), Num::Int(1)],
        Kind::Unsigned | Kind::Signed => {
            let (low, high) = dtype.range();
            let mut all = vec![0, 1, 2, 3, 7, high, high - 1, high / 2, low, -1, -2, -7, low + 1];
            all.retain(|i| (low..=high).contains(i));
            all.dedup();
            all.into_iter().map(Num::Int).collect()
        }
        Kind::Float => {
            let mut all = vec![
                0.0,
                -0.0,
                1.0,
                -1.0,
                0.5,
                -0.5,
                1.5,
                2.0,
                2.5,
                -2.5,
                3.0,
                0.1,
                -0.7,
                10.0,
                -10.0,
                100.0,
                1e-3,
                f64::INFINITY,
                f64::NEG_INFINITY,
                f64::NAN,
                dtype.max_float(),
                -dtype.max_float(),
                dtype.min_normal(),
                1.0 + dtype.epsilon(),
            ];
            if subnormals {
                all.push(dtype.ulp(0.0) * 3.0);
            }
            all.into_iter().map(|x| Num::Real(dtype.round(x))).collect()
        }
        Kind::Complex => {
            let parts = [
                (0.0, 0.0),
                (1.0, 0.0),
                (0.0, 1.0),
                (-1.0, 0.5),
                (0.5, -2.0),
                (-0.25, -0.75),
                (3.0, 4.0),
                (1e-3, 2.0),
                (-2.5, 1.5),
            ];
            parts.iter().map(|(re, im)| Num::Complex(*re, *im)).collect()
        }
    }
}

/// Returns `n` ordinary numbers. For integers they are small, so that sums and products of many
/// magnitudes occur.
pub fn ordinary(dtype: DType, n: usize, rng: &mut Rng) -> Vec<Num> {
    (0..n)
        .map(|i| {
            let x = rng.between(-4.0, 4.0);
            match dtype.kind() {
                Kind::Bool => Num::Int((x > 0.0).into()),
                Kind::Unsigned | Kind::Signed if i % 3 == 0 => {
                    Num::Int(dtype.wrap(rng.next().into()))
                }
                Kind::Unsigned | Kind::Signed => Num::Int(dtype.wrap((8.0 * x) as i128)),
                Kind::Float => Num::Real(dtype.round(x)),
                Kind::Complex => {
                    let y = rng.between(-4.0, 4.0);
                    dtype.value(Num::Complex(x, y))
                }
            }
        })
        .collect()
}

/// Operands for a unary function: edges, and numbers of its domain.
pub fn unary_operands(code: u32, dtype: DType, subnormals: bool, rng: &mut Rng) -> Vec<Num> {
    let mut all = edges(dtype, subnormals);
    all.extend(ordinary(dtype, 40, rng));
    if dtype.is_float() {
        let (low, high) = match code {
            unary::ARCSIN | unary::ARCCOS | unary::ARCTANH | unary::ERFINV => (-1.0, 1.0),
            unary::SQRT | unary::RSQRT | unary::LOG | unary::LOG2 | unary::LOG10 => (0.0, 1e3),
            unary::ARCCOSH => (1.0, 50.0),
            unary::LOG1P => (-0.99, 10.0),
            unary::SIN | unary::COS | unary::TAN => (-30.0, 30.0),
            unary::FLOOR | unary::CEIL | unary::ROUND | unary::TRUNC => (-99.0, 99.0),
            _ => (-9.0, 9.0),
        };
        all.extend((0..80).map(|_| Num::Real(dtype.round(rng.between(low, high)))));
        if code == unary::ERFINV || code == unary::ARCTANH {
            // Avoid numbers near the poles, where the functions are extremely ill-conditioned.
            all.retain(|x| x.real().abs() <= 0.999 || x.real().abs() >= 1.0);
        }
    }
    if dtype.is_complex() {
        // Avoid branch points and poles, which the contract leaves open.
        all.retain(|z| {
            let z = z.complex();
            z.im.abs() > 0.05 && z.re.abs() > 0.05
        });
    }
    all
}

/// Returns numbers for reductions. For sums, they have both signs and do not overflow. For
/// products, they are near one.
pub fn terms(dtype: DType, n: usize, product: bool, rng: &mut Rng) -> Vec<Num> {
    if !(product && (dtype.is_float() || dtype.is_complex())) {
        return ordinary(dtype, n, rng);
    }
    (0..n)
        .map(|_| {
            let x = rng.between(0.8, 1.25);
            let z = if dtype.is_complex() {
                Num::Complex(x, rng.between(-0.2, 0.2))
            } else {
                Num::Real(x)
            };
            dtype.value(z)
        })
        .collect()
}
