//! Walks over tensors of one shape. [`Axes`] joins axes that are adjacent in every tensor, so that
//! kernels need as few index divisions as possible.

use super::{View, span};
use crate::program::index;

/// Maximum number of axes, by the contract.
pub const MAX_AXES: usize = ultramarine_abi::MAX_NDIM;

/// The axes along which `K` tensors of one shape are walked together. Axes that are adjacent in
/// every tensor are joined, so contiguous tensors have a single axis.
#[derive(Clone, Debug)]
pub struct Axes<const K: usize> {
    /// Number of axes; it may be 0, for one element.
    pub count: usize,
    /// Sizes, the outermost axis first.
    pub size: [i64; MAX_AXES],
    /// Strides in elements, by tensor.
    pub stride: [[i64; MAX_AXES]; K],
}

impl<const K: usize> Axes<K> {
    /// The axes of tensors of one shape.
    pub fn of(views: [&View<'_>; K]) -> Self {
        let strides = views.map(|v| v.strides);
        Self::join(views[0].shape, strides)
    }

    /// Joins axes that are contiguous in all tensors, and drops axes of size 1.
    pub fn join(shape: &[i64], strides: [&[i64]; K]) -> Self {
        let mut axes = Self { count: 0, size: [1; MAX_AXES], stride: [[0; MAX_AXES]; K] };
        for (d, size) in shape.iter().copied().enumerate() {
            if size == 1 {
                continue;
            }
            let last = axes.count.wrapping_sub(1);
            let joins = axes.count > 0
                && (0..K).all(|k| axes.stride[k][last] == strides[k][d].wrapping_mul(size));
            let at = if joins { last } else { axes.count };
            axes.size[at] = if joins { axes.size[at] * size } else { size };
            for (kept, given) in axes.stride.iter_mut().zip(strides) {
                kept[at] = given[d];
            }
            axes.count = at + 1;
        }
        axes
    }

    /// Number of elements.
    pub fn len(&self) -> u64 {
        self.size[..self.count].iter().map(|n| *n as u64).product()
    }

    /// True for no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// True if tensor `k` is row-major without gaps over these axes.
    pub fn is_contiguous(&self, k: usize) -> bool {
        match self.count {
            0 => true,
            1 => self.stride[k][0] == 1,
            _ => false,
        }
    }

    /// True if all indices of tensor `k` refer to one element.
    pub fn is_scalar(&self, k: usize) -> bool {
        self.stride[k][..self.count].iter().all(|s| *s == 0)
    }

    /// True if 32-bit signed arithmetic can address every element of every tensor and count all
    /// elements, with room for a grid's stride.
    pub fn is_small(&self) -> bool {
        const MOST: u64 = 1 << 30;
        let sizes = &self.size[..self.count];
        let axes = |k: usize| sizes.iter().copied().zip(self.stride[k]);
        self.len() <= MOST && (0..K).all(|k| span(axes(k)) <= MOST)
    }

    /// The variant of the kernels that walk these axes.
    pub fn variant(&self) -> RankVariant {
        RankVariant { rank: rank_for(self.count), wide: !self.is_small() }
    }

    /// The kernels' parameter: `Walk<K, N>` of `walk.cuh`, where `N` is [`rank_for`] these axes.
    pub fn parameter(&self) -> Vec<u64> {
        self.parameter_in(rank_for(self.count))
    }

    /// The kernels' parameter `Walk<K, rank>`; there must be at most `rank` axes.
    pub fn parameter_in(&self, rank: usize) -> Vec<u64> {
        let mut words = Vec::with_capacity(2 + rank * (K + 1));
        words.push(self.len());
        words.push(self.count as u64);
        words.extend((0..rank).map(|i| self.size[i] as u64));
        for k in 0..K {
            words.extend((0..rank).map(|i| self.stride[k][i] as u64));
        }
        words
    }
}

/// Numbers of axes that kernels are compiled for. The last variant loops over the actual number.
const RANKS: [usize; 5] = [1, 2, 3, 4, MAX_AXES];

/// The smallest number of axes that kernels are compiled for and that is at least `axes`.
pub fn rank_for(axes: usize) -> usize {
    RANKS.into_iter().find(|rank| *rank >= axes).unwrap_or(MAX_AXES)
}

/// The variant of a kernel for a number of axes. Kernels with fewer axes, or with 32-bit indices,
/// are faster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankVariant {
    /// Number of axes that the kernel supports.
    pub rank: usize,
    /// True for 64-bit indices.
    pub wide: bool,
}

impl RankVariant {
    /// Returns the kernels' type of indices.
    pub fn index(self) -> &'static str {
        index(self.wide)
    }
}
