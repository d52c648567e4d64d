//! Integers and bool: exhaustive for 8 bits, and what must not trap.

use super::run;
use ultramarine_abi::schema::{binary as b, unary as u};
use ultramarine_cpu::dtype::{Bool, Element};
use ultramarine_cpu::{elementwise::TileOp, level::Level};
use ultramarine_test_support::Rng;

/// An op's result on exact integers, before wrapping; `None`: not defined here.
fn binary_reference(code: u32, x: i128, y: i128, bits: u32, signed: bool) -> Option<i128> {
    Some(match code {
        b::ADD => x + y,
        b::SUBTRACT => x - y,
        b::MULTIPLY => x.wrapping_mul(y),
        b::FLOOR_DIVIDE if y == 0 => 0,
        b::REMAINDER if y == 0 => x,
        b::FLOOR_DIVIDE => (x - (x % y + y) % y) / y,
        b::REMAINDER => (x % y + y) % y,
        b::MAXIMUM => x.max(y),
        b::MINIMUM => x.min(y),
        b::BITWISE_AND => x & y,
        b::BITWISE_OR => x | y,
        b::BITWISE_XOR => x ^ y,
        b::LEFT_SHIFT if (0..bits as i128).contains(&y) => x << y,
        b::LEFT_SHIFT => 0,
        b::RIGHT_SHIFT if (0..bits as i128).contains(&y) => x >> y,
        b::RIGHT_SHIFT => {
            if signed && x < 0 {
                -1
            } else {
                0
            }
        }
        b::POWER if y < 0 => 0,
        b::POWER => (0..y).fold(1, |p, _| (p * x) & ((1 << bits) - 1)),
        b::EQUAL | b::EQUAL_NAN => (x == y) as i128,
        b::NOT_EQUAL => (x != y) as i128,
        b::LESS => (x < y) as i128,
        b::LESS_EQUAL => (x <= y) as i128,
        b::GREATER => (x > y) as i128,
        b::GREATER_EQUAL => (x >= y) as i128,
        b::LOGICAL_AND => (x != 0 && y != 0) as i128,
        b::LOGICAL_OR => (x != 0 || y != 0) as i128,
        _ => return None,
    })
}

fn unary_reference(code: u32, x: i128) -> Option<i128> {
    Some(match code {
        u::ABS => x.abs(),
        u::NEGATIVE => -x,
        u::SIGN => x.signum(),
        u::SQUARE => x.wrapping_mul(x),
        u::FLOOR | u::CEIL | u::ROUND | u::TRUNC | u::CONJUGATE | u::REAL => x,
        u::IMAG | u::ISNAN | u::ISINF => 0,
        u::ISFINITE => 1,
        u::LOGICAL_NOT => (x == 0) as i128,
        u::BITWISE_INVERT => !x,
        _ => return None,
    })
}

trait Integer: Element + std::fmt::Debug {
    const BITS: u32;
    const SIGNED: bool;
    fn wide(self) -> i128;
    fn wrap(x: i128) -> Self;
}

macro_rules! integer {
    ($($t:ident)*) => {$(
        impl Integer for $t {
            const BITS: u32 = $t::BITS;
            const SIGNED: bool = $t::MIN != 0;
            fn wide(self) -> i128 { self as i128 }
            fn wrap(x: i128) -> Self { x as $t }
        }
    )*};
}
integer! { u8 u16 u32 u64 i8 i16 i32 i64 }

fn check<T: Integer>(x: &[T], y: &[T], slow: bool) {
    for &level in Level::available() {
        for code in 0..b::NAMES.len() as u32 {
            if binary_reference(code, 1, 1, 8, true).is_none() || code == b::POWER && !slow {
                continue;
            }
            let name = b::NAMES[code as usize];
            let want = |i: usize| {
                binary_reference(code, x[i].wide(), y[i].wide(), T::BITS, T::SIGNED).unwrap()
            };
            let op = TileOp::Binary(code);
            if super::result_dtype(op, T::DTYPE) == T::DTYPE {
                for (i, got) in run::<T, T>(level, op, x, y).into_iter().enumerate() {
                    assert_eq!(got, T::wrap(want(i)), "{name} {:?} {:?}", x[i], y[i]);
                }
            } else {
                for (i, got) in run::<T, Bool>(level, op, x, y).into_iter().enumerate() {
                    assert_eq!(got.0 as i128, want(i), "{name} {:?} {:?}", x[i], y[i]);
                }
            }
        }
        for code in 0..u::NAMES.len() as u32 {
            if unary_reference(code, 1).is_none() {
                continue;
            }
            let name = u::NAMES[code as usize];
            let op = TileOp::Unary(code);
            let want = |i: usize| unary_reference(code, x[i].wide()).unwrap();
            if super::result_dtype(op, T::DTYPE) == T::DTYPE {
                for (i, got) in run::<T, T>(level, op, x, x).into_iter().enumerate() {
                    assert_eq!(got, T::wrap(want(i)), "{name} {:?}", x[i]);
                }
            } else {
                for (i, got) in run::<T, Bool>(level, op, x, x).into_iter().enumerate() {
                    assert_eq!(got.0 as i128, want(i), "{name} {:?}", x[i]);
                }
            }
        }
    }
}

#[test]
fn eight_bits_exhaustively() {
    let pairs: Vec<(u8, u8)> = (0..1 << 16).map(|i: u32| ((i >> 8) as u8, i as u8)).collect();
    let (x, y): (Vec<u8>, Vec<u8>) = pairs.into_iter().unzip();
    check(&x, &y, true);
    let signed = |v: &[u8]| v.iter().map(|&x| x as i8).collect::<Vec<_>>();
    check(&signed(&x), &signed(&y), true);
}

fn wide<T: Integer>() {
    let mut random = Rng::new(1);
    let low = if T::SIGNED { -(1i128 << (T::BITS - 1)) } else { 0 };
    let high = low + (1i128 << T::BITS) - 1;
    let edges = [low, low + 1, high, high - 1, 0, 1, 2, 3, 7, 8, 15, 16, 31, 32, 63, 64, -1, -2];
    let (mut x, mut y) = (Vec::new(), Vec::new());
    for a in edges {
        for b in edges {
            x.push(T::wrap(a));
            y.push(T::wrap(b));
        }
    }
    for i in 0..3000 {
        x.push(T::wrap(random.bits() as i128));
        let small = random.bits() % 70;
        y.push(T::wrap(if i % 2 == 0 { small as i128 } else { random.bits() as i128 }));
    }
    check(&x, &y, false);
}

#[test]
fn wider_integers_at_edges_and_random() {
    wide::<u16>();
    wide::<i16>();
    wide::<u32>();
    wide::<i32>();
    wide::<u64>();
    wide::<i64>();
}

#[test]
fn powers_wrap() {
    let (x, y): (Vec<i64>, Vec<i64>) =
        [(3, 4), (2, 63), (2, 64), (5, 30), (-1, 7), (-2, -1), (1, -3), (0, 0), (7, 1 << 40)]
            .into_iter()
            .unzip();
    let got: Vec<i64> = run(Level::Baseline, TileOp::Binary(b::POWER), &x, &y);
    let want = x.iter().zip(&y).map(|(&x, &y): (&i64, &i64)| {
        if y < 0 {
            return 0;
        }
        // Square and multiply from the top, unlike the kernel.
        (0..64).rev().fold(1i64, |p, bit| {
            let p = p.wrapping_mul(p);
            if y >> bit & 1 == 1 { p.wrapping_mul(x) } else { p }
        })
    });
    assert_eq!(got, want.collect::<Vec<_>>());
}

#[test]
fn bools() {
    let x = [Bool(0), Bool(0), Bool(1), Bool(1)];
    let y = [Bool(0), Bool(1), Bool(0), Bool(1)];
    let cases: &[(u32, [u8; 4])] = &[
        (b::ADD, [0, 1, 1, 1]),
        (b::SUBTRACT, [0, 1, 1, 0]),
        (b::MULTIPLY, [0, 0, 0, 1]),
        (b::FLOOR_DIVIDE, [0, 0, 0, 1]),
        (b::REMAINDER, [0, 0, 1, 0]),
        (b::POWER, [1, 0, 1, 1]),
        (b::MAXIMUM, [0, 1, 1, 1]),
        (b::MINIMUM, [0, 0, 0, 1]),
        (b::EQUAL, [1, 0, 0, 1]),
        (b::NOT_EQUAL, [0, 1, 1, 0]),
        (b::LESS, [0, 1, 0, 0]),
        (b::LESS_EQUAL, [1, 1, 0, 1]),
        (b::GREATER, [0, 0, 1, 0]),
        (b::GREATER_EQUAL, [1, 0, 1, 1]),
        (b::LOGICAL_AND, [0, 0, 0, 1]),
        (b::LOGICAL_OR, [0, 1, 1, 1]),
        (b::BITWISE_AND, [0, 0, 0, 1]),
        (b::BITWISE_OR, [0, 1, 1, 1]),
        (b::BITWISE_XOR, [0, 1, 1, 0]),
        (b::EQUAL_NAN, [1, 0, 0, 1]),
    ];
    for &level in Level::available() {
        for (code, want) in cases {
            let got: Vec<Bool> = run(level, TileOp::Binary(*code), &x, &y);
            assert_eq!(got, want.map(Bool), "{}", b::NAMES[*code as usize]);
        }
        for (code, want) in [
            (u::LOGICAL_NOT, [1, 1, 0, 0]),
            (u::BITWISE_INVERT, [1, 1, 0, 0]),
            (u::SIGN, [0, 0, 1, 1]),
            (u::ISFINITE, [1; 4]),
            (u::ISNAN, [0; 4]),
        ] {
            let got: Vec<Bool> = run(level, TileOp::Unary(code), &x, &x);
            assert_eq!(got, want.map(Bool), "{}", u::NAMES[code as usize]);
        }
    }
}
