//! QUANTIZED_MATMUL.

use super::dot::{ROWS, STRETCH};
use super::format::{Format, Words, offset};
use crate::dtype::DType;
use crate::kernel::{Args, Context, Kernel, Prepared, Refusal, Signature, View};
use crate::level::{self, Level};
use crate::matmul::items::{Item, Picked, by_second};
use crate::matmul::ops::{Ops, ops};
use crate::matmul::simd::Storage;
use crate::nn::tensor::{narrow, widen};
use crate::par::Shared;
use crate::scratch::{Scratch, Slot};
use half::{bf16, f16};
use ultramarine_abi::schema::QuantizedMatmulAttrs;

/// Number of rows up to which elements are decoded for [`ROWS`] rows at a time, instead of being decoded to memory.
const FEW: usize = 64;
/// Smallest amount of numbers that a task reads or writes.
pub(super) const TASK: usize = 1 << 14;

/// Numbers of float32 in a line of the cache.
const LINE: usize = 16;

/// Prepares QUANTIZED_MATMUL.
pub fn prepare(attributes: QuantizedMatmulAttrs, signature: &Signature<'_>) -> Prepared {
    let QuantizedMatmulAttrs { mode, bits, group, transpose, biases, global_scale, .. } =
        attributes;
    let QuantizedMatmulAttrs { lhs_indices, rhs_indices, .. } = attributes;
    let format = Format::new(mode, bits, group)?;
    let flags = [transpose, lhs_indices, rhs_indices];
    if flags.iter().any(|flag| *flag > 1)
        || biases != u32::from(format.is_affine())
        || global_scale > u32::from(group == 16)
    {
        return Err(Refusal::Unsupported);
    }
    let there = [biases, global_scale, lhs_indices, rhs_indices];
    signature.expect(3 + there.iter().sum::<u32>() as usize, 1)?;
    let dtype = signature.outputs[0].dtype;
    let mut expected = vec![dtype, DType::U32, if biases == 1 { dtype } else { DType::U8 }];
    let others = [dtype, DType::F32, DType::I32, DType::I32];
    expected.extend(there.iter().zip(others).filter(|(there, _)| **there == 1).map(|(_, d)| d));
    let dtypes = signature.inputs.iter().map(|d| d.dtype);
    ensure!(dtypes.eq(expected), "a quantized product of other dtypes");
    let mut ranks = vec![3; 3 + biases as usize];
    ranks.resize(signature.inputs.len(), 1);
    let found = signature.inputs.iter().map(|d| d.ndim);
    ensure!(found.eq(ranks), "a quantized product of other ranks");
    ensure!(signature.outputs[0].ndim == 3, "a quantized product of other ranks");
    let wide = if dtype == DType::F64 { DType::F64 } else { DType::F32 };
    let made = Quantized {
        format,
        transpose: transpose == 1,
        there: there.map(|flag| flag == 1),
        ops: Level::of_products().iter().filter_map(|l| ops(wide, *l)).collect(),
    };
    Ok(match dtype {
        DType::F16 => Box::new(Of::<f16>::new(made)),
        DType::BF16 => Box::new(Of::<bf16>::new(made)),
        DType::F32 => Box::new(Of::<f32>::new(made)),
        DType::F64 => Box::new(Of::<f64>::new(made)),
        _ => return Err(Refusal::Unsupported),
    })
}

pub(super) struct Quantized {
    pub format: Format,
    pub transpose: bool,
    /// Set for each of biases, global scales and indices of both factors that is present.
    there: [bool; 4],
    /// The functions for the type of the computation, for each available level.
    pub ops: Vec<Ops>,
}

struct Of<S> {
    of: Quantized,
    dtype: core::marker::PhantomData<fn(S)>,
}

impl<S> Of<S> {
    fn new(of: Quantized) -> Of<S> {
        Of { of, dtype: core::marker::PhantomData }
    }
}

/// The tensors of a call.
pub(super) struct Call<'a> {
    pub cx: &'a Context,
    pub of: &'a Quantized,
    x: &'a View<'a>,
    pub words: Words<'a>,
    pub scales: &'a View<'a>,
    pub biases: Option<&'a View<'a>>,
    global: Option<&'a View<'a>>,
    pub out: &'a View<'a>,
    m: usize,
    pub k: usize,
    pub n: usize,
}

impl<S: Storage<Acc: From<f32>>> Kernel for Of<S> {
    unsafe fn run(&self, cx: &Context, args: &Args<'_>) -> Result<(), String> {
        let (of, [x, words, scales]) = (&self.of, [0, 1, 2].map(|i| &args.inputs[i]));
        let mut rest = args.inputs[3..].iter();
        let [biases, global, lhs, rhs] =
            of.there.map(|there| if there { rest.next() } else { None });
        let out = &args.outputs[0];
        let (items, [m, k, n]) = (out.shape[0], [x.shape[1], x.shape[2], out.shape[2]]);
        let (rows, columns) = if of.transpose { (n, k) } else { (k, n) };
        let count = words.shape[0];
        let (group, width) = (of.format.group as i64, of.format.words(columns as usize) as i64);
        let given = |indices: Option<&View<'_>>, matrices: i64| match indices {
            Some(indices) => indices.shape == [items],
            None => matrices == items,
        };
        let fits = columns % group == 0
            && out.shape[1] == m
            && words.shape == [count, rows, width]
            && scales.shape == [count, rows, columns / group]
            && biases.is_none_or(|b| b.shape == scales.shape)
            && global.is_none_or(|g| g.shape == [count])
            && given(lhs, x.shape[0])
            && given(rhs, count);
        ensure!(
            fits,
            "a quantized product of {:?} and {:?} to {:?}",
            x.shape,
            words.shape,
            out.shape
        );
        let [m, k, n] = [m, k, n].map(|size| size as usize);
        let words = Words::new(words);
        let call = Call { cx, of, x, words, scales, biases, global, out, m, k, n };
        // SAFETY: the tensors are valid, and their shapes were checked.
        unsafe {
            let (lhs, rhs) = (Picked::new(lhs, x.shape[0]), Picked::new(rhs, count));
            call.run::<S>(&by_second(items as usize, lhs, rhs))
        }
        Ok(())
    }
}

/// Rows of x that are multiplied by one matrix.
#[derive(Clone, Copy)]
pub(super) struct Part {
    pub second: usize,
    /// The first row, among those of all items.
    pub first: usize,
    pub rows: usize,
}

impl Call<'_> {
    /// Multiplies all items.
    ///
    /// # Safety
    /// The tensors are valid, and of the call's shapes; `S` is the elements of x.
    unsafe fn run<S: Storage<Acc: From<f32>>>(&self, items: &[Item]) {
        let (level, rows) = (self.cx.level, items.len() * self.m);
        let mut parts: Vec<Part> = Vec::new();
        for (i, item) in items.iter().enumerate() {
            match parts.last_mut() {
                Some(part) if part.second == item.second => part.rows += self.m,
                _ => parts.push(Part { second: item.second, first: i * self.m, rows: self.m }),
            }
        }
        // The rows as numbers, one after the other. A few more rows are read than exist.
        let stride = self.stride();
        let bytes = (rows + ROWS) * stride * size_of::<S::Acc>();
        let scratch = Scratch::new(Slot::Operands, bytes);
        let x = Shared(scratch.get().cast::<S::Acc>());
        let each = TASK.div_ceil(self.k);
        self.cx.par.run((rows + ROWS).div_ceil(each), |task| {
            for row in task * each..(rows + ROWS).min((task + 1) * each) {
                // SAFETY: each task writes its own rows.
                let to = unsafe {
                    core::slice::from_raw_parts_mut(x.get().wrapping_add(row * stride), stride)
                };
                let (to, behind) = to.split_at_mut(self.k);
                behind.fill(S::Acc::default());
                match items.get(row / self.m) {
                    Some(item) => {
                        let at = offset(self.x, &[item.first, row % self.m]);
                        let from = self.x.data.cast::<S>().wrapping_offset(at).cast_const();
                        let step = self.x.strides[2] as isize;
                        level::at(level, Widen::<S> { from, step, to });
                    }
                    None => to.fill(S::Acc::default()),
                }
            }
        });
        // float64 has no kernel that decodes while it multiplies.
        let single = size_of::<S::Acc>() == 4 && self.of.transpose;
        let (few, many): (Vec<Part>, Vec<Part>) =
            parts.into_iter().partition(|part| single && part.rows <= FEW);
        // SAFETY: by this function's contract; numbers of four bytes are float32.
        unsafe {
            if !few.is_empty() {
                self.few::<S>((Shared(x.get().cast()), rows + ROWS), &few, items);
            }
            let all = core::slice::from_raw_parts(x.get(), (rows + ROWS) * stride);
            for part in many {
                self.many::<S>(all, part, items);
            }
        }
    }

    /// Distance in numbers between rows of x: whole stretches plus a cache line, so that the elements of a column do
    /// not compete for the same cache set.
    pub(super) fn stride(&self) -> usize {
        self.k.next_multiple_of(STRETCH.max(LINE)) + LINE
    }

    /// Where a row of the result begins.
    pub(super) fn row<S>(&self, row: usize, items: &[Item]) -> *mut S {
        let place = items[row / self.m].place;
        self.out.data.cast::<S>().wrapping_offset(offset(self.out, &[place, row % self.m]))
    }

    /// Reads scales, from one's index on.
    ///
    /// # Safety
    /// There are as many groups of such a row of such a matrix.
    pub(super) unsafe fn read_scales<S: Storage<Acc: From<f32>>>(
        &self,
        index: [usize; 3],
        to: &mut [S::Acc],
    ) {
        let at = (self.scales, offset(self.scales, &index));
        // SAFETY: by this function's contract.
        unsafe {
            let global = self.global_scale(index[0]);
            self.of.format.read_scales::<S>(self.cx.level, at, global, to);
        }
    }

    /// The global scale of a matrix.
    ///
    /// # Safety
    /// There is such a matrix.
    unsafe fn global_scale(&self, second: usize) -> Option<f32> {
        self.global.map(|global| {
            // SAFETY: there is one for each matrix.
            unsafe { *global.data.cast::<f32>().wrapping_offset(offset(global, &[second])) }
        })
    }
}

/// A row of x as numbers.
struct Widen<'a, S: Storage> {
    from: *const S,
    step: isize,
    to: &'a mut [S::Acc],
}

impl<S: Storage> level::Body for Widen<'_, S> {
    type Output = ();
    #[inline(always)]
    fn call<I: level::Isa>(self, _: I) {
        // SAFETY: whoever made this says that there are as many.
        unsafe { widen(self.from, self.step, self.to) }
    }
}

/// A row of the result from numbers.
pub(super) struct Narrow<'a, S: Storage> {
    pub numbers: &'a [S::Acc],
    pub to: *mut S,
    pub step: isize,
}

impl<S: Storage> level::Body for Narrow<'_, S> {
    type Output = ();
    #[inline(always)]
    fn call<I: level::Isa>(self, _: I) {
        // SAFETY: whoever made this says that there are as many, and that nothing else uses them.
        unsafe { narrow(self.numbers, self.to, self.step) };
    }
}
