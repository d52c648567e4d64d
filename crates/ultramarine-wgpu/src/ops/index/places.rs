//! The offsets that index arrays address.

use super::{index_tensor, kernel, step_of};
use crate::launch::{Axes, Job, OpRequest, View, count};
use crate::memory::Block;
use crate::program::Kernel;
use std::sync::Arc;
use ultramarine_abi::helper::{Failure, Result};

/// The offsets of the slices of GATHER and SCATTER.
pub(super) struct Places {
    add: Arc<Kernel>,
    fill: Arc<Kernel>,
    /// The axis that each array indexes.
    axes: Vec<usize>,
    index_ndim: usize,
    /// If true, positions out of bounds are skipped; otherwise they are clamped.
    skip: bool,
}

/// The tensors that offsets refer to.
pub(super) struct Indexed<'a> {
    pub arrays: &'a [View<'a>],
    /// The indexed tensor.
    pub whole: &'a View<'a>,
    /// The shape of the slices.
    pub slices: &'a [i64],
}

impl Places {
    /// Checks the index arrays, inputs 1 to `n`.
    pub fn of(
        request: &OpRequest<'_>,
        (n, index_ndim, axes): (u32, u32, &[u8; 32]),
        rank: usize,
        skip: bool,
    ) -> Result<Self> {
        let (n, index_ndim) = (n as usize, index_ndim as usize);
        let axes: Vec<usize> = axes.iter().take(n).map(|axis| usize::from(*axis)).collect();
        let twice = (1..axes.len()).any(|i| axes[..i].contains(&axes[i]));
        if n > 32 || twice || axes.iter().any(|axis| *axis >= rank) {
            return Err(Failure::invalid(format!("axes {axes:?} of a tensor of rank {rank}")));
        }
        let arrays = request.inputs.get(1..1 + n);
        let arrays = arrays.ok_or_else(|| Failure::invalid(format!("not {n} index arrays")))?;
        if arrays.iter().any(|array| array.ndim != index_ndim) {
            return Err(Failure::invalid("an index array of another rank"));
        }
        let dtype = arrays.first().map_or(crate::dtype::Dtype::Int32, |array| array.dtype);
        if arrays.iter().any(|array| array.dtype != dtype) {
            return Err(Failure::invalid("index arrays of several dtypes"));
        }
        let (given, item) = index_tensor(dtype)?;
        Ok(Self {
            add: kernel(request, &[given], true, &item, "add_places(i);")?,
            fill: kernel(request, &[], true, "", "fill_places(i);")?,
            axes,
            index_ndim,
            skip,
        })
    }

    /// Splits the axes of a slice into those that no index array indexes, and the others.
    pub fn split<T: Copy>(&self, slice: &[T]) -> (Vec<T>, Vec<T>) {
        let mask = self.axes.iter().fold(0, |mask, axis| mask | 1 << axis);
        let (along, off) = crate::launch::split_axes(slice, mask);
        (off, along)
    }

    /// Number of dimensions of the positions.
    pub fn index_ndim(&self) -> usize {
        self.index_ndim
    }

    /// Number of positions of slices.
    pub fn positions(&self, slices: &[i64]) -> Result<u32> {
        count(slices[..self.index_ndim].iter().copied())
    }

    /// Enqueues the computation of offsets.
    pub fn run(&self, job: &Job<'_>, of: &Indexed<'_>, places: &Arc<Block>) -> Result<()> {
        let positions = self.positions(of.slices)?;
        let offset = of.whole.offset as u32;
        if self.axes.is_empty() {
            return job.launch(&self.fill, &[places], positions, &[offset]);
        }
        for (i, (array, axis)) in of.arrays.iter().zip(&self.axes).enumerate() {
            let walked = (0..self.index_ndim).map(|d| (of.slices[d], [step_of(array, d)]));
            let size = of.whole.shape[*axis];
            let limit = size - of.slices[self.index_ndim + axis] + 1;
            let step = of.whole.strides[*axis];
            let first = u32::from(i == 0);
            let mut words =
                vec![first, self.skip.into(), size as u32, limit as u32, step as u32, offset];
            Axes::join([array.offset], walked).words(&mut words);
            job.launch(&self.add, &[&array.block, places], positions, &words)?;
        }
        Ok(())
    }
}
