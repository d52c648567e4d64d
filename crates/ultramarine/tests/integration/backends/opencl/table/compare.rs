//! Values to try, layouts to put them in, and when two results are the same.

use super::side::{Case, Operand, Side, count, row_major, size};
use half::{bf16, f16};
use ultramarine_abi::{schema::DTYPES, status};
use ultramarine_test_support::{self as numbers, Rng, Tolerance};

pub const BOOL: usize = 0;
pub const U8: usize = 1;
pub const U32: usize = 3;
pub const U64: usize = 4;
pub const I32: usize = 7;
pub const I64: usize = 8;
pub const F16: usize = 9;
pub const F32: usize = 10;
pub const F64: usize = 11;
pub const BF16: usize = 12;
pub const C64: usize = 13;

/// Where things get interesting.
const SPECIAL: &[f64] = &[
    0.0,
    -0.0,
    1.0,
    -1.0,
    2.0,
    -2.0,
    0.5,
    -0.5,
    1.5,
    2.5,
    -2.5,
    3.0,
    7.0,
    -7.0,
    10.0,
    31.0,
    32.0,
    64.0,
    100.0,
    127.0,
    128.0,
    -128.0,
    255.0,
    256.0,
    0.1,
    -0.1,
    0.99,
    -0.99,
    1e-3,
    1e-5,
    1e-8,
    1e5,
    -1e5,
    65504.0,
    65520.0,
    1e9,
    -1e9,
    3e9,
    1e19,
    -1e19,
    1e30,
    1e-30,
    6e-8,
    1e-40,
    88.0,
    -88.0,
    1e300,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
];

/// What a dtype is called.
pub fn name_of(dtype: usize) -> &'static str {
    DTYPES[dtype].0
}

/// One element's bytes from a number.
pub fn element(dtype: usize, x: f64) -> Vec<u8> {
    match name_of(dtype) {
        "bool" => vec![(x != 0.0) as u8],
        "uint8" | "int8" => (x as i64 as u8).to_le_bytes().into(),
        "uint16" | "int16" => (x as i64 as u16).to_le_bytes().into(),
        "uint32" | "int32" => (x as i64 as u32).to_le_bytes().into(),
        "uint64" | "int64" => (x as i64 as u64).to_le_bytes().into(),
        "float16" => f16::from_f64(x).to_le_bytes().into(),
        "bfloat16" => bf16::from_f64(x).to_le_bytes().into(),
        "float32" => (x as f32).to_le_bytes().into(),
        "float64" => x.to_le_bytes().into(),
        _ => [(x as f32).to_le_bytes(), (x as f32).to_le_bytes()].concat(),
    }
}

/// `n` elements: special ones if `wild`, and random ones of modest size.
pub fn values(dtype: usize, n: usize, seed: u64, wild: bool) -> Vec<u8> {
    let mut rng = Rng::new(seed);
    let mut out = Vec::with_capacity(n * size(dtype));
    for i in 0..n {
        let mut one = || {
            let pick = rng.below(3) != 0;
            let special = *rng.pick(SPECIAL);
            let plain = rng.below(4001) as f64 / 500.0 - 4.0;
            if wild && i < 2 * SPECIAL.len() && dtype != C64 {
                SPECIAL[(i + seed as usize * 7) % SPECIAL.len()]
            } else if wild && pick && !special.is_nan() {
                special
            } else {
                plain
            }
        };
        let bytes = match dtype {
            C64 => [(one() as f32).to_le_bytes(), (one() as f32).to_le_bytes()].concat(),
            F16 | F32 | F64 | BF16 | BOOL => element(dtype, one()),
            // Integers of all sizes.
            _ if wild => {
                let bits = rng.bits() >> rng.below(64);
                let sign = if rng.coin() { bits } else { bits.wrapping_neg() };
                sign.to_le_bytes()[..size(dtype)].to_vec()
            }
            _ => element(dtype, (one() * 3.0).trunc()),
        };
        out.extend(bytes);
    }
    out
}

/// The kinds of layouts that `place` knows.
pub const LAYOUTS: usize = 5;

/// Row-major values laid out: 0 row-major, 1 axes reversed in memory, 2 every axis backwards,
/// 3 every second element behind an offset, 4 the first axis broadcast (its first slice is repeated).
pub fn place(dtype: usize, values: &[u8], shape: &[i64], kind: usize) -> Operand {
    let (n, width) = (count(shape), size(dtype));
    let reversed: Vec<i64> = shape.iter().rev().copied().collect();
    let mut strides = row_major(shape);
    let mut offset = 0;
    match kind {
        1 => strides = row_major(&reversed).into_iter().rev().collect(),
        2 => {
            offset = n as i64 - 1;
            strides.iter_mut().for_each(|s| *s = -*s);
        }
        3 => {
            offset = 3;
            strides.iter_mut().for_each(|s| *s *= 2);
        }
        4 if !shape.is_empty() => strides[0] = 0,
        _ => {}
    }
    let mut bytes = vec![0xEE; (2 * n + 4) * width];
    for i in 0..n {
        let (mut rest, mut at) = (i as i64, offset);
        for (extent, stride) in shape.iter().zip(&strides).rev() {
            at += rest % extent * stride;
            rest /= extent;
        }
        let at = at as usize * width;
        // What is broadcast keeps the first value.
        if kind != 4 || i < n / shape.first().map_or(1, |d| *d as usize) {
            bytes[at..at + width].copy_from_slice(&values[i * width..(i + 1) * width]);
        }
    }
    if kind == 0 {
        bytes.truncate(n * width);
    }
    Operand { dtype, bytes, shape: shape.to_vec(), strides, offset }
}

/// Numbers of an element: one, or two of complex.
fn parts(dtype: usize, bytes: &[u8]) -> [f64; 2] {
    let f32_at =
        |i: usize| f32::from_le_bytes(bytes[i..i + 4].try_into().unwrap_or_default()) as f64;
    match dtype {
        F16 => [f16::from_le_bytes([bytes[0], bytes[1]]).to_f64(), 0.0],
        BF16 => [bf16::from_le_bytes([bytes[0], bytes[1]]).to_f64(), 0.0],
        F32 => [f32_at(0), 0.0],
        F64 => [f64::from_le_bytes(bytes.try_into().unwrap_or_default()), 0.0],
        _ => [f32_at(0), f32_at(4)],
    }
}

/// Unit in the last place, and the smallest normal number.
fn unit(dtype: usize) -> (f64, f64) {
    match dtype {
        F16 => (2f64.powi(-10), 2f64.powi(-14)),
        BF16 => (2f64.powi(-7), 2f64.powi(-126)),
        F64 => (2f64.powi(-52), 2f64.powi(-1022)),
        _ => (2f64.powi(-23), 2f64.powi(-126)),
    }
}

/// Whether results agree to `ulps` units (of the larger part of complex numbers), plus `absolute`. Of halves two units
/// count at most: both sides compute in float32 and round once.
pub fn agree(dtype: usize, got: &[u8], want: &[u8], ulps: f64, absolute: f64) -> Option<String> {
    let width = size(dtype);
    let ulps = if matches!(dtype, F16 | BF16) { ulps.min(2.0) } else { ulps };
    for (i, (g, w)) in got.chunks(width).zip(want.chunks(width)).enumerate() {
        if g == w {
            continue;
        }
        if !matches!(dtype, F16 | F32 | F64 | BF16 | C64) {
            return Some(format!("at {i}: {g:?} for {w:?}"));
        }
        let (a, b) = (parts(dtype, g), parts(dtype, w));
        let (eps, least) = unit(dtype);
        let scale = b.iter().filter(|x| x.is_finite()).fold(least, |m, x| m.max(x.abs()));
        let bound = Tolerance::absolute(ulps * eps * scale + absolute);
        if let Err(text) = numbers::compare(&a, &b, bound) {
            return Some(format!("at {i}: {a:?} for {b:?}: {text}"));
        }
    }
    None
}

/// Two sides, what they disagreed on, and how much was compared.
pub struct Pair {
    pub cpu: Side,
    pub opencl: Side,
    pub compared: usize,
    pub wrong: Vec<String>,
}

impl Pair {
    /// Runs a case on both. What the CPU takes OpenCL must take too.
    pub fn check(&mut self, what: &str, case: &Case, ulps: f64, absolute: f64) {
        let want = match self.cpu.run(case) {
            Ok(bytes) => bytes,
            Err((code, _)) if code == status::UNSUPPORTED || code == status::ERROR => {
                if self.opencl.run(case).is_ok() {
                    self.wrong.push(format!("{what}: the CPU refuses that"));
                }
                return;
            }
            Err((code, text)) => {
                self.wrong.push(format!("{what}: the CPU says {code}: {text}"));
                return;
            }
        };
        self.compared += 1;
        match self.opencl.run(case) {
            Ok(got) => {
                if let Some(text) = agree(case.dtype, &got, &want, ulps, absolute) {
                    self.wrong.push(format!("{what}: {text}"));
                }
            }
            Err((code, text)) => self.wrong.push(format!("{what}: status {code}: {text}")),
        }
    }

    pub fn close(self) {
        assert!(self.compared > 0, "nothing was compared");
        let n = self.wrong.len();
        let first: Vec<_> = self.wrong.into_iter().take(60).collect();
        assert!(first.is_empty(), "{n} disagree:\n{}", first.join("\n"));
    }
}
