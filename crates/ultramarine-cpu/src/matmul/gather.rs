//! GATHER_MATMUL: rows that are multiplied by the same matrix are gathered, and multiplied
//! together.

use super::items::{Item, Picked, by_second};
use super::ops::{Ops, ops};
use super::{Matrix, Product, matrix, multiply};
use crate::dtype::DType;
use crate::kernel::{Args, Context, Kernel, Prepared, Refusal, Signature, View};
use crate::level::Level;
use crate::par::Shared;
use crate::scratch::{Scratch, Slot};
use ultramarine_abi::schema::GatherMatmulAttrs;

/// Number of rows from which on items are multiplied in place.
const ENOUGH: usize = 32;
/// Bytes of rows that a task copies, at least.
const TASK: usize = 1 << 16;

/// Prepares GATHER_MATMUL.
pub fn prepare(attributes: GatherMatmulAttrs, signature: &Signature<'_>) -> Prepared {
    let GatherMatmulAttrs { lhs_indices, rhs_indices, .. } = attributes;
    let there = [lhs_indices, rhs_indices];
    if there.iter().any(|flag| *flag > 1) {
        return Err(Refusal::Unsupported);
    }
    signature.expect(2 + there.iter().sum::<u32>() as usize, 1)?;
    let dtype = signature.outputs[0].dtype;
    if !matches!(dtype, DType::F16 | DType::BF16 | DType::F32 | DType::F64) {
        return Err(Refusal::Unsupported);
    }
    let expected = [dtype, dtype, DType::I32, DType::I32];
    let found = signature.inputs.iter().map(|d| d.dtype);
    let expected = expected.into_iter().take(signature.inputs.len());
    ensure!(found.eq(expected), "gathered products of other dtypes");
    let ranks = signature.inputs.iter().map(|d| d.ndim);
    let expected = [3, 3, 1, 1].into_iter().take(signature.inputs.len());
    ensure!(
        ranks.eq(expected) && signature.outputs[0].ndim == 3,
        "gathered products of other ranks"
    );
    Ok(Box::new(GatherMatmul {
        there: there.map(|flag| flag == 1),
        ops: Level::of_products().iter().filter_map(|l| ops(dtype, *l)).collect(),
    }))
}

struct GatherMatmul {
    /// Set for each factor that has indices.
    there: [bool; 2],
    /// The functions for each level that is available.
    ops: Vec<Ops>,
}

impl Kernel for GatherMatmul {
    unsafe fn run(&self, cx: &Context, args: &Args<'_>) -> Result<(), String> {
        let ([a, b], out) = ([&args.inputs[0], &args.inputs[1]], &args.outputs[0]);
        let mut rest = args.inputs[2..].iter();
        let [lhs, rhs] = self.there.map(|there| if there { rest.next() } else { None });
        let (items, [m, k, n]) = (out.shape[0], [a.shape[1], a.shape[2], b.shape[2]]);
        let given = |indices: Option<&View<'_>>, matrices: i64| match indices {
            Some(indices) => indices.shape == [items],
            None => matrices == items,
        };
        let fits = b.shape[1] == k
            && out.shape[1..] == [m, n]
            && given(lhs, a.shape[0])
            && given(rhs, b.shape[0]);
        ensure!(fits, "gathered products of {:?} and {:?} to {:?}", a.shape, b.shape, out.shape);
        let ops = self.ops.get(cx.level as usize).ok_or("the level is not available")?;
        let [m, k, n] = [m, k, n].map(|size| size as usize);
        // SAFETY: indices are int32, one for each item.
        let items = unsafe {
            by_second(items as usize, Picked::new(lhs, a.shape[0]), Picked::new(rhs, b.shape[0]))
        };
        let call = Call { cx, ops, a, b, out, m, k, n };
        let mut rest = &items[..];
        while let Some(first) = rest.first() {
            let same = rest.iter().take_while(|item| item.second == first.second).count();
            let (these, others) = rest.split_at(same);
            // SAFETY: the tensors are valid, and their shapes were checked.
            unsafe {
                if same == 1 || m >= ENOUGH {
                    these.iter().for_each(|item| call.in_place(item));
                } else {
                    call.gathered(these);
                }
            }
            rest = others;
        }
        Ok(())
    }
}

struct Call<'a> {
    cx: &'a Context,
    ops: &'a Ops,
    a: &'a View<'a>,
    b: &'a View<'a>,
    out: &'a View<'a>,
    m: usize,
    k: usize,
    n: usize,
}

/// A matrix of a stack.
fn nth(view: &View<'_>, i: usize) -> Matrix {
    let of = matrix(view);
    let step = view.strides[0] as isize * view.dtype.size() as isize;
    Matrix { data: of.data.wrapping_offset(i as isize * step), ..of }
}

impl Call<'_> {
    fn product(&self, factors: [Matrix; 3], m: usize) -> Product<'_> {
        Product::new(self.ops, [m, self.n, self.k], factors)
    }

    /// Multiplies an item in place.
    ///
    /// # Safety
    /// The tensors are valid, and have the item's matrices.
    unsafe fn in_place(&self, item: &Item) {
        let of = [nth(self.a, item.first), nth(self.b, item.second), nth(self.out, item.place)];
        // SAFETY: by this function's contract.
        unsafe { multiply(&self.cx.par, &self.product(of, self.m), self.cx.level) }
    }

    /// Multiplies all items of one matrix together.
    ///
    /// # Safety
    /// As [`Self::in_place`].
    unsafe fn gathered(&self, items: &[Item]) {
        let (size, rows) = (self.ops.storage, items.len() * self.m);
        let scratch = Scratch::new(Slot::Operands, rows * (self.k + self.n) * size);
        let own = |data: *mut u8, columns: usize| Matrix {
            data,
            row: (columns * size) as isize,
            col: size as isize,
        };
        let (left, result) = (
            own(scratch.get(), self.k),
            own(scratch.get().wrapping_add(rows * self.k * size), self.n),
        );
        let row = |of: Matrix, r: usize| of.data.wrapping_offset(r as isize * of.row);
        let at = |view: &View<'_>, i: usize, r: usize| row(nth(view, i), r % self.m);
        let from = Shared(left.data);
        let to = Shared(result.data);
        let (a_step, out_step) = (matrix(self.a).col, matrix(self.out).col);
        // SAFETY: rows of the tensors and of the scratch; each task writes its own.
        unsafe {
            self.each_row(rows, self.k, |r| {
                let to = row(Matrix { data: from.get(), ..left }, r);
                copy(
                    size,
                    self.k,
                    (at(self.a, items[r / self.m].first, r).cast_const(), a_step),
                    (to, size as isize),
                );
            });
            let of = [left, nth(self.b, items[0].second), result];
            multiply(&self.cx.par, &self.product(of, rows), self.cx.level);
            self.each_row(rows, self.n, |r| {
                let from = row(Matrix { data: to.get(), ..result }, r);
                let to = at(self.out, items[r / self.m].place, r);
                copy(size, self.n, (from.cast_const(), size as isize), (to, out_step));
            });
        }
    }

    /// Calls `body` with each row, on all threads if there is enough to copy.
    fn each_row(&self, rows: usize, columns: usize, body: impl Fn(usize) + Sync) {
        let each = TASK.div_ceil(columns * self.ops.storage);
        self.cx.par.run(rows.div_ceil(each), |task| {
            (task * each..rows.min((task + 1) * each)).for_each(&body);
        });
    }
}

/// Copies elements of `size` bytes, from and to places with steps in bytes.
///
/// # Safety
/// There are as many at both places, which are disjoint.
unsafe fn copy(size: usize, n: usize, from: (*const u8, isize), to: (*mut u8, isize)) {
    // SAFETY: by this function's contract.
    unsafe {
        if from.1 == size as isize && to.1 == size as isize {
            return core::ptr::copy_nonoverlapping(from.0, to.0, n * size);
        }
        for i in 0..n as isize {
            let (from, to) = (from.0.wrapping_offset(i * from.1), to.0.wrapping_offset(i * to.1));
            core::ptr::copy_nonoverlapping(from, to, size);
        }
    }
}
