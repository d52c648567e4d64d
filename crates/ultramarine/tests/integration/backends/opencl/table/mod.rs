//! Table against table: every op family, dtype and layout beside
//! the built-in CPU kernels.

mod compare;
mod events;
mod fused;
mod indexing;
mod order;
mod reducing;
mod side;

use crate::opencl_process;
use crate::support::opencl;
use compare::*;
use side::{Case, Side};
use ultramarine_abi::schema::{DTYPES, binary, op, unary};

fn pair() -> Option<Pair> {
    let opencl = Side::new(opencl::init()?);
    let cpu = Side::new(ultramarine_cpu::backend_init);
    Some(Pair { cpu, opencl, compared: 0, wrong: Vec::new() })
}

const SHAPE: [i64; 3] = [7, 5, 9];

/// Units in the last place that OpenCL's own functions may differ by.
fn unary_ulps(code: u32) -> f64 {
    match code {
        unary::ABS..=unary::SQUARE | unary::FLOOR..=unary::IMAG => 0.0,
        unary::ERF | unary::ERFINV | unary::TAN => 24.0,
        _ => 8.0,
    }
}

#[test]
fn unary_ops() {
    opencl_process!();
    let Some(mut pair) = pair() else { return };
    for dtype in 0..DTYPES.len() {
        let data = values(dtype, 315, dtype as u64, true);
        for code in 0..unary::NAMES.len() as u32 {
            for layout in [0, 1 + (code as usize + dtype) % 4] {
                for to in [dtype, BOOL, F32] {
                    if to != dtype && !(to == F32 && dtype == C64) && to != BOOL {
                        continue;
                    }
                    let case = Case {
                        op: op::UNARY,
                        attributes: vec![8, code],
                        inputs: vec![place(dtype, &data, &SHAPE, layout)],
                        dtype: to,
                        shape: SHAPE.to_vec(),
                        scalars: vec![],
                    };
                    let what = format!(
                        "{} of {} in {layout}",
                        unary::NAMES[code as usize],
                        name_of(dtype)
                    );
                    pair.check(&what, &case, unary_ulps(code), 0.0);
                }
            }
        }
    }
    pair.close();
}

#[test]
fn binary_ops() {
    opencl_process!();
    let Some(mut pair) = pair() else { return };
    for dtype in 0..DTYPES.len() {
        let a = values(dtype, 315, 3 + dtype as u64, true);
        let b = values(dtype, 315, 90 + dtype as u64, true);
        for code in 0..binary::NAMES.len() as u32 {
            for layout in [0, 1 + (code as usize + dtype) % 4] {
                for to in [dtype, BOOL] {
                    let case = Case {
                        op: op::BINARY,
                        attributes: vec![8, code],
                        inputs: vec![
                            place(dtype, &a, &SHAPE, layout),
                            place(dtype, &b, &SHAPE, (layout * 2) % LAYOUTS),
                        ],
                        dtype: to,
                        shape: SHAPE.to_vec(),
                        scalars: vec![],
                    };
                    let name = binary::NAMES[code as usize];
                    let what = format!("{name} of {} in {layout}", name_of(dtype));
                    let ulps = match code {
                        binary::POWER | binary::LOGADDEXP => 16.0,
                        binary::ARCTAN2 => 8.0,
                        binary::DIVIDE | binary::FLOOR_DIVIDE if dtype == C64 => 4.0,
                        _ => 0.0,
                    };
                    pair.check(&what, &case, ulps, 0.0);
                }
            }
        }
    }
    pair.close();
}

#[test]
fn copies_and_selections() {
    opencl_process!();
    let Some(mut pair) = pair() else { return };
    for from in 0..DTYPES.len() {
        let data = values(from, 315, 5 + from as u64, true);
        for to in 0..DTYPES.len() {
            for layout in 0..LAYOUTS {
                let case = Case {
                    op: op::COPY,
                    attributes: vec![4],
                    inputs: vec![place(from, &data, &SHAPE, layout)],
                    dtype: to,
                    shape: SHAPE.to_vec(),
                    scalars: vec![],
                };
                let what = format!("{} to {} in {layout}", name_of(from), name_of(to));
                pair.check(&what, &case, 0.0, 0.0);
            }
        }
        let condition = values(BOOL, 315, 77, true);
        let other = values(from, 315, 6, true);
        for layout in 0..LAYOUTS {
            let case = Case {
                op: op::SELECT,
                attributes: vec![4],
                inputs: vec![
                    place(BOOL, &condition, &SHAPE, layout),
                    place(from, &data, &SHAPE, (layout + 1) % LAYOUTS),
                    place(from, &other, &SHAPE, (layout + 2) % LAYOUTS),
                ],
                dtype: from,
                shape: SHAPE.to_vec(),
                scalars: vec![],
            };
            pair.check(&format!("select {} in {layout}", name_of(from)), &case, 0.0, 0.0);
        }
        let fill = Case {
            op: op::FILL,
            attributes: vec![4],
            inputs: vec![],
            dtype: from,
            shape: vec![3, 5],
            scalars: vec![u64::from_le_bytes(
                [element(from, 1.5), vec![0; 8]].concat()[..8].try_into().unwrap_or_default(),
            )],
        };
        pair.check(&format!("fill {}", name_of(from)), &fill, 0.0, 0.0);
        let floats = matches!(from, F16 | F32 | F64 | BF16 | C64);
        let scalars =
            if floats { vec![0.1f64.to_bits(), 0.37f64.to_bits()] } else { vec![-3i64 as u64, 7] };
        let arange = Case { op: op::ARANGE, shape: vec![100], scalars, ..fill };
        pair.check(&format!("arange {}", name_of(from)), &arange, 0.0, 0.0);
    }
    pair.close();
}

#[test]
fn every_half_converts() {
    opencl_process!();
    let Some(mut pair) = pair() else { return };
    let all: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_le_bytes).collect();
    // All halves, and what lies between them.
    let between: Vec<u8> = (0..=u16::MAX)
        .flat_map(|h| [0u32, 1, 0x0fff, 0x1000, 0x1001, 0x8000].map(|low| (h as u32) << 16 | low))
        .flat_map(|bits| f32::from_bits(bits).to_le_bytes())
        .collect();
    let n = between.len() as i64 / 4;
    for (from, data, to, n) in [
        (F16, &all, F32, 65536),
        (BF16, &all, F32, 65536),
        (F32, &between, F16, n),
        (F32, &between, BF16, n),
    ] {
        let case = Case {
            op: op::COPY,
            attributes: vec![4],
            inputs: vec![place(from, data, &[n], 0)],
            dtype: to,
            shape: vec![n],
            scalars: vec![],
        };
        pair.check(&format!("{} to {}", name_of(from), name_of(to)), &case, 0.0, 0.0);
    }
    pair.close();
}
