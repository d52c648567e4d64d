//! Against references that are written the plain way.

use super::{
    arg_reduce, scan,
    sort::{self, Goal},
};
use crate::{
    dtype::{DType, c64},
    kernel::{Signature, View},
    level::Level,
    testing::{Array, Sample, dtypes, ravel, run, run_with, shape, unravel},
};
use half::{bf16, f16};
use std::cmp::Ordering;
use ultramarine_abi::schema::{
    ArgReduceAttrs, AxisAttrs, ScanAttrs, arg_reduce as arg_codes, reduce,
};
use ultramarine_test_support::{Rng, Tolerance, assert_close};

/// Values that tests compute with.
trait Value: Sample {
    /// Real and imaginary part.
    fn parts(self) -> (f64, f64);
    /// Special values are put in at random.
    fn special(which: usize) -> Option<Self>;
}
macro_rules! values {
    ($($t:ty, $v:ident => $re:expr, $special:expr;)*) => {$(
        impl Value for $t {
            fn parts(self) -> (f64, f64) {
                let $v = self;
                ($re, 0.0)
            }
            fn special(which: usize) -> Option<Self> {
                $special.get(which).copied()
            }
        }
    )*};
}
values! {
    crate::dtype::Bool, v => v.0 as f64, [];
    u8, v => v as f64, []; u16, v => v as f64, []; u32, v => v as f64, [u32::MAX];
    i8, v => v as f64, [i8::MIN]; i16, v => v as f64, [];
    i32, v => v as f64, [i32::MIN];
    f16, v => v.to_f64(), [f16::NAN, -f16::ZERO, f16::INFINITY, -f16::INFINITY];
    bf16, v => v.to_f64(), [bf16::NAN, -bf16::ZERO, bf16::INFINITY, -bf16::INFINITY];
    f32, v => v as f64, [f32::NAN, -0.0, f32::INFINITY, -f32::INFINITY];
    f64, v => v, [f64::NAN, -0.0, f64::INFINITY, -f64::INFINITY];
}
// Two numbers that are ordered like the one, as float64 has no 64 bits.
impl Value for u64 {
    fn parts(self) -> (f64, f64) {
        ((self >> 32) as f64, self as u32 as f64)
    }
    fn special(which: usize) -> Option<Self> {
        [u64::MAX].get(which).copied()
    }
}
impl Value for i64 {
    fn parts(self) -> (f64, f64) {
        ((self >> 32) as f64, self as u32 as f64)
    }
    fn special(which: usize) -> Option<Self> {
        [i64::MIN].get(which).copied()
    }
}
impl Value for c64 {
    fn parts(self) -> (f64, f64) {
        (self.re as f64, self.im as f64)
    }
    fn special(which: usize) -> Option<Self> {
        let values = [(f32::NAN, 1.0), (-0.0, 0.0), (0.0, -0.0), (1.0, f32::NAN), (f32::NAN, 0.5)];
        values.get(which).map(|(re, im)| c64 { re: *re, im: *im })
    }
}

fn sampled<T: Value>(shape: &[i64], special: bool, plain: bool, rng: &mut Rng) -> Array<T> {
    let span = [3, 200, 1 << 16][rng.below(3)];
    let any = |rng: &mut Rng| {
        let special = if special && rng.below(4) == 0 { T::special(rng.below(5)) } else { None };
        special.unwrap_or_else(|| T::sample(rng.below(span) as i64 - span as i64 / 2))
    };
    let values: Vec<T> = (0..shape.iter().product::<i64>()).map(|_| any(rng)).collect();
    Array::new(shape, &values, plain, rng)
}

/// Indices (in row-major order) of the lanes along an axis.
fn lanes(shape: &[i64], axis: usize) -> Vec<Vec<usize>> {
    let all: usize = shape.iter().product::<i64>() as usize;
    let start = (0..all).map(|i| unravel(i, shape)).filter(|at| at[axis] == 0);
    start
        .map(|mut at| {
            let one = |i| {
                at[axis] = i;
                ravel(&at, shape)
            };
            (0..shape[axis]).map(one).collect()
        })
        .collect()
}

/// A random shape with a random axis, longer at times.
fn any_shape(rng: &mut Rng, round: usize) -> (Vec<i64>, usize) {
    let ndim = 1 + rng.below(3);
    let mut shape = shape(ndim, 9, rng);
    let axis = rng.below(ndim);
    match round % 6 {
        0 => shape[axis] = 200 + rng.below(200) as i64,
        1 => shape[ndim - 1] = 1 + rng.below(300) as i64,
        2 if ndim == 1 => shape[0] = 4000 + rng.below(2000) as i64,
        _ => (),
    }
    (shape, axis)
}

fn same<T: Value>(given: &[T], expected: &[T]) -> bool {
    given.iter().zip(expected).all(|(g, e)| {
        let (g, e) = (*g, *e);
        // One NaN is as good as another.
        g.bits() == e.bits()
            || (T::DTYPE.is_float() && g.parts().0.is_nan() && e.parts().0.is_nan())
    })
}

fn sort_with(goal: Goal, axis: usize) -> impl Fn(&Signature<'_>, Level) -> crate::kernel::Prepared {
    move |s, l| sort::prepare(AxisAttrs::new(axis as u32), s, goal, false, l)
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
        run(sort_with(Goal::Values, axis), &view, &sorted.view(), level, threads).unwrap();
        run(sort_with(Goal::Indices, axis), &view, &places.view(), level, threads).unwrap();
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
        for (goal, output) in [(Goal::Values, parted.view()), (Goal::Indices, places.view())] {
            let prepare =
                |s: &Signature<'_>, l| sort::prepare(AxisAttrs::new(axis as u32), s, goal, true, l);
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
            run(sort_with(Goal::Values, 0), &[source.view()], &view, level, true).unwrap();
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

fn scan_with(
    op: u32,
    axis: usize,
    reverse: bool,
    inclusive: bool,
) -> impl Fn(&Signature<'_>, Level) -> crate::kernel::Prepared {
    let attrs = ScanAttrs::new(op, axis as u32, reverse as u32, inclusive as u32);
    move |s, l| scan::prepare(attrs, s, l)
}

/// Scans of integers and bools, computed in 128 bits and cut.
#[test]
fn scans_of_integers_are_exact() {
    fn check<T: Value>(rng: &mut Rng, round: usize) {
        let (shape, axis) = any_shape(rng, round);
        let source = sampled::<T>(&shape, true, round.is_multiple_of(2), rng);
        let output = sampled::<T>(&shape, false, round.is_multiple_of(3), rng);
        let (op, reverse, inclusive) = ((round % 4) as u32, round % 8 < 4, round % 3 < 2);
        let prepare = scan_with(op, axis, reverse, inclusive);
        run(prepare, &[source.view()], &output.view(), Level::Baseline, round.is_multiple_of(2))
            .unwrap();
        let bits = 8 * size_of::<T>() as u32;
        let signed = matches!(T::DTYPE, DType::I8 | DType::I16 | DType::I32 | DType::I64);
        let is_bool = T::DTYPE == DType::Bool;
        let wrap = |v: i128| {
            let v = v & ((1 << bits) - 1);
            if signed && v >> (bits - 1) != 0 { v - (1 << bits) } else { v }
        };
        let (low, high) = match (is_bool, signed) {
            (true, _) => (0, 1),
            (_, true) => (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1),
            _ => (0, (1i128 << bits) - 1),
        };
        let values: Vec<i128> = source.values().iter().map(|v| wrap(v.bits() as i128)).collect();
        let given: Vec<i128> = output.values().iter().map(|v| wrap(v.bits() as i128)).collect();
        let mut expected = vec![0; values.len()];
        for mut lane in lanes(&shape, axis) {
            if reverse {
                lane.reverse();
            }
            let mut running = [0, 1, high, low][op as usize];
            for i in lane {
                let next = match op {
                    reduce::SUM if is_bool => running | values[i],
                    reduce::SUM => wrap(running + values[i]),
                    reduce::PROD => wrap(running.wrapping_mul(values[i])),
                    reduce::MIN => running.min(values[i]),
                    _ => running.max(values[i]),
                };
                expected[i] = if inclusive { next } else { running };
                running = next;
            }
        }
        assert_eq!(given, expected, "{:?} {shape:?} {axis} {op} {reverse} {inclusive}", T::DTYPE);
    }
    let mut rng = Rng::new(31);
    for dtype in dtypes().into_iter().filter(|d| d.is_int() || *d == DType::Bool) {
        (0..72).for_each(|round| for_dtype!(dtype, T => check::<T>(&mut rng, round)));
    }
}

/// Scans of floats against float64, within what rounding allows.
#[test]
fn scans_of_floats_are_near() {
    fn check<T: Value>(rng: &mut Rng, round: usize, unit: f64) {
        let (mut shape, axis) = any_shape(rng, round);
        let (op, reverse, inclusive) =
            ([0, 1, 2, 3, reduce::LOGADDEXP][round % 5], round % 8 < 4, round % 3 < 2);
        if round == 0 || round == 4 || round == 7 {
            // Long enough to be scanned in parts.
            (shape, _) = (vec![shape[axis].min(2), 70_001], 0);
        }
        let axis = if shape.len() == 2 && shape[1] == 70_001 { 1 } else { axis };
        let all: i64 = shape.iter().product();
        let near_one = op == reduce::PROD;
        let values: Vec<T> = (0..all)
            .map(|_| {
                if near_one {
                    T::sample(4 + rng.below(2) as i64 * -8)
                } else {
                    T::sample(rng.below(9) as i64 - 4)
                }
            })
            .collect();
        let source = Array::new(&shape, &values, round.is_multiple_of(2), rng);
        let output = Array::new(&shape, &values, round.is_multiple_of(3), rng);
        let prepare = scan_with(op, axis, reverse, inclusive);
        run(prepare, &[source.view()], &output.view(), Level::Baseline, round.is_multiple_of(2))
            .unwrap();
        let given = output.values();
        for mut lane in lanes(&shape, axis) {
            if reverse {
                lane.reverse();
            }
            let mut running =
                [0.0, 1.0, f64::INFINITY, -f64::INFINITY, 0.0, 0.0, -f64::INFINITY][op as usize];
            let mut size = 0.0;
            for (count, i) in lane.into_iter().enumerate() {
                let value = values[i].parts().0;
                let next = match op {
                    reduce::SUM => running + value,
                    reduce::PROD => running * value,
                    reduce::MIN => running.min(value),
                    reduce::MAX => running.max(value),
                    _ if running == -f64::INFINITY => value,
                    _ => running.max(value) + (-(running - value).abs()).exp().ln_1p(),
                };
                let expected = if inclusive { next } else { running };
                running = next;
                size += value.abs();
                let given = given[i].parts().0;
                let steps = if op == reduce::LOGADDEXP { (1.0 + count as f64) * 1e-6 } else { 0.0 };
                let room = unit * expected.abs()
                    + steps
                    + if op == reduce::SUM { size * 1e-6 } else { 0.0 };
                assert!(
                    given == expected || (given - expected).abs() <= room,
                    "{:?} {shape:?} {axis} {op} {reverse} {inclusive}: {given} for {expected}",
                    T::DTYPE
                );
            }
        }
    }
    let mut rng = Rng::new(41);
    for round in 0..60 {
        check::<f32>(&mut rng, round, 1e-6);
        check::<f64>(&mut rng, round, 1e-12);
        check::<f16>(&mut rng, round, 5e-4);
        check::<bf16>(&mut rng, round, 4e-3);
    }
}

fn scanned<T: Value>(op: u32, values: &[T], inclusive: bool) -> Vec<T> {
    let rng = &mut Rng::new(1);
    let source = Array::new(&[values.len() as i64], values, true, rng);
    let output = source.clone();
    let prepare = scan_with(op, 0, false, inclusive);
    run(prepare, &[source.view()], &output.view(), Level::Baseline, false).unwrap();
    output.values()
}

#[test]
fn running_extremes_keep_nan() {
    let nan = f32::NAN;
    for op in [reduce::MIN, reduce::MAX] {
        let given = scanned(op, &[1.0, nan, 3.0, 0.0], true);
        assert!(given[0] == 1.0 && given[1..].iter().all(|v| v.is_nan()), "{given:?}");
        assert!(scanned(op, &[nan, 3.0], true).iter().all(|v| v.is_nan()));
    }
    // Of complex numbers they do not (values from MLX 0.32).
    let c = |re, im| c64 { re, im };
    let values = [c(1.0, 1.0), c(nan, 0.0), c(3.0, 2.0), c(0.0, nan), c(1.0, 0.0)];
    let given = scanned(reduce::MAX, &values, true);
    assert!(given[1].re.is_nan() && given[1].im == 0.0);
    assert_eq!(given[2..], [c(3.0, 2.0); 3]);
    let given = scanned(reduce::MIN, &values, true);
    assert_eq!(given[..3], [c(1.0, 1.0); 3]);
    assert!(given[3..].iter().all(|v| v.re == 0.0 && v.im.is_nan()));
}

#[test]
fn running_logaddexp_of_complex_numbers() {
    // Values from MLX.
    let c = |re, im| c64 { re, im };
    let parts = |values: &[c64]| -> Vec<f64> {
        values.iter().flat_map(|v| [f64::from(v.re), f64::from(v.im)]).collect()
    };
    let near = |given: &[c64], expected: &[c64]| {
        assert_close("logaddexp", &parts(given), &parts(expected), Tolerance::absolute(1e-5));
    };
    let values = [c(1.0, 3.0), c(1.0, 3.1), c(1.2, 4.0), c(0.5, -7.0), c(2.0, 9.0)];
    let expected = [
        c(1.0, 3.0),
        c(1.691_896_7, 3.05),
        c(2.059_340_7, 3.401_635_4),
        c(1.953_278_2, 3.596_631),
        c(2.570_068, 9.428_915),
    ];
    near(&scanned(reduce::LOGADDEXP, &values, true), &expected);
    let given = scanned(reduce::LOGADDEXP, &values, false);
    assert_eq!(given[0], c(f32::NEG_INFINITY, 0.0));
    near(&given[1..], &expected[..4]);
    // Infinities and NaN of reals.
    let inf = f32::INFINITY;
    let given = scanned(reduce::LOGADDEXP, &[-inf, -inf, 1.0, inf, f32::NAN], true);
    assert_eq!(given[..4], [-inf, -inf, 1.0, inf]);
    assert!(given[4].is_nan());
}

#[test]
fn scans_of_complex_numbers() {
    let c = |re, im| c64 { re, im };
    let values = [c(1.0, 1.0), c(0.0, 2.0), c(-1.0, 0.5)];
    assert_eq!(scanned(reduce::SUM, &values, true), [c(1.0, 1.0), c(1.0, 3.0), c(0.0, 3.5)]);
    assert_eq!(scanned(reduce::PROD, &values, true), [c(1.0, 1.0), c(-2.0, 2.0), c(1.0, -3.0)]);
    assert_eq!(scanned(reduce::SUM, &values, false), [c(0.0, 0.0), c(1.0, 1.0), c(1.0, 3.0)]);
    // Running values of halves are kept in float32.
    let ones = vec![f16::ONE; 5000];
    assert_eq!(scanned(reduce::SUM, &ones, true)[4095], f16::from_f32(4096.0));
    // The first element stays what it is.
    assert!(scanned(reduce::SUM, &[-0.0f32], true)[0].is_sign_negative());
}

#[test]
fn arg_reductions() {
    fn check<T: Value>(rng: &mut Rng, round: usize, level: Level) {
        let (mut shape, axis) = any_shape(rng, round);
        if round == 3 {
            shape = vec![1, 140_000];
        }
        let axis = if round == 3 { 1 } else { axis };
        let source = sampled::<T>(&shape, round.is_multiple_of(3), round.is_multiple_of(2), rng);
        let mut kept = shape.clone();
        kept[axis] = 1;
        let zeros = vec![9u32; kept.iter().product::<i64>() as usize];
        let output = Array::new(&kept, &zeros, round.is_multiple_of(5), rng);
        let max = round % 2 == 1;
        let code = if max { arg_codes::ARGMAX } else { arg_codes::ARGMIN };
        let prepare = |s: &Signature<'_>, l| {
            arg_reduce::prepare(ArgReduceAttrs::new(code, axis as u32), s, l)
        };
        run(prepare, &[source.view()], &output.view(), level, round % 4 < 2).unwrap();
        let values = source.values();
        let mut expected = Vec::new();
        for lane in lanes(&shape, axis) {
            let at = |i: usize| values[lane[i]].parts();
            let nan = (0..lane.len()).find(|i| at(*i).0.is_nan());
            let mut best = 0;
            for i in 1..lane.len() {
                let wanted = if max { Ordering::Greater } else { Ordering::Less };
                if at(i).partial_cmp(&at(best)) == Some(wanted) {
                    best = i;
                }
            }
            expected.push(nan.unwrap_or(best) as u32);
        }
        assert_eq!(output.values(), expected, "{:?} {shape:?} {axis} {code}", T::DTYPE);
    }
    let mut rng = Rng::new(51);
    for level in Level::available() {
        for dtype in dtypes() {
            (0..60).for_each(|round| for_dtype!(dtype, T => check::<T>(&mut rng, round, *level)));
        }
    }
}

#[test]
fn zero_strides() {
    let flat: Array<f32> = Array::broadcast(&[3, 300], 2.5);
    let rng = &mut Rng::new(6);
    let zeros = vec![0f32; 900];
    let output = Array::new(&[3, 300], &zeros, true, rng);
    let go = |view: &View<'_>| {
        run(scan_with(reduce::SUM, 1, true, true), &[flat.view()], view, Level::Baseline, true)
    };
    go(&output.view()).unwrap();
    assert_eq!(output.values()[300..303], [750.0, 747.5, 745.0]);
    run(sort_with(Goal::Values, 1), &[flat.view()], &output.view(), Level::Baseline, false)
        .unwrap();
    assert!(output.values().iter().all(|v| *v == 2.5));
}
