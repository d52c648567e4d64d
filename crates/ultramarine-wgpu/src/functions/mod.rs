//! WGSL sources of the elementary functions, which programs use as a library.
//!
//! The errors of drivers' built-in functions are far above the contract's bounds, and WGSL has none for float64. The
//! functions here use only IEEE 754's basic operations without contraction, so results do not depend on fused
//! multiply-adds. They avoid 0.0 as an operand of + - *, because some compilers fold it and ignore NaN and the signs
//! of zeros. The polynomials are those of the CPU's kernels, fitted for this project.
//!
//! Names end with the type: `exp_f32`. In addition, the sources of a type define `unary_NAME` and `binary_NAME` for
//! the contract's codes. For this reason, a program cannot contain the sources of two types.

macro_rules! sources {
    ($($file:literal)*) => { [$(include_str!(concat!($file, ".wgsl")),)*] };
}

/// Functions of float32, which the complex64 functions need.
const BASE: [&str; 9] = sources!(
    "float32/arcs" "float32/bits" "float32/divide" "float32/erf" "float32/exp" "float32/log" "float32/pair"
    "float32/power" "float32/trig"
);

/// The sources for float32, and for half dtypes, which are computed in float32.
pub fn float32() -> impl Iterator<Item = &'static str> {
    BASE.into_iter().chain(sources!("float32/codes"))
}

/// The sources for float64. They need 64-bit integers.
pub fn float64() -> impl Iterator<Item = &'static str> {
    let sources = sources!(
        "float64/arcs" "float64/bits" "float64/codes" "float64/erf" "float64/exp" "float64/hyperbolic"
        "float64/log" "float64/pair" "float64/power" "float64/trig"
    );
    sources.into_iter()
}

/// The sources for complex64, for all of its codes. They compute in float32 only.
pub fn complex64() -> impl Iterator<Item = &'static str> {
    BASE.into_iter().chain(sources!("complex64/exp" "complex64/numbers" "complex64/trig"))
}
