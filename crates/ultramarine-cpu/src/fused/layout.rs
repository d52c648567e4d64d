//! The iteration space of a command: axes shared by all tensors, collapsed and divided into groups.
//!
//! A tile is a range of group A times a range of group B (the last two groups), at one index of
//! every outer group. The elements of a group are numbered row-major through its axes. The division
//! of a reduction therefore depends on shapes alone, while the loads handle any strides within a
//! group.

use crate::kernel::View;
use core::mem::MaybeUninit;

/// Most tensors (inputs and outputs) of one program.
pub const MAX_TENSORS: usize = 24;
/// Most axes.
pub const MAX_AXES: usize = ultramarine_abi::MAX_NDIM;
/// Marks a group through which a tensor has no single stride.
pub const NOT_LINEAR: isize = isize::MIN;

/// A vector of at most `N` plain values, without an allocation.
pub struct Stack<T: Copy, const N: usize> {
    items: [MaybeUninit<T>; N],
    len: usize,
}

impl<T: Copy, const N: usize> Stack<T, N> {
    /// Empty.
    #[inline]
    pub fn new() -> Self {
        Self { items: [const { MaybeUninit::uninit() }; N], len: 0 }
    }

    /// Appends.
    ///
    /// # Panics
    /// When full.
    #[inline]
    pub fn push(&mut self, item: T) {
        self.items[self.len].write(item);
        self.len += 1;
    }

    /// Keeps the first `len`.
    #[inline]
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }
}

impl<T: Copy, const N: usize> core::ops::Deref for Stack<T, N> {
    type Target = [T];
    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: the first `len` items were written.
        unsafe { core::slice::from_raw_parts(self.items.as_ptr() as *const T, self.len) }
    }
}

impl<T: Copy, const N: usize> core::ops::DerefMut for Stack<T, N> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: the first `len` items were written.
        unsafe { core::slice::from_raw_parts_mut(self.items.as_mut_ptr() as *mut T, self.len) }
    }
}

/// One axis with every tensor's stride in bytes.
#[derive(Clone, Copy)]
pub struct Axis {
    /// Steps along it; more than one.
    pub len: usize,
    /// The axis is reduced.
    pub reduced: bool,
    /// Bytes between neighbours, per tensor.
    pub strides: [isize; MAX_TENSORS],
}

/// Adjacent axes, numbered row-major.
#[derive(Clone, Copy)]
pub struct Group {
    first: usize,
    end: usize,
    /// Product of the axes.
    pub len: usize,
    /// The group's axes are reduced.
    pub reduced: bool,
    /// The stride in bytes through the whole group, or [`NOT_LINEAR`].
    pub linear: [isize; MAX_TENSORS],
}

/// The axes and groups of one command.
pub struct Layout {
    /// Collapsed axes, outermost first.
    pub axes: Stack<Axis, MAX_AXES>,
    /// Groups, outermost first; the last two are A and B.
    pub groups: Stack<Group, { MAX_AXES + 2 }>,
}

/// The axes that an epilogue reduces.
#[derive(Clone, Copy)]
pub struct Reduced {
    /// Bit `i`: axis `i` of the iteration shape.
    pub axes: u64,
    /// Set if the result does not depend on the order (integers), so that axes may be sorted.
    pub any_order: bool,
}

fn shape_error(tensor: &View<'_>, shape: &[i64]) -> String {
    format!("a tensor of shape {:?} in a program of shape {shape:?}", tensor.shape)
}

/// The shape to which all tensors are broadcast, checked.
///
/// # Errors
/// When a tensor does not fit.
pub fn iteration_shape(
    inputs: &[View<'_>],
    outputs: &[View<'_>],
    reduced: Option<Reduced>,
) -> Result<Stack<i64, MAX_AXES>, String> {
    let all = || inputs.iter().chain(outputs);
    let ndim = all().map(|t| t.shape.len()).max().unwrap_or(0);
    let mut shape = Stack::<i64, MAX_AXES>::new();
    (0..ndim).for_each(|_| shape.push(1));
    for tensor in all() {
        let skip = ndim - tensor.shape.len();
        for (to, n) in shape[skip..].iter_mut().zip(tensor.shape) {
            *to = (*to).max(*n);
        }
    }
    for (i, tensor) in all().enumerate() {
        let skip = ndim - tensor.shape.len();
        let output = i >= inputs.len();
        let epilogue = if i == inputs.len() { reduced } else { None };
        for axis in 0..ndim {
            let n = if axis < skip { 1 } else { tensor.shape[axis - skip] };
            let fits = match epilogue {
                Some(r) if r.axes >> axis & 1 == 1 => n == 1,
                _ => n == shape[axis] || (n == 1 && !output),
            };
            if !fits {
                return Err(shape_error(tensor, &shape));
            }
        }
    }
    Ok(shape)
}

impl Layout {
    /// A layout without axes. (Layouts are large, so fill them in place.)
    #[inline]
    pub fn new() -> Self {
        Layout { axes: Stack::new(), groups: Stack::new() }
    }

    /// Adds the axes. Axes of size 1 are dropped, and axes are merged if every tensor allows it.
    pub fn fill(
        &mut self,
        shape: &[i64],
        inputs: &[View<'_>],
        outputs: &[View<'_>],
        reduced: Option<Reduced>,
    ) {
        for (i, len) in shape.iter().enumerate().filter(|(_, n)| **n != 1) {
            let is_reduced = reduced.is_some_and(|r| r.axes >> i & 1 == 1);
            let mut axis =
                Axis { len: *len as usize, reduced: is_reduced, strides: [0; MAX_TENSORS] };
            for (stride, t) in axis.strides.iter_mut().zip(inputs.iter().chain(outputs)) {
                let skip = shape.len() - t.shape.len();
                if i >= skip && t.shape[i - skip] != 1 {
                    *stride = t.strides[i - skip] as isize * t.dtype.size() as isize;
                }
            }
            self.axes.push(axis);
        }
        let n = inputs.len() + outputs.len();
        // Order by the memory of the first output, or of the reduced input.
        let key = match reduced {
            None => Some(inputs.len()),
            Some(r) if r.any_order && !inputs.is_empty() => Some(0),
            _ => None,
        };
        if let Some(key) = key {
            let stride = |a: &Axis| a.strides[key].unsigned_abs();
            if !self.axes.is_sorted_by(|a, b| stride(a) >= stride(b)) {
                self.axes.sort_by_key(|a| core::cmp::Reverse(stride(a)));
            }
        }
        let mut merged = 0;
        for i in 0..self.axes.len() {
            let axis = self.axes[i];
            let fits = merged > 0 && {
                let last = &self.axes[merged - 1];
                last.reduced == axis.reduced
                    && (0..n).all(|t| last.strides[t] == axis.strides[t] * axis.len as isize)
            };
            if fits {
                let last = &mut self.axes[merged - 1];
                last.len *= axis.len;
                last.strides = axis.strides;
            } else {
                self.axes[merged] = axis;
                merged += 1;
            }
        }
        self.axes.truncate(merged);
    }

    /// Appends the group of the axes `first..end`.
    pub fn group(&mut self, first: usize, end: usize, reduced: bool) {
        let mut group = Group { first, end, len: 1, reduced, linear: [0; MAX_TENSORS] };
        let axes = &self.axes[first..end];
        if let Some(last) = axes.last() {
            group.linear = last.strides;
            group.len = axes.iter().map(|a| a.len).product();
            for pair in axes.windows(2) {
                for t in 0..MAX_TENSORS {
                    if pair[0].strides[t] != pair[1].strides[t] * pair[1].len as isize {
                        group.linear[t] = NOT_LINEAR;
                    }
                }
            }
        }
        self.groups.push(group);
    }

    /// Groups for an epilogue: runs of kept and reduced axes; A and B
    /// are of different kinds.
    pub fn group_by_kind(&mut self) {
        // Leave room for a group A in front of a single group.
        let mut bounds = Stack::<usize, { MAX_AXES + 1 }>::new();
        for i in 0..self.axes.len() {
            if i == 0 || self.axes[i].reduced != self.axes[i - 1].reduced {
                bounds.push(i);
            }
        }
        let n = self.axes.len();
        match bounds.len() {
            // A single value counts as a column of one row.
            0 => self.group(0, 0, true),
            1 => self.group(0, 0, !self.axes[0].reduced),
            _ => {}
        }
        if bounds.is_empty() {
            self.group(0, 0, false);
        }
        for g in 0..bounds.len() {
            let end = bounds.get(g + 1).copied().unwrap_or(n);
            self.group(bounds[g], end, self.axes[bounds[g]].reduced);
        }
    }

    /// Bytes from the first element of tensor `t` to place `index` of `group`.
    #[inline]
    pub fn offset(&self, group: &Group, t: usize, index: usize) -> isize {
        if group.linear[t] != NOT_LINEAR {
            return group.linear[t] * index as isize;
        }
        let (mut rest, mut offset) = (index, 0);
        for axis in self.axes[group.first..group.end].iter().rev() {
            offset += (rest % axis.len) as isize * axis.strides[t];
            rest /= axis.len;
        }
        offset
    }

    /// The two innermost axes of a group that is not linear for `t`:
    /// `(rows, columns, row stride, column stride)`.
    #[inline]
    pub fn plane(&self, group: &Group, t: usize) -> (usize, usize, isize, isize) {
        let (outer, inner) = (&self.axes[group.end - 2], &self.axes[group.end - 1]);
        (outer.len, inner.len, outer.strides[t], inner.strides[t])
    }
}
