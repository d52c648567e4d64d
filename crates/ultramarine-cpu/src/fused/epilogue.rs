//! Programs with an epilogue: tiles are computed by the program and folded at once. The order of
//! combination is that of `reduce`, whatever the strides.

use super::layout::{Layout, MAX_AXES, MAX_TENSORS};
use super::program::{Epilogue, MAX_VALUES, Program};
use super::run::{self, IN_PLACE, TensorFlags};
use super::scratch;
use super::tile::{Frame, Tile, Values};
use crate::kernel::{Args, Context};
use crate::reduce::{Block, CHUNK, COLUMN_CHUNK, Fold};
use crate::{copy::strided, par::Shared};
use core::mem::MaybeUninit;

/// Elements of a segment of a reduction that several threads share.
const SEGMENT: usize = 256 << 10;
/// Most pieces.
const SEGMENTS: usize = 64;
/// Elements of a task.
const TASK: usize = 128 << 10;

/// Tiles and segments of a reduction.
struct Cut {
    /// The innermost group is reduced.
    rows_mode: bool,
    /// Extents of a tile in groups A and B.
    rows: usize,
    columns: usize,
    /// Set if the value is read in place.
    direct: bool,
    /// The group that is cut into segments, and their number and length.
    group: usize,
    segments: usize,
    length: usize,
}

/// # Safety
/// As [`crate::kernel::Kernel::run`].
pub unsafe fn run(
    cx: &Context,
    p: &Program,
    epilogue: &Epilogue,
    layout: &mut Layout,
    args: &Args<'_>,
) {
    layout.group_by_kind();
    let flags = TensorFlags::new(p, args, layout);
    let data = run::addresses(args);
    let cut = cut(p, epilogue, layout, &flags);
    let frame = Frame {
        program: p,
        layout,
        data: &data,
        scalars: args.scalars,
        room: if cut.direct { 64 } else { (cut.rows * cut.columns).next_multiple_of(64) },
        flags,
        ahead: false,
    };
    let groups = &layout.groups;
    let total: usize = groups.iter().map(|g| g.len).product();
    let kept: usize = groups.iter().filter(|g| !g.reduced).map(|g| g.len).product();
    let outer_kept: usize = frame.outer().iter().filter(|g| !g.reduced).map(|g| g.len).product();
    // The kept one of A and B, in pieces.
    let (inner_kept, extent) =
        if cut.rows_mode { (frame.a().len, cut.rows) } else { (frame.b().len, cut.columns) };
    let pieces = inner_kept.div_ceil(extent);
    let tiles = outer_kept * pieces;
    let each = (TASK / (extent * (total / kept / cut.segments)).max(1)).clamp(1, tiles);
    let blocks = tiles.div_ceil(each);
    let tasks = if total * (p.steps.len() + 1) <= IN_PLACE { 1 } else { blocks * cut.segments };
    let each = if tasks == 1 { tiles } else { each };
    let wide = epilogue.fold.wide;
    // Wide accumulators of all segments, if there are several.
    let partial_bytes = if cut.segments > 1 { cut.segments * kept * wide } else { 0 };
    let mut partials = vec![0u128; partial_bytes.div_ceil(16)];
    let shared = Shared(partials.as_mut_ptr() as *mut u8);
    let body = |task: usize| {
        let (block, segment) = (task / cut.segments, task % cut.segments);
        let part = SegmentFold { frame: &frame, fold: &epilogue.fold, cut: &cut, segment };
        let tiles = block * each..((block + 1) * each).min(tiles);
        scratch::with(part.scratch(extent), |scratch| {
            let mut values: Values = [const { MaybeUninit::uninit() }; MAX_VALUES];
            // SAFETY: `scratch` has the size; every task has kept tiles or a segment
            // of its own, so no other task writes its results or partials.
            unsafe {
                frame.bind(&mut values, scratch, if cut.direct { 0 } else { frame.room });
                for index in tiles {
                    let (outer, piece) = (index / pieces, index % pieces);
                    let at = piece * extent;
                    let n = extent.min(inner_kept - at);
                    let (tile, wides) = part.fold(&mut values, scratch, outer, at, n);
                    if cut.segments > 1 {
                        let place = (segment * kept + outer * inner_kept + at) * wide;
                        core::ptr::copy_nonoverlapping(wides, shared.get().add(place), n * wide);
                    } else {
                        part.finish(&tile, wides, n);
                    }
                }
            }
        });
        if frame.flags.streamed != 0 {
            strided::fence();
        }
    };
    cx.par.run(tasks, body);
    if cut.segments > 1 {
        let part = SegmentFold { frame: &frame, fold: &epilogue.fold, cut: &cut, segment: 0 };
        // SAFETY: all tasks are done; partials hold segments * kept accumulators.
        unsafe {
            for segment in 1..cut.segments {
                let from = shared.get().add(segment * kept * wide);
                (epilogue.fold.merge)(shared.get(), from, kept);
            }
            for outer in 0..outer_kept {
                let tile = part.kept_tile(outer);
                let from = shared.get().add(outer * inner_kept * wide);
                part.finish(&tile, from, inner_kept);
            }
        }
    }
}

/// Chooses tiles and segments. Segments depend on the shape alone; tiles do not influence the
/// order.
fn cut(p: &Program, epilogue: &Epilogue, layout: &Layout, flags: &TensorFlags) -> Cut {
    let groups = &layout.groups;
    let (a, b) = (&groups[groups.len() - 2], &groups[groups.len() - 1]);
    let rows_mode = b.reduced;
    let value = usize::from(epilogue.value);
    let size = isize::from(p.sizes[value]);
    let direct = p.steps.is_empty()
        && p.outputs.is_empty()
        && value < p.n_inputs
        && flags.splat >> value & 1 == 0
        && (b.linear[value] == size || b.len == 1)
        && (a.linear[value] != super::layout::NOT_LINEAR || a.len == 1);
    let most = run::tile_elements(p).min(CHUNK);
    // Some input is contiguous along A and not along B.
    let crossed = (0..p.n_inputs).any(|t| {
        let along = b.linear[t].unsigned_abs();
        a.linear[t] == isize::from(p.sizes[t]) && along != 0 && along != a.linear[t] as usize
    });
    let (rows, columns) = match (rows_mode, direct) {
        (true, true) => {
            let columns = b.len.min(64 * CHUNK);
            (((64 * CHUNK) / columns).clamp(1, 1024).min(a.len), columns)
        }
        (true, false) => {
            let columns = b.len.min(CHUNK);
            // Several rows where some input is contiguous across them.
            let fit = if crossed { 64 } else { 1 };
            ((most / columns).max(fit).min(a.len), columns)
        }
        (false, true) => {
            let columns = b.len.div_ceil(b.len.div_ceil(2048));
            (((64 * CHUNK) / columns).min(a.len), columns)
        }
        (false, false) if crossed => (64.min(a.len), 128.min(b.len)),
        (false, false) => {
            let columns = b.len.div_ceil(b.len.div_ceil(most));
            ((most / columns).clamp(1, a.len), columns)
        }
    };
    // Segments.
    let total: usize = groups.iter().map(|g| g.len).product();
    let kept: usize = groups.iter().filter(|g| !g.reduced).map(|g| g.len).product();
    let units = if rows_mode { kept } else { kept / b.len * b.len.div_ceil(1024) };
    let longest = (0..groups.len()).filter(|g| groups[*g].reduced).max_by_key(|g| groups[*g].len);
    let group = longest.unwrap_or(0);
    let unit = match groups.len() - 1 - group {
        0 => CHUNK,
        1 => COLUMN_CHUNK,
        _ => 1,
    };
    let len = groups[group].len;
    let wanted = if units >= SEGMENTS { 1 } else { total / (SEGMENT * units) };
    let length = len.div_ceil(wanted.clamp(1, SEGMENTS)).next_multiple_of(unit);
    let segments = len.div_ceil(length);
    Cut { rows_mode, rows, columns, direct, group, segments, length }
}

/// The reduction of one segment into kept tiles.
struct SegmentFold<'a> {
    frame: &'a Frame<'a>,
    fold: &'a Fold,
    cut: &'a Cut,
    segment: usize,
}

impl SegmentFold<'_> {
    /// Bytes of scratch: slots, wide and narrow accumulators.
    fn scratch(&self, extent: usize) -> usize {
        let narrow = if self.cut.rows_mode { 0 } else { extent * self.fold.narrow };
        self.frame.scratch() + (extent * self.fold.wide).next_multiple_of(64) + narrow
    }

    /// The range of `group` that the segment has.
    fn range(&self, group: usize) -> core::ops::Range<usize> {
        let len = self.frame.layout.groups[group].len;
        if group != self.cut.group {
            return 0..len;
        }
        let start = self.segment * self.cut.length;
        start..(start + self.cut.length).min(len)
    }

    /// A tile whose base is the `outer`-th place of the kept outer groups.
    fn kept_tile(&self, outer: usize) -> Tile {
        let frame = self.frame;
        let mut tile = Tile { a: 0, rows: 1, b: 0, columns: 1, base: [0; MAX_TENSORS] };
        let mut rest = outer;
        for group in frame.outer().iter().rev().filter(|g| !g.reduced) {
            for (t, base) in tile.base[..frame.data.len()].iter_mut().enumerate() {
                *base += frame.layout.offset(group, t, rest % group.len);
            }
            rest /= group.len;
        }
        tile
    }

    /// Folds `n` results from `at` on of the kept one of A and B. Returns their
    /// tile and their wide accumulators.
    ///
    /// # Safety
    /// `values` is bound to `scratch`, which has [`SegmentFold::scratch`] bytes.
    unsafe fn fold(
        &self,
        values: &mut Values,
        scratch: *mut u8,
        outer: usize,
        at: usize,
        n: usize,
    ) -> (Tile, *mut u8) {
        let (frame, fold) = (self.frame, self.fold);
        let n_groups = frame.layout.groups.len();
        let kept = self.kept_tile(outer);
        let wide = scratch.wrapping_add(frame.scratch());
        let extent = if self.cut.rows_mode { self.cut.rows } else { self.cut.columns };
        let narrow = wide.wrapping_add((extent * fold.wide).next_multiple_of(64));
        // SAFETY: the scratch has room for n of each.
        unsafe {
            (fold.init_wide)(wide, n);
            if !self.cut.rows_mode {
                (fold.init_narrow)(narrow, n);
            }
        }
        // Odometer over the reduced outer groups.
        let mut place = [0usize; MAX_AXES + 2];
        let reduced = |g: &usize| frame.layout.groups[*g].reduced;
        for g in (0..n_groups - 2).filter(reduced) {
            place[g] = self.range(g).start;
        }
        loop {
            let mut tile = Tile { ..kept };
            for g in (0..n_groups - 2).filter(reduced) {
                for (t, base) in tile.base[..frame.data.len()].iter_mut().enumerate() {
                    *base += frame.layout.offset(&frame.layout.groups[g], t, place[g]);
                }
            }
            // SAFETY: passed on from the caller.
            unsafe {
                if self.cut.rows_mode {
                    (tile.a, tile.rows) = (at, n);
                    self.fold_rows(values, scratch, wide, &mut tile, self.range(n_groups - 1));
                } else {
                    (tile.b, tile.columns) = (at, n);
                    let range = self.range(n_groups - 2);
                    self.fold_columns(values, scratch, wide, narrow, &mut tile, range);
                }
            }
            let mut more = false;
            for g in (0..n_groups - 2).rev().filter(reduced) {
                place[g] += 1;
                if place[g] < self.range(g).end {
                    more = true;
                    break;
                }
                place[g] = self.range(g).start;
            }
            if !more {
                break;
            }
        }
        let mut tile = kept;
        if self.cut.rows_mode {
            tile.a = at;
        } else {
            tile.b = at;
        }
        (tile, wide)
    }

    /// The reduced value's block of a tile.
    ///
    /// # Safety
    /// As [`Frame::run`].
    #[inline]
    unsafe fn block(&self, values: &mut Values, scratch: *mut u8, tile: &Tile) -> Block {
        let epilogue = self.frame.program.epilogue.as_ref();
        let value = epilogue.map_or(0, |c| usize::from(c.value));
        let (data, stride) = if self.cut.direct {
            self.frame.in_place(value, tile)
        } else {
            let size = usize::from(self.frame.program.sizes[value]);
            // SAFETY: passed on from the caller.
            (unsafe { self.frame.run(values, scratch, tile) }, (tile.columns * size) as isize)
        };
        Block { data, rows: tile.rows, stride, columns: tile.columns }
    }

    /// # Safety
    /// As [`SegmentFold::fold`].
    unsafe fn fold_rows(
        &self,
        values: &mut Values,
        scratch: *mut u8,
        wide: *mut u8,
        tile: &mut Tile,
        range: core::ops::Range<usize>,
    ) {
        for b in range.clone().step_by(self.cut.columns) {
            (tile.b, tile.columns) = (b, self.cut.columns.min(range.end - b));
            // SAFETY: the tile lies in the groups; wide has one accumulator per row.
            unsafe {
                let block = self.block(values, scratch, tile);
                (self.fold.rows)(wide, block);
            }
        }
    }

    /// # Safety
    /// As [`SegmentFold::fold`].
    unsafe fn fold_columns(
        &self,
        values: &mut Values,
        scratch: *mut u8,
        wide: *mut u8,
        narrow: *mut u8,
        tile: &mut Tile,
        range: core::ops::Range<usize>,
    ) {
        for a in range.clone().step_by(self.cut.rows) {
            (tile.a, tile.rows) = (a, self.cut.rows.min(range.end - a));
            // SAFETY: the tile lies in the groups; there is a narrow and a wide
            // accumulator per column.
            unsafe {
                let mut block = self.block(values, scratch, tile);
                let (mut at, end) = (a, a + tile.rows);
                while at < end {
                    // Narrow accumulators end at the end of a chunk of rows, or of the range.
                    let stop = ((at / COLUMN_CHUNK + 1) * COLUMN_CHUNK).min(range.end);
                    block.rows = stop.min(end) - at;
                    (self.fold.columns)(narrow, block);
                    block.data = block.data.wrapping_offset(block.rows as isize * block.stride);
                    at += block.rows;
                    if at == stop {
                        (self.fold.flush)(wide, narrow, block.columns);
                    }
                }
            }
        }
    }

    /// Rounds `n` wide accumulators and stores them where `tile` says.
    ///
    /// # Safety
    /// `wide` holds them; no other task writes those results.
    unsafe fn finish(&self, tile: &Tile, wide: *mut u8, n: usize) {
        let (fold, step) = (self.fold, 256);
        let mut stage = [0u64; 256];
        let out = stage.as_mut_ptr() as *mut u8;
        for start in (0..n).step_by(step) {
            let m = step.min(n - start);
            let mut part = Tile { ..*tile };
            if self.cut.rows_mode {
                part.a += start;
            } else {
                part.b += start;
            }
            // SAFETY: results have at most 8 bytes; the rest is the caller's promise.
            unsafe {
                (fold.finish)(out, wide.add(start * fold.wide), m);
                self.frame.store_results(&part, self.cut.rows_mode, out, m, fold.out);
            }
        }
    }
}
