//! Depthwise convolutions, a few channels at a time. Lines of the input are copied together with their padding, and
//! blocks of adjacent pixels are summed together, so that each weight is read once for all pixels of a block.
//!
//! Padding along the last axis is multiplied by weights, as the zeros that other convolutions pack are.

// Small arrays of registers are walked by index, several at a time.
#![allow(clippy::needless_range_loop)]

use super::{Axis, Conv, Tensor, for_storage};
use crate::copy::strided::{self as rectangle, Rect};
use crate::level::{Body, Isa, Level, at};
use crate::matmul::mul_acc;
use crate::matmul::simd::{Storage, prefetch};
use crate::scratch::{Scratch, Slot};
use core::marker::PhantomData;
use core::ops::Range;

/// Bytes of the sums of a pixel. They determine how many channels are convolved at a time.
const LINE: usize = 64;
/// Largest number of pixels that are summed together. A smaller number would leave the core waiting for earlier sums.
const MOST: usize = 8;
/// The number of pixels that is used if there are 32 registers and it wastes no sums.
const WIDE: usize = 14;
/// Number of pixels between the prefetch of a line and its copy.
const SOON: isize = 16;
/// Columns of a tile.
const COLUMNS: usize = 64;
/// Multiply-adds: at most the first for a tile, and at least the second for a task.
const WORK: [usize; 2] = [1 << 20, 1 << 18];
/// Bytes of input rows, with all channels, that stay in a core's cache while successive tiles each process some of the
/// channels.
const BAND: usize = 1 << 19;
/// Largest number of bytes of a tile's lines, if its pixels share them.
const ROOM: usize = 1 << 20;

/// Runs a depthwise convolution without input dilation.
///
/// # Safety
/// The tensors are valid. The input's channels are adjacent, and so are a filter's taps, in order.
pub(super) unsafe fn run(conv: &Conv<'_>) {
    // SAFETY: passed on, with the dtype's type.
    unsafe {
        for_storage!(conv.dtype, S => match size_of::<<S as Storage>::Acc>() {
            4 => sized::<S, { LINE / 4 }>(conv),
            _ => sized::<S, { LINE / 8 }>(conv),
        });
    }
}

/// # Safety
/// As [`run`]; elements are `S`.
unsafe fn sized<S: Storage, const N: usize>(conv: &Conv<'_>) {
    let (taps, chunks) = (conv.taps(), conv.groups.div_ceil(N));
    let memory = Scratch::new(Slot::Call, taps * chunks * N * size_of::<S::Acc>());
    let weights = memory.get() as *mut [S::Acc; N];
    let mut columns = vec![[S::default(); N]; taps];
    let size = size_of::<S>() as isize;
    for chunk in 0..chunks {
        let first = chunk * N;
        let to = Rect::dense(columns.as_mut_ptr().cast(), N, size as usize);
        let from = Rect { data: conv.w.at(&[first]), rows: size, columns: conv.w.strides[0] };
        let channels = N.min(conv.groups - first);
        // SAFETY: the taps of some channels; the memory is of all.
        unsafe {
            rectangle::copy(conv.cx.level, to, from, taps, channels, size as usize);
            for (tap, column) in columns.iter().enumerate() {
                weights.add(chunk * taps + tap).write(column.map(S::widen));
            }
        }
    }
    let tiles = Tiles::<S, N> { conv, weights, shape: Shape::of(conv, N), storage: PhantomData };
    let (count, each) = (tiles.shape.count(), tiles.shape.work(taps * N));
    let step = (WORK[1] / each).max(1);
    let work = conv.pixels().saturating_mul(taps * conv.groups);
    conv.run(work, count.div_ceil(step), |i| {
        at(conv.cx.level, Task { tiles: &tiles, range: i * step..count.min((i + 1) * step) });
    });
}

/// The division of the output into tiles: rectangles of rows and columns, for some channels. Each tile has copies of
/// the input lines that it reads, including everything between the pixels that it reads. If that is too much, the
/// copies contain only these pixels, once for each tap.
struct Shape {
    /// Images, slices of depth, rectangles along both axes, and groups of channels.
    counts: [usize; 5],
    rows: usize,
    columns: usize,
    /// Copies for each slice of the kernel's depth.
    lines: usize,
    /// Pixels that are summed together if there are enough registers.
    pixels: usize,
    /// Lines of the input from one copy to the next.
    line_step: i64,
    /// Copies from a row of the output to the next, and from a tap to the next.
    line_of: [usize; 2],
    /// Parts of a copy, and pixels of a part.
    parts: [usize; 2],
    /// Distance between neighbouring pixels of a part, in pixels of the input.
    step: i64,
    /// Pixels of a copy from a pixel of the output to the next, and from a tap to the next.
    pixel_of: [usize; 2],
}

impl Shape {
    fn of(conv: &Conv<'_>, channels: usize) -> Shape {
        let [_, b, c] = conv.axes;
        let [d, h, w] = conv.axes.map(|a| a.output as usize);
        let [depth, height, width] = conv.axes.map(|a| a.kernel as usize);
        let even = |n: usize, most: usize| n.div_ceil(n.div_ceil(most).max(1)).max(1);
        let columns = even(w, COLUMNS);
        let wide = !matches!(conv.cx.level, Level::Baseline | Level::V3)
            && columns.next_multiple_of(WIDE) <= columns.next_multiple_of(MOST);
        let pixels = if wide { WIDE } else { MOST };
        let padded = columns.next_multiple_of(pixels);
        let row = 2 * columns * conv.groups * conv.dtype.size();
        let most = (WORK[0] / (conv.taps() * columns * channels)).min((BAND / row).max(height));
        let rows = even(h, most.clamp(1, COLUMNS));
        let shape = |rows: usize| Shape {
            counts: [
                conv.batch,
                d,
                h.div_ceil(rows),
                w.div_ceil(columns),
                conv.groups.div_ceil(channels),
            ],
            rows,
            columns,
            lines: height,
            pixels,
            line_step: b.dilation,
            line_of: [0, 1],
            parts: [width, padded],
            step: c.stride,
            pixel_of: [1, padded],
        };
        let extent = |axis: &Axis, outputs: usize| {
            let outputs = (axis.stride as usize).checked_mul(outputs - 1)?;
            let taps = (axis.dilation * (axis.kernel - 1)) as usize;
            outputs.checked_add(taps + 1)
        };
        let shared = |rows: usize| {
            let (lines, pixels) = (extent(&b, rows)?, extent(&c, padded)?);
            let size = lines.checked_mul(pixels)?.checked_mul(depth)?;
            (size <= ROOM / LINE).then_some(Shape {
                lines,
                line_step: 1,
                line_of: [b.stride as usize, b.dilation as usize],
                parts: [1, pixels],
                step: 1,
                pixel_of: [c.stride as usize, c.dilation as usize],
                ..shape(rows)
            })
        };
        shared(rows).or_else(|| shared(1)).unwrap_or_else(|| shape(1))
    }

    fn count(&self) -> usize {
        self.counts.iter().product()
    }

    /// Multiply-adds of a tile that needs `pixel` of them per pixel.
    fn work(&self, pixel: usize) -> usize {
        self.rows * self.columns * pixel
    }

    /// The position of a tile. Groups of channels are the innermost axis.
    fn tile(&self, mut i: usize) -> [usize; 5] {
        let mut place = [0; 5];
        for axis in (0..5).rev() {
            place[axis] = i % self.counts[axis];
            i /= self.counts[axis];
        }
        place
    }
}

/// The tiles of a convolution, `N` channels each.
struct Tiles<'a, S: Storage, const N: usize> {
    conv: &'a Conv<'a>,
    /// The taps of each group of channels. Values for missing channels are unspecified.
    weights: *const [S::Acc; N],
    shape: Shape,
    storage: PhantomData<S>,
}

// SAFETY: the weights are only read; the convolution may be shared.
unsafe impl<S: Storage, const N: usize> Sync for Tiles<'_, S, N> {}

/// Some tiles.
struct Task<'a, S: Storage, const N: usize> {
    tiles: &'a Tiles<'a, S, N>,
    range: Range<usize>,
}

impl<S: Storage, const N: usize> Body for Task<'_, S, N> {
    type Output = ();

    #[inline(always)]
    fn call<I: Isa>(self, _: I) {
        let mut met = Vec::new();
        for i in self.range {
            let tile = self.tiles.shape.tile(i);
            // SAFETY: tiles are parts of the output, each of one task.
            unsafe {
                match I::LEVEL {
                    // Use as many sums as there are registers.
                    Level::Baseline => self.tiles.sum::<I, 2>(tile, &mut met),
                    Level::V3 => self.tiles.sum::<I, 4>(tile, &mut met),
                    _ if self.tiles.shape.pixels == WIDE => {
                        self.tiles.sum::<I, WIDE>(tile, &mut met)
                    }
                    _ => self.tiles.sum::<I, MOST>(tile, &mut met),
                }
            }
        }
    }
}

/// A line of the kernel that overlaps the input: the copy of the input's line, and the weights.
type Met<T, const N: usize> = (*const [T; N], *const [T; N]);

#[inline(always)]
fn widened<S: Storage, const N: usize>(pixel: [S; N]) -> [S::Acc; N] {
    let mut wide = [S::Acc::default(); N];
    for l in 0..N {
        wide[l] = pixel[l].widen();
    }
    wide
}

/// The address of a line: image, slice of depth and row.
#[inline(always)]
fn line_of(tensor: &Tensor, [n, z, y]: [usize; 3]) -> *mut u8 {
    let [image, slice, row, ..] = tensor.strides;
    let at = n as isize * image + z as isize * slice + y as isize * row;
    tensor.data.wrapping_offset(at)
}

impl<S: Storage, const N: usize> Tiles<'_, S, N> {
    /// Sums the pixels of a tile, `P` at a time.
    ///
    /// # Safety
    /// The tile is a part of the output, which no other task writes.
    #[inline(always)]
    unsafe fn sum<I: Isa, const P: usize>(
        &self,
        [n, od, row, column, chunk]: [usize; 5],
        met: &mut Vec<Met<S::Acc, N>>,
    ) {
        let (conv, shape) = (self.conv, &self.shape);
        let [a, b, c] = conv.axes;
        let [depth, height, width] = conv.axes.map(|a| a.kernel as usize);
        let (row, column) = (row * shape.rows, column * shape.columns);
        let rows = shape.rows.min(b.output as usize - row);
        let columns = shape.columns.min(c.output as usize - column);
        let channels = chunk * N..conv.groups.min((chunk + 1) * N);
        let length = shape.parts[0] * shape.parts[1];
        let size = size_of::<[S::Acc; N]>();
        let memory = Scratch::new(Slot::Task, depth * shape.lines * length * size);
        let data = memory.get() as *mut [S::Acc; N];
        let copy = |kd: usize, line: usize| data.wrapping_add((kd * shape.lines + line) * length);
        let top = row as i64 * b.stride - b.low;
        let left = column as i64 * c.stride - c.low;
        let mut copied = 0;
        for i in 0..rows {
            let first = i * shape.line_of[0];
            let end = first + (height - 1) * shape.line_of[1] + 1;
            met.clear();
            for kd in 0..depth {
                let Some(z) = a.meets(od, kd) else { continue };
                // Copy only lines that no earlier row needed.
                for line in first.max(copied)..end {
                    let y = top + line as i64 * shape.line_step;
                    if !(0..b.input).contains(&y) {
                        continue;
                    }
                    for part in 0..shape.parts[0] {
                        let x = left + part as i64 * c.dilation;
                        let to = copy(kd, line).wrapping_add(part * shape.parts[1]);
                        // SAFETY: a line of the input; the memory is of all copies.
                        unsafe { self.copy([n, z, y as usize], x, &channels, to) };
                    }
                }
                for kh in 0..height {
                    if b.meets(row + i, kh).is_none() {
                        continue;
                    }
                    let taps = (((chunk * depth) + kd) * height + kh) * width;
                    let line = copy(kd, first + kh * shape.line_of[1]);
                    met.push((line, self.weights.wrapping_add(taps)));
                }
            }
            copied = end;
            let output = line_of(&conv.y, [n, od, row + i]);
            for block in (0..columns).step_by(P) {
                let first = block * shape.pixel_of[0];
                let (pixel, channel) = (conv.y.strides[3], conv.y.strides[4]);
                let at = (column + block) as isize * pixel + channels.start as isize * channel;
                let to = output.wrapping_offset(at);
                // SAFETY: the copies contain all pixels that a block of the tile reads; the block writes only pixels of
                // the tile.
                unsafe { self.block::<I, P>(met, first, to, columns - block, channels.len()) };
            }
        }
    }

    /// Copies channels of a part of the input line that begins at pixel `first`, with zeros for missing pixels.
    ///
    /// # Safety
    /// The line belongs to the input, and the memory holds a part.
    #[inline(always)]
    unsafe fn copy(
        &self,
        [n, z, y]: [usize; 3],
        first: i64,
        channels: &Range<usize>,
        to: *mut [S::Acc; N],
    ) {
        let (conv, step, count) = (self.conv, self.shape.step, self.shape.parts[1]);
        let input = conv.axes[2].input;
        let begin = if first < 0 { (-first - 1) / step + 1 } else { 0 };
        let end = if first < input { (input - 1 - first) / step + 1 } else { 0 };
        let end = (end.max(0) as usize).min(count);
        let begin = (begin as usize).min(end);
        let x = (first + begin as i64 * step).min(input - 1).max(0) as usize;
        let from = line_of(&conv.x, [n, z, y]) as *const S;
        let from = from.wrapping_byte_offset(x as isize * conv.x.strides[3]);
        let from = from.wrapping_add(channels.start);
        let step = step as isize * conv.x.strides[3];
        // SAFETY: pixels of the line; by this function's contract.
        unsafe {
            for i in 0..begin {
                to.add(i).write([S::Acc::default(); N]);
            }
            for i in end..count {
                to.add(i).write([S::Acc::default(); N]);
            }
            for i in begin..end {
                let from = from.wrapping_byte_offset((i - begin) as isize * step);
                // Prefetch the next tile's channels, and pixels that are needed soon.
                prefetch(from.wrapping_add(N).cast());
                prefetch(from.wrapping_byte_offset(SOON * step).cast());
                if channels.len() == N {
                    to.add(i).write(widened(from.cast::<[S; N]>().read_unaligned()));
                } else {
                    let mut pixel = [S::default(); N];
                    core::ptr::copy_nonoverlapping(from, pixel.as_mut_ptr(), channels.len());
                    to.add(i).write(widened(pixel));
                }
            }
        }
    }

    /// Sums `P` pixels, and writes the first `pixels` pixels and `channels` channels. The first pixel is `first` pixels
    /// after the start of each copy.
    ///
    /// # Safety
    /// The copies have these pixels, and the following pixels that the taps read; `to` is the first pixel's address in
    /// the output.
    #[inline(always)]
    unsafe fn block<I: Isa, const P: usize>(
        &self,
        met: &[Met<S::Acc, N>],
        first: usize,
        to: *mut u8,
        pixels: usize,
        channels: usize,
    ) {
        let [pixel, tap] = self.shape.pixel_of;
        let width = self.conv.axes[2].kernel as usize;
        let mut sums = [[S::Acc::default(); N]; P];
        for (line, weights) in met {
            for kw in 0..width {
                // SAFETY: by this function's contract.
                unsafe {
                    let w = *weights.add(kw);
                    let x = line.add(first + kw * tap);
                    for p in 0..P {
                        let x = *x.add(p * pixel);
                        for l in 0..N {
                            sums[p][l] = mul_acc::<S::Acc, I>(sums[p][l], x[l], w[l]);
                        }
                    }
                }
            }
        }
        let pitch = self.conv.y.strides[3];
        for p in 0..P {
            if p < pixels {
                let to = to.wrapping_offset(p as isize * pitch);
                // Prefetch the next tile's channels.
                prefetch(to.wrapping_add(size_of::<[S; N]>()));
                // SAFETY: by this function's contract.
                unsafe { self.store(&sums[p], to, channels) };
            }
        }
    }

    /// Writes the first `channels` sums of a pixel.
    ///
    /// # Safety
    /// The address is of these channels of the output.
    #[inline(always)]
    unsafe fn store(&self, sums: &[S::Acc; N], to: *mut u8, channels: usize) {
        let step = self.conv.y.strides[4];
        // SAFETY: by this function's contract.
        unsafe {
            if step == size_of::<S>() as isize {
                if channels == N && size_of::<S>() == size_of::<S::Acc>() {
                    return to.cast::<[S; N]>().write_unaligned(sums.map(S::narrow));
                }
                let to = core::slice::from_raw_parts_mut(to as *mut S, channels);
                return S::narrow_row(&sums[..channels], to);
            }
            for (i, sum) in sums[..channels].iter().enumerate() {
                (to.wrapping_offset(i as isize * step) as *mut S).write(S::narrow(*sum));
            }
        }
    }
}
