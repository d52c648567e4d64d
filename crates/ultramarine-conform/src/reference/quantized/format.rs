//! The meaning of words and scales.

use crate::dtype::{DType, Num};
use ultramarine_abi::schema::quantization;

/// The meaning of words, scales and biases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// A [`quantization`] code.
    pub mode: u32,
    pub bits: u32,
    pub group: u32,
    pub global_scale: bool,
}

/// Sign, 2 bits of exponent, 1 of mantissa.
fn e2m1(code: u32) -> f64 {
    let size = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0][(code & 7) as usize];
    if code >> 3 & 1 == 1 { -size } else { size }
}

/// Sign, 4 bits of exponent, 3 of mantissa; no infinities.
fn e4m3(code: u32) -> f64 {
    let mantissa = f64::from(code & 7);
    let size = match (code >> 3 & 15, code & 7) {
        (15, 7) => f64::NAN,
        (0, _) => mantissa / 8.0 * 2f64.powi(-6),
        (exponent, _) => (1.0 + mantissa / 8.0) * 2f64.powi(exponent as i32 - 7),
    };
    if code >> 7 & 1 == 1 { -size } else { size }
}

/// An exponent alone; the largest one is infinite.
fn e8m0(code: u32) -> f64 {
    if code == 255 { f64::INFINITY } else { 2f64.powi(code as i32 - 127) }
}

impl Format {
    pub fn has_biases(self) -> bool {
        self.mode == quantization::AFFINE
    }

    /// The dtype of scales, for a main dtype.
    pub fn scales(self, main: DType) -> DType {
        if self.mode == quantization::AFFINE { main } else { DType::U8 }
    }

    /// Element `i` of a row, bit by bit.
    pub(super) fn code(self, words: &[Num], i: usize) -> u32 {
        let bits = self.bits as usize;
        let bit = |at: usize| (words[at / 32].int() >> (at % 32) & 1) as u32;
        (0..bits).map(|b| bit(i * bits + b) << b).sum()
    }

    pub(super) fn number(self, code: u32) -> f64 {
        match self.mode {
            quantization::AFFINE => code.into(),
            quantization::MXFP8 => e4m3(code),
            _ => e2m1(code),
        }
    }

    pub(super) fn scale(self, scale: Num) -> f64 {
        match self.mode {
            quantization::AFFINE => scale.real(),
            quantization::NVFP4 => e4m3(scale.int() as u32),
            _ => e8m0(scale.int() as u32),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub fn format(mode: u32, bits: u32, group: u32) -> Format {
        Format { mode, bits, group, global_scale: false }
    }

    /// Codes as words, through a register that is shifted.
    pub fn pack(codes: &[u32], bits: u32) -> Vec<Num> {
        let mut words = Vec::new();
        let (mut held, mut filled) = (0u64, 0);
        for code in codes {
            held |= u64::from(*code) << filled;
            filled += bits;
            if filled >= 32 {
                words.push(Num::Int((held & 0xffff_ffff).into()));
                held >>= 32;
                filled -= 32;
            }
        }
        assert_eq!(filled, 0);
        words
    }

    #[test]
    fn quantized_codes_cross_words() {
        // Element 10 is bits 30 to 33: two of the first word, one of the second.
        let words = [0xC000_0000u32, 1, 0].map(|w| Num::Int(w.into()));
        let three = format(quantization::AFFINE, 3, 32);
        let codes: Vec<u32> = (0..32).map(|i| three.code(&words, i)).collect();
        assert_eq!(codes[10], 7);
        assert_eq!(codes.iter().sum::<u32>(), 7);
        for bits in [1, 2, 3, 4, 5, 6, 8] {
            let codes: Vec<u32> = (0..64u32).map(|i| (i * 37 + 11) % (1 << bits)).collect();
            let words = pack(&codes, bits);
            assert_eq!(words.len(), 2 * bits as usize);
            let format = format(quantization::AFFINE, bits, 32);
            let back: Vec<u32> = (0..64).map(|i| format.code(&words, i)).collect();
            assert_eq!(back, codes, "{bits} bits");
        }
    }

    #[test]
    fn quantized_numbers_of_each_format() {
        let sizes = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];
        for (code, size) in (0..).zip(sizes) {
            assert_eq!(e2m1(code), size);
            assert_eq!(e2m1(code + 8), -size);
        }
        let known = [
            (0x00, 0.0),
            (0x01, 0.001953125),
            (0x07, 0.013671875),
            (0x08, 0.015625),
            (0x38, 1.0),
            (0x39, 1.125),
            (0x77, 240.0),
            (0x7e, 448.0),
            (0xb8, -1.0),
            (0xfe, -448.0),
        ];
        for (code, value) in known {
            assert_eq!(e4m3(code), value, "{code:#x}");
        }
        assert!(e4m3(0x7f).is_nan() && e4m3(0xff).is_nan());
        let finite: Vec<f64> = (0..0x7f).map(e4m3).collect();
        assert!(finite.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!([127, 128, 0, 254].map(e8m0), [1.0, 2.0, 2f64.powi(-127), 2f64.powi(127)]);
        assert_eq!(e8m0(255), f64::INFINITY);
    }
}
