//! WGSL sources of the elementary functions, for the libraries of programs.
//!
//! Drivers' built-in functions are far outside of the contract's bounds, and WGSL has none of float64. These use IEEE
//! 754's basic operations without contraction alone, so that results do not depend on a fused multiply-add. They avoid
//! 0.0 as an operand of + - *, which some compilers fold without regard to NaN and the signs of zeros. Polynomials are
//! those of the CPU's kernels, by own fits.
//!
//! Names end in the type's: `exp_f32`. Beside them, the sources of a type have `unary_NAME` and `binary_NAME` for the
//! contract's codes, so those of two types cannot be in one program.

macro_rules! sources {
    ($($file:literal)*) => { [$(include_str!(concat!($file, ".wgsl")),)*] };
}

/// Functions of float32, which those of complex64 need.
const BASE: [&str; 9] = sources!(
    "float32/arcs" "float32/bits" "float32/divide" "float32/erf" "float32/exp" "float32/log" "float32/pair"
    "float32/power" "float32/trig"
);

/// The sources for float32, and for the halves, which compute in it.
pub fn float32() -> impl Iterator<Item = &'static str> {
    BASE.into_iter().chain(sources!("float32/codes"))
}

/// The sources for float64, which need integers of 64 bits.
pub fn float64() -> impl Iterator<Item = &'static str> {
    let sources = sources!(
        "float64/arcs" "float64/bits" "float64/codes" "float64/erf" "float64/exp" "float64/hyperbolic"
        "float64/log" "float64/pair" "float64/power" "float64/trig"
    );
    sources.into_iter()
}

/// The sources for complex64, of all its codes. They compute in float32 alone.
pub fn complex64() -> impl Iterator<Item = &'static str> {
    BASE.into_iter().chain(sources!("complex64/exp" "complex64/numbers" "complex64/trig"))
}
