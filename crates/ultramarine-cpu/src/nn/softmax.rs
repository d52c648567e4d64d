//! SOFTMAX and LOGSUMEXP over the last axes, one row at a time. A row stays in cache while its exponentials are
//! computed, added and scaled. Rows that are longer than a task are read twice.

use super::exponentials::{
    Add, CHUNK, LANES, PART, Sum, exponentials, fetch, finite, in_parts, largest,
};
use super::real::Real;
use super::tensor::{narrow, widen};
use crate::copy::strided::{self, stream_bytes};
use crate::kernel::{Args, Context, Kernel, Op, Prepared, Refusal, Signature};
use crate::level::{self, Isa};
use crate::matmul::simd::{Num, Storage};
use crate::scratch::{Scratch, Slot};
use crate::{dtype::DType, par::Shared};
use core::ops::Range;
use half::{bf16, f16};
use ultramarine_abi::schema::AxesAttrs;

/// Rows up to this length are processed several at a time, one row per lane. One by one, they would wait for their own
/// results.
const SHORT: usize = 32;

/// Prepares SOFTMAX, or LOGSUMEXP.
pub fn prepare(op: &Op, logsumexp: bool, signature: &Signature<'_>) -> Prepared {
    signature.expect(1, 1)?;
    let axes = op.attributes::<AxesAttrs>()?.axes;
    let (x, out) = (signature.inputs[0], signature.outputs[0]);
    ensure!((x.dtype, x.ndim) == (out.dtype, out.ndim), "softmax to another dtype or rank");
    let kept = axes.trailing_zeros() as usize;
    // Other axes would read columns, which compositions do in blocks.
    if kept >= x.ndim || axes != (!0 >> (64 - x.ndim)) & (!0 << kept) || !out.contiguous {
        return Err(Refusal::Unsupported);
    }
    if !x.contiguous {
        return Err(Refusal::NeedsContiguous);
    }
    Ok(match x.dtype {
        DType::F16 => Box::new(Of::<f16>::new(logsumexp, kept)),
        DType::BF16 => Box::new(Of::<bf16>::new(logsumexp, kept)),
        DType::F32 => Box::new(Of::<f32>::new(logsumexp, kept)),
        DType::F64 => Box::new(Of::<f64>::new(logsumexp, kept)),
        _ => return Err(Refusal::Unsupported),
    })
}

/// The kernel for tensors of a dtype.
struct Of<S> {
    logsumexp: bool,
    /// Axes before those of a row.
    kept: usize,
    dtype: core::marker::PhantomData<fn(S)>,
}

impl<S> Of<S> {
    fn new(logsumexp: bool, kept: usize) -> Of<S> {
        Of { logsumexp, kept, dtype: core::marker::PhantomData }
    }
}

impl<S: Storage> Kernel for Of<S>
where
    S::Acc: Real,
{
    unsafe fn run(&self, cx: &Context, args: &Args<'_>) -> Result<(), String> {
        let (x, out) = (&args.inputs[0], &args.outputs[0]);
        let (rows, row) = x.shape.split_at(self.kept);
        let (rows, size) = (rows.iter().product::<i64>(), row.iter().product::<i64>());
        let expected = if self.logsumexp { rows } else { rows * size };
        ensure!(
            out.size() as i64 == expected && out.shape[..self.kept] == x.shape[..self.kept],
            "softmax of {:?} to {:?}",
            x.shape,
            out.shape
        );
        let call = Call {
            cx,
            logsumexp: self.logsumexp,
            from: Shared(x.data.cast::<S>()),
            to: Shared(out.data.cast::<S>()),
            rows: rows as usize,
            size: size as usize,
            // Short rows end in the middle of cache lines.
            streamed: size as usize > SHORT && out.size() * size_of::<S>() >= stream_bytes(),
        };
        // SAFETY: the tensors are contiguous, and their shapes were checked.
        unsafe { if call.size > PART { call.in_parts() } else { call.whole() } }
        Ok(())
    }
}

struct Call<'a, S> {
    cx: &'a Context,
    logsumexp: bool,
    from: Shared<S>,
    to: Shared<S>,
    rows: usize,
    size: usize,
    streamed: bool,
}

impl<S: Storage> Call<'_, S>
where
    S::Acc: Real,
{
    /// Rows of a task or less.
    ///
    /// # Safety
    /// The tensors are contiguous, of the call's sizes.
    unsafe fn whole(&self) {
        let room = match self.size > SHORT {
            true => self.size.next_multiple_of(LANES),
            false => self.size * LANES,
        };
        in_parts(self.cx.par, (self.rows, self.size), |rows, _| {
            let memory = Scratch::new(Slot::Task, room * size_of::<S::Acc>());
            // SAFETY: there is room for a row; the tensors have these rows, which no other task writes.
            unsafe {
                let room = core::slice::from_raw_parts_mut(memory.get().cast(), room);
                let first = rows.start * if self.logsumexp { 1 } else { self.size };
                let body = Rows {
                    logsumexp: self.logsumexp,
                    from: self.from.get().add(rows.start * self.size),
                    to: self.to.get().add(first),
                    rows: rows.len(),
                    size: self.size,
                    room,
                    streamed: self.streamed,
                };
                level::at(self.cx.level, body);
            }
            if self.streamed {
                strided::fence();
            }
        });
    }

    /// Rows that are longer than a task.
    ///
    /// # Safety
    /// As [`Call::whole`].
    unsafe fn in_parts(&self) {
        let parts = self.size.div_ceil(PART);
        let memory = Scratch::new(Slot::Call, self.rows * parts * size_of::<Sum<S::Acc>>());
        let sums = Shared(memory.get().cast::<Sum<S::Acc>>());
        let each = |body: &(dyn Fn(usize, Range<usize>) + Sync)| {
            in_parts(self.cx.par, (self.rows, self.size), |rows, part| body(rows.start, part));
        };
        each(&|row, part| {
            let from = self.from.get().wrapping_add(row * self.size + part.start);
            let sum = level::at(self.cx.level, Add { from, step: 1, size: part.len() });
            // SAFETY: there is room for each part; no other task writes this one.
            unsafe { sums.get().add(row * parts + part.start / PART).write(sum) };
        });
        // The place of the first part receives the row's sum.
        for row in 0..self.rows {
            // SAFETY: all parts were written.
            unsafe {
                let of_row = core::slice::from_raw_parts_mut(sums.get().add(row * parts), parts);
                of_row[0] = of_row.iter().fold(Sum::NOTHING, |a, b| a.join(*b));
                if self.logsumexp {
                    *self.to.get().add(row) = S::narrow(of_row[0].logarithm());
                }
            }
        }
        if self.logsumexp {
            return;
        }
        each(&|row, part| {
            // SAFETY: the row's sum; the part is in the tensors, and no other task writes it.
            unsafe {
                let first = row * self.size + part.start;
                let body = Quotients {
                    from: self.from.get().add(first),
                    to: self.to.get().add(first),
                    size: part.len(),
                    of: *sums.get().add(row * parts),
                    streamed: self.streamed,
                };
                level::at(self.cx.level, body);
            }
            if self.streamed {
                strided::fence();
            }
        });
    }
}

/// Writes numbers to adjacent elements, bypassing the caches if `streamed`.
///
/// # Safety
/// There are as many elements, and nothing else uses them meanwhile.
#[inline(always)]
unsafe fn write<S: Storage, I: Isa>(from: &[S::Acc], to: *mut S, streamed: bool) {
    // The same size says the same type.
    if streamed && size_of::<S>() == size_of::<S::Acc>() {
        // SAFETY: by this function's contract.
        unsafe { strided::stream(I::LEVEL, to.cast(), from.as_ptr().cast(), size_of_val(from)) };
    } else {
        // SAFETY: as above.
        unsafe { narrow(from, to, 1) };
    }
}

/// Rows behind one another.
struct Rows<'a, S: Storage> {
    logsumexp: bool,
    from: *const S,
    to: *mut S,
    rows: usize,
    size: usize,
    /// Room for whole lanes of a row, or of the elements of a short one.
    room: &'a mut [S::Acc],
    /// Rows are written past the caches.
    streamed: bool,
}

impl<S: Storage> level::Body for Rows<'_, S>
where
    S::Acc: Real,
{
    type Output = ();
    #[inline(always)]
    fn call<I: Isa>(mut self, _: I) {
        let mut row = 0;
        // SAFETY: the rows are in the tensors.
        unsafe {
            while self.size <= SHORT && row + LANES <= self.rows {
                self.block::<I>(row);
                row += LANES;
            }
            while row < self.rows {
                self.row::<I>(row);
                row += 1;
            }
        }
    }
}

impl<S: Storage> Rows<'_, S>
where
    S::Acc: Real,
{
    /// # Safety
    /// There is such a row.
    #[inline(always)]
    unsafe fn row<I: Isa>(&mut self, row: usize) {
        let n = self.size;
        let room = &mut self.room[..n.next_multiple_of(LANES)];
        // SAFETY: by this function's contract.
        unsafe {
            widen(self.from.add(row * n), 1, &mut room[..n]);
            // Their exponentials are 0.
            room[n..].fill(S::Acc::NEG_INFINITY);
            let top = largest(room);
            if self.logsumexp {
                let sum = exponentials::<I, _>(room, finite(top));
                *self.to.add(row) = S::narrow(Sum { top, sum }.logarithm());
                return;
            }
            // An infinite maximum makes NaN of infinite elements, and so of the sum.
            let scale = S::Acc::ONE.over(exponentials::<I, _>(room, top));
            room.iter_mut().for_each(|x| *x = x.times(scale));
            write::<S, I>(&room[..n], self.to.add(row * n), self.streamed);
        }
    }

    /// As many short rows as there are lanes.
    ///
    /// # Safety
    /// There are such rows, from `first` on.
    #[inline(always)]
    unsafe fn block<I: Isa>(&mut self, first: usize) {
        let n = self.size;
        let from = self.from.wrapping_add(first * n);
        let (columns, _) = self.room[..n * LANES].as_chunks_mut::<LANES>();
        let mut tops = [S::Acc::NEG_INFINITY; LANES];
        for (j, column) in columns.iter_mut().enumerate() {
            for l in 0..LANES {
                // SAFETY: by this function's contract.
                column[l] = unsafe { *from.add(l * n + j) }.widen();
                tops[l] = if column[l] > tops[l] { column[l] } else { tops[l] };
            }
        }
        let mut shifts = tops;
        if self.logsumexp {
            for shift in &mut shifts {
                *shift = finite(*shift);
            }
        }
        let mut sums = [S::Acc::ZERO; LANES];
        for column in columns.iter_mut() {
            for l in 0..LANES {
                column[l] = column[l].minus(shifts[l]).exp::<I>();
                sums[l] = sums[l].plus(column[l]);
            }
        }
        if self.logsumexp {
            for (l, (top, sum)) in tops.into_iter().zip(sums).enumerate() {
                // SAFETY: as above.
                unsafe { *self.to.add(first + l) = S::narrow(Sum { top, sum }.logarithm()) };
            }
            return;
        }
        let mut scales = [S::Acc::ONE; LANES];
        for l in 0..LANES {
            scales[l] = scales[l].over(sums[l]);
        }
        let to = self.to.wrapping_add(first * n);
        for (j, column) in columns.iter().enumerate() {
            for l in 0..LANES {
                // SAFETY: as above.
                unsafe { *to.add(l * n + j) = S::narrow(column[l].times(scales[l])) };
            }
        }
    }
}

/// Part of a row of softmax.
struct Quotients<S: Storage> {
    from: *const S,
    to: *mut S,
    size: usize,
    /// The row's sum.
    of: Sum<S::Acc>,
    /// It is written past the caches.
    streamed: bool,
}

impl<S: Storage> level::Body for Quotients<S>
where
    S::Acc: Real,
{
    type Output = ();
    #[inline(always)]
    fn call<I: Isa>(self, _: I) {
        let Sum { top, sum } = self.of;
        // The quotients are zero by zero and infinity by infinity.
        let scale = if top.is_finite() { S::Acc::ONE.over(sum) } else { top.minus(top) };
        let mut chunk = [S::Acc::ZERO; CHUNK];
        for first in (0..self.size).step_by(CHUNK) {
            let chunk = &mut chunk[..CHUNK.min(self.size - first)];
            // SAFETY: within the part, which nothing else writes.
            unsafe {
                widen(self.from.add(first), 1, chunk);
                fetch(self.from.wrapping_add(first + CHUNK), 1, CHUNK);
                // Do not use a closure here, because it would be compiled without the level's instructions.
                for x in chunk.iter_mut() {
                    *x = x.minus(top).exp::<I>().times(scale);
                }
                write::<S, I>(chunk, self.to.add(first), self.streamed);
            }
        }
    }
}
