//! Walks over tensors of one shape: axes that are adjacent in every tensor are joined.

use ultramarine_abi::helper::{Failure, Result};
use ultramarine_abi::status;

/// The axes along which `K` tensors of one shape are walked together. Axes that are adjacent in
/// every tensor are joined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axes<const K: usize> {
    /// Sizes, and a stride in elements for each tensor; the outermost axis first.
    pub list: Vec<(i64, [i64; K])>,
    /// The first element of each tensor in its buffer, in elements.
    pub offsets: [i64; K],
    /// Number of tensors whose offsets and strides are among a command's words; these are the first
    /// tensors.
    pub tensors: usize,
}

impl<const K: usize> Axes<K> {
    /// Joins axes that are contiguous in all tensors, and drops axes of size 1.
    pub fn join(offsets: [i64; K], axes: impl IntoIterator<Item = (i64, [i64; K])>) -> Self {
        let mut list: Vec<(i64, [i64; K])> = Vec::new();
        for (size, strides) in axes.into_iter().filter(|(size, _)| *size != 1) {
            match list.last_mut() {
                Some((outer, steps))
                    if steps.iter().zip(strides).all(|(o, s)| *o == s.wrapping_mul(size)) =>
                {
                    (*outer, *steps) = (*outer * size, strides);
                }
                _ => list.push((size, strides)),
            }
        }
        Self { list, offsets, tensors: K }
    }

    /// The same axes, with words for only the first `tensors` tensors.
    pub fn with_tensors(self, tensors: usize) -> Self {
        Self { tensors: tensors.min(K), ..self }
    }

    /// Returns the number of elements. Kernels count in 32 bits.
    pub fn elements(&self) -> Result<u32> {
        count(self.list.iter().map(|(size, _)| *size))
    }

    /// Appends the layout of `walk.wgsl`.
    pub fn words(&self, to: &mut Vec<u32>) {
        to.push(self.list.len().max(1) as u32);
        let tensors = self.tensors;
        to.extend(self.offsets[..tensors].iter().map(|offset| *offset as u32));
        if self.list.is_empty() {
            to.push(1);
            to.extend(&[0; K][..tensors]);
        }
        for (size, strides) in self.list.iter().rev() {
            to.push(*size as u32);
            to.extend(strides[..tensors].iter().map(|stride| *stride as u32));
        }
    }

    /// Appends the layout and the divisors.
    pub fn layout(&self, to: &mut Vec<u32>) {
        self.words(to);
        self.divisors(to);
    }

    /// For each axis but the last in the order of `words`, appends the factor and the shift of `divide` in
    /// `walk.wgsl`.
    fn divisors(&self, to: &mut Vec<u32>) {
        for (size, _) in self.list.iter().skip(1).rev() {
            to.extend(divisor(*size as u32));
        }
    }
}

/// The factor and the shift by which `divide` in `walk.wgsl` divides by a size of at least 2.
fn divisor(size: u32) -> [u32; 2] {
    let bits = (size - 1).ilog2() + 1;
    let factor = (((1_u64 << bits) - u64::from(size)) << 32) / u64::from(size) + 1;
    [factor as u32, bits - 1]
}

/// The product of sizes, for kernels that count in 32 bits.
pub fn count(sizes: impl IntoIterator<Item = i64>) -> Result<u32> {
    let n = sizes.into_iter().try_fold(1_u32, |n, size| n.checked_mul(u32::try_from(size).ok()?));
    n.ok_or_else(|| Failure {
        code: status::OUT_OF_MEMORY,
        text: "more than 4294967295 elements at once. Split the arrays along an outer axis".into(),
    })
}

/// Splits axes into those in a mask and the others.
pub fn split_axes<T: Copy>(all: &[T], mask: u64) -> (Vec<T>, Vec<T>) {
    let in_mask = |i: usize| i < 64 && mask >> i & 1 == 1;
    let pick = |wanted: bool| {
        let some = all.iter().enumerate().filter(move |(i, _)| in_mask(*i) == wanted);
        some.map(|(_, axis)| *axis).collect()
    };
    (pick(true), pick(false))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_that_lie_together_are_joined() {
        let axes = Axes::join([3, 0], [(2, [12, 12]), (1, [5, 9]), (3, [4, 4]), (4, [1, 1])]);
        assert_eq!(axes.list, [(24, [1, 1])]);
        let axes = Axes::join([0, 0], [(2, [12, 0]), (3, [4, 4]), (4, [1, 1])]);
        assert_eq!(axes.list, [(2, [12, 0]), (12, [1, 1])]);
        let mut words = Vec::new();
        axes.words(&mut words);
        assert_eq!(words, [2, 0, 0, 12, 1, 1, 2, 12, 0]);
        words.clear();
        Axes::join([7], [(1, [7])]).words(&mut words);
        assert_eq!(words, [1, 7, 1, 0]);
        assert_eq!(Axes::join([0], [(1, [7])]).elements().unwrap(), 1);
    }

    #[test]
    fn counts_of_more_than_32_bits_are_refused() {
        assert!(count([1 << 16, 1 << 16]).is_err());
        assert_eq!(count([1 << 16, (1 << 16) - 1]).unwrap(), 0xffff0000);
    }

    #[test]
    fn divisions_are_products() {
        let divide = |n: u32, [factor, shift]: [u32; 2]| {
            let t = ((u64::from(n) * u64::from(factor)) >> 32) as u32;
            (t + ((n - t) >> 1)) >> shift
        };
        let edges =
            [2, 3, 5, 7, 10, 64, 641, 65537, 1 << 31, (1 << 31) + 1, u32::MAX - 1, u32::MAX];
        for size in edges {
            let near = edges.iter().flat_map(|n| [n - 1, *n, n.wrapping_add(1)]);
            let multiples =
                (1..50).flat_map(|k| [size.wrapping_mul(k).wrapping_sub(1), size.wrapping_mul(k)]);
            for n in near.chain(multiples) {
                assert_eq!(divide(n, divisor(size)), n / size, "{n} / {size}");
            }
        }
        let mut words = Vec::new();
        Axes::join([0], [(3, [40]), (5, [7]), (4, [1])]).divisors(&mut words);
        assert_eq!(words, [divisor(4), divisor(5)].concat());
    }

    #[test]
    fn masks_split_axes() {
        assert_eq!(split_axes(&['a', 'b', 'c'], 0b101), (vec!['a', 'c'], vec!['b']));
    }
}
