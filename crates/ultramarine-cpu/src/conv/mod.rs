//! CONVOLVE: cross-correlations over three spatial axes, of any strides.
//!
//! An input dilation of s means that only every s-th element of what windows see is not
//! zero. Outputs are sorted by which taps of the kernel meet elements: each class is
//! a convolution without input dilation (`phases`). What is left then is a product of matrices:
//! a row for each output pixel, which is never written out but packed from the input
//! (`product`, `windows`), or, where each channel is by itself, a loop over channels (`depthwise`).
//!
//! How work is cut depends on shapes and the level only, and every element of the
//! output is summed in the order of the kernel's taps and channels.

mod depthwise;
mod phases;
mod product;
#[cfg(test)]
mod tests;
mod windows;

use crate::kernel::{Args, Context, Kernel, Prepared, Refusal, Signature, View};
use crate::matmul;
use crate::matmul::ops::{Ops, ops};
use crate::scratch::{Scratch, Slot};
use crate::{dtype::DType, level::Level, strided};
use ultramarine_abi::schema::ConvolveAttrs;

/// Prepares CONVOLVE.
pub fn prepare(attrs: ConvolveAttrs, signature: &Signature<'_>, level: Level) -> Prepared {
    let ([x, w], [y]) = (signature.inputs, signature.outputs) else {
        return Err(Refusal::Invalid("convolve has two inputs and one output".into()));
    };
    ensure!(x.dtype == w.dtype && x.dtype == y.dtype, "convolve of different dtypes");
    ensure!([x, w, y].iter().all(|d| d.ndim == 5), "convolve takes tensors of five dimensions");
    if attrs.flip > 1 || !matches!(x.dtype, DType::F16 | DType::BF16 | DType::F32 | DType::F64) {
        return Err(Refusal::Unsupported);
    }
    // The level is the context's; here it only matters whether there are kernels.
    ops(x.dtype, level).ok_or(Refusal::Unsupported)?;
    Ok(Box::new(Convolve {
        flip: attrs.flip == 1,
        ops: Level::available().iter().filter_map(|l| ops(x.dtype, *l)).collect(),
    }))
}

struct Convolve {
    flip: bool,
    /// The functions for each level that is available.
    ops: Vec<Ops>,
}

/// A spatial axis: output `o` meets tap `k` of the kernel at `o * stride - low + k *
/// dilation` of the input, between whose elements lie `spread - 1` zeros.
#[derive(Clone, Copy)]
struct Axis {
    input: i64,
    kernel: i64,
    output: i64,
    stride: i64,
    low: i64,
    dilation: i64,
    spread: i64,
}

/// A tensor: address and byte strides.
#[derive(Clone, Copy)]
struct Tensor {
    data: *mut u8,
    strides: [isize; 5],
}

/// A convolution: input `(n, d, h, w, groups * channels)`, weight `(groups * filters, kd, kh,
/// kw, channels)`, output `(n, od, oh, ow, groups * filters)`.
#[derive(Clone, Copy)]
struct Conv<'a> {
    cx: &'a Context,
    ops: &'a Ops,
    dtype: DType,
    batch: usize,
    groups: usize,
    /// Of a group.
    channels: usize,
    /// Of a group.
    filters: usize,
    axes: [Axis; 3],
    x: Tensor,
    w: Tensor,
    y: Tensor,
}

// SAFETY: the addresses may be used from any thread while the call that made the
// convolution runs; tasks write disjoint parts of the output.
unsafe impl Sync for Conv<'_> {}

impl Conv<'_> {
    /// Output pixels.
    fn pixels(&self) -> usize {
        self.batch * self.axes.iter().map(|a| a.output as usize).product::<usize>()
    }

    /// Taps of the kernel.
    fn taps(&self) -> usize {
        self.axes.iter().map(|a| a.kernel as usize).product()
    }

    /// The bytes from one pixel to the next, where that is the same for all.
    fn pitch(&self, t: &Tensor, sizes: [usize; 4]) -> Option<isize> {
        let mut pitch = None;
        let mut expected = 0;
        for (size, stride) in sizes.iter().zip(t.strides).rev() {
            if *size == 1 {
                continue;
            }
            if pitch.is_some() && stride != expected {
                return None;
            }
            pitch = pitch.or(Some(stride));
            expected = stride * *size as isize;
        }
        Some(pitch.unwrap_or(0))
    }

    /// The output's [`Conv::pitch`].
    fn output_pitch(&self) -> Option<isize> {
        let [d, h, w] = self.axes.map(|a| a.output as usize);
        self.pitch(&self.y, [self.batch, d, h, w])
    }
}

fn tensor(v: &View<'_>) -> Tensor {
    let size = v.dtype.size() as isize;
    let mut strides = [0; 5];
    for (to, from) in strides.iter_mut().zip(v.strides) {
        *to = *from as isize * size;
    }
    Tensor { data: v.data, strides }
}

/// A row-major copy of a tensor of this shape, in memory that lives as long as the second.
///
/// # Safety
/// The tensor is valid.
unsafe fn compact(cx: &Context, dtype: DType, t: &Tensor, shape: [usize; 5]) -> (Tensor, Scratch) {
    let size = dtype.size() as isize;
    let shape = shape.map(|n| n as i64);
    let from = t.strides.map(|s| (s / size) as i64);
    let mut to = [1; 5];
    for i in (0..4).rev() {
        to[i] = to[i + 1] * shape[i + 1];
    }
    let bytes = (to[0] * shape[0]) as usize * dtype.size();
    let memory = Scratch::new(Slot::Call, bytes);
    let source = View { data: t.data, dtype, shape: &shape, strides: &from };
    let target = View { data: memory.get(), dtype, shape: &shape, strides: &to };
    // SAFETY: the source is valid, the target is new memory of its size.
    unsafe { strided::copy(cx.par, &source, &target) };
    (Tensor { data: memory.get(), strides: to.map(|s| s as isize * size) }, memory)
}

impl Convolve {
    /// The convolution that a command asks for.
    fn read<'a>(&'a self, cx: &'a Context, args: &Args<'_>) -> Result<Conv<'a>, String> {
        let ([x, w], [y], scalars) = (args.inputs, args.outputs, args.scalars) else {
            return Err("convolve has two inputs and one output".into());
        };
        ensure!(scalars.len() == 12, "convolve with {} scalars", scalars.len());
        let scalar = |i: usize| scalars[i][0] as i64;
        let axes = [0, 1, 2].map(|i| Axis {
            input: x.shape[1 + i],
            kernel: w.shape[1 + i],
            output: y.shape[1 + i],
            stride: scalar(i),
            low: scalar(3 + i),
            dilation: scalar(6 + i),
            spread: scalar(9 + i),
        });
        if axes.iter().any(|a| a.stride < 1 || a.dilation < 1 || a.spread < 1) {
            return Err("convolve: strides and dilations are at least 1".into());
        }
        let reach = |a: &Axis| {
            let last = (a.output - 1).checked_mul(a.stride)?;
            let taps = (a.kernel - 1).checked_mul(a.dilation)?;
            last.checked_add(taps)?.checked_sub(a.low)?.checked_add(a.input.checked_mul(a.spread)?)
        };
        if axes.iter().any(|a| reach(a).is_none()) {
            return Err("convolve: strides, dilations or padding are too large".into());
        }
        let (channels, filters) = (w.shape[4], w.shape[0]);
        let groups = x.shape[4] / channels;
        if x.shape[4] != groups * channels
            || groups == 0
            || filters % groups != 0
            || y.shape[4] != filters
            || y.shape[0] != x.shape[0]
        {
            return Err(format!("convolve of {:?} and {:?} to {:?}", x.shape, w.shape, y.shape));
        }
        Ok(Conv {
            cx,
            ops: self.ops.get(cx.level as usize).ok_or("the level is not available")?,
            dtype: x.dtype,
            batch: x.shape[0] as usize,
            groups: groups as usize,
            channels: channels as usize,
            filters: (filters / groups) as usize,
            axes,
            x: tensor(x),
            w: tensor(w),
            y: tensor(y),
        })
    }
}

impl Kernel for Convolve {
    unsafe fn run(&self, cx: &Context, args: &Args<'_>) -> Result<(), String> {
        let mut conv = self.read(cx, args)?;
        let size = conv.dtype.size() as isize;
        if self.flip {
            for (i, axis) in conv.axes.iter().enumerate() {
                let stride = &mut conv.w.strides[1 + i];
                let last = (axis.kernel as isize - 1) * *stride;
                conv.w.data = conv.w.data.wrapping_offset(last);
                *stride = -*stride;
            }
        }
        let channels = conv.groups * conv.channels;
        let _copy = (channels > 1 && conv.x.strides[4] != size).then(|| {
            let [d, h, w] = conv.axes.map(|a| a.input as usize);
            // SAFETY: the input is valid.
            let (x, memory) =
                unsafe { compact(cx, conv.dtype, &conv.x, [conv.batch, d, h, w, channels]) };
            conv.x = x;
            memory
        });
        conv.x.strides[4] = size;
        // SAFETY: the tensors are valid for their shapes and strides.
        unsafe { phases::run(&conv) };
        Ok(())
    }
}

/// Runs a convolution without input dilation.
///
/// # Safety
/// Its tensors are valid; the input's channels lie next to each other.
unsafe fn dense(conv: &Conv<'_>) {
    let size = conv.dtype.size() as isize;
    let [d, h, w] = conv.axes.map(|a| a.kernel as usize);
    if conv.channels == 1 && conv.filters == 1 && conv.groups > 1 {
        // SAFETY: passed on.
        return unsafe { depthwise::run(conv) };
    }
    let mut conv = *conv;
    // The weights of a filter have to lie as the kernel's taps and channels are counted.
    let mut expected = size;
    let mut straight = true;
    for (i, n) in [d, h, w, conv.channels].into_iter().enumerate().rev() {
        straight &= n == 1 || conv.w.strides[1 + i] == expected;
        expected *= n as isize;
    }
    let _copy = (!straight).then(|| {
        let shape = [conv.groups * conv.filters, d, h, w, conv.channels];
        // SAFETY: the weight is valid.
        let (w, memory) = unsafe { compact(conv.cx, conv.dtype, &conv.w, shape) };
        conv.w = w;
        memory
    });
    // SAFETY: passed on; the weights were just brought into order.
    unsafe {
        if !plain(&conv) {
            product::run(&conv)
        }
    }
}

/// Runs what is a product of two matrices as it stands: a kernel of one tap that meets
/// each pixel of the input once. False if it is not.
///
/// # Safety
/// As [`dense`].
unsafe fn plain(conv: &Conv<'_>) -> bool {
    let plain = |a: &Axis| a.kernel == 1 && a.stride == 1 && a.low == 0 && a.input == a.output;
    if conv.groups > 1 || !conv.axes.iter().all(plain) {
        return false;
    }
    let [d, h, w] = conv.axes.map(|a| a.input as usize);
    let from = conv.pitch(&conv.x, [conv.batch, d, h, w]);
    let (Some(from), Some(to)) = (from, conv.output_pitch()) else { return false };
    let size = conv.dtype.size() as isize;
    let matrices = [
        (conv.x.data, [from, size]),
        (conv.w.data, [size, conv.w.strides[0]]),
        (conv.y.data, [to, conv.y.strides[4]]),
    ];
    let sizes = [conv.pixels(), conv.filters, conv.channels];
    // SAFETY: rows are pixels of the input and the output, columns channels and filters.
    unsafe { matmul::matmul(conv.cx, conv.ops, sizes, matrices) };
    true
}
