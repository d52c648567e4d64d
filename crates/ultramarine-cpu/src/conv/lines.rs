//! Products that read lines of the input in place, for kernels of several taps.
//!
//! A task copies the lines that its outputs read, with zeros where windows reach outside. In the copy, the windows of
//! neighbouring pixels are overlapping rows. They form a matrix whose rows are a stride apart, which micro-kernels can
//! read directly. Only the weights are packed.

use super::Conv;
use crate::matmul::block::TASKS;
use crate::matmul::micro::Tile;
use crate::matmul::pack::Panel;
use crate::scratch::{Scratch, Slot};
use core::ops::Range;

/// Approximate number of bytes of a task's lines.
const BYTES: usize = 256 << 10;
/// Bytes of a line, at most.
const LINE: usize = 64 << 10;
/// Smallest number of pixels of an output line. They are the rows of a product, or the length of its sums.
const PIXELS: usize = 12;

/// The division of a convolution into lines. It depends only on the shape and the level.
#[derive(Clone, Copy)]
pub(super) struct Lines<'a> {
    conv: &'a Conv<'a>,
    /// Output lines of a block. They are neighbours along the second axis.
    lines: usize,
    /// Pixels of a line in the copy, which is also the distance between lines: the zeros at the end of a line precede
    /// the next line.
    wide: usize,
    pitch: usize,
    /// Lines read by all taps with the same position along the first axis.
    span: usize,
    /// Taps along the last axis that are adjacent in the copy.
    joined: usize,
}

/// Output lines: image, position along the first and second axis, and their number.
pub(super) struct Block {
    at: [usize; 3],
    lines: usize,
}

/// The copy of a group's lines for a block, followed by additional memory.
struct Copy {
    memory: Scratch,
    behind: *mut u8,
}

impl<'a> Lines<'a> {
    /// `None` if this method does not suit the convolution.
    pub fn of(conv: &'a Conv<'a>) -> Option<Lines<'a>> {
        let [d, h, w] = &conv.axes;
        let dense = conv.axes.iter().all(|a| a.spread == 1);
        if !conv.ops.in_place || !dense || conv.taps() == 1 || (w.output as usize) < PIXELS {
            return None;
        }
        let wide = ((w.output - 1) * w.stride + (w.kernel - 1) * w.dilation + 1) as usize;
        let line = wide.checked_mul(conv.channels * conv.ops.acc)?;
        if line > LINE {
            return None;
        }
        let reach = ((h.kernel - 1) * h.dilation + 1) as usize;
        let fit = (BYTES / line / d.kernel as usize).saturating_sub(reach) / h.stride as usize;
        let all = conv.batch * d.output as usize * h.output as usize * conv.groups;
        let lines = (1 + fit).min(all.div_ceil(TASKS)).min(h.output as usize);
        let span = (lines - 1) * h.stride as usize + reach;
        if d.kernel as usize * span * line > 4 * BYTES {
            return None;
        }
        let joined = if w.dilation == 1 { w.kernel as usize } else { 1 };
        let mut new = Lines { conv, lines, wide, pitch: wide, span, joined };
        let inside = new.inside();
        if !inside.is_empty() {
            new.pitch -= inside.start.min(wide - inside.end);
        }
        Some(new)
    }

    /// The pixels of a line that are in the input.
    fn inside(&self) -> Range<usize> {
        let w = &self.conv.axes[2];
        let from = w.low.clamp(0, self.wide as i64);
        from as usize..(w.input + w.low).clamp(from, self.wide as i64) as usize
    }

    /// Blocks along the second axis.
    fn across(&self) -> usize {
        (self.conv.axes[1].output as usize).div_ceil(self.lines)
    }

    pub fn blocks(&self) -> usize {
        self.conv.batch * self.conv.axes[0].output as usize * self.across()
    }

    pub fn block(&self, i: usize) -> Block {
        let [d, h, _] = self.conv.axes.map(|a| a.output as usize);
        let (i, first) = (i / self.across(), i % self.across() * self.lines);
        Block { at: [i / d, i % d, first], lines: self.lines.min(h - first) }
    }

    /// Copies the lines of a group's channels that a block reads, into memory with `behind` additional bytes.
    ///
    /// # Safety
    /// The input is valid, and its channels are adjacent.
    unsafe fn copy(&self, group: usize, block: &Block, behind: usize) -> Copy {
        let conv = self.conv;
        let [d, h, w] = &conv.axes;
        let pixel = conv.channels * conv.ops.acc;
        let bytes = (d.kernel as usize * self.span * self.pitch + self.wide) * pixel;
        let bytes = bytes.next_multiple_of(64);
        let memory = Scratch::new(Slot::Task, bytes + behind);
        let Range { start: left, end: right } = self.inside();
        let mut dst = memory.get();
        for tap in 0..d.kernel {
            let z = block.at[1] as i64 * d.stride - d.low + tap * d.dilation;
            for i in 0..self.span as i64 {
                let y = block.at[2] as i64 * h.stride - h.low + i;
                let inside = (0..d.input).contains(&z) && (0..h.input).contains(&y);
                // SAFETY: a line of the copy; the pixels between `left` and `right` are in the input.
                unsafe {
                    if !inside || left == right {
                        dst.write_bytes(0, self.wide * pixel);
                    } else {
                        let x = (left as i64 - w.low) as usize;
                        let src = conv.x.at(&[block.at[0], z as usize, y as usize, x]);
                        let src = src.wrapping_add(group * pixel);
                        dst.write_bytes(0, left * pixel);
                        self.pixels(src, dst.add(left * pixel), right - left);
                        dst.add(right * pixel).write_bytes(0, (self.wide - right) * pixel);
                    }
                }
                dst = dst.wrapping_add(self.pitch * pixel);
            }
        }
        let behind = memory.get().wrapping_add(bytes);
        Copy { memory, behind }
    }

    /// Copies neighbouring pixels.
    ///
    /// # Safety
    /// They are there.
    unsafe fn pixels(&self, src: *const u8, dst: *mut u8, n: usize) {
        let (pixel, step) = (self.conv.channels * self.conv.ops.acc, self.conv.x.strides[3]);
        if step == pixel as isize {
            // SAFETY: by this function's contract.
            return unsafe { dst.copy_from_nonoverlapping(src, n * pixel) };
        }
        for i in 0..n {
            let src = src.wrapping_offset(i as isize * step);
            // SAFETY: by this function's contract.
            unsafe { dst.add(i * pixel).copy_from_nonoverlapping(src, pixel) };
        }
    }

    /// Address of the element that the first pixel of line `line` of a block reads with a tap.
    fn meets(&self, copy: &Copy, line: usize, [d, h, w]: [usize; 3]) -> *mut u8 {
        let [_, y, x] = &self.conv.axes;
        let row = d * self.span + line * y.stride as usize + h * y.dilation as usize;
        let pixel = row * self.pitch + w * x.dilation as usize;
        copy.memory.get().wrapping_add(pixel * self.conv.channels * self.conv.ops.acc)
    }

    /// Runs of adjacent taps: the position of the first tap, its number, and the number of channels of the run.
    fn runs(&self) -> impl Iterator<Item = ([usize; 3], usize, usize)> + '_ {
        let [d, h, w] = self.conv.axes.map(|a| a.kernel as usize);
        let firsts = (0..d * h * w).step_by(self.joined);
        let channels = self.joined * self.conv.channels;
        firsts.map(move |tap| ([tap / (h * w), tap / w % h, tap % w], tap, channels))
    }

    /// Distance in numbers between the windows of neighbouring pixels.
    fn step(&self) -> isize {
        self.conv.axes[2].stride as isize * self.conv.channels as isize
    }

    /// Parts of nearly equal height that do not exceed the kernels' height.
    fn tiles(&self, rows: usize) -> impl Iterator<Item = core::ops::Range<usize>> + use<> {
        let n = rows.div_ceil(self.conv.ops.mr);
        (0..n).map(move |i| i * rows / n..(i + 1) * rows / n)
    }

    /// Computes a block of the outputs of a group, for all filters, from its packed weights.
    ///
    /// # Safety
    /// The tensors are valid, and the channels of the input and the filters of the output are adjacent. Concurrent
    /// tasks have different blocks or groups.
    pub unsafe fn outputs(&self, group: usize, block: &Block, weights: *const u8) {
        let (conv, ops) = (self.conv, self.conv.ops);
        let (acc, s) = (ops.acc as isize, conv.y.strides);
        // SAFETY: passed on.
        let copy = unsafe { self.copy(group, block, 0) };
        let k = conv.taps() * conv.channels;
        let index = [block.at[0], block.at[1], block.at[2], 0, group * conv.filters];
        let y = conv.y.at(&index);
        for (place, tap, channels) in self.runs() {
            for col in (0..conv.filters).step_by(2 * ops.lanes) {
                let cols = (conv.filters - col).min(2 * ops.lanes);
                let vectors = cols.div_ceil(ops.lanes);
                let row = tap * conv.channels * vectors * ops.lanes;
                let b = weights.wrapping_add((col * k + row) * ops.acc);
                for line in 0..block.lines {
                    let a = self.meets(&copy, line, place);
                    let y = y.wrapping_offset(line as isize * s[2] + col as isize * acc);
                    for rows in self.tiles(conv.axes[2].output as usize) {
                        let first = rows.start as isize;
                        let tile = Tile {
                            rows: rows.len(),
                            k: channels,
                            a: a.wrapping_offset(first * self.step() * acc),
                            a_row: self.step(),
                            a_k: 1,
                            b,
                            b_k: (vectors * ops.lanes) as isize,
                            c: y.wrapping_offset(first * s[3]),
                            c_row: s[3] / acc,
                            cols,
                            accumulate: tap > 0,
                            next: b,
                            next_step: 0,
                        };
                        // SAFETY: windows of pixels of the copy, packed weights, and outputs of this block; the level
                        // was available to `ops`.
                        unsafe { ops.multiply(&tile, true) }
                    }
                }
            }
        }
    }

    /// Output lines whose windows have a tap inside the input, according to the tap's first two positions.
    fn meeting(&self, block: &Block, [tap_d, tap_h, _]: [usize; 3]) -> Range<usize> {
        let [d, h, _] = &self.conv.axes;
        let z = block.at[1] as i64 * d.stride - d.low + tap_d as i64 * d.dilation;
        if !(0..d.input).contains(&z) {
            return 0..0;
        }
        let y = block.at[2] as i64 * h.stride - h.low + tap_h as i64 * h.dilation;
        let before = |end: i64| {
            (end - y).div_euclid(h.stride) + i64::from((end - y).rem_euclid(h.stride) > 0)
        };
        let [from, to] = [0, h.input].map(|end| before(end).clamp(0, block.lines as i64) as usize);
        from..to
    }

    /// Packs the cotangents of a block: for each tile of filters its lines, with zeros between them, so that one sum
    /// can cover neighbouring lines.
    ///
    /// # Safety
    /// As [`Lines::outputs`]; `to` has room for all.
    unsafe fn pack_cotangents(&self, group: usize, block: &Block, to: *mut u8) {
        let (conv, ops) = (self.conv, self.conv.ops);
        let (pixels, s) = (conv.axes[2].output as usize, conv.y.strides);
        let index = [block.at[0], block.at[1], block.at[2], 0, group * conv.filters];
        let cotangent = conv.y.at(&index);
        for filters in self.tiles(conv.filters) {
            let (n, row) = (filters.len(), filters.len() * ops.acc);
            for line in 0..block.lines {
                let dst = to.wrapping_add(
                    (filters.start * block.lines + n * line) * self.steps() * ops.acc,
                );
                let at = line as isize * s[2] + (filters.start * ops.acc) as isize;
                let panel = Panel {
                    src: cotangent.wrapping_offset(at),
                    across: ops.acc as isize,
                    along: s[3],
                    width: n,
                    ld: n,
                    unit: 1,
                    k: pixels,
                    dst,
                };
                // SAFETY: cotangents of a line, and memory of the tile's.
                unsafe {
                    (ops.pack_a)(&panel);
                    dst.add(pixels * row).write_bytes(0, (self.steps() - pixels) * row);
                }
            }
        }
    }

    /// True if the windows of neighbouring lines are a whole number of pixels apart, so that one sum can cover several
    /// lines.
    fn joins(&self) -> bool {
        self.conv.axes[1].stride == 1 && self.conv.axes[2].stride == 1
    }

    /// Packed pixels of a line of cotangents.
    fn steps(&self) -> usize {
        if self.joins() { self.pitch } else { self.conv.axes[2].output as usize }
    }

    /// Bytes of the packed cotangents of a block.
    fn packed(&self, block: &Block) -> usize {
        self.conv.filters * block.lines * self.steps() * self.conv.ops.acc
    }

    /// Adds a block's contribution to the gradients of a group's weights. The sums have a row of taps and channels for
    /// each filter.
    ///
    /// # Safety
    /// As [`Lines::outputs`]; the sums are the caller's own.
    pub unsafe fn weights(&self, group: usize, block: &Block, sums: *mut u8) {
        let (conv, ops) = (self.conv, self.conv.ops);
        let (pixels, steps) = (conv.axes[2].output as usize, self.steps());
        // SAFETY: passed on.
        let copy = unsafe {
            let copy = self.copy(group, block, self.packed(block));
            self.pack_cotangents(group, block, copy.behind);
            copy
        };
        let (row, joins) = (conv.taps() * conv.channels, self.joins());
        for (place, tap, channels) in self.runs() {
            let meeting = self.meeting(block, place);
            for col in (0..channels).step_by(2 * ops.lanes) {
                let cols = (channels - col).min(2 * ops.lanes);
                let lines = if joins { meeting.len().max(1) } else { 1 };
                for line in meeting.clone().step_by(lines) {
                    for filters in self.tiles(conv.filters) {
                        let a = (filters.start * block.lines + filters.len() * line) * steps;
                        let c = filters.start * row + tap * conv.channels + col;
                        let tile = Tile {
                            rows: filters.len(),
                            k: (lines - 1) * steps + pixels,
                            a: copy.behind.wrapping_add(a * ops.acc),
                            a_row: 0,
                            a_k: 0,
                            b: self.meets(&copy, line, place).wrapping_add(col * ops.acc),
                            b_k: self.step(),
                            c: sums.wrapping_add(c * ops.acc),
                            c_row: row as isize,
                            cols,
                            accumulate: true,
                            next: sums,
                            next_step: 0,
                        };
                        // SAFETY: packed cotangents of these lines, the pixels that meet the taps, and sums of this task;
                        // the level was available to `ops`.
                        unsafe { ops.multiply(&tile, false) }
                    }
                }
            }
        }
    }

    /// True if the rows of sums of the weights are whole vectors; kernels then do not read beyond the end of the copy.
    pub fn has_whole_vectors(&self) -> bool {
        (self.joined * self.conv.channels).is_multiple_of(self.conv.ops.lanes)
    }
}
