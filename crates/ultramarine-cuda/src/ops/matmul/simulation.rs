//! Computes a [`Gemm`] on the CPU and compares it with the product that it was made from.

use super::gemm::{Gemm, MOST_BATCH, alignment, places};
use super::product::Product;
use crate::launch::row_major;
use ultramarine_test_support::Rng;

/// A tensor in its own memory: the offset of its first element, and strides.
struct Tensor {
    memory: Vec<i64>,
    first: i64,
    shape: Vec<i64>,
    strides: Vec<i64>,
}

impl Tensor {
    /// A random layout: axes in any order, with gaps, reversed, or (for inputs) broadcast.
    fn random(shape: &[i64], is_input: bool, plain: bool, rng: &mut Rng) -> Self {
        let rank = shape.len();
        let mut strides = row_major(shape);
        if !plain {
            let mut order: Vec<usize> = (0..rank).collect();
            rng.shuffle(&mut order);
            let mut step = 1;
            for d in order {
                strides[d] = step;
                step *= shape[d] + if rng.below(3) == 0 { rng.below(3) as i64 } else { 0 };
                if is_input && rng.below(8) == 0 {
                    strides[d] = 0;
                } else if is_input && rng.below(8) == 0 {
                    strides[d] *= -1;
                }
                if shape[d] == 1 && rng.below(2) == 0 {
                    strides[d] = rng.below(1000) as i64 - 500;
                }
            }
        }
        let ends = |sign: i64| -> i64 {
            let used = shape.iter().zip(&strides).filter(|(n, s)| **n > 1 && **s * sign > 0);
            used.map(|(n, s)| (n - 1) * s.abs()).sum()
        };
        let (below, above) = (ends(-1), ends(1));
        let memory = (0..below + above + 1).map(|_| rng.below(19) as i64 - 9).collect();
        Self { memory, first: below, shape: shape.to_vec(), strides }
    }

    fn place(&self, batch: &[i64], row: i64, col: i64) -> usize {
        let index = batch.iter().copied().chain([row, col]);
        let offset: i64 = index.zip(&self.strides).map(|(i, s)| i * s).sum();
        (self.first + offset) as usize
    }
}

/// Multiplies a batch of column-major matrices, as the library's documentation defines it.
#[allow(clippy::too_many_arguments)]
fn call(g: &Gemm, a: (&[i64], i64), b: (&[i64], i64), d: (&mut [i64], i64), count: i64) {
    let (m, n, k) = (g.m, g.n, g.k);
    let rows = [if g.transpose[0] { k } else { m }, if g.transpose[1] { n } else { k }, m];
    for (t, rows) in rows.into_iter().enumerate() {
        assert!(g.ld[t] >= rows, "leading dimension {} of {rows} rows", g.ld[t]);
        assert!(g.step[t] >= 0 && (t < 2 || count == 1 || g.step[t] > 0));
    }
    for i in 0..count {
        for col in 0..n {
            for row in 0..m {
                let mut sum = 0;
                for j in 0..k {
                    let of = |t: usize, row: i64, col: i64| {
                        if g.transpose[t] { col + row * g.ld[t] } else { row + col * g.ld[t] }
                    };
                    let x = a.0[(a.1 + i * g.step[0] + of(0, row, j)) as usize];
                    let y = b.0[(b.1 + i * g.step[1] + of(1, j, col)) as usize];
                    sum += x * y;
                }
                d.0[(d.1 + i * g.step[2] + row + col * g.ld[2]) as usize] = sum;
            }
        }
    }
}

/// Runs it as the library is run: copies, followed by calls in a loop.
fn simulate(g: &Gemm, a: &Tensor, b: &Tensor, out: &mut Tensor) {
    let mut operands = if g.swapped { [b, a] } else { [a, b] }.map(|t| (t.memory.clone(), t.first));
    for (operand, pack) in operands.iter_mut().zip(&g.packs) {
        let Some(pack) = pack else { continue };
        let mut copy = vec![i64::MIN; pack.axes.len() as usize];
        for [from, to] in places(&pack.axes) {
            copy[to as usize] = operand.0[(operand.1 + from) as usize];
        }
        assert!(copy.iter().all(|x| *x != i64::MIN), "a copy is written as a whole");
        *operand = (copy, 0);
    }
    let [left, right] = &operands;
    for at in places(&g.outer) {
        let mut first = 0;
        while first < g.count {
            let count = (g.count - first).min(MOST_BATCH);
            let place = |t: usize| at[t] + first * g.step[t];
            call(
                g,
                (&left.0, left.1 + place(0)),
                (&right.0, right.1 + place(1)),
                (&mut out.memory, out.first + place(2)),
                count,
            );
            first += count;
        }
    }
}

fn check(a: &Tensor, b: &Tensor, out: &mut Tensor, bytes: u64) -> Option<Gemm> {
    let shapes = [&a.shape[..], &b.shape[..], &out.shape[..]];
    let strides = [&a.strides[..], &b.strides[..], &out.strides[..]];
    let product = Product::new(shapes, strides).unwrap();
    let gemm = Gemm::of(&product, bytes)?;
    simulate(&gemm, a, b, out);
    let rank = out.shape.len() - 2;
    let [m, n] = [out.shape[rank], out.shape[rank + 1]];
    let batch = row_major(&out.shape[..rank]);
    for i in 0..out.shape[..rank].iter().product() {
        let index: Vec<i64> = (0..rank).map(|d| i / batch[d] % out.shape[d]).collect();
        for row in 0..m {
            for col in 0..n {
                let term =
                    |j: i64| a.memory[a.place(&index, row, j)] * b.memory[b.place(&index, j, col)];
                let sum: i64 = (0..a.shape[rank + 1]).map(term).sum();
                assert_eq!(out.memory[out.place(&index, row, col)], sum, "{product:?} {gemm:?}");
            }
        }
    }
    Some(gemm)
}

#[test]
fn random_products_are_right() {
    let rng = &mut Rng::new(7);
    let (mut made, mut packed, mut looped, mut swapped) = (0, 0, 0, 0);
    for round in 0..4000 {
        let mut size = || 1 + (rng.below(2) * rng.below(6)) as i64;
        let (m, n, k) = (size(), size(), size());
        let batch: Vec<i64> = (0..round % 4).map(|_| size()).collect();
        let shape = |x: i64, y: i64| [&batch[..], &[x, y]].concat();
        let plain = rng.below(4) == 0;
        let a = Tensor::random(&shape(m, k), true, plain, rng);
        let b = Tensor::random(&shape(k, n), true, plain, rng);
        let is_plain = rng.below(3) > 0;
        let mut out = Tensor::random(&shape(m, n), false, is_plain, rng);
        // With large elements, copies are expensive and calls in a loop are cheap.
        let bytes = if rng.below(2) == 0 { 4 } else { 1 << 30 };
        let Some(gemm) = check(&a, &b, &mut out, bytes) else { continue };
        made += 1;
        packed += usize::from(gemm.packs.iter().any(Option::is_some));
        looped += usize::from(gemm.calls() > 1);
        swapped += usize::from(gemm.swapped);
    }
    // All variants have to occur, otherwise the test covers only some of them.
    assert!(made > 2500 && packed > 300 && looped > 100, "{made} {packed} {looped}");
    assert!(swapped > 1000 && swapped < made, "{swapped} of {made}");
}

/// A tensor with a row-major shape, whose axes have the given strides.
fn strided(shape: &[i64], strides: &[i64]) -> (Vec<i64>, Vec<i64>) {
    (shape.to_vec(), strides.to_vec())
}

fn gemm(
    a: &(Vec<i64>, Vec<i64>),
    b: &(Vec<i64>, Vec<i64>),
    out: &[i64],
    bytes: u64,
) -> Option<Gemm> {
    let strides = row_major(out);
    let product = Product::new([&a.0, &b.0, out], [&a.1, &b.1, &strides]).unwrap();
    Gemm::of(&product, bytes)
}

#[test]
fn common_products_take_one_call_without_copies() {
    let (m, k, n) = (512, 256, 128);
    let plain = |shape: &[i64]| strided(shape, &row_major(shape));
    let transpose = strided(&[k, n], &[1, k]);
    for (a, b, out, transpose) in [
        (plain(&[m, k]), plain(&[k, n]), vec![m, n], [false, false]),
        (plain(&[m, k]), transpose, vec![m, n], [true, false]),
        (strided(&[m, k], &[1, m]), plain(&[k, n]), vec![m, n], [false, true]),
        (plain(&[8, m, k]), plain(&[8, k, n]), vec![8, m, n], [false, false]),
        // A linear layer, in which the batch becomes rows.
        (plain(&[8, m, k]), strided(&[8, k, n], &[0, 1, k]), vec![8, m, n], [true, false]),
    ] {
        let found = gemm(&a, &b, &out, 2).unwrap();
        assert!(found.swapped && found.calls() == 1 && found.packs.iter().all(Option::is_none));
        assert_eq!(found.transpose, transpose, "{a:?} {b:?}");
    }
}

#[test]
fn heads_that_do_not_lie_together_are_copied_if_small_and_looped_if_large() {
    // Attention: queries (batch, heads, length, width) whose memory order is (batch, length, heads,
    // width).
    let heads = |batch: i64, length: i64| {
        let query = strided(&[batch, 16, length, 64], &[length * 1024, 64, 1024, 1]);
        let key = strided(&[batch, 16, 64, length], &[length * 1024, 64, 1, 1024]);
        gemm(&query, &key, &[batch, 16, length, length], 2).unwrap()
    };
    let small = heads(32, 64);
    assert!(small.calls() == 1 && small.packs.iter().all(Option::is_some));
    let large = heads(2, 65536);
    assert!(large.calls() == 2 && large.packs.iter().all(Option::is_none));
}

#[test]
fn what_the_library_cannot_do_is_left_to_our_own_kernels() {
    let (one, many) = (strided(&[1 << 33, 2], &[2, 1]), strided(&[2, 2], &[2, 1]));
    assert!(gemm(&one, &many, &[1 << 33, 2], 2).is_none());
    // Results with a stride of 2.
    let strides = [&[2, 1][..], &[2, 1], &[4, 2]];
    let product = Product::new([&[2, 2]; 3], strides).unwrap();
    assert!(Gemm::of(&product, 4).is_none());
}

#[test]
fn alignment_is_that_of_all_places() {
    assert_eq!(alignment(0x1000, [], 2), 256);
    assert_eq!(alignment(0x1010, [], 2), 16);
    assert_eq!(alignment(0x1000, [3], 2), 2);
    assert_eq!(alignment(0x1000, [64, 8], 2), 16);
    assert_eq!(alignment(0x1002, [64, 8], 2), 2);
}

#[test]
fn large_batches_take_several_calls() {
    let rng = &mut Rng::new(3);
    let batch = MOST_BATCH + 5;
    let mut tensor = |shape: &[i64]| Tensor::random(shape, true, true, rng);
    let (a, b) = (tensor(&[batch, 2, 3]), tensor(&[batch, 3, 2]));
    let gemm = check(&a, &b, &mut tensor(&[batch, 2, 2]), 4).unwrap();
    assert_eq!((gemm.calls(), gemm.count), (2, batch));
}
