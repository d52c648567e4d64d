//! ATTENTION and its gradient, in blocks of queries and keys that stay in cache (Dao, FlashAttention-2: Faster
//! attention with better parallelism and work partitioning, 2023). The full matrix of scores is never in memory.
//!
//! The scores of a block are computed transposed, with a row for each key and a lane for each query. Queries are
//! therefore the only operand that has to be transposed, the softmax needs no sums across lanes, and both products read
//! the scores in their layout. Scores are in units of ln 2 (`softmax`), and products use the matrix product's
//! micro-kernels (`block`).
//!
//! The division of work depends only on shapes and the level.

mod block;
mod few;
mod forward;
mod gradient;
mod softmax;

use crate::kernel::{Args, Context, Kernel, Op, Prepared, Refusal, Signature, View};
use crate::matmul::ops::{Ops, ops};
use crate::nn::real::Real;
use crate::nn::tensor::Tensor;
use crate::{dtype::DType, level::Level};
use half::{bf16, f16};
use ultramarine_abi::schema::AttentionAttrs;

/// Queries of a block: lanes of the scores.
const QUERIES: usize = 64;
/// Keys of a block: rows of the scores.
const KEYS: usize = 64;

/// Prepares ATTENTION or its gradient.
pub fn prepare(op: &Op, gradient: bool, signature: &Signature<'_>, level: Level) -> Prepared {
    let attributes: AttentionAttrs = op.attributes()?;
    let there = [attributes.mask, attributes.sinks, attributes.lengths];
    if there.iter().any(|flag| *flag > 1) || attributes.causal > 1 {
        return Err(Refusal::Unsupported);
    }
    let (inputs, outputs) = (signature.inputs, signature.outputs);
    let first = if gradient { 6 } else { 3 };
    let expected = first + there.iter().sum::<u32>() as usize;
    ensure!(inputs.len() == expected, "attention with {} inputs", inputs.len());
    let results = if gradient { 3 } else { 2 };
    ensure!(outputs.len() == results, "attention with {} outputs", outputs.len());
    let dtype = inputs[0].dtype;
    if ops(dtype, level).is_none()
        || !matches!(dtype, DType::F16 | DType::BF16 | DType::F32 | DType::F64)
    {
        return Err(Refusal::Unsupported);
    }
    let wide = if dtype == DType::F64 { DType::F64 } else { DType::F32 };
    let mut expected = vec![dtype; 3];
    if gradient {
        expected.extend([dtype, wide, wide]);
    }
    let mask = (attributes.mask == 1).then(|| inputs[first].dtype);
    if mask.is_some_and(|mask| mask != DType::Bool && mask != dtype) {
        return Err(Refusal::Unsupported);
    }
    expected.extend(mask);
    expected.extend((attributes.sinks == 1).then_some(dtype));
    expected.extend((attributes.lengths == 1).then_some(DType::I32));
    ensure!(inputs.iter().map(|d| d.dtype).eq(expected), "attention of other dtypes");
    let results = if gradient { vec![dtype; 3] } else { vec![dtype, wide] };
    ensure!(outputs.iter().map(|d| d.dtype).eq(results), "attention to other dtypes");
    let made = Attention {
        attributes,
        gradient,
        ops: Level::of_products().iter().filter_map(|l| ops(wide, *l)).collect(),
    };
    Ok(match dtype {
        DType::F16 => Box::new(Of::<f16>::new(made)),
        DType::BF16 => Box::new(Of::<bf16>::new(made)),
        DType::F32 => Box::new(Of::<f32>::new(made)),
        _ => Box::new(Of::<f64>::new(made)),
    })
}

struct Attention {
    attributes: AttentionAttrs,
    gradient: bool,
    /// The functions for the type of the computation, for each available level.
    ops: Vec<Ops>,
}

/// The kernel for tensors of a dtype.
struct Of<S> {
    made: Attention,
    dtype: core::marker::PhantomData<fn(S)>,
}

impl<S> Of<S> {
    fn new(made: Attention) -> Of<S> {
        Of { made, dtype: core::marker::PhantomData }
    }
}

/// The sizes and operands that both operations share.
#[derive(Clone, Copy)]
struct Call<'a> {
    cx: &'a Context,
    ops: &'a Ops,
    scale: f64,
    causal: bool,
    batches: usize,
    /// Key heads.
    heads: usize,
    /// Query heads of a key head.
    group: usize,
    queries: usize,
    keys: usize,
    /// Of a query, and of a value.
    sizes: [usize; 2],
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Option<(Tensor, DType)>,
    sinks: Option<Tensor>,
    lengths: Option<Tensor>,
}

// SAFETY: the addresses may be used from any thread while the call runs; tasks write disjoint parts of the outputs.
unsafe impl Sync for Call<'_> {}

impl Call<'_> {
    /// The number of keys that a query sees according to its position; it may be negative.
    fn end(&self, batch: usize, query: usize) -> i64 {
        let length = self.lengths.map_or(self.keys as i64, |lengths| {
            // SAFETY: the lengths hold an element for each batch (the call's contract).
            let length = i64::from(unsafe { *lengths.at::<i32>([batch, 0, 0, 0]) });
            length.min(self.keys as i64)
        });
        if self.causal {
            length.min(query as i64 + length - self.queries as i64 + 1)
        } else {
            length
        }
    }
}

impl Attention {
    /// The request of a command.
    fn read<'a>(&'a self, cx: &'a Context, args: &Args<'_>) -> Result<Call<'a>, String> {
        let [q, k, v, ..] = args.inputs else { return Err("attention without operands".into()) };
        ensure!([q, k, v].iter().all(|t| t.shape.len() == 4), "attention of other ranks");
        let ([b, h, m, d], [_, heads, n, _]) = (sizes(q), sizes(k));
        let (e, group) = (sizes(v)[3], self.attributes.group as usize);
        let fits = sizes(k) == [b, heads, n, d]
            && sizes(v) == [b, heads, n, e]
            && h == heads * group
            && self.attributes.head_size as usize == d
            && self.attributes.value_size as usize == e;
        ensure!(fits, "attention of {:?}, {:?} and {:?}", q.shape, k.shape, v.shape);
        let mut rest = args.inputs[if self.gradient { 6 } else { 3 }..].iter();
        let mut next = |there: u32| if there == 1 { rest.next() } else { None };
        let mask = next(self.attributes.mask);
        let (sinks, lengths) = (next(self.attributes.sinks), next(self.attributes.lengths));
        let shaped = |view: Option<&View<'_>>, shape: &[usize]| {
            view.is_none_or(|v| v.shape.iter().map(|n| *n as usize).eq(shape.iter().copied()))
        };
        let fit = shaped(mask, &[b, h, m, n]) && shaped(sinks, &[b, h]) && shaped(lengths, &[b]);
        ensure!(fit, "attention with a mask, sinks or lengths of other shapes");
        ensure!(args.scalars.len() == 1, "attention with {} scalars", args.scalars.len());
        Ok(Call {
            cx,
            ops: self.ops.get(cx.level as usize).ok_or("the level is not available")?,
            scale: f64::from_bits(args.scalars[0][0]),
            causal: self.attributes.causal == 1,
            batches: b,
            heads,
            group,
            queries: m,
            keys: n,
            sizes: [d, e],
            q: Tensor::new(q),
            k: Tensor::new(k),
            v: Tensor::new(v),
            mask: mask.map(|mask| (Tensor::new(mask), mask.dtype)),
            sinks: sinks.map(Tensor::new),
            lengths: lengths.map(Tensor::new),
        })
    }
}

fn sizes(view: &View<'_>) -> [usize; 4] {
    [0, 1, 2, 3].map(|i| view.shape[i] as usize)
}

/// Checks the shapes of further tensors.
fn check(views: &[(&View<'_>, &[usize])]) -> Result<(), String> {
    for (view, shape) in views {
        let same = view.shape.iter().map(|n| *n as usize).eq(shape.iter().copied());
        ensure!(same, "attention with a tensor {:?} in place of {shape:?}", view.shape);
    }
    Ok(())
}

impl<S: block::Element> Kernel for Of<S>
where
    S::Acc: Real,
{
    unsafe fn run(&self, cx: &Context, args: &Args<'_>) -> Result<(), String> {
        let call = self.made.read(cx, args)?;
        let ([d, e], h) = (call.sizes, call.heads * call.group);
        let (b, m, n) = (call.batches, call.queries, call.keys);
        if !self.made.gradient {
            let [result, logarithms] = args.outputs else {
                return Err("attention has two outputs".into());
            };
            check(&[(result, &[b, h, m, e]), (logarithms, &[b, h, m])])?;
            let [result, logarithms] = [result, logarithms].map(Tensor::new);
            // SAFETY: the tensors are valid, and their shapes were checked.
            unsafe {
                if call.group * m <= few::QUERIES {
                    few::run::<S>(&call, &result, &logarithms);
                } else {
                    forward::run::<S>(&call, &result, &logarithms);
                }
            }
            return Ok(());
        }
        let ([_, _, _, ct, logarithms, delta, ..], [dq, dk, dv]) = (args.inputs, args.outputs)
        else {
            return Err("the gradient of attention has three outputs".into());
        };
        check(&[(ct, &[b, h, m, e]), (logarithms, &[b, h, m]), (delta, &[b, h, m])])?;
        let keys = [b, call.heads, n];
        let of = |size| [keys[0], keys[1], keys[2], size];
        check(&[(dq, &[b, h, m, d]), (dk, &of(d)), (dv, &of(e))])?;
        let given = [ct, logarithms, delta].map(Tensor::new);
        // SAFETY: the tensors are valid, and their shapes were checked.
        unsafe { gradient::run::<S>(&call, given, [dq, dk, dv].map(Tensor::new)) };
        Ok(())
    }
}
