//! DEQUANTIZE.

use super::expand::codes;
use super::format::{Format, Words, offset, read};
use crate::kernel::{Args, Context, Kernel, Prepared, Refusal, Signature};
use crate::level::{self, Body, Isa};
use crate::matmul::simd::{Num, Storage};
use crate::nn::{real::Real, tensor::narrow};
use crate::{dtype::DType, scratch::Scratch, scratch::Slot};
use half::{bf16, f16};
use ultramarine_abi::schema::DequantizeAttrs;

/// Elements of a task, at least.
const TASK: usize = 1 << 14;

/// Prepares DEQUANTIZE.
pub fn prepare(attributes: DequantizeAttrs, signature: &Signature<'_>) -> Prepared {
    let DequantizeAttrs { mode, bits, group, biases, global_scale, .. } = attributes;
    let format = Format::new(mode, bits, group)?;
    if biases != u32::from(format.is_affine()) || global_scale > u32::from(group == 16) {
        return Err(Refusal::Unsupported);
    }
    signature.expect(2 + (biases + global_scale) as usize, 1)?;
    let dtype = signature.outputs[0].dtype;
    let mut expected = vec![DType::U32, if biases == 1 { dtype } else { DType::U8 }];
    expected.extend((biases == 1).then_some(dtype));
    expected.extend((global_scale == 1).then_some(DType::F32));
    ensure!(signature.inputs.iter().map(|d| d.dtype).eq(expected), "dequantize of other dtypes");
    let ranks = signature.inputs[..2 + biases as usize].iter().chain(signature.outputs);
    ensure!(ranks.map(|d| d.ndim).all(|n| n == 2), "dequantize of other ranks");
    Ok(match dtype {
        DType::F16 => Box::new(Of::<f16>::new(format)),
        DType::BF16 => Box::new(Of::<bf16>::new(format)),
        DType::F32 => Box::new(Of::<f32>::new(format)),
        DType::F64 => Box::new(Of::<f64>::new(format)),
        _ => return Err(Refusal::Unsupported),
    })
}

struct Of<S> {
    format: Format,
    dtype: core::marker::PhantomData<fn(S)>,
}

impl<S> Of<S> {
    fn new(format: Format) -> Of<S> {
        Of { format, dtype: core::marker::PhantomData }
    }
}

/// One or more groups of codes, scaled and rounded to the dtype: first the product, then the sum.
struct Round<'a, S: Storage> {
    codes: &'a [f32],
    group: usize,
    scales: &'a [S::Acc],
    biases: &'a [S::Acc],
    numbers: &'a mut [S::Acc],
    to: *mut S,
    step: isize,
}

impl<S: Storage<Acc: From<f32> + Real>> Body for Round<'_, S> {
    type Output = ();
    #[inline(always)]
    fn call<I: Isa>(self, _: I) {
        let groups =
            self.codes.chunks_exact(self.group).zip(self.numbers.chunks_exact_mut(self.group));
        for (g, (codes, to)) in groups.enumerate() {
            let scale = self.scales[g];
            for (to, code) in to.iter_mut().zip(codes) {
                // Nothing is added here, so that -0 is kept.
                *to = Real::times((*code).into(), scale);
            }
            if let Some(bias) = self.biases.get(g) {
                for to in to.iter_mut() {
                    *to = S::narrow(*to).widen().plus(*bias);
                }
            }
        }
        // SAFETY: as many elements are writable, and nothing else uses them.
        unsafe { narrow(self.numbers, self.to, self.step) };
    }
}

impl<S: Storage<Acc: From<f32> + Real>> Kernel for Of<S> {
    unsafe fn run(&self, cx: &Context, args: &Args<'_>) -> Result<(), String> {
        let (format, inputs, out) = (&self.format, args.inputs, &args.outputs[0]);
        let ([words, scales], [rows, columns]) =
            ([&inputs[0], &inputs[1]], [out.shape[0], out.shape[1]]);
        let affine = format.is_affine();
        let groups = columns as usize / format.group;
        let fits = (columns as usize).is_multiple_of(format.group)
            && words.shape == [rows, format.words(columns as usize) as i64]
            && scales.shape == [rows, groups as i64]
            && (!affine || inputs[2].shape == scales.shape);
        ensure!(fits, "dequantize of {:?} to {:?}", words.shape, out.shape);
        let global = match inputs.len() {
            // SAFETY: a float32, by the signature.
            3 if !affine => Some(unsafe { *inputs[2].data.cast::<f32>() }),
            _ => None,
        };
        let biases = affine.then(|| &inputs[2]);
        let (rows, columns) = (rows as usize, columns as usize);
        let each = TASK.div_ceil(columns);
        let words = Words::new(words);
        cx.par.run(rows.div_ceil(each), |task| {
            let room = columns * (4 + size_of::<S::Acc>())
                + 2 * groups * size_of::<S::Acc>()
                + words.room();
            let scratch = Scratch::new(Slot::Task, room);
            // SAFETY: the scratch has room for these, and the numbers of the widest type are first.
            let (numbers, scale, bias, code) = unsafe {
                let numbers = scratch.get().cast::<S::Acc>();
                let (scale, bias) = (numbers.add(columns), numbers.add(columns + groups));
                let code = bias.add(groups).cast::<f32>();
                (
                    core::slice::from_raw_parts_mut(numbers, columns),
                    core::slice::from_raw_parts_mut(scale, groups),
                    core::slice::from_raw_parts_mut(bias, if affine { groups } else { 0 }),
                    core::slice::from_raw_parts_mut(code, columns),
                )
            };
            let copy = code.as_mut_ptr_range().end.cast::<u8>();
            for row in task * each..rows.min((task + 1) * each) {
                // SAFETY: rows of the tensors; each task writes its own.
                unsafe {
                    codes(cx.level, &format.bits, words.row(&[row], copy), code);
                    let at = (scales, offset(scales, &[row]));
                    format.read_scales::<S>(cx.level, at, global, scale);
                    if let Some(biases) = biases {
                        read::<S>(biases, offset(biases, &[row]), bias);
                    }
                    level::at(
                        cx.level,
                        Round::<S> {
                            codes: code,
                            group: format.group,
                            scales: scale,
                            biases: bias,
                            numbers,
                            to: out.data.cast::<S>().wrapping_offset(offset(out, &[row])),
                            step: out.strides[1] as isize,
                        },
                    );
                }
            }
        });
        Ok(())
    }
}
