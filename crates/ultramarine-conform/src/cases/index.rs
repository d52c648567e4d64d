//! GATHER, SCATTER, GATHER_AXIS, SCATTER_AXIS, DYNAMIC_SLICE, DYNAMIC_SLICE_UPDATE.

use super::{OpUnderTest, Scope, case, in_place, numbers};
use crate::device::words;
use crate::dtype::{DType, Kind};
use crate::reference::index as reference;
use crate::tensor::{Array, Layout};
use crate::values::{Rng, ordinary};
use ultramarine_abi::schema::{
    AxisAttrs, DynamicSliceAttrs, GatherAttrs, OpId, ScatterAttrs, ScatterAxisAttrs, op, scatter,
};

/// An indexing pattern: source, index shape, indexed axes, shape of a slice.
type Plan = (&'static [i64], &'static [i64], &'static [usize], &'static [i64]);

const PLANS: [Plan; 5] = [
    (&[10], &[7], &[0], &[1]),
    (&[6, 5], &[4], &[0], &[1, 5]),
    (&[6, 5], &[2, 3], &[1], &[6, 1]),
    (&[4, 5, 3], &[6], &[0, 2], &[1, 5, 1]),
    (&[7, 5], &[3], &[1, 0], &[2, 1]),
];

fn axes(of: &[usize]) -> [u8; 32] {
    let mut all = [0; 32];
    for (to, from) in all.iter_mut().zip(of) {
        *to = *from as u8;
    }
    all
}

/// Returns the index dtypes that the device stores, in the order of importance: the three that
/// hosts use most, and for float32 elements all of them.
fn index_dtypes(scope: &Scope, dtype: DType) -> Vec<DType> {
    let usual = vec![DType::I32, DType::U32, DType::I64];
    let known =
        if dtype == DType::F32 { DType::all().filter(|d| d.is_int()).collect() } else { usual };
    known.into_iter().filter(|d| d.in_mask(scope.storage)).collect()
}

/// Returns pairs of a case's number, which is also the number of its layout, and an index dtype.
/// Each case and each dtype occurs at least once.
fn with_dtypes(scope: &Scope, dtype: DType, cases: usize) -> Vec<(usize, DType)> {
    let dtypes = index_dtypes(scope, dtype);
    let n = if dtypes.is_empty() { 0 } else { cases.max(dtypes.len()) };
    (0..n).map(|i| (i % cases, dtypes[i % dtypes.len()])).collect()
}

/// Returns the index arrays of a pattern. Some indices are negative, repeated or out of range.
fn indices(dtype: DType, plan: &Plan) -> Vec<Array> {
    let signed = dtype.kind() == Kind::Signed;
    let values: &[i64] =
        if signed { &[0, 2, -1, 1, 2, 50, -3, -60] } else { &[0, 2, 1, 1, 3, 50, 4] };
    let shifted = |k: usize| {
        let mut all = values.to_vec();
        all.rotate_left(2 * k);
        all
    };
    plan.2
        .iter()
        .enumerate()
        .map(|(k, _)| Array::cycle(dtype, plan.1, &numbers(&shifted(k))))
        .collect()
}

/// The cases of an operation of the family, for each dtype.
pub fn of(op: OpId, scope: &Scope) -> Option<Vec<OpUnderTest>> {
    Some(match op {
        op::GATHER => gather(scope),
        op::SCATTER => scatter(scope),
        op::GATHER_AXIS => gather_axis(scope),
        op::SCATTER_AXIS => scatter_axis(scope),
        op::DYNAMIC_SLICE => dynamic_slice(scope),
        op::DYNAMIC_SLICE_UPDATE => dynamic_slice_update(scope),
        _ => return None,
    })
}

/// GATHER.
fn gather(scope: &Scope) -> Vec<OpUnderTest> {
    let rng = &mut Rng::new(10);
    let mut ops = Vec::new();
    for dtype in scope.dtypes(op::GATHER, None) {
        let mut cases = Vec::new();
        for (n, index_dtype) in with_dtypes(scope, dtype, PLANS.len()) {
            let plan = &PLANS[n];
            for layout in scope.layouts(n) {
                let (shape, index_shape, axis, slice) = *plan;
                let source = Array::cycle(dtype, shape, &ordinary(dtype, 90, rng));
                let arrays = indices(index_dtype, plan);
                let attributes =
                    GatherAttrs::new(axis.len() as u32, index_shape.len() as u32, axes(axis));
                let mut inputs = vec![(source, layout)];
                inputs.extend(arrays.into_iter().map(|a| (a, Layout::Contiguous)));
                cases.push(case(
                    format!(
                        "{shape:?} by {} {index_shape:?} along {axis:?}, {}",
                        index_dtype.name(),
                        layout.name()
                    ),
                    (op::GATHER, words(&attributes)),
                    inputs,
                    (dtype, [index_shape, slice].concat()),
                    |arrays| reference::gather(&arrays[0], &arrays[1..], axis, slice).1,
                ));
            }
        }
        ops.push(OpUnderTest::new(scope, op::GATHER, None, dtype, cases));
    }
    ops
}

/// SCATTER.
fn scatter(scope: &Scope) -> Vec<OpUnderTest> {
    let rng = &mut Rng::new(11);
    let mut ops = Vec::new();
    for code in 0..scatter::NAMES.len() as u32 {
        for dtype in scope.dtypes(op::SCATTER, Some(code)) {
            let mut cases = Vec::new();
            for (n, index_dtype) in with_dtypes(scope, dtype, PLANS.len()) {
                let plan = &PLANS[n];
                for layout in scope.layouts(n) {
                    let (shape, index_shape, axis, slice) = *plan;
                    let source = Array::cycle(dtype, shape, &ordinary(dtype, 90, rng));
                    let updates = Array::cycle(
                        dtype,
                        &[index_shape, slice].concat(),
                        &ordinary(dtype, 90, rng),
                    );
                    let attributes = ScatterAttrs::new(
                        code,
                        axis.len() as u32,
                        index_shape.len() as u32,
                        axes(axis),
                    );
                    let mut inputs = vec![(source, Layout::Contiguous)];
                    let arrays = indices(index_dtype, plan);
                    inputs.extend(arrays.into_iter().map(|a| (a, Layout::Contiguous)));
                    inputs.push((updates, layout));
                    let last = inputs.len() - 1;
                    cases.push(case(
                        format!(
                            "{shape:?} by {} {index_shape:?} along {axis:?}, updates {}",
                            index_dtype.name(),
                            layout.name()
                        ),
                        (op::SCATTER, words(&attributes)),
                        inputs,
                        (dtype, shape.to_vec()),
                        |a| reference::scatter(code, &a[0], &a[1..last], &a[last], axis),
                    ));
                }
            }
            ops.push(OpUnderTest::new(scope, op::SCATTER, Some(code), dtype, cases));
        }
    }
    ops
}

const LANES: [(&[i64], usize, i64); 4] =
    [(&[10], 0, 6), (&[4, 9], 1, 5), (&[9, 4], 0, 12), (&[3, 5, 4], 1, 5)];

/// Indices of an axis with `length` of them in each lane.
fn along(dtype: DType, shape: &[i64], axis: usize, length: i64) -> Array {
    let mut shape = shape.to_vec();
    shape[axis] = length;
    let signed = dtype.kind() == Kind::Signed;
    let values: &[i64] = if signed { &[0, 3, -1, 2, 2, 1, -2] } else { &[0, 3, 4, 2, 2, 1] };
    Array::cycle(dtype, &shape, &numbers(values))
}

/// GATHER_AXIS.
fn gather_axis(scope: &Scope) -> Vec<OpUnderTest> {
    let rng = &mut Rng::new(12);
    let mut ops = Vec::new();
    for dtype in scope.dtypes(op::GATHER_AXIS, None) {
        let mut cases = Vec::new();
        for (n, index_dtype) in with_dtypes(scope, dtype, LANES.len()) {
            let (shape, axis, length) = LANES[n];
            for layout in scope.layouts(n) {
                let source = Array::cycle(dtype, shape, &ordinary(dtype, 90, rng));
                let index = along(index_dtype, shape, axis, length);
                let to = index.shape.clone();
                cases.push(case(
                    format!(
                        "{length} {} of axis {axis} of {shape:?}, {}",
                        index_dtype.name(),
                        layout.name()
                    ),
                    (op::GATHER_AXIS, words(&AxisAttrs::new(axis as u32))),
                    vec![(source, layout), (index, Layout::Contiguous)],
                    (dtype, to),
                    |arrays| reference::gather_axis(axis, &arrays[0], &arrays[1]),
                ));
            }
        }
        ops.push(OpUnderTest::new(scope, op::GATHER_AXIS, None, dtype, cases));
    }
    ops
}

/// SCATTER_AXIS: SET and SUM.
fn scatter_axis(scope: &Scope) -> Vec<OpUnderTest> {
    let rng = &mut Rng::new(13);
    let mut ops = Vec::new();
    for code in [scatter::SET, scatter::SUM] {
        for dtype in scope.dtypes(op::SCATTER_AXIS, Some(code)) {
            let mut cases = Vec::new();
            for (n, index_dtype) in with_dtypes(scope, dtype, LANES.len()) {
                let (shape, axis, length) = LANES[n];
                for layout in scope.layouts(n) {
                    let source = Array::cycle(dtype, shape, &ordinary(dtype, 90, rng));
                    let index = along(index_dtype, shape, axis, length);
                    let updates = Array::cycle(dtype, &index.shape, &ordinary(dtype, 90, rng));
                    cases.push(case(
                        format!("{length} of axis {axis} of {shape:?}, updates {}", layout.name()),
                        (op::SCATTER_AXIS, words(&ScatterAxisAttrs::new(code, axis as u32))),
                        vec![
                            (source, Layout::Contiguous),
                            (index, Layout::Contiguous),
                            (updates, layout),
                        ],
                        (dtype, shape.to_vec()),
                        |a| reference::scatter_axis(code, axis, &a[0], &a[1], &a[2]),
                    ));
                }
            }
            ops.push(OpUnderTest::new(scope, op::SCATTER_AXIS, Some(code), dtype, cases));
        }
    }
    ops
}

/// A window: source, its shape, axes of the starts, the starts.
type Window = (&'static [i64], &'static [i64], &'static [usize], &'static [i64]);

const WINDOWS: [Window; 7] = [
    (&[10], &[3], &[0], &[4]),
    (&[6, 5], &[2, 5], &[0], &[50]),
    (&[6, 5], &[2, 3], &[1, 0], &[1, 3]),
    (&[2, 8, 3, 4], &[2, 8, 1, 4], &[0, 1, 2, 3], &[1, 1, 1, 1]),
    (&[2, 3, 16, 8], &[2, 3, 1, 8], &[2], &[16]),
    (&[4, 5, 3], &[4, 2, 2], &[2], &[1]),
    (&[5, 4], &[1, 1], &[0, 1], &[-1, 2]),
];

/// A window that is large enough for a backend to use several threads.
const LARGE: Window = (&[3, 700, 120], &[3, 500, 120], &[1], &[100]);

/// Returns the starts of a window. Those of unsigned dtypes are not negative.
fn starts(dtype: DType, of: &[i64]) -> Array {
    let least = if dtype.kind() == Kind::Signed { i64::MIN } else { 0 };
    let held: Vec<i64> = of.iter().map(|i| *i.max(&least)).collect();
    Array::cycle(dtype, &[of.len() as i64], &numbers(&held))
}

/// Cases of an op that reads or writes a window, in the layouts of the source or of the update.
fn windows(scope: &Scope, op: OpId, updates: bool) -> Vec<OpUnderTest> {
    let rng = &mut Rng::new(15);
    let mut ops = Vec::new();
    for dtype in scope.dtypes(op, None) {
        let mut cases = Vec::new();
        let mut all: Vec<_> = with_dtypes(scope, dtype, WINDOWS.len())
            .into_iter()
            .map(|(n, d)| (n, &WINDOWS[n], d))
            .collect();
        let large = index_dtypes(scope, dtype).first().copied().filter(|_| dtype == DType::F32);
        all.extend(large.map(|d| (0, &LARGE, d)));
        for (n, (shape, window, axis, at), start_dtype) in all {
            for layout in scope.layouts(n) {
                let source = Array::cycle(dtype, shape, &ordinary(dtype, 90, rng));
                let update = Array::cycle(dtype, window, &ordinary(dtype, 70, rng));
                let start = starts(start_dtype, at);
                let start_layout = if n % 2 == 1 { Layout::Gaps } else { Layout::Contiguous };
                let what = format!(
                    "{window:?} of {shape:?} from {at:?} ({}) along {axis:?}, {}",
                    start_dtype.name(),
                    layout.name()
                );
                let attributes = DynamicSliceAttrs::new(axis.len() as u32, axes(axis));
                let request = (op, words(&attributes));
                if !updates {
                    let inputs = vec![(source, layout), (start, start_layout)];
                    cases.push(case(what, request, inputs, (dtype, window.to_vec()), |a| {
                        reference::dynamic_slice(&a[0], &a[1], axis, window)
                    }));
                    continue;
                }
                let inputs =
                    vec![(source, Layout::Contiguous), (start, start_layout), (update, layout)];
                let made = case(what, request, inputs, (dtype, shape.to_vec()), |a| {
                    reference::dynamic_slice_update(&a[0], &a[1], &a[2], axis)
                });
                let place = in_place(&made);
                cases.extend([made, place]);
            }
        }
        ops.push(OpUnderTest::new(scope, op, None, dtype, cases));
    }
    ops
}

/// DYNAMIC_SLICE.
fn dynamic_slice(scope: &Scope) -> Vec<OpUnderTest> {
    windows(scope, op::DYNAMIC_SLICE, false)
}

/// DYNAMIC_SLICE_UPDATE, also into the source's memory.
fn dynamic_slice_update(scope: &Scope) -> Vec<OpUnderTest> {
    windows(scope, op::DYNAMIC_SLICE_UPDATE, true)
}
