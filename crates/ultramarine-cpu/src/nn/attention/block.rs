//! Blocks of operands as numbers for micro-kernels, and their products.

use super::softmax::{Hide, Scores, pass};
use super::{Call, KEYS, QUERIES, Tensor};
use crate::dtype::DType;
use crate::level::{self, Isa};
use crate::matmul::micro::Tile;
use crate::matmul::ops::Ops;
use crate::matmul::simd::{Num, Storage};
use crate::nn::real::Real;
use crate::nn::tensor::widen;
use half::{bf16, f16};

/// An element, and whether it already has the type of the computation.
pub trait Element: Storage {
    const IS_NUMBER: bool;
}
impl Element for f16 {
    const IS_NUMBER: bool = false;
}
impl Element for bf16 {
    const IS_NUMBER: bool = false;
}
impl Element for f32 {
    const IS_NUMBER: bool = true;
}
impl Element for f64 {
    const IS_NUMBER: bool = true;
}

/// Rows of numbers, `pitch` apart.
#[derive(Clone, Copy)]
pub struct Rows<T> {
    pub data: *mut T,
    pub pitch: isize,
}

impl<T> Rows<T> {
    pub fn from(self, row: usize) -> Rows<T> {
        Rows { data: self.data.wrapping_offset(row as isize * self.pitch), ..self }
    }
}

/// Copies a row of elements, `stride` apart, as numbers; the rest up to `pitch` becomes 0.
struct Load<S: Storage> {
    from: *const S,
    stride: isize,
    size: usize,
    to: *mut S::Acc,
    pitch: usize,
}

impl<S: Storage> level::Body for Load<S> {
    type Output = ();
    #[inline(always)]
    fn call<I: Isa>(self, _: I) {
        // SAFETY: the row is there, and `pitch` numbers of the target, which is memory of its own.
        let to = unsafe { core::slice::from_raw_parts_mut(self.to, self.pitch) };
        let (now, rest) = to.split_at_mut(self.size);
        // SAFETY: as above.
        unsafe { widen(self.from, self.stride, now) };
        rest.fill(S::Acc::default());
    }
}

/// Multiplies numbers by a factor, and stores them as elements `stride` apart.
struct Store<S: Storage> {
    from: *const S::Acc,
    to: *mut S,
    stride: isize,
    size: usize,
    factor: S::Acc,
}

impl<S: Storage> level::Body for Store<S>
where
    S::Acc: Real,
{
    type Output = ();
    #[inline(always)]
    fn call<I: Isa>(self, _: I) {
        // SAFETY: the row is there.
        let from = unsafe { core::slice::from_raw_parts(self.from, self.size) };
        for (i, from) in from.iter().enumerate() {
            let to = self.to.wrapping_offset(i as isize * self.stride);
            // SAFETY: an element of the output, which nothing else writes.
            unsafe { *to = S::narrow(from.times(self.factor)) };
        }
    }
}

/// Transposes rows of numbers into [`QUERIES`] lanes, times a factor.
struct Transpose<T> {
    from: Rows<T>,
    rows: usize,
    size: usize,
    factor: T,
    to: *mut T,
}

impl<T: Real> level::Body for Transpose<T> {
    type Output = ();
    #[inline(always)]
    fn call<I: Isa>(self, _: I) {
        for c in 0..self.size {
            // SAFETY: the target has `size` rows of QUERIES numbers.
            let to = unsafe {
                core::slice::from_raw_parts_mut(self.to.wrapping_add(c * QUERIES), QUERIES)
            };
            for (i, to) in to.iter_mut().enumerate() {
                *to = match i < self.rows {
                    // SAFETY: the source has that many rows of `size` numbers.
                    true => unsafe { *self.from.from(i).data.wrapping_add(c) }.times(self.factor),
                    false => T::ZERO,
                };
            }
        }
    }
}

/// The tools of a task: the level's functions for the type of elements.
#[derive(Clone, Copy)]
pub struct Tools<'a, S> {
    pub call: &'a Call<'a>,
    dtype: core::marker::PhantomData<fn(S)>,
}

impl<'a, S: Element> Tools<'a, S>
where
    S::Acc: Real,
{
    pub fn new(call: &'a Call<'a>) -> Self {
        Tools { call, dtype: core::marker::PhantomData }
    }

    fn ops(&self) -> &'a Ops {
        self.call.ops
    }

    /// Distance in numbers between the rows of a block whose rows have `size` numbers: whole vectors.
    pub fn pitch(&self, size: usize) -> usize {
        size.next_multiple_of(self.ops().lanes)
    }

    /// True if the rows of a tensor can be read where they are.
    pub fn in_place(&self, tensor: &Tensor, size: usize) -> bool {
        S::IS_NUMBER && tensor.strides[3] == 1 && size.is_multiple_of(self.ops().lanes)
    }

    /// The rows of a head of keys or values. `fetch` loads them if they cannot be read in place.
    pub fn rows(&self, tensor: &Tensor, [b, h, first]: [usize; 3]) -> Rows<S::Acc> {
        Rows { data: tensor.at::<S>([b, h, first, 0]).cast(), pitch: tensor.strides[2] }
    }

    /// Loads rows into numbers.
    ///
    /// # Safety
    /// The rows are there; the target has that many of the size's pitch.
    pub unsafe fn load(
        &self,
        tensor: &Tensor,
        [b, h, first]: [usize; 3],
        [rows, size]: [usize; 2],
        to: *mut S::Acc,
    ) -> Rows<S::Acc> {
        let pitch = self.pitch(size);
        for i in 0..rows {
            let load = Load {
                from: tensor.at::<S>([b, h, first + i, 0]).cast_const(),
                stride: tensor.strides[3],
                size,
                to: to.wrapping_add(i * pitch),
                pitch,
            };
            pass(self.call.cx.level, load);
        }
        Rows { data: to, pitch: pitch as isize }
    }

    /// Loads the rows of a block of queries.
    ///
    /// # Safety
    /// As [`Tools::load`].
    pub unsafe fn load_queries(
        &self,
        tensor: &Tensor,
        block: &Queries,
        size: usize,
        to: *mut S::Acc,
    ) -> Rows<S::Acc> {
        let pitch = self.pitch(size);
        for (lane, [h, i]) in block.rows.iter().enumerate().take(block.n) {
            // SAFETY: passed on.
            unsafe {
                self.load(tensor, [block.batch, *h, *i], [1, size], to.wrapping_add(lane * pitch))
            };
        }
        Rows { data: to, pitch: pitch as isize }
    }

    /// Stores a row of numbers into the row of a tensor, times a factor.
    ///
    /// # Safety
    /// Both are there.
    pub unsafe fn store(
        &self,
        from: *const S::Acc,
        factor: S::Acc,
        tensor: &Tensor,
        index: [usize; 3],
        size: usize,
    ) {
        let [b, h, i] = index;
        let (to, stride) = (tensor.at::<S>([b, h, i, 0]), tensor.strides[3]);
        pass(self.call.cx.level, Store { from, to, stride, size, factor });
    }

    /// Transposes rows into lanes, times a factor.
    ///
    /// # Safety
    /// The rows are there; the target has `size` rows of QUERIES numbers.
    pub unsafe fn transpose(
        &self,
        from: Rows<S::Acc>,
        [rows, size]: [usize; 2],
        factor: S::Acc,
        to: *mut S::Acc,
    ) {
        pass(self.call.cx.level, Transpose { from, rows, size, factor, to });
    }

    /// `c = a b`, or `c += a b`: `(rows, k)` by `(k, cols)`. The strides of a are those of its rows and columns; b and c
    /// are rows of whole vectors.
    ///
    /// # Safety
    /// All are there.
    pub unsafe fn product(
        &self,
        (a, strides): (*const S::Acc, [isize; 2]),
        b: Rows<S::Acc>,
        c: Rows<S::Acc>,
        [rows, cols, k]: [usize; 3],
        accumulate: bool,
    ) {
        let ops = self.ops();
        let tiles = rows.div_ceil(ops.mr);
        let mut row = 0;
        for tile in 0..tiles {
            let height = (rows - row).div_ceil(tiles - tile);
            let a = a.wrapping_offset(row as isize * strides[0]);
            let mut packed = [S::Acc::ZERO; KEYS * 4];
            let mut from = 0;
            while from < k {
                // Levels whose kernels cannot read in place get packed numbers.
                let steps = if ops.in_place { k } else { (k - from).min(packed.len() / height) };
                if !ops.in_place {
                    for (i, to) in packed.iter_mut().take(steps * height).enumerate() {
                        let (s, r) = ((from + i / height) as isize, (i % height) as isize);
                        // SAFETY: within a.
                        *to = unsafe { *a.wrapping_offset(r * strides[0] + s * strides[1]) };
                    }
                }
                let at = if ops.in_place { a } else { packed.as_ptr() };
                for col in (0..cols).step_by(2 * ops.lanes) {
                    let vectors = (cols - col).div_ceil(ops.lanes).min(2);
                    let tile = Tile {
                        rows: height,
                        k: steps,
                        a: at.cast(),
                        a_row: strides[0],
                        a_k: strides[1],
                        b: b.from(from).data.wrapping_add(col) as *const u8,
                        b_k: b.pitch,
                        c: c.from(row).data.wrapping_add(col).cast(),
                        c_row: c.pitch,
                        cols: vectors * ops.lanes,
                        accumulate: accumulate || from > 0,
                        next: at.cast(),
                        next_step: 0,
                    };
                    // SAFETY: the level is available (its functions were looked up by it); operands are there.
                    unsafe { ops.multiply(&tile, ops.in_place) }
                }
                from += steps;
            }
            row += height;
        }
    }

    /// The scores of a block: products of keys with queries in lanes, after masking.
    ///
    /// # Safety
    /// All are there; there is memory for KEYS rows of scores.
    pub unsafe fn scores(
        &self,
        keys: Rows<S::Acc>,
        [first, n]: [usize; 2],
        lanes: *const S::Acc,
        block: &Queries,
        to: *mut S::Acc,
    ) -> Scores<S::Acc> {
        let scores = Scores { data: to, keys: n, queries: block.n };
        let lanes = Rows { data: lanes.cast_mut(), pitch: QUERIES as isize };
        let size = self.call.sizes[0];
        let cols = self.pitch(block.n);
        // SAFETY: by this function's contract.
        unsafe {
            let to = Rows { data: to, pitch: QUERIES as isize };
            self.product((keys.data, [keys.pitch, 1]), lanes, to, [n, cols, size], false);
            self.mask(scores, first, block);
        }
        if block.ends[..block.n].iter().any(|end| *end < (first + n) as i64) {
            let hide = Hide { scores, first: first as i64, ends: &block.ends };
            pass(self.call.cx.level, hide);
        }
        scores
    }

    /// Applies the mask to the keys from `first` on.
    ///
    /// # Safety
    /// The scores are there.
    unsafe fn mask(&self, scores: Scores<S::Acc>, first: usize, block: &Queries) {
        let Some((mask, dtype)) = self.call.mask else { return };
        let unit = S::Acc::of(std::f64::consts::LOG2_E);
        for (lane, [h, i]) in block.rows.iter().enumerate().take(block.n) {
            for j in 0..scores.keys {
                let index = [block.batch, *h, *i, first + j];
                // SAFETY: the score is there, and the mask has an element for each.
                unsafe {
                    let score = &mut *scores.data.wrapping_add(j * QUERIES + lane);
                    if dtype == DType::Bool {
                        *score = if *mask.at::<u8>(index) != 0 { *score } else { S::Acc::LOWEST };
                    } else {
                        let sum = score.plus((*mask.at::<S>(index)).widen().times(unit));
                        *score = if sum < S::Acc::LOWEST { S::Acc::LOWEST } else { sum };
                    }
                }
            }
        }
    }
}

/// Queries of one key head.
pub struct Queries {
    pub batch: usize,
    /// Their number.
    pub n: usize,
    /// Head and place of each.
    pub rows: [[usize; 2]; QUERIES],
    /// The number of keys that each query sees according to its position.
    pub ends: [i64; QUERIES],
    /// Number of keys that any of the queries needs: all keys, if one query sees none.
    pub keys: usize,
}

impl Queries {
    /// The queries of a key head from `first` on: those of its first head, then those of the next head.
    pub fn new(call: &Call<'_>, [batch, head]: [usize; 2], first: usize) -> Queries {
        let n = (call.group * call.queries - first).min(QUERIES);
        let mut block = Queries { batch, n, rows: [[0; 2]; QUERIES], ends: [0; QUERIES], keys: 0 };
        for lane in 0..n {
            let row = first + lane;
            let at = [head * call.group + row / call.queries, row % call.queries];
            let end = call.end(batch, at[1]);
            block.rows[lane] = at;
            block.ends[lane] = end;
            let needed = if end < 1 { call.keys } else { end as usize };
            block.keys = block.keys.max(needed);
        }
        block
    }
}
