//! Accumulators of reductions. REDUCE itself is a program with an epilogue; `fused` prepares and runs it.
//!
//! The order of combination depends on shapes alone. Along a reduced innermost group (rows), [`LANES`] accumulators
//! take every `LANES`-th element of a chunk of [`CHUNK`] elements; they are combined pairwise and added to a wide
//! accumulator. Across a reduced outer group (columns), each column has an accumulator, which takes the elements of
//! [`COLUMN_CHUNK`] rows in order and is then added to a wide one. Wide accumulators of floating-point sums and
//! products are float64.

use crate::dtype::{DType, c64};
use crate::level::{self, Body, Isa, Level};
use crate::matmul::simd::prefetch;
use core::marker::PhantomData;
use half::{bf16, f16};
use ultramarine_abi::schema::reduce;

/// Number of adjacent accumulators along a row.
pub const LANES: usize = 32;
/// Elements of a row that go through narrow accumulators.
pub const CHUNK: usize = 1024;
/// Elements of a column that go through a narrow accumulator.
pub const COLUMN_CHUNK: usize = 64;
/// Rows shorter than this are folded one element after the other.
const SHORT: usize = 16;
/// Distance in bytes of the prefetch of rows. The processor's own prefetch ends at each page of memory; on one core 2
/// KiB gain 5 %, 8 KiB 40 %.
const AHEAD: usize = 8192;

/// `rows` by `columns` contiguous elements, `stride` bytes between the rows.
#[derive(Clone, Copy)]
pub struct Block {
    /// First element.
    pub data: *const u8,
    /// Number of rows.
    pub rows: usize,
    /// Bytes from a row to the next.
    pub stride: isize,
    /// Elements of a row.
    pub columns: usize,
}

/// The functions of a reduction. All are unsafe: the pointers have to point to aligned accumulators and elements of the
/// types for which the fold was made.
#[derive(Clone, Copy)]
pub struct Fold {
    /// Bytes of a narrow accumulator.
    pub narrow: usize,
    /// Bytes of a wide accumulator.
    pub wide: usize,
    /// Bytes of a result.
    pub out: usize,
    /// Makes `n` narrow accumulators neutral.
    pub init_narrow: unsafe fn(narrow: *mut u8, n: usize),
    /// Makes `n` wide accumulators neutral.
    pub init_wide: unsafe fn(wide: *mut u8, n: usize),
    /// Folds row `r` into `wide[r]`.
    pub rows: unsafe fn(wide: *mut u8, block: Block),
    /// Folds column `c` into `narrow[c]`, rows in order.
    pub columns: unsafe fn(narrow: *mut u8, block: Block),
    /// Adds `n` narrow accumulators to the wide ones and makes them neutral.
    pub flush: unsafe fn(wide: *mut u8, narrow: *mut u8, n: usize),
    /// Adds `n` wide accumulators `from` to `wide`.
    pub merge: unsafe fn(wide: *mut u8, from: *const u8, n: usize),
    /// Rounds `n` wide accumulators to results.
    pub finish: unsafe fn(out: *mut u8, wide: *const u8, n: usize),
}

/// The dtype to which values are converted before they are reduced.
pub fn accumulates_in(code: u32, dtype: DType) -> DType {
    match (code, dtype) {
        (reduce::ALL | reduce::ANY, _) => DType::Bool,
        (_, DType::F16 | DType::BF16) => DType::F32,
        _ => dtype,
    }
}

/// The fold of a code over values of `within` (see [`accumulates_in`]) to `out`.
pub fn fold(code: u32, within: DType, out: DType, level: Level) -> Option<Fold> {
    macro_rules! pick {
        ($op:ident: $($dtype:ident $out:ident => $t:ty, $o:ty;)*) => {
            match (within, out) {
                $((DType::$dtype, DType::$out) => Some(make::<$op<$t>, $o>(level)),)*
                _ => None,
            }
        };
    }
    macro_rules! floats {
        ($op:ident: $($more:tt)*) => {
            pick! { $op:
                F32 F32 => f32, f32; F32 F16 => f32, f16; F32 BF16 => f32, bf16; F64 F64 => f64, f64;
                C64 C64 => c64, c64; $($more)*
            }
        };
    }
    macro_rules! arithmetic {
        ($op:ident) => {
            // Wrapping sums and products of signed integers have the same bits as unsigned ones.
            floats! { $op:
                U8 U8 => u8, u8; U16 U16 => u16, u16; U32 U32 => u32, u32; U64 U64 => u64, u64;
                I8 I8 => u8, u8; I16 I16 => u16, u16; I32 I32 => u32, u32; I64 I64 => u64, u64;
            }
        };
    }
    macro_rules! extreme {
        ($op:ident) => {
            floats! { $op:
                Bool Bool => u8, u8;
                U8 U8 => u8, u8; U16 U16 => u16, u16; U32 U32 => u32, u32; U64 U64 => u64, u64;
                I8 I8 => i8, i8; I16 I16 => i16, i16; I32 I32 => i32, i32; I64 I64 => i64, i64;
            }
        };
    }
    match code {
        reduce::SUM => arithmetic!(Sum),
        reduce::PROD => arithmetic!(Prod),
        reduce::MIN | reduce::ALL => extreme!(Min),
        reduce::MAX | reduce::ANY => extreme!(Max),
        _ => None,
    }
}

/// The functions of a fold on its elements.
trait Folding: 'static {
    /// Element and narrow accumulator.
    type T: Copy;
    /// Wide accumulator.
    type W: Copy;
    /// Neutral element.
    const NARROW: Self::T;
    /// Neutral element.
    const WIDE: Self::W;
    fn step(a: Self::T, x: Self::T) -> Self::T;
    fn widen(x: Self::T) -> Self::W;
    fn merge(a: Self::W, b: Self::W) -> Self::W;
}

/// Rounding of a wide accumulator.
trait Finish<W>: Copy {
    fn finish(w: W) -> Self;
}

macro_rules! finish {
    ($($w:ty => $o:ty: |$x:ident| $body:expr;)*) => {$(
        impl Finish<$w> for $o {
            #[inline(always)]
            fn finish($x: $w) -> Self { $body }
        }
    )*};
}
finish! {
    f64 => f32: |x| x as f32;
    f64 => f64: |x| x;
    f64 => f16: |x| f16::from_f64(x);
    f64 => bf16: |x| bf16::from_f64(x);
    f32 => f32: |x| x;
    f32 => f16: |x| f16::from_f32(x);
    f32 => bf16: |x| bf16::from_f32(x);
    (f64, f64) => c64: |x| c64 { re: x.0 as f32, im: x.1 as f32 };
    c64 => c64: |x| x;
    u8 => u8: |x| x; u16 => u16: |x| x; u32 => u32: |x| x; u64 => u64: |x| x;
    i8 => i8: |x| x; i16 => i16: |x| x; i32 => i32: |x| x; i64 => i64: |x| x;
}

struct Sum<T>(PhantomData<T>);
struct Prod<T>(PhantomData<T>);
struct Min<T>(PhantomData<T>);
struct Max<T>(PhantomData<T>);

macro_rules! folding {
    ($($op:ident $t:ty, $w:ty: $narrow:expr, $wide:expr; $step:expr; $widen:expr; $merge:expr;)*) => {$(
        impl Folding for $op<$t> {
            type T = $t;
            type W = $w;
            const NARROW: $t = $narrow;
            const WIDE: $w = $wide;
            #[inline(always)]
            fn step(a: $t, x: $t) -> $t { let f: fn($t, $t) -> $t = $step; f(a, x) }
            #[inline(always)]
            fn widen(x: $t) -> $w { let f: fn($t) -> $w = $widen; f(x) }
            #[inline(always)]
            fn merge(a: $w, b: $w) -> $w { let f: fn($w, $w) -> $w = $merge; f(a, b) }
        }
    )*};
}
// The neutral element of floating-point sums is -0, which keeps the sign of zero.
folding! {
    Sum f32, f64: -0.0, -0.0; |a, x| a + x; |x| x as f64; |a, b| a + b;
    Sum f64, f64: -0.0, -0.0; |a, x| a + x; |x| x; |a, b| a + b;
    Prod f32, f64: 1.0, 1.0; |a, x| a * x; |x| x as f64; |a, b| a * b;
    Prod f64, f64: 1.0, 1.0; |a, x| a * x; |x| x; |a, b| a * b;
    Sum c64, (f64, f64): c64 { re: -0.0, im: -0.0 }, (-0.0, -0.0);
        |a, x| c64 { re: a.re + x.re, im: a.im + x.im };
        |x| (x.re as f64, x.im as f64);
        |a, b| (a.0 + b.0, a.1 + b.1);
    Prod c64, (f64, f64): c64 { re: 1.0, im: 0.0 }, (1.0, 0.0);
        |a, x| c64 { re: a.re * x.re - a.im * x.im, im: a.re * x.im + a.im * x.re };
        |x| (x.re as f64, x.im as f64);
        |a, b| (a.0 * b.0 - a.1 * b.1, a.0 * b.1 + a.1 * b.0);
    Min c64, c64: c64 { re: f32::INFINITY, im: f32::INFINITY }, c64 { re: f32::INFINITY, im: f32::INFINITY };
        |a, x| if complex_less(x, a) || complex_nan(x) && !complex_nan(a) { x } else { a };
        |x| x;
        |a, x| if complex_less(x, a) || complex_nan(x) && !complex_nan(a) { x } else { a };
    Max c64, c64: c64 { re: f32::NEG_INFINITY, im: f32::NEG_INFINITY }, c64 { re: f32::NEG_INFINITY, im: f32::NEG_INFINITY };
        |a, x| if complex_less(a, x) || complex_nan(x) && !complex_nan(a) { x } else { a };
        |x| x;
        |a, x| if complex_less(a, x) || complex_nan(x) && !complex_nan(a) { x } else { a };
}

/// Compares by real part, then by imaginary part. False with a NaN.
#[inline(always)]
fn complex_less(a: c64, b: c64) -> bool {
    !complex_nan(a) && !complex_nan(b) && (a.re < b.re || (a.re == b.re && a.im < b.im))
}

#[inline(always)]
fn complex_nan(x: c64) -> bool {
    x.re.is_nan() || x.im.is_nan()
}

macro_rules! integers {
    ($($t:ty)*) => { folding! {$(
        Sum $t, $t: 0, 0; |a, x| a.wrapping_add(x); |x| x; |a, b| a.wrapping_add(b);
        Prod $t, $t: 1, 1; |a, x| a.wrapping_mul(x); |x| x; |a, b| a.wrapping_mul(b);
    )*} };
}
integers! { u8 u16 u32 u64 }

macro_rules! extremes {
    ($($t:ty: $least:expr, $greatest:expr;)*) => { folding! {$(
        // A NaN is selected and kept, because no comparison with it holds.
        Min $t, $t: $greatest, $greatest;
            |a, x| if x < a || is_nan(x) { x } else { a }; |x| x;
            |a, x| if x < a || is_nan(x) { x } else { a };
        Max $t, $t: $least, $least;
            |a, x| if x > a || is_nan(x) { x } else { a }; |x| x;
            |a, x| if x > a || is_nan(x) { x } else { a };
    )*} };
}
extremes! {
    f32: f32::NEG_INFINITY, f32::INFINITY;
    f64: f64::NEG_INFINITY, f64::INFINITY;
    u8: u8::MIN, u8::MAX; u16: u16::MIN, u16::MAX; u32: u32::MIN, u32::MAX; u64: u64::MIN, u64::MAX;
    i8: i8::MIN, i8::MAX; i16: i16::MIN, i16::MAX; i32: i32::MIN, i32::MAX; i64: i64::MIN, i64::MAX;
}

/// True for values that are not equal to themselves: NaN, for every type.
#[inline(always)]
#[allow(clippy::eq_op)]
fn is_nan<T: PartialEq + Copy>(x: T) -> bool {
    x != x
}

struct Rows<F>(*mut u8, Block, PhantomData<F>);

impl<F: Folding> Body for Rows<F> {
    type Output = ();
    #[inline(always)]
    fn call<I: Isa>(self, _: I) {
        let (wide, block) = (self.0 as *mut F::W, self.1);
        let is_long = block.rows * block.columns * size_of::<F::T>() > AHEAD;
        let ahead = if is_long { AHEAD } else { 0 };
        for r in 0..block.rows {
            let row = block.data.wrapping_offset(r as isize * block.stride) as *const F::T;
            // SAFETY: `wide` has an accumulator per row.
            let mut total = unsafe { *wide.add(r) };
            let mut at = 0;
            while at < block.columns {
                let n = CHUNK.min(block.columns - at);
                // SAFETY: the row has that many columns.
                let chunk = unsafe { core::slice::from_raw_parts(row.add(at), n) };
                total = F::merge(total, F::widen(fold_chunk::<F>(chunk, ahead)));
                at += n;
            }
            // SAFETY: as above.
            unsafe { *wide.add(r) = total };
        }
    }
}

/// Folds a chunk, and meanwhile prefetches memory `ahead` bytes later.
#[inline(always)]
fn fold_chunk<F: Folding>(chunk: &[F::T], ahead: usize) -> F::T {
    if chunk.len() < SHORT {
        return chunk.iter().fold(F::NARROW, |a, x| F::step(a, *x));
    }
    // Pass by value, so that the accumulators stay in registers during the loop.
    let (whole, rest) = chunk.as_chunks::<LANES>();
    let mut sums = [F::NARROW; LANES];
    for part in whole {
        for line in (0..size_of_val(part)).step_by(64) {
            prefetch(part.as_ptr().cast::<u8>().wrapping_add(ahead + line));
        }
        sums = core::array::from_fn(|k| F::step(sums[k], part[k]));
    }
    let mut lanes = sums;
    for (lane, x) in lanes.iter_mut().zip(rest) {
        *lane = F::step(*lane, *x);
    }
    let mut half = LANES / 2;
    while half > 0 {
        let (low, high) = lanes.split_at_mut(half);
        for (a, b) in low.iter_mut().zip(high) {
            *a = F::step(*a, *b);
        }
        half /= 2;
    }
    lanes[0]
}

struct Columns<F>(*mut u8, Block, PhantomData<F>);

impl<F: Folding> Body for Columns<F> {
    type Output = ();
    #[inline(always)]
    fn call<I: Isa>(self, _: I) {
        let block = self.1;
        // SAFETY: `narrow` has an accumulator per column and is no part of the block.
        let narrow = unsafe { core::slice::from_raw_parts_mut(self.0 as *mut F::T, block.columns) };
        let row = |r: usize| {
            let data = block.data.wrapping_offset(r as isize * block.stride) as *const F::T;
            // SAFETY: every row has that many columns.
            unsafe { core::slice::from_raw_parts(data, block.columns) }
        };
        let mut r = 0;
        // Process four rows at a time. The order is the same, and accumulators are loaded and stored a quarter as
        // often.
        while r + 4 <= block.rows {
            let (a, b, c, d) = (row(r), row(r + 1), row(r + 2), row(r + 3));
            for (i, acc) in narrow.iter_mut().enumerate() {
                *acc = F::step(F::step(F::step(F::step(*acc, a[i]), b[i]), c[i]), d[i]);
            }
            r += 4;
        }
        for r in r..block.rows {
            for (acc, x) in narrow.iter_mut().zip(row(r)) {
                *acc = F::step(*acc, *x);
            }
        }
    }
}

/// # Safety
/// As the fields of [`Fold`] say, of this one and those below.
unsafe fn rows<F: Folding, const LEVEL: u8>(wide: *mut u8, block: Block) {
    level::at(of(LEVEL), Rows::<F>(wide, block, PhantomData))
}

/// # Safety
/// See [`Fold`].
unsafe fn columns<F: Folding, const LEVEL: u8>(narrow: *mut u8, block: Block) {
    level::at(of(LEVEL), Columns::<F>(narrow, block, PhantomData))
}

/// The level of a number, for functions that are compiled per level.
#[inline(always)]
const fn of(level: u8) -> Level {
    match level {
        0 => Level::Baseline,
        1 => Level::V3,
        _ => Level::V4,
    }
}

/// # Safety
/// See [`Fold`].
unsafe fn init<T: Copy + 'static, K: Neutral<T>>(data: *mut u8, n: usize) {
    // SAFETY: by the contract of `Fold`.
    (0..n).for_each(|i| unsafe { (data as *mut T).add(i).write(K::VALUE) });
}

/// The neutral element that `init` writes.
trait Neutral<T> {
    const VALUE: T;
}
struct Narrow<F>(PhantomData<F>);
struct Wide<F>(PhantomData<F>);
impl<F: Folding> Neutral<F::T> for Narrow<F> {
    const VALUE: F::T = F::NARROW;
}
impl<F: Folding> Neutral<F::W> for Wide<F> {
    const VALUE: F::W = F::WIDE;
}

/// # Safety
/// See [`Fold`].
unsafe fn flush<F: Folding>(wide: *mut u8, narrow: *mut u8, n: usize) {
    let (wide, narrow) = (wide as *mut F::W, narrow as *mut F::T);
    for i in 0..n {
        // SAFETY: by the contract of `Fold`.
        unsafe {
            *wide.add(i) = F::merge(*wide.add(i), F::widen(*narrow.add(i)));
            *narrow.add(i) = F::NARROW;
        }
    }
}

/// # Safety
/// See [`Fold`].
unsafe fn merge<F: Folding>(wide: *mut u8, from: *const u8, n: usize) {
    let (wide, from) = (wide as *mut F::W, from as *const F::W);
    for i in 0..n {
        // SAFETY: by the contract of `Fold`.
        unsafe { *wide.add(i) = F::merge(*wide.add(i), *from.add(i)) };
    }
}

/// # Safety
/// See [`Fold`].
unsafe fn finish<F: Folding, O: Finish<F::W>>(out: *mut u8, wide: *const u8, n: usize) {
    for i in 0..n {
        // SAFETY: by the contract of `Fold`.
        unsafe { *(out as *mut O).add(i) = O::finish(*(wide as *const F::W).add(i)) };
    }
}

fn make<F: Folding, O: Finish<F::W>>(level: Level) -> Fold {
    Fold {
        narrow: size_of::<F::T>(),
        wide: size_of::<F::W>(),
        out: size_of::<O>(),
        init_narrow: init::<F::T, Narrow<F>>,
        init_wide: init::<F::W, Wide<F>>,
        rows: match level {
            Level::Baseline => rows::<F, 0>,
            Level::V3 => rows::<F, 1>,
            Level::V4 | Level::Amx => rows::<F, 2>,
        },
        columns: match level {
            Level::Baseline => columns::<F, 0>,
            Level::V3 => columns::<F, 1>,
            Level::V4 | Level::Amx => columns::<F, 2>,
        },
        flush: flush::<F>,
        merge: merge::<F>,
        finish: finish::<F, O>,
    }
}
