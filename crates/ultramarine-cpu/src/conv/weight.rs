//! The gradient with respect to the weight: for each tap a product of matrices, whose sums run over the output's
//! pixels.
//!
//! Rows are filters and columns channels. Both operands are packed from their tensors, a few hundred pixels at a time:
//! the cotangent once for all taps, the input for each tap. Pixels whose tap is outside the input become zeros.

use super::lines::Lines;
use super::{Axis, Conv, Tensor};
use crate::matmul::block::TASKS;
use crate::matmul::micro::Tile;
use crate::matmul::pack::{Block, PackFn, Panel};
use crate::par::Shared;
use crate::scratch::{Scratch, Slot};
use core::ops::Range;

/// Pixels that are packed at once.
const PIXELS: usize = 256;
/// Largest number of filters and channels of a task.
const FILTERS: usize = 168;
const CHANNELS: usize = 512;
/// Largest number of sums of a task, unless a single tap has more.
const SUMS: usize = 96 << 10;
/// Number of shares of the pixels if lines are read in place. Their sums are added at the end; more shares would cost
/// more than they balance.
const LINE_SHARES: usize = TASKS / 2;
/// Largest number of sums to which each line is added. More would be evicted from the cache between lines.
const LINE_SUMS: usize = 128 << 10;
/// Pixels of a share, at least.
const SHARE: usize = 1024;

/// The tasks. They depend only on the shape.
struct Cut {
    filters: usize,
    channels: usize,
    taps: usize,
    /// Numbers of blocks of filters, channels and taps, and of shares of the pixels.
    counts: [usize; 4],
}

fn part(i: usize, of: usize, n: usize) -> Range<usize> {
    i * n / of..(i + 1) * n / of
}

impl Cut {
    fn new(conv: &Conv<'_>) -> Cut {
        let (filters, channels, taps) = (conv.filters, conv.channels, conv.taps());
        let rows = filters.div_ceil(FILTERS);
        let cols = channels.div_ceil(CHANNELS);
        let sums = filters.div_ceil(rows) * channels.div_ceil(cols);
        let tap_blocks = taps.div_ceil((SUMS / sums).max(1));
        let tasks = conv.groups * rows * cols * tap_blocks;
        let shares = TASKS.div_ceil(tasks).min(conv.pixels() / SHARE).max(1);
        Cut { filters, channels, taps, counts: [rows, cols, tap_blocks, shares] }
    }

    fn tasks(&self) -> usize {
        self.counts.iter().product()
    }

    /// Filters, channels, taps and pixels of a task, and its share.
    fn task(&self, mut i: usize, pixels: usize) -> ([Range<usize>; 4], usize) {
        let mut at = [0; 4];
        for (at, n) in at.iter_mut().zip(self.counts) {
            (*at, i) = (i % n, i / n);
        }
        let sizes = [self.filters, self.channels, self.taps, pixels];
        ([0, 1, 2, 3].map(|d| part(at[d], self.counts[d], sizes[d])), at[3])
    }
}

/// Pixels of one line of the output.
struct Run {
    /// Image, and positions along the first two axes.
    line: [usize; 3],
    first: usize,
    len: usize,
}

/// The lines of a range of pixels.
fn runs(conv: &Conv<'_>, pixels: Range<usize>, into: &mut Vec<Run>) {
    let [d, h, w] = conv.axes.map(|a| a.output as usize);
    into.clear();
    let mut p = pixels.start;
    while p < pixels.end {
        let first = p % w;
        let len = (w - first).min(pixels.end - p);
        into.push(Run { line: [p / (d * h * w), p / (h * w) % d, p / w % h], first, len });
        p += len;
    }
}

/// Computes the gradient with respect to the weight. `conv` has the cotangent as its output.
///
/// # Safety
/// The tensors are valid, the channels of the input and of the cotangent are adjacent, and the weight may be written.
pub(super) unsafe fn run(conv: &Conv<'_>) {
    // SAFETY: passed on.
    let joined = unsafe { joined(conv) };
    let conv = joined.as_ref().map_or(conv, |(joined, _)| joined);
    let mut cut = Cut::new(conv);
    let fits = cut.filters * cut.taps * cut.channels <= LINE_SUMS;
    let lines = Lines::of(conv).filter(|lines| fits && lines.has_whole_vectors());
    if let Some(lines) = &lines {
        cut.counts = [1, 1, 1, LINE_SHARES.div_ceil(conv.groups).min(lines.blocks())];
    }
    let (ops, groups, pixels) = (conv.ops, conv.groups, conv.pixels());
    let (row, shares) = (cut.taps * cut.channels, cut.counts[3]);
    let sums = groups * cut.filters * row;
    let memory = Scratch::new(Slot::Call, shares * sums * ops.acc);
    let buffer = Shared(memory.get());
    let task = |i: usize| {
        let (group, i) = (i / cut.tasks(), i % cut.tasks());
        let (ranges, share) = cut.task(i, pixels);
        let at = (share * sums + group * cut.filters * row) * ops.acc;
        if let Some(lines) = &lines {
            let sums = buffer.get().wrapping_add(at);
            // SAFETY: the tensors are valid; each task has the sums of a group and a share.
            unsafe {
                sums.write_bytes(0, cut.filters * row * ops.acc);
                for i in part(share, shares, lines.blocks()) {
                    lines.weights(group, &lines.block(i), sums);
                }
            }
            return;
        }
        // SAFETY: the tensors are valid; each task has its own part of a share's sums.
        unsafe { block(conv, &cut, group, ranges, buffer.get().wrapping_add(at)) }
    };
    let work = pixels.saturating_mul(sums);
    conv.run(work, groups * cut.tasks(), task);

    // SAFETY: all sums were written above; each call has its own filter.
    let finish = |o: usize| unsafe {
        let own = buffer.get().wrapping_add(o * row * ops.acc);
        for share in 1..shares {
            let other = own.wrapping_add(share * sums * ops.acc);
            match ops.acc {
                4 => add::<f32>(own, other, row),
                _ => add::<f64>(own, other, row),
            }
        }
        store(conv, &cut, o, own)
    };
    conv.run(sums * shares, groups * cut.filters, finish);
}

/// If there are few channels, such as the three of an image, joins them with those of the next taps along the last
/// axis, so that together they fill vectors. The result is the gradient of a kernel with one tap along this axis, over
/// a copy of the input with zeros around its lines.
///
/// # Safety
/// The input is valid, and its channels are adjacent.
unsafe fn joined<'a>(conv: &Conv<'a>) -> Option<(Conv<'a>, Scratch)> {
    let (channels, size) = (conv.channels, conv.dtype.size());
    let [d, h, w] = conv.axes;
    let adjacent = conv.w.strides[3] == channels as isize * conv.w.strides[4];
    let plain = conv.axes.iter().all(|a| a.spread == 1) && w.dilation == 1 && conv.groups == 1;
    if 2 * channels > conv.ops.lanes || w.kernel == 1 || !adjacent || !plain {
        return None;
    }
    let last = (w.output - 1) * w.stride;
    let wide = (last + w.kernel) as usize;
    let lines = conv.batch * (d.input * h.input) as usize;
    let row = wide * channels * size;
    let memory = Scratch::new(Slot::Operands, lines * row);
    let to = Shared(memory.get());
    // Pixels of a line of the copy that are the input's.
    let from = w.low.clamp(0, wide as i64);
    let until = (w.input + w.low).clamp(from, wide as i64);
    let copy = |line: usize| {
        let (d, h) = (d.input as usize, h.input as usize);
        let dst = to.get().wrapping_add(line * row);
        let at = [line / (d * h), line / h % d, line % h];
        // SAFETY: a line of the copy; pixels of the input.
        unsafe {
            dst.write_bytes(0, row);
            let (mut dst, mut src) = (
                dst.add(from as usize * channels * size),
                conv.x.at(&at).wrapping_offset((from - w.low) as isize * conv.x.strides[3]),
            );
            for _ in from..until {
                core::ptr::copy_nonoverlapping(src, dst, channels * size);
                dst = dst.wrapping_add(channels * size);
                src = src.wrapping_offset(conv.x.strides[3]);
            }
        }
    };
    conv.run(lines * row, lines, copy);
    let strides = [d.input * h.input, h.input, 1].map(|n| n as isize * row as isize);
    let [n, z, y] = strides;
    let axis = Axis { input: last + 1, kernel: 1, low: 0, ..w };
    let joined = Conv {
        channels: w.kernel as usize * channels,
        axes: [d, h, axis],
        x: Tensor {
            data: memory.get(),
            strides: [n, z, y, (channels * size) as isize, size as isize],
        },
        ..*conv
    };
    Some((joined, memory))
}

/// Adds `n` numbers of the second to the first.
///
/// # Safety
/// Both are valid and disjoint.
unsafe fn add<T: Copy + core::ops::AddAssign>(to: *mut u8, from: *const u8, n: usize) {
    // SAFETY: by this function's contract; the memory of a call is aligned for numbers.
    let (to, from) = unsafe {
        let to = core::slice::from_raw_parts_mut(to as *mut T, n);
        (to, core::slice::from_raw_parts(from as *const T, n))
    };
    to.iter_mut().zip(from).for_each(|(to, from)| *to += *from);
}

/// Writes the sums of a filter to the weight.
///
/// # Safety
/// As [`run`].
unsafe fn store(conv: &Conv<'_>, cut: &Cut, filter: usize, sums: *mut u8) {
    let (ops, s) = (conv.ops, conv.w.strides);
    for tap in 0..cut.taps {
        let [d, h, w] = conv.tap(tap);
        let index = [filter, d, h, w];
        let block = Block {
            src: sums.wrapping_add(tap * cut.channels * ops.acc),
            ld: cut.channels,
            rows: 1,
            cols: cut.channels,
            dst: conv.w.at(&index),
            row: 0,
            col: s[4],
        };
        // SAFETY: the channels of a tap and their sums.
        unsafe { (ops.store)(&block) }
    }
}

/// The functions by which runs of pixels are packed.
#[derive(Clone, Copy)]
struct Packing {
    pack: PackFn,
    /// Bytes of a packed number.
    number: usize,
}

impl Packing {
    /// Copies pixels unchanged, to be packed in groups later.
    const COPIES: Packing = Packing { pack: copy_pixels::<u16>, number: size_of::<u16>() };

    fn of(conv: &Conv<'_>, pack: PackFn) -> Packing {
        match conv.ops.groups {
            Some(_) => Packing::COPIES,
            None => Packing { pack, number: conv.ops.acc },
        }
    }
}

/// Copies elements that are adjacent across a panel.
///
/// # Safety
/// As [`PackFn`]; there is one panel, of elements `T`.
unsafe fn copy_pixels<T: Copy + Default>(p: &Panel) {
    let (width, ld) = p.at(0);
    for q in 0..p.k {
        let from = p.src.wrapping_offset(q as isize * p.along) as *const T;
        let to = (p.dst as *mut T).wrapping_add(q * ld);
        // SAFETY: by this function's contract.
        unsafe {
            core::ptr::copy_nonoverlapping(from, to, width);
            (width..ld).for_each(|i| to.add(i).write(T::default()));
        }
    }
}

/// Computes the sums of some filters, channels and taps over some pixels.
///
/// # Safety
/// As [`run`]; `sums` are the group's, in the share of these pixels.
unsafe fn block(
    conv: &Conv<'_>,
    cut: &Cut,
    group: usize,
    [filters, channels, taps, pixels]: [Range<usize>; 4],
    sums: *mut u8,
) {
    // Use groups of pixels if the processor multiplies groups.
    let (ops, grouped) = (conv.ops.groups.unwrap_or(conv.ops), conv.ops.groups.is_some());
    let (acc, size) = (ops.acc, conv.dtype.size());
    let packing = [ops.pack_a, ops.pack_b].map(|pack| Packing::of(conv, pack));
    let (ld, row) = (2 * ops.lanes, cut.taps * cut.channels);
    let panels = filters.len().div_ceil(ops.mr);
    let rows_of = |i: usize| {
        let row = |i: usize| filters.start + ops.row_of(i, panels, filters.len());
        row(i)..row(i + 1)
    };
    let most = PIXELS.min(pixels.len());
    let a_bytes = (ops.padded_rows(filters.len()) * most * acc).next_multiple_of(64);
    let b_bytes = ld * most * acc;
    let copied_bytes = if grouped { ld.max(ops.mr) * most * size } else { 0 };
    let scratch = Scratch::new(Slot::Task, a_bytes + b_bytes + copied_bytes);
    let (a, b) = (scratch.get(), scratch.get().wrapping_add(a_bytes));
    let copied = b.wrapping_add(b_bytes);
    // Packs copied pixels, `width` elements of each, in groups.
    let copies = |width: usize, k: usize, dst: *mut u8| {
        let along = (width * size) as isize;
        Panel { src: copied, across: size as isize, along, width, ld: width, unit: width, k, dst }
    };
    let mut lines = Vec::new();
    let _tiles = ops.begin();
    for p in pixels.clone().step_by(PIXELS) {
        let stretch = p..pixels.end.min(p + PIXELS);
        let met = stretch.len();
        let k = met.div_ceil(ops.group);
        runs(conv, stretch, &mut lines);
        for i in 0..panels {
            let rows = rows_of(i);
            let first = group * cut.filters + rows.start;
            let dst = a.wrapping_add((rows.start - filters.start) * k * acc);
            let to = if grouped { copied } else { dst };
            // SAFETY: the cotangent's filters at these pixels.
            unsafe {
                pack_cotangent(conv, packing[0], &lines, first * size, rows.len(), to);
                if grouped {
                    let panel = Panel {
                        ld: ops.padded_rows(rows.len()),
                        unit: ops.tile,
                        ..copies(rows.len(), met, dst)
                    };
                    (ops.pack_a)(&panel);
                }
            }
        }
        for tap in taps.clone() {
            for first in channels.clone().step_by(ld) {
                let cols = ld.min(channels.end - first);
                let vectors = cols.div_ceil(ops.lanes);
                let width = [cols, vectors * ops.lanes];
                let offset = (group * cut.channels + first) * size;
                let to = if grouped { copied } else { b };
                // SAFETY: the input's channels at the pixels that the tap meets.
                unsafe {
                    pack_input(conv, packing[1], &lines, tap, offset, width, to);
                    if grouped {
                        (ops.pack_b)(&copies(width[1], met, b));
                    }
                }
                for i in 0..panels {
                    let rows = rows_of(i);
                    let tile = Tile {
                        rows: rows.len(),
                        k,
                        a: a.wrapping_add((rows.start - filters.start) * k * acc),
                        a_row: 0,
                        a_k: 0,
                        b,
                        b_k: (vectors * ops.lanes) as isize,
                        c: sums.wrapping_add((rows.start * row + tap * cut.channels + first) * acc),
                        c_row: row as isize,
                        cols,
                        accumulate: p > pixels.start,
                        next: b,
                        next_step: 0,
                    };
                    // SAFETY: both panels were just packed; the tile lies within the sums of this task; the level was
                    // available to `ops`.
                    unsafe { ops.multiply(&tile, false) }
                }
            }
        }
    }
}

/// Packs `width` filters of the cotangent, from a byte offset on, at some pixels.
///
/// # Safety
/// The cotangent is valid; `dst` has room for as many numbers.
unsafe fn pack_cotangent(
    conv: &Conv<'_>,
    packing: Packing,
    lines: &[Run],
    offset: usize,
    width: usize,
    dst: *mut u8,
) {
    let s = conv.y.strides;
    let mut dst = dst;
    for run in lines {
        let [n, d, h] = run.line.map(|i| i as isize);
        let at = n * s[0] + d * s[1] + h * s[2] + run.first as isize * s[3];
        let panel = Panel {
            src: conv.y.data.wrapping_offset(at).wrapping_add(offset),
            across: conv.dtype.size() as isize,
            along: s[3],
            width,
            ld: width,
            unit: 1,
            k: run.len,
            dst,
        };
        // SAFETY: pixels of one line, of which this many filters follow.
        unsafe { (packing.pack)(&panel) }
        dst = dst.wrapping_add(run.len * width * packing.number);
    }
}

/// Packs `width` channels of the input (padded to the second number), from a byte offset on, for pixels whose windows
/// contain a tap.
///
/// # Safety
/// The input is valid; `dst` has room for as many numbers.
unsafe fn pack_input(
    conv: &Conv<'_>,
    packing: Packing,
    lines: &[Run],
    tap: usize,
    offset: usize,
    [width, padded]: [usize; 2],
    dst: *mut u8,
) {
    let s = conv.x.strides;
    let tap = conv.tap(tap);
    // The element of the input that an output meets along an axis.
    let meets = |axis: usize, output: usize| conv.axes[axis].meets(output, tap[axis]);
    let row = padded * packing.number;
    let mut dst = dst;
    for run in lines {
        let mut pack = |len: usize, from: Option<isize>| {
            let Some(at) = from else {
                // SAFETY: `len` rows of the panel; zero bits are the number zero.
                unsafe { dst.write_bytes(0, len * row) };
                dst = dst.wrapping_add(len * row);
                return;
            };
            let axis = &conv.axes[2];
            let panel = Panel {
                src: conv.x.data.wrapping_offset(at).wrapping_add(offset),
                across: conv.dtype.size() as isize,
                along: axis.stride as isize * s[3],
                width,
                ld: 2 * conv.ops.lanes,
                unit: conv.ops.lanes,
                k: len,
                dst,
            };
            // SAFETY: elements of one line of the input, of which this many channels follow.
            unsafe { (packing.pack)(&panel) }
            dst = dst.wrapping_add(len * row);
        };
        let (d, h) = (meets(0, run.line[1]), meets(1, run.line[2]));
        let (Some(d), Some(h)) = (d, h) else {
            pack(run.len, None);
            continue;
        };
        let line = run.line[0] as isize * s[0] + d as isize * s[1] + h as isize * s[2];
        let end = run.first + run.len;
        let mut o = run.first;
        while o < end {
            let from = meets(2, o);
            // Count the neighbours that are inside, or outside, as this one is.
            let alike =
                |i: &usize| conv.axes[2].spread == 1 && meets(2, *i).is_some() == from.is_some();
            let len = 1 + (o + 1..end).take_while(alike).count();
            pack(len, from.map(|i| line + i as isize * s[3]));
            o += len;
        }
    }
}
