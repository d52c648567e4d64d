//! The items of gathered products, grouped by the matrix of the second factor that they use.

use crate::kernel::View;

/// Indices of matrices; without indices, matrices are taken in order.
#[derive(Clone, Copy)]
pub(crate) struct Picked<'a> {
    indices: Option<&'a View<'a>>,
    /// Matrices.
    count: usize,
}

impl<'a> Picked<'a> {
    pub fn new(indices: Option<&'a View<'a>>, count: i64) -> Picked<'a> {
        Picked { indices, count: count as usize }
    }

    /// The matrix of an item.
    ///
    /// # Safety
    /// Indices are int32, one for each item.
    unsafe fn at(&self, item: usize) -> usize {
        let Some(indices) = self.indices else { return item };
        let at = item as isize * indices.strides[0] as isize;
        // SAFETY: by this function's contract.
        let index = unsafe { *indices.data.cast::<i32>().wrapping_offset(at) } as isize;
        let count = self.count as isize;
        (if index < 0 { index + count } else { index }).clamp(0, count - 1) as usize
    }
}

/// An item: its position in the result, and the matrices that it uses.
#[derive(Clone, Copy)]
pub(crate) struct Item {
    pub place: usize,
    pub first: usize,
    pub second: usize,
}

/// Items sorted by their second matrix, and among equal ones by their position.
///
/// # Safety
/// Indices are int32, one for each item.
pub(crate) unsafe fn by_second(count: usize, first: Picked<'_>, second: Picked<'_>) -> Vec<Item> {
    let mut items: Vec<Item> = (0..count)
        // SAFETY: by this function's contract.
        .map(|place| unsafe { Item { place, first: first.at(place), second: second.at(place) } })
        .collect();
    items.sort_by_key(|item| item.second);
    items
}
