//! ROPE: pairs of elements of the last axis are rotated, a row at a time.

use super::real::Real;
use super::rows::Rows;
use crate::dtype::DType;
use crate::kernel::{Args, Context, Kernel, Op, Prepared, Refusal, Signature};
use crate::level::{self, Isa};
use crate::matmul::simd::{Num, Storage};
use half::{bf16, f16};
use ultramarine_abi::schema::RopeAttrs;

/// Elements of a task, at least.
const TASK: usize = 1 << 15;

/// Prepares ROPE.
pub fn prepare(op: &Op, signature: &Signature<'_>) -> Prepared {
    let attributes: RopeAttrs = op.attributes()?;
    if attributes.traditional > 1 || attributes.inverse > 1 {
        return Err(Refusal::Unsupported);
    }
    signature.expect(3, 1)?;
    let (inputs, out) = (signature.inputs, signature.outputs[0]);
    let wide = if out.dtype == DType::F64 { DType::F64 } else { DType::F32 };
    let dtypes = inputs.iter().map(|d| d.dtype);
    ensure!(dtypes.eq([out.dtype, wide, wide]), "rope of other dtypes");
    ensure!(inputs.iter().all(|d| d.ndim == out.ndim), "rope of other ranks");
    ensure!(out.ndim > 0 && attributes.pairs > 0, "rope of nothing");
    Ok(match out.dtype {
        DType::F16 => Box::new(Of::<f16>::new(attributes)),
        DType::BF16 => Box::new(Of::<bf16>::new(attributes)),
        DType::F32 => Box::new(Of::<f32>::new(attributes)),
        DType::F64 => Box::new(Of::<f64>::new(attributes)),
        _ => return Err(Refusal::Unsupported),
    })
}

/// The kernel for tensors of a dtype.
struct Of<S> {
    attributes: RopeAttrs,
    dtype: core::marker::PhantomData<fn(S)>,
}

impl<S> Of<S> {
    fn new(attributes: RopeAttrs) -> Of<S> {
        Of { attributes, dtype: core::marker::PhantomData }
    }
}

impl<S: Storage> Kernel for Of<S>
where
    S::Acc: Real,
{
    unsafe fn run(&self, cx: &Context, args: &Args<'_>) -> Result<(), String> {
        let ([x, cos, sin], [out]) = (args.inputs, args.outputs) else {
            return Err("rope has three inputs and one output".into());
        };
        let pairs = self.attributes.pairs as usize;
        let last = out.shape.len() - 1;
        let n = out.shape[last] as usize;
        let fits = x.shape == out.shape
            && 2 * pairs <= n
            && [cos, sin].iter().all(|table| {
                table.shape[..last] == out.shape[..last] && table.shape[last] as usize == pairs
            });
        ensure!(fits, "rope of {:?} with tensors of other shapes", out.shape);
        let [x, cos, sin, to] = [x, cos, sin, out].map(Rows::new);
        let rows = out.size() / n;
        let each = (TASK / n).max(1);
        cx.par.run(rows.div_ceil(each), |task| {
            for row in task * each..rows.min((task + 1) * each) {
                let row = Row::<S> {
                    pairs,
                    size: n,
                    traditional: self.attributes.traditional == 1,
                    inverse: self.attributes.inverse == 1,
                    x: (x.at(row), x.step),
                    cos: (cos.at(row), cos.step),
                    sin: (sin.at(row), sin.step),
                    to: (to.at(row), to.step),
                };
                level::at(cx.level, row);
            }
        });
        Ok(())
    }
}

/// One row: the first elements of all tensors, and their steps.
struct Row<S: Storage> {
    pairs: usize,
    size: usize,
    traditional: bool,
    inverse: bool,
    x: (*const S, isize),
    cos: (*const S::Acc, isize),
    sin: (*const S::Acc, isize),
    to: (*mut S, isize),
}

/// Rotates a pair. Products are rounded before they are added; no multiply-add is contracted.
#[inline(always)]
fn rotated<S: Storage>(inverse: bool, [a, b]: [S; 2], cos: S::Acc, sin: S::Acc) -> [S; 2]
where
    S::Acc: Real,
{
    let (a, b) = (a.widen(), b.widen());
    let (ac, bs, sa, bc) = (a.times(cos), b.times(sin), a.times(sin), b.times(cos));
    match inverse {
        false => [S::narrow(ac.minus(bs)), S::narrow(sa.plus(bc))],
        true => [S::narrow(ac.plus(bs)), S::narrow(bc.minus(sa))],
    }
}

impl<S: Storage> Row<S>
where
    S::Acc: Real,
{
    /// Rotates pairs made of the two halves, if the elements are adjacent.
    ///
    /// # Safety
    /// All tensors have the row, nothing else uses the output's, and all steps are 1.
    #[inline(always)]
    unsafe fn halves(&self) {
        let n = self.pairs;
        // SAFETY: by this function's contract.
        unsafe {
            let of = |from: *const S| core::slice::from_raw_parts(from, n);
            let (a, b) = (of(self.x.0), of(self.x.0.add(n)));
            let cos = core::slice::from_raw_parts(self.cos.0, n);
            let sin = core::slice::from_raw_parts(self.sin.0, n);
            let left = core::slice::from_raw_parts_mut(self.to.0, n);
            let right = core::slice::from_raw_parts_mut(self.to.0.add(n), n);
            for i in 0..n {
                [left[i], right[i]] = rotated(self.inverse, [a[i], b[i]], cos[i], sin[i]);
            }
        }
    }
}

impl<S: Storage> level::Body for Row<S>
where
    S::Acc: Real,
{
    type Output = ();
    #[inline(always)]
    fn call<I: Isa>(self, _: I) {
        let steps = [self.x.1, self.cos.1, self.sin.1, self.to.1];
        let from = |i: usize| self.x.0.wrapping_offset(i as isize * self.x.1);
        let to = |i: usize| self.to.0.wrapping_offset(i as isize * self.to.1);
        // SAFETY: the tensors have the row, with as many elements, and nothing else uses the output's.
        unsafe {
            if !self.traditional && steps == [1; 4] {
                self.halves();
            } else {
                for i in 0..self.pairs {
                    let [a, b] = match self.traditional {
                        true => [2 * i, 2 * i + 1],
                        false => [i, self.pairs + i],
                    };
                    let cos = *self.cos.0.wrapping_offset(i as isize * self.cos.1);
                    let sin = *self.sin.0.wrapping_offset(i as isize * self.sin.1);
                    [*to(a), *to(b)] = rotated(self.inverse, [*from(a), *from(b)], cos, sin);
                }
            }
            for i in 2 * self.pairs..self.size {
                *to(i) = *from(i);
            }
        }
    }
}
