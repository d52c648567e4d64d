//! Binary search, against the standard library's.

use crate::testing::lanes::{Value, sampled};
use crate::testing::{Array, dtypes, run, shape};
use ultramarine_abi::schema::SearchAttrs;
use ultramarine_cpu::tested::families::search as prepare;
use ultramarine_cpu::{dtype::DType, kernel::Signature, level::Level, tested::Sortable};
use ultramarine_test_support::Rng;

#[test]
fn searches() {
    fn check<T: Value + Sortable>(rng: &mut Rng, level: Level) {
        for round in 0..30 {
            let (n, batch) = (1 + rng.below(40), shape(round % 3, 4, rng));
            let sizes = [&batch[..], &shape(round % 4, 9, rng)].concat();
            let wide = [&batch[..], &[n as i64]].concat();
            let mut rows = sampled::<T>(&wide, true, true, rng).values();
            rows.chunks_mut(n).for_each(|row| row.sort_by_key(|v| v.key()));
            let values = sampled::<T>(&sizes, true, round % 2 == 0, rng);
            let sorted = Array::new(&wide, &rows, round % 3 == 0, rng);
            let size = sizes.iter().product::<i64>() as usize;
            let found = Array::new(&sizes, &vec![0u32; size], round % 5 == 0, rng);
            let of_row = size * n / rows.len();
            for right in [false, true] {
                let prepare =
                    |s: &Signature<'_>, _: Level| prepare(SearchAttrs::new(right.into()), s);
                let inputs = [sorted.view(), values.view()];
                run(prepare, &inputs, &found.view(), level, round % 2 == 1).unwrap();
                let expected: Vec<u32> = (values.values().iter().enumerate())
                    .map(|(i, value)| {
                        let row = &rows[i / of_row * n..][..n];
                        let before = |v: &T| match right {
                            false => v.key() < value.key(),
                            true => v.key() <= value.key(),
                        };
                        row.partition_point(before) as u32
                    })
                    .collect();
                assert_eq!(found.values(), expected, "{:?} {wide:?} {sizes:?}", T::DTYPE);
            }
        }
    }
    let rng = &mut Rng::new(36);
    for level in Level::available() {
        for dtype in dtypes().into_iter().filter(|d| *d != DType::C64) {
            for_dtype!(dtype, T => check::<T>(rng, *level));
        }
    }
}
