//! Remainders against exact references: float32 in float64, float64 in whole numbers.

use super::run;
use ultramarine_abi::schema::binary as b;
use ultramarine_cpu::{dtype::Element, elementwise::TileOp, level::Level};
use ultramarine_test_support::Rng;

fn remainders<T: Element>(level: Level, x: &[T], y: &[T]) -> Vec<T> {
    run(level, TileOp::Binary(b::REMAINDER), x, y)
}

/// 2^e mod m.
fn power_mod(mut e: u32, m: u64) -> u64 {
    let (mut result, mut base) = (1 % m as u128, 2 % m as u128);
    while e > 0 {
        if e & 1 == 1 {
            result = result * base % m as u128;
        }
        base = base * base % m as u128;
        e >>= 1;
    }
    result as u64
}

/// Mantissa and exponent of a finite magnitude: m 2^e.
fn parts(x: f64) -> (u64, i32) {
    let (bits, mantissa) = (x.to_bits(), x.to_bits() & ((1 << 52) - 1));
    let exponent = (bits >> 52 & 0x7ff) as i32;
    if exponent == 0 { (mantissa, -1074) } else { (mantissa | 1 << 52, exponent - 1075) }
}

/// m 2^e, which is a float64.
fn from_parts(m: u64, mut e: i32) -> f64 {
    let mut x = m as f64;
    while e != 0 {
        let step = e.clamp(-1000, 1000);
        x *= 2f64.powi(step / 2) * 2f64.powi(step - step / 2);
        e -= step;
    }
    x
}

/// The remainder with the divisor's sign, in whole numbers.
fn exact(x: f64, y: f64) -> f64 {
    if x.is_nan() || y.is_nan() || x.is_infinite() || y == 0.0 {
        return f64::NAN;
    }
    let magnitude = if y.is_infinite() {
        x.abs()
    } else {
        let ((m, e), (n, f)) = (parts(x), parts(y));
        if e >= f {
            // Below n, so that nothing is rounded.
            let rest = m as u128 % n as u128 * power_mod((e - f) as u32, n) as u128;
            from_parts((rest % n as u128) as u64, f)
        } else if f - e > 64 {
            x.abs()
        } else {
            from_parts((m as u128 % ((n as u128) << (f - e))) as u64, e)
        }
    };
    let r = magnitude.copysign(x);
    match r == 0.0 {
        true => r.copysign(y),
        false if (x < 0.0) != (y < 0.0) => r + y,
        false => r,
    }
}

fn pairs(random: &mut Rng, digits: u32, largest: f64) -> Vec<(f64, f64)> {
    let specials = [
        0.0,
        1.0,
        0.1,
        0.7,
        2.0,
        3.0,
        5.5,
        7.0,
        1.0e-300,
        1.0e-310,
        5.0e-324,
        1.0e-40,
        1.0e-45,
        1.0e30,
        f64::MAX,
        f32::MAX as f64,
        f64::MIN_POSITIVE,
        f32::MIN_POSITIVE as f64,
        f64::INFINITY,
        f64::NAN,
        8_388_608.0,
        16_777_215.0,
        16_777_216.0,
        9_007_199_254_740_991.0,
    ];
    let signed = || specials.into_iter().flat_map(|x| [x, -x]);
    let mut all: Vec<(f64, f64)> = signed().flat_map(|x| signed().map(move |y| (x, y))).collect();
    // Quotients near whole numbers, small and near the bounds of the quick path.
    for i in 0..60_000 {
        let y = random.uniform(-1.0, 1.0) * 2f64.powi(random.below(60) as i32 - 30);
        let bits = if i % 2 == 0 { random.below(8) } else { random.below(digits as usize + 9) };
        let whole = (random.bits() >> (63 - bits.min(62))) as f64;
        let near = 1.0 + (random.below(5) as f64 - 2.0) * largest;
        all.push((whole * y * near, y));
        all.push((random.uniform(-1.0, 1.0) * 2f64.powi(bits as i32), y));
    }
    all
}

/// The place in memory of the first element that has other bits, of all levels.
macro_rules! compare {
    ($t:ty, $pairs:expr, $want:expr) => {{
        let pairs: Vec<($t, $t)> = $pairs;
        let x: Vec<$t> = pairs.iter().map(|p| p.0).collect();
        let y: Vec<$t> = pairs.iter().map(|p| p.1).collect();
        for &level in Level::available() {
            // Whole, and in tails.
            let tails: Vec<$t> =
                x.chunks(13).zip(y.chunks(13)).flat_map(|(x, y)| remainders(level, x, y)).collect();
            for (i, got) in remainders(level, &x, &y).into_iter().enumerate() {
                let want: $t = $want(x[i], y[i]);
                let same = got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan();
                assert!(same, "{:e} mod {:e} at {level:?}: {got:e}, not {want:e}", x[i], y[i]);
                assert_eq!(got.to_bits(), tails[i].to_bits());
            }
        }
    }};
}

#[test]
fn float32_is_exact() {
    let mut random = Rng::new(3);
    let narrow = pairs(&mut random, 24, f32::EPSILON as f64 / 2.0);
    let any = (0..200_000).map(|_| {
        let bits = random.bits();
        (f32::from_bits(bits as u32), f32::from_bits((bits >> 32) as u32))
    });
    let pairs = narrow.into_iter().map(|(x, y)| (x as f32, y as f32)).chain(any).collect();
    // The remainder is a float32; only the sum with the divisor is rounded.
    compare!(f32, pairs, |x: f32, y: f32| {
        match (x as f64 % y as f64) as f32 {
            0.0 => 0f32.copysign(y),
            r if (r < 0.0) != (y < 0.0) => r + y,
            r => r,
        }
    });
}

#[test]
fn float64_is_exact() {
    let mut random = Rng::new(4);
    let mut all = pairs(&mut random, 53, f64::EPSILON / 2.0);
    all.extend((0..100_000).map(|_| {
        // Exponents of any distance, most of them near.
        let (x, y) = (random.bits(), random.bits());
        let near = x & !(0x7ff << 52) | (y & (0x7ff << 52)).wrapping_add((x & 31) << 52);
        (f64::from_bits(if x & 32 == 0 { near } else { x }), f64::from_bits(y))
    }));
    compare!(f64, all, exact);
}
