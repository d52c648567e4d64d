//! GATHER_MATMUL and SEGMENTED_MATMUL, and the choice of matrices for each item of a product.

use super::{Case, OpUnderTest, Scope, case, none, numbers};
use crate::device::words;
use crate::dtype::{DType, Num};
use crate::reference::grouped as reference;
use crate::tensor::{Array, Layout};
use crate::values::{Rng, ordinary};
use ultramarine_abi::schema::{GatherMatmulAttrs, op};

/// For each item, the matrices of the first and of the second factor. If a list is empty, each item
/// has its own matrix.
pub(super) type Indices = [Vec<i64>; 2];

/// Rows of the first factor, matrices of both, and their indices.
type Indexed = (i64, [i64; 2], [&'static [i64]; 2]);

const LEAST: i64 = i32::MIN as i64;
const MOST: i64 = i32::MAX as i64;

/// Products with indices for none, one or both of the factors. Some indices are negative, repeated
/// or out of range, and there are more indices than matrices.
pub(super) const INDEXED: [Indexed; 7] = [
    (2, [3, 3], [&[], &[]]),
    (1, [5, 3], [&[], &[2, 0, -1, 1, 0]]),
    (3, [3, 4], [&[0, 2, -1, 0, 5], &[3, -4, 1, 1, -9]]),
    (3, [2, 4], [&[1, 0, -1, 1], &[]]),
    (1, [7, 3], [&[], &[0, 0, 0, 1, 1, 2, 2]]),
    (9, [2, 2], [&[0, 1, 1, 0], &[1, 1, 1, 1]]),
    (2, [3, 2], [&[LEAST, MOST, -3], &[MOST, LEAST, -2]]),
];

/// Layouts with one matrix of a factor for all items.
pub(super) const SHARED: [[Layout; 3]; 2] = [
    [Layout::Broadcast, Layout::Contiguous, Layout::Contiguous],
    [Layout::Contiguous, Layout::Broadcast, Layout::Broadcast],
];

/// A choice of `of` matrices for each of `n` items.
pub(super) fn choices(n: i64, of: i64, sorted: bool) -> Vec<i64> {
    (0..n).map(|i| if sorted { i * of / n } else { i * i * 7 % 31 % of }).collect()
}

/// Returns layouts of three operands: the first factor, the second factor, and the operand that
/// belongs to the second.
pub(super) fn grouped_layouts(scope: &Scope, n: usize) -> Vec<[Layout; 3]> {
    let plain = Layout::Contiguous;
    let mut all = Vec::new();
    for layout in scope.matrix_layouts(n) {
        let turns = [
            [layout, layout, layout],
            [plain, layout, layout],
            [layout, plain, plain],
            [plain, plain, layout],
        ];
        match layout {
            Layout::Contiguous => all.push([plain; 3]),
            _ if scope.full => all.extend([turns[n % 4], turns[(n + 1) % 4]]),
            _ => all.push(turns[(n / 2 + n / 8) % 4]),
        }
    }
    all
}

/// Adds the index arrays that are present to the inputs of a product. Returns the number of items.
pub(super) fn add_indices(
    inputs: &mut Vec<(Array, Layout)>,
    indices: &Indices,
    matrices: i64,
) -> i64 {
    let mut items = matrices;
    for (i, list) in indices.iter().enumerate().filter(|(_, list)| !list.is_empty()) {
        items = list.len() as i64;
        let layout = if i == 1 && items == 5 { Layout::Gaps } else { Layout::Contiguous };
        inputs.push((Array::cycle(DType::I32, &[items], &numbers(list)), layout));
    }
    items
}

/// Sizes k and n of products with the indices of [`INDEXED`].
const SIZES: [[i64; 2]; 3] = [[5, 4], [64, 17], [33, 48]];

/// Cases of GATHER_MATMUL.
pub fn gather_matmul(scope: &Scope) -> Vec<OpUnderTest> {
    let rng = &mut Rng::new(53);
    let mut all = Vec::new();
    for dtype in scope.dtypes(op::GATHER_MATMUL, None) {
        let mut cases = Vec::new();
        for (i, (m, matrices, [lhs, rhs])) in INDEXED.into_iter().enumerate() {
            for (j, [k, n]) in SIZES.into_iter().enumerate() {
                for layouts in grouped_layouts(scope, 2 * i + j) {
                    let indices = [lhs.to_vec(), rhs.to_vec()];
                    let sizes = [m, k, n];
                    cases.push(gather(scope, sizes, matrices, indices, dtype, layouts, rng));
                }
            }
        }
        for layouts in SHARED {
            let indices = [Vec::new(), Vec::new()];
            cases.push(gather(scope, [3, 64, 17], [3, 3], indices, dtype, layouts, rng));
        }
        // Use many items of one row, and a few items of many rows, for which backends use larger
        // tiles.
        let swapped = [Layout::Contiguous, Layout::Swapped, Layout::Contiguous];
        for layouts in [[Layout::Contiguous; 3], swapped] {
            for sorted in [false, true] {
                let indices = [Vec::new(), choices(150, 6, sorted)];
                cases.push(gather(scope, [1, 64, 40], [150, 6], indices, dtype, layouts, rng));
            }
            let indices = [vec![1, 0], vec![2, 2]];
            cases.push(gather(scope, [130, 100, 70], [2, 3], indices, dtype, layouts, rng));
        }
        all.push(OpUnderTest::new(scope, op::GATHER_MATMUL, None, dtype, cases));
    }
    all
}

fn gather(
    scope: &Scope,
    [m, k, n]: [i64; 3],
    matrices: [i64; 2],
    indices: Indices,
    dtype: DType,
    layouts: [Layout; 3],
    rng: &mut Rng,
) -> Case {
    let mut array = |shape: [i64; 3]| {
        let size = shape.iter().product::<i64>() as usize;
        Array::cycle(dtype, &shape, &ordinary(dtype, size, rng))
    };
    let (a, b) = (array([matrices[0], m, k]), array([matrices[1], k, n]));
    let mut inputs = vec![(a, layouts[0]), (b, layouts[1])];
    let items = add_indices(&mut inputs, &indices, matrices[0]);
    let found = [0, 1].map(|i| !indices[i].is_empty());
    let attributes = GatherMatmulAttrs::new(found[0].into(), found[1].into());
    case(
        format!(
            "{matrices:?} ({m}, {k}) x ({k}, {n}) by {} and {} indices, {} and {}",
            indices[0].len(),
            indices[1].len(),
            layouts[0].name(),
            layouts[1].name()
        ),
        (op::GATHER_MATMUL, words(&attributes)),
        inputs,
        (dtype, vec![items, m, n]),
        |arrays| {
            let mut rest = arrays[2..].iter();
            let indices = found.map(|found| if found { rest.next() } else { None });
            let factors = [&arrays[0], &arrays[1]];
            reference::gather_matmul(factors, indices, items as usize, scope.reduced(dtype))
        },
    )
}

/// Sizes m, k and n, and segments of k.
type Segmented = ([i64; 3], &'static [[i64; 2]]);

const SEGMENTED: [Segmented; 6] = [
    ([3, 5, 4], &[[0, 5]]),
    ([4, 9, 7], &[[0, 4], [4, 4], [4, 9], [7, 2], [1, 6]]),
    ([5, 12, 3], &[[-5, 3], [2, 100], [-7, -2], [12, 40], [LEAST, MOST], [MOST, LEAST]]),
    ([1, 64, 1], &[[0, 64], [1, 63], [63, 64]]),
    ([17, 33, 20], &[[0, 11], [11, 22], [22, 33], [0, 1]]),
    ([70, 200, 65], &[[0, 64], [64, 192], [3, 197], [150, 100]]),
];

/// Cases of SEGMENTED_MATMUL.
pub fn segmented_matmul(scope: &Scope) -> Vec<OpUnderTest> {
    let rng = &mut Rng::new(54);
    let mut all = Vec::new();
    for dtype in scope.dtypes(op::SEGMENTED_MATMUL, None) {
        let mut cases = Vec::new();
        for (i, (sizes, segments)) in SEGMENTED.into_iter().enumerate() {
            // Also use the layouts of the next operation. A matrix is not a batch that could be
            // broadcast.
            let mut layouts = grouped_layouts(scope, 2 * i);
            layouts.extend(grouped_layouts(scope, 2 * i + 3).into_iter().skip(1));
            for layouts in layouts.into_iter().filter(|all| !all.contains(&Layout::Broadcast)) {
                cases.push(segmented(scope, sizes, segments, dtype, layouts, rng));
            }
        }
        for (sizes, layout) in [([6, 40, 7], Layout::Contiguous), ([66, 40, 67], Layout::Swapped)] {
            cases.push(not_finite(scope, sizes, dtype, layout, rng));
        }
        all.push(OpUnderTest::new(scope, op::SEGMENTED_MATMUL, None, dtype, cases));
    }
    all
}

fn factors([m, k, n]: [i64; 3], dtype: DType, rng: &mut Rng) -> [Array; 2] {
    [[m, k], [k, n]].map(|shape| {
        let values = ordinary(dtype, (shape[0] * shape[1]) as usize, rng);
        Array::cycle(dtype, &shape, &values)
    })
}

fn segmented(
    scope: &Scope,
    sizes: [i64; 3],
    segments: &[[i64; 2]],
    dtype: DType,
    layouts: [Layout; 3],
    rng: &mut Rng,
) -> Case {
    of_factors(scope, factors(sizes, dtype, rng), "", segments, dtype, layouts)
}

/// NaN and infinities outside of all segments, and a NaN in one of them.
fn not_finite(scope: &Scope, sizes: [i64; 3], dtype: DType, layout: Layout, rng: &mut Rng) -> Case {
    let segments = [[3, 11], [11, 11], [20, 33]];
    let [mut a, mut b] = factors(sizes, dtype, rng);
    let [m, k, n] = sizes.map(|size| size as usize);
    let outside = |i: &usize| ![3..11, 20..33].iter().any(|segment| segment.contains(i));
    for i in (0..k).filter(outside) {
        for row in 0..m {
            a.values[row * k + i] = Num::Real([f64::NAN, 1.0, f64::INFINITY][(row + i) % 3]);
        }
        for column in 0..n {
            b.values[i * n + column] = Num::Real([f64::NEG_INFINITY, f64::NAN][column % 2]);
        }
    }
    a.values[25] = Num::Real(f64::NAN);
    of_factors(scope, [a, b], " not finite outside of them", &segments, dtype, [layout; 3])
}

fn of_factors(
    scope: &Scope,
    [a, b]: [Array; 2],
    what: &str,
    segments: &[[i64; 2]],
    dtype: DType,
    layouts: [Layout; 3],
) -> Case {
    let (m, k, n) = (a.shape[0], a.shape[1], b.shape[1]);
    let items = segments.len() as i64;
    let held = Array::cycle(DType::I32, &[items, 2], &numbers(&segments.concat()));
    case(
        format!(
            "({m}, {k}) x ({k}, {n}) over {segments:?}{what}, {} and {}, segments {}",
            layouts[0].name(),
            layouts[1].name(),
            layouts[2].name()
        ),
        (op::SEGMENTED_MATMUL, none()),
        vec![(a, layouts[0]), (b, layouts[1]), (held, layouts[2])],
        (dtype, vec![items, m, n]),
        |arrays| {
            let operands = [&arrays[0], &arrays[1], &arrays[2]];
            reference::segmented_matmul(operands, scope.reduced(dtype))
        },
    )
}
