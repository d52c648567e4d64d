//! Unsigned integer keys that have the order of the elements they represent.

use super::radix::Item;
use crate::dtype::{Bool, Element, c64};
use half::{bf16, f16};

/// An unsigned integer type that can be sorted by its digits.
pub trait Key: Item {
    /// Widened.
    fn wide(self) -> u64;
}

macro_rules! keys {
    ($($t:ty)*) => {$(
        impl Key for $t {
            #[inline(always)]
            fn wide(self) -> u64 {
                self as u64
            }
        }
    )*};
}
keys!(u8 u16 u32 u64);

/// An element type that can be sorted. Equal elements have equal keys: both zeros, and all NaNs
/// (complex: NaN in either part). NaN has the highest key.
pub trait Sortable: Element {
    /// As wide as the element.
    type Key: Key;
    /// The element's key; keys have the order of elements.
    fn key(self) -> Self::Key;
    /// An element with that key.
    fn value(key: Self::Key) -> Self;
    /// True if elements with different bits share the key. NaNs are not considered.
    #[inline(always)]
    fn is_ambiguous(self) -> bool {
        false
    }
    /// True if other elements have the same key.
    #[inline(always)]
    fn shares_key(self) -> bool {
        false
    }
}

macro_rules! integers {
    ($($t:ty, $key:ty, $flip:expr;)*) => {$(
        impl Sortable for $t {
            type Key = $key;
            #[inline(always)]
            fn key(self) -> $key {
                self as $key ^ $flip
            }
            #[inline(always)]
            fn value(key: $key) -> $t {
                (key ^ $flip) as $t
            }
        }
    )*};
}
integers! {
    u8, u8, 0;
    u16, u16, 0;
    u32, u32, 0;
    u64, u64, 0;
    i8, u8, 1 << 7;
    i16, u16, 1 << 15;
    i32, u32, 1 << 31;
    i64, u64, 1 << 63;
}

impl Sortable for Bool {
    type Key = u8;
    #[inline(always)]
    fn key(self) -> u8 {
        self.0
    }
    #[inline(always)]
    fn value(key: u8) -> Bool {
        Bool(key)
    }
}

macro_rules! floats {
    ($($t:ty, $key:ty, $signed:ty;)*) => {$(
        impl Sortable for $t {
            type Key = $key;
            #[inline(always)]
            fn key(self) -> $key {
                const SIGN: $key = 1 << (<$key>::BITS - 1);
                const INFINITE: $key = <$t>::INFINITY.to_bits();
                let bits = self.to_bits();
                let bits = if bits == SIGN { 0 } else { bits };
                // Negative numbers are inverted; the others are placed above them.
                let flip = (bits as $signed >> (<$key>::BITS - 1)) as $key | SIGN;
                if bits & !SIGN > INFINITE { <$key>::MAX } else { bits ^ flip }
            }
            #[inline(always)]
            fn value(key: $key) -> $t {
                const SIGN: $key = 1 << (<$key>::BITS - 1);
                let flip = (!key as $signed >> (<$key>::BITS - 1)) as $key | SIGN;
                if key == <$key>::MAX { <$t>::NAN } else { <$t>::from_bits(key ^ flip) }
            }
            #[inline(always)]
            fn is_ambiguous(self) -> bool {
                self.to_bits() == 1 << (<$key>::BITS - 1)
            }
            #[inline(always)]
            fn shares_key(self) -> bool {
                self.to_bits() << 1 == 0
            }
        }
    )*};
}
floats! {
    f16, u16, i16;
    bf16, u16, i16;
    f32, u32, i32;
    f64, u64, i64;
}

impl Sortable for c64 {
    type Key = u64;
    #[inline(always)]
    fn key(self) -> u64 {
        if self.re.is_nan() || self.im.is_nan() {
            u64::MAX
        } else {
            (self.re.key() as u64) << 32 | self.im.key() as u64
        }
    }
    #[inline(always)]
    fn value(key: u64) -> c64 {
        c64 { re: f32::value((key >> 32) as u32), im: f32::value(key as u32) }
    }
    #[inline(always)]
    fn is_ambiguous(self) -> bool {
        self.re.is_ambiguous() || self.im.is_ambiguous() || self.key() == u64::MAX
    }
    #[inline(always)]
    fn shares_key(self) -> bool {
        self.re == 0.0 || self.im == 0.0 || self.key() == u64::MAX
    }
}
