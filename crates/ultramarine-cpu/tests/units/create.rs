//! Ranges and one value everywhere, at every level.

use crate::testing::{Array, Sample, run_with};
use ultramarine_cpu::kernel::{Prepared, Signature};
use ultramarine_cpu::level::Level;
use ultramarine_cpu::tested::families::{arange, fill};
use ultramarine_test_support::Rng;

type Prepare = fn(&Signature<'_>, Level) -> Prepared;

fn check<T: Sample>(prepare: Prepare, scalars: &[[u64; 2]], want: impl Fn(i64) -> u64) {
    let rng = &mut Rng::new(7);
    for &level in Level::available() {
        for (n, plain) in [(1, true), (5, false), (512, false), (70_001, false), (70_001, true)] {
            let zeros = vec![T::sample(0); n as usize];
            let output = Array::new(&[n], &zeros, plain, rng);
            run_with(prepare, &[], &output.view(), (level, n > 512), scalars).unwrap();
            for (i, value) in (0..n).zip(output.values()) {
                assert_eq!(value.bits(), want(i), "{level:?} {n} at {i}");
            }
        }
    }
}

#[test]
fn arange_and_fill() {
    let float = [[1.5f64.to_bits(), 0], [0.25f64.to_bits(), 0]];
    let int = [[-7i64 as u64, 0], [3, 0]];
    check::<f32>(arange, &float, |i| (1.5 + 0.25 * i as f32).to_bits().into());
    check::<i32>(arange, &int, |i| ((3 * i - 7) as u32).into());
    check::<i32>(fill, &int[..1], |_| (-7i32 as u32).into());
}
