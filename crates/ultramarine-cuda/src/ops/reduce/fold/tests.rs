use super::*;

const H200: u64 = 132 * 2048;

/// The choice for a float32 tensor with these strides at an aligned address.
fn fold(shape: &[i64], strides: &[i64], axes: u64) -> Fold {
    let out: Vec<i64> =
        shape.iter().enumerate().map(|(i, n)| if axes >> i & 1 == 1 { 1 } else { *n }).collect();
    let out = crate::launch::row_major(&out);
    let (strides, places) = ([strides], [(4096, 4)]);
    Fold::on(
        H200,
        &Problem { shape, strides: &strides, places: &places, out: &out, axes, vector: 4 },
    )
}

fn row_major(shape: &[i64], axes: u64) -> Fold {
    fold(shape, &crate::launch::row_major(shape), axes)
}

#[test]
fn what_is_next_in_memory_decides() {
    let kinds = |shape: &[i64], axes| {
        let fold = row_major(shape, axes);
        (fold.variant.kind, fold.variant.vector, fold.segments > 1)
    };
    assert_eq!(kinds(&[16384, 4096], 0b10), (Kind::Rows(256), 4, false));
    assert_eq!(kinds(&[16384, 4096], 0b01), (Kind::Columns, 4, true));
    assert_eq!(kinds(&[1 << 28], 0b1), (Kind::Rows(256), 4, true));
    assert_eq!(kinds(&[100_003], 0b1), (Kind::Rows(256), 4, true));
    assert_eq!(kinds(&[1 << 20, 8], 0b10), (Kind::Rows(1), 4, false));
    assert_eq!(kinds(&[1 << 20, 7], 0b10), (Kind::Rows(8), 1, false));
    assert_eq!(kinds(&[64, 4096, 64], 0b010), (Kind::Columns, 4, true));
    assert_eq!(kinds(&[64, 128, 4096], 0b101), (Kind::Rows(256), 4, true));
    // A transposed matrix is walked in the other order.
    let transpose = fold(&[4096, 16384], &[1, 4096], 0b01);
    assert_eq!((transpose.variant.kind, transpose.variant.vector), (Kind::Rows(256), 4));
}

/// The choice for a tensor with these strides that keeps the order of a row-major tensor, and whether its elements
/// are gathered.
fn like(shape: &[i64], strides: &[i64], address: u64, axes: u64) -> Option<(Kind, u32, bool)> {
    let out = crate::launch::row_major(
        &shape
            .iter()
            .enumerate()
            .map(|(i, n)| if axes >> i & 1 == 1 { 1 } else { *n })
            .collect::<Vec<_>>(),
    );
    let (strides, places) = ([strides], [(address, 4)]);
    let problem = Problem { shape, strides: &strides, places: &places, out: &out, axes, vector: 4 };
    let plain = row_major(shape, axes);
    let fold = Fold::on(H200, &problem).like(&plain, &problem)?;
    assert!(fold.joins_like(&plain));
    Some((fold.variant.kind, fold.variant.vector, fold.variant.gather))
}

#[test]
fn strides_do_not_change_the_order() {
    let matrix = [4096i64, 4096];
    let rows = |gather| Some((Kind::Rows(256), 4, gather));
    assert_eq!(like(&matrix, &[4096, 1], 4096, 0b10), rows(false));
    // Misaligned, reversed, and broadcast along rows.
    assert_eq!(like(&matrix, &[4096, 1], 4100, 0b10), rows(true));
    assert_eq!(like(&matrix, &[-4096, -1], 4096, 0b10), rows(true));
    assert_eq!(like(&matrix, &[0, 1], 4096, 0b10), rows(true));
    assert_eq!(like(&matrix, &[0, 0], 4096, 0b10), rows(true));
    assert_eq!(like(&matrix, &[4096, -1], 4096, 0b01), Some((Kind::Columns, 4, true)));
    // A transposed matrix is copied.
    assert_eq!(like(&matrix, &[1, 4096], 4096, 0b10), None);
    assert_eq!(like(&matrix, &[1, 4096], 4096, 0b01), None);
}

#[test]
fn joined_axes_take_the_smallest_room() {
    assert_eq!(row_major(&[4, 5, 6], 0b111).variant.ranks, (4, 1));
    assert_eq!(row_major(&[4, 5, 6], 0b101).variant.ranks, (4, 2));
    assert_eq!(row_major(&[3, 2, 3, 2, 3, 2], 0b010101).variant.ranks, (4, 4));
    assert_eq!(row_major(&[2; 10], 0b0101010101).variant.ranks, (32, 32));
    assert_eq!(row_major(&[3, 4], 0).count, 1);
}

#[test]
fn segments_hold_everything_once() {
    for shape in [[1000, 70], [3, 1_000_003], [1_000_003, 3], [1, 17]] {
        for axes in 0..4 {
            let fold = row_major(&shape, axes);
            assert_eq!(fold.outputs * fold.count, (shape[0] * shape[1]) as u64);
            let length = fold.words[2];
            assert!(length * fold.segments >= fold.count, "{shape:?} {axes}");
            assert!(length * (fold.segments - 1) < fold.count, "{shape:?} {axes}");
        }
    }
}

#[test]
fn large_tensors_have_wide_indices() {
    assert!(!row_major(&[1 << 15, 1 << 15], 1).variant.wide);
    assert!(row_major(&[1 << 16, 1 << 15], 1).variant.wide);
    assert!(fold(&[4, 2], &[1 << 30, 1], 1).variant.wide);
}

#[test]
fn magic_divides() {
    for size in [1i64, 2, 3, 5, 7, 10, 64, 641, 1000, 65_537, (1 << 30) - 1, 1 << 30] {
        let word = magic(size);
        let (factor, shift) = (word & 0xffff_ffff, word >> 32);
        for n in [0i64, 1, 2, size - 1, size, size + 1, 3 * size - 1, (1 << 31) - 1, 123_456_789] {
            let n = n.min((1 << 31) - 1) as u64;
            let q = (((n * factor) >> 32) + n) as u32 >> shift;
            assert_eq!(u64::from(q), n / size as u64, "{n} / {size}");
        }
    }
}
