//! Loops over several tensors of one shape and any strides, in blocks of their rows, on all threads.

use super::{parallel::pieces, store};
use crate::{error::Result, tensor::Tensor};

/// Elements that are gathered or written at once: those of all tensors of a call stay in the first cache.
pub(super) const BLOCK: usize = 1024;
/// Elements that are worth a thread.
const GRAIN: usize = 32 * 1024;

/// A tensor's first element, its strides in bytes, and bytes of its elements.
struct Lane {
    data: *mut u8,
    strides: Vec<isize>,
    item: usize,
}

/// Tensors of one shape, with as few axes as they can have: those over which all of them go in even steps are one.
pub(super) struct Lanes<const K: usize> {
    lanes: [Lane; K],
    shape: Vec<usize>,
}

// SAFETY: the pointers are used by whoever calls `run`, which is unsafe for that reason.
unsafe impl<const K: usize> Sync for Lanes<K> {}

/// Part of a row: for each tensor its first element and the bytes to the next.
pub(super) struct Part<const K: usize> {
    pub data: [*mut u8; K],
    pub strides: [isize; K],
    pub length: usize,
}

impl<const K: usize> Lanes<K> {
    /// Tensors of one shape.
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

    /// Returns whether the elements of tensor `k` lie side by side in rows.
    pub fn is_dense(&self, k: usize) -> bool {
        let lane = &self.lanes[k];
        lane.strides.last().is_some_and(|&s| s == lane.item as isize) || self.elements() == 1
    }

    pub fn elements(&self) -> usize {
        self.shape.iter().product()
    }

    /// Calls `body` with parts of at most [`BLOCK`] elements, which are together all, on all threads; what it wrote past the
    /// caches is there when it returns.
    /// Each run of parts on one thread has a state of its own.
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
