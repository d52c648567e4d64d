//! Many rows of x for a matrix. Slabs of the matrix are decoded to numbers, and multiplied.

use super::expand::{Scaled, codes};
use super::format::{offset, read};
use super::product::{Call, Narrow, Part, TASK};
use crate::level;
use crate::matmul::items::Item;
use crate::matmul::simd::Storage;
use crate::matmul::{MatrixAt, PACKED, matmul};
use crate::par::Shared;
use crate::scratch::{Scratch, Slot};

/// Columns of a slab are a multiple of this, which all groups divide.
const UNIT: usize = 128;

impl Call<'_> {
    /// Multiplies many rows: slabs of the matrix are decoded to numbers, and multiplied.
    ///
    /// # Safety
    /// As [`Call::run`]; `x` has all rows.
    pub(super) unsafe fn many<S: Storage<Acc: From<f32>>>(
        &self,
        x: &[S::Acc],
        part: Part,
        items: &[Item],
    ) {
        let (size, ops) = (size_of::<S::Acc>(), &self.of.ops[self.cx.level as usize]);
        let most = (PACKED / self.k).max(1).next_multiple_of(UNIT);
        let width = most.min(self.n.next_multiple_of(UNIT));
        let numbers = width * (self.k + part.rows);
        let scratch = Scratch::new(Slot::Slab, numbers * size);
        let slab = Shared(scratch.get().cast::<S::Acc>());
        let sums = Shared(slab.get().wrapping_add(width * self.k));
        for from in (0..self.n).step_by(width) {
            let columns = width.min(self.n - from);
            // SAFETY: the slab has room for these columns; products and rows of the result are as many.
            unsafe {
                self.expand::<S>(part.second, from, columns, slab);
                let bytes = |numbers: usize| (numbers * size) as isize;
                let second = match self.of.transpose {
                    true => [bytes(1), bytes(self.k)],
                    false => [bytes(columns), bytes(1)],
                };
                let rows = x.as_ptr().wrapping_add(part.first * self.stride());
                let of: [MatrixAt; 3] = [
                    (rows.cast_mut().cast(), [bytes(self.stride()), bytes(1)]),
                    (slab.get().cast(), second),
                    (sums.get().cast(), [bytes(columns), bytes(1)]),
                ];
                matmul(self.cx, ops, [part.rows, columns, self.k], of);
            }
            let each = TASK.div_ceil(columns);
            self.cx.par.run(part.rows.div_ceil(each), |task| {
                for row in task * each..part.rows.min((task + 1) * each) {
                    let step = self.out.strides[2] as isize;
                    let to = self.row::<S>(part.first + row, items);
                    // SAFETY: a row of the products; each task writes its own rows.
                    unsafe {
                        let from_row = sums.get().wrapping_add(row * columns).cast_const();
                        let numbers = core::slice::from_raw_parts(from_row, columns);
                        let to = to.wrapping_offset(from as isize * step);
                        level::at(self.cx.level, Narrow::<S> { numbers, to, step });
                    }
                }
            });
        }
    }

    /// Decodes columns of a matrix's second factor: with `transpose` to a row for each column, else to a row for each
    /// k.
    ///
    /// # Safety
    /// There are such columns, and room for them.
    unsafe fn expand<S: Storage<Acc: From<f32>>>(
        &self,
        second: usize,
        from: usize,
        columns: usize,
        to: Shared<S::Acc>,
    ) {
        let format = &self.of.format;
        let (rows, first, length) = match self.of.transpose {
            true => (columns, from, self.k),
            false => (self.k, 0, columns),
        };
        // First element of a row of words that is read.
        let skipped = if self.of.transpose { 0 } else { from };
        let groups = length / format.group;
        let each = TASK.div_ceil(length);
        self.cx.par.run(rows.div_ceil(each), |task| {
            let size = size_of::<S::Acc>();
            let scratch =
                Scratch::new(Slot::Task, 2 * groups * size + 4 * length + self.words.room());
            let memory = scratch.get().cast::<S::Acc>();
            // SAFETY: there is room for these.
            let (scales, biases, numbers) = unsafe {
                let there = if self.biases.is_some() { groups } else { 0 };
                (
                    core::slice::from_raw_parts_mut(memory, groups),
                    core::slice::from_raw_parts_mut(memory.add(groups), there),
                    core::slice::from_raw_parts_mut(memory.add(2 * groups).cast::<f32>(), length),
                )
            };
            let copy = numbers.as_mut_ptr_range().end.cast::<u8>();
            for row in task * each..rows.min((task + 1) * each) {
                // SAFETY: rows of the matrix; each task writes its own.
                unsafe {
                    let index = [second, first + row];
                    let words = self.words.row(&index, copy);
                    codes(
                        self.cx.level,
                        &format.bits,
                        words.wrapping_add(skipped * format.bits.size / 8),
                        numbers,
                    );
                    let at = [second, first + row, skipped / format.group];
                    self.read_scales::<S>(at, scales);
                    if let Some(view) = self.biases {
                        read::<S>(view, offset(view, &at), biases);
                    }
                    let to = core::slice::from_raw_parts_mut(to.get().add(row * length), length);
                    level::at(
                        self.cx.level,
                        Scaled::<S> { codes: numbers, group: format.group, scales, biases, to },
                    );
                }
            }
        });
    }
}
