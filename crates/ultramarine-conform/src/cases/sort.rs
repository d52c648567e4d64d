//! SORT, ARG_SORT, PARTITION, ARG_PARTITION, SEARCHSORTED.

use super::lanes::{LANES, LONG_LANE, ties_and_edges, with_long};
use super::{OpUnderTest, Scope, case};
use crate::device::words;
use crate::dtype::{DType, Num};
use crate::reference::sort as reference;
use crate::tensor::{Array, Layout};
use crate::values::{Rng, ordinary};
use ultramarine_abi::schema::{AxisAttrs, OpId, SearchAttrs, op};

/// The cases of an operation of the family, for each dtype.
pub fn of(op: OpId, scope: &Scope) -> Option<Vec<OpUnderTest>> {
    Some(match op {
        op::SORT | op::ARG_SORT => sort(scope, op),
        op::PARTITION | op::ARG_PARTITION => partition(scope, op),
        op::SEARCHSORTED => searchsorted(scope),
        _ => return None,
    })
}

/// SORT or ARG_SORT.
fn sort(scope: &Scope, family: OpId) -> Vec<OpUnderTest> {
    let rng = &mut Rng::new(8);
    let indices = family == op::ARG_SORT;
    if indices && !DType::U32.in_mask(scope.storage) {
        return Vec::new();
    }
    let dtypes = scope.dtypes(family, None);
    let under_test = |dtype: DType| {
        let to = if indices { DType::U32 } else { dtype };
        let mut cases = Vec::new();
        for (n, (shape, axis)) in with_long(dtype, &LANES, &[LONG_LANE]).into_iter().enumerate() {
            for layout in scope.layouts(n) {
                let size: i64 = shape.iter().product();
                let values = ties_and_edges(dtype, size as usize, scope, rng);
                let input = Array::cycle(dtype, shape, &values);
                cases.push(case(
                    format!("axis {axis} of {shape:?} {}", layout.name()),
                    (family, words(&AxisAttrs::new(axis as u32))),
                    vec![(input, layout)],
                    (to, shape.to_vec()),
                    |arrays| reference::sort(axis, indices, &arrays[0]),
                ));
            }
        }
        OpUnderTest::new(scope, family, None, dtype, cases)
    };
    dtypes.into_iter().map(under_test).collect()
}

/// Lanes to partition that are longer than backends may want to sort. float32 uses all of them; one
/// dtype of each other size uses the last two.
const LONG_PARTITIONS: [(&[i64], usize); 5] =
    [(&[70_001], 0), (&[6, 5000], 1), (&[20_000, 2], 0), (&[2, 5001, 3], 1), (&[2, 40_000], 1)];

/// Returns how many [`LONG_PARTITIONS`] a dtype uses, counted from the end.
fn long_partitions(dtype: DType) -> usize {
    match dtype {
        DType::F32 => LONG_PARTITIONS.len(),
        DType::U8 | DType::BF16 | DType::I64 | DType::C64 => 2,
        _ => 0,
    }
}

/// Values of lanes to partition.
#[derive(Clone, Copy, Debug)]
enum Operand {
    TiesAndEdges,
    TwoValues,
    Equal,
    /// Many NaN, where the dtype has any.
    Nans,
    /// Values with the same high digits. Some bits are set in these digits.
    CommonDigits,
    Ascending,
}

impl Operand {
    fn values(self, dtype: DType, n: usize, scope: &Scope, rng: &mut Rng) -> Vec<Num> {
        let whole = |x: i128| dtype.value(Num::Int(x));
        match self {
            Operand::TiesAndEdges => ties_and_edges(dtype, n, scope, rng),
            Operand::TwoValues => (0..n).map(|i| whole((i % 5 / 3) as i128)).collect(),
            Operand::Equal => vec![whole(1); n],
            Operand::Nans => {
                let mut values = ordinary(dtype, n, rng);
                let nan = dtype.value(Num::Real(f64::NAN));
                if nan.is_nan() {
                    (0..n).filter(|i| i % 3 != 1).for_each(|i| values[i] = nan);
                }
                values
            }
            Operand::CommonDigits if dtype.is_float() || dtype.is_complex() => {
                (0..n).map(|_| dtype.value(Num::Real(rng.between(1.9921875, 2.0)))).collect()
            }
            Operand::CommonDigits => {
                let high = dtype.range().1;
                (0..n).map(|_| whole(high - i128::from(rng.next() % 100))).collect()
            }
            Operand::Ascending => (0..n).map(|i| whole((i * 120 / n) as i128)).collect(),
        }
    }
}

/// PARTITION or ARG_PARTITION.
fn partition(scope: &Scope, family: OpId) -> Vec<OpUnderTest> {
    use Operand::{Ascending, CommonDigits, Equal, Nans, TiesAndEdges, TwoValues};
    let rng = &mut Rng::new(10);
    let indices = family == op::ARG_PARTITION;
    if indices && !DType::U32.in_mask(scope.storage) {
        return Vec::new();
    }
    let under_test = |dtype: DType| {
        let to = if indices { DType::U32 } else { dtype };
        let mut cases = Vec::new();
        let mut add = |(shape, axis): (&[i64], usize),
                       kind: Operand,
                       layout: Layout,
                       ranks: &[i64]| {
            let size: i64 = shape.iter().product();
            let input = Array::cycle(dtype, shape, &kind.values(dtype, size as usize, scope, rng));
            for k in ranks.iter().map(|k| *k as usize) {
                let mut made = case(
                    format!("rank {k} along axis {axis} of {shape:?} {kind:?} {}", layout.name()),
                    (family, words(&AxisAttrs::new(axis as u32))),
                    vec![(input.clone(), layout)],
                    (to, shape.to_vec()),
                    |_| Vec::new(),
                );
                made.request.scalars = vec![[k as u64, 0]];
                made.check = Some(Box::new(move |inputs, outputs| {
                    reference::partition(axis, k, indices, inputs, outputs)
                }));
                cases.push(made);
            }
        };
        for (n, (shape, axis)) in LANES.into_iter().enumerate() {
            let last = shape[axis] - 1;
            for (i, layout) in scope.layouts(n).into_iter().enumerate() {
                let kind = if (n + i) % 2 == 0 { TiesAndEdges } else { TwoValues };
                add((shape, axis), kind, layout, &[0, last * 3 / 5, last]);
            }
        }
        for n in LONG_PARTITIONS.len() - long_partitions(dtype)..LONG_PARTITIONS.len() {
            let (shape, axis) = LONG_PARTITIONS[n];
            let last = shape[axis] - 1;
            let layouts = scope.layouts(n);
            let other = layouts[layouts.len() - 1];
            add((shape, axis), TiesAndEdges, layouts[0], &[last / 2, last]);
            add((shape, axis), Nans, other, &[last - 63]);
            let kinds = [TwoValues, CommonDigits, Equal, Ascending];
            add((shape, axis), kinds[n % 4], layouts[0], &[last / 3]);
            if dtype == DType::F32 {
                add((shape, axis), TiesAndEdges, other, &[0]);
                add((shape, axis), kinds[(n + 1) % 4], other, &[last / 2]);
            }
        }
        OpUnderTest::new(scope, family, None, dtype, cases)
    };
    scope.dtypes(family, None).into_iter().map(under_test).collect()
}

/// Shapes of sorted rows and of values.
const SEARCHES: [(&[i64], &[i64]); 7] = [
    (&[300], &[40]),
    (&[1], &[3, 2]),
    (&[7], &[]),
    (&[3, 50], &[3, 20]),
    (&[2, 3, 16], &[2, 3, 4, 5]),
    (&[5, 9], &[5]),
    (&[31], &[6, 7, 4]),
];

/// Larger ones, for float32.
const LONG_SEARCHES: [(&[i64], &[i64]); 2] = [(&[70_001], &[30_000]), (&[4, 20_000], &[4, 500])];

/// SEARCHSORTED.
fn searchsorted(scope: &Scope) -> Vec<OpUnderTest> {
    let rng = &mut Rng::new(36);
    if !DType::U32.in_mask(scope.storage) {
        return Vec::new();
    }
    let under_test = |dtype: DType| {
        let mut cases = Vec::new();
        let shapes = with_long(dtype, &SEARCHES, &LONG_SEARCHES);
        for (n, (row_shape, shape)) in shapes.into_iter().enumerate() {
            for (k, layout) in scope.layouts(n).into_iter().enumerate() {
                let mut array = |shape: &[i64], sorted: bool| {
                    let size = shape.iter().product::<i64>() as usize;
                    let mut values = ties_and_edges(dtype, size, scope, rng);
                    if sorted {
                        let length = shape[shape.len() - 1] as usize;
                        values
                            .chunks_mut(length)
                            .for_each(|row| row.sort_by(|a, b| reference::compare(*a, *b)));
                    }
                    Array::cycle(dtype, shape, &values)
                };
                let (rows, values) = (array(row_shape, true), array(shape, false));
                let right = (n + k) % 2 == 1;
                cases.push(case(
                    format!("{shape:?} in {row_shape:?}, right: {right}, {}", layout.name()),
                    (op::SEARCHSORTED, words(&SearchAttrs::new(right.into()))),
                    vec![(rows, layout), (values, layout)],
                    (DType::U32, shape.to_vec()),
                    |arrays| reference::searchsorted(right, &arrays[0], &arrays[1]),
                ));
            }
        }
        OpUnderTest::new(scope, op::SEARCHSORTED, None, dtype, cases)
    };
    scope.dtypes(op::SEARCHSORTED, None).into_iter().map(under_test).collect()
}
