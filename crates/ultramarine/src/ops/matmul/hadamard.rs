//! The Walsh-Hadamard transform, as products with small Hadamard matrices.

use crate::error::{Result, bail, ensure};
use crate::ops::rules::builders::{compute_dtype, like, times};
use crate::placement::follow;
use crate::shape::{Shape, Show};
use crate::{array::Array, dtype::Dtype};

/// Bits of the last axis that one product transforms.
const BITS: u32 = 5;

/// Signs of a Hadamard matrix.
type Signs = Vec<Vec<i8>>;

/// Sylvester's matrix of order 2^bits.
fn sylvester(bits: u32) -> Signs {
    let n = 1_u32 << bits;
    let sign = |i: u32, j: u32| if (i & j).count_ones().is_multiple_of(2) { 1 } else { -1 };
    (0..n).map(|i| (0..n).map(|j| sign(i, j)).collect()).collect()
}

/// The matrix of order 2 (q + 1) of Paley's second construction (On orthogonal matrices, 1933). q is a prime that is
/// one more than a multiple of 4.
fn paley(q: usize) -> Signs {
    let is_square = |a: usize| (1..q).any(|x| x * x % q == a);
    let conference = |i: usize, j: usize| match (i, j) {
        _ if i == j => 0,
        (0, _) | (_, 0) => 1,
        _ if is_square((q + i - j) % q) => 1,
        _ => -1,
    };
    let element = |i: usize, j: usize| match conference(i / 2, j / 2) {
        0 => [[1, -1], [-1, -1]][i % 2][j % 2],
        sign => sign * [[1, 1], [1, -1]][i % 2][j % 2],
    };
    let n = 2 * (q + 1);
    (0..n).map(|i| (0..n).map(|j| element(i, j)).collect()).collect()
}

/// The matrix made of four circulants, given by their first rows (Williamson, Hadamard's determinant theorem and the
/// sum of four squares, 1944).
fn williamson(rows: [&[i8]; 4]) -> Signs {
    // For each block: the number of its circulant, and its sign.
    const BLOCKS: [[(usize, i8); 4]; 4] = [
        [(0, 1), (1, -1), (2, -1), (3, -1)],
        [(1, 1), (0, 1), (3, 1), (2, -1)],
        [(2, 1), (3, -1), (0, 1), (1, 1)],
        [(3, 1), (2, 1), (1, -1), (0, 1)],
    ];
    let n = rows[0].len();
    let element = |i: usize, j: usize| {
        let (circulant, sign) = BLOCKS[i / n][j / n];
        sign * rows[circulant][(n + j % n - i % n) % n]
    };
    (0..4 * n).map(|i| (0..4 * n).map(|j| element(i, j)).collect()).collect()
}

/// The matrix that transforms an odd factor of the last axis, together with two factors of 2.
fn of_odd(odd: usize) -> Option<Signs> {
    const FIVE: [&[i8]; 4] =
        [&[1, -1, -1, -1, -1], &[-1, 1, 1, 1, 1], &[-1, -1, 1, 1, -1], &[-1, 1, -1, -1, 1]];
    const SEVEN: [&[i8]; 4] = [
        &[1, -1, -1, -1, -1, -1, -1],
        &[-1, -1, 1, 1, 1, 1, -1],
        &[-1, 1, -1, 1, 1, -1, 1],
        &[-1, 1, 1, -1, -1, 1, 1],
    ];
    match odd {
        3 => Some(paley(5)),
        5 => Some(williamson(FIVE)),
        7 => Some(williamson(SEVEN)),
        _ => None,
    }
}

/// Signs as a matrix of `x`'s dtype.
fn matrix(signs: &Signs, x: &Array) -> Result<Array> {
    let n = signs.len();
    let flat: Vec<f32> = signs.iter().flatten().map(|s| f32::from(*s)).collect();
    Ok(Array::from_slice(&flat, &[n, n])?.astype(x.dtype()))
}

/// Transforms the middle of three axes.
fn transform(x: &Array, [outer, n, inner]: [usize; 3], signs: &Signs) -> Result<Array> {
    let m = matrix(signs, x)?;
    if inner == 1 {
        return x.reshape(&[outer, n])?.matmul(&m.transpose()?);
    }
    m.matmul(&x.reshape(&[outer, n, inner])?)
}

impl Array {
    /// Returns the Walsh-Hadamard transform along the last axis, times `scale`. The default is `1 /
    /// sqrt(n)`, which makes the transform orthonormal.
    ///
    /// The size n of the axis is 2^k, or 12, 20 or 28 times 2^k. The transform is the Kronecker product of a Hadamard
    /// matrix of order 12, 20 or 28 and Sylvester's matrix. Integers, bool and complex numbers give float32; sums of
    /// float16 and bfloat16 are computed in float32.
    ///
    /// # Errors
    /// [`crate::Error::Value`] for another size, and for an array without elements.
    pub fn hadamard_transform(&self, scale: Option<f64>) -> Result<Array> {
        const OP: &str = "hadamard_transform";
        self.computable(OP)?;
        ensure!(self.size() != 0, OP, "Does not support empty arrays. Pass at least one element.");
        let real = self.dtype().is_inexact() && !self.dtype().is_complex();
        let dtype = if real { self.dtype() } else { Dtype::Float32 };
        let n = self.shape().last().copied().unwrap_or(1);
        if n == 1 {
            // A transform of one element is a product with the factor alone, in the dtypes that MLX returns.
            let x = self.astype(self.dtype().to_inexact());
            return match scale {
                Some(scale) if scale != 1.0 => times(&x, &like(&x, scale)),
                _ => Ok(self.clone()),
            };
        }
        let (odd, twos) = (n >> n.trailing_zeros(), n.trailing_zeros());
        let first = of_odd(odd).filter(|_| twos >= 2);
        if odd != 1 && first.is_none() {
            bail!(
                OP,
                "Only supports n = m*2^k where m in (1, 12, 20, 28), got the shape {}. Pad the last axis with zeros.",
                Show(self.shape())
            );
        }
        let _placement = follow(&[self]);
        let shape = Shape::from_slice(self.shape());
        let rows = self.size() / n;
        let mut x = self.astype(dtype).astype(compute_dtype(dtype));
        let m = first.as_ref().map_or(1, Vec::len);
        let (mut inner, bits) = (1, (n / m).trailing_zeros());
        for done in (0..bits).step_by(BITS as usize) {
            let part = BITS.min(bits - done);
            let size = 1_usize << part;
            x = transform(&x, [rows * n / size / inner, size, inner], &sylvester(part))?;
            inner *= size;
        }
        if let Some(signs) = &first {
            x = transform(&x, [rows, m, inner], signs)?;
        }
        let scale = scale.unwrap_or(1.0 / (n as f64).sqrt());
        Ok(times(&x, &like(&x, scale))?.reshape(&shape)?.astype(dtype))
    }
}
