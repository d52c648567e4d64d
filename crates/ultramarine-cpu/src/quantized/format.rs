//! Modes: the encoding of elements and scales, and their position.

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
    /// Those of scales that are uint8.
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

    /// Reads scales of a row, times a global scale divided by 2688, in the type of the computation.
    ///
    /// # Safety
    /// The view has scales of uint8, or for affine elements of type `S`; there are as many behind the element at `offset`, along
    /// the last axis.
    pub unsafe fn read_scales<S: Storage<Acc: From<f32>>>(
        &self,
        level: Level,
        (view, offset): (&View<'_>, isize),
        global: Option<f32>,
        to: &mut [S::Acc],
    ) {
        let Some(bits) = &self.scales else {
            // SAFETY: by this function's contract.
            return unsafe { read::<S>(view, offset, to) };
        };
        let (from, step) = (view.data.wrapping_offset(offset), last_step(view));
        let factor = global.map_or(1.0, |global| global / 2688.0);
        let mut whole = 0;
        if step == 1 && size_of::<S::Acc>() == 4 {
            whole = to.len() / MOST * MOST;
            // SAFETY: by this function's contract; numbers of four bytes are float32.
            unsafe {
                let to = core::slice::from_raw_parts_mut(to.as_mut_ptr().cast::<f32>(), whole);
                codes(level, bits, from, to);
                if global.is_some() {
                    to.iter_mut().for_each(|scale| *scale *= factor);
                }
            }
        }
        for (i, to) in to.iter_mut().enumerate().skip(whole) {
            // SAFETY: by this function's contract.
            let code = unsafe { *from.wrapping_offset(i as isize * step) };
            let scale = if bits.kind == Kind::E4m3 { e4m3(code) } else { e8m0(code) };
            *to = (scale * factor).into();
        }
    }
}

/// Reads elements of a row, in the type of the computation.
///
/// # Safety
/// There are as many elements of type `S` behind the one at `offset`, along the last axis.
pub unsafe fn read<S: Storage>(view: &View<'_>, offset: isize, to: &mut [S::Acc]) {
    let from = view.data.cast::<S>().wrapping_offset(offset);
    // SAFETY: by this function's contract.
    unsafe { widen(from.cast_const(), last_step(view), to) }
}

/// The stride of the last axis.
fn last_step(view: &View<'_>) -> isize {
    view.strides[view.strides.len() - 1] as isize
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

    /// The bytes of a row: in place, or copied if its words are not adjacent.
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
