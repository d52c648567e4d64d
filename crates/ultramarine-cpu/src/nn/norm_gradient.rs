//! RMS_NORM_GRADIENT and LAYER_NORM_GRADIENT, one row at a time. Sums over rows are computed in blocks of rows and
//! joined in order. The number of blocks depends only on shapes.

use super::norm::{moments, numbers};
use super::real::Real;
use super::tensor::{Tensor, narrow};
use crate::dtype::DType;
use crate::kernel::{Args, Context, Kernel, Op, Prepared, Refusal, Signature};
use crate::level::{self, Isa};
use crate::matmul::simd::{Num, Storage};
use crate::par::Shared;
use crate::scratch::{Scratch, Slot};
use half::{bf16, f16};
use ultramarine_abi::schema::NormGradientAttrs;

/// Numbers of a block of rows, at least.
const BLOCK: usize = 1 << 15;
/// Blocks of rows, at most.
const BLOCKS: usize = 256;
/// Rows that are summed consecutively; the sums of such runs are then added.
const RUN: usize = 256;
/// Columns whose sums are joined by a task.
const COLUMNS: usize = 512;
/// Sums that a row is added to.
const LANES: usize = 16;

/// Prepares LAYER_NORM_GRADIENT if `centered`, else RMS_NORM_GRADIENT.
pub fn prepare(op: &Op, centered: bool, signature: &Signature<'_>) -> Prepared {
    let attributes: NormGradientAttrs = op.attributes()?;
    signature.expect(3, if centered { 3 } else { 2 })?;
    let dtype = signature.inputs[0].dtype;
    let all = || signature.inputs.iter().chain(signature.outputs);
    ensure!(all().all(|d| d.dtype == dtype), "a norm's gradient of several dtypes");
    let ranks = [2, 1, 2, 2, 1, 1];
    ensure!(all().zip(ranks).all(|(d, rank)| d.ndim == rank), "a norm's gradient of other ranks");
    if attributes.parameters > 1 {
        return Err(Refusal::Unsupported);
    }
    let parameters = attributes.parameters == 1;
    Ok(match dtype {
        DType::F16 => Box::new(Of::<f16>::new(centered, parameters)),
        DType::BF16 => Box::new(Of::<bf16>::new(centered, parameters)),
        DType::F32 => Box::new(Of::<f32>::new(centered, parameters)),
        DType::F64 => Box::new(Of::<f64>::new(centered, parameters)),
        _ => return Err(Refusal::Unsupported),
    })
}

/// The kernel for tensors of a dtype.
struct Of<S> {
    centered: bool,
    /// Set if gradients with respect to weight and bias are requested.
    parameters: bool,
    dtype: core::marker::PhantomData<fn(S)>,
}

impl<S> Of<S> {
    fn new(centered: bool, parameters: bool) -> Of<S> {
        Of { centered, parameters, dtype: core::marker::PhantomData }
    }
}

impl<S: Storage> Kernel for Of<S>
where
    S::Acc: Real,
{
    unsafe fn run(&self, cx: &Context, args: &Args<'_>) -> Result<(), String> {
        let (inputs, outputs) = (args.inputs, args.outputs);
        let [rows, n] = [0, 1].map(|i| inputs[0].shape[i]);
        let fits = [&inputs[2], &outputs[0]].iter().all(|v| v.shape == [rows, n])
            && outputs[1..].iter().chain([&inputs[1]]).all(|v| v.shape == [n]);
        ensure!(fits, "a norm's gradient of {rows} rows of {n} with tensors of other shapes");
        ensure!(args.scalars.len() == 1, "a norm with {} scalars", args.scalars.len());
        let epsilon = S::Acc::of(f64::from_bits(args.scalars[0][0]));
        let [rows, n] = [rows as usize, n as usize];
        let [x, weight, cotangent] = [0, 1, 2].map(|i| Tensor::new(&inputs[i]));
        let out = Tensor::new(&outputs[0]);
        let each = (BLOCK / n).max(rows.div_ceil(BLOCKS)).max(1);
        let blocks = rows.div_ceil(each);
        let sums = Scratch::new(Slot::Call, blocks * 2 * n * size_of::<S::Acc>());
        let sums = Shared(sums.get().cast::<S::Acc>());
        cx.par.run(blocks, |block| {
            let memory = Scratch::new(Slot::Task, 6 * n * size_of::<S::Acc>());
            let room = memory.get().cast::<S::Acc>();
            // SAFETY: there is room for six rows of numbers, and for two sums of each block, of which no other task writes
            // this one's.
            let (parts, sums) = unsafe {
                let parts =
                    [0, 1, 2, 3, 4, 5].map(|i| core::slice::from_raw_parts_mut(room.add(i * n), n));
                let at = sums.get().wrapping_add(block * 2 * n);
                at.write_bytes(0, 2 * n);
                (parts, [0, 1].map(|i| core::slice::from_raw_parts_mut(at.wrapping_add(i * n), n)))
            };
            let block = Block::<S> {
                centered: self.centered,
                parameters: self.parameters,
                epsilon,
                tensors: [x, weight, cotangent, out],
                rows: block * each..rows.min((block + 1) * each),
                parts,
                sums,
            };
            level::at(cx.level, block);
        });
        if self.parameters {
            cx.par.run(n.div_ceil(COLUMNS), |task| {
                let columns = task * COLUMNS..n.min((task + 1) * COLUMNS);
                for (i, view) in outputs[1..].iter().enumerate() {
                    let mut all = [S::Acc::ZERO; COLUMNS];
                    let all = &mut all[..columns.len()];
                    for block in 0..blocks {
                        let at = sums.get().wrapping_add((2 * block + i) * n + columns.start);
                        // SAFETY: sums of this block that were written.
                        let of = unsafe { core::slice::from_raw_parts(at, columns.len()) };
                        all.iter_mut().zip(of).for_each(|(all, x)| *all = all.plus(*x));
                    }
                    let out = Tensor::new(view);
                    // SAFETY: columns of the output, which no other task writes.
                    unsafe { narrow::<S>(all, out.at([columns.start, 0, 0, 0]), out.strides[0]) };
                }
            });
        }
        Ok(())
    }
}

/// Some rows of x, weight, cotangent and result.
struct Block<'a, S: Storage> {
    centered: bool,
    parameters: bool,
    epsilon: S::Acc,
    tensors: [Tensor; 4],
    rows: core::ops::Range<usize>,
    /// Room for x, weight, cotangent and result as numbers, and for sums of a run of rows.
    parts: [&'a mut [S::Acc]; 6],
    /// The sums over rows of the cotangent times the normalised x, and of the cotangent.
    sums: [&'a mut [S::Acc]; 2],
}

impl<S: Storage> level::Body for Block<'_, S>
where
    S::Acc: Real,
{
    type Output = ();
    #[inline(always)]
    fn call<I: Isa>(self, _: I) {
        let [x, weight, cotangent, out] = self.tensors;
        let [x_room, weight_room, cotangent_room, y, run_weight, run_bias] = self.parts;
        let n = y.len();
        let size = S::Acc::of(n as f64);
        let [by_weight, by_bias] = self.sums;
        // SAFETY: of n elements.
        let weight = unsafe {
            numbers((weight.at::<S>([0; 4]).cast_const(), weight.strides[0]), weight_room)
        };
        run_weight.fill(S::Acc::ZERO);
        run_bias.fill(S::Acc::ZERO);
        let end = self.rows.end;
        for row in self.rows {
            let at = |t: Tensor| (t.at::<S>([row, 0, 0, 0]).cast_const(), t.strides[1]);
            // SAFETY: rows of n elements.
            let (x, cotangent) =
                unsafe { (numbers(at(x), x_room), numbers(at(cotangent), cotangent_room)) };
            let (mean, variance) = moments(x, self.centered);
            let scale = S::Acc::ONE.over(variance.plus(self.epsilon).root());
            let (mut direct, mut along) = ([S::Acc::ZERO; LANES], [S::Acc::ZERO; LANES]);
            for i in 0..n {
                y[i] = x[i].minus(mean).times(scale);
            }
            if self.parameters {
                for i in 0..n {
                    run_weight[i] = run_weight[i].plus(cotangent[i].times(y[i]));
                    run_bias[i] = run_bias[i].plus(cotangent[i]);
                }
                if row % RUN == RUN - 1 || row + 1 == end {
                    for i in 0..n {
                        by_weight[i] = by_weight[i].plus(run_weight[i]);
                        by_bias[i] = by_bias[i].plus(run_bias[i]);
                    }
                    run_weight.fill(S::Acc::ZERO);
                    run_bias.fill(S::Acc::ZERO);
                }
            }
            let whole = n / LANES * LANES;
            for first in (0..whole).step_by(LANES) {
                for lane in 0..LANES {
                    let t = cotangent[first + lane].times(weight[first + lane]);
                    direct[lane] = direct[lane].plus(t);
                    along[lane] = along[lane].plus(t.times(y[first + lane]));
                }
            }
            for i in whole..n {
                let t = cotangent[i].times(weight[i]);
                direct[i - whole] = direct[i - whole].plus(t);
                along[i - whole] = along[i - whole].plus(t.times(y[i]));
            }
            let (mut mean_direct, mut mean_along) = (S::Acc::ZERO, S::Acc::ZERO);
            for lane in 0..LANES {
                mean_direct = mean_direct.plus(direct[lane]);
                mean_along = mean_along.plus(along[lane]);
            }
            let mean_along = mean_along.over(size);
            let mean_direct = if self.centered { mean_direct.over(size) } else { S::Acc::ZERO };
            for i in 0..n {
                let t = cotangent[i].times(weight[i]);
                y[i] = t.minus(mean_direct).minus(y[i].times(mean_along)).times(scale);
            }
            // SAFETY: the output's row, which nothing else uses.
            unsafe { narrow::<S>(y, out.at([row, 0, 0, 0]), out.strides[1]) };
        }
    }
}
