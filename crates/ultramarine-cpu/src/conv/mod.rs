//! CONVOLVE and its gradients: cross-correlations over three spatial axes, with any strides.
//!
//! The gradient with respect to the input is a convolution of the cotangent with the reversed kernel; the strides
//! become its input dilation (Dumoulin and Visin, A guide to convolution arithmetic for deep learning, 2016). The
//! gradient with respect to the weight is a product for each tap (`weight`).
//!
//! With an input dilation of s, only every s-th element that windows read is not zero. Outputs are sorted into classes
//! by the taps of the kernel that meet elements. Each class is a convolution without input dilation (`phases`). Such a
//! convolution is a product of matrices with a row for each output pixel. The left matrix is never stored, but packed
//! from the input (`product`, `windows`). Depthwise convolutions are loops over channels (`depthwise`).
//!
//! The division of work depends only on shapes and the level, and every element of the output is summed in the order of
//! the kernel's taps and channels.

mod depthwise;
mod depthwise_weight;
mod lines;
mod phases;
mod product;
mod weight;
mod windows;

use crate::copy::strided::{self as rectangle, Rect};
use crate::kernel::{Args, Context, Kernel, Op, Prepared, Refusal, Signature, View};
use crate::matmul::ops::{Ops, ops};
use crate::matmul::{self, GRAIN};
use crate::scratch::{Scratch, Slot};
use crate::{dtype::DType, level::Level, strided};
use core::ops::Range;
use ultramarine_abi::schema::{ConvolveAttrs, OpId, op};

/// Prepares CONVOLVE or one of its gradients.
pub fn prepare_op(op: &Op, signature: &Signature<'_>, level: Level) -> Prepared {
    prepare(op.id, op.attributes()?, signature, level)
}

/// Prepares a convolution, or one of its gradients.
pub fn prepare(
    id: OpId,
    attrs: ConvolveAttrs,
    signature: &Signature<'_>,
    level: Level,
) -> Prepared {
    let ([a, b], [c]) = (signature.inputs, signature.outputs) else {
        return Err(Refusal::Invalid("convolve has two inputs and one output".into()));
    };
    ensure!(a.dtype == b.dtype && a.dtype == c.dtype, "convolve of different dtypes");
    ensure!([a, b, c].iter().all(|d| d.ndim == 5), "convolve takes tensors of five dimensions");
    let role = match id {
        op::CONVOLVE => Role::Output,
        op::CONVOLVE_INPUT => Role::Input,
        op::CONVOLVE_WEIGHT => Role::Weight,
        _ => return Err(Refusal::Unsupported),
    };
    matmul::check_precision(attrs.precision)?;
    if attrs.flip > 1 || !matches!(a.dtype, DType::F16 | DType::BF16 | DType::F32 | DType::F64) {
        return Err(Refusal::Unsupported);
    }
    // The context has the level to use; this only checks that there are kernels.
    ops(a.dtype, level).ok_or(Refusal::Unsupported)?;
    Ok(Box::new(Convolve {
        role,
        flip: attrs.flip == 1,
        ops: Level::of_products().iter().filter_map(|l| ops(a.dtype, *l)).collect(),
    }))
}

/// Calls `$body` with `$S` bound to the type of a convolution's elements.
macro_rules! for_storage {
    ($dtype:expr, $S:ident => $body:expr) => {
        match $dtype {
            $crate::dtype::DType::F16 => {
                type $S = half::f16;
                $body
            }
            $crate::dtype::DType::BF16 => {
                type $S = half::bf16;
                $body
            }
            $crate::dtype::DType::F32 => {
                type $S = f32;
                $body
            }
            _ => {
                type $S = f64;
                $body
            }
        }
    };
}
use for_storage;

/// Channels of a tap that are copied at once.
const TURNED: usize = 64;

/// The tensor to be computed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Input,
    Weight,
    Output,
}

struct Convolve {
    role: Role,
    flip: bool,
    /// The functions for each available level.
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

impl Axis {
    /// The element of the input that an output meets with a tap, if any.
    #[inline(always)]
    fn meets(&self, output: usize, tap: usize) -> Option<usize> {
        let at = output as i64 * self.stride - self.low + tap as i64 * self.dilation;
        let met = at % self.spread == 0 && (0..self.input * self.spread).contains(&at);
        met.then_some((at / self.spread) as usize)
    }

    /// The outputs that meet an element with a tap, for an axis without input dilation.
    #[inline(always)]
    fn outputs(&self, tap: usize) -> Range<usize> {
        let shift = self.low - tap as i64 * self.dilation;
        let first = |least: i64| (least.max(0) + self.stride - 1) / self.stride;
        let end = first(self.input + shift).min(self.output);
        first(shift).min(end) as usize..end as usize
    }
}

/// A tensor: address and byte strides.
#[derive(Clone, Copy)]
struct Tensor {
    data: *mut u8,
    strides: [isize; 5],
}

impl Tensor {
    /// The address of an element. Trailing axes may be omitted.
    fn at(&self, index: &[usize]) -> *mut u8 {
        let steps = index.iter().zip(self.strides).map(|(i, s)| *i as isize * s);
        self.data.wrapping_offset(steps.sum())
    }
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

    /// Runs `n` tasks with a total of `work` multiply-adds, on all threads if that is worth it.
    fn run(&self, work: usize, n: usize, task: impl Fn(usize) + Sync) {
        if work < GRAIN / 4 {
            (0..n).for_each(task);
        } else {
            self.cx.par.run(n, task);
        }
    }

    /// Returns true for a depthwise convolution.
    fn is_depthwise(&self) -> bool {
        self.channels == 1 && self.filters == 1 && self.groups > 1
    }

    /// Taps of the kernel.
    fn taps(&self) -> usize {
        self.axes.iter().map(|a| a.kernel as usize).product()
    }

    /// The position of a tap in the kernel.
    fn tap(&self, tap: usize) -> [usize; 3] {
        let [_, h, w] = self.axes.map(|a| a.kernel as usize);
        [tap / (h * w), tap / w % h, tap % w]
    }

    /// The distance in bytes between consecutive pixels, if it is the same for all.
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

/// A row-major copy of a tensor of this shape. Its memory lives as long as the second result.
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
        let ([a, b], [c], scalars) = (args.inputs, args.outputs, args.scalars) else {
            return Err("convolve has two inputs and one output".into());
        };
        let [x, w, y] = match self.role {
            Role::Input => [c, a, b],
            Role::Weight => [a, c, b],
            Role::Output => [a, b, c],
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
        if self.flip {
            for (i, axis) in conv.axes.iter().enumerate() {
                reverse(&mut conv.w, 1 + i, axis.kernel);
            }
        }
        let mut memory = [const { None }; 3];
        // SAFETY (of the calls below): the tensors are valid for their shapes and strides.
        if self.role == Role::Input {
            // SAFETY: see above.
            (conv, memory[0]) = unsafe { backwards(&conv) };
        }
        let sizes = conv.axes.map(|a| a.input as usize);
        // SAFETY: see above.
        (conv.x, memory[1]) =
            unsafe { adjacent(&conv, &conv.x, sizes, conv.groups * conv.channels) };
        if self.role == Role::Weight {
            let sizes = conv.axes.map(|a| a.output as usize);
            // SAFETY: see above.
            (conv.y, memory[2]) =
                unsafe { adjacent(&conv, &conv.y, sizes, conv.groups * conv.filters) };
            // SAFETY: see above; channels and filters are adjacent now.
            unsafe {
                match conv.is_depthwise() && conv.axes.iter().all(|a| a.spread == 1) {
                    true => depthwise_weight::run(&conv),
                    false => weight::run(&conv),
                }
            };
        } else {
            // SAFETY: see above.
            unsafe { phases::run(&conv) };
        }
        drop(memory);
        Ok(())
    }
}

/// Reverses an axis of `n` elements.
fn reverse(t: &mut Tensor, axis: usize, n: i64) {
    let stride = &mut t.strides[axis];
    t.data = t.data.wrapping_offset((n as isize - 1) * *stride);
    *stride = -*stride;
}

/// An input or output with adjacent channels, and the memory of its copy if there is one.
///
/// # Safety
/// The tensor is valid.
unsafe fn adjacent(
    conv: &Conv<'_>,
    tensor: &Tensor,
    [d, h, w]: [usize; 3],
    channels: usize,
) -> (Tensor, Option<Scratch>) {
    let size = conv.dtype.size() as isize;
    if channels > 1 && tensor.strides[4] != size {
        // SAFETY: by this function's contract.
        let (copy, memory) =
            unsafe { compact(conv.cx, conv.dtype, tensor, [conv.batch, d, h, w, channels]) };
        return (copy, Some(memory));
    }
    let [n, d, h, w, _] = tensor.strides;
    (Tensor { data: tensor.data, strides: [n, d, h, w, size] }, None)
}

/// The gradient with respect to the input, as a convolution of the cotangent, and the memory of that convolution's
/// weight.
///
/// # Safety
/// The tensors are valid.
unsafe fn backwards<'a>(conv: &Conv<'a>) -> (Conv<'a>, Option<Scratch>) {
    let size = conv.dtype.size() as isize;
    let axes = conv.axes.map(|a| Axis {
        input: a.output,
        kernel: a.kernel,
        output: a.input,
        stride: a.spread,
        low: (a.kernel - 1) * a.dilation - a.low,
        dilation: a.dilation,
        spread: a.stride,
    });
    // Swap filters and channels within each group, and reverse the kernel.
    let mut w = conv.w;
    for (i, axis) in axes.iter().enumerate() {
        reverse(&mut w, 1 + i, axis.kernel);
    }
    let memory = Scratch::new(
        Slot::Call,
        conv.groups * conv.channels * conv.taps() * conv.filters * size as usize,
    );
    let shape = [
        conv.channels,
        axes[0].kernel as usize,
        axes[1].kernel as usize,
        axes[2].kernel as usize,
        conv.filters,
    ];
    let mut strides = [size; 5];
    (0..4).rev().for_each(|i| strides[i] = strides[i + 1] * shape[i + 1] as isize);
    let turned = Tensor { data: memory.get(), strides };
    // SAFETY: the weight is valid, the memory is new and of its size.
    unsafe { turn(conv, &w, &turned) };
    let back = Conv {
        channels: conv.filters,
        filters: conv.channels,
        axes,
        x: conv.y,
        w: turned,
        y: conv.x,
        ..*conv
    };
    (back, Some(memory))
}

/// Copies a weight with filters and channels swapped within each group.
///
/// # Safety
/// Both tensors are valid; `to` is row-major.
unsafe fn turn(conv: &Conv<'_>, from: &Tensor, to: &Tensor) {
    // Wrapped in a type that threads may share.
    let both = &Conv { w: *from, y: *to, ..*conv };
    let (channels, filters, size) = (conv.channels, conv.filters, conv.dtype.size());
    let blocks = channels.div_ceil(TURNED);
    let block = |i: usize| {
        let (i, first) = (i / blocks, i % blocks * TURNED);
        let (group, [d, h, w]) = (i / conv.taps(), conv.tap(i % conv.taps()));
        let rows = TURNED.min(channels - first);
        let target = Rect {
            data: both.y.at(&[group * channels + first, d, h, w]),
            rows: both.y.strides[0],
            columns: size as isize,
        };
        let source = Rect {
            data: both.w.at(&[group * filters, d, h, w, first]),
            rows: both.w.strides[4],
            columns: both.w.strides[0],
        };
        // SAFETY: some channels and all filters of a tap; each call has its own.
        unsafe { rectangle::copy(conv.cx.level, target, source, rows, filters, size) }
    };
    conv.run(
        conv.groups * conv.taps() * channels * filters,
        conv.groups * conv.taps() * blocks,
        block,
    );
}

/// Runs a convolution without input dilation.
///
/// # Safety
/// Its tensors are valid; the input's channels lie next to each other.
unsafe fn dense(conv: &Conv<'_>) {
    let size = conv.dtype.size() as isize;
    let [d, h, w] = conv.axes.map(|a| a.kernel as usize);
    let mut conv = *conv;
    // A filter's weights have to be in the order of the kernel's taps and channels.
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
        if conv.is_depthwise() {
            return depthwise::run(&conv);
        }
        if plain(&conv) {
            return;
        }
        match conv.ops.groups.filter(|ops| conv.channels.is_multiple_of(ops.group)) {
            Some(ops) => product::run(&grouped(&conv, &ops.of_groups())),
            None => product::run(&conv),
        }
    }
}

/// The same convolution, in which a group of channels counts as one element of the input and the weight.
fn grouped<'a>(conv: &Conv<'a>, ops: &'a Ops) -> Conv<'a> {
    let size = DType::U32.size() as isize;
    let elements = |t: &Tensor| {
        let [n, d, h, w, _] = t.strides;
        Tensor { data: t.data, strides: [n, d, h, w, size] }
    };
    let (x, w) = (elements(&conv.x), elements(&conv.w));
    Conv { ops, dtype: DType::U32, channels: conv.channels / ops.group, x, w, ..*conv }
}

/// Runs a convolution that is a single product of two matrices: its kernel has one tap, which meets each pixel of the
/// input once. Returns false for other convolutions.
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
