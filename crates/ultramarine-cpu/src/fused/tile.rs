//! Runs a program's steps on one tile.

use super::layout::{Group, Layout, MAX_TENSORS, NOT_LINEAR};
use super::program::{MAX_VALUES, Program};
use super::run::TensorFlags;
use crate::copy::strided::{self, Rect};
use crate::matmul::simd::prefetch;
use core::mem::MaybeUninit;

/// Addresses of all values of a tile.
pub type Values = [MaybeUninit<*mut u8>; MAX_VALUES];

/// One tile: ranges of groups A and B, and every tensor's offset by the outer groups.
pub struct Tile {
    /// Start in group A.
    pub a: usize,
    /// Rows.
    pub rows: usize,
    /// Start in group B.
    pub b: usize,
    /// Columns.
    pub columns: usize,
    /// Bytes from each tensor's first element by the outer groups.
    pub base: [isize; MAX_TENSORS],
}

/// Direction of a transfer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Load,
    Store,
    Stream,
}

/// The state that all tiles of a command share.
pub struct Frame<'a> {
    /// The program.
    pub program: &'a Program,
    /// The axes.
    pub layout: &'a Layout,
    /// First element of every tensor.
    pub data: &'a [*mut u8],
    /// The constants' bits.
    pub scalars: &'a [[u64; 2]],
    /// Elements that a slot has room for; a multiple of 64.
    pub room: usize,
    /// The tensors that are handled specially.
    pub flags: TensorFlags,
    /// Set if the next tile's inputs are prefetched while the steps of this tile run in the L1
    /// cache; otherwise memory would idle.
    pub ahead: bool,
}

/// Memory to be fetched ahead: a cursor and its end.
type Ahead = [(*const u8, *const u8); MAX_AHEAD];
/// Inputs that are fetched ahead at most.
const MAX_AHEAD: usize = 8;
const LINE: usize = 64;

/// Asks for `lines` more cache lines of each range.
#[inline]
fn fetch(ranges: &mut [(*const u8, *const u8)], lines: usize) {
    for (at, end) in ranges {
        for _ in 0..lines {
            if *at >= *end {
                break;
            }
            prefetch(*at);
            *at = at.wrapping_add(LINE);
        }
    }
}

// SAFETY: tasks read inputs and write parts of outputs of their own only.
unsafe impl Sync for Frame<'_> {}

impl Frame<'_> {
    /// Group A.
    #[inline]
    pub fn a(&self) -> &Group {
        &self.layout.groups[self.layout.groups.len() - 2]
    }

    /// Group B.
    #[inline]
    pub fn b(&self) -> &Group {
        &self.layout.groups[self.layout.groups.len() - 1]
    }

    /// The groups before A.
    #[inline]
    pub fn outer(&self) -> &[Group] {
        &self.layout.groups[..self.layout.groups.len() - 2]
    }

    /// Bytes of scratch for the slots.
    pub fn scratch(&self) -> usize {
        self.program.scratch(self.room)
    }

    /// Fills the slots of values that are the same in all tiles, `n` elements of each, and points
    /// every value at its slot.
    ///
    /// # Safety
    /// `scratch` has [`Frame::scratch`] bytes, aligned to 64; `n` is at most `room`;
    /// the inputs are readable.
    pub unsafe fn bind(&self, values: &mut Values, scratch: *mut u8, n: usize) {
        let p = self.program;
        for (i, value) in values.iter_mut().take(p.sizes.len()).enumerate() {
            value.write(p.place(scratch, self.room, i));
        }
        let splat = |value: usize, from: *mut u8| {
            let size = usize::from(p.sizes[value]);
            let n = p.constant_len(value, n);
            let to = p.place(scratch, self.room, value);
            let from = Rect { data: from, rows: 0, columns: 0 };
            // SAFETY: the slot has room for n elements; `from` is one element.
            unsafe { strided::copy(p.level, Rect::dense(to, n, size), from, 1, n, size) };
        };
        for (i, data) in self.data[..p.n_inputs].iter().enumerate() {
            if self.flags.splat >> i & 1 == 1 {
                splat(i, *data);
            }
        }
        for (i, bits) in self.scalars.iter().enumerate() {
            splat(p.n_inputs + i, bits.as_ptr() as *mut u8);
        }
    }

    /// Address of tensor `t`'s first element of the tile.
    #[inline]
    fn address(&self, t: usize, tile: &Tile) -> *mut u8 {
        let offset = tile.base[t]
            + self.layout.offset(self.a(), t, tile.a)
            + self.layout.offset(self.b(), t, tile.b);
        self.data[t].wrapping_offset(offset)
    }

    /// Returns true if the tile of `t` has no gaps.
    #[inline]
    fn dense(&self, t: usize, size: usize, tile: &Tile) -> bool {
        (self.b().linear[t] == size as isize || tile.columns == 1)
            && (tile.rows == 1 || self.a().linear[t] == (tile.columns * size) as isize)
    }

    /// Copies the tile of tensor `t` to (`load`) or from dense memory; a store may
    /// go `past` the caches.
    ///
    /// # Safety
    /// `dense` has room for the tile and is aligned.
    unsafe fn transfer(
        &self,
        t: usize,
        size: usize,
        tile: &Tile,
        dense: *mut u8,
        direction: Direction,
    ) {
        let level = self.program.level;
        let copy = |dense: Rect, tensor: Rect, rows: usize, columns: usize| {
            let (to, from) =
                if direction == Direction::Load { (dense, tensor) } else { (tensor, dense) };
            let past = direction == Direction::Stream;
            // SAFETY: parts of the tile; the tensor is valid for its strides.
            unsafe { strided::copy_or_stream(level, to, from, rows, columns, size, past) };
        };
        let (a, b) = (self.a().linear[t], self.b().linear[t]);
        if b != NOT_LINEAR && (a != NOT_LINEAR || tile.rows == 1) {
            let a = if a == NOT_LINEAR { 0 } else { a };
            let tensor = Rect { data: self.address(t, tile), rows: a, columns: b };
            return copy(Rect::dense(dense, tile.columns, size), tensor, tile.rows, tile.columns);
        }
        for r in 0..tile.rows {
            let offset = tile.base[t] + self.layout.offset(self.a(), t, tile.a + r);
            let row = self.data[t].wrapping_offset(offset);
            let dense = dense.wrapping_add(r * tile.columns * size);
            self.runs(t, tile.b, tile.columns, |at, place, rows, columns, strides| {
                let dense = Rect::dense(dense.wrapping_add((at - tile.b) * size), columns, size);
                let data = row.wrapping_offset(place);
                copy(dense, Rect { data, rows: strides.0, columns: strides.1 }, rows, columns);
            });
        }
    }

    /// Cuts the range `start..start + n` of group B into rectangles for tensor `t`:
    /// `visit(index, offset, rows, columns, (row stride, column stride))`.
    #[inline]
    fn runs(
        &self,
        t: usize,
        start: usize,
        n: usize,
        mut visit: impl FnMut(usize, isize, usize, usize, (isize, isize)),
    ) {
        let b = self.b();
        if b.linear[t] != NOT_LINEAR {
            return visit(start, self.layout.offset(b, t, start), 1, n, (0, b.linear[t]));
        }
        let (height, width, down, along) = self.layout.plane(b, t);
        let (mut at, end) = (start, start + n);
        while at < end {
            let (row, column) = (at / width % height, at % width);
            let (rows, columns) = if column != 0 || end - at < width {
                (1, (width - column).min(end - at))
            } else {
                ((height - row).min((end - at) / width), width)
            };
            visit(at, self.layout.offset(b, t, at), rows, columns, (down, along));
            at += rows * columns;
        }
    }

    /// Copies a tile of a program that only copies, from the input's memory to the output's;
    /// returns false if the general path is needed.
    ///
    /// # Safety
    /// As [`Frame::run`].
    unsafe fn copy(&self, from: usize, to: usize, size: usize, tile: &Tile) -> bool {
        let linear = |t: usize| {
            self.b().linear[t] != NOT_LINEAR && (self.a().linear[t] != NOT_LINEAR || tile.rows == 1)
        };
        if (self.flags.copied | self.flags.splat) >> from & 1 == 1 || !linear(to) {
            return false;
        }
        if linear(from) {
            let rect = |t: usize| Rect {
                data: self.address(t, tile),
                rows: if tile.rows == 1 { 0 } else { self.a().linear[t] },
                columns: self.b().linear[t],
            };
            let (level, past) = (self.program.level, self.flags.streamed & 1 == 1);
            // SAFETY: both tensors are valid for the tile.
            unsafe {
                strided::copy_or_stream(
                    level,
                    rect(to),
                    rect(from),
                    tile.rows,
                    tile.columns,
                    size,
                    past,
                )
            };
            return true;
        }
        if self.flags.streamed & 1 == 1 || !self.dense(to, size, tile) {
            return false;
        }
        // SAFETY: the output's tile is dense.
        unsafe { self.transfer(from, size, tile, self.address(to, tile), Direction::Load) };
        true
    }

    /// Runs the steps on a tile and stores the outputs. Returns the address of
    /// the reduced value's tile, if there is one, dense.
    ///
    /// # Safety
    /// `values` was bound with this frame to `scratch`; the tile fits `room`; no
    /// other thread writes what the tile covers.
    pub unsafe fn run(&self, values: &mut Values, scratch: *mut u8, tile: &Tile) -> *const u8 {
        let p = self.program;
        let n = tile.rows * tile.columns;
        if let ([], [output], None) = (&p.steps[..], &p.outputs[..], &p.epilogue) {
            let (from, to) = (usize::from(output.value), usize::from(output.tensor));
            // SAFETY: passed on from the caller.
            if from < p.n_inputs && unsafe { self.copy(from, to, output.size.into(), tile) } {
                return core::ptr::null();
            }
        }
        let slot = |value: usize| p.place(scratch, self.room, value);
        for (t, value) in values.iter_mut().enumerate().take(p.n_inputs) {
            if self.flags.splat >> t & 1 == 1 {
                continue;
            }
            let size = usize::from(p.sizes[t]);
            let place = if self.flags.copied >> t & 1 == 0 && self.dense(t, size, tile) {
                self.address(t, tile)
            } else {
                // SAFETY: the slot has room for the tile.
                unsafe { self.transfer(t, size, tile, slot(t), Direction::Load) };
                slot(t)
            };
            value.write(place);
        }
        // Outputs that their step writes in place.
        let mut stored = 0u32;
        // The one of these outputs that bypasses the caches (the last one: a root).
        let mut streaming = None;
        for (i, output) in p.outputs.iter().enumerate() {
            let (t, size) = (usize::from(output.tensor), usize::from(output.size));
            if !output.direct {
                continue;
            }
            let waits = self.flags.staged >> i & 1 == 1
                || (self.flags.streamed >> i & 1 == 1 && !output.streams);
            let place = if !waits && self.dense(t, size, tile) {
                stored |= 1 << i;
                if self.flags.streamed >> i & 1 == 1 {
                    streaming = Some(output.value);
                }
                self.address(t, tile)
            } else {
                slot(usize::from(output.value))
            };
            values[usize::from(output.value)].write(place);
        }
        // The next tile most likely follows this one in memory.
        let mut ranges: Ahead = [(core::ptr::null(), core::ptr::null()); MAX_AHEAD];
        let (mut count, mut lines) = (0, 0);
        if self.ahead {
            for t in
                (0..p.n_inputs).filter(|t| (self.flags.splat | self.flags.copied) >> t & 1 == 0)
            {
                let bytes = n * usize::from(p.sizes[t]);
                if count < MAX_AHEAD && self.dense(t, usize::from(p.sizes[t]), tile) {
                    let next = self.address(t, tile).wrapping_add(bytes);
                    ranges[count] = (next, next.wrapping_add(bytes));
                    count += 1;
                    lines = lines.max(bytes.div_ceil(LINE * p.steps.len()));
                }
            }
        }
        for step in &p.steps {
            fetch(&mut ranges[..count], lines);
            // SAFETY: operands were bound or made by earlier steps; the result's
            // place has room and overlaps no live value (it may equal an operand
            // when an input is donated).
            unsafe {
                let operands = step.operands.map(|v| values[usize::from(v)].assume_init());
                let result = values[usize::from(step.result)].assume_init();
                step.call(result, operands, n, streaming == Some(step.result));
            }
        }
        for (i, output) in p.outputs.iter().enumerate() {
            if stored >> i & 1 == 1 {
                continue;
            }
            let (t, size) = (usize::from(output.tensor), usize::from(output.size));
            // SAFETY: every value has been made by now; the output is writable.
            unsafe {
                let from = values[usize::from(output.value)].assume_init();
                let past = self.flags.streamed >> i & 1 == 1;
                if !self.dense(t, size, tile) {
                    let direction = if past { Direction::Stream } else { Direction::Store };
                    self.transfer(t, size, tile, from, direction);
                } else if past && from != self.address(t, tile) {
                    strided::stream(p.level, self.address(t, tile), from, n * size);
                } else {
                    core::ptr::copy(from, self.address(t, tile), n * size);
                }
            }
        }
        match &p.epilogue {
            // SAFETY: as above.
            Some(epilogue) => unsafe { values[usize::from(epilogue.value)].assume_init() },
            None => core::ptr::null(),
        }
    }

    /// Stores `n` results of a reduction: a range of group A (`along_a`) or B.
    ///
    /// # Safety
    /// `from` holds them, dense; the tile's range is the caller's to write.
    pub unsafe fn store_results(
        &self,
        tile: &Tile,
        along_a: bool,
        from: *mut u8,
        n: usize,
        size: usize,
    ) {
        let t = self.program.n_inputs;
        let level = self.program.level;
        if !along_a {
            let row = Tile { rows: 1, columns: n, ..*tile };
            // SAFETY: passed on from the caller.
            return unsafe { self.transfer(t, size, &row, from, Direction::Store) };
        }
        let data = self.address(t, tile);
        if self.a().linear[t] != NOT_LINEAR {
            let to = Rect { data, rows: 0, columns: self.a().linear[t] };
            // SAFETY: passed on from the caller.
            return unsafe { strided::copy(level, to, Rect::dense(from, n, size), 1, n, size) };
        }
        for i in 0..n {
            let one = Tile { a: tile.a + i, rows: 1, columns: 1, ..*tile };
            // SAFETY: passed on from the caller.
            unsafe { self.transfer(t, size, &one, from.wrapping_add(i * size), Direction::Store) };
        }
    }

    /// The block of the reduced value straight in an input's memory, for a
    /// program that does nothing else; only where B is contiguous.
    #[inline]
    pub fn in_place(&self, value: usize, tile: &Tile) -> (*const u8, isize) {
        (self.address(value, tile), self.a().linear[value])
    }
}
