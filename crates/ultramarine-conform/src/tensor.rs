//! The kit's arrays, and their layout in memory.

use crate::dtype::{DType, Num};
use ultramarine_abi::{dlpack::element_range, layout};

/// A shape and its values in row-major order.
#[derive(Clone, Debug)]
pub struct Array {
    pub dtype: DType,
    pub shape: Vec<i64>,
    pub values: Vec<Num>,
}

impl Array {
    /// Makes an array from values, which are repeated or cut to fill the shape and converted to the
    /// dtype.
    pub fn cycle(dtype: DType, shape: &[i64], values: &[Num]) -> Self {
        let size = size(shape);
        let values = values.iter().cycle().take(size).map(|v| dtype.value(*v)).collect();
        Array { dtype, shape: shape.to_vec(), values }
    }

    /// The value at an index.
    pub fn at(&self, index: &[i64]) -> Num {
        let mut at = 0;
        for (n, i) in self.shape.iter().zip(index) {
            at = at * n + i;
        }
        self.values[at as usize]
    }
}

/// Number of elements of a shape.
pub fn size(shape: &[i64]) -> usize {
    shape.iter().product::<i64>() as usize
}

/// Calls `f` with every index of a shape, in row-major order.
pub fn each_index(shape: &[i64], mut f: impl FnMut(&[i64])) {
    let mut index = vec![0i64; shape.len()];
    for _ in 0..size(shape) {
        f(&index);
        for axis in (0..shape.len()).rev() {
            index[axis] += 1;
            if index[axis] < shape[axis] {
                break;
            }
            index[axis] = 0;
        }
    }
}

/// The layout of an array in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Row-major from the start of the buffer.
    Contiguous,
    /// Row-major, some elements into the buffer.
    Offset,
    /// The last axis varies slowest.
    Transposed,
    /// The last axis but one varies fastest, as in a batch of transposed matrices.
    Swapped,
    /// Every second element of longer rows.
    Gaps,
    /// All axes run backwards.
    Negative,
    /// The first axis has stride 0, so all its values are those of index 0.
    Broadcast,
}

impl Layout {
    /// The layouts that are not row-major without gaps.
    pub const STRIDED: [Layout; 4] =
        [Layout::Transposed, Layout::Gaps, Layout::Negative, Layout::Broadcast];

    pub fn name(self) -> &'static str {
        match self {
            Layout::Contiguous => "contiguous",
            Layout::Offset => "contiguous at an offset",
            Layout::Transposed => "transposed",
            Layout::Swapped => "of transposed matrices",
            Layout::Gaps => "with gaps",
            Layout::Negative => "backwards",
            Layout::Broadcast => "broadcast",
        }
    }

    /// Returns the contract's layout class.
    pub fn class(self) -> u32 {
        match self {
            Layout::Contiguous | Layout::Offset => layout::CONTIGUOUS,
            _ => layout::STRIDED,
        }
    }
}

/// Strides of a row-major array.
pub fn row_major(shape: &[i64]) -> Vec<i64> {
    let mut strides = vec![1; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis] * shape[axis];
    }
    strides
}

/// An array in memory.
#[derive(Clone, Debug)]
pub struct Placed {
    pub dtype: DType,
    pub shape: Vec<i64>,
    /// In elements.
    pub strides: Vec<i64>,
    /// Bytes from the buffer's start to the element at index 0.
    pub offset: u64,
    /// The whole buffer.
    pub bytes: Vec<u8>,
    pub class: u32,
}

/// The byte between and around the elements. A backend must neither depend on it nor change it.
pub const FILLER: u8 = 0xA5;

impl Placed {
    /// Lays an array out. For [`Layout::Broadcast`] the array's values are made equal
    /// along the first axis.
    pub fn new(array: &mut Array, layout: Layout) -> Self {
        let shape = array.shape.clone();
        let rank = shape.len();
        if layout == Layout::Broadcast && rank > 0 && shape[0] > 0 {
            let first: Vec<Num> = array.values[..array.values.len() / shape[0] as usize].to_vec();
            array.values = first.iter().cycle().take(array.values.len()).copied().collect();
        }
        let mut strides = row_major(&shape);
        let mut start = 0i64;
        match layout {
            Layout::Contiguous => {}
            Layout::Offset => start = 3,
            Layout::Transposed => {
                let mut step = 1;
                for (stride, n) in strides.iter_mut().zip(&shape) {
                    *stride = step;
                    step *= n;
                }
            }
            Layout::Swapped => {
                if let [.., rows, columns] = &mut strides[..] {
                    (*rows, *columns) = (1, shape[rank - 2]);
                }
            }
            Layout::Gaps => {
                let mut step = 2;
                for axis in (0..rank).rev() {
                    strides[axis] = step;
                    step = step * shape[axis] + 1;
                }
                start = 1;
            }
            Layout::Negative => {
                for (stride, n) in strides.iter_mut().zip(&shape) {
                    *stride = -*stride;
                    start -= *stride * (n - 1);
                }
            }
            Layout::Broadcast => {
                if let Some(first) = strides.first_mut() {
                    *first = 0;
                }
            }
        }
        let axes = shape.iter().copied().zip(strides.iter().copied());
        let last = start + element_range(axes).map_or(0, |(_, high)| high);
        let width = array.dtype.size();
        let mut placed = Placed {
            dtype: array.dtype,
            strides,
            offset: start as u64 * width as u64,
            bytes: vec![FILLER; (last as usize + 2) * width],
            class: layout.class(),
            shape,
        };
        placed.store(&array.values);
        placed
    }

    /// Makes an output that is filled with filler, with filler around it.
    pub fn output(dtype: DType, shape: &[i64], layout: Layout) -> Self {
        let mut zeros = Array { dtype, shape: shape.to_vec(), values: Vec::new() };
        zeros.values = vec![dtype.value(Num::Int(0)); size(shape)];
        let mut placed = Placed::new(&mut zeros, layout);
        placed.bytes.fill(FILLER);
        placed
    }

    /// Byte offset of each element, in row-major order.
    fn offsets(&self) -> Vec<usize> {
        let mut offsets = Vec::with_capacity(size(&self.shape));
        let width = self.dtype.size() as i64;
        each_index(&self.shape, |index| {
            let at: i64 = index.iter().zip(&self.strides).map(|(i, s)| i * s).sum();
            offsets.push((self.offset as i64 + at * width) as usize);
        });
        offsets
    }

    fn store(&mut self, values: &[Num]) {
        let mut element = Vec::new();
        for (offset, value) in self.offsets().into_iter().zip(values) {
            element.clear();
            self.dtype.write(*value, &mut element);
            self.bytes[offset..offset + element.len()].copy_from_slice(&element);
        }
    }

    /// The values that the bytes hold now.
    pub fn load(&self, bytes: &[u8]) -> Vec<Num> {
        self.offsets().into_iter().map(|p| self.dtype.read(&bytes[p..])).collect()
    }

    /// True if a byte outside the elements is no longer filler.
    pub fn is_spilled(&self, bytes: &[u8]) -> bool {
        let mut own = vec![false; bytes.len()];
        for offset in self.offsets() {
            own[offset..offset + self.dtype.size()].fill(true);
        }
        bytes.iter().zip(own).any(|(b, own)| !own && *b != FILLER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_layout_holds_the_values() {
        let values: Vec<Num> = (0..24).map(Num::Int).collect();
        let dense = [Layout::Contiguous, Layout::Offset, Layout::Swapped];
        for layout in dense.into_iter().chain(Layout::STRIDED) {
            for shape in [&[24][..], &[2, 3, 4], &[]] {
                let mut array = Array::cycle(DType::I32, shape, &values);
                let placed = Placed::new(&mut array, layout);
                assert_eq!(placed.load(&placed.bytes), array.values, "{layout:?}");
                assert!(!placed.is_spilled(&placed.bytes));
                let mut spilled = placed.bytes.clone();
                if let Some(last) = spilled.last_mut() {
                    *last = 0;
                }
                assert!(placed.is_spilled(&spilled));
            }
        }
    }

    #[test]
    fn broadcast_changes_the_values() {
        let mut array = Array::cycle(DType::U8, &[2, 2], &[1, 2, 3, 4].map(Num::Int));
        let placed = Placed::new(&mut array, Layout::Broadcast);
        assert_eq!(placed.strides, [0, 1]);
        assert_eq!(array.values, [1, 2, 1, 2].map(Num::Int));
    }
}
