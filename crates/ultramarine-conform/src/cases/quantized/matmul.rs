//! QUANTIZED_MATMUL.

use super::{Range, allowed, describe, each, fitting, formats, is_usual, operands};
use crate::cases::grouped::{INDEXED, Indices, SHARED, add_indices, choices, grouped_layouts};
use crate::cases::{Case, OpUnderTest, Scope, case};
use crate::device::words;
use crate::dtype::{DType, Num};
use crate::reference::quantized::{Format, Packed, matmul as reference};
use crate::tensor::{Array, Layout};
use crate::values::{Rng, ordinary};
use ultramarine_abi::schema::{QuantizedMatmulAttrs, op, quantization};

/// A product: its factors, without their values.
#[derive(Clone)]
struct Shape {
    format: Format,
    transpose: bool,
    /// m, n, k: those that are columns of words are rounded up to whole groups.
    sizes: [i64; 3],
    /// Matrices of x and of the words.
    matrices: [i64; 2],
    indices: Indices,
    /// A number of the first row of words is NaN.
    nan: bool,
}

/// m, n, k of products in which rows of words are columns of the factor, and of those in which they are its rows.
const COLUMNS: [[i64; 3]; 6] =
    [[1, 67, 512], [2, 33, 256], [3, 35, 256], [8, 17, 384], [33, 11, 128], [70, 7, 128]];
const ROWS: [[i64; 3]; 6] =
    [[1, 128, 300], [2, 64, 100], [3, 64, 77], [8, 64, 33], [33, 32, 35], [70, 32, 13]];

/// Products of many rows, for which backends have kernels of their own, and those of [`Scope::full`].
const MANY: [[i64; 3]; 2] = [[130, 200, 192], [130, 256, 72]];
const MORE: [[i64; 3]; 2] = [[130, 200, 512], [130, 256, 512]];

/// Products of few rows, long sums and 4 bits, for which backends have kernels of their own.
const DEEP: [[i64; 3]; 2] = [[2, 17, 2048], [3, 17, 4096]];
const DEEPER: [i64; 3] = [5, 17, 8192];

/// Cases of QUANTIZED_MATMUL.
pub fn quantized_matmul(scope: &Scope) -> Vec<OpUnderTest> {
    let rng = &mut Rng::new(52);
    each(scope, op::QUANTIZED_MATMUL, |mode, dtype| {
        let mut cases = Vec::new();
        for (i, shape) in small(mode, dtype, scope.full).into_iter().enumerate() {
            for (j, layouts) in grouped_layouts(scope, i).into_iter().enumerate() {
                // Other layouts for every second case, of both orientations in turn.
                if j == 0 || scope.full || (i + i / 2).is_multiple_of(2) {
                    cases.push(one(scope, &shape, dtype, layouts, rng));
                }
            }
        }
        for (format, transpose) in formats(mode).into_iter().flat_map(|f| [(f, true), (f, false)]) {
            if is_usual(format) {
                let shape = Shape { matrices: [3, 3], ..plain(format, transpose, [2, 33, 64]) };
                cases.extend(SHARED.map(|layouts| one(scope, &shape, dtype, layouts, rng)));
            }
        }
        for shape in large(mode, dtype, scope.full) {
            cases.push(one(scope, &shape, dtype, [Layout::Contiguous; 3], rng));
        }
        cases
    })
}

/// One product of a format.
fn plain(format: Format, transpose: bool, sizes: [i64; 3]) -> Shape {
    let indices = [Vec::new(), Vec::new()];
    Shape { format, transpose, sizes, matrices: [1, 1], indices, nan: false }
}

/// The products that a dtype has in several layouts.
fn small(mode: u32, dtype: DType, full: bool) -> Vec<Shape> {
    let mut all = Vec::new();
    // Backends compile a kernel for each format and dtype. A dtype has a third of the formats; three dtypes have all.
    let third = [DType::F16, DType::BF16, DType::F32].iter().position(|d| *d == dtype).unwrap_or(0);
    for (i, format) in formats(mode).into_iter().enumerate() {
        let (bits, group) = (i / 3, i % 3);
        for (transpose, list) in [(true, COLUMNS), (false, ROWS)] {
            if is_usual(format) {
                all.extend(list.map(|sizes| plain(format, transpose, sizes)));
            } else if full || (bits + 2 * group + usize::from(transpose) + third).is_multiple_of(3)
            {
                all.push(plain(format, transpose, list[(bits + group) % 6]));
            }
        }
    }
    let indexed = |f: &Format| match (f.bits, f.group) {
        _ if full || is_usual(*f) => true,
        (3, 128) => dtype == DType::F32,
        (8, 32) => dtype == DType::BF16,
        _ => false,
    };
    for format in formats(mode).into_iter().filter(indexed) {
        for (m, matrices, [lhs, rhs]) in INDEXED {
            for (transpose, sizes) in [(true, [m, 19, 64]), (false, [m, 32, 40])] {
                let indices = [lhs.to_vec(), rhs.to_vec()];
                all.push(Shape { matrices, indices, ..plain(format, transpose, sizes) });
            }
        }
    }
    if [quantization::MXFP8, quantization::NVFP4].contains(&mode) {
        for (transpose, sizes) in [(true, [3, 20, 96]), (false, [3, 64, 20])] {
            let format = formats(mode)[0];
            all.push(Shape { nan: true, ..plain(format, transpose, sizes) });
        }
    }
    all
}

/// Products of many rows, and of many matrices of one.
fn large(mode: u32, dtype: DType, full: bool) -> Vec<Shape> {
    let mut all = Vec::new();
    for format in formats(mode).into_iter().filter(|f| is_usual(*f)) {
        if full || format.has_biases() && dtype != DType::F64 {
            let [columns, rows] = if full && format.has_biases() { MORE } else { MANY };
            all.extend([plain(format, true, columns), plain(format, false, rows)]);
        }
        if format.bits == 4 && [DType::F16, DType::BF16].contains(&dtype) {
            all.extend(DEEP.map(|sizes| plain(format, true, sizes)));
            let deeper = full || format.has_biases() && dtype == DType::BF16;
            all.extend(deeper.then(|| plain(format, true, DEEPER)));
        }
        // A mixture of experts.
        let (sizes, rhs) = ([1, 24, 128], |sorted| choices(150, 6, sorted));
        let whole = Shape { matrices: [150, 6], ..plain(format, true, sizes) };
        let experts =
            |lhs: Vec<i64>, sorted| Shape { indices: [lhs, rhs(sorted)], ..whole.clone() };
        if full || format.has_biases() {
            let repeated = (0..150).map(|i| i / 2).collect();
            all.push(Shape { matrices: [75, 6], ..experts(repeated, false) });
            all.push(experts(Vec::new(), false));
            let rows = Shape { transpose: false, sizes: [1, 64, 50], ..whole.clone() };
            all.push(Shape { indices: [Vec::new(), rhs(true)], ..rows });
        }
        if full || format.has_biases() || dtype == DType::BF16 {
            all.push(experts(Vec::new(), true));
        }
    }
    all
}

/// A case of operands in layouts: x, words, and what belongs to them.
fn one(scope: &Scope, shape: &Shape, dtype: DType, layouts: [Layout; 3], rng: &mut Rng) -> Case {
    let Shape { format, transpose, matrices, ref indices, nan, .. } = *shape;
    let [m, mut n, mut k] = shape.sizes;
    if transpose {
        k = fitting(k, format);
    } else {
        n = fitting(n, format);
    }
    let (rows, columns) = if transpose { (n, k) } else { (k, n) };
    let x_shape = [matrices[0], m, k];
    let x = ordinary(dtype, x_shape.iter().product::<i64>() as usize, rng);
    let mut packed = operands(format, &[matrices[1], rows], columns, dtype, Range::Narrow, rng);
    if nan {
        let of = usize::from(format.mode == quantization::NVFP4);
        packed[of].values[0] = Num::Int(packed[of].values[0].int() | 0x7f);
    }
    let attributes = QuantizedMatmulAttrs::new(
        format.mode,
        format.bits,
        format.group,
        transpose.into(),
        format.has_biases().into(),
        format.global_scale.into(),
        u32::from(!indices[0].is_empty()),
        u32::from(!indices[1].is_empty()),
    );
    let mut inputs = vec![(Array::cycle(dtype, &x_shape, &x), layouts[0])];
    let second = packed.into_iter().enumerate().map(|(i, array)| (array, layouts[i.min(1) + 1]));
    inputs.extend(second);
    let items = add_indices(&mut inputs, indices, matrices[0]);
    let what = format!(
        "{}{}: {matrices:?} ({m}, {k}) x ({k}, {n}){} by {} and {} indices, x {}, words {}, scales {}",
        describe(format),
        if nan { ", NaN" } else { "" },
        if transpose { " transposed" } else { "" },
        indices[0].len(),
        indices[1].len(),
        layouts[0].name(),
        layouts[1].name(),
        layouts[2].name()
    );
    let found = [0, 1].map(|i| !indices[i].is_empty());
    case(
        what,
        (op::QUANTIZED_MATMUL, words(&attributes)),
        inputs,
        (dtype, vec![items, m, n]),
        |arrays| {
            let (packed, rest) = Packed::split(format, &arrays[1..]);
            let mut rest = rest.iter();
            let indices = found.map(|found| if found { rest.next() } else { None });
            let allowed = allowed(scope, dtype);
            reference(&arrays[0], &packed, transpose, indices, items as usize, allowed)
        },
    )
}
