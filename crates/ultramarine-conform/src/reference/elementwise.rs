//! UNARY and BINARY.

use crate::dtype::{DType, Kind, Num};
use num_complex::Complex64;
use ultramarine_abi::schema::{binary, unary};

/// Returns the dtype of a unary function's result.
pub fn unary_dtype(code: u32, dtype: DType) -> DType {
    match code {
        unary::LOGICAL_NOT | unary::ISNAN | unary::ISINF | unary::ISFINITE => DType::BOOL,
        unary::ABS | unary::REAL | unary::IMAG if dtype.is_complex() => DType::F32,
        _ => dtype,
    }
}

/// Returns the dtype of a binary function's result.
pub fn binary_dtype(code: u32, dtype: DType) -> DType {
    match code {
        binary::EQUAL..=binary::LOGICAL_OR | binary::EQUAL_NAN => DType::BOOL,
        _ => dtype,
    }
}

/// Returns true if the contract defines the sign of a zero result.
pub fn zero_sign_counts(code: u32) -> bool {
    matches!(
        code,
        unary::ABS
            | unary::NEGATIVE
            | unary::SQRT
            | unary::FLOOR
            | unary::CEIL
            | unary::ROUND
            | unary::TRUNC
            | unary::SIN
            | unary::TAN
            | unary::ARCTAN
            | unary::TANH
    )
}

pub(super) fn flag(truth: bool) -> Num {
    Num::Int(truth.into())
}

/// Computes a unary function; `None` if the contract does not define the result.
pub fn unary(code: u32, dtype: DType, x: Num) -> Option<Num> {
    match code {
        unary::LOGICAL_NOT => return Some(flag(!x.truth())),
        unary::ISNAN => return Some(flag(x.is_nan())),
        unary::ISINF => {
            let z = x.complex();
            return Some(flag(z.re.is_infinite() || z.im.is_infinite()));
        }
        unary::ISFINITE => {
            let z = x.complex();
            return Some(flag(z.re.is_finite() && z.im.is_finite()));
        }
        _ => {}
    }
    match dtype.kind() {
        Kind::Float => unary_real(code, x.real()).map(Num::Real),
        Kind::Complex => unary_complex(code, x.complex()),
        kind => unary_int(code, kind, dtype, x.int()).map(Num::Int),
    }
}

fn unary_int(code: u32, kind: Kind, dtype: DType, x: i128) -> Option<i128> {
    Some(match code {
        unary::BITWISE_INVERT if kind == Kind::Bool => 1 - x,
        unary::BITWISE_INVERT => dtype.wrap(!x),
        unary::ABS => dtype.wrap(x.abs()),
        unary::NEGATIVE => dtype.wrap(-x),
        unary::SIGN => x.signum(),
        unary::SQUARE => dtype.wrap(dtype.wrap(x).wrapping_mul(x)),
        unary::FLOOR | unary::CEIL | unary::ROUND | unary::TRUNC => x,
        unary::CONJUGATE | unary::REAL => x,
        unary::IMAG => 0,
        _ => return None,
    })
}

fn unary_real(code: u32, x: f64) -> Option<f64> {
    Some(match code {
        unary::ABS => x.abs(),
        unary::NEGATIVE => -x,
        unary::SIGN if x > 0.0 => 1.0,
        unary::SIGN if x < 0.0 => -1.0,
        unary::SIGN => 0.0,
        unary::SQUARE => x * x,
        unary::SQRT => x.sqrt(),
        unary::RSQRT => 1.0 / x.sqrt(),
        unary::RECIPROCAL => 1.0 / x,
        unary::EXP => x.exp(),
        unary::EXPM1 => x.exp_m1(),
        unary::LOG => x.ln(),
        unary::LOG2 => x.log2(),
        unary::LOG10 => x.log10(),
        unary::LOG1P => x.ln_1p(),
        unary::SIN => x.sin(),
        unary::COS => x.cos(),
        unary::TAN => x.tan(),
        unary::ARCSIN => x.asin(),
        unary::ARCCOS => x.acos(),
        unary::ARCTAN => x.atan(),
        unary::SINH => x.sinh(),
        unary::COSH => x.cosh(),
        unary::TANH => x.tanh(),
        unary::ARCSINH => libm::asinh(x),
        unary::ARCCOSH if x < 1.0 => f64::NAN,
        unary::ARCCOSH => libm::acosh(x),
        unary::ARCTANH => libm::atanh(x),
        unary::ERF => libm::erf(x),
        unary::ERFINV => erfinv(x),
        unary::SIGMOID => 1.0 / (1.0 + (-x).exp()),
        unary::FLOOR => x.floor(),
        unary::CEIL => x.ceil(),
        unary::ROUND => x.round_ties_even(),
        unary::TRUNC => x.trunc(),
        unary::CONJUGATE | unary::REAL => x,
        unary::IMAG => 0.0,
        _ => return None,
    })
}

/// Inverse error function: by bisection, and then by Newton steps on the complement if the result
/// is large.
fn erfinv(y: f64) -> f64 {
    if y.is_nan() || y.abs() > 1.0 {
        return f64::NAN;
    }
    if y.abs() == 1.0 {
        return f64::INFINITY.copysign(y);
    }
    if y.abs() < 1e-9 {
        return y * std::f64::consts::PI.sqrt() / 2.0;
    }
    let target = y.abs();
    let (mut low, mut high) = (0.0f64, 6.0f64);
    for _ in 0..80 {
        let middle = (low + high) / 2.0;
        let below = if target > 0.5 {
            libm::erfc(middle) > 1.0 - target
        } else {
            libm::erf(middle) < target
        };
        if below { low = middle } else { high = middle }
    }
    ((low + high) / 2.0).copysign(y)
}

fn unary_complex(code: u32, z: Complex64) -> Option<Num> {
    let one = Complex64::new(1.0, 0.0);
    let value = match code {
        unary::ABS => return Some(Num::Real(z.norm())),
        unary::REAL => return Some(Num::Real(z.re)),
        unary::IMAG => return Some(Num::Real(z.im)),
        unary::NEGATIVE => -z,
        unary::CONJUGATE => z.conj(),
        unary::SIGN if z.norm() == 0.0 => z,
        unary::SIGN => z / z.norm(),
        unary::SQUARE => z * z,
        unary::ROUND => Complex64::new(z.re.round_ties_even(), z.im.round_ties_even()),
        unary::SQRT => z.sqrt(),
        unary::RSQRT => one / z.sqrt(),
        unary::RECIPROCAL => one / z,
        unary::EXP => z.exp(),
        unary::LOG => z.ln(),
        unary::LOG2 => z.ln() / std::f64::consts::LN_2,
        unary::LOG10 => z.ln() / std::f64::consts::LN_10,
        unary::LOG1P => (one + z).ln(),
        unary::SIN => z.sin(),
        unary::COS => z.cos(),
        unary::TAN => z.tan(),
        unary::ARCSIN => z.asin(),
        unary::ARCCOS => z.acos(),
        unary::ARCTAN => z.atan(),
        unary::SINH => z.sinh(),
        unary::COSH => z.cosh(),
        unary::TANH => z.tanh(),
        unary::ARCSINH => z.asinh(),
        unary::ARCCOSH => z.acosh(),
        unary::ARCTANH => z.atanh(),
        _ => return None,
    };
    Some(Num::Complex(value.re, value.im))
}

/// Computes a binary function; `None` if the contract does not define the result.
pub fn binary(code: u32, dtype: DType, x: Num, y: Num) -> Option<Num> {
    if let Some(truth) = compare(code, x, y) {
        return Some(flag(truth));
    }
    match dtype.kind() {
        Kind::Float => binary_real(code, dtype, x.real(), y.real()).map(Num::Real),
        Kind::Complex => {
            binary_complex(code, x.complex(), y.complex()).map(|z| Num::Complex(z.re, z.im))
        }
        kind => binary_int(code, kind, dtype, x.int(), y.int()).map(Num::Int),
    }
}

fn compare(code: u32, x: Num, y: Num) -> Option<bool> {
    let (a, b) = (x.complex(), y.complex());
    // Compare integers as integers, because float64 cannot represent all of them.
    let order = match (x, y) {
        (Num::Int(x), Num::Int(y)) => Some(x.cmp(&y)),
        _ if a.re == b.re => a.im.partial_cmp(&b.im),
        _ => a.re.partial_cmp(&b.re),
    };
    Some(match code {
        binary::EQUAL => order.is_some_and(|o| o.is_eq()),
        binary::NOT_EQUAL => !order.is_some_and(|o| o.is_eq()),
        binary::LESS => order.is_some_and(|o| o.is_lt()),
        binary::LESS_EQUAL => order.is_some_and(|o| o.is_le()),
        binary::GREATER => order.is_some_and(|o| o.is_gt()),
        binary::GREATER_EQUAL => order.is_some_and(|o| o.is_ge()),
        binary::EQUAL_NAN => order.is_some_and(|o| o.is_eq()) || x.is_nan() && y.is_nan(),
        binary::LOGICAL_AND => x.truth() && y.truth(),
        binary::LOGICAL_OR => x.truth() || y.truth(),
        _ => return None,
    })
}

fn binary_int(code: u32, kind: Kind, dtype: DType, x: i128, y: i128) -> Option<i128> {
    if kind == Kind::Bool {
        return Some(match code {
            binary::ADD | binary::MAXIMUM | binary::BITWISE_OR => x | y,
            binary::MULTIPLY | binary::MINIMUM | binary::BITWISE_AND => x & y,
            binary::BITWISE_XOR => x ^ y,
            _ => return None,
        });
    }
    let bits = i128::from(dtype.bits());
    Some(match code {
        binary::ADD => dtype.wrap(x + y),
        binary::SUBTRACT => dtype.wrap(x - y),
        binary::MULTIPLY => dtype.wrap(x.wrapping_mul(y)),
        binary::FLOOR_DIVIDE if y == 0 => 0,
        binary::FLOOR_DIVIDE => {
            dtype.wrap(x.div_euclid(y) - i128::from(y < 0 && x.rem_euclid(y) != 0))
        }
        binary::REMAINDER if y == 0 => x,
        binary::REMAINDER => ((x % y) + y) % y,
        binary::POWER if y < 0 => 0,
        binary::POWER => {
            let (mut base, mut e, mut product) = (dtype.wrap(x), y, 1i128);
            while e > 0 {
                if e & 1 == 1 {
                    product = dtype.wrap(product.wrapping_mul(base));
                }
                base = dtype.wrap(base.wrapping_mul(base));
                e >>= 1;
            }
            dtype.wrap(product)
        }
        binary::MAXIMUM => x.max(y),
        binary::MINIMUM => x.min(y),
        binary::BITWISE_AND => x & y,
        binary::BITWISE_OR => x | y,
        binary::BITWISE_XOR => dtype.wrap(x ^ y),
        // A negative shift count counts as a large one.
        binary::LEFT_SHIFT if !(0..bits).contains(&y) => 0,
        binary::LEFT_SHIFT => dtype.wrap(x << y),
        binary::RIGHT_SHIFT if !(0..bits).contains(&y) => -i128::from(x < 0),
        binary::RIGHT_SHIFT => x >> y,
        _ => return None,
    })
}

fn binary_real(code: u32, dtype: DType, x: f64, y: f64) -> Option<f64> {
    Some(match code {
        binary::ADD => x + y,
        binary::SUBTRACT => x - y,
        binary::MULTIPLY => x * y,
        binary::DIVIDE => x / y,
        binary::FLOOR_DIVIDE => dtype.round(x / y).floor(),
        binary::REMAINDER => match x % y {
            r if r == 0.0 => r.copysign(y),
            r if (r < 0.0) != (y < 0.0) => r + y,
            r => r,
        },
        binary::POWER => x.powf(y),
        binary::MAXIMUM | binary::MINIMUM if x.is_nan() || y.is_nan() => f64::NAN,
        binary::MAXIMUM => x.max(y),
        binary::MINIMUM => x.min(y),
        binary::LOGADDEXP => logaddexp(x, y),
        binary::ARCTAN2 => x.atan2(y),
        _ => return None,
    })
}

/// ln(e^x + e^y)
pub fn logaddexp(x: f64, y: f64) -> f64 {
    if x.is_nan() || y.is_nan() {
        return f64::NAN;
    }
    let (high, low) = if x > y { (x, y) } else { (y, x) };
    if high.is_infinite() { high } else { high + (low - high).exp().ln_1p() }
}

fn binary_complex(code: u32, x: Complex64, y: Complex64) -> Option<Complex64> {
    let less = |a: Complex64, b: Complex64| a.re < b.re || a.re == b.re && a.im < b.im;
    Some(match code {
        binary::ADD => x + y,
        binary::SUBTRACT => x - y,
        binary::MULTIPLY => x * y,
        binary::DIVIDE | binary::FLOOR_DIVIDE => x / y,
        binary::POWER => x.powc(y),
        binary::MAXIMUM => {
            if less(x, y) {
                y
            } else {
                x
            }
        }
        binary::MINIMUM => {
            if less(y, x) {
                y
            } else {
                x
            }
        }
        // Far from zero the angle may be on another branch.
        binary::LOGADDEXP if x.im.abs().max(y.im.abs()) > 1.5 => return None,
        binary::LOGADDEXP => (x.exp() + y.exp()).ln(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn division_of_integers_rounds_down() {
        let d = |x: i128, y: i128| {
            let q = binary_int(binary::FLOOR_DIVIDE, Kind::Signed, DType::I8, x, y);
            (q, binary_int(binary::REMAINDER, Kind::Signed, DType::I8, x, y))
        };
        assert_eq!(d(7, 2), (Some(3), Some(1)));
        assert_eq!(d(-7, 2), (Some(-4), Some(1)));
        assert_eq!(d(7, -2), (Some(-4), Some(-1)));
        assert_eq!(d(-7, -2), (Some(3), Some(-1)));
        assert_eq!(d(6, -2), (Some(-3), Some(0)));
        assert_eq!(d(5, 0), (Some(0), Some(5)));
        assert_eq!(d(-128, -1), (Some(-128), Some(0)));
    }

    #[test]
    fn inverse_error_function() {
        for y in [-0.999, -0.5, -1e-5, 0.0, 0.1, 0.7, 0.999_999] {
            assert!((libm::erf(erfinv(y)) - y).abs() <= 4.0 * f64::EPSILON, "{y}");
        }
        assert_eq!(erfinv(1.0), f64::INFINITY);
        assert!(erfinv(1.5).is_nan());
    }
}
