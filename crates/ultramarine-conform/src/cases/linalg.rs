//! Matrix decompositions: operands, and the identities that results must satisfy.

use super::{Case, Check, OpUnderTest, Scope, case, none};
use crate::device::words;
use crate::dtype::{DType, Num};
use crate::reference::linalg as reference;
use crate::tensor::{Array, Layout, Placed};
use crate::values::{Rng, ordinary};
use ultramarine_abi::schema::{OpId, TriangleAttrs, op};

/// Rows, columns and batches.
const SIZES: [(i64, i64, &[i64]); 7] = [
    (1, 1, &[]),
    (3, 3, &[]),
    (5, 5, &[3]),
    (7, 4, &[]),
    (4, 7, &[2, 2]),
    (33, 33, &[]),
    (70, 20, &[]),
];

/// Operations under test of a decomposition.
pub fn decomposition(family: OpId, scope: &Scope) -> Vec<OpUnderTest> {
    let stored = |d: &DType| {
        let needs = match family {
            op::LU => DType::U32,
            op::EIG | op::EIGVALS => DType::C64,
            _ => real(*d),
        };
        needs.in_mask(scope.storage)
    };
    let dtypes = scope.dtypes(family, None).into_iter().filter(stored);
    dtypes
        .map(|dtype| OpUnderTest::new(scope, family, None, dtype, cases(scope, family, dtype)))
        .collect()
}

fn real(dtype: DType) -> DType {
    if dtype == DType::C64 { DType::F32 } else { dtype }
}

/// Returns if the op has the attribute, and if it takes only square matrices.
fn kind(family: OpId) -> (bool, bool) {
    let triangle = [op::CHOLESKY, op::EIGH, op::EIGVALSH, op::SOLVE_TRIANGULAR].contains(&family);
    (triangle, triangle || matches!(family, op::EIG | op::EIGVALS))
}

fn cases(scope: &Scope, family: OpId, dtype: DType) -> Vec<Case> {
    let rng = &mut Rng::new(21);
    let (triangle, square) = kind(family);
    let mut cases = Vec::new();
    for (i, (m, n, batch)) in SIZES.into_iter().enumerate() {
        if square && m != n {
            continue;
        }
        // With all vectors, and with only those that belong to singular values.
        let variants: &[bool] =
            if triangle || family == op::SVD { &[false, true] } else { &[false] };
        for (variant, layout) in variants.iter().flat_map(|v| {
            scope.layouts(if batch.is_empty() { 0 } else { i }).into_iter().map(|l| (*v, l))
        }) {
            // Broadcasting is only tested along a batch.
            if layout == Layout::Broadcast && batch.is_empty() {
                continue;
            }
            let a = operand(family, dtype, (m, n), batch, rng);
            cases.push(one(family, variant, (m, n, batch), layout, a, rng));
        }
    }
    cases
}

/// Returns matrices. They are positive definite if the op requires it.
fn operand(family: OpId, dtype: DType, (m, n): (i64, i64), batch: &[i64], rng: &mut Rng) -> Array {
    let count = batch.iter().product::<i64>() * m * n;
    let mut a =
        Array::cycle(dtype, &[batch, &[m, n]].concat(), &ordinary(dtype, count as usize, rng));
    if !matches!(family, op::CHOLESKY | op::SOLVE_TRIANGULAR) {
        return a;
    }
    // Make the diagonal dominant, whichever triangle is used.
    for matrix in a.values.chunks_exact_mut((m * n) as usize) {
        let largest = matrix.iter().map(|v| v.complex().norm()).fold(1.0, f64::max);
        for i in 0..n as usize {
            matrix[i * (n as usize + 1)] = dtype.value(Num::Real(largest * (n + 1) as f64));
        }
    }
    a
}

fn one(
    family: OpId,
    variant: bool,
    (m, n, batch): (i64, i64, &[i64]),
    layout: Layout,
    a: Array,
    rng: &mut Rng,
) -> Case {
    let dtype = a.dtype;
    let k = m.min(n);
    let (left, right) = if variant { (m, n) } else { (k, k) };
    let of = |dtype: DType, last: &[i64]| (dtype, [batch, last].concat());
    let (outputs, check): (Vec<(DType, Vec<i64>)>, Check) = match family {
        op::CHOLESKY => {
            (vec![of(dtype, &[n, n])], Box::new(move |i, o| reference::cholesky(variant, i, o)))
        }
        op::LU => (
            vec![of(dtype, &[m, n]), of(DType::U32, &[k]), of(DType::U32, &[m])],
            Box::new(reference::lu),
        ),
        op::QR => (vec![of(dtype, &[m, k]), of(dtype, &[k, n])], Box::new(reference::qr)),
        op::SVD => (
            vec![of(dtype, &[m, left]), of(real(dtype), &[k]), of(dtype, &[right, n])],
            Box::new(reference::svd),
        ),
        op::SINGULAR_VALUES => (vec![of(real(dtype), &[k])], Box::new(reference::singular_values)),
        op::EIGH => (
            vec![of(real(dtype), &[n]), of(dtype, &[n, n])],
            Box::new(move |i, o| reference::eigh(variant, i, o)),
        ),
        op::EIGVALSH => {
            (vec![of(real(dtype), &[n])], Box::new(move |i, o| reference::eigvalsh(variant, i, o)))
        }
        op::EIG => (vec![of(DType::C64, &[n]), of(DType::C64, &[n, n])], Box::new(reference::eig)),
        op::EIGVALS => (vec![of(DType::C64, &[n])], Box::new(reference::eigvals)),
        _ => (
            vec![of(dtype, &[n, 3])],
            Box::new(move |i, o| reference::solve_triangular(variant, i, o)),
        ),
    };
    let mut inputs = vec![(a, layout)];
    if family == op::SOLVE_TRIANGULAR {
        let shape = [batch, &[n, 3]].concat();
        let count: i64 = shape.iter().product();
        inputs.push((Array::cycle(dtype, &shape, &ordinary(dtype, count as usize, rng)), layout));
    }
    let (triangle, _) = kind(family);
    let attributes = if triangle { words(&TriangleAttrs::new(variant.into())) } else { none() };
    let which = match (triangle, family == op::SVD, variant) {
        (true, _, true) => " upper",
        (_, true, true) => " full",
        _ => "",
    };
    let what = format!("{batch:?} ({m}, {n}){which} {}", layout.name());
    let mut outputs = outputs.into_iter();
    let first = outputs.next().unwrap_or((dtype, Vec::new()));
    let mut made = case(what, (family, attributes), inputs, first, |_| Vec::new());
    made.request.more =
        outputs.map(|(dtype, shape)| Placed::output(dtype, &shape, Layout::Contiguous)).collect();
    made.check = Some(check);
    made
}
