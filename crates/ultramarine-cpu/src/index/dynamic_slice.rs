//! DYNAMIC_SLICE and DYNAMIC_SLICE_UPDATE: the window of a tensor whose start is read from memory.

use super::indices::{OutOfRange, add_offsets};
use crate::kernel::{Args, Context, Desc, Kernel, Prepared, Refusal, Signature, View};
use crate::{level::Level, strided::copy};
use ultramarine_abi::schema::DynamicSliceAttrs;

/// The axes to which the starts apply.
struct Starts {
    axes: Vec<usize>,
}

struct Slice(Starts);

struct SliceUpdate(Starts);

/// Prepares DYNAMIC_SLICE.
pub fn prepare(attrs: DynamicSliceAttrs, signature: &Signature<'_>, _level: Level) -> Prepared {
    let ([source, starts], [output]) = (signature.inputs, signature.outputs) else {
        return Err(Refusal::Invalid("dynamic_slice takes a source and starts".into()));
    };
    let starts = Starts::new(&attrs, starts, &[source, output])?;
    Ok(Box::new(Slice(starts)))
}

/// Prepares DYNAMIC_SLICE_UPDATE.
pub fn prepare_update(
    attrs: DynamicSliceAttrs,
    signature: &Signature<'_>,
    _level: Level,
) -> Prepared {
    let ([source, starts, update], [output]) = (signature.inputs, signature.outputs) else {
        let what = "dynamic_slice_update takes a source, starts and an update";
        return Err(Refusal::Invalid(what.into()));
    };
    let starts = Starts::new(&attrs, starts, &[source, update, output])?;
    Ok(Box::new(SliceUpdate(starts)))
}

impl Starts {
    /// Checks the attributes against the starts and the other tensors.
    fn new(attrs: &DynamicSliceAttrs, starts: &Desc, others: &[&Desc]) -> Result<Self, Refusal> {
        let (n, first) = (attrs.n_starts as usize, others[0]);
        ensure!(n <= attrs.axes.len(), "a dynamic slice of more starts than axes");
        let axes: Vec<usize> = attrs.axes[..n].iter().map(|a| usize::from(*a)).collect();
        let distinct = |(i, a): (usize, &usize)| *a < first.ndim && !axes[..i].contains(a);
        ensure!(
            starts.ndim == 1
                && others.iter().all(|d| (d.dtype, d.ndim) == (first.dtype, first.ndim))
                && axes.iter().enumerate().all(distinct),
            "a dynamic slice: ranks, dtypes or axes do not fit"
        );
        if !starts.dtype.is_int() {
            return Err(Refusal::Unsupported);
        }
        Ok(Starts { axes })
    }

    /// The window of the given shape in `whole`, clamped so that it is inside.
    ///
    /// # Safety
    /// The starts are valid, of the dtype that was prepared for.
    unsafe fn window<'a>(
        &self,
        whole: &View<'a>,
        starts: &View<'_>,
        shape: &'a [i64],
    ) -> Result<View<'a>, String> {
        ensure!(
            starts.shape[0] == self.axes.len() as i64
                && shape.iter().zip(whole.shape).all(|(n, all)| n <= all),
            "a dynamic slice: the starts or the window do not fit"
        );
        let mut offset = [0isize];
        for (i, axis) in self.axes.iter().enumerate() {
            let bytes = i as isize * starts.strides[0] as isize * starts.dtype.size() as isize;
            let start = starts.data.wrapping_offset(bytes);
            // Size 0, because negative starts are not counted from the end.
            let limits = (0, whole.shape[*axis] - shape[*axis] + 1);
            let (step, clamp) = (whole.strides[*axis] as isize, OutOfRange::Clamp);
            // SAFETY: `start` is one of the starts.
            unsafe {
                let level = Level::Baseline;
                add_offsets(level, starts.dtype, start, 0, limits, step, clamp, &mut offset)
            };
        }
        let data = whole.data.wrapping_offset(offset[0] * whole.dtype.size() as isize);
        Ok(View { data, shape, ..*whole })
    }
}

impl Kernel for Slice {
    unsafe fn run(&self, cx: &Context, args: &Args<'_>) -> Result<(), String> {
        let (source, starts, output) = (&args.inputs[0], &args.inputs[1], &args.outputs[0]);
        // SAFETY: valid tensors (the kernel's contract); the window lies within the source.
        unsafe { copy(cx.par, &self.0.window(source, starts, output.shape)?, output) };
        Ok(())
    }
}

impl Kernel for SliceUpdate {
    unsafe fn run(&self, cx: &Context, args: &Args<'_>) -> Result<(), String> {
        let [source, starts, update] = args.inputs else {
            return Err("dynamic_slice_update takes three inputs".into());
        };
        let output = &args.outputs[0];
        ensure!(source.shape == output.shape, "the output has another shape than its source");
        // SAFETY: valid tensors; source and output are the same memory only where the source is donated, and the
        // update is none of that; the window lies within the output.
        unsafe {
            let window = self.0.window(output, starts, update.shape)?;
            copy(cx.par, source, output);
            copy(cx.par, update, &window);
        }
        Ok(())
    }
}
