//! Programs whose anchor is a norm. If the value that the norm reads is not an output, both kernels process a block of
//! rows before the next one, and the value stays in cache. An output has to be in memory anyway, so the kernels then
//! run one after the other.

use super::prepare::build;
use super::run::IN_PLACE;
use super::source::Source;
use crate::dtype::DType;
use crate::kernel::{Args, Context, Desc, Kernel, Prepared, Refusal, Signature, View};
use crate::level::Level;
use crate::nn;
use crate::par::{Par, Shared};
use crate::scratch::{Scratch, Slot};
use std::sync::Mutex;
use ultramarine_abi::fused::{self, position};
use ultramarine_abi::schema::op;

/// Smallest number of elements of a task.
const TASK: usize = 16 << 10;

/// Prepares a program with an anchor of the boundary.
///
/// # Safety
/// The program's arrays have the lengths that it says.
pub unsafe fn prepare_anchored(
    program: &fused::Program,
    anchor: &fused::Anchor,
    signature: &Signature<'_>,
    level: Level,
) -> Prepared {
    let norm = matches!(anchor.op, op::RMS_NORM | op::LAYER_NORM);
    if !norm || (anchor.revision, anchor.position) != (1, position::LAST) {
        return Err(Refusal::Unsupported);
    }
    ensure!(program.reduce == fused::NO_REDUCTION, "a program with an anchor and a reduction");
    // SAFETY: passed on from the caller.
    let mut source = unsafe { Source::decode(program)? };
    let n = program.n_inputs as usize;
    ensure!(signature.inputs.len() >= n, "fewer inputs than the program has");
    let (own, others) = signature.inputs.split_at(n);
    let [to, written @ ..] = signature.outputs else {
        return Err(Refusal::Invalid("a program without outputs".into()));
    };
    ensure!(source.outputs.len() == signature.outputs.len(), "outputs differ from the tensors");
    let value = source.outputs[0];
    let dtype = source.dtype(own, value);
    let dtype = dtype.ok_or_else(|| Refusal::Invalid("an output names no value".into()))?;
    let desc = Desc { dtype, ndim: to.ndim, contiguous: true };
    let mut inputs = vec![desc];
    inputs.extend(others);
    let anchor = {
        let signature = Signature { inputs: &inputs, outputs: &signature.outputs[..1] };
        nn::norm::prepare(anchor.op == op::LAYER_NORM, &signature)?
    };
    let (work, constants) = (source.instructions.len() + 1, source.constants.len());
    // Write the value only once.
    let read = source.outputs[1..].iter().position(|o| *o == value);
    let mut outputs = Vec::new();
    match read {
        Some(_) => _ = source.outputs.remove(0),
        None => outputs.push(desc),
    }
    outputs.extend(written);
    let program = build(source, &Signature { inputs: own, outputs: &outputs }, level)?;
    Ok(Box::new(Anchored { program, anchor, own: n, read, dtype, work, constants }))
}

/// A program and the norm of one of its values.
struct Anchored {
    program: Box<dyn Kernel>,
    anchor: Box<dyn Kernel>,
    /// Inputs of the program.
    own: usize,
    /// Index of the further output that the norm reads; if there is none, the value is in scratch memory.
    read: Option<usize>,
    /// The value's dtype.
    dtype: DType,
    /// Number of steps plus one.
    work: usize,
    /// Number of scalars of the program; the norm's scalars follow them.
    constants: usize,
}

/// The rows of a command's tensors: every tensor's strides over the leading axes, joined where all tensors lie together.
struct Rows {
    /// Sizes and the tensors' strides, the innermost last.
    axes: Vec<(usize, Vec<i64>)>,
    /// Elements of a row, and the tensors' strides in it.
    n: i64,
    along: Vec<i64>,
}

impl Rows {
    fn new<'a>(shape: &[i64], tensors: impl Iterator<Item = &'a View<'a>> + Clone) -> Option<Rows> {
        let (n, leading) = shape.split_last()?;
        let mut axes: Vec<(usize, Vec<i64>)> = Vec::new();
        for (i, size) in leading.iter().enumerate().filter(|(_, size)| **size != 1) {
            let strides: Vec<i64> = tensors.clone().map(|t| t.strides[i]).collect();
            match axes.last_mut() {
                Some((outer, far)) if far.iter().zip(&strides).all(|(f, s)| *f == s * size) => {
                    (*outer, *far) = (*outer * *size as usize, strides);
                }
                _ => axes.push((*size as usize, strides)),
            }
        }
        let along: Vec<i64> = tensors.map(|t| t.strides[leading.len()]).collect();
        if axes.is_empty() {
            axes.push((1, vec![0; along.len()]));
        }
        Some(Rows { axes, n: *n, along })
    }

    /// Elements before row `inner` of a place of the outer axes.
    fn offset(&self, tensor: usize, mut outer: usize, inner: usize) -> i64 {
        let Some(((_, last), rest)) = self.axes.split_last() else { return 0 };
        let mut offset = inner as i64 * last[tensor];
        for (size, strides) in rest.iter().rev() {
            offset += (outer % size) as i64 * strides[tensor];
            outer /= size;
        }
        offset
    }
}

impl Anchored {
    /// Runs the program, then the norm of `value`. `first` tells whether the value is the first output of the program
    /// as it was prepared.
    ///
    /// # Safety
    /// As [`Kernel::run`]; the value's memory overlaps no other tensor's, unless it is an output.
    unsafe fn both(
        &self,
        cx: &Context,
        args: &Args<'_>,
        value: View<'_>,
        first: bool,
    ) -> Result<(), String> {
        let (own, others) = args.inputs.split_at(self.own);
        let (numbers, rest) = args.scalars.split_at(self.constants);
        let written: Vec<View<'_>> =
            first.then_some(value).into_iter().chain(args.outputs[1..].iter().copied()).collect();
        let operands: Vec<View<'_>> =
            core::iter::once(value).chain(others.iter().copied()).collect();
        let program = Args { inputs: own, outputs: &written, scalars: numbers };
        let anchor = Args { inputs: &operands, outputs: &args.outputs[..1], scalars: rest };
        // SAFETY: passed on from the caller.
        unsafe { self.program.run(cx, &program).and_then(|()| self.anchor.run(cx, &anchor)) }
    }
}

impl Kernel for Anchored {
    unsafe fn run(&self, cx: &Context, args: &Args<'_>) -> Result<(), String> {
        let shape = args.outputs[0].shape;
        let tensors = args.inputs.iter().chain(args.outputs);
        if let Some(other) = tensors.clone().find(|t| t.shape != shape) {
            return Err(format!("a norm of {shape:?} with a tensor of {:?}", other.shape));
        }
        ensure!(args.scalars.len() >= self.constants, "{} scalars", args.scalars.len());
        if let Some(output) = self.read {
            let value = args.outputs[1 + output];
            // SAFETY: passed on from the caller; the program's outputs are written before the norm begins.
            return unsafe { self.both(cx, args, value, false) };
        }
        let rows = Rows::new(shape, tensors.clone()).ok_or("a norm of a tensor without axes")?;
        let inner = rows.axes.last().map_or(1, |axis| axis.0);
        let outer: usize = rows.axes[..rows.axes.len() - 1].iter().map(|axis| axis.0).product();
        let n = rows.n as usize;
        let block = (IN_PLACE / self.work / n).clamp(1, inner);
        let across = inner.div_ceil(block);
        let (blocks, each) = (outer * across, (TASK / (block * n)).max(1));
        let failure = Mutex::new(None);
        let data: Vec<Shared<u8>> = tensors.clone().map(|t| Shared(t.data)).collect();
        let dtypes: Vec<_> = tensors.map(|t| t.dtype).collect();
        cx.par.run(blocks.div_ceil(each), |task| {
            let memory = Scratch::new(Slot::Operands, block * n * self.dtype.size());
            let strides: Vec<[i64; 2]> = (0..data.len())
                .map(|t| [rows.axes.last().map_or(0, |axis| axis.1[t]), rows.along[t]])
                .collect();
            let dense = [rows.n, 1];
            for i in task * each..blocks.min((task + 1) * each) {
                let (place, first) = (i / across, i % across * block);
                let shape = [block.min(inner - first) as i64, rows.n];
                let view = |t: usize| View {
                    data: {
                        let bytes =
                            rows.offset(t, place, first) as isize * dtypes[t].size() as isize;
                        data[t].get().wrapping_offset(bytes)
                    },
                    dtype: dtypes[t],
                    shape: &shape,
                    strides: &strides[t],
                };
                let (inputs, all) = (args.inputs.len(), data.len());
                let own: Vec<View<'_>> = (0..inputs).map(view).collect();
                let written: Vec<View<'_>> = (inputs..all).map(view).collect();
                let value =
                    View { data: memory.get(), dtype: self.dtype, shape: &shape, strides: &dense };
                let cx = Context { par: Par::default(), ..*cx };
                let args = Args { inputs: &own, outputs: &written, scalars: args.scalars };
                // SAFETY: blocks of the command's tensors, of which no other task writes these rows, and memory for a block.
                let done = unsafe { self.both(&cx, &args, value, true) };
                if let Err(text) = done {
                    failure.lock().unwrap_or_else(|e| e.into_inner()).get_or_insert(text);
                }
            }
        });
        failure.into_inner().unwrap_or_else(|e| e.into_inner()).map_or(Ok(()), Err)
    }
}
