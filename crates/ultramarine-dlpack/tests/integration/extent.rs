//! Extents of views, compared with a walk over all elements.

use ultramarine_dlpack::{byte_range, element_range};
use ultramarine_test_support::Rng;

/// The offsets of all elements.
fn offsets(axes: &[(i64, i64)]) -> Vec<i64> {
    axes.iter().fold(vec![0], |before, (size, stride)| {
        before.iter().flat_map(|at| (0..*size).map(move |i| at + i * stride)).collect()
    })
}

#[test]
fn ranges_are_those_of_all_elements() {
    let mut random = Rng::new(18);
    for _ in 0..20_000 {
        let axes: Vec<(i64, i64)> =
            (0..random.below(5)).map(|_| (random.between(1, 4), random.between(-9, 9))).collect();
        let all = offsets(&axes);
        let (low, high) = (all.iter().min().copied(), all.iter().max().copied());
        assert_eq!(element_range(axes.iter().copied()), low.zip(high), "{axes:?}");
        let bits = *random.pick(&[1, 4, 6, 8, 16, 24, 32, 64, 128]);
        let bytes = all.iter().flat_map(|at| {
            let first = at * bits;
            (first..first + bits).map(|bit| bit.div_euclid(8))
        });
        let (first, last) = (bytes.clone().min(), bytes.max());
        let expected = first.zip(last.map(|last| last + 1));
        assert_eq!(byte_range(axes.iter().copied(), bits as usize), expected, "{axes:?} {bits}");
    }
}

/// Extreme numbers either give the exact result of 128-bit arithmetic or `None`, which they give only where the result
/// or a sum over several axes leaves 64 bits.
#[test]
fn overflow_is_reported() {
    let extreme = [i64::MIN, i64::MIN + 1, -(1 << 32), -1, 0, 1, 1 << 31, 1 << 62, i64::MAX];
    for stride in extreme {
        for size in [1, 2, 3, 1 << 31, 1 << 40, i64::MAX] {
            let last = i128::from(size - 1) * i128::from(stride);
            let expected = i64::try_from(last).ok().map(|last| (last.min(0), last.max(0)));
            assert_eq!(element_range([(size, stride)]), expected, "{size} {stride}");
            for bits in [4, 8, 64, usize::MAX] {
                let exact = || {
                    let (low, high) = expected?;
                    let bits = i128::try_from(bits).ok()?;
                    let first = i128::from(low).checked_mul(bits)?.div_euclid(8);
                    let end =
                        (i128::from(high) + 1).checked_mul(bits)?.checked_add(7)?.div_euclid(8);
                    Some((i64::try_from(first).ok()?, i64::try_from(end).ok()?))
                };
                let found = byte_range([(size, stride)], bits);
                if bits == usize::MAX {
                    assert_eq!(found, None, "no element has so many bits");
                } else {
                    assert_eq!(found, exact(), "{size} {stride} {bits}");
                }
            }
        }
    }
    assert_eq!(element_range([(2, i64::MAX), (2, 1)]), None);
    assert_eq!(element_range([(2, i64::MIN), (2, -1)]), None);
    assert_eq!(element_range([(2, i64::MAX), (2, i64::MIN)]), Some((i64::MIN, i64::MAX)));
    assert_eq!(element_range([(i64::MIN, 1)]), None);
    assert_eq!(byte_range([], 64), Some((0, 8)));
}
