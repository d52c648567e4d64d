//! Numbers of few bits by their definition, and products with them, in float64.

mod format;

pub use format::Format;

use super::grouped::{chosen, reals};
use super::{reduce::sum, working};
use crate::compare::Expected;
use crate::dtype::{DType, Num};
use crate::tensor::Array;
use ultramarine_abi::schema::quantization;

/// Errors that a device's properties allow.
#[derive(Clone, Copy, Debug)]
pub struct Allowed {
    /// An epsilon of products, as MATMUL's.
    pub reduced: f64,
    /// The error of rounding near zero: a subnormal number, or a normal one if subnormal numbers
    /// are flushed to zero.
    pub smallest: f64,
}

/// The operands of numbers of few bits. Rows of matrices follow each other.
#[derive(Clone, Copy)]
pub struct Packed<'a> {
    format: Format,
    words: &'a Array,
    scales: &'a Array,
    biases: Option<&'a Array>,
    global_scales: Option<&'a Array>,
}

/// An element, which is the sum of its parts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Element {
    /// The number times its scales.
    product: f64,
    bias: f64,
}

impl Element {
    fn value(self) -> f64 {
        self.product + self.bias
    }

    fn size(self) -> f64 {
        self.product.abs() + self.bias.abs()
    }
}

impl<'a> Packed<'a> {
    /// Words, scales, and what else the format has, from the start of a list of operands; and those behind them.
    pub fn split(format: Format, operands: &'a [Array]) -> (Self, &'a [Array]) {
        let (fixed, rest) = operands.split_at(2);
        let (biases, rest) = rest.split_at(usize::from(format.has_biases()));
        let (global, rest) = rest.split_at(usize::from(format.global_scale));
        let packed = Packed {
            format,
            words: &fixed[0],
            scales: &fixed[1],
            biases: biases.first(),
            global_scales: global.first(),
        };
        (packed, rest)
    }

    /// Columns of a matrix.
    fn columns(&self) -> usize {
        last(self.scales) * self.format.group as usize
    }

    /// The elements of a row; `matrix` is the one that it is of.
    fn row(&self, matrix: usize, row: usize) -> Vec<Element> {
        let (words, groups) = (last(self.words), last(self.scales));
        let own = &self.words.values[row * words..(row + 1) * words];
        let global = self.global_scales.map_or(1.0, |g| g.values[matrix].real() / 2688.0);
        let element = |i: usize| {
            let group = row * groups + i / self.format.group as usize;
            let scale = self.format.scale(self.scales.values[group]);
            Element {
                product: self.format.number(self.format.code(own, i)) * scale * global,
                bias: self.biases.map_or(0.0, |b| b.values[group].real()),
            }
        };
        (0..self.columns()).map(element).collect()
    }

    /// A matrix `(k, n)` as the second factor of a product: each element and its size.
    fn factor(&self, matrix: usize, transpose: bool) -> Vec<(f64, f64)> {
        let (rows, columns) = (self.words.shape[1] as usize, self.columns());
        let mut factor = vec![(0.0, 0.0); rows * columns];
        for i in 0..rows {
            for (j, element) in self.row(matrix, matrix * rows + i).into_iter().enumerate() {
                let at = if transpose { j * rows + i } else { i * columns + j };
                factor[at] = (element.value(), element.size());
            }
        }
        factor
    }
}

fn last(array: &Array) -> usize {
    array.shape[array.shape.len() - 1] as usize
}

/// DEQUANTIZE, to a dtype.
pub fn dequantize(packed: &Packed<'_>, dtype: DType, allowed: Allowed) -> Vec<Expected> {
    let epsilon = working(dtype).epsilon();
    let expected = |element: Element| {
        let value = element.value();
        let slack = match packed.format.mode {
            // The product may be rounded to the dtype. The product and the sum may also be rounded
            // to the type of the computation.
            quantization::AFFINE => {
                dtype.epsilon() * element.product.abs()
                    + 2.0 * epsilon * (element.size() + value.abs())
                    + allowed.smallest
            }
            _ if packed.format.global_scale => {
                (2.0 * epsilon + GLOBAL * DType::F32.epsilon()) * value.abs()
            }
            // The product of two short mantissas is exact.
            _ => 0.0,
        };
        sum(Num::Real(value), if slack.is_finite() { slack } else { 0.0 }, element.size())
    };
    let rows = 0..packed.words.shape[0] as usize;
    rows.flat_map(|row| packed.row(0, row)).map(expected).collect()
}

/// How many epsilons of float32 a global scale's quotient and its product with a scale count.
const GLOBAL: f64 = 2.0;

/// The sums of an element of a product.
#[derive(Clone, Copy, Default)]
struct Sums {
    total: f64,
    /// Of magnitudes.
    size: f64,
    squares: f64,
    /// Magnitudes of the first factor.
    left: f64,
}

/// The largest sum of independent rounding errors, relative to the root of the sum of their squares: the standard
/// deviation of one is at most 0.6 epsilons.
const INDEPENDENT: f64 = 4.0;

impl Sums {
    fn expected(self, dtype: DType, terms: usize, allowed: Allowed) -> Expected {
        // Elements may be rounded to the dtype. Because the numbers of x have both signs, these
        // errors partly cancel.
        let rounded = dtype.epsilon() * self.size.min(INDEPENDENT * self.squares.sqrt());
        let summed = (terms as f64 + 8.0) * working(dtype).epsilon() + allowed.reduced;
        let slack = rounded + summed * self.size + allowed.smallest * (self.left + 1.0);
        sum(Num::Real(self.total), if slack.is_finite() { slack } else { 0.0 }, self.size)
    }
}

/// QUANTIZED_MATMUL.
pub fn matmul(
    x: &Array,
    packed: &Packed<'_>,
    transpose: bool,
    indices: [Option<&Array>; 2],
    items: usize,
    allowed: Allowed,
) -> Vec<Expected> {
    let [matrices, m, k] = [0, 1, 2].map(|i| x.shape[i] as usize);
    let experts = packed.words.shape[0];
    let factors: Vec<_> = (0..experts as usize).map(|e| packed.factor(e, transpose)).collect();
    let n = factors.first().map_or(0, |f| f.len() / k);
    let left = reals(x);
    let global = if packed.format.global_scale { GLOBAL * DType::F32.epsilon() } else { 0.0 };
    let allowed = Allowed { reduced: allowed.reduced + global, ..allowed };
    let lhs = chosen(indices[0], items, matrices as i64);
    let rhs = chosen(indices[1], items, experts);
    let mut expected = Vec::new();
    for (l, r) in lhs.into_iter().zip(rhs) {
        for row in left[l * m * k..(l + 1) * m * k].chunks_exact(k) {
            let mut sums = vec![Sums::default(); n];
            for (x, line) in row.iter().zip(factors[r].chunks_exact(n)) {
                for (sums, (value, size)) in sums.iter_mut().zip(line) {
                    let size = x.abs() * size;
                    sums.total += x * value;
                    sums.size += size;
                    sums.squares += size * size;
                    sums.left += x.abs();
                }
            }
            expected.extend(sums.into_iter().map(|s| s.expected(x.dtype, k, allowed)));
        }
    }
    expected
}

#[cfg(test)]
mod tests {
    use super::format::tests::{format, pack};
    use super::*;

    fn ints(dtype: DType, shape: &[i64], values: &[i64]) -> Array {
        let values: Vec<Num> = values.iter().map(|v| Num::Int((*v).into())).collect();
        Array::cycle(dtype, shape, &values)
    }

    fn values(format: Format, operands: &[Array]) -> Vec<f64> {
        let (packed, rest) = Packed::split(format, operands);
        assert!(rest.is_empty());
        packed.row(0, 0).into_iter().map(Element::value).collect()
    }

    #[test]
    fn quantized_affine_rows() {
        let codes: Vec<u32> = (0..64).map(|i| i % 8).collect();
        let words = Array::cycle(DType::U32, &[1, 6], &pack(&codes, 3));
        let scales = Array::cycle(DType::F32, &[1, 2], &[0.5, -2.0].map(Num::Real));
        let biases = Array::cycle(DType::F32, &[1, 2], &[-1.0, 3.0].map(Num::Real));
        let got = values(format(quantization::AFFINE, 3, 32), &[words, scales, biases]);
        assert_eq!(got[..3], [-1.0, -0.5, 0.0]);
        assert_eq!(got[31], 2.5);
        assert_eq!(got[32..35], [3.0, 1.0, -1.0]);
        assert_eq!(got[63], -11.0);
    }

    #[test]
    fn quantized_scales_of_each_mode() {
        let words = ints(DType::U32, &[1, 4], &[0x0000_00a7]);
        let scales = ints(DType::U8, &[1, 1], &[129]);
        let four = values(format(quantization::MXFP4, 4, 32), &[words, scales]);
        assert_eq!(four[..3], [24.0, -4.0, 0.0]);

        let words = ints(DType::U32, &[1, 8], &[0xff_fe_38_01]);
        let scales = ints(DType::U8, &[1, 1], &[126]);
        let eight = values(format(quantization::MXFP8, 8, 32), &[words, scales]);
        assert_eq!(eight[..3], [0.0009765625, 0.5, -224.0]);
        assert!(eight[3].is_nan());

        // The second group's scale is negative.
        let words = ints(DType::U32, &[1, 4], &[0x72]);
        let scales = ints(DType::U8, &[1, 2], &[0x39, 0xc0]);
        let nv = format(quantization::NVFP4, 4, 16);
        let operands = [words, scales];
        let plain = values(nv, &operands);
        assert_eq!([plain[0], plain[1], plain[16], plain[17]], [1.125, 6.75, -2.0, -12.0]);
        let global = Array::cycle(DType::F32, &[1], &[Num::Real(1344.0)]);
        let operands = [&operands[..], &[global]].concat();
        let scaled = values(Format { global_scale: true, ..nv }, &operands);
        assert_eq!(scaled[..2], [0.5625, 3.375]);
    }

    #[test]
    fn quantized_products_of_both_orientations() {
        // Rows of words are 0 to 31 with the scales 1 and 2.
        let codes: Vec<u32> = (0..64).map(|i| i % 32).collect();
        let words = Array::cycle(DType::U32, &[1, 2, 5], &pack(&codes, 5));
        let scales = ints(DType::F32, &[1, 2, 1], &[1, 2]);
        let biases = ints(DType::F32, &[1, 2, 1], &[0, 1]);
        let operands = [words, scales, biases];
        let (packed, _) = Packed::split(format(quantization::AFFINE, 5, 32), &operands);
        let allowed = Allowed { reduced: 0.0, smallest: 0.0 };
        let product = |k: i64, transpose: bool| -> Vec<f64> {
            let x = ints(DType::F32, &[1, 1, k], &[1]);
            let all = matmul(&x, &packed, transpose, [None, None], 1, allowed);
            all.iter().map(|e| e.value.real()).collect()
        };
        assert_eq!(product(32, true), [496.0, 1024.0]);
        let columns: Vec<f64> = (0..32).map(|i| f64::from(3 * i + 1)).collect();
        assert_eq!(product(2, false), columns);
    }
}
