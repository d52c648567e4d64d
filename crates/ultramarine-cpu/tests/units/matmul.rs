//! Products of every dtype against sums in float64 (or wrapping integers), over
//! shapes around the block sizes and over layouts.

use crate::testing::host;
use half::{bf16, f16};
use ultramarine_cpu::dtype::{Bool, DType, Element, c64};
use ultramarine_cpu::kernel::{Args, Context, Desc, Signature, View};
use ultramarine_cpu::tested::families::matmul as prepare;
use ultramarine_cpu::{level::Level, par::Par};
use ultramarine_test_support::Rng;

/// The type in which a dtype's products are checked: exact for integers, float64 for floats.
#[derive(Clone, Copy, Debug, Default)]
struct Exact {
    re: f64,
    im: f64,
    int: i64,
    /// Sum of magnitudes, which errors are measured against.
    size: f64,
}

trait Check: Element {
    /// Unit of rounding while accumulating, and of the result.
    const EPS: (f64, f64);
    fn make(r: &mut Rng) -> Self;
    fn exact(self) -> Exact;
}
macro_rules! check {
    (int $($t:ty)*) => {$(impl Check for $t {
        const EPS: (f64, f64) = (0.0, 0.0);
        fn make(r: &mut Rng) -> Self { r.bits() as $t }
        fn exact(self) -> Exact { Exact { int: self as i64, ..Exact::default() } }
    })*};
    (float $($t:ty, $acc:expr, $eps:expr, $from:expr, $to:expr;)*) => {$(impl Check for $t {
        const EPS: (f64, f64) = ($acc, $eps);
        fn make(r: &mut Rng) -> Self { $from(r.below(2001) as f64 / 1000.0 - 1.0) }
        fn exact(self) -> Exact { Exact { re: $to(self), ..Exact::default() } }
    })*};
}
check!(int u8 u16 u32 u64 i8 i16 i32 i64);
check!(float
    f32, f32::EPSILON as f64, f32::EPSILON as f64, |x| x as f32, |x| x as f64;
    f64, f64::EPSILON, f64::EPSILON, |x| x, |x| x;
    f16, f32::EPSILON as f64, 1.0 / 1024.0, f16::from_f64, f16::to_f64;
    bf16, f32::EPSILON as f64, 1.0 / 128.0, bf16::from_f64, bf16::to_f64;
);
impl Check for c64 {
    const EPS: (f64, f64) = (2.0 * f32::EPSILON as f64, f32::EPSILON as f64);
    fn make(r: &mut Rng) -> Self {
        c64 { re: f32::make(r), im: f32::make(r) }
    }
    fn exact(self) -> Exact {
        Exact { re: self.re as f64, im: self.im as f64, ..Exact::default() }
    }
}

/// The memory layout of a stack of matrices.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Layout {
    Rows,
    Columns,
    /// Every third element of rows that are longer than needed.
    Sliced,
    /// Both axes backwards.
    Negative,
    /// One matrix for the whole batch.
    Broadcast,
    /// One row for all rows.
    SameRow,
}
const LAYOUTS: [Layout; 6] = [
    Layout::Rows,
    Layout::Columns,
    Layout::Sliced,
    Layout::Negative,
    Layout::Broadcast,
    Layout::SameRow,
];

/// Elements with guards around them, and where the first one is.
struct Tensor<T> {
    data: Vec<T>,
    first: usize,
    shape: Vec<i64>,
    strides: Vec<i64>,
}

impl<T: Check> Tensor<T> {
    fn new(r: &mut Rng, layout: Layout, batch: i64, rows: i64, cols: i64) -> Self {
        let (row, col, per) = match layout {
            Layout::Rows | Layout::Broadcast => (cols, 1, rows * cols),
            Layout::Columns => (1, rows, rows * cols),
            Layout::Sliced => (3 * cols + 5, 3, rows * (3 * cols + 5)),
            Layout::Negative => (-cols, -1, rows * cols),
            Layout::SameRow => (0, 1, cols),
        };
        let step = if layout == Layout::Broadcast { 0 } else { per };
        let first = 7 + if layout == Layout::Negative { per - 1 } else { 0 };
        let size = 14 + per * if step == 0 { 1 } else { batch };
        Tensor {
            data: (0..size).map(|_| T::make(r)).collect(),
            first: first as usize,
            shape: vec![batch, rows, cols],
            strides: vec![step, row, col],
        }
    }

    fn index(&self, b: i64, i: i64, j: i64) -> usize {
        let s = &self.strides;
        (self.first as i64 + b * s[0] + i * s[1] + j * s[2]) as usize
    }

    fn get(&self, b: i64, i: i64, j: i64) -> Exact {
        self.data[self.index(b, i, j)].exact()
    }

    fn view(&mut self) -> View<'_> {
        View {
            data: self.data.as_mut_ptr().wrapping_add(self.first) as *mut u8,
            dtype: T::DTYPE,
            shape: &self.shape,
            strides: &self.strides,
        }
    }
}

fn run<T: Check>(level: Level, par: Par, a: &mut Tensor<T>, b: &mut Tensor<T>, c: &mut Tensor<T>) {
    let desc = Desc { dtype: T::DTYPE, ndim: 3, contiguous: false };
    let kernel = prepare(&Signature { inputs: &[desc; 2], outputs: &[desc] }, level).unwrap();
    let cx = Context { par, level };
    let args = Args { inputs: &[a.view(), b.view()], outputs: &[c.view()], scalars: &[] };
    // SAFETY: the views are of live tensors, which do not overlap.
    unsafe { kernel.run(&cx, &args) }.unwrap();
}

fn verify<T: Check>(
    level: Level,
    [batch, m, n, k]: [i64; 4],
    [la, lb, lc]: [Layout; 3],
    seed: u64,
) {
    let mut r = Rng::new(seed);
    let mut a = Tensor::<T>::new(&mut r, la, batch, m, k);
    let mut b = Tensor::<T>::new(&mut r, lb, batch, k, n);
    let mut c = Tensor::<T>::new(&mut r, lc, batch, m, n);
    let before = c.data.clone();
    run(level, Par::new(host()), &mut a, &mut b, &mut c);
    let threaded = core::mem::replace(&mut c.data, before.clone());
    run(level, Par::default(), &mut a, &mut b, &mut c);
    let what = || format!("{:?} {level:?} {batch}x{m}x{n}x{k} {la:?} {lb:?} {lc:?}", T::DTYPE);
    // Cuts follow from the shape, so threads change nothing: not a bit.
    let same = threaded.iter().zip(&c.data).all(|(x, y)| x == y);
    assert!(same, "{}: other results on two threads", what());
    let mut written = vec![false; c.data.len()];
    let mut line = vec![Exact::default(); n as usize];
    for z in 0..batch {
        for i in 0..m {
            line.fill(Exact::default());
            for p in 0..k {
                let x = a.get(z, i, p);
                for (j, sum) in line.iter_mut().enumerate() {
                    let y = b.get(z, p, j as i64);
                    sum.re += x.re * y.re - x.im * y.im;
                    sum.im += x.re * y.im + x.im * y.re;
                    sum.size += (x.re.abs() + x.im.abs()) * (y.re.abs() + y.im.abs());
                    sum.int = sum.int.wrapping_add(x.int.wrapping_mul(y.int));
                }
            }
            for (j, want) in line.iter().enumerate() {
                let at = c.index(z, i, j as i64);
                written[at] = true;
                let got = c.data[at].exact();
                let bits = 8 * size_of::<T>() as u32;
                if T::EPS.0 == 0.0 {
                    let cut = |x: i64| x << (64 - bits) >> (64 - bits);
                    assert_eq!(cut(got.int), cut(want.int), "{} at {z} {i} {j}", what());
                } else {
                    let size = want.re.abs() + want.im.abs();
                    // Below the normal range float16 rounds to multiples of 2^-24.
                    let least = if T::DTYPE == DType::F16 { 6e-8 } else { 0.0 };
                    let bound =
                        least + T::EPS.0 * want.size * (k as f64).sqrt().max(2.0) + T::EPS.1 * size;
                    let error = (got.re - want.re).abs() + (got.im - want.im).abs();
                    assert!(error <= bound, "{} at {z} {i} {j}: {got:?}, not {want:?}", what());
                }
            }
        }
    }
    for (i, w) in written.iter().enumerate() {
        assert!(*w || c.data[i] == before[i], "{}: wrote outside, at {i}", what());
    }
}

/// Runs a check for every dtype that has products, at every level.
fn each(f: impl Fn(DType, Level)) {
    for level in Level::of_products() {
        for dtype in DType::ALL.into_iter().skip(1) {
            f(dtype, *level);
        }
    }
}

fn dispatch(dtype: DType, level: Level, shape: [i64; 4], layouts: [Layout; 3], seed: u64) {
    match dtype {
        DType::Bool => unreachable!("bool has no products"),
        DType::U8 => verify::<u8>(level, shape, layouts, seed),
        DType::U16 => verify::<u16>(level, shape, layouts, seed),
        DType::U32 => verify::<u32>(level, shape, layouts, seed),
        DType::U64 => verify::<u64>(level, shape, layouts, seed),
        DType::I8 => verify::<i8>(level, shape, layouts, seed),
        DType::I16 => verify::<i16>(level, shape, layouts, seed),
        DType::I32 => verify::<i32>(level, shape, layouts, seed),
        DType::I64 => verify::<i64>(level, shape, layouts, seed),
        DType::F16 => verify::<f16>(level, shape, layouts, seed),
        DType::F32 => verify::<f32>(level, shape, layouts, seed),
        DType::F64 => verify::<f64>(level, shape, layouts, seed),
        DType::BF16 => verify::<bf16>(level, shape, layouts, seed),
        DType::C64 => verify::<c64>(level, shape, layouts, seed),
    }
}

#[test]
fn small_shapes_in_every_layout() {
    let sizes = [1, 2, 3, 5, 8, 14, 15, 17, 31, 33, 47];
    each(|dtype, level| {
        let mut r = Rng::new(dtype as u64 + 1);
        for round in 0..80 {
            let mut pick = |from: &[i64]| *r.pick(from);
            let shape = [pick(&[1, 1, 2, 3]), pick(&sizes), pick(&sizes), pick(&sizes)];
            let layouts = [0, 1, 2].map(|i| {
                // C is neither broadcast nor the same row throughout.
                LAYOUTS[r.below(if i == 2 { 4 } else { 6 })]
            });
            dispatch(dtype, level, shape, layouts, round);
        }
    });
}

#[test]
fn shapes_around_the_blocks() {
    use Layout::{Broadcast, Columns, Negative, Rows, SameRow, Sliced};
    each(|dtype, level| {
        for (shape, layouts) in [
            ([1, 193, 131, 97], [Rows, Rows, Rows]),
            ([1, 61, 270, 385], [Columns, Columns, Rows]),
            ([1, 169, 257, 67], [Sliced, Negative, Columns]),
            ([2, 129, 65, 200], [Negative, Rows, Sliced]),
            ([5, 40, 50, 60], [Rows, Columns, Rows]),
            ([70, 16, 16, 33], [Columns, Rows, Rows]),
            ([3, 90, 70, 50], [Rows, Broadcast, Rows]),
            ([2, 600, 10, 256], [Rows, Rows, Rows]),
            ([1, 7, 530, 301], [Rows, SameRow, Rows]),
            ([1, 6, 790, 263], [Columns, Rows, Sliced]),
        ] {
            dispatch(dtype, level, shape, layouts, 3);
        }
    });
}

#[test]
fn vectors() {
    each(|dtype, level| {
        for layout in LAYOUTS {
            for [m, n] in [[1, 300], [300, 1], [1, 1], [1, 4500], [4500, 1]] {
                dispatch(dtype, level, [1, m, n, 67], [layout, layout, Layout::Rows], 5);
                dispatch(dtype, level, [2, m, n, 29], [layout, layout, Layout::Sliced], 6);
            }
            dispatch(dtype, level, [1, 1, 3, 70_000], [layout, layout, Layout::Rows], 7);
            dispatch(dtype, level, [1, 3, 1, 70_000], [layout, layout, Layout::Rows], 8);
        }
    });
}

#[test]
fn long_sums_are_cut_into_slabs() {
    for level in Level::of_products() {
        for layouts in [[Layout::Rows; 3], [Layout::Columns; 3]] {
            for dtype in [DType::F32, DType::BF16, DType::C64] {
                dispatch(dtype, *level, [1, 40, 70, 9001], layouts, 1);
            }
            dispatch(DType::F32, *level, [1, 1100, 33, 4200], layouts, 1);
            dispatch(DType::F64, *level, [1, 17, 1100, 4200], layouts, 1);
        }
    }
}

#[test]
fn several_tasks_and_slabs() {
    use Layout::{Columns, Rows, Sliced};
    for dtype in [DType::F32, DType::F64, DType::BF16, DType::C64, DType::I32, DType::I8] {
        for (shape, layouts) in [
            // Several blocks of rows and of columns; few rows; few rows in stretches of k; few columns; two slabs.
            ([1, 350, 1100, 90], [Rows, Columns, Rows]),
            ([1, 9, 2500, 600], [Rows, Rows, Rows]),
            ([1, 5, 700, 2503], [Rows, Rows, Rows]),
            ([1, 2500, 9, 600], [Rows, Rows, Columns]),
            ([2, 300, 200, 300], [Columns, Rows, Sliced]),
            ([1, 1500, 33, 2900], [Rows, Rows, Rows]),
        ] {
            for level in Level::of_products().iter().rev().take(2) {
                dispatch(dtype, *level, shape, layouts, 11);
            }
        }
    }
}

#[test]
fn threads_share_the_work() {
    use core::ffi::c_void;
    use std::sync::Mutex;
    // How many indices the loops had that were handed to the host.
    static LOOPS: Mutex<Vec<u64>> = Mutex::new(Vec::new());
    unsafe extern "C" fn count(
        _: *mut c_void,
        count: u64,
        body: ultramarine_abi::ParallelBody,
        context: *mut c_void,
    ) {
        if let Ok(mut loops) = LOOPS.lock() {
            loops.push(count);
        }
        // SAFETY: the caller's body and context.
        (0..count).for_each(|i| unsafe { body(context, i) });
    }
    let par = Par::new(ultramarine_abi::HostTable { parallel_for: Some(count), ..host() });
    let mut r = Rng::new(4);
    for ([batch, m, n, k], several) in [
        ([1, 128, 128, 128], true),
        ([1, 20, 1100, 256], true),
        ([1, 1100, 20, 256], true),
        ([40, 64, 64, 64], true),
        ([1, 1, 2000, 2000], true),
        ([1, 2000, 1, 2000], true),
        ([1, 16, 16, 16], false),
    ] {
        let mut a = Tensor::<f32>::new(&mut r, Layout::Rows, batch, m, k);
        let mut b = Tensor::<f32>::new(&mut r, Layout::Rows, batch, k, n);
        let mut c = Tensor::<f32>::new(&mut r, Layout::Rows, batch, m, n);
        run(Level::detected(), par, &mut a, &mut b, &mut c);
        let most = LOOPS.lock().map(|mut l| l.drain(..).max().unwrap_or(1)).unwrap_or(0);
        assert_eq!(most > 1, several, "{batch}x{m}x{n}x{k}: at most {most} tasks");
    }
}

#[test]
fn infinities_and_nans_stay_in_their_rows() {
    for level in Level::of_products() {
        let mut r = Rng::new(9);
        for n in [1, 3, 40] {
            let mut a = Tensor::<f16>::new(&mut r, Layout::Rows, 1, 20, 18);
            let mut b = Tensor::<f16>::new(&mut r, Layout::Rows, 1, 18, n);
            let mut c = Tensor::<f16>::new(&mut r, Layout::Rows, 1, 20, n);
            b.data.fill(f16::from_f32(6e-8));
            let (nan, inf, max) = (a.index(0, 3, 5), a.index(0, 4, 17), a.index(0, 5, 0));
            a.data.fill(f16::ONE);
            a.data[nan] = f16::NAN;
            a.data[inf] = f16::NEG_INFINITY;
            a.data[max] = f16::MAX;
            run(*level, Par::default(), &mut a, &mut b, &mut c);
            for i in 0..20 {
                for j in 0..n {
                    let x = c.get(0, i, j).re;
                    match i {
                        3 => assert!(x.is_nan()),
                        4 => assert_eq!(x, f64::NEG_INFINITY),
                        5 => assert!((x - 65521.0 * 5.96e-8).abs() < 1e-5, "{x}"),
                        // Eighteen times the least subnormal.
                        _ => assert_eq!(x, 18.0 / 16777216.0),
                    }
                }
            }
        }
    }
}

#[test]
fn nothing_to_sum_gives_zeros() {
    let mut r = Rng::new(2);
    let mut a = Tensor::<f32>::new(&mut r, Layout::Rows, 2, 3, 0);
    let mut b = Tensor::<f32>::new(&mut r, Layout::Rows, 2, 0, 4);
    let mut c = Tensor::<f32>::new(&mut r, Layout::Rows, 2, 3, 4);
    run(Level::detected(), Par::default(), &mut a, &mut b, &mut c);
    assert!((0..12).all(|i| c.data[7 + i] == 0.0));
}

#[test]
fn bool_and_mixed_dtypes_are_refused() {
    let desc = |dtype| Desc { dtype, ndim: 2, contiguous: true };
    let refuse = |a, b| {
        let (ins, outs) = ([desc(a), desc(b)], [desc(a)]);
        prepare(&Signature { inputs: &ins, outputs: &outs }, Level::detected()).is_err()
    };
    assert!(refuse(Bool::DTYPE, Bool::DTYPE));
    assert!(refuse(DType::F32, DType::F64));
    assert!(!refuse(DType::F32, DType::F32));
}
