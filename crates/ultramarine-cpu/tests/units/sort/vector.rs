//! Against the standard library's sort.

use crate::testing::host;
use ultramarine_cpu::level::Level;
use ultramarine_cpu::par::{Par, Shared};
use ultramarine_cpu::tested::vector::{Lane, arrange, sort_by};
use ultramarine_test_support::Rng;

/// Keys in all kinds of order.
const PATTERNS: [fn(usize, usize, &mut Rng) -> u64; 8] = [
    |_, _, rng| rng.bits(),
    |i, _, _| i as u64,
    |i, n, _| (n - i) as u64,
    |_, _, _| 5,
    |_, _, rng| rng.below(3) as u64,
    |_, _, rng| if rng.below(2) == 0 { u64::MAX } else { rng.bits() >> 32 },
    |i, _, _| (i % 17) as u64,
    |i, n, _| i.min(n - i) as u64,
];

/// A key of 64 bits, and of its lower 32.
fn keys<L: Lane>(n: usize, pattern: usize, rng: &mut Rng, cut: fn(u64) -> L) -> Vec<L> {
    (0..n).map(|i| cut(PATTERNS[pattern](i, n, rng))).collect()
}

fn sorts<L: Lane + std::fmt::Debug>(cut: fn(u64) -> L) {
    let rng = &mut Rng::new(3);
    for n in (0..=600).chain([1023, 1024, 5000, 70_001]) {
        for pattern in 0..PATTERNS.len() {
            let given = keys(n, pattern, rng, cut);
            let (mut sorted, mut expected) = (given.clone(), given.clone());
            expected.sort();
            assert!(arrange(Level::V4, &mut sorted, None));
            assert_eq!(sorted, expected, "{n} {pattern}");
            if n == 0 {
                continue;
            }
            for k in [0, n - 1, rng.below(n), rng.below(n)] {
                let mut parted = given.clone();
                assert!(arrange(Level::V4, &mut parted, Some(k)));
                assert_eq!(parted[k], expected[k], "{n} {pattern} {k}");
                assert!(parted[..k].iter().all(|key| *key <= expected[k]), "{n} {pattern} {k}");
                assert!(parted[k..].iter().all(|key| *key >= expected[k]), "{n} {pattern} {k}");
                parted.sort();
                assert!(parted == expected, "{n} {pattern} {k}");
            }
        }
    }
}

fn sorts_long<L: Lane + std::fmt::Debug>(cut: fn(u64) -> L) {
    let rng = &mut Rng::new(5);
    for n in [1, 17, 1000, 65_536, 300_007] {
        for pattern in 0..PATTERNS.len() {
            let given = keys(n, pattern, rng, cut);
            let mut expected = given.clone();
            expected.sort();
            let make = |start: usize, keys: &mut [L]| {
                keys.copy_from_slice(&given[start..start + keys.len()]);
            };
            for buckets in [4, 8, 16] {
                let mut sorted = vec![cut(0); n];
                let mut finished = vec![0u8; n];
                let place = Shared(finished.as_mut_ptr());
                let finish = |range: std::ops::Range<usize>| {
                    for i in range {
                        // SAFETY: below the length; ranges are disjoint, which is what is tested.
                        unsafe { *place.get().add(i) += 1 };
                    }
                };
                let (par, to) = (Par::new(host()), sorted.as_mut_ptr());
                // SAFETY: the level was asked for, and there is room for the keys.
                unsafe {
                    match buckets {
                        4 => sort_by::<L, 4>(par, n, to, make, finish),
                        8 => sort_by::<L, 8>(par, n, to, make, finish),
                        _ => sort_by::<L, 16>(par, n, to, make, finish),
                    }
                }
                assert!(sorted == expected, "{n} {pattern} {buckets}");
                assert!(finished.iter().all(|times| *times == 1), "{n} {pattern} {buckets}");
            }
        }
    }
}

#[test]
fn keys_are_sorted_and_parted() {
    if Level::detected() >= Level::V4 {
        sorts(|key| key as u32);
        sorts(|key| key);
        sorts_long(|key| key as u32);
        sorts_long(|key| key);
    }
}

#[test]
fn lower_levels_do_without() {
    assert!(!arrange(Level::V3, &mut [2u32, 1], None));
}
