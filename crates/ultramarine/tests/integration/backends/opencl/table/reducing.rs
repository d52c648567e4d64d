//! Reductions and products of matrices.

use super::compare::*;
use super::pair;
use super::side::Case;
use crate::opencl_process;
use ultramarine_abi::schema::{DTYPES, arg_reduce, op, reduce};

fn kept_of(shape: &[i64], mask: u32) -> Vec<i64> {
    shape.iter().enumerate().map(|(a, n)| if mask >> a & 1 == 1 { 1 } else { *n }).collect()
}

#[test]
fn reductions() {
    opencl_process!();
    let Some(mut pair) = pair() else { return };
    for dtype in 0..DTYPES.len() {
        for (shape, masks) in [
            (vec![7, 5, 9], vec![1u32, 2, 4, 3, 5, 6, 7, 0]),
            (vec![3, 20000], vec![2, 1, 3]),
            (vec![2, 3, 1, 2, 3, 2], vec![0b101010, 0b010101, 0b111]),
        ] {
            let n = shape.iter().product::<i64>() as usize;
            for (i, mask) in masks.into_iter().enumerate() {
                for code in 0..reduce::NAMES.len() as u32 {
                    let terms = shape.iter().product::<i64>()
                        / kept_of(&shape, mask).iter().product::<i64>();
                    if code == reduce::PROD && terms > 50 && dtype >= F16 {
                        continue; // when it overflows depends on the order
                    }
                    let order =
                        matches!(code, reduce::MIN | reduce::MAX | reduce::ALL | reduce::ANY);
                    let data = values(dtype, n, 11 + i as u64, order && i % 2 == 0);
                    let logic = matches!(code, reduce::ALL | reduce::ANY);
                    let kept = kept_of(&shape, mask);
                    for layout in [0, 1 + (i + code as usize) % 4] {
                        let case = Case {
                            op: op::REDUCE,
                            attributes: vec![16, code, mask, 0],
                            inputs: vec![place(dtype, &data, &shape, layout)],
                            dtype: if logic { BOOL } else { dtype },
                            shape: kept.clone(),
                            scalars: vec![],
                        };
                        let name = reduce::NAMES[code as usize];
                        let what = format!("{name} {shape:?} {mask:b} {} {layout}", name_of(dtype));
                        let loose = matches!(code, reduce::SUM) as u8 as f64;
                        let (eps, n) = (f64::from(f32::EPSILON), 60000f64);
                        let tight = matches!(dtype, F64) as u8 as f64;
                        let absolute = loose * (1.0 - tight) * 4.0 * eps * n.sqrt();
                        pair.check(&what, &case, if order { 0.0 } else { 128.0 }, absolute);
                    }
                }
            }
        }
    }
    pair.close();
}

#[test]
fn products_of_matrices() {
    opencl_process!();
    let Some(mut pair) = pair() else { return };
    for dtype in 0..DTYPES.len() {
        for (batch, m, k, n) in
            [(vec![], 1, 1, 1), (vec![], 33, 40, 70), (vec![3, 2], 5, 17, 6), (vec![2], 1, 300, 64)]
        {
            for layout in 0..LAYOUTS {
                let shape = |r: i64, c: i64| [batch.clone(), vec![r, c]].concat();
                let (a, b) = (shape(m, k), shape(k, n));
                let count = |s: &[i64]| s.iter().product::<i64>() as usize;
                let case = Case {
                    op: op::MATMUL,
                    attributes: vec![8, 0], // the highest precision
                    inputs: vec![
                        place(dtype, &values(dtype, count(&a), 1, false), &a, layout),
                        place(
                            dtype,
                            &values(dtype, count(&b), 2, false),
                            &b,
                            (layout * 3) % LAYOUTS,
                        ),
                    ],
                    dtype,
                    shape: shape(m, n),
                    scalars: vec![],
                };
                let what = format!("matmul {} {a:?} {b:?} in {layout}", name_of(dtype));
                pair.check(&what, &case, 2.0, if dtype == F64 { 1e-12 } else { 1e-3 });
            }
        }
    }
    pair.close();
}

#[test]
fn positions_of_extremes() {
    opencl_process!();
    let Some(mut pair) = pair() else { return };
    for dtype in 0..DTYPES.len() {
        for shape in [vec![7, 5, 9], vec![2, 9000], vec![30000]] {
            let n = shape.iter().product::<i64>() as usize;
            for (wild, axis) in (0..shape.len()).flat_map(|a| [(false, a), (true, a)]) {
                for code in [arg_reduce::ARGMIN, arg_reduce::ARGMAX] {
                    let data = values(dtype, n, 21 + axis as u64, wild);
                    let mut kept = shape.clone();
                    kept[axis] = 1;
                    for layout in 0..LAYOUTS {
                        let case = Case {
                            op: op::ARG_REDUCE,
                            attributes: vec![12, code, axis as u32],
                            inputs: vec![place(dtype, &data, &shape, layout)],
                            dtype: U32,
                            shape: kept.clone(),
                            scalars: vec![],
                        };
                        let what = format!("{code} {shape:?} {axis} {} {layout}", name_of(dtype));
                        pair.check(&what, &case, 0.0, 0.0);
                    }
                }
            }
        }
    }
    pair.close();
}
