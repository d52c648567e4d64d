//! Tensors as rows: their last axis, at every index of the other axes.

use crate::kernel::View;

/// Elements of a row, and of the elements between two of them.
#[derive(Clone, Copy)]
pub struct Rows<'a> {
    view: View<'a>,
    /// Elements from an element of a row to the next.
    pub step: isize,
}

impl<'a> Rows<'a> {
    /// The rows of a tensor of at least one axis.
    pub fn new(view: &View<'a>) -> Rows<'a> {
        let step = view.strides.last().map_or(0, |s| *s as isize);
        Rows { view: *view, step }
    }

    /// The first element of a row, in row-major order of the leading axes.
    pub fn at<T>(&self, row: usize) -> *mut T {
        let last = self.view.shape.len() - 1;
        let (mut rest, mut offset) = (row as i64, 0);
        for (size, stride) in self.view.shape[..last].iter().zip(self.view.strides).rev() {
            // Division is slow, and most leading axes are of size 1.
            if *size > 1 {
                offset += rest % size * stride;
                rest /= size;
            }
        }
        self.view.data.cast::<T>().wrapping_offset(offset as isize)
    }
}
