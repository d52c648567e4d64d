//! Conversions: every pair of dtypes against a reference, and MLX's rules for
//! what does not fit.

use super::run;
use half::{bf16, f16};
use ultramarine_cpu::dtype::{Bool, DType, Element, c64};
use ultramarine_cpu::{elementwise::TileOp, level::Level};
use ultramarine_test_support::Rng;

/// A value as the reference sees it.
#[derive(Clone, Copy, Debug)]
enum Value {
    Int(i128),
    Float(f64),
}

trait Cast: Element + std::fmt::Debug {
    fn value(self) -> Value;
    /// From integers and float32 (what float16 is made from) exactly once rounded.
    fn expect(v: Value) -> Self;
}

/// MLX on x86: int32 for the narrow types, the smallest where it does not fit.
fn truncate(x: f64, bits: u32, signed: bool) -> i128 {
    let bits = bits.max(32);
    let limit = 2f64.powi(bits as i32 - 1);
    let fits = |x: f64| if x.trunc() >= -limit && x < limit { x as i128 } else { -limit as i128 };
    if !signed && bits >= 32 && x >= limit { fits(x - limit) ^ (1 << (bits - 1)) } else { fits(x) }
}

macro_rules! integers {
    ($($t:ident)*) => {$(
        impl Cast for $t {
            fn value(self) -> Value { Value::Int(self as i128) }
            fn expect(v: Value) -> Self {
                match v {
                    Value::Int(x) => x as $t,
                    Value::Float(x) => {
                        truncate(x, $t::BITS, $t::MIN != 0 || $t::BITS < 32) as $t
                    }
                }
            }
        }
    )*};
}
integers! { u8 u16 u32 u64 i8 i16 i32 i64 }

macro_rules! floats {
    ($($t:ident: |$x:ident| $to:expr, |$v:ident| $from:expr;)*) => {$(
        impl Cast for $t {
            fn value(self) -> Value { let $x = self; Value::Float($to) }
            fn expect(v: Value) -> Self {
                let single = match v { Value::Int(x) => x as f32, Value::Float(x) => x as f32 };
                let double = match v { Value::Int(x) => x as f64, Value::Float(x) => x };
                let $v = (single, double);
                $from
            }
        }
    )*};
}
floats! {
    f32: |x| x as f64, |v| v.0;
    f64: |x| x, |v| v.1;
    f16: |x| x.to_f64(), |v| f16::from_f32(v.0);
    bf16: |x| x.to_f64(), |v| bf16::from_f32(v.0);
    c64: |z| z.re as f64, |v| c64 { re: v.0, im: 0.0 };
}

impl Cast for Bool {
    fn value(self) -> Value {
        Value::Int(self.0 as i128)
    }
    fn expect(v: Value) -> Self {
        Bool(match v {
            Value::Int(x) => x != 0,
            Value::Float(x) => x != 0.0,
        } as u8)
    }
}

fn check<A: Cast, D: Cast>() {
    let mut random = Rng::new(1);
    let mut x: Vec<A> = Vec::new();
    for v in [
        0.0,
        -0.0,
        1.0,
        -1.0,
        -1.5,
        0.5,
        -0.5,
        255.9,
        256.0,
        -129.0,
        300.0,
        65520.0,
        70000.0,
        3.0e9,
        -3.0e9,
        2147483647.0,
        2147483648.0,
        -2147483648.0,
        -2147483649.0,
        4294967296.0,
        1.0e19,
        2.0e19,
        -1.0e19,
        9.3e18,
        1.0e300,
        1.0e-300,
        f64::INFINITY,
        -f64::INFINITY,
        f64::NAN,
        1.0 + 1.0 / 2048.0 + 1.0e-12,
    ] {
        x.push(A::expect(Value::Float(v)));
    }
    for v in [
        0,
        1,
        -1,
        127,
        128,
        255,
        256,
        65519,
        65520,
        (1 << 24) + 1,
        (1i128 << 40) + (1 << 32) + 1,
        i64::MAX as i128,
        i64::MIN as i128,
        u64::MAX as i128,
    ] {
        x.push(A::expect(Value::Int(v)));
    }
    for _ in 0..300 {
        x.push(A::expect(Value::Int(random.bits() as i128 >> (random.bits() % 64))));
        x.push(A::expect(Value::Float(random.uniform(-300.0, 300.0))));
    }
    for &level in Level::available() {
        let got: Vec<D> = run(level, TileOp::Cast(D::DTYPE), &x, &[]);
        for (x, got) in x.iter().zip(got) {
            let want = D::expect(x.value());
            // NaN is unequal to itself, and equal in print.
            assert!(
                got == want || format!("{got:?}") == format!("{want:?}"),
                "{:?} -> {:?}, {level:?}: {x:?}: {got:?}, not {want:?}",
                A::DTYPE,
                D::DTYPE
            );
        }
    }
}

#[test]
fn every_pair() {
    for from in DType::ALL {
        for to in DType::ALL {
            for_dtype!(from, A => for_dtype!(to, B => check::<A, B>()));
        }
    }
}

#[test]
fn complex_is_true_if_either_part_is() {
    let z = [c64 { re: 0.0, im: 2.0 }, c64::default(), c64 { re: f32::NAN, im: 0.0 }];
    for &level in Level::available() {
        let got: Vec<Bool> = run(level, TileOp::Cast(DType::Bool), &z, &[]);
        assert_eq!(got, [Bool(1), Bool(0), Bool(1)]);
    }
}
