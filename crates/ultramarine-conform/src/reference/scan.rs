//! SCAN.

use super::{lanes::by_lanes, reduce::reduced};
use crate::compare::Expected;
use crate::dtype::{DType, Kind, Num};
use crate::tensor::Array;
use ultramarine_abi::schema::reduce;

/// Returns the initial value of a scan.
fn neutral(code: u32, dtype: DType) -> Num {
    let infinity = |sign: f64| Num::Real(sign * f64::INFINITY);
    match (code, dtype.kind()) {
        (reduce::SUM, _) => dtype.value(Num::Int(0)),
        (reduce::PROD, _) => dtype.value(Num::Int(1)),
        (reduce::MIN, Kind::Complex) => Num::Complex(f64::INFINITY, f64::INFINITY),
        (_, Kind::Complex) => Num::Complex(f64::NEG_INFINITY, f64::NEG_INFINITY),
        (reduce::MIN, Kind::Float) => infinity(1.0),
        (reduce::MIN, _) => Num::Int(dtype.range().1),
        (_, Kind::Float) => infinity(-1.0),
        _ => Num::Int(dtype.range().0),
    }
}

/// SCAN along an axis.
pub fn scan(
    code: u32,
    axis: usize,
    reverse: bool,
    inclusive: bool,
    input: &Array,
) -> Vec<Expected> {
    let dtype = input.dtype;
    by_lanes(input, axis, Expected::ANY, |lane| {
        let n = lane.len();
        (0..n)
            .map(|i| {
                let own = usize::from(inclusive);
                let part = if reverse { &lane[i + 1 - own..] } else { &lane[..i + own] };
                if part.is_empty() && dtype.is_complex() && code == reduce::LOGADDEXP {
                    return Expected::ANY;
                }
                if part.is_empty() {
                    return Expected::exact(neutral(code, dtype));
                }
                let mut expected = reduced(code, dtype, part);
                if dtype.is_half() && matches!(code, reduce::SUM | reduce::PROD) {
                    // A scan may round the running value to the dtype at each element.
                    expected.slack += part.len() as f64
                        * dtype.epsilon()
                        * part
                            .iter()
                            .map(|v| v.real().abs())
                            .sum::<f64>()
                            .max(expected.value.real().abs());
                }
                expected
            })
            .collect()
    })
}
