//! Quantized numbers of few bits.

mod dequantize;
mod matmul;

use super::{Case, OpUnderTest, Scope};
use crate::dtype::{DType, Num};
use crate::reference::quantized::{Allowed, Format};
use crate::tensor::{Array, size};
use crate::values::Rng;
use ultramarine_abi::schema::{OpId, op, quantization};

/// The cases of an operation of the family, for each dtype.
pub fn of(op: OpId, scope: &Scope) -> Option<Vec<OpUnderTest>> {
    Some(match op {
        op::DEQUANTIZE => dequantize::dequantize(scope),
        op::QUANTIZED_MATMUL => matmul::quantized_matmul(scope),
        _ => return None,
    })
}

/// The formats of a mode.
fn formats(mode: u32) -> Vec<Format> {
    let one = |bits, group, global_scale| Format { mode, bits, group, global_scale };
    match mode {
        quantization::MXFP4 => vec![one(4, 32, false)],
        quantization::MXFP8 => vec![one(8, 32, false)],
        quantization::NVFP4 => [false, true].map(|global| one(4, 16, global)).to_vec(),
        _ => {
            let groups = |bits| [32, 64, 128].map(|group| one(bits, group, false));
            [1, 2, 3, 4, 5, 6, 8].into_iter().flat_map(groups).collect()
        }
    }
}

/// The formats that models use most, which have the most cases.
fn is_usual(format: Format) -> bool {
    format.mode != quantization::AFFINE || (format.bits, format.group) == (4, 64)
}

/// The number of columns of a matrix is a multiple of this, so that there are whole groups, and
/// whole words for any number of bits.
fn unit(format: Format) -> i64 {
    format.group.max(32).into()
}

/// `n`, or the next number of columns that a matrix may have.
fn fitting(n: i64, format: Format) -> i64 {
    (n as u64).next_multiple_of(unit(format) as u64) as i64
}

fn describe(format: Format) -> String {
    let Format { mode, bits, group, global_scale } = format;
    match mode {
        quantization::AFFINE => format!("{bits} bits in groups of {group}"),
        _ if global_scale => "with a global scale".into(),
        _ => "plain".into(),
    }
}

/// An operation's cases for each mode and dtype; `cases` makes them.
fn each(
    scope: &Scope,
    id: OpId,
    mut cases: impl FnMut(u32, DType) -> Vec<Case>,
) -> Vec<OpUnderTest> {
    let mut all = Vec::new();
    for (mode, name) in (0..).zip(quantization::NAMES) {
        let scales = if mode == quantization::AFFINE { DType::U32 } else { DType::U8 };
        let needed = [DType::U32, DType::I32, DType::F32, scales];
        if !needed.iter().all(|dtype| dtype.in_mask(scope.storage)) {
            continue;
        }
        for dtype in scope.dtypes(id, None) {
            let made = OpUnderTest::new(scope, id, None, dtype, cases(mode, dtype));
            all.push(OpUnderTest { code: (*name).to_owned(), ..made });
        }
    }
    all
}

/// The errors that the device's properties allow.
fn allowed(scope: &Scope, dtype: DType) -> Allowed {
    let smallest = if scope.subnormals { dtype.ulp(0.0) } else { dtype.min_normal() };
    Allowed { reduced: scope.reduced(dtype), smallest }
}

/// Sizes of the elements.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Range {
    /// Many magnitudes.
    Wide,
    /// Magnitudes whose products stay finite in float16.
    Narrow,
}

/// The words, the scales and what else the format has, for matrices of some shape (without columns). Every code occurs;
/// with [`Range::Narrow`] all elements are finite.
fn operands(
    format: Format,
    shape: &[i64],
    columns: i64,
    dtype: DType,
    range: Range,
    rng: &mut Rng,
) -> Vec<Array> {
    let with_last = |n: i64| [shape, &[n]].concat();
    let words_shape = with_last(columns * i64::from(format.bits) / 32);
    let scales_shape = with_last(columns / i64::from(format.group));
    let mut words = values(&words_shape, || Num::Int((rng.next() as u32).into()));
    if format.mode == quantization::MXFP8 && range == Range::Narrow {
        words.iter_mut().for_each(|word| *word = Num::Int(finite(word.int() as u32).into()));
    }
    let scales = values(&scales_shape, || scale(format, range, rng));
    let mut all = vec![
        Array::cycle(DType::U32, &words_shape, &words),
        Array::cycle(format.scales(dtype), &scales_shape, &scales),
    ];
    if format.has_biases() {
        let biases = values(&scales_shape, || Num::Real(rng.between(-2.0, 2.0)));
        all.push(Array::cycle(dtype, &scales_shape, &biases));
    }
    if format.global_scale {
        // One value for each matrix, which all of its rows share.
        let shape = if shape.len() > 1 { [shape[0]] } else { [1] };
        let global = values(&shape, || Num::Real(rng.between(500.0, 4000.0)));
        all.push(Array::cycle(DType::F32, &shape, &global));
    }
    all
}

fn values(shape: &[i64], mut one: impl FnMut() -> Num) -> Vec<Num> {
    (0..size(shape)).map(|_| one()).collect()
}

/// Four E4M3 numbers without NaN: 448 instead.
fn finite(word: u32) -> u32 {
    let bytes = word.to_le_bytes();
    u32::from_le_bytes(bytes.map(|b| if b & 0x7f == 0x7f { b & 0xfe } else { b }))
}

fn scale(format: Format, range: Range, rng: &mut Rng) -> Num {
    let byte = (rng.next() >> 8) as i128;
    match (format.mode, range) {
        (quantization::AFFINE, _) => {
            let largest = 8.0 / f64::from(1u32 << format.bits);
            let sign = if byte & 1 == 1 { -1.0 } else { 1.0 };
            Num::Real(sign * rng.between(0.1, 1.0) * largest)
        }
        (quantization::NVFP4, Range::Wide) => Num::Int(finite((byte & 0xff) as u32).into()),
        (quantization::NVFP4, Range::Narrow) => {
            // Below 4, of both signs.
            let sign = byte >> 16 & 0x80;
            Num::Int(byte % 0x48 + sign)
        }
        (_, Range::Wide) => Num::Int(110 + byte % 31),
        (_, Range::Narrow) => Num::Int(118 + byte % 10),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::Placed;

    fn scope() -> Scope {
        Scope {
            full: false,
            storage: u32::MAX,
            arithmetic: u32::MAX,
            subnormals: true,
            product_epsilon: 0.0,
        }
    }

    /// Emulators that interpret kernels run these cases, too.
    #[test]
    fn quantized_products_stay_few() {
        let size = |t: &Placed| t.shape.iter().product::<i64>();
        let ops = matmul::quantized_matmul(&scope());
        let cases = ops.iter().flat_map(|op| &op.cases);
        let work: i64 = cases.map(|c| size(&c.request.output) * c.request.inputs[0].shape[2]).sum();
        assert!(work < 60_000_000, "{work} multiply-adds");
    }

    #[test]
    fn quantized_cases_are_finite_where_they_should_be() {
        let all = [dequantize::dequantize(&scope()), matmul::quantized_matmul(&scope())];
        for op in all.iter().flatten() {
            for case in &op.cases {
                let special = case.what.contains("special") || case.what.contains("NaN");
                let finite = |e: &crate::compare::Expected| {
                    e.value.real().is_finite() && e.value.real().abs() < op.dtype.max_float()
                };
                let wide = op.family == op::DEQUANTIZE && op.code == "mxfp8";
                assert!(
                    special || wide || case.expected.iter().all(finite),
                    "{} {}: {}",
                    op.code,
                    op.dtype.name(),
                    case.what
                );
            }
        }
    }
}
