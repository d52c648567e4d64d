//! Rows of the table: functions of one matrix, whose elements are all different.

use super::{Case, Function, Operand, ints};
use ultramarine::{Array, KeepDims, Update, addmm, index};

/// Functions of a (3, 4) matrix without ties or zeros.
const OF_A_MATRIX: &[(&str, Function)] = &[
    ("sum, of a matrix", |x| x[0].sum(0)),
    ("prod all, of a matrix", |x| x[0].prod(None)),
    ("prod, of a matrix", |x| x[0].prod(KeepDims(0))),
    ("max, of a matrix", |x| x[0].max(1)),
    ("min, of a matrix", |x| x[0].min(None)),
    ("mean, of a matrix", |x| x[0].mean(0)),
    ("var, of a matrix", |x| x[0].var(1, 1)),
    ("std, of a matrix", |x| x[0].std(None, 0)),
    ("median, of a matrix", |x| x[0].median(1)),
    ("logsumexp, of a matrix", |x| x[0].logsumexp(1)),
    ("softmax, of a matrix", |x| x[0].softmax(0, false)),
    ("cumsum, of a matrix", |x| x[0].cumsum(Some(0), true, false)),
    ("cumprod, of a matrix", |x| x[0].cumprod(Some(1), false, true)),
    ("cumprod reverse, of a matrix", |x| x[0].cumprod(Some(1), true, false)),
    ("cummax, of a matrix", |x| x[0].cummax(Some(1), false, true)),
    ("cummin, of a matrix", |x| x[0].cummin(None, true, true)),
    ("logcumsumexp, of a matrix", |x| x[0].logcumsumexp(Some(1), false, true)),
    ("logcumsumexp reverse, of a matrix", |x| x[0].logcumsumexp(Some(0), true, true)),
    ("sort, of a matrix", |x| x[0].sort(Some(1))),
    ("topk, of a matrix", |x| x[0].topk(2, Some(0))),
    ("matmul, of a matrix", |x| x[0].matmul(&x[0].transpose_axes([1, 0])?)),
    ("matmul vector, of a matrix", |x| x[0].matmul(&x[0].index(&index![1])?)),
    ("addmm, of a matrix", |x| addmm(&x[0], &x[0].index(&index![.., ..3])?, &x[0], 2.0, 3.0)),
    ("tensordot, of a matrix", |x| x[0].tensordot(&x[0], 2)),
    ("outer, of a matrix", |x| x[0].outer(&x[0].index(&index![0])?)),
    ("vecdot, of a matrix", |x| x[0].vecdot(&x[0], 0)),
    ("take, of a matrix", |x| x[0].take(&ints(&[1, 1, -1], &[3])?, Some(0))),
    ("take last, of a matrix", |x| x[0].take(&ints(&[1, 1, -1], &[3])?, Some(1))),
    ("gather, of a matrix", |x| {
        x[0].index(&index![&ints(&[0, 2, 2], &[3])?, &ints(&[3, 1, 1], &[3])?])
    }),
    ("along, of a matrix", |x| {
        x[0].take_along_axis(&ints(&[2, 0], &[2])?.reshape(&[2, 1])?, Some(0))
    }),
    ("put, of a matrix", |x| {
        let at = ints(&[2, 0], &[2])?.reshape(&[1, 2])?;
        x[0].put_along_axis(&at, &x[0].index(&index![.., 2..])?, Some(1))
    }),
    ("set, of a matrix", |x| {
        x[0].index_update(&index![&ints(&[2, 0], &[2])?], &x[0].index(&index![1])?, Update::Set)
    }),
    ("add, of a matrix", |x| {
        x[0].index_update(&index![&ints(&[2, 2], &[2])?], &x[0].index(&index![..2])?, Update::Add)
    }),
    ("multiply, of a matrix", |x| {
        x[0].index_update(
            &index![.., &ints(&[2, 2], &[2])?],
            &x[0].index(&index![.., ..2])?,
            Update::Multiply,
        )
    }),
    ("maximum, of a matrix", |x| {
        let at = index![&ints(&[0, 0, 1], &[3])?, &ints(&[1, 1, 0], &[3])?];
        x[0].index_update(&at, &x[0].index(&index![2, 1..])?, Update::Maximum)
    }),
    ("slice, of a matrix", |x| {
        x[0].index_update(&index![1, 1..3], &x[0].index(&index![0, ..2])?, Update::Multiply)
    }),
    ("mask, of a matrix", |x| {
        let mask = Array::from_slice(&[true, false, true], &[3])?;
        x[0].index_update(&index![&mask], &x[0].index(&index![1..])?, Update::Set)
    }),
];

pub fn cases() -> Vec<Case> {
    // Twelve elements: -0.63, -0.5 ... 0.8.
    let matrix = || Operand { shape: &[3, 4], low: -0.695, high: 0.865, distinct: true };
    OF_A_MATRIX.iter().map(|&(name, f)| Case { name, operands: vec![matrix()], f }).collect()
}
