//! Against references that are written the plain way.

mod search;
#[cfg(target_arch = "x86_64")]
mod vector;

use crate::testing::lanes::{Value, any_shape, lanes, sampled};
use crate::testing::{Array, dtypes, run, run_with};
use half::{bf16, f16};
use std::cmp::Ordering;
use ultramarine_abi::schema::AxisAttrs;
use ultramarine_cpu::kernel::{Prepared, Signature};
use ultramarine_cpu::level::Level;
use ultramarine_cpu::tested::{SortOutput, families};
use ultramarine_test_support::Rng;

fn same<T: Value>(given: &[T], expected: &[T]) -> bool {
    given.iter().zip(expected).all(|(g, e)| {
        let (g, e) = (*g, *e);
        // One NaN is as good as another.
        g.bits() == e.bits()
            || (T::DTYPE.is_float() && g.parts().0.is_nan() && e.parts().0.is_nan())
    })
}

fn sort_with(result: SortOutput, axis: usize) -> impl Fn(&Signature<'_>, Level) -> Prepared {
    move |s, l| families::sort(AxisAttrs::new(axis as u32), s, result, false, l)
}

/// How elements are ordered.
fn order<T: Value>(a: T, b: T) -> Ordering {
    let ((ar, ai), (br, bi)) = (a.parts(), b.parts());
    let nan = |re: f64, im: f64| re.is_nan() || im.is_nan();
    match (nan(ar, ai), nan(br, bi)) {
        (false, false) => (ar, ai).partial_cmp(&(br, bi)).unwrap_or(Ordering::Equal),
        (a, b) => a.cmp(&b),
    }
}

#[test]
fn sorts() {
    fn check<T: Value>(rng: &mut Rng, round: usize, level: Level) {
        let (mut shape, mut axis) = any_shape(rng, round);
        if round == 5 {
            // Sorted on several threads.
            (shape, axis) = (vec![2, 300_001], 1);
        }
        let source = sampled::<T>(&shape, true, round.is_multiple_of(2), rng);
        let values = source.values();
        let sorted = sampled::<T>(&shape, false, round.is_multiple_of(3), rng);
        let zeros = vec![0u32; values.len()];
        let places = Array::new(&shape, &zeros, round.is_multiple_of(4), rng);
        let threads = round.is_multiple_of(2);
        let view = [source.view()];
        run(sort_with(SortOutput::Values, axis), &view, &sorted.view(), level, threads).unwrap();
        run(sort_with(SortOutput::Indices, axis), &view, &places.view(), level, threads).unwrap();
        let mut expected = (values.clone(), zeros);
        for lane in lanes(&shape, axis) {
            let mut order: Vec<usize> = (0..lane.len()).collect();
            order.sort_by(|a, b| self::order(values[lane[*a]], values[lane[*b]]));
            for (to, from) in lane.iter().zip(order) {
                expected.0[*to] = values[lane[from]];
                expected.1[*to] = from as u32;
            }
        }
        assert!(same(&sorted.values(), &expected.0), "{:?} {shape:?} {axis}", T::DTYPE);
        assert_eq!(places.values(), expected.1, "{:?} {shape:?} {axis}", T::DTYPE);
    }
    let mut rng = Rng::new(21);
    for level in [Level::Baseline, Level::detected()] {
        for dtype in dtypes() {
            (0..40).for_each(|round| for_dtype!(dtype, T => check::<T>(&mut rng, round, level)));
        }
    }
}

#[test]
fn partitions() {
    fn check<T: Value>(rng: &mut Rng, round: usize, level: Level) {
        let (shape, axis) = any_shape(rng, round);
        let source = sampled::<T>(&shape, true, round.is_multiple_of(2), rng);
        let values = source.values();
        let parted = sampled::<T>(&shape, false, round.is_multiple_of(3), rng);
        let places = Array::new(&shape, &vec![0u32; values.len()], round.is_multiple_of(4), rng);
        let k = rng.below(shape[axis] as usize);
        for (result, output) in
            [(SortOutput::Values, parted.view()), (SortOutput::Indices, places.view())]
        {
            let prepare = |s: &Signature<'_>, l| {
                families::sort(AxisAttrs::new(axis as u32), s, result, true, l)
            };
            let how = (level, round.is_multiple_of(2));
            run_with(prepare, &[source.view()], &output, how, &[[k as u64, 0]]).unwrap();
            let beyond = [[shape[axis] as u64, 0]];
            assert!(run_with(prepare, &[source.view()], &output, how, &beyond).is_err());
            assert!(run_with(prepare, &[source.view()], &output, how, &[]).is_err());
        }
        let (parted, places) = (parted.values(), places.values());
        for lane in lanes(&shape, axis) {
            let given: Vec<T> = lane.iter().map(|i| values[*i]).collect();
            let mut order: Vec<usize> = (0..given.len()).collect();
            order.sort_by(|a, b| self::order(given[*a], given[*b]));
            let sorted: Vec<T> = order.iter().map(|i| given[*i]).collect();
            let what = format!("{:?} {shape:?} {axis} {k}", T::DTYPE);
            let found: Vec<T> = lane.iter().map(|i| parted[*i]).collect();
            assert!(same(&found[k..=k], &sorted[k..=k]), "{what}");
            let picked: Vec<T> = lane.iter().map(|i| given[places[*i] as usize]).collect();
            assert_eq!(places[lane[k]] as usize, order[k], "{what}");
            for mut found in [found, picked] {
                assert!(found[..k].iter().all(|v| self::order(*v, sorted[k]).is_le()), "{what}");
                assert!(found[k..].iter().all(|v| self::order(*v, sorted[k]).is_ge()), "{what}");
                // Nothing is lost, and the sign of zeros is kept.
                let bits = |v: &T| if v.parts().0.is_nan() { u64::MAX } else { v.bits() };
                let mut sorted: Vec<u64> = sorted.iter().map(bits).collect();
                sorted.sort();
                found.sort_by_key(bits);
                assert_eq!(found.iter().map(bits).collect::<Vec<_>>(), sorted, "{what}");
            }
        }
    }
    let mut rng = Rng::new(22);
    for level in [Level::Baseline, Level::detected()] {
        for dtype in dtypes() {
            (0..40).for_each(|round| for_dtype!(dtype, T => check::<T>(&mut rng, round, level)));
        }
    }
}

#[test]
fn sorts_bits_of_all_kinds() {
    fn check<T: Value>(from: fn(u64) -> T) {
        for level in [Level::Baseline, Level::detected()] {
            check_at(from, level);
        }
    }
    fn check_at<T: Value>(from: fn(u64) -> T, level: Level) {
        let rng = &mut Rng::new(4);
        for n in [1, 2, 256, 257, 5000, 70_000, 270_000] {
            let values: Vec<T> = (0..n).map(|_| from(rng.bits())).collect();
            let source = Array::new(&[n], &values, true, rng);
            let sorted = source.clone();
            let view = sorted.view();
            run(sort_with(SortOutput::Values, 0), &[source.view()], &view, level, true).unwrap();
            let sorted = sorted.values();
            let ordered = |w: &[T]| w[1].parts().0.is_nan() || w[0].parts() <= w[1].parts();
            assert!(sorted.windows(2).all(ordered), "{:?} {n}", T::DTYPE);
            let mut both = [values, sorted].map(|all| {
                all.iter()
                    .map(|v| if v.parts().0.is_nan() { u64::MAX } else { v.bits() })
                    .collect::<Vec<_>>()
            });
            both.iter_mut().for_each(|v| v.sort());
            assert_eq!(both[0], both[1]);
        }
    }
    check(f64::from_bits);
    check(|bits| f32::from_bits(bits as u32));
    check(|bits| f16::from_bits(bits as u16));
    check(|bits| bf16::from_bits(bits as u16));
    check(|bits| bits as i64);
    check(|bits| bits as u32);
}

#[test]
fn zero_strides() {
    let flat: Array<f32> = Array::broadcast(&[3, 300], 2.5);
    let output = Array::new(&[3, 300], &[0f32; 900], true, &mut Rng::new(6));
    run(sort_with(SortOutput::Values, 1), &[flat.view()], &output.view(), Level::Baseline, false)
        .unwrap();
    assert!(output.values().iter().all(|v| *v == 2.5));
}
