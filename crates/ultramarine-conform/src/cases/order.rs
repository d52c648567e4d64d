//! REDUCE, ARG_REDUCE, SCAN, SORT, ARG_SORT, PARTITION, ARG_PARTITION, MATMUL.

use super::{Scope, Subject, case, none};
use crate::device::words;
use crate::dtype::{DType, Num};
use crate::reference::order;
use crate::tensor::{Array, Layout};
use crate::values::{Rng, edges, ordinary, terms};
use ultramarine_abi::schema::{
    ArgReduceAttrs, AxisAttrs, OpId, ReduceAttrs, ScanAttrs, arg_reduce, op, reduce,
};

/// Shapes with axes to reduce.
const REDUCTIONS: [(&[i64], u64); 7] = [
    (&[1000], 0b1),
    (&[5, 33], 0b10),
    (&[33, 5], 0b01),
    (&[4, 7, 6], 0b101),
    (&[4, 7, 6], 0b010),
    (&[1, 9, 1], 0b111),
    (&[3, 4], 0),
];

/// Larger ones, for float32.
const LONG_REDUCTIONS: [(&[i64], u64); 3] =
    [(&[100_003], 0b1), (&[300, 401], 0b01), (&[300, 401], 0b10)];

/// The first list, and the second for float32.
fn with_long<T: Copy>(dtype: DType, all: &[T], long: &[T]) -> Vec<T> {
    let long = if dtype == DType::F32 { long } else { &[] };
    [all, long].concat()
}

/// REDUCE.
pub fn reduce(scope: &Scope) -> Vec<Subject> {
    let rng = &mut Rng::new(5);
    let mut subjects = Vec::new();
    for code in 0..reduce::NAMES.len() as u32 {
        for dtype in scope.dtypes(op::REDUCE, Some(code)) {
            let mut cases = Vec::new();
            for (n, (shape, axes)) in
                with_long(dtype, &REDUCTIONS, &LONG_REDUCTIONS).into_iter().enumerate()
            {
                for layout in scope.layouts(n) {
                    let size: i64 = shape.iter().product();
                    let mut values = terms(dtype, size as usize, code == reduce::PROD, rng);
                    if matches!(code, reduce::MIN | reduce::MAX) && n % 2 == 1 {
                        values.splice(0..1, edges(dtype, scope.subnormals));
                    }
                    // So that ALL is sometimes true and ANY sometimes false.
                    if dtype == DType::BOOL && n % 3 == 0 {
                        values.fill(Num::Int((code == reduce::ALL).into()));
                    }
                    let input = Array::cycle(dtype, shape, &values);
                    let (kept, _) = order::reduce(code, axes, &input);
                    cases.push(case(
                        format!("axes {axes:#b} of {shape:?} {}", layout.name()),
                        (op::REDUCE, words(&ReduceAttrs::new(code, axes))),
                        vec![(input, layout)],
                        (
                            if matches!(code, reduce::ALL | reduce::ANY) {
                                DType::BOOL
                            } else {
                                dtype
                            },
                            kept,
                        ),
                        |arrays| order::reduce(code, axes, &arrays[0]).1,
                    ));
                }
            }
            subjects.push(Subject::new(scope, op::REDUCE, Some(code), dtype, cases));
        }
    }
    subjects
}

/// Shapes with an axis.
const LANES: [(&[i64], usize); 5] =
    [(&[300], 0), (&[7, 40], 1), (&[40, 7], 0), (&[3, 9, 5], 1), (&[1, 1], 1)];

/// A larger one, for float32.
const LONG_LANE: (&[i64], usize) = (&[70_001], 0);

/// Values with ties, edges and NaN.
fn lively(dtype: DType, n: usize, scope: &Scope, rng: &mut Rng) -> Vec<Num> {
    let mut values = ordinary(dtype, n, rng);
    for i in (3..n).step_by(5) {
        values[i] = values[i - 3];
    }
    let rare = edges(dtype, scope.subnormals);
    if n > 2 * rare.len() {
        for (i, edge) in rare.into_iter().enumerate() {
            values[2 * i + 1] = edge;
        }
    }
    values
}

/// ARG_REDUCE.
pub fn arg_reduce(scope: &Scope) -> Vec<Subject> {
    let rng = &mut Rng::new(6);
    let mut subjects = Vec::new();
    if !DType::U32.in_mask(scope.storage) {
        return subjects;
    }
    for code in 0..arg_reduce::NAMES.len() as u32 {
        for dtype in scope.dtypes(op::ARG_REDUCE, Some(code)) {
            let mut cases = Vec::new();
            for (n, (shape, axis)) in with_long(dtype, &LANES, &[LONG_LANE]).into_iter().enumerate()
            {
                for layout in scope.layouts(n) {
                    let size: i64 = shape.iter().product();
                    let values = lively(dtype, size as usize, scope, rng);
                    let input = Array::cycle(dtype, shape, &values);
                    let (kept, _) = order::arg_reduce(code, axis, &input);
                    cases.push(case(
                        format!("axis {axis} of {shape:?} {}", layout.name()),
                        (op::ARG_REDUCE, words(&ArgReduceAttrs::new(code, axis as u32))),
                        vec![(input, layout)],
                        (DType::U32, kept),
                        |arrays| order::arg_reduce(code, axis, &arrays[0]).1,
                    ));
                }
            }
            subjects.push(Subject::new(scope, op::ARG_REDUCE, Some(code), dtype, cases));
        }
    }
    subjects
}

/// SCAN.
pub fn scan(scope: &Scope) -> Vec<Subject> {
    let rng = &mut Rng::new(7);
    let mut subjects = Vec::new();
    for code in 0..reduce::NAMES.len() as u32 {
        for dtype in scope.dtypes(op::SCAN, Some(code)) {
            let mut cases = Vec::new();
            for (n, (shape, axis)) in
                with_long(dtype, &LANES, &[(&[3000], 0)]).into_iter().enumerate()
            {
                for (k, layout) in scope.layouts(n).into_iter().enumerate() {
                    let (reverse, inclusive) = ((n + k) % 2 == 1, (n / 2 + k) % 2 == 0);
                    let size: i64 = shape.iter().product();
                    let values = terms(dtype, size as usize, code == reduce::PROD, rng);
                    let input = Array::cycle(dtype, shape, &values);
                    let attributes =
                        ScanAttrs::new(code, axis as u32, reverse.into(), inclusive.into());
                    cases.push(case(
                        format!(
                            "axis {axis} of {shape:?}, reverse {reverse}, inclusive {inclusive}, {}",
                            layout.name()
                        ),
                        (op::SCAN, words(&attributes)),
                        vec![(input, layout)],
                        (dtype, shape.to_vec()),
                        |arrays| order::scan(code, axis, reverse, inclusive, &arrays[0]),
                    ));
                }
            }
            subjects.push(Subject::new(scope, op::SCAN, Some(code), dtype, cases));
        }
    }
    subjects
}

/// SORT or ARG_SORT.
pub fn sort(scope: &Scope, family: OpId) -> Vec<Subject> {
    let rng = &mut Rng::new(8);
    let indices = family == op::ARG_SORT;
    if indices && !DType::U32.in_mask(scope.storage) {
        return Vec::new();
    }
    let dtypes = scope.dtypes(family, None);
    let subject = |dtype: DType| {
        let to = if indices { DType::U32 } else { dtype };
        let mut cases = Vec::new();
        for (n, (shape, axis)) in with_long(dtype, &LANES, &[LONG_LANE]).into_iter().enumerate() {
            for layout in scope.layouts(n) {
                let size: i64 = shape.iter().product();
                let values = lively(dtype, size as usize, scope, rng);
                let input = Array::cycle(dtype, shape, &values);
                cases.push(case(
                    format!("axis {axis} of {shape:?} {}", layout.name()),
                    (family, words(&AxisAttrs::new(axis as u32))),
                    vec![(input, layout)],
                    (to, shape.to_vec()),
                    |arrays| order::sort(axis, indices, &arrays[0]),
                ));
            }
        }
        Subject::new(scope, family, None, dtype, cases)
    };
    dtypes.into_iter().map(subject).collect()
}

/// Lanes to part that are longer than a backend may want to sort: for float32 all, for one dtype of
/// each other size the last two.
const PARTED: [(&[i64], usize); 5] =
    [(&[70_001], 0), (&[6, 5000], 1), (&[20_000, 2], 0), (&[2, 5001, 3], 1), (&[2, 40_000], 1)];

/// How many of these a dtype has.
fn parted(dtype: DType) -> usize {
    match dtype {
        DType::F32 => PARTED.len(),
        DType::U8 | DType::BF16 | DType::I64 | DType::C64 => 2,
        _ => 0,
    }
}

/// What lanes to part are made of.
#[derive(Clone, Copy, Debug)]
enum Parted {
    Lively,
    Two,
    Equal,
    /// Many NaN, where there are any.
    Nans,
    /// Such as have their high digits in common, with bits set in them.
    Near,
    Rising,
}

impl Parted {
    fn values(self, dtype: DType, n: usize, scope: &Scope, rng: &mut Rng) -> Vec<Num> {
        let whole = |x: i128| dtype.value(Num::Int(x));
        match self {
            Parted::Lively => lively(dtype, n, scope, rng),
            Parted::Two => (0..n).map(|i| whole((i % 5 / 3) as i128)).collect(),
            Parted::Equal => vec![whole(1); n],
            Parted::Nans => {
                let mut values = ordinary(dtype, n, rng);
                let nan = dtype.value(Num::Real(f64::NAN));
                if nan.is_nan() {
                    (0..n).filter(|i| i % 3 != 1).for_each(|i| values[i] = nan);
                }
                values
            }
            Parted::Near if dtype.is_float() || dtype.is_complex() => {
                (0..n).map(|_| dtype.value(Num::Real(rng.between(1.9921875, 2.0)))).collect()
            }
            Parted::Near => {
                let high = dtype.range().1;
                (0..n).map(|_| whole(high - i128::from(rng.next() % 100))).collect()
            }
            Parted::Rising => (0..n).map(|i| whole((i * 120 / n) as i128)).collect(),
        }
    }
}

/// PARTITION or ARG_PARTITION.
pub fn partition(scope: &Scope, family: OpId) -> Vec<Subject> {
    use Parted::{Equal, Lively, Nans, Near, Rising, Two};
    let rng = &mut Rng::new(10);
    let indices = family == op::ARG_PARTITION;
    if indices && !DType::U32.in_mask(scope.storage) {
        return Vec::new();
    }
    let subject = |dtype: DType| {
        let to = if indices { DType::U32 } else { dtype };
        let mut cases = Vec::new();
        let mut add = |(shape, axis): (&[i64], usize),
                       kind: Parted,
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
                    order::partition(axis, k, indices, inputs, outputs)
                }));
                cases.push(made);
            }
        };
        for (n, (shape, axis)) in LANES.into_iter().enumerate() {
            let last = shape[axis] - 1;
            for (i, layout) in scope.layouts(n).into_iter().enumerate() {
                let kind = if (n + i) % 2 == 0 { Lively } else { Two };
                add((shape, axis), kind, layout, &[0, last * 3 / 5, last]);
            }
        }
        for n in PARTED.len() - parted(dtype)..PARTED.len() {
            let (shape, axis) = PARTED[n];
            let last = shape[axis] - 1;
            let layouts = scope.layouts(n);
            let other = layouts[layouts.len() - 1];
            add((shape, axis), Lively, layouts[0], &[last / 2, last]);
            add((shape, axis), Nans, other, &[last - 63]);
            let kinds = [Two, Near, Equal, Rising];
            add((shape, axis), kinds[n % 4], layouts[0], &[last / 3]);
            if dtype == DType::F32 {
                add((shape, axis), Lively, other, &[0]);
                add((shape, axis), kinds[(n + 1) % 4], other, &[last / 2]);
            }
        }
        Subject::new(scope, family, None, dtype, cases)
    };
    scope.dtypes(family, None).into_iter().map(subject).collect()
}

/// MATMUL.
pub fn matmul(scope: &Scope) -> Vec<Subject> {
    let rng = &mut Rng::new(9);
    // m, k, n, batch.
    let sizes: [(i64, i64, i64, &[i64]); 8] = [
        (3, 5, 4, &[]),
        (1, 64, 1, &[]),
        (1, 33, 17, &[]),
        (17, 33, 1, &[]),
        (64, 100, 48, &[]),
        (5, 7, 6, &[3]),
        (2, 3, 2, &[2, 2]),
        (130, 257, 70, &[]),
    ];
    let subject = |dtype: DType| {
        let mut cases = Vec::new();
        for (i, (m, k, n, batch)) in sizes.into_iter().enumerate() {
            for layout in scope.layouts(if i == 5 { 2 } else { i }) {
                // Broadcasting makes sense along a batch.
                if layout == Layout::Broadcast && batch.is_empty() {
                    continue;
                }
                let shape = |a: i64, b: i64| [batch, &[a, b]].concat();
                let values = |n: i64, rng: &mut Rng| ordinary(dtype, n as usize, rng);
                let a = Array::cycle(dtype, &shape(m, k), &values(m * k * 4, rng));
                let b = Array::cycle(dtype, &shape(k, n), &values(k * n * 4, rng));
                let epsilon = if dtype == DType::F32 { scope.product_epsilon } else { 0.0 };
                cases.push(case(
                    format!("{batch:?} ({m}, {k}) x ({k}, {n}) {}", layout.name()),
                    (op::MATMUL, none()),
                    vec![(a, layout), (b, layout)],
                    (dtype, shape(m, n)),
                    |arrays| order::matmul(&arrays[0], &arrays[1], epsilon).1,
                ));
            }
        }
        Subject::new(scope, op::MATMUL, None, dtype, cases)
    };
    scope.dtypes(op::MATMUL, None).into_iter().map(subject).collect()
}
