//! Blocks of a product: dividing, packing and multiplying them.

use super::pack::{Block, Panel};
use super::{GRAIN, Par, Product, Shared, gemv::gemv, micro::Tile, skinny};
use crate::level::Level;
use crate::scratch::{Scratch, Slot};
use core::ops::Range;

/// Rows of a block: a block of A fits half of a small L2 cache.
const MC: usize = 168;
/// Columns of a block.
const NC: usize = 512;
/// Columns of a block if C has few rows.
const FEW_ROWS_NC: usize = 1024;
/// See [`FEW_ROWS_NC`].
const FEW_ROWS_KC: usize = 56;
/// Number of tasks up to which blocks are made smaller than [`NC`] x [`MC`].
pub(crate) const TASKS: usize = 64;
/// Largest number of packed numbers of an operand (exceeded only if k alone is larger).
pub(crate) const PACKED: usize = 4 << 20;
/// Length of the stretches of k that are packed at once, if C can hold partial sums. It is at most the second number,
/// and at most the first if otherwise the packed operands would together exceed [`PACKED`]. The packed operands then
/// stay in a large cache, and are not written to memory.
const K_STEP: [usize; 2] = [1024, 4096];

/// The blocks of a product. They depend only on the shape.
struct Cut {
    /// Panels of rows.
    panels: usize,
    /// Blocks of panels.
    row_blocks: usize,
    /// Columns of a block.
    block_cols: usize,
    /// Blocks of columns.
    col_blocks: usize,
    /// Length of a block along k.
    kc: usize,
}

/// Where the panels of an operand come from.
#[derive(Clone, Copy)]
enum Source {
    /// Packed in advance, for all tasks.
    Packed(*const u8),
    /// Packed by the task.
    Own,
    /// Read in place.
    InPlace,
}

impl Product<'_> {
    /// Length of a block along k.
    fn kc(&self) -> usize {
        let (ops, size) = (self.ops, self.ops.storage as isize);
        let most = if self.few_rows() {
            // B is packed a few long rows at a time.
            FEW_ROWS_KC
        } else if self.n <= 2 * ops.lanes && self.a.col == size {
            // The rows of A are read once, in long stretches.
            4 * ops.kc
        } else {
            ops.kc
        };
        ops.even_k(self.k, most)
    }

    /// True if most of the work is reading B, whose rows are contiguous.
    pub(super) fn few_rows(&self) -> bool {
        self.m <= 2 * self.ops.mr
            && self.b.col == self.ops.storage as isize
            && self.n >= FEW_ROWS_NC / 4
    }

    /// Divides the product into blocks of suitable size. There are `tasks` blocks if each is worth a task; with `None`
    /// there is one block.
    fn cut(&self, tasks: Option<usize>, kc: usize) -> Cut {
        let nr = 2 * self.ops.lanes;
        // If rows compete for the same lines of the L1 cache, use fewer at a time.
        let most = if self.a_in_place() && self.aliased() { 8 } else { self.ops.mr };
        let panels = self.m.div_ceil(most.min(self.ops.mr));
        let Some(tasks) = tasks else {
            let block_cols = self.n.next_multiple_of(nr);
            return Cut { panels, row_blocks: 1, block_cols, col_blocks: 1, kc };
        };
        if self.few_rows() {
            let block_cols = FEW_ROWS_NC.min(self.n.div_ceil(4)).next_multiple_of(nr);
            let col_blocks = self.n.div_ceil(block_cols);
            return Cut { panels, row_blocks: 1, block_cols, col_blocks, kc };
        }
        let mut rows = panels.div_ceil((MC / most).max(1));
        let mut cols = self.n.div_ceil(NC);
        let most_cols = self.n.div_ceil(nr);
        let work = self.work();
        // Do not exceed the requested number: 64 tasks divide evenly among 2 to 64 threads.
        while rows * cols < tasks && work / (rows * cols) > GRAIN {
            let tall = self.m / rows >= self.n / cols;
            if 2 * rows <= panels && (tall || 2 * cols > most_cols) {
                rows = (2 * rows).min(tasks.div_ceil(cols));
            } else if 2 * cols <= most_cols {
                cols = (2 * cols).min(tasks.div_ceil(rows));
            } else {
                break;
            }
        }
        let block_cols = self.n.div_ceil(cols).next_multiple_of(nr);
        Cut { panels, row_blocks: rows, block_cols, col_blocks: self.n.div_ceil(block_cols), kc }
    }

    /// First row of a panel.
    fn row_of(&self, cut: &Cut, panel: usize) -> usize {
        self.ops.row_of(panel, cut.panels, self.m)
    }

    /// Panels of a block of rows.
    fn panels_of(&self, cut: &Cut, block: usize) -> Range<usize> {
        let first = |b: usize| b * cut.panels / cut.row_blocks;
        first(block)..first(block + 1)
    }

    /// Columns of a block of columns.
    fn cols_of(&self, cut: &Cut, block: usize) -> Range<usize> {
        block * cut.block_cols..self.n.min((block + 1) * cut.block_cols)
    }

    fn a_at(&self, i: usize, p: usize) -> *mut u8 {
        let p = p * self.ops.group / self.ops.expand;
        self.a.data.wrapping_offset(i as isize * self.a.row + p as isize * self.a.col)
    }

    fn b_at(&self, p: usize, j: usize) -> *mut u8 {
        let (p, j) = (p * self.ops.group / self.ops.expand, j / self.ops.expand);
        self.b.data.wrapping_offset(p as isize * self.b.row + j as isize * self.b.col)
    }

    fn c_at(&self, i: usize, j: usize) -> *mut u8 {
        let j = j / self.ops.expand;
        self.c.data.wrapping_offset(i as isize * self.c.row + j as isize * self.c.col)
    }

    /// True if kernels can write directly to C.
    fn direct_c(&self) -> bool {
        self.ops.direct_c && (self.c.col == self.ops.storage as isize || self.n == self.ops.expand)
    }

    /// True if it is best to read A in place, because each number is used only a few times.
    fn a_in_place(&self) -> bool {
        self.ops.in_place && self.n <= 8 * self.ops.lanes
    }

    /// True if packing A copies whole lines. It is then cheaper to pack in each task than to fetch the panels from
    /// another core.
    fn copies_a(&self) -> bool {
        self.ops.tile > 1 && self.a.col == self.ops.storage as isize
    }

    /// True if the rows of A map to few sets of the L1 cache.
    fn aliased(&self) -> bool {
        self.a.row != self.ops.storage as isize && self.a.row % 2048 == 0
    }

    /// Columns with padding.
    fn padded(&self, cols: usize) -> usize {
        cols.next_multiple_of(self.ops.lanes)
    }

    /// Part of the product: rows, columns and k from here, as long as given.
    fn part(&self, [i, j, p]: [usize; 3], [m, n, k]: [usize; 3]) -> Self {
        let mut part = *self;
        part.a.data = self.a_at(i, p);
        part.b.data = self.b_at(p, j);
        part.c.data = self.c_at(i, j);
        (part.m, part.n, part.k) = (m, n, k);
        part.depth = self.depth - p * self.ops.group;
        part.accumulate = self.accumulate || p > 0;
        part
    }

    /// Length of `k` numbers from `p`, in the unit in which packing counts.
    fn elements(&self, p: usize, k: usize) -> usize {
        let group = self.ops.group;
        (k * group).min(self.depth - p * group)
    }

    /// Packs panels of A, for `k` from `p`, to `dst`.
    ///
    /// # Safety
    /// `dst` has room: padded rows times the length of k.
    unsafe fn pack_a(&self, cut: &Cut, panels: Range<usize>, p: usize, dst: *mut u8) {
        let first = self.row_of(cut, panels.start);
        let k = cut.kc.min(self.k - p);
        for panel in panels {
            let (row, end) = (self.row_of(cut, panel), self.row_of(cut, panel + 1));
            let panel = Panel {
                src: self.a_at(row, p),
                across: self.a.row,
                along: self.a.col,
                width: end - row,
                ld: self.ops.padded_rows(end - row),
                unit: self.ops.tile,
                k: self.elements(p, k),
                dst: dst.wrapping_add((row - first) * k * self.ops.acc),
            };
            // SAFETY: rows and k are A's; the destination is the caller's promise.
            unsafe { (self.ops.pack_a)(&panel) }
        }
    }

    /// Packs columns of B, for `k` from `p`, to `dst`.
    ///
    /// # Safety
    /// `dst` has room: padded columns times the length of k.
    unsafe fn pack_b(&self, cut: &Cut, cols: Range<usize>, p: usize, dst: *mut u8) {
        let panels = Panel {
            src: self.b_at(p, cols.start),
            across: self.b.col,
            along: self.b.row,
            width: cols.len(),
            ld: 2 * self.ops.lanes,
            unit: self.ops.lanes,
            k: self.elements(p, cut.kc.min(self.k - p)),
            dst,
        };
        // SAFETY: columns and k are B's; the destination is the caller's promise.
        unsafe { (self.ops.pack_b)(&panels) }
    }

    /// Multiplies a block of C, for all k.
    ///
    /// # Safety
    /// The product is valid; packed operands are packed as by [`Product::slab`].
    unsafe fn block(
        &self,
        cut: &Cut,
        panels: Range<usize>,
        cols: Range<usize>,
        a: Source,
        b: Source,
    ) {
        let (ops, acc) = (self.ops, self.ops.acc);
        let first = self.row_of(cut, panels.start);
        let rows = self.row_of(cut, panels.end) - first;
        let (width, kc) = (self.padded(cols.len()), cut.kc.min(self.k));
        let direct_c = self.direct_c();
        let room = |wanted: bool, numbers: usize| {
            if wanted { (numbers * acc).next_multiple_of(64) } else { 0 }
        };
        let a_bytes = room(matches!(a, Source::Own), ops.padded_rows(rows) * kc);
        let b_bytes = room(matches!(b, Source::Own), width * kc);
        let c_bytes = room(!direct_c, rows * width);
        let scratch = Scratch::new(Slot::Task, a_bytes + b_bytes + c_bytes);
        let own_a = scratch.get();
        let own_b = own_a.wrapping_add(a_bytes);
        let own_c = own_b.wrapping_add(b_bytes);
        let (c, c_row) = if direct_c {
            (self.c_at(first, cols.start), self.c.row / acc as isize)
        } else {
            (own_c, width as isize)
        };
        let _tiles = ops.begin();
        let m = ops.padded_rows(self.m);
        let mut p = 0;
        while p < self.k {
            let k = kc.min(self.k - p);
            if a_bytes > 0 {
                // SAFETY: rows x kc numbers of scratch.
                unsafe { self.pack_a(cut, panels.clone(), p, own_a) }
            }
            if b_bytes > 0 {
                // SAFETY: width x kc numbers of scratch.
                unsafe { self.pack_b(cut, cols.clone(), p, own_b) }
            }
            let mut j = cols.start;
            while j < cols.end {
                let count = (2 * ops.lanes).min(cols.end - j);
                let vectors = count.div_ceil(ops.lanes);
                let b = match b {
                    Source::Packed(data) => {
                        data.wrapping_add((p * self.padded(self.n) + j * k) * acc)
                    }
                    _ => own_b.wrapping_add((j - cols.start) * k * acc),
                };
                for panel in panels.clone() {
                    let row = self.row_of(cut, panel);
                    let height = self.row_of(cut, panel + 1) - row;
                    let (data, in_place) = match a {
                        Source::Packed(data) => (data.wrapping_add((p * m + row * k) * acc), false),
                        Source::Own => {
                            (own_a.wrapping_add((row - first) * k * acc) as *const u8, false)
                        }
                        Source::InPlace => (self.a_at(row, p) as *const u8, true),
                    };
                    // The next panel that kernels read and that is not in the L2 cache: first the panel of A, later a
                    // share of the next panel of B.
                    let (next, next_step) = if j == cols.start {
                        (data.wrapping_add(height * k * acc), height * acc)
                    } else {
                        let share = (vectors * ops.lanes * acc).div_ceil(panels.len());
                        let (panel_b, i) = (vectors * ops.lanes * acc, panel - panels.start);
                        (b.wrapping_add((panel_b + i * share) * k), share)
                    };
                    let at = (row - first) as isize * c_row + (j - cols.start) as isize;
                    let tile = Tile {
                        rows: height,
                        k,
                        a: data,
                        a_row: self.a.row / acc as isize,
                        a_k: self.a.col / acc as isize,
                        b,
                        b_k: (vectors * ops.lanes) as isize,
                        c: c.wrapping_offset(at * acc as isize),
                        c_row,
                        cols: count,
                        accumulate: self.accumulate || p > 0,
                        next,
                        next_step,
                    };
                    // SAFETY: the tile lies within the block, its panels within
                    // the packed operands; the level was available to `ops`.
                    unsafe { ops.multiply(&tile, in_place) }
                }
                j += count;
            }
            p += k;
        }
        if !direct_c {
            let block = Block {
                src: own_c,
                ld: width,
                rows,
                cols: cols.len(),
                dst: self.c_at(first, cols.start),
                row: self.c.row,
                col: self.c.col,
            };
            // SAFETY: the block of C and its sums.
            unsafe { (ops.store)(&block) }
        }
    }

    /// Bytes of all of B, packed.
    fn b_bytes(&self) -> usize {
        (self.padded(self.n) * self.k * self.ops.acc).next_multiple_of(4096)
    }

    /// Bytes of all of A, packed.
    fn a_bytes(&self) -> usize {
        (self.ops.padded_rows(self.m) * self.k * self.ops.acc).next_multiple_of(4096)
    }

    /// Writes zeros, for a sum over an empty k.
    ///
    /// # Safety
    /// C is valid.
    unsafe fn clear(&self) {
        for i in 0..self.m {
            for j in 0..self.n / self.ops.expand {
                // SAFETY: element (i, j) of C.
                unsafe { self.c_at(i, j * self.ops.expand).write_bytes(0, self.ops.storage) }
            }
        }
    }
}

/// Products of one shape, by their numbers.
type Each<'a, 'b> = &'a (dyn Fn(usize) -> Product<'b> + Sync);

/// Multiplies products of one shape on all threads. Operands that tasks share are packed first. With `packed_b`, an
/// earlier call with the same `room` and the same B has already packed B.
///
/// # Safety
/// The products are valid and have different outputs; `room` holds the packed operands of each, B first.
unsafe fn slabs(
    par: &Par,
    (count, each): (usize, Each<'_, '_>),
    cut: &Cut,
    room: *mut u8,
    packed_b: bool,
) {
    let shape = each(0);
    let acc = shape.ops.acc;
    let share_b = cut.row_blocks > 1;
    let in_place = shape.a_in_place();
    let share_a = cut.col_blocks > 1 && !in_place && !shape.copies_a();
    let (padded, padded_rows) = (shape.padded(shape.n), shape.ops.padded_rows(shape.m));
    let b_bytes = if share_b { shape.b_bytes() } else { 0 };
    let bytes = b_bytes + if share_a { shape.a_bytes() } else { 0 };
    let room = Shared(room);
    let b_of = |item: usize| room.get().wrapping_add(item * bytes);
    let a_of = |item: usize| b_of(item).wrapping_add(b_bytes);
    let k_blocks = shape.k.div_ceil(cut.kc);
    let b_tasks = if share_b && !packed_b { k_blocks * cut.col_blocks } else { 0 };
    let a_tasks = if share_a { k_blocks * cut.row_blocks } else { 0 };
    let pack_one = |i: usize| {
        let (item, i) = (i / (b_tasks + a_tasks), i % (b_tasks + a_tasks));
        let product = each(item);
        let (t, blocks) =
            if i < b_tasks { (i, cut.col_blocks) } else { (i - b_tasks, cut.row_blocks) };
        let (p, block) = (t / blocks * cut.kc, t % blocks);
        let k = cut.kc.min(product.k - p);
        if i < b_tasks {
            let cols = product.cols_of(cut, block);
            let at = (p * padded + cols.start * k) * acc;
            // SAFETY: each task packs its own columns and stretch of k.
            unsafe { product.pack_b(cut, cols, p, b_of(item).wrapping_add(at)) }
        } else {
            let panels = product.panels_of(cut, block);
            let at = (p * padded_rows + product.row_of(cut, panels.start) * k) * acc;
            // SAFETY: each task packs its own rows and stretch of k.
            unsafe { product.pack_a(cut, panels, p, a_of(item).wrapping_add(at)) }
        }
    };
    let tasks = count * (b_tasks + a_tasks);
    if count * (shape.m + shape.n) * shape.k < 1 << 15 {
        (0..tasks).for_each(pack_one);
    } else {
        par.run(tasks, pack_one);
    }
    let blocks = cut.row_blocks * cut.col_blocks;
    par.run(count * blocks, |i| {
        let (item, i) = (i / blocks, i % blocks);
        let product = each(item);
        let panels = product.panels_of(cut, i / cut.col_blocks);
        let cols = product.cols_of(cut, i % cut.col_blocks);
        let from_a = match (in_place, share_a) {
            (true, _) => Source::InPlace,
            (_, true) => Source::Packed(a_of(item)),
            _ => Source::Own,
        };
        let from_b = if share_b { Source::Packed(b_of(item)) } else { Source::Own };
        // SAFETY: the operands were packed above; blocks of C are disjoint.
        unsafe { product.block(cut, panels, cols, from_a, from_b) }
    });
}

/// Multiplies on this thread.
///
/// # Safety
/// The product is valid, the level the one its functions are for.
pub(crate) unsafe fn serial(pr: &Product<'_>, level: Level) {
    // SAFETY: passed on.
    unsafe {
        if pr.k == 0 {
            return pr.clear();
        }
        if (pr.m == 1 || pr.n == 1) && !pr.accumulate && gemv(&Par::default(), pr, level) {
            return;
        }
        let grouped = pr.grouped();
        let pr = grouped.as_ref().unwrap_or(pr);
        let cut = pr.cut(None, pr.kc());
        let a = if pr.a_in_place() { Source::InPlace } else { Source::Own };
        pr.block(&cut, 0..cut.panels, 0..pr.n, a, Source::Own)
    }
}

/// Multiplies on all threads, if that is worth it.
///
/// # Safety
/// As [`serial`].
pub(crate) unsafe fn multiply(par: &Par, pr: &Product<'_>, level: Level) {
    let work = pr.work();
    // Vectors and few rows use specialised functions, which cannot accumulate.
    if (pr.m == 1 || pr.n == 1) && pr.k > 0 && !pr.accumulate {
        // SAFETY: passed on.
        if unsafe { gemv(par, pr, level) } {
            return;
        }
    }
    if work <= GRAIN {
        // SAFETY: passed on.
        return unsafe { serial(pr, level) };
    }
    let grouped = pr.grouped();
    let pr = grouped.as_ref().unwrap_or(pr);
    if let Some(fns) = &pr.ops.gemv
        && pr.few_rows()
        && !pr.accumulate
    {
        // SAFETY: as asked for; the function is for this dtype.
        return unsafe { skinny::multiply(par, pr, fns.skinny, level) };
    }
    // Use slabs, so that packed operands do not exceed PACKED.
    let kc = pr.kc();
    let k_step = if pr.direct_c() {
        let most = (PACKED / (pr.m + pr.n)).clamp(K_STEP[0], K_STEP[1]);
        let blocks = pr.k.div_ceil(kc);
        (kc * blocks.div_ceil(blocks.div_ceil((most / kc).max(1)))).min(pr.k)
    } else {
        pr.k
    };
    let most = (PACKED / k_step).max(NC);
    let even = |n: usize, unit: usize| n.div_ceil(n.div_ceil(most)).next_multiple_of(unit).min(n);
    let (m_step, n_step) = (even(pr.m, pr.ops.mr), even(pr.n, 2 * pr.ops.lanes));
    let sizes = [m_step, n_step, k_step];
    let largest = pr.part([0; 3], sizes);
    let scratch = Scratch::new(Slot::Call, largest.b_bytes() + largest.a_bytes());
    for j in (0..pr.n).step_by(n_step) {
        for p in (0..pr.k).step_by(k_step) {
            let mut packed_b = false;
            for i in (0..pr.m).step_by(m_step) {
                let [m, n, k] = [m_step.min(pr.m - i), n_step.min(pr.n - j), k_step.min(pr.k - p)];
                let part = pr.part([i, j, p], [m, n, k]);
                let cut = part.cut(Some(TASKS), kc);
                // SAFETY: a part of a valid product; the scratch memory holds the
                // packed operands of the largest part.
                unsafe { slabs(par, (1, &|_| part), &cut, scratch.get(), packed_b) }
                packed_b = cut.row_blocks > 1;
            }
        }
    }
}

/// Multiplies products of one shape. Medium-sized products are processed together, so that tasks need not wait after
/// each product.
///
/// # Safety
/// As [`serial`], of each; their outputs are different.
pub(crate) unsafe fn multiply_each(par: &Par, (count, each): (usize, Each<'_, '_>), level: Level) {
    let product = each(0);
    let grouped = product.grouped();
    let shape = grouped.as_ref().unwrap_or(&product);
    let room = (shape.m + shape.n).saturating_mul(shape.k).max(1);
    let together = count.min(PACKED / room);
    let alone = shape.m == 1 || shape.n == 1 || shape.few_rows() || shape.accumulate;
    if alone || shape.k == 0 || shape.k > K_STEP[1] || shape.work() <= GRAIN || together < 2 {
        // SAFETY: passed on.
        return (0..count).for_each(|i| unsafe { multiply(par, &each(i), level) });
    }
    let cut = shape.cut(Some(TASKS.div_ceil(together)), shape.kc());
    let scratch = Scratch::new(Slot::Call, together * (shape.a_bytes() + shape.b_bytes()));
    for first in (0..count).step_by(together) {
        let of = |i: usize| {
            let product = each(first + i);
            product.grouped().unwrap_or(product)
        };
        // SAFETY: passed on; the scratch memory holds the packed operands of so many.
        unsafe { slabs(par, (together.min(count - first), &of), &cut, scratch.get(), false) }
    }
}
