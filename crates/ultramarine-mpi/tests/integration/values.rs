//! Elements of ranks, and their reductions one number after the other.

use half::{bf16, f16};
use ultramarine_mpi::{Communicator, Dtype, Error, Kind, Request};
use ultramarine_test_support::Rng;

/// A number of any dtype.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    Int(i128),
    Real(f64),
    Complex(f64, f64),
}

/// Input of a rank: each rank can make those of all others.
pub fn input(dtype: Dtype, count: usize, rank: usize, seed: u64) -> Vec<u8> {
    let mut random = Rng::new(seed * 1000 + rank as u64 + 1);
    (0..count).flat_map(|_| encode(dtype, random_number(dtype, &mut random))).collect()
}

fn random_number(dtype: Dtype, random: &mut Rng) -> Number {
    // Sixteenths: sums of some are exact in float32, so that a half is rounded once.
    let mut real = || match random.below(40) {
        0 => f64::NAN,
        1 => f64::INFINITY,
        2 => f64::NEG_INFINITY,
        3 => -0.0,
        4 => 0.0,
        _ => random.between(-2000, 2000) as f64 / 16.0,
    };
    match dtype {
        Dtype::Bool => Number::Int(i128::from(random.coin())),
        Dtype::Float16 | Dtype::Bfloat16 | Dtype::Float32 | Dtype::Float64 => Number::Real(real()),
        Dtype::Complex64 => Number::Complex(real(), real()),
        // All bits, so that sums wrap and the highest bit is set in half of them.
        _ => decode(dtype, &random.bits().to_le_bytes()[..dtype.size()]),
    }
}

pub fn decode(dtype: Dtype, bytes: &[u8]) -> Number {
    macro_rules! int {
        ($t:ty) => {
            Number::Int(i128::from(<$t>::from_le_bytes(bytes.try_into().unwrap())))
        };
    }
    let float = |at: usize| f64::from(f32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()));
    match dtype {
        Dtype::Bool | Dtype::Uint8 => int!(u8),
        Dtype::Uint16 => int!(u16),
        Dtype::Uint32 => int!(u32),
        Dtype::Uint64 => int!(u64),
        Dtype::Int8 => int!(i8),
        Dtype::Int16 => int!(i16),
        Dtype::Int32 => int!(i32),
        Dtype::Int64 => int!(i64),
        Dtype::Float16 => Number::Real(f16::from_le_bytes(bytes.try_into().unwrap()).to_f64()),
        Dtype::Bfloat16 => Number::Real(bf16::from_le_bytes(bytes.try_into().unwrap()).to_f64()),
        Dtype::Float32 => Number::Real(float(0)),
        Dtype::Float64 => Number::Real(f64::from_le_bytes(bytes.try_into().unwrap())),
        Dtype::Complex64 => Number::Complex(float(0), float(4)),
    }
}

/// Bytes of a number, rounded to the dtype; integers wrap.
pub fn encode(dtype: Dtype, number: Number) -> Vec<u8> {
    match (dtype, number) {
        (Dtype::Float16, Number::Real(x)) => f16::from_f64(x).to_le_bytes().to_vec(),
        (Dtype::Bfloat16, Number::Real(x)) => bf16::from_f64(x).to_le_bytes().to_vec(),
        (Dtype::Float32, Number::Real(x)) => (x as f32).to_le_bytes().to_vec(),
        (Dtype::Float64, Number::Real(x)) => x.to_le_bytes().to_vec(),
        (Dtype::Complex64, Number::Complex(x, y)) => {
            [(x as f32).to_le_bytes(), (y as f32).to_le_bytes()].concat()
        }
        (_, Number::Int(n)) => n.to_le_bytes()[..dtype.size()].to_vec(),
        _ => panic!("{number:?} is no {dtype}"),
    }
}

/// Two elements reduced.
pub fn reduce(dtype: Dtype, kind: Kind, a: Number, b: Number) -> Number {
    use Number::{Complex, Int, Real};
    match (kind, a, b) {
        (Kind::AllSum | Kind::SumScatter, Int(a), Int(b)) if dtype == Dtype::Bool => Int(a | b),
        (Kind::AllSum | Kind::SumScatter, Int(a), Int(b)) => Int(a + b),
        (Kind::AllSum | Kind::SumScatter, Real(a), Real(b)) => Real(a + b),
        (Kind::AllSum | Kind::SumScatter, Complex(a, b), Complex(c, d)) => Complex(a + c, b + d),
        (Kind::AllMax, Int(a), Int(b)) => Int(a.max(b)),
        (Kind::AllMin, Int(a), Int(b)) => Int(a.min(b)),
        (_, Real(a), _) | (_, _, Real(a)) if a.is_nan() => Real(a),
        (Kind::AllMax, Real(a), Real(b)) => Real(if a > b { a } else { b }),
        (Kind::AllMin, Real(a), Real(b)) => Real(if a < b { a } else { b }),
        (_, Complex(x, y), _) if x.is_nan() || y.is_nan() => a,
        (_, _, Complex(x, y)) if x.is_nan() || y.is_nan() => b,
        (_, Complex(x, y), Complex(z, w)) => {
            let first = x > z || (x == z && y > w);
            if first == (kind == Kind::AllMax) { a } else { b }
        }
        _ => panic!("{a:?} and {b:?}"),
    }
}

/// Returns true for a NaN, or a complex number with one.
pub fn is_nan(x: Number) -> bool {
    match x {
        Number::Int(_) => false,
        Number::Real(x) => x.is_nan(),
        Number::Complex(x, y) => x.is_nan() || y.is_nan(),
    }
}

/// Equal, or both NaN; zeros of both signs are equal.
pub fn same(a: Number, b: Number) -> bool {
    a == b || (is_nan(a) && is_nan(b))
}

/// Numbers of packed elements.
pub fn numbers(dtype: Dtype, bytes: &[u8]) -> Vec<Number> {
    bytes.chunks_exact(dtype.size()).map(|element| decode(dtype, element)).collect()
}

/// Runs a request; input and output are memory of 8-byte words, as elements want it.
pub fn run(
    group: &Communicator,
    kind: Kind,
    dtype: Dtype,
    input: &[u8],
    output: usize,
) -> Result<Vec<u8>, Error> {
    let mut from = vec![0u64; input.len().div_ceil(8)];
    let mut into = vec![0u64; output.div_ceil(8)];
    let count = if let Kind::Receive { .. } = kind { output } else { input.len() } / dtype.size();
    let description = format!("{}({dtype}, ({count},))", kind.name());
    let (from_, into_) = (from.as_mut_ptr().cast::<u8>(), into.as_mut_ptr().cast::<u8>());
    // SAFETY: the vectors are as long as `count` says, and are forgotten where MPI may still use them.
    unsafe {
        std::ptr::copy_nonoverlapping(input.as_ptr(), from_, input.len());
        let request =
            Request { kind, dtype, input: from_, output: into_, count, description: &description };
        match group.run(&request) {
            Ok(()) => Ok(std::slice::from_raw_parts(into_, output).to_vec()),
            Err(error) => {
                if error.keeps_memory() {
                    std::mem::forget((from, into));
                }
                Err(error)
            }
        }
    }
}
