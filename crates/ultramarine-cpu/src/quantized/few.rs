//! Few rows of x for each matrix. Elements are decoded while they are multiplied.

use super::dot::{BLOCK, Elements, Factors, ROWS, Rows, STRETCH, dot, ordered, padded, reorder};
use super::format::{offset, read};
use super::product::{Call, Narrow, Part, TASK};
use crate::kernel::View;
use crate::level;
use crate::matmul::items::Item;
use crate::matmul::simd::Storage;
use crate::par::Shared;
use crate::scratch::{Scratch, Slot};
use core::ops::Range;

/// Numbers of x that are multiplied by a block of rows of elements before the next numbers: half of a small L2 cache.
const CACHED: usize = 32768;

impl Call<'_> {
    /// Multiplies matrices by few rows. A task has [`ROWS`] rows of x and a block of rows of elements.
    ///
    /// # Safety
    /// As [`Call::run`]; x has so many rows, as numbers.
    pub(super) unsafe fn few<S: Storage<Acc: From<f32>>>(
        &self,
        (x, rows): (Shared<f32>, usize),
        parts: &[Part],
        items: &[Item],
    ) {
        let (k, groups, level) = (self.k, self.k / self.of.format.group, self.cx.level);
        let (affine, stride) = (self.biases.is_some(), self.stride());
        let is_ordered = ordered(level, &self.of.format);
        let count = if affine { rows * groups } else { 0 };
        let scratch = Scratch::new(Slot::Call, count * 4);
        let sums = Shared(scratch.get().cast::<f32>());
        let mut pieces = Vec::new();
        for part in parts {
            for first in (0..part.rows).step_by(ROWS) {
                let rows = ROWS.min(part.rows - first);
                pieces.push(Part { first: part.first + first, rows, ..*part });
            }
        }
        let each = TASK.div_ceil(k * ROWS);
        self.cx.par.run(pieces.len().div_ceil(each), |task| {
            let own = &pieces[task * each..pieces.len().min((task + 1) * each)];
            for row in own.iter().flat_map(|piece| piece.first..piece.first + piece.rows) {
                // SAFETY: a row of x, and its sums, for which there is room; each task has its own.
                unsafe {
                    let padded = k.next_multiple_of(STRETCH);
                    let of_row = core::slice::from_raw_parts_mut(x.get().add(row * stride), padded);
                    if affine {
                        for (g, group) in of_row[..k].chunks_exact(self.of.format.group).enumerate()
                        {
                            *sums.get().add(row * groups + g) = sum(group);
                        }
                    }
                    if is_ordered {
                        reorder(of_row);
                    }
                }
            }
        });
        let blocks = self.n.div_ceil(BLOCK);
        self.cx.par.run(pieces.len() * blocks, |task| {
            let (piece, from) = (pieces[task / blocks], task % blocks * BLOCK);
            let to = self.n.min(from + BLOCK);
            // SAFETY: rows of the matrix.
            let (scratch, elements) = unsafe { self.elements::<S>(piece.second, from..to) };
            let mut block = [[0.0f32; BLOCK]; ROWS];
            // A stretch of x that stays in the cache is multiplied by all rows of the block.
            let stretch = (CACHED / padded(piece.rows) / self.of.format.group).max(1);
            for first in (0..groups).step_by(stretch) {
                let at = first * self.of.format.group;
                let moved = |rows: Rows| Rows { data: rows.data.wrapping_add(first), ..rows };
                let elements = Elements {
                    words: elements.words.wrapping_add(at * self.of.format.bits.size / 8),
                    groups: stretch.min(groups - first),
                    scales: moved(elements.scales),
                    biases: elements.biases.map(moved),
                    ..elements
                };
                let sums = Rows { data: sums.get(), row: groups as isize };
                let factors = Factors {
                    rows: Rows {
                        data: x.get().wrapping_add(piece.first * stride + at),
                        row: stride as isize,
                    },
                    count: piece.rows,
                    ordered: is_ordered,
                    sums: Rows { data: sums.at(piece.first).wrapping_add(first), ..sums },
                };
                // SAFETY: parts of rows of the matrix, and as many numbers of x; rows behind it are there.
                unsafe { dot(level, &self.of.format, elements, factors, &mut block) };
            }
            drop(scratch);
            for (r, numbers) in block.iter().enumerate().take(piece.rows) {
                let at = self.row::<S>(piece.first + r, items);
                let step = self.out.strides[2] as isize;
                // SAFETY: numbers of float32, by this function's contract; each task writes its own part of the result.
                unsafe {
                    let numbers = core::slice::from_raw_parts(numbers.as_ptr().cast(), to - from);
                    let to = at.wrapping_offset(from as isize * step);
                    level::at(level, Narrow::<S> { numbers, to, step });
                }
            }
        });
    }

    /// Rows of elements, with the memory of parts that had to be copied: words that are not adjacent, and scales and
    /// biases that are not float32.
    ///
    /// # Safety
    /// There are such rows, and what products of `S` are computed with is float32.
    unsafe fn elements<S: Storage<Acc: From<f32>>>(
        &self,
        second: usize,
        rows: Range<usize>,
    ) -> (Scratch, Elements) {
        let (format, count, first) = (&self.of.format, rows.len(), rows.start);
        let groups = self.k / format.group;
        let in_place = |view: &View<'_>| {
            size_of::<S>() == 4 && self.of.format.is_affine() && view.strides[2] == 1
        };
        let numbers = count * groups * 4;
        let bytes = 2 * numbers + count * self.words.room();
        let scratch = Scratch::new(Slot::Task, bytes);
        let memory = scratch.get();
        let rows_of = |view: &View<'_>, copy: *mut f32| match in_place(view) {
            true => Rows {
                data: view.data.cast::<f32>().wrapping_offset(offset(view, &[second, first])),
                row: view.strides[1] as isize,
            },
            false => Rows { data: copy, row: groups as isize },
        };
        let (scales, biases) = (memory.cast::<f32>(), memory.wrapping_add(numbers).cast::<f32>());
        let words = memory.wrapping_add(2 * numbers);
        // SAFETY: rows of the matrix; there is room for copies of them.
        unsafe {
            for (i, row) in rows.enumerate() {
                let part = |to: *mut f32| {
                    core::slice::from_raw_parts_mut(to.wrapping_add(i * groups).cast(), groups)
                };
                if !in_place(self.scales) {
                    self.read_scales::<S>([second, row, 0], part(scales));
                }
                if let Some(view) = self.biases.filter(|view| !in_place(view)) {
                    read::<S>(view, offset(view, &[second, row]), part(biases));
                }
                if self.words.room() > 0 {
                    self.words.row(&[second, row], words.wrapping_add(i * self.words.room()));
                }
            }
        }
        let elements = Elements {
            words: match self.words.room() {
                0 => self.words.at(&[second, first]),
                _ => words,
            },
            row: match self.words.room() {
                0 => self.words.bytes_to_next(),
                room => room as isize,
            },
            rows: count,
            groups,
            scales: rows_of(self.scales, scales),
            biases: self.biases.map(|view| rows_of(view, biases)),
        };
        (scratch, elements)
    }
}

fn sum(numbers: &[f32]) -> f32 {
    let mut lanes = [0.0f32; 16];
    for chunk in numbers.chunks_exact(16) {
        lanes.iter_mut().zip(chunk).for_each(|(lane, x)| *lane += x);
    }
    lanes.iter().sum()
}
