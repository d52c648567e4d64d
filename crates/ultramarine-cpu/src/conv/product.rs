//! The convolution as a product of matrices. The left matrix is packed from the input.

use super::Conv;
use super::lines::Lines;
use super::windows::{MOST_ROWS, Windows};
use crate::matmul::block::TASKS;
use crate::matmul::pack::{Block, Panel};
use crate::matmul::{GRAIN, micro::Tile};
use crate::par::Shared;
use crate::scratch::{Scratch, Slot};
use core::ops::Range;

/// Rows (pixels) of a task.
const ROWS: usize = 168;
/// Columns (filters) of a task, at most; and at least, where there are that many.
const COLS: [usize; 2] = [256, 64];

/// The blocks of a group's product. They depend only on the shape.
struct Cut {
    /// Pixels.
    m: usize,
    /// Length of the sums.
    k: usize,
    /// Length of a block along k.
    kc: usize,
    /// Panels of rows, of nearly equal height.
    panels: usize,
    row_blocks: usize,
    block_cols: usize,
    col_blocks: usize,
    /// Filters with padding.
    padded: usize,
}

impl Cut {
    fn new(conv: &Conv<'_>) -> Cut {
        let ops = conv.ops;
        let (m, n, k) = (conv.pixels(), conv.filters, conv.taps() * conv.channels);
        let panels = m.div_ceil(ops.mr.min(MOST_ROWS));
        let kc = ops.even_k(k, ops.kc);
        let work = m.saturating_mul(n).saturating_mul(k);
        let unit = 2 * ops.lanes;
        let mut rows = m.div_ceil(ROWS);
        let mut cols = n.div_ceil(COLS[0]);
        while rows * cols * conv.groups < TASKS && work / (rows * cols) > GRAIN {
            if n / (2 * cols) >= COLS[1] {
                cols *= 2;
            } else if 2 * rows <= panels {
                rows *= 2;
            } else {
                break;
            }
        }
        let block_cols = n.div_ceil(cols).next_multiple_of(unit);
        let padded = n.next_multiple_of(ops.lanes);
        let (row_blocks, col_blocks) = (rows.min(panels), n.div_ceil(block_cols));
        Cut { m, k, kc, panels, row_blocks, block_cols, col_blocks, padded }
    }

    fn panels_of(&self, block: usize) -> Range<usize> {
        let first = |b: usize| b * self.panels / self.row_blocks;
        first(block)..first(block + 1)
    }

    fn cols_of(&self, filters: usize, block: usize) -> Range<usize> {
        block * self.block_cols..filters.min((block + 1) * self.block_cols)
    }
}

/// Runs a convolution without input dilation.
///
/// # Safety
/// The tensors are valid. The input's channels are adjacent, and a filter's weights are row-major.
pub(super) unsafe fn run(conv: &Conv<'_>) {
    let adjacent = conv.y.strides[4] == conv.ops.storage as isize || conv.filters == 1;
    let lines = if adjacent { Lines::of(conv) } else { None };
    let mut cut = Cut::new(conv);
    if lines.is_some() {
        // Pack the weights in one piece.
        (cut.kc, cut.col_blocks) = (cut.k, 1);
        cut.block_cols = conv.filters.next_multiple_of(2 * conv.ops.lanes);
    }
    let windows = Windows::new(conv);
    let k_blocks = cut.k.div_ceil(cut.kc);
    let group_bytes = cut.padded * cut.k * conv.ops.acc;
    let memory = Scratch::new(Slot::Call, conv.groups * group_bytes);
    let packed = Shared(memory.get());
    let pack = |i: usize| {
        let (group, i) = (i / (k_blocks * cut.col_blocks), i % (k_blocks * cut.col_blocks));
        let (p, cols) =
            (i / cut.col_blocks * cut.kc, cut.cols_of(conv.filters, i % cut.col_blocks));
        let (k, size) = (cut.kc.min(cut.k - p), conv.dtype.size() as isize);
        let filter = (group * conv.filters + cols.start) as isize;
        let panel = Panel {
            src: conv.w.data.wrapping_offset(filter * conv.w.strides[0] + p as isize * size),
            across: conv.w.strides[0],
            along: size,
            width: cols.len(),
            ld: 2 * conv.ops.lanes,
            unit: conv.ops.lanes,
            k,
            dst: packed.get().wrapping_add(
                group * group_bytes + (p * cut.padded + cols.start * k) * conv.ops.acc,
            ),
        };
        // SAFETY: these filters' weights; each task packs its own columns and stretch of k.
        unsafe { (conv.ops.pack_b)(&panel) }
    };
    let packs = conv.groups * k_blocks * cut.col_blocks;
    if group_bytes * conv.groups < 1 << 17 {
        (0..packs).for_each(pack);
    } else {
        conv.cx.par.run(packs, pack);
    }
    let work = cut.m.saturating_mul(cut.k).saturating_mul(conv.filters * conv.groups);
    if let Some(lines) = lines {
        let task = |i: usize| {
            let (group, i) = (i / lines.blocks(), i % lines.blocks());
            let b = packed.get().wrapping_add(group * group_bytes);
            // SAFETY: the weights were packed above; blocks of the output are disjoint.
            unsafe { lines.outputs(group, &lines.block(i), b) }
        };
        return conv.run(work, conv.groups * lines.blocks(), task);
    }
    let tasks = cut.row_blocks * cut.col_blocks;
    let task = |i: usize| {
        let (group, i) = (i / tasks, i % tasks);
        let panels = cut.panels_of(i / cut.col_blocks);
        let cols = cut.cols_of(conv.filters, i % cut.col_blocks);
        let b = packed.get().wrapping_add(group * group_bytes);
        // SAFETY: the weights were packed above; blocks of the output are disjoint.
        unsafe { block(conv, &windows, &cut, group, panels, cols, b) }
    };
    conv.run(work, conv.groups * tasks, task);
}

/// Computes a block of a group's outputs.
///
/// # Safety
/// As [`run`]; `b` is the group's packed weights.
unsafe fn block(
    conv: &Conv<'_>,
    windows: &Windows<'_>,
    cut: &Cut,
    group: usize,
    panels: Range<usize>,
    cols: Range<usize>,
    b: *const u8,
) {
    let (ops, acc) = (conv.ops, conv.ops.acc);
    let row_of = |panel: usize| ops.row_of(panel, cut.panels, cut.m);
    let first = row_of(panels.start);
    let rows = row_of(panels.end) - first;
    let filter = (group * conv.filters + cols.start) as isize;
    let y = conv.y.data.wrapping_offset(filter * conv.y.strides[4]);
    // Kernels write directly to the output if its filters are adjacent, and its pixels are at equal
    // distances.
    let plain = ops.direct_c && (conv.y.strides[4] == ops.storage as isize || conv.filters == 1);
    let pitch = conv.output_pitch().filter(|_| plain);
    let width = cols.len().next_multiple_of(ops.lanes);
    let kc = cut.kc.min(cut.k);
    let a_bytes = (MOST_ROWS * kc * acc).next_multiple_of(64);
    let c_bytes = if pitch.is_some() { 0 } else { (rows * width * acc).next_multiple_of(64) };
    let zeros = windows.scratch_bytes() / (MOST_ROWS + 1);
    let scratch = Scratch::new(Slot::Task, a_bytes + c_bytes + windows.scratch_bytes());
    let a = scratch.get();
    let own_c = a.wrapping_add(a_bytes);
    let packing = own_c.wrapping_add(c_bytes);
    // SAFETY: the memory that was just asked for.
    unsafe { packing.write_bytes(0, zeros) };
    let (c, c_row) = match pitch {
        Some(pitch) => (y.wrapping_offset(first as isize * pitch), pitch / acc as isize),
        None => (own_c, width as isize),
    };
    let _tiles = ops.begin();
    for p in (0..cut.k).step_by(kc) {
        let k = kc.min(cut.k - p);
        for panel in panels.clone() {
            let row = row_of(panel);
            let height = row_of(panel + 1) - row;
            let origins = windows.origins(group, row, height);
            // SAFETY: the panel's windows; `a` holds MOST_ROWS x kc numbers.
            unsafe { windows.pack(&origins, [p, p + k], packing, a) };
            let mut j = cols.start;
            while j < cols.end {
                let count = (2 * ops.lanes).min(cols.end - j);
                let vectors = count.div_ceil(ops.lanes);
                let at = (row - first) as isize * c_row + (j - cols.start) as isize;
                let data = b.wrapping_add((p * cut.padded + j * k) * acc);
                let tile = Tile {
                    rows: height,
                    k,
                    a,
                    a_row: 0,
                    a_k: 0,
                    b: data,
                    b_k: (vectors * ops.lanes) as isize,
                    c: c.wrapping_offset(at * acc as isize),
                    c_row,
                    cols: count,
                    accumulate: p > 0,
                    next: data,
                    next_step: 0,
                };
                // SAFETY: the tile lies within the block, its panels are packed; the
                // level was available to `ops`.
                unsafe { ops.multiply(&tile, false) }
                j += count;
            }
        }
    }
    if pitch.is_some() {
        return;
    }
    let [d, h, w] = conv.axes.map(|a| a.output as usize);
    for i in 0..rows {
        let m = first + i;
        let index = [m / (d * h * w), m / (h * w) % d, m / w % h, m % w];
        let at: isize = index.iter().zip(conv.y.strides).map(|(i, s)| *i as isize * s).sum();
        let block = Block {
            src: own_c.wrapping_add(i * width * acc),
            ld: width,
            rows: 1,
            cols: cols.len(),
            dst: y.wrapping_offset(at),
            row: 0,
            col: conv.y.strides[4],
        };
        // SAFETY: a pixel's filters and their sums.
        unsafe { (ops.store)(&block) }
    }
}
