//! Gathers and scatters.

use super::compare::*;
use super::pair;
use super::side::{Case, Operand, count};
use crate::opencl_process;
use ultramarine_abi::schema::{DTYPES, op, scatter};
use ultramarine_test_support::Rng;

const INDEX_TYPES: [usize; 8] = [U8, U8 + 1, U32, U64, I32 - 2, I32 - 1, I32, I64];

/// Indices around an axis of `n`, some outside, negative where the dtype has that.
fn indices(dtype: usize, shape: &[i64], n: i64, seed: u64, layout: usize) -> Operand {
    let mut rng = Rng::new(seed);
    let data: Vec<u8> = (0..count(shape))
        .flat_map(|_| {
            let index = rng.between(-n - n / 2, 2 * n - n / 2 - 1);
            let signed = dtype > U64;
            element(dtype, if signed { index } else { index.abs() } as f64)
        })
        .collect();
    place(dtype, &data, shape, layout)
}

/// size, n_indices, index_ndim, axes.
fn attributes(head: &[u32], n: u32, index_ndim: u32, axes: &[u8]) -> Vec<u32> {
    let mut bytes = [0u8; 32];
    bytes[..axes.len()].copy_from_slice(axes);
    let mut out = head.to_vec();
    out.extend([n, index_ndim]);
    out.extend(bytes.chunks(4).map(|c| u32::from_le_bytes(c.try_into().unwrap_or_default())));
    out.insert(0, (out.len() as u32 + 1) * 4);
    out
}

/// Axes, shape of the index arrays, shape of a slice of (7, 5, 9).
type Kind = (&'static [u8], &'static [i64], [i64; 3]);
const KINDS: [Kind; 7] = [
    (&[0], &[11], [1, 5, 9]),
    (&[2], &[4, 3], [7, 5, 1]),
    (&[2, 0], &[13], [1, 5, 1]),
    (&[0, 1, 2], &[200], [1, 1, 1]),
    (&[1], &[], [7, 1, 9]),
    (&[1, 2], &[6], [7, 3, 2]),
    (&[0, 2], &[9], [2, 2, 9]),
];
const SHAPE: [i64; 3] = [7, 5, 9];

#[test]
fn gathers() {
    opencl_process!();
    let Some(mut pair) = pair() else { return };
    for dtype in 0..DTYPES.len() {
        let data = values(dtype, 315, 61, true);
        for (k, (axes, index_shape, slice)) in KINDS.iter().enumerate() {
            for layout in 0..LAYOUTS {
                let index_type = INDEX_TYPES[(k + layout + dtype) % 8];
                let mut inputs = vec![place(dtype, &data, &SHAPE, layout)];
                for (i, axis) in axes.iter().enumerate() {
                    let n = SHAPE[*axis as usize];
                    let of = (layout + i) % LAYOUTS;
                    inputs.push(indices(index_type, index_shape, n, 7 + i as u64, of));
                }
                let case = Case {
                    op: op::GATHER,
                    attributes: attributes(&[], axes.len() as u32, index_shape.len() as u32, axes),
                    inputs,
                    dtype,
                    shape: [index_shape, &slice[..]].concat(),
                    scalars: vec![],
                };
                let what = format!("{axes:?} {slice:?} {} {layout}", name_of(dtype));
                pair.check(&what, &case, 0.0, 0.0);
            }
        }
    }
    pair.close();
}

#[test]
fn scatters() {
    opencl_process!();
    let Some(mut pair) = pair() else { return };
    for dtype in 0..DTYPES.len() {
        let data = values(dtype, 315, 71, false);
        for (k, (axes, index_shape, slice)) in KINDS.iter().enumerate() {
            for code in 0..scatter::NAMES.len() as u32 {
                let layout = (k + code as usize) % LAYOUTS;
                let index_type = INDEX_TYPES[(k + layout + dtype) % 8];
                let mut inputs = vec![place(dtype, &data, &SHAPE, layout)];
                for (i, axis) in axes.iter().enumerate() {
                    let n = SHAPE[*axis as usize];
                    inputs.push(indices(
                        index_type,
                        index_shape,
                        n,
                        7 + i as u64,
                        (k + i) % LAYOUTS,
                    ));
                }
                let given = [index_shape, &slice[..]].concat();
                let updates = values(dtype, count(&given), 5, code > scatter::PROD);
                inputs.push(place(dtype, &updates, &given, (layout + 1) % LAYOUTS));
                let case = Case {
                    op: op::SCATTER,
                    attributes: attributes(
                        &[code],
                        axes.len() as u32,
                        index_shape.len() as u32,
                        axes,
                    ),
                    inputs,
                    dtype,
                    shape: SHAPE.to_vec(),
                    scalars: vec![],
                };
                let what = format!("{code} {axes:?} {slice:?} {} {layout}", name_of(dtype));
                pair.check(&what, &case, 0.0, 0.0);
            }
        }
    }
    pair.close();
}

#[test]
fn along_an_axis() {
    opencl_process!();
    let Some(mut pair) = pair() else { return };
    for dtype in 0..DTYPES.len() {
        let data = values(dtype, 315, 81, true);
        for axis in 0..3 {
            for layout in 0..LAYOUTS {
                let index_type = INDEX_TYPES[(axis + layout + dtype) % 8];
                let mut shape = SHAPE;
                shape[axis] = 12;
                let by = indices(index_type, &shape, SHAPE[axis], 3, (layout + 1) % LAYOUTS);
                let mut thin = shape;
                thin[(axis + 1) % 3] = 1;
                let thin_by = indices(index_type, &thin, SHAPE[axis], 5, 0);
                for (i, by) in [by, thin_by].into_iter().enumerate() {
                    let case = Case {
                        op: op::GATHER_AXIS,
                        attributes: vec![8, axis as u32],
                        inputs: vec![place(dtype, &data, &SHAPE, layout), by.clone()],
                        dtype,
                        shape: shape.to_vec(),
                        scalars: vec![],
                    };
                    let what = format!("{i} {axis} {} {layout}", name_of(dtype));
                    pair.check(&format!("gather_axis {what}"), &case, 0.0, 0.0);
                    for code in [scatter::SET, scatter::SUM] {
                        let given = if i == 0 { vec![12] } else { vec![1, 12] };
                        for length in given {
                            let mut given = shape;
                            given[axis] = length;
                            let updates = values(dtype, count(&given), 9, false);
                            let case = Case {
                                op: op::SCATTER_AXIS,
                                attributes: vec![12, code, axis as u32],
                                inputs: vec![
                                    place(dtype, &data, &SHAPE, layout),
                                    by.clone(),
                                    place(dtype, &updates, &given, (layout + 2) % LAYOUTS),
                                ],
                                dtype,
                                shape: SHAPE.to_vec(),
                                scalars: vec![],
                            };
                            pair.check(&format!("scatter_axis {code} {what}"), &case, 0.0, 0.0);
                        }
                    }
                }
            }
        }
    }
    pair.close();
}
