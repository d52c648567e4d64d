//! Loops over several tensors of the same shape and any strides, in blocks of their rows, on all
//! threads.

use super::{parallel::pieces, store};
use crate::{error::Result, tensor::Tensor};

/// The most elements that are gathered or written at once. The blocks of all tensors of a call fit
/// into the first-level cache.
pub(super) const BLOCK: usize = 1024;
/// The fewest elements for which another thread is worth its cost.
const GRAIN: usize = 32 * 1024;

/// A tensor's first element, its strides in bytes, and the size of an element.
struct Lane {
    data: *mut u8,
    strides: Vec<isize>,
    item: usize,
}

/// Tensors of the same shape, with as few axes as possible: adjacent axes are merged if all tensors
/// have even strides across them.
pub(super) struct Lanes<const K: usize> {
    lanes: [Lane; K],
    shape: Vec<usize>,
}

// SAFETY: only `run` uses the pointers, and its caller guarantees that this is safe.
unsafe impl<const K: usize> Sync for Lanes<K> {}

/// A part of a row: for each tensor, its first element and the bytes to the next one.
pub(super) struct Part<const K: usize> {
    pub data: [*mut u8; K],
    pub strides: [isize; K],
    pub length: usize,
}

impl<const K: usize> Lanes<K> {
    /// Makes the lanes of tensors with the same shape.
    pub fn new(tensors: [&Tensor; K]) -> Self {
        let shape = &tensors[0].shape;
        let mut sizes: Vec<usize> = Vec::new();
        let mut strides: [Vec<isize>; K] = std::array::from_fn(|_| Vec::new());
        for (axis, &n) in shape.iter().enumerate() {
            if n == 1 {
                continue;
            }
            let step = |k: usize| tensors[k].strides[axis];
            let merges = !sizes.is_empty()
                && (0..K).all(|k| strides[k].last() == Some(&(step(k) * n as isize)));
            if merges {
                if let Some(last) = sizes.last_mut() {
                    *last *= n;
                }
            } else {
                sizes.push(n);
            }
            for (k, strides) in strides.iter_mut().enumerate() {
                if merges {
                    strides.pop();
                }
                strides.push(step(k));
            }
        }
        if sizes.is_empty() {
            sizes.push(shape.iter().product());
            strides.iter_mut().for_each(|s| s.push(0));
        }
        let mut all = tensors.iter().zip(strides).map(|(t, strides)| {
            let item = usize::from(t.dl.bits / 8);
            let strides = strides.into_iter().map(|s| s * item as isize).collect();
            Lane { data: t.data.cast(), strides, item }
        });
        // As many as there are tensors.
        let lanes = std::array::from_fn(|_| {
            all.next().unwrap_or(Lane { data: std::ptr::null_mut(), strides: Vec::new(), item: 0 })
        });
        Self { lanes, shape: sizes }
    }

    /// Returns true if the elements of tensor `k` are adjacent in rows.
    pub fn is_dense(&self, k: usize) -> bool {
        let lane = &self.lanes[k];
        lane.strides.last().is_some_and(|&s| s == lane.item as isize) || self.elements() == 1
    }

    pub fn elements(&self) -> usize {
        self.shape.iter().product()
    }

    /// Calls `body` on all threads, with parts of at most [`BLOCK`] elements that together are all
    /// elements. When this returns, writes of `body` that bypassed the caches are visible. Each
    /// sequence of parts on one thread has its own state.
    pub fn run<S>(
        &self,
        state: impl Fn() -> S + Sync,
        body: impl Fn(&mut S, Part<K>) + Sync,
    ) -> Result<()> {
        let (elements, outer) = (self.elements(), self.shape.len() - 1);
        let row = self.shape[outer];
        pieces(elements, GRAIN, BLOCK, |range| {
            let mut state = state();
            let mut at = range.start;
            while at < range.end {
                let (mut rest, mut column) = (at / row, at % row);
                let mut length = (row - column).min(range.end - at);
                at += length;
                let mut data: [*mut u8; K] = std::array::from_fn(|k| self.lanes[k].data);
                for axis in (0..outer).rev() {
                    let index = (rest % self.shape[axis]) as isize;
                    rest /= self.shape[axis];
                    for (to, lane) in data.iter_mut().zip(&self.lanes) {
                        *to = to.wrapping_offset(index * lane.strides[axis]);
                    }
                }
                let strides: [isize; K] = std::array::from_fn(|k| self.lanes[k].strides[outer]);
                while length > 0 {
                    let part = length.min(BLOCK);
                    let data = std::array::from_fn(|k| {
                        data[k].wrapping_offset(column as isize * strides[k])
                    });
                    body(&mut state, Part { data, strides, length: part });
                    (column, length) = (column + part, length - part);
                }
            }
            store::fence();
        })
    }
}
