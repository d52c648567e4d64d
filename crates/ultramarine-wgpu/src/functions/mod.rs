//! WGSL sources of the elementary functions, for the libraries of programs.
//!
//! Drivers' built-in functions exceed the error bounds of the ABI by far, and WGSL has no float64
//! functions. The functions here use only IEEE 754's basic operations without contraction, so
//! results do not depend on fused multiply-add. They avoid 0.0 as an operand of + - *, because some
//! compilers fold such operations without regard to NaN and the signs of zeros. The polynomials are
//! like those of the CPU's kernels, with separate fits.
//!
//! Names end with the type's name: `exp_f32`. The sources of a type also have `unary_NAME` and
//! `binary_NAME` for the schema's codes, so a program cannot contain the sources of two types.

macro_rules! sources {
    ($($file:literal)*) => { [$(include_str!(concat!($file, ".wgsl")),)*] };
}

/// Functions of float32, which the functions of complex64 need.
const BASE: [&str; 9] = sources!(
    "float32/arcs" "float32/bits" "float32/divide" "float32/erf" "float32/exp" "float32/log" "float32/pair"
    "float32/power" "float32/trig"
);

/// The sources for float32, and for the halves, which are computed in float32.
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

/// The sources for complex64, for all its codes. They compute only in float32.
pub fn complex64() -> impl Iterator<Item = &'static str> {
    BASE.into_iter().chain(sources!("complex64/exp" "complex64/numbers" "complex64/trig"))
}
