//! Packs elements of few bits into words. A row is a stream of bits, the lowest first.

use crate::error::{Result, ensure};
use crate::ops::rules::builders::{bin, with_axis};
use crate::shape::Shape;
use crate::{array::Array, scalar::Scalar};
use ultramarine_abi::schema::binary;

/// Bits of a word.
const WORD: usize = 32;

/// The periodic pattern in which elements lie in words: it repeats after this many elements and
/// words.
struct Pattern {
    elements: usize,
    words: usize,
}

fn pattern(bits: usize) -> Pattern {
    let common = 1 << bits.trailing_zeros().min(WORD.trailing_zeros());
    Pattern { elements: WORD / common, words: bits / common }
}

fn constant(values: Vec<u32>, shape: &[usize]) -> Result<Array> {
    Array::from_slice(&values, shape)
}

/// The shape with its last size replaced by `last`.
fn with_last(a: &Array, last: &[usize]) -> Shape {
    let mut shape = Shape::from_slice(&a.shape()[..a.ndim() - 1]);
    shape.extend_from_slice(last);
    shape
}

/// Packs elements `(..., n)` of uint32, below 2^bits, into words `(..., n bits / 32)`.
pub(super) fn pack(elements: &Array, bits: usize) -> Result<Array> {
    let (n, p) = (elements.shape()[elements.ndim() - 1], pattern(bits));
    let parts = elements.reshape(&with_last(elements, &[n / p.elements, 1, p.elements]))?;
    // The elements of a word begin in it or in the word before. Shifts by a word's width give zero.
    let shifts = |of: &dyn Fn(isize) -> isize| -> Result<Array> {
        let each = (0..p.words)
            .flat_map(|w| (0..p.elements).map(move |i| (i * bits) as isize - (w * WORD) as isize));
        let all = each.map(|at| u32::try_from(of(at)).map_or(WORD as u32, |s| s.min(WORD as u32)));
        constant(all.collect(), &[p.words, p.elements])
    };
    let left = bin(binary::LEFT_SHIFT, &parts, &shifts(&|at| at)?)?;
    let all = if p.words == 1 {
        left
    } else {
        let right = bin(
            binary::RIGHT_SHIFT,
            &parts,
            &shifts(&|at| if at < 0 { -at } else { WORD as isize })?,
        )?;
        bin(binary::BITWISE_OR, &left, &right)?
    };
    // No two terms have a bit in common, so the sum combines them.
    all.sum(-1)?.reshape(&with_last(elements, &[n * bits / WORD]))
}

/// Unpacks words `(..., n bits / 32)` into elements `(..., n)` of uint32.
pub(super) fn unpack(op: &str, words: &Array, bits: usize) -> Result<Array> {
    let (count, p) = (words.shape()[words.ndim() - 1], pattern(bits));
    ensure!(
        count.is_multiple_of(p.words),
        op,
        "Rows of {count} words do not hold whole groups of elements of {bits} bits. Pass a multiple of {} words.",
        p.words
    );
    let parts = words.reshape(&with_last(words, &[count / p.words, p.words]))?;
    let start = |i: usize| i * bits;
    let of = |f: &dyn Fn(usize) -> usize| -> Result<Array> {
        constant((0..p.elements).map(|i| f(start(i)) as u32).collect(), &[p.elements])
    };
    let of_each = |f: &dyn Fn(usize) -> usize| -> Result<Array> {
        match p.words {
            1 => with_axis(&parts.reshape(&with_last(words, &[count]))?, words.ndim()),
            _ => parts.take(&of(f)?, Some(-1)),
        }
    };
    let low = bin(binary::RIGHT_SHIFT, &of_each(&|at| at / WORD)?, &of(&|at| at % WORD)?)?;
    let all = if p.words == 1 {
        low
    } else {
        let next = of_each(&|at| (at / WORD + 1).min(p.words - 1))?;
        let high = bin(binary::LEFT_SHIFT, &next, &of(&|at| WORD - at % WORD)?)?;
        bin(binary::BITWISE_OR, &low, &high)?
    };
    let mask = Array::scalar(Scalar::from_i64(all.dtype(), ((1u64 << bits) - 1) as i64));
    bin(binary::BITWISE_AND, &all, &mask)?
        .reshape(&with_last(words, &[count / p.words * p.elements]))
}
