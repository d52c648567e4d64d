//! DEQUANTIZE.

use super::{Range, allowed, describe, each, formats, is_usual, operands, unit};
use crate::cases::{Case, OpUnderTest, Scope, case};
use crate::device::words;
use crate::dtype::{DType, Num};
use crate::reference::quantized::{Format, Packed, dequantize as reference};
use crate::tensor::{Array, Layout};
use crate::values::Rng;
use ultramarine_abi::schema::{DequantizeAttrs, op, quantization};

/// Rows, and columns in the smallest number of them.
const SHAPES: [[i64; 2]; 4] = [[1, 1], [5, 3], [19, 2], [2, 7]];

/// One that is large enough for a backend to share among threads.
const LARGE: [i64; 2] = [70, 1024];

/// Cases of DEQUANTIZE.
pub fn dequantize(scope: &Scope) -> Vec<OpUnderTest> {
    let rng = &mut Rng::new(51);
    each(scope, op::DEQUANTIZE, |mode, dtype| {
        let mut cases = Vec::new();
        for (i, format) in formats(mode).into_iter().enumerate() {
            // Two shapes of each of many formats, all of the few others.
            let shapes = if format.has_biases() { 2 } else { 4 };
            for j in 0..shapes {
                let [rows, units] = SHAPES[(i + 2 * j + j / 2) % 4];
                for layout in scope.matrix_layouts(i / 3 + 2 * i + j) {
                    let layouts = match (i + j) % 3 {
                        0 => [layout, layout],
                        1 => [layout, Layout::Contiguous],
                        _ => [Layout::Contiguous, layout],
                    };
                    let made =
                        operands(format, &[rows], units * unit(format), dtype, Range::Wide, rng);
                    cases.push(one(scope, format, "", dtype, made, layouts));
                }
            }
        }
        for format in formats(mode).into_iter().filter(|f| is_usual(*f)) {
            let made = operands(format, &LARGE[..1], LARGE[1], dtype, Range::Wide, rng);
            cases.push(one(scope, format, "", dtype, made, [Layout::Contiguous; 2]));
            if let Some(scales) = special(mode, scope) {
                let columns = unit(format) * scales.len() as i64;
                let mut made = operands(format, &[3], columns, dtype, Range::Wide, rng);
                made[1] = Array::cycle(DType::U8, &made[1].shape, &scales);
                cases.push(one(scope, format, ", special", dtype, made, [Layout::Contiguous; 2]));
            }
        }
        cases
    })
}

/// Scales at the ends of their range, and those that are not finite.
fn special(mode: u32, scope: &Scope) -> Option<Vec<Num>> {
    let codes: &[u8] = match mode {
        quantization::AFFINE => return None,
        quantization::NVFP4 => &[0x7f, 0x00, 0xff, 0x7e, 0x80, 0x01, 0x87, 0xfe, 0x08],
        // The smallest one is subnormal in float32.
        _ if scope.subnormals => &[255, 254, 0, 1, 127, 2, 253],
        _ => &[255, 254, 1, 127, 2, 253],
    };
    Some(codes.iter().map(|c| Num::Int((*c).into())).collect())
}

/// A case of operands in layouts: that of the words, and that of scales and biases.
fn one(
    scope: &Scope,
    format: Format,
    what: &str,
    dtype: DType,
    operands: Vec<Array>,
    layouts: [Layout; 2],
) -> Case {
    let rows = operands[0].shape[0];
    let columns = operands[1].shape[1] * i64::from(format.group);
    let attributes = DequantizeAttrs::new(
        format.mode,
        format.bits,
        format.group,
        format.has_biases().into(),
        format.global_scale.into(),
    );
    let place = |(i, array): (usize, Array)| match i {
        0 => (array, layouts[0]),
        1 => (array, layouts[1]),
        2 if format.has_biases() => (array, layouts[1]),
        _ => (array, Layout::Contiguous),
    };
    case(
        format!(
            "{}{what}: {rows} x {columns}, words {}, scales {}",
            describe(format),
            layouts[0].name(),
            layouts[1].name()
        ),
        (op::DEQUANTIZE, words(&attributes)),
        operands.into_iter().enumerate().map(place).collect(),
        (dtype, vec![rows, columns]),
        |arrays| reference(&Packed::split(format, arrays).0, dtype, allowed(scope, dtype)),
    )
}
