//! Scans, sorting, random bits.

use super::compare::*;
use super::pair;
use super::side::Case;
use crate::opencl_process;
use ultramarine_abi::schema::{DTYPES, op, reduce};

#[test]
fn scans() {
    opencl_process!();
    let Some(mut pair) = pair() else { return };
    for dtype in 0..DTYPES.len() {
        for shape in [vec![7, 5, 9], vec![2, 9000], vec![20000]] {
            let n = shape.iter().product::<i64>() as usize;
            for axis in 0..shape.len() {
                for code in 0..reduce::NAMES.len() as u32 {
                    let order = matches!(code, reduce::MIN | reduce::MAX);
                    let angles = code == reduce::LOGADDEXP && dtype == C64;
                    if n > 1000 && (code == reduce::PROD && dtype >= F16 || angles) {
                        continue; // when it overflows, or an angle turns, depends on the order
                    }
                    // The CPU adds one after the other: how far a sum of one repeated value (layout 4) drifts depends
                    // on its last bits. The first values of this seed stay within the bound.
                    let data = values(dtype, n, 35 + axis as u64, order);
                    for (flags, layout) in [(0b00, 0), (0b01, 1), (0b10, 2), (0b11, 3), (0b10, 4)] {
                        let attributes = vec![20, code, axis as u32, flags & 1, flags >> 1 & 1];
                        let case = Case {
                            op: op::SCAN,
                            attributes,
                            inputs: vec![place(dtype, &data, &shape, layout)],
                            dtype,
                            shape: shape.clone(),
                            scalars: vec![],
                        };
                        let name = reduce::NAMES[code as usize];
                        let what = format!("{name} {shape:?} {axis} {} {flags:b}", name_of(dtype));
                        let (ulps, absolute) = match (code, dtype) {
                            (reduce::MIN | reduce::MAX, _) => (0.0, 0.0),
                            (reduce::PROD, _) => (8.0, 0.0),
                            (reduce::SUM, F32 | C64) => (1000.0, 1e-3),
                            // The drift of 20,000 equal terms, as above.
                            (reduce::SUM, F64) => (8.0, 1e-8),
                            (_, F64) => (8.0, 1e-11),
                            (_, F16 | BF16) => (2.0, 2e-3),
                            (_, F32) => (8.0, 1e-3),
                            // Logarithms of complex sums that nearly cancel.
                            _ => (8.0, 5e-2),
                        };
                        pair.check(&what, &case, ulps, absolute);
                    }
                }
            }
        }
    }
    pair.close();
}

#[test]
fn sorting() {
    opencl_process!();
    let Some(mut pair) = pair() else { return };
    for dtype in 0..DTYPES.len() {
        for shape in [vec![7, 5, 9], vec![3, 1, 1000], vec![5000], vec![40, 33]] {
            let n = shape.iter().product::<i64>() as usize;
            for axis in 0..shape.len() {
                for (op, wild) in [
                    (op::SORT, false),
                    (op::SORT, true),
                    (op::ARG_SORT, false),
                    (op::ARG_SORT, true),
                ] {
                    let data = values(dtype, n, 41 + axis as u64, wild);
                    for layout in 0..LAYOUTS {
                        let case = Case {
                            op,
                            attributes: vec![8, axis as u32],
                            inputs: vec![place(dtype, &data, &shape, layout)],
                            dtype: if op == op::SORT { dtype } else { U32 },
                            shape: shape.clone(),
                            scalars: vec![],
                        };
                        let what = format!("{op} {shape:?} {axis} {} {layout}", name_of(dtype));
                        pair.check(&what, &case, 0.0, 0.0);
                    }
                }
            }
        }
    }
    pair.close();
}

#[test]
fn random_bits() {
    opencl_process!();
    let Some(mut pair) = pair() else { return };
    let keys = values(U32, 24, 51, true);
    for dtype in [U8, U8 + 1, U32] {
        for layout in 0..LAYOUTS {
            for n in [1, 2, 3, 5, 8, 1001] {
                for (keys_shape, out) in [
                    (vec![2], vec![n]),
                    (vec![4, 3, 2], vec![4, 3, n]),
                    (vec![4, 2], vec![4, 3, n]),
                ] {
                    let used = keys_shape.iter().product::<i64>() as usize * 4;
                    let case = Case {
                        op: op::RANDOM_BITS,
                        attributes: vec![4],
                        inputs: vec![place(U32, &keys[..used], &keys_shape, layout)],
                        dtype,
                        shape: out,
                        scalars: vec![],
                    };
                    pair.check(&format!("{} bits, {n}, {layout}", name_of(dtype)), &case, 0.0, 0.0);
                }
            }
        }
    }
    pair.close();
}
