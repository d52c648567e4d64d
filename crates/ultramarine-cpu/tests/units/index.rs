//! Against element-by-element references.

use crate::testing::{Array, Sample, dtypes, ravel, run, shape, unravel};
use ultramarine_abi::schema::{
    AxisAttrs, DynamicSliceAttrs, GatherAttrs, ScatterAttrs, ScatterAxisAttrs, scatter as codes,
};
use ultramarine_cpu::dtype::{Bool, DType, Element, c64};
use ultramarine_cpu::tested::families::{
    dynamic_slice, dynamic_slice_update, gather, gather_axis, scatter, scatter_axis,
};
use ultramarine_cpu::{kernel::Signature, level::Level};
use ultramarine_test_support::Rng;

fn sampled<T: Sample>(shape: &[i64], plain: bool, rng: &mut Rng) -> Array<T> {
    let values: Vec<T> =
        (0..shape.iter().product::<i64>()).map(|_| T::sample(rng.below(9) as i64 - 4)).collect();
    Array::new(shape, &values, plain, rng)
}

/// Axes, padded as the attributes want them.
fn padded(axes: &[usize]) -> [u8; 32] {
    let mut all = [0; 32];
    axes.iter().enumerate().for_each(|(i, a)| all[i] = *a as u8);
    all
}

fn bits<T: Sample>(values: &[T]) -> Vec<u64> {
    values.iter().map(|v| v.bits()).collect()
}

/// A level of this machine.
fn level(round: usize) -> Level {
    let levels = Level::available();
    levels[round % levels.len()]
}

/// A case of GATHER or SCATTER: shapes, axes and index arrays of int32.
struct Case {
    whole: Vec<i64>,
    index: Vec<i64>,
    axes: Vec<usize>,
    slice: Vec<i64>,
    arrays: Vec<Array<i32>>,
    plain: bool,
}

fn case(rng: &mut Rng, windows: bool) -> Case {
    let ndim = 1 + rng.below(3);
    // Now and then runs of several vectors, and positions of several blocks.
    let mut whole = shape(ndim, 6, rng);
    if rng.below(4) == 0 {
        whole[ndim - 1] = 1 + rng.below(45) as i64;
    }
    let index_ndim = rng.below(3);
    let mut index = shape(index_ndim, 7, rng);
    if ndim == 1 && index_ndim == 1 {
        index[0] = 200 + rng.below(400) as i64;
    }
    let mut axes: Vec<usize> = (0..ndim).collect();
    rng.shuffle(&mut axes);
    axes.truncate(rng.below(ndim + 1));
    let plain = rng.below(2) == 0;
    let slice = (0..ndim)
        .map(|a| match axes.contains(&a) {
            true if !windows => 1,
            true => 1 + rng.below(whole[a] as usize) as i64,
            false if rng.below(4) == 0 => 1 + rng.below(whole[a] as usize) as i64,
            false => whole[a],
        })
        .collect();
    let arrays = axes
        .iter()
        .map(|a| {
            let n = whole[*a] as i32;
            let mut any = || rng.below(3 * n as usize + 2) as i32 - n - n / 2 - 1;
            if any() % 4 == 3 {
                return Array::broadcast(&index, any());
            }
            let values: Vec<i32> = (0..index.iter().product::<i64>()).map(|_| any()).collect();
            Array::new(&index, &values, plain, rng)
        })
        .collect();
    Case { whole, index, axes, slice, arrays, plain }
}

impl Case {
    /// Shape of the slices, one for each index position.
    fn slices(&self) -> Vec<i64> {
        [&self.index[..], &self.slice].concat()
    }

    /// Where element `i` of the slices lies in the whole; `None` outside it (or,
    /// with `clamp`, its nearest place).
    fn place(&self, i: usize, clamp: bool) -> Option<usize> {
        let at = unravel(i, &self.slices());
        let (position, element) = at.split_at(self.index.len());
        let mut element = element.to_vec();
        for (array, &axis) in self.arrays.iter().zip(&self.axes) {
            let index = array.values()[ravel(position, &self.index)] as i64;
            let index = if index < 0 { index + self.whole[axis] } else { index };
            let most = self.whole[axis] - self.slice[axis];
            if !clamp && !(0..=most).contains(&index) {
                return None;
            }
            element[axis] += index.clamp(0, most);
        }
        Some(ravel(&element, &self.whole))
    }
}

#[test]
fn gather_of_all_dtypes() {
    fn check<T: Sample>(rng: &mut Rng, round: usize) {
        let case = case(rng, round.is_multiple_of(3));
        let source = sampled::<T>(&case.whole, case.plain, rng);
        let output = sampled::<T>(&case.slices(), round.is_multiple_of(2), rng);
        let inputs: Vec<_> =
            std::iter::once(source.view()).chain(case.arrays.iter().map(|a| a.view())).collect();
        let attrs =
            GatherAttrs::new(case.axes.len() as u32, case.index.len() as u32, padded(&case.axes));
        run(|s, l| gather(attrs, s, l), &inputs, &output.view(), level(round), round % 4 < 2)
            .unwrap();
        let source = source.values();
        let expected: Vec<T> =
            (0..output.values().len()).map(|i| source[case.place(i, true).unwrap()]).collect();
        assert_eq!(bits(&output.values()), bits(&expected), "{:?} {:?}", case.whole, case.slices());
    }
    let mut rng = Rng::new(5);
    for dtype in dtypes() {
        (0..60).for_each(|round| for_dtype!(dtype, T => check::<T>(&mut rng, round)));
    }
}

#[test]
fn gather_by_every_integer_type() {
    fn check<I: Sample>() {
        let rng = &mut Rng::new(3);
        let source = sampled::<f32>(&[100, 3], true, rng);
        let by: Vec<I> = (0..1000).map(|_| I::sample(rng.below(100) as i64)).collect();
        let index = Array::new(&[1000], &by, false, rng);
        let output = sampled::<f32>(&[1000, 1, 3], true, rng);
        let attrs = GatherAttrs::new(1, 1, padded(&[0]));
        let prepare = |s: &Signature<'_>, l| gather(attrs, s, l);
        run(prepare, &[source.view(), index.view()], &output.view(), Level::Baseline, true)
            .unwrap();
        let (all, given) = (source.values(), output.values());
        for (i, by) in by.iter().enumerate() {
            let row = by.bits() as usize;
            assert_eq!(given[3 * i..][..3], all[3 * row..][..3]);
        }
    }
    for dtype in DType::ALL.into_iter().filter(|d| d.is_int()) {
        for_dtype!(dtype, T => check::<T>());
    }
    // Indices that no int64 holds are clamped like any other.
    let rng = &mut Rng::new(1);
    let source = Array::new(&[3], &[1u8, 2, 3], true, rng);
    let index = Array::new(&[3], &[u64::MAX, 1 << 63, 1], true, rng);
    let output = Array::new(&[3, 1], &[0u8; 3], true, rng);
    let attrs = GatherAttrs::new(1, 1, padded(&[0]));
    let prepare = |s: &Signature<'_>, l| gather(attrs, s, l);
    run(prepare, &[source.view(), index.view()], &output.view(), Level::Baseline, false).unwrap();
    assert_eq!(output.values(), [3, 3, 2]);
}

#[test]
fn gather_of_large_slices() {
    let rng = &mut Rng::new(8);
    let source = sampled::<u16>(&[3, 70_001, 2], true, rng);
    let index = Array::new(&[2], &[-1i64, 0], true, rng);
    let output = sampled::<u16>(&[2, 1, 70_001, 2], false, rng);
    let attrs = GatherAttrs::new(1, 1, padded(&[0]));
    let prepare = |s: &Signature<'_>, l| gather(attrs, s, l);
    run(prepare, &[source.view(), index.view()], &output.view(), Level::Baseline, true).unwrap();
    let (all, n) = (source.values(), 140_002);
    assert_eq!(output.values(), [&all[2 * n..], &all[..n]].concat());
}

#[test]
fn misfits_are_refused() {
    let rng = &mut Rng::new(8);
    let source = sampled::<f32>(&[3, 4], true, rng);
    let index = Array::new(&[2], &[0i32, 1], true, rng);
    let floats = Array::new(&[2], &[0f32, 1.0], true, rng);
    let fits = sampled::<f32>(&[2, 1, 4], true, rng);
    let large = sampled::<f32>(&[2, 1, 5], true, rng);
    let attrs = |axis| GatherAttrs::new(1, 1, padded(&[axis]));
    let go = |axis, index: &ultramarine_cpu::kernel::View<'_>, out: &Array<f32>| {
        let prepare = |s: &Signature<'_>, l| gather(attrs(axis), s, l);
        run(prepare, &[source.view(), *index], &out.view(), Level::Baseline, false)
    };
    assert!(go(0, &index.view(), &fits).is_ok());
    assert!(go(0, &index.view(), &large).is_err());
    assert!(go(2, &index.view(), &fits).is_err());
    assert!(go(0, &floats.view(), &fits).is_err());
}

/// The result of an update, computed differently from the kernels.
fn combined<T: Sample>(code: u32, old: T, new: T) -> T {
    fn cast<A: Copy, B: Copy>(a: A) -> B {
        assert_eq!(size_of::<A>(), size_of::<B>());
        // SAFETY: the same type under two names.
        unsafe { std::mem::transmute_copy(&a) }
    }
    fn pick<V: PartialOrd>(code: u32, old: V, new: V, sum: V, product: V) -> V {
        match code {
            codes::SUM => sum,
            codes::PROD => product,
            codes::MIN => {
                if old < new {
                    old
                } else {
                    new
                }
            }
            _ => {
                if old > new {
                    old
                } else {
                    new
                }
            }
        }
    }
    macro_rules! by_type {
        ($($d:ident $t:ty, |$a:ident, $b:ident| $sum:expr, $product:expr;)*) => {
            match T::DTYPE {
                $(DType::$d => {
                    let ($a, $b): ($t, $t) = (cast(old), cast(new));
                    cast(pick(code, $a, $b, $sum, $product))
                })*
                DType::C64 => {
                    let (a, b): (c64, c64) = (cast(old), cast(new));
                    let pair = |c: c64| (c.re, c.im);
                    let (re, im) = pick(
                        code, pair(a), pair(b), (a.re + b.re, a.im + b.im),
                        (a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re),
                    );
                    cast(c64 { re, im })
                }
            }
        };
    }
    if code == codes::SET {
        return new;
    }
    by_type! {
        Bool Bool, |a, b| Bool(a.0.max(b.0)), Bool(a.0.min(b.0));
        U8 u8, |a, b| a.wrapping_add(b), a.wrapping_mul(b);
        U16 u16, |a, b| a.wrapping_add(b), a.wrapping_mul(b);
        U32 u32, |a, b| a.wrapping_add(b), a.wrapping_mul(b);
        U64 u64, |a, b| a.wrapping_add(b), a.wrapping_mul(b);
        I8 i8, |a, b| a.wrapping_add(b), a.wrapping_mul(b);
        I16 i16, |a, b| a.wrapping_add(b), a.wrapping_mul(b);
        I32 i32, |a, b| a.wrapping_add(b), a.wrapping_mul(b);
        I64 i64, |a, b| a.wrapping_add(b), a.wrapping_mul(b);
        F16 half::f16, |a, b| a + b, a * b;
        BF16 half::bf16, |a, b| a + b, a * b;
        F32 f32, |a, b| a + b, a * b;
        F64 f64, |a, b| a + b, a * b;
    }
}

#[test]
fn scatter_of_all_dtypes() {
    fn check<T: Sample>(rng: &mut Rng, round: usize) {
        let code = (round % 5) as u32;
        let case = case(rng, round.is_multiple_of(3));
        let source = sampled::<T>(&case.whole, case.plain, rng);
        let updates = sampled::<T>(&case.slices(), round.is_multiple_of(2), rng);
        let donated = round.is_multiple_of(7);
        let mut expected = source.values();
        let output = match donated {
            true => source.clone(),
            false => sampled::<T>(&case.whole, round.is_multiple_of(4), rng),
        };
        let first = if donated { output.view() } else { source.view() };
        let inputs: Vec<_> = std::iter::once(first)
            .chain(case.arrays.iter().map(|a| a.view()))
            .chain([updates.view()])
            .collect();
        let axes = padded(&case.axes);
        let attrs = ScatterAttrs::new(code, case.axes.len() as u32, case.index.len() as u32, axes);
        let prepare = |s: &Signature<'_>, l| scatter(attrs, s, l);
        run(prepare, &inputs, &output.view(), level(round), round % 4 < 2).unwrap();
        for (i, update) in updates.values().into_iter().enumerate() {
            if let Some(place) = case.place(i, false) {
                expected[place] = combined(code, expected[place], update);
            }
        }
        assert_eq!(
            bits(&output.values()),
            bits(&expected),
            "{code} {:?} {:?}",
            case.whole,
            case.slices()
        );
    }
    let mut rng = Rng::new(7);
    for dtype in dtypes() {
        (0..70).for_each(|round| for_dtype!(dtype, T => check::<T>(&mut rng, round)));
    }
}

#[test]
fn scatter_adds_in_order_over_parts_of_slices() {
    let rng = &mut Rng::new(2);
    let source = sampled::<f32>(&[5, 1000], true, rng);
    let by: Vec<i32> = (0..700).map(|_| rng.below(5) as i32).collect();
    let index = Array::new(&[700], &by, true, rng);
    let values: Vec<f32> = (0..700_000).map(|_| (rng.bits() >> 32) as f32 * 1e-7).collect();
    let updates = Array::new(&[700, 1, 1000], &values, true, rng);
    let output = sampled::<f32>(&[5, 1000], true, rng);
    let attrs = ScatterAttrs::new(codes::SUM, 1, 1, padded(&[0]));
    let inputs = [source.view(), index.view(), updates.view()];
    let prepare = |s: &Signature<'_>, l| scatter(attrs, s, l);
    run(prepare, &inputs, &output.view(), Level::Baseline, true).unwrap();
    let mut expected = source.values();
    for (k, row) in by.iter().enumerate() {
        for j in 0..1000 {
            expected[*row as usize * 1000 + j] += values[k * 1000 + j];
        }
    }
    assert_eq!(output.values(), expected);
}

#[test]
fn extremes_with_nan_become_the_update() {
    // As MLX: max of (1, nan), (2, 3), (nan, 1), each (old, update).
    let rng = &mut Rng::new(2);
    let nan = f32::NAN;
    let source = Array::new(&[3], &[1.0, 2.0, nan], true, rng);
    let updates = Array::new(&[3, 1], &[nan, 3.0, 1.0], true, rng);
    let index = Array::new(&[3], &[0i32, 1, 2], true, rng);
    let output = Array::new(&[3], &[0f32; 3], true, rng);
    let attrs = ScatterAttrs::new(codes::MAX, 1, 1, padded(&[0]));
    let inputs = [source.view(), index.view(), updates.view()];
    run(|s, l| scatter(attrs, s, l), &inputs, &output.view(), Level::Baseline, false).unwrap();
    let given = output.values();
    assert!(given[0].is_nan());
    assert_eq!(given[1..], [3.0, 1.0]);
}

#[test]
fn along_an_axis() {
    fn check<T: Sample>(rng: &mut Rng, round: usize) {
        let ndim = 1 + rng.below(3);
        let mut whole = shape(ndim, if round.is_multiple_of(9) { 40 } else { 6 }, rng);
        let axis = rng.below(ndim);
        let n = whole[axis];
        let source = sampled::<T>(&whole, round.is_multiple_of(2), rng);
        let before = source.values();
        let full = whole.clone();
        whole[axis] = 1 + rng.below(9) as i64;
        let mut by_shape = whole.clone();
        if round.is_multiple_of(5) {
            by_shape[(axis + 1) % ndim] = if ndim > 1 { 1 } else { whole[0] };
        }
        let by: Vec<i32> = (0..by_shape.iter().product::<i64>())
            .map(|_| (rng.below(2 * n as usize + 2) as i64 - n - 1) as i32)
            .collect();
        let index = Array::new(&by_shape, &by, round.is_multiple_of(3), rng);
        let place = |i: usize, clamp: bool| {
            let mut at = unravel(i, &whole);
            let from: Vec<i64> =
                at.iter().zip(&by_shape).map(|(a, n)| if *n == 1 { 0 } else { *a }).collect();
            let index = by[ravel(&from, &by_shape)] as i64;
            let index = if index < 0 { index + n } else { index };
            at[axis] = index.clamp(0, n - 1);
            (clamp || at[axis] == index).then(|| ravel(&at, &full))
        };
        let threads = round % 4 < 2;

        let output = sampled::<T>(&whole, round % 2 == 1, rng);
        let attrs = AxisAttrs::new(axis as u32);
        let prepare = |s: &Signature<'_>, l| gather_axis(attrs, s, l);
        run(prepare, &[source.view(), index.view()], &output.view(), level(round), threads)
            .unwrap();
        let expected: Vec<T> =
            (0..output.values().len()).map(|i| before[place(i, true).unwrap()]).collect();
        assert_eq!(bits(&output.values()), bits(&expected), "gather {full:?} {whole:?} {axis}");

        let code = (round % 5) as u32;
        let updates = sampled::<T>(&whole, round % 2 == 1, rng);
        let output = sampled::<T>(&full, round % 4 == 1, rng);
        let attrs = ScatterAxisAttrs::new(code, axis as u32);
        let inputs = [source.view(), index.view(), updates.view()];
        let prepare = |s: &Signature<'_>, l| scatter_axis(attrs, s, l);
        run(prepare, &inputs, &output.view(), level(round), threads).unwrap();
        let mut expected = before;
        for (i, update) in updates.values().into_iter().enumerate() {
            if let Some(place) = place(i, false) {
                expected[place] = combined(code, expected[place], update);
            }
        }
        assert_eq!(
            bits(&output.values()),
            bits(&expected),
            "scatter {code} {full:?} {whole:?} {axis}"
        );
    }
    let mut rng = Rng::new(11);
    for dtype in dtypes() {
        (0..60).for_each(|round| for_dtype!(dtype, T => check::<T>(&mut rng, round)));
    }
}

#[test]
fn elements_are_distinguished() {
    // The other tests mean nothing if samples were all alike.
    fn check<T: Sample>() {
        assert!(T::sample(1) != T::sample(2), "{:?}", <T as Element>::DTYPE);
    }
    dtypes().into_iter().for_each(|dtype| for_dtype!(dtype, T => check::<T>()));
}

#[test]
fn windows_from_starts_of_every_integer_type() {
    fn check<I: Sample>() {
        let rng = &mut Rng::new(8);
        let source = sampled::<f32>(&[6, 9], false, rng);
        let starts = Array::new(&[2], &[I::sample(5), I::sample(1)], false, rng);
        let attrs = DynamicSliceAttrs::new(2, padded(&[1, 0]));
        let output = sampled::<f32>(&[3, 4], false, rng);
        let prepare = |s: &Signature<'_>, l| dynamic_slice(attrs, s, l);
        run(prepare, &[source.view(), starts.view()], &output.view(), Level::Baseline, true)
            .unwrap();
        let (all, window) = (source.values(), output.values());
        (0..12).for_each(|i| assert_eq!(window[i], all[9 * (1 + i / 4) + 5 + i % 4]));
        // Over the source itself, of which nothing else changes.
        let update = sampled::<f32>(&[3, 4], false, rng);
        let prepare = |s: &Signature<'_>, l| dynamic_slice_update(attrs, s, l);
        let inputs = [source.view(), starts.view(), update.view()];
        run(prepare, &inputs, &source.view(), Level::Baseline, true).unwrap();
        let (mut expected, update) = (all, update.values());
        (0..12).for_each(|i| expected[9 * (1 + i / 4) + 5 + i % 4] = update[i]);
        assert_eq!(source.values(), expected);
    }
    for dtype in DType::ALL.into_iter().filter(|d| d.is_int()) {
        for_dtype!(dtype, T => check::<T>());
    }
}

#[test]
fn windows_are_held_inside() {
    fn check<I: Sample + Element>(start: I, first: u8) {
        let rng = &mut Rng::new(1);
        let source = Array::new(&[5], &[0u8, 1, 2, 3, 4], true, rng);
        let starts = Array::new(&[1], &[start], true, rng);
        let output = Array::new(&[2], &[9u8; 2], true, rng);
        let attrs = DynamicSliceAttrs::new(1, padded(&[0]));
        let prepare = |s: &Signature<'_>, l| dynamic_slice(attrs, s, l);
        run(prepare, &[source.view(), starts.view()], &output.view(), Level::Baseline, false)
            .unwrap();
        assert_eq!(output.values(), [first, first + 1]);
    }
    check(-1i8, 0);
    check(i64::MIN, 0);
    check(4i32, 3);
    check(i64::MAX, 3);
    check(u64::MAX, 3);
    check(1u64 << 63, 3);
    check(2u8, 2);
}
