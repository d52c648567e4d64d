//! Tests of layouts: they compute which elements the kernel would access, and check how tensors are
//! divided.

use super::*;
use crate::launch::row_major;

const F32: u64 = 4;

fn place(strides: &[i64]) -> Place<'_> {
    Place { address: 0, bytes: F32, strides }
}

/// Offsets of all tensors at all indices, computed from the words in the same way as the kernel
/// does.
fn replay(layout: &Layout, tensors: usize, pack: i64) -> Vec<Vec<i64>> {
    let Variant::Walk { packs, rank, .. } = layout.variant else { panic!("a walk") };
    let pack = if packs { pack } else { 1 };
    let w: Vec<i64> = layout.words.iter().map(|w| *w as i64).collect();
    let [rows, columns, in_row, across, tiles, shift, axes, _] = w[..8] else { panic!("8 words") };
    let (sizes, rest) = w[8..].split_at(rank);
    let (inner, strides) = rest.split_at(tensors);
    assert_eq!(strides.len(), rank * tensors);
    let mut seen = Vec::new();
    layout
        .each(tensors, |offsets| {
            for (tile, thread) in (0..tiles).flat_map(|t| (0..256).map(move |i| (t, i))) {
                let (down, lane) = (tile / across, thread & ((1 << shift) - 1));
                let nth = ((tile % across) << shift) + lane;
                let row = down * (256 >> shift) + (thread >> shift);
                if nth >= in_row || row >= rows {
                    continue;
                }
                for column in nth * pack..(nth * pack + pack).min(columns) {
                    let (mut row, mut at) = (row, vec![0; tensors]);
                    for d in (0..axes as usize).rev() {
                        let index = if d > 0 { row % sizes[d] } else { row };
                        row /= sizes[d];
                        (0..tensors).for_each(|k| at[k] += index * strides[k * rank + d]);
                    }
                    (0..tensors).for_each(|k| at[k] += column * inner[k] + offsets[k]);
                    seen.push(at);
                }
            }
            Ok::<_, ()>(())
        })
        .unwrap();
    seen.sort();
    seen
}

fn expected(shape: &[i64], strides: &[&[i64]]) -> Vec<Vec<i64>> {
    let count: i64 = shape.iter().product();
    let mut all: Vec<Vec<i64>> = (0..count)
        .map(|mut i| {
            let mut at = vec![0; strides.len()];
            for d in (0..shape.len()).rev() {
                at.iter_mut().zip(strides).for_each(|(a, s)| *a += i % shape[d] * s[d]);
                i /= shape[d];
            }
            at
        })
        .collect();
    all.sort();
    all
}

fn check(shape: &[i64], strides: &[&[i64]], constants: usize, pack: usize) -> Layout {
    let places: Vec<_> = strides.iter().map(|s| place(s)).collect();
    let layout = Layout::of(shape, &places, strides.len() - 1, constants, pack);
    let found = replay(&layout, strides.len(), pack as i64);
    assert!(found == expected(shape, strides), "{shape:?} {strides:?} {pack}: {layout:?}");
    layout
}

fn packs(layout: &Layout) -> bool {
    matches!(layout.variant, Variant::Walk { packs: true, .. })
}

#[test]
fn every_element_is_done_once() {
    for shape in [&[7, 64][..], &[3, 5, 12], &[1000], &[1], &[], &[300, 1, 3], &[2, 3, 4, 5, 6, 8]]
    {
        let plain = row_major(shape);
        let none = vec![0; shape.len()];
        let reversed: Vec<i64> = row_major(&shape.iter().rev().copied().collect::<Vec<_>>());
        let transpose: Vec<i64> = reversed.into_iter().rev().collect();
        let back: Vec<i64> = plain.iter().map(|s| -s).collect();
        let mut bias = plain.clone();
        bias[..shape.len().saturating_sub(1)].fill(0);
        let mut column = row_major(&shape[..shape.len().saturating_sub(1)]);
        column.resize(shape.len(), 0);
        for pack in [1, 4, 8] {
            check(shape, &[&plain, &plain], 0, pack);
            check(shape, &[&none, &plain, &plain], 2, pack);
            check(shape, &[&transpose, &plain], 0, pack);
            check(shape, &[&bias, &column, &back, &plain], 0, pack);
            check(shape, &[&plain, &transpose], 0, pack);
        }
    }
}

#[test]
fn axes_beyond_the_parameters_have_launches_of_their_own() {
    // No axes can be joined with these strides.
    let shape = [2_i64; 19];
    let mut strides = row_major(&shape);
    strides.swap(0, 18);
    for i in (2..18).step_by(2) {
        strides.swap(i - 1, i);
    }
    let plain = row_major(&shape);
    let mut all: Vec<&[i64]> = vec![&strides; 31];
    all.push(&plain);
    let layout = check(&shape, &all, 32, 4);
    assert!(!layout.beyond.is_empty());
    assert!(8 * (layout.words.len() + all.len() + 32) <= PARAMETERS);
    let few = check(&shape, &[&strides, &plain], 0, 4);
    assert!(few.beyond.is_empty());
    assert!(matches!(few.variant, Variant::Walk { rank: MAX_AXES, .. }));
}

#[test]
fn packs_need_outputs_that_have_them() {
    let bias = |n: i64| check(&[50, n], &[&[n, 1], &[0, 1], &[n, 1]], 0, 4);
    assert!(packs(&bias(64)));
    assert_eq!(bias(64).words[7], 0b111);
    assert!(!packs(&bias(65)));
    let scalar = check(&[501], &[&[1], &[0], &[1]], 0, 4);
    assert!(packs(&scalar));
    assert_eq!(scalar.words[7], 0b101);
    // A transposed input is gathered; the output is written in packs.
    let transpose = check(&[64, 64], &[&[1, 64], &[64, 1]], 0, 4);
    assert!(packs(&transpose));
    assert_eq!((transpose.words[5], transpose.words[7]), (3, 0b10));
    let odd = Place { address: 4, bytes: 4, strides: &[1] };
    let whole = Place { address: 16, ..odd };
    assert!(!packs(&Layout::of(&[100], &[whole, odd], 1, 0, 4)));
    assert!(packs(&Layout::of(&[100], &[odd, whole], 1, 0, 4)));
}

#[test]
fn tiles_waste_few_threads() {
    for (rows, packs) in [(1, 1), (1, 5), (1, 100_000), (2, 300), (1000, 275), (9, 3), (64, 1)] {
        let s = shift(rows, packs, 256);
        let across = packs.div_ceil(1 << s);
        let tiles = across * rows.div_ceil(256 >> s);
        let least = (rows * packs).div_ceil(256);
        assert!(
            tiles <= 2 * least + 1,
            "{rows} x {packs}: {tiles} tiles of 2^{s}, {least} at least"
        );
    }
    assert_eq!(shift(1, 1 << 20, 256), 8);
    assert_eq!(shift(4096, 1024, 256), 8);
    assert_eq!(shift(4096, 4096, 8), 3);
}

#[test]
fn indices_are_wide_where_they_have_to_be() {
    let wide = |shape: &[i64], strides: &[&[i64]]| {
        let places: Vec<_> = strides.iter().map(|s| place(s)).collect();
        let layout = Layout::of(shape, &places, strides.len() - 1, 0, 4);
        matches!(layout.variant, Variant::Walk { wide: true, .. })
    };
    assert!(!wide(&[1 << 15, 1 << 15], &[&[0, 1], &[1 << 15, 1]]));
    assert!(wide(&[1 << 16, 1 << 15], &[&[0, 1], &[1 << 15, 1]]));
    assert!(wide(&[100, 100], &[&[1 << 30, 1], &[100, 1]]));
    assert!(wide(&[100, 100], &[&[-(1 << 30), 1], &[100, 1]]));
}
