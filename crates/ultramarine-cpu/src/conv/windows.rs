//! The matrix whose rows are the windows of the output's pixels. It is packed from the input.

use super::Conv;
use crate::matmul::pack::Lines;

/// Most rows of a micro-kernel, at any level.
pub(super) const MOST_ROWS: usize = 32;
/// Taps along the last axis are packed as one run of at most this many elements, if they are adjacent, ...
const RUN: usize = 4096;
/// ... or if a tap has fewer channels than this; such taps are gathered first.
const FEW_CHANNELS: usize = 16;

/// The windows of a convolution; they are the same for all groups and tasks.
#[derive(Clone, Copy)]
pub(super) struct Windows<'a> {
    conv: &'a Conv<'a>,
    /// Taps along the last axis that are packed at once.
    taps: usize,
    /// Set if such taps are adjacent: each is the channels of the next pixel.
    joined: bool,
}

/// The first elements of the windows of up to [`MOST_ROWS`] pixels.
pub(super) struct Origins {
    count: usize,
    /// Address of the image and position along each spatial axis.
    at: [(*const u8, [i64; 3]); MOST_ROWS],
}

impl<'a> Windows<'a> {
    pub fn new(conv: &'a Conv<'a>) -> Self {
        let (w, size) = (&conv.axes[2], conv.dtype.size());
        let joined = w.dilation == 1 && conv.x.strides[3] == (conv.channels * size) as isize;
        let kernel = w.kernel as usize;
        let fits = (RUN / conv.channels).clamp(1, kernel);
        let taps = if joined || conv.channels < FEW_CHANNELS { fits } else { 1 };
        Windows { conv, taps, joined }
    }

    /// Elements that are packed at once, at most.
    fn run(&self) -> usize {
        self.taps * self.conv.channels
    }

    /// Bytes of memory that packing needs.
    pub fn scratch_bytes(&self) -> usize {
        (MOST_ROWS + 1) * self.run() * self.conv.dtype.size()
    }

    /// Origins of the windows of `count` pixels from pixel `first` on.
    pub fn origins(&self, group: usize, first: usize, count: usize) -> Origins {
        let c = self.conv;
        let size = c.dtype.size();
        let x = c.x.data.wrapping_add(group * c.channels * size) as *const u8;
        let mut at = [(x, [0; 3]); MOST_ROWS];
        let [d, h, w] = c.axes.map(|a| a.output as usize);
        let mut index = [first / (d * h * w), first / (h * w) % d, first / w % h, first % w];
        for place in &mut at[..count] {
            place.0 = x.wrapping_offset(index[0] as isize * c.x.strides[0]);
            for (i, axis) in c.axes.iter().enumerate() {
                place.1[i] = index[1 + i] as i64 * axis.stride - axis.low;
            }
            for (i, n) in [(3, w), (2, h), (1, d), (0, usize::MAX)] {
                index[i] += 1;
                if index[i] < n {
                    break;
                }
                index[i] = 0;
            }
        }
        Origins { count, at }
    }

    /// Packs elements `from..to` of the windows to `dst`. `scratch` has [`Windows::scratch_bytes`] bytes; its first run
    /// is zeros.
    ///
    /// # Safety
    /// The input is valid; `dst` has room for as many numbers times the number of origins.
    pub unsafe fn pack(
        &self,
        origins: &Origins,
        [from, to]: [usize; 2],
        scratch: *mut u8,
        dst: *mut u8,
    ) {
        let c = self.conv;
        let size = c.dtype.size();
        let [_, kh, kw] = c.axes.map(|a| a.kernel as usize);
        let line = kw * c.channels;
        let mut rows = [scratch as *const u8; MOST_ROWS];
        let mut p = from;
        while p < to {
            let (tap, at) = (p / line, p % line);
            let first = at / self.run() * self.taps;
            let taps = self.taps.min(kw - first);
            let skip = at - first * c.channels;
            let k = (taps * c.channels - skip).min(to - p);
            for (r, row) in rows[..origins.count].iter_mut().enumerate() {
                let own = scratch.wrapping_add((r + 1) * self.run() * size);
                // SAFETY: the row's own part of the memory.
                let start = unsafe {
                    self.row(&origins.at[r], [tap / kh, tap % kh, first], taps, scratch, own)
                };
                *row = start.wrapping_add(skip * size);
            }
            let lines =
                Lines { rows: &rows[..origins.count], k, before: p - from, all: to - from, dst };
            // SAFETY: rows have all elements of the run from the skipped ones on.
            unsafe { (c.ops.pack_lines)(&lines) };
            p += k;
        }
    }

    /// Address of the elements of `taps` taps from `tap` on for one window: in the input, or in `own` if they had to be
    /// gathered. `zeros` points to as many zeros.
    ///
    /// # Safety
    /// The input is valid; `own` has room for a run.
    #[inline]
    unsafe fn row(
        &self,
        (image, at): &(*const u8, [i64; 3]),
        tap: [usize; 3],
        taps: usize,
        zeros: *mut u8,
        own: *mut u8,
    ) -> *const u8 {
        let c = self.conv;
        let mut data = *image;
        for i in 0..2 {
            let index = at[i] + tap[i] as i64 * c.axes[i].dilation;
            if index < 0 || index >= c.axes[i].input {
                return zeros;
            }
            data = data.wrapping_offset(index as isize * c.x.strides[1 + i]);
        }
        let w = &c.axes[2];
        let first = at[2] + tap[2] as i64 * w.dilation;
        let step = c.x.strides[3];
        if self.joined && first >= 0 && first + taps as i64 <= w.input {
            return data.wrapping_offset(first as isize * step);
        }
        let inside = |i: i64| (0..w.input).contains(&i);
        if taps == 1 {
            return if inside(first) { data.wrapping_offset(first as isize * step) } else { zeros };
        }
        let bytes = c.channels * c.dtype.size();
        for t in 0..taps {
            let index = first + t as i64 * w.dilation;
            let to = own.wrapping_add(t * bytes);
            // SAFETY: the channels of a pixel of the input, and a tap's part of `own`.
            unsafe {
                if inside(index) {
                    let from = data.wrapping_offset(index as isize * step);
                    core::ptr::copy_nonoverlapping(from, to, bytes);
                } else {
                    to.write_bytes(0, bytes);
                }
            }
        }
        own
    }
}
