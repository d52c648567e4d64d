//! Polynomials, with fused multiply-add if the processor has the instruction. The coefficients in
//! this module's users were fitted for this project, to minimise the largest error.

use crate::level::Isa;

/// `a * b + c`: one instruction if the level has it. The choice is never left to the compiler.
#[inline(always)]
pub(super) fn fma<I: Isa>(a: f32, b: f32, c: f32) -> f32 {
    if I::FMA { a.mul_add(b, c) } else { a * b + c }
}

/// As [`fma`].
#[inline(always)]
pub(super) fn fma64<I: Isa>(a: f64, b: f64, c: f64) -> f64 {
    if I::FMA { a.mul_add(b, c) } else { a * b + c }
}

/// `poly!(fma::<I>, x, c3, c2, c1, c0)`: the polynomial, highest power first.
macro_rules! poly {
    ($fma:expr, $x:expr, $first:expr $(, $c:expr)* $(,)?) => {{
        let x = $x;
        let p = $first;
        $(let p = $fma(p, x, $c);)*
        p
    }};
}
pub(super) use poly;

/// As [`poly`], in two chains (odd and even powers), which halves the latency. The number
/// of coefficients is even; a leading `top;` is one more.
macro_rules! poly_by_parity {
    ($fma:expr, $x:expr, $top:expr; $odd:expr, $even:expr $(, $o:expr, $e:expr)* $(,)?) => {{
        let x = $x;
        let z = x * x;
        let (odd, even) = ($odd, $fma($top, z, $even));
        $(let (odd, even) = ($fma(odd, z, $o), $fma(even, z, $e));)*
        $fma(odd, x, even)
    }};
    ($fma:expr, $x:expr, $odd:expr, $even:expr $(, $o:expr, $e:expr)* $(,)?) => {{
        let x = $x;
        let z = x * x;
        let (odd, even) = ($odd, $even);
        $(let (odd, even) = ($fma(odd, z, $o), $fma(even, z, $e));)*
        $fma(odd, x, even)
    }};
}
pub(super) use poly_by_parity;
