//! `a ? b : c`: moves bits, so one function per element size.

use super::TileFn;
use super::loops::{Ternary, ternary_fn};
use crate::level::{Isa, Level};

macro_rules! select {
    ($level:expr, $t:ty) => {{
        struct Op;
        impl Ternary for Op {
            type A = $t;
            #[inline(always)]
            fn f<I: Isa>(a: u8, b: $t, c: $t) -> $t {
                if a != 0 { b } else { c }
            }
        }
        ternary_fn::levels::<Op>($level)
    }};
}

/// The function for elements of `size` bytes.
pub(super) fn function(level: Level, size: usize) -> TileFn {
    match size {
        1 => select!(level, u8),
        2 => select!(level, u16),
        4 => select!(level, u32),
        // complex64 is aligned to 4 only, which unaligned vector loads do not mind;
        // the element type must not claim more.
        _ => select!(level, [u32; 2]),
    }
}
