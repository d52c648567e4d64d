//! float16 and bfloat16: a chunk is widened to float32, the float32 function runs on it, and the
//! result is rounded once, to nearest even. One exception: for a floored quotient, x / y is rounded
//! to the dtype before it is floored.

use super::{TileFn, TileOp, lookup, loops::unary, result_dtype};
use crate::{dtype::DType, level::Level};
use std::mem::MaybeUninit;
use ultramarine_abi::schema::{binary as b, unary as u};

/// float16 bits to float32.
#[inline(always)]
pub fn f16_to_f32(h: u16) -> f32 {
    let magnitude = ((h & 0x7fff) as u32) << 13;
    // The exponents' biases differ by 112. The product also normalises denormals.
    let scaled = (f32::from_bits(magnitude) * f32::from_bits((127 + 112) << 23)).to_bits();
    let special = if h & 0x7c00 == 0x7c00 { 0x7f80_0000 } else { 0 };
    f32::from_bits(scaled | special | ((h & 0x8000) as u32) << 16)
}

/// float32 to float16 bits.
#[inline(always)]
pub fn f32_to_f16(x: f32) -> u16 {
    let bits = x.to_bits();
    let sign = (bits >> 16) & 0x8000;
    let magnitude = bits & 0x7fff_ffff;
    // Below 2^-14, the sum with 0.5 has units of 2^-24, the same as denormals.
    let small = (f32::from_bits(magnitude) + 0.5).to_bits().wrapping_sub(0.5f32.to_bits());
    let odd = (magnitude >> 13) & 1;
    let normal = magnitude.wrapping_add(0xfff + odd).wrapping_sub(112 << 23) >> 13;
    let finite = if magnitude < (113 << 23) { small } else { normal };
    let large = if magnitude > 0x7f80_0000 { 0x7e00 } else { 0x7c00 };
    // 65520 and above round to infinity.
    let result = if magnitude >= 0x477f_f000 { large } else { finite };
    (result | sign) as u16
}

/// bfloat16 bits to float32.
#[inline(always)]
pub fn bf16_to_f32(h: u16) -> f32 {
    f32::from_bits((h as u32) << 16)
}

/// float32 to bfloat16 bits.
#[inline(always)]
pub fn f32_to_bf16(x: f32) -> u16 {
    let bits = x.to_bits();
    let rounded = bits.wrapping_add(0x7fff + ((bits >> 16) & 1)) >> 16;
    let quiet = (bits >> 16) | 0x40;
    (if bits & 0x7fff_ffff > 0x7f80_0000 { quiet } else { rounded }) as u16
}

/// Half to float32.
fn widen(level: Level, from: DType) -> TileFn {
    if from == DType::F16 {
        unary!(level, u16 => f32, |x| f16_to_f32(x))
    } else {
        unary!(level, u16 => f32, |x| bf16_to_f32(x))
    }
}

/// float32 to half.
fn narrow(level: Level, to: DType) -> TileFn {
    if to == DType::F16 {
        unary!(level, f32 => u16, |x| f32_to_f16(x))
    } else {
        unary!(level, f32 => u16, |x| f32_to_bf16(x))
    }
}

/// Elements of a chunk.
const CHUNK: usize = 256;

#[repr(align(64))]
struct Chunk(MaybeUninit<[f32; CHUNK]>);

impl Chunk {
    const NEW: Chunk = Chunk(MaybeUninit::uninit());
    fn get(&mut self) -> *mut u8 {
        self.0.as_mut_ptr() as *mut u8
    }
}

/// Runs an operation on float16 or bfloat16; `b` is used only if it is binary.
///
/// # Safety
/// As for [`TileFn`], for an op that float32 has.
#[inline(never)]
unsafe fn run(
    level: Level,
    op: TileOp,
    dtype: DType,
    dst: *mut u8,
    a: *const u8,
    b: *const u8,
    n: usize,
) {
    let (op, then) = match op {
        TileOp::Binary(b::FLOOR_DIVIDE) => {
            (TileOp::Binary(b::DIVIDE), lookup(level, TileOp::Unary(u::FLOOR), DType::F32))
        }
        _ => (op, None),
    };
    let Some(function) = lookup(level, op, DType::F32) else { return };
    let (widen, narrow) = (widen(level, dtype), narrow(level, dtype));
    let to_half = result_dtype(op, DType::F32) == DType::F32;
    let binary = matches!(op, TileOp::Binary(_));
    let null = std::ptr::null();
    let (mut x, mut y, mut z) = (Chunk::NEW, Chunk::NEW, Chunk::NEW);
    let mut i = 0;
    while i < n {
        let m = CHUNK.min(n - i);
        // SAFETY: within the n elements that the contract of TileFn promises; both
        // operands are read before the output is written.
        unsafe {
            widen(x.get(), a.add(2 * i), null, null, m);
            if binary {
                widen(y.get(), b.add(2 * i), null, null, m);
            }
            if to_half {
                function(z.get(), x.get(), y.get(), null, m);
                narrow(dst.add(2 * i), z.get(), null, null, m);
                if let Some(then) = then {
                    widen(x.get(), dst.add(2 * i), null, null, m);
                    then(z.get(), x.get(), null, null, m);
                    narrow(dst.add(2 * i), z.get(), null, null, m);
                }
            } else {
                function(dst.add(i), x.get(), y.get(), null, m);
            }
        }
        i += m;
    }
}

/// Converts through float32.
///
/// # Safety
/// As for [`TileFn`]; one of the dtypes is a half.
#[inline(never)]
unsafe fn convert(level: Level, from: DType, to: DType, dst: *mut u8, a: *const u8, n: usize) {
    let first = lookup(level, TileOp::Cast(DType::F32), from);
    let second = lookup(level, TileOp::Cast(to), DType::F32);
    let (Some(first), Some(second)) = (first, second) else { return };
    let null = std::ptr::null();
    let mut x = Chunk::NEW;
    let mut i = 0;
    while i < n {
        let m = CHUNK.min(n - i);
        // SAFETY: as in `run`.
        unsafe {
            first(x.get(), a.add(i * from.size()), null, null, m);
            second(dst.add(i * to.size()), x.get(), null, null, m);
        }
        i += m;
    }
}

const fn level_of(level: u8) -> Level {
    match level {
        0 => Level::Baseline,
        1 => Level::V3,
        _ => Level::V4,
    }
}

/// # Safety
/// As for [`TileFn`].
unsafe fn unary_entry<const OP: u32, const TYPE: u8, const LEVEL: u8>(
    dst: *mut u8,
    a: *const u8,
    _: *const u8,
    _: *const u8,
    n: usize,
) {
    // SAFETY: passed on.
    unsafe { run(level_of(LEVEL), TileOp::Unary(OP), DType::ALL[TYPE as usize], dst, a, a, n) }
}

/// # Safety
/// As for [`TileFn`].
unsafe fn binary_entry<const OP: u32, const TYPE: u8, const LEVEL: u8>(
    dst: *mut u8,
    a: *const u8,
    b: *const u8,
    _: *const u8,
    n: usize,
) {
    // SAFETY: passed on.
    unsafe { run(level_of(LEVEL), TileOp::Binary(OP), DType::ALL[TYPE as usize], dst, a, b, n) }
}

/// # Safety
/// As for [`TileFn`].
unsafe fn convert_entry<const FROM: u8, const TO: u8, const LEVEL: u8>(
    dst: *mut u8,
    a: *const u8,
    _: *const u8,
    _: *const u8,
    n: usize,
) {
    let (from, to) = (DType::ALL[FROM as usize], DType::ALL[TO as usize]);
    // SAFETY: passed on.
    unsafe { convert(level_of(LEVEL), from, to, dst, a, n) }
}

const F16: u8 = DType::F16 as u8;
const BF16: u8 = DType::BF16 as u8;

/// The function that an entry with one more constant has for a level.
macro_rules! at_level {
    ($level:expr, $entry:ident, $x:expr, $y:expr) => {
        match $level {
            Level::Baseline => $entry::<{ $x }, { $y }, 0>,
            Level::V3 => $entry::<{ $x }, { $y }, 1>,
            Level::V4 | Level::Amx => $entry::<{ $x }, { $y }, 2>,
        }
    };
}

macro_rules! at_code {
    ($level:expr, $dtype:expr, $code:expr, $entry:ident, $codes:ident: $($op:ident)*) => {
        match ($code, $dtype) {
            $(
                ($codes::$op, DType::F16) => at_level!($level, $entry, $codes::$op, F16),
                ($codes::$op, _) => at_level!($level, $entry, $codes::$op, BF16),
            )*
            _ => return None,
        }
    };
}

pub(super) fn unary(level: Level, code: u32, dtype: DType) -> Option<TileFn> {
    lookup(level, TileOp::Unary(code), DType::F32)?;
    Some(at_code!(level, dtype, code, unary_entry, u:
        ABS NEGATIVE SIGN SQUARE SQRT RSQRT RECIPROCAL EXP EXPM1 LOG LOG2 LOG10 LOG1P SIN COS
        TAN ARCSIN ARCCOS ARCTAN SINH COSH TANH ARCSINH ARCCOSH ARCTANH ERF ERFINV SIGMOID FLOOR
        CEIL ROUND TRUNC LOGICAL_NOT ISNAN ISINF ISFINITE CONJUGATE REAL IMAG))
}

pub(super) fn binary(level: Level, code: u32, dtype: DType) -> Option<TileFn> {
    lookup(level, TileOp::Binary(code), DType::F32)?;
    Some(at_code!(level, dtype, code, binary_entry, b:
        ADD SUBTRACT MULTIPLY DIVIDE FLOOR_DIVIDE REMAINDER POWER MAXIMUM MINIMUM LOGADDEXP
        ARCTAN2 EQUAL NOT_EQUAL LESS LESS_EQUAL GREATER GREATER_EQUAL LOGICAL_AND LOGICAL_OR
        EQUAL_NAN))
}

macro_rules! at_dtype {
    ($level:expr, $dtype:expr, $pair:ident $half:expr) => {
        at_dtype!(@ $level, $dtype, $pair, $half,
            Bool U8 U16 U32 U64 I8 I16 I32 I64 F64 C64 F16 BF16)
    };
    (@ $level:expr, $dtype:expr, from, $half:expr, $($name:ident)*) => {
        match $dtype {
            $(DType::$name => at_level!($level, convert_entry, $half, DType::$name as u8),)*
            DType::F32 => widen($level, DType::ALL[$half as usize]),
        }
    };
    (@ $level:expr, $dtype:expr, to, $half:expr, $($name:ident)*) => {
        match $dtype {
            $(DType::$name => at_level!($level, convert_entry, DType::$name as u8, $half),)*
            DType::F32 => narrow($level, DType::ALL[$half as usize]),
        }
    };
}

/// From a half to `to`, another dtype.
pub(super) fn cast_from(level: Level, from: DType, to: DType) -> TileFn {
    if from == DType::F16 {
        at_dtype!(level, to, from F16)
    } else {
        at_dtype!(level, to, from BF16)
    }
}

/// From another dtype to a half.
pub(super) fn cast_to(level: Level, from: DType, to: DType) -> TileFn {
    if to == DType::F16 { at_dtype!(level, from, to F16) } else { at_dtype!(level, from, to BF16) }
}
