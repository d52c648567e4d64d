//! Converts quantised arrays to blocks that hold the same numbers.

use super::super::At;
use super::packed::bias_of;
use crate::array::Array;
use crate::dtype::Dtype;
use crate::error::Result;
use crate::shape::Show;
use half::f16;

/// Numbers of a group, and of a block.
const GROUP: usize = 32;

/// A block type to which quantised arrays are written.
struct Target {
    code: u32,
    bits: usize,
    /// If set, biases are `-middle` times the scales, and are not stored.
    middle: Option<f32>,
}

/// Types without stored biases come first.
static TARGETS: &[Target] = &[
    Target { code: 2, bits: 4, middle: Some(8.0) },
    Target { code: 3, bits: 4, middle: None },
    Target { code: 6, bits: 5, middle: Some(16.0) },
    Target { code: 7, bits: 5, middle: None },
    Target { code: 8, bits: 8, middle: Some(128.0) },
];

/// The parts of a quantised array, and the block type that holds it.
pub(super) struct Quantized<'a> {
    words: &'a Array,
    scales: &'a Array,
    biases: &'a Array,
    target: &'static Target,
}

impl<'a> Quantized<'a> {
    pub fn new(
        name: &str,
        words: &'a Array,
        scales: &'a Array,
        biases: &'a Array,
        at: At<'_>,
    ) -> Result<Quantized<'a>> {
        let refused = |text: String| {
            let remedy = "Dequantize it, or quantize it with group size 32 and 4 bits from float16";
            Err(at.runtime(format!("'{name}' is quantised, and {text}. {remedy}.")))
        };
        let half = [scales, biases].iter().all(|part| part.dtype() == Dtype::Float16);
        if !half || scales.shape() != biases.shape() {
            return refused(
                "its scales and biases are not float16 arrays of the same shape".to_owned(),
            );
        }
        let (Some((row, outer)), Some((groups, others))) =
            (words.shape().split_last(), scales.shape().split_last())
        else {
            return refused("its words or scales have no axes".to_owned());
        };
        // A group of 32 codes takes as many 32-bit words as a code has bits.
        let bits = row.checked_div(*groups).unwrap_or(4);
        if outer != others || !matches!(bits, 4 | 5 | 8) || *row != groups * bits {
            let (words, scales) = (Show(words.shape()), Show(scales.shape()));
            return refused(format!(
                "words of shape {words} with scales of shape {scales} are not 4, 5 or 8 bits in groups of {GROUP}"
            ));
        }
        for target in TARGETS.iter().filter(|target| target.bits == bits) {
            if has_middle(scales, biases, target)? {
                return Ok(Quantized { words, scales, biases, target });
            }
        }
        refused("its biases are not -128 times its scales, which GGUF demands of 8 bits".to_owned())
    }

    pub fn code(&self) -> u32 {
        self.target.code
    }

    pub fn shape(&self) -> Vec<usize> {
        let mut shape = self.scales.shape().to_vec();
        shape.last_mut().into_iter().for_each(|groups| *groups *= GROUP);
        shape
    }

    pub fn bytes(&self) -> usize {
        let biases = if self.target.middle.is_none() { self.biases.nbytes() } else { 0 };
        self.words.nbytes() + self.scales.nbytes() + biases
    }

    pub fn blocks(&self) -> Result<Vec<u8>> {
        let mut blocks = Vec::with_capacity(self.bytes());
        self.words.with_bytes(|words| {
            self.scales.with_bytes(|scales| {
                self.biases.with_bytes(|biases| {
                    let parts = scales.as_chunks::<2>().0.iter().zip(biases.as_chunks::<2>().0);
                    for ((scale, bias), words) in
                        parts.zip(words.chunks_exact(self.target.bits * 4))
                    {
                        blocks.extend(scale);
                        if self.target.middle.is_none() {
                            blocks.extend(bias);
                        }
                        match self.target.bits {
                            8 => blocks.extend(words.iter().map(|code| code ^ 128)),
                            bits => put_codes(words, bits, &mut blocks),
                        }
                    }
                })
            })
        })???;
        Ok(blocks)
    }
}

/// Writes codes of four or five bits: the fifth bits as a 32-bit number, then the others, in the order that `nibbles`
/// reads.
fn put_codes(words: &[u8], bits: usize, blocks: &mut Vec<u8>) {
    let code = |i: usize| {
        let (at, shift) = (i * bits / 8, i * bits % 8);
        let two = words[at] as u32 | (*words.get(at + 1).unwrap_or(&0) as u32) << 8;
        two >> shift & ((1 << bits) - 1)
    };
    if bits == 5 {
        let high: u32 = (0..GROUP).map(|i| (code(i) >> 4) << i).sum();
        blocks.extend(high.to_le_bytes());
    }
    blocks.extend((0..GROUP / 2).map(|i| (code(i) & 15 | (code(i + GROUP / 2) & 15) << 4) as u8));
}

/// True if each bias equals the value that its scale gives for the type's middle code, or if the type has none.
fn has_middle(scales: &Array, biases: &Array, target: &Target) -> Result<bool> {
    let Some(middle) = target.middle else { return Ok(true) };
    let number = |bytes: &[u8; 2]| f16::from_le_bytes(*bytes);
    let same = |(scale, bias): (&[u8; 2], &[u8; 2])| {
        let (wanted, bias) = (bias_of(number(scale), middle), number(bias));
        wanted.to_bits() == bias.to_bits() || (wanted.is_nan() && bias.is_nan())
    };
    scales.with_bytes(|scales| {
        biases.with_bytes(|biases| scales.as_chunks().0.iter().zip(biases.as_chunks().0).all(same))
    })?
}
