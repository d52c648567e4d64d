//! Against references that are written the plain way.

use crate::testing::lanes::{Value, any_shape, lanes, sampled};
use crate::testing::{Array, dtypes, run};
use half::{bf16, f16};
use ultramarine_abi::schema::{ScanAttrs, reduce};
use ultramarine_cpu::dtype::{DType, c64};
use ultramarine_cpu::kernel::{Prepared, Signature, View};
use ultramarine_cpu::level::Level;
use ultramarine_cpu::tested::families::scan as prepare;
use ultramarine_test_support::{Rng, Tolerance, assert_close};

fn scan_with(
    op: u32,
    axis: usize,
    reverse: bool,
    inclusive: bool,
) -> impl Fn(&Signature<'_>, Level) -> Prepared {
    let attrs = ScanAttrs::new(op, axis as u32, reverse as u32, inclusive as u32);
    move |s, l| prepare(attrs, s, l)
}

/// Scans of integers and bools, computed in 128 bits and cut.
#[test]
fn scans_of_integers_are_exact() {
    fn check<T: Value>(rng: &mut Rng, round: usize) {
        let (shape, axis) = any_shape(rng, round);
        let source = sampled::<T>(&shape, true, round.is_multiple_of(2), rng);
        let output = sampled::<T>(&shape, false, round.is_multiple_of(3), rng);
        let (op, reverse, inclusive) = ((round % 4) as u32, round % 8 < 4, round % 3 < 2);
        let scan = scan_with(op, axis, reverse, inclusive);
        run(scan, &[source.view()], &output.view(), Level::Baseline, round.is_multiple_of(2))
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
        let scan = scan_with(op, axis, reverse, inclusive);
        run(scan, &[source.view()], &output.view(), Level::Baseline, round.is_multiple_of(2))
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
    let scan = scan_with(op, 0, false, inclusive);
    run(scan, &[source.view()], &output.view(), Level::Baseline, false).unwrap();
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
}
