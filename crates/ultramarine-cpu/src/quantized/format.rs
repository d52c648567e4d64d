//! Modes, and what their scales mean.

use super::decode::{Bits, Kind, MOST, e4m3, e8m0};
use super::expand::codes;
use crate::kernel::{Refusal, View};
use crate::level::Level;
use crate::matmul::simd::Storage;
use crate::nn::tensor::widen;
use ultramarine_abi::schema::quantization;

/// How elements and scales are encoded.
pub struct Format {
    pub group: usize,
    pub bits: Bits,
    /// Of scales of uint8.
    scales: Option<Bits>,
}

impl Format {
    /// Checks the sizes of a mode.
    pub fn new(mode: u32, bits: u32, group: u32) -> Result<Format, Refusal> {
        let (kind, scales, known) = match mode {
            quantization::AFFINE => {
                let known = matches!(bits, 1..=6 | 8) && matches!(group, 32 | 64 | 128);
                (Kind::Integer, None, known)
            }
            quantization::MXFP4 => (Kind::E2m1, Some(Kind::E8m0), (bits, group) == (4, 32)),
            quantization::MXFP8 => (Kind::E4m3, Some(Kind::E8m0), (bits, group) == (8, 32)),
            quantization::NVFP4 => (Kind::E2m1, Some(Kind::E4m3), (bits, group) == (4, 16)),
            _ => return Err(Refusal::Unsupported),
        };
        if !known {
            return Err(Refusal::Unsupported);
        }
        let scales = scales.map(|kind| Bits::new(kind, 8));
        Ok(Format { group: group as usize, bits: Bits::new(kind, bits as usize), scales })
    }

    pub fn is_affine(&self) -> bool {
        self.scales.is_none()
    }

    /// Words of a row of elements.
    pub fn words(&self, columns: usize) -> usize {
        columns * self.bits.size / 32
    }

    /// The numbers of all scales of uint8, times a global scale over 2688, the largest number without.
    pub fn scales(&self, global: Option<f32>) -> [f32; 256] {
        let factor = factor(global);
        core::array::from_fn(|code| {
            let scale = match self.scales.as_ref().map(|bits| bits.kind) {
                Some(Kind::E4m3) => e4m3(code as u8),
                _ => e8m0(code as u8),
            };
            scale * factor
        })
    }

    /// Decodes scales of uint8 that lie next to each other, times a global scale over 2688. Returns false, and does nothing, if
    /// they make no whole vectors.
    ///
    /// # Safety
    /// There are as many as there is room for.
    pub unsafe fn decode_scales(
        &self,
        level: Level,
        from: *const u8,
        global: Option<f32>,
        to: &mut [f32],
    ) -> bool {
        let Some(bits) = self.scales.as_ref().filter(|_| to.len().is_multiple_of(MOST)) else {
            return false;
        };
        // SAFETY: by this function's contract.
        unsafe { codes(level, bits, from, to) };
        if global.is_some() {
            let factor = factor(global);
            to.iter_mut().for_each(|scale| *scale *= factor);
        }
        true
    }
}

/// What scales are multiplied by.
fn factor(global: Option<f32>) -> f32 {
    global.map_or(1.0, |global| global / 2688.0)
}

/// Scales or biases of rows: an element for each group.
#[derive(Clone, Copy)]
pub struct Scales<'a> {
    pub view: &'a View<'a>,
    /// Of scales of uint8.
    pub table: Option<&'a [f32; 256]>,
}

impl Scales<'_> {
    /// Some of those of a row, in the type that they are computed with.
    ///
    /// # Safety
    /// `S` is the elements' type if there is no table. There are as many behind the element at `offset`, of the last axis.
    #[inline(always)]
    pub unsafe fn read<S: Storage<Acc: From<f32>>>(&self, offset: isize, to: &mut [S::Acc]) {
        let step = self.view.strides[self.view.strides.len() - 1] as isize;
        // SAFETY: by this function's contract.
        unsafe {
            match self.table {
                Some(table) => {
                    let from = self.view.data.wrapping_offset(offset);
                    for (i, to) in to.iter_mut().enumerate() {
                        *to = table[*from.wrapping_offset(i as isize * step) as usize].into();
                    }
                }
                None => {
                    let from = self.view.data.cast::<S>().wrapping_offset(offset);
                    widen(from.cast_const(), step, to);
                }
            }
        }
    }
}

/// The offset of an element, or of a row of the last axis, by its indices along the first axes.
pub fn offset(view: &View<'_>, index: &[usize]) -> isize {
    index.iter().zip(view.strides).map(|(i, stride)| *i as isize * *stride as isize).sum()
}

/// Rows of words.
#[derive(Clone, Copy)]
pub struct Words<'a> {
    view: &'a View<'a>,
    /// From a word to the next.
    step: isize,
}

impl<'a> Words<'a> {
    pub fn new(view: &'a View<'a>) -> Words<'a> {
        let n = view.strides.len() - 1;
        let step = if view.shape[n] == 1 { 1 } else { view.strides[n] as isize };
        Words { view, step }
    }

    fn count(&self) -> usize {
        self.view.shape[self.view.shape.len() - 1] as usize
    }

    /// Bytes that a copy of a row takes.
    pub fn room(&self) -> usize {
        if self.step == 1 { 0 } else { 4 * self.count() }
    }

    /// Where a row is.
    pub fn at(&self, index: &[usize]) -> *const u8 {
        self.view.data.cast::<u32>().wrapping_offset(offset(self.view, index)).cast()
    }

    /// Bytes from a row to the next.
    pub fn bytes_to_next(&self) -> isize {
        4 * self.view.strides[self.view.strides.len() - 2] as isize
    }

    /// The bytes of a row: where they are, or copied if its words do not lie next to each other.
    ///
    /// # Safety
    /// There is such a row, and [`Words::room`] for the copy.
    pub unsafe fn row(&self, index: &[usize], copy: *mut u8) -> *const u8 {
        let row = self.view.data.cast::<u32>().wrapping_offset(offset(self.view, index));
        if self.step == 1 {
            return row.cast();
        }
        for i in 0..self.count() {
            // SAFETY: by this function's contract.
            unsafe {
                let word = row.wrapping_offset(i as isize * self.step).read();
                copy.cast::<u32>().add(i).write_unaligned(word);
            }
        }
        copy
    }
}
