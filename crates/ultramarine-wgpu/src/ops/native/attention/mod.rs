//! ATTENTION, on devices with fast workgroup barriers. If there are few rows, the keys are split into parts, whose
//! results are joined later.

mod source;
mod units;

use super::variants::Variants;
use crate::dtype::Dtype;
use crate::hal::{self, Units};
use crate::launch::{Job, OpRequest, View, Work, count};
use crate::ops::units::{EIGHT, of as units_of};
use crate::program::Kernel;
use source::{Attention, Block, KEYS, ROOM, flag};
use std::sync::{Arc, OnceLock};
use ultramarine_abi::helper::{Failure, Result};
use ultramarine_abi::schema::AttentionAttrs;

/// Maximum size of a query or a value, limited by the registers for a row of sums.
const MOST: u32 = 256;
/// A unit with fewer rows than this has few rows.
const FEW: i64 = 32;
/// Minimum number of keys in a part.
const PART: i64 = 128;
/// Invocations of a workgroup if there are few rows.
const FEW_SIZE: u64 = 64;

/// Setting. If it is `one`, units make a single pass over all keys. This variant was not measured.
const SETTING: &str = "ATTENTION";

/// Buffers of a kernel: words, operands, results, and parts.
const BUFFERS: u32 = 10;

struct Plan {
    attention: Attention,
    /// Bits of [`flag`].
    flags: u32,
    head_size: u32,
    kernels: Variants<Block>,
    join: OnceLock<Result<Arc<Kernel>>>,
}

/// The plan of a request.
pub fn prepare(request: &OpRequest<'_>) -> Result<Box<dyn Work>> {
    let attributes: AttentionAttrs = request.attributes()?;
    let AttentionAttrs { mask, sinks, lengths, causal, head_size, value_size, .. } = attributes;
    let dtype = request.input(0)?.dtype;
    let properties = &request.device.context.properties;
    let block = Block { lines: 4, split: false, units: None };
    if !properties.gpu_kernels
        || properties.buffers < BUFFERS
        || properties.group_size < block.size()
        || properties.group_memory < ROOM
    {
        return Err(Failure::unsupported("attention by kernels for GPUs"));
    }
    if !matches!(dtype, Dtype::Float16 | Dtype::Bfloat16 | Dtype::Float32) {
        return Err(Failure::unsupported("attention of this dtype"));
    }
    if [head_size, value_size].iter().any(|size| !(1..=MOST).contains(size)) {
        let text = format!("attention with heads of {head_size} and {value_size}, above {MOST}");
        return Err(Failure::unsupported(text));
    }
    let masks = request.input(3).map(|desc| desc.dtype).ok().filter(|_| mask == 1);
    if masks.is_some_and(|masks| masks != Dtype::Bool && masks != dtype) {
        return Err(Failure::unsupported("a mask of another dtype"));
    }
    let mut expected = vec![dtype; 3];
    expected.extend(masks);
    expected.extend((sinks == 1).then_some(dtype));
    expected.extend((lengths == 1).then_some(Dtype::Int32));
    let dtypes: Vec<Dtype> = request.inputs.iter().map(|desc| desc.dtype).collect();
    let outputs: Vec<Dtype> = request.outputs.iter().map(|desc| desc.dtype).collect();
    if dtypes != expected || outputs != [dtype, Dtype::Float32] {
        return Err(Failure::invalid("the operands of attention do not fit"));
    }
    let setting = std::env::var(hal::variable(SETTING));
    let guessed = setting.is_ok_and(|setting| setting.trim() == "one");
    let flags = [
        (causal, flag::CAUSAL),
        (mask, flag::MASKED),
        (sinks, flag::SINKS),
        (lengths, flag::LENGTHS),
        (guessed.into(), flag::GUESSED),
    ];
    let flags = flags.into_iter().filter(|(there, _)| *there == 1).map(|(_, bit)| bit).sum();
    let bools = masks == Some(Dtype::Bool);
    let attention = Attention { dtype, bools, value_size };
    let (kernels, join) = Default::default();
    Ok(Box::new(Plan { attention, flags, head_size, kernels, join }))
}

/// A command's operands and sizes.
struct Call<'a> {
    q: &'a View<'a>,
    k: &'a View<'a>,
    v: &'a View<'a>,
    mask: Option<&'a View<'a>>,
    sinks: Option<&'a View<'a>>,
    lengths: Option<&'a View<'a>>,
    out: &'a View<'a>,
    lse: &'a View<'a>,
    /// Batches, heads, queries, keys.
    sizes: [i64; 4],
    group: i64,
}

impl Call<'_> {
    /// Number of heads whose queries make a unit.
    fn span(&self) -> i64 {
        if self.sizes[2] < FEW { self.group } else { 1 }
    }

    fn rows(&self) -> i64 {
        self.span() * self.sizes[2]
    }

    fn units(&self) -> i64 {
        self.sizes[0] * self.sizes[1] / self.span()
    }
}

/// How the rows and keys of a command are divided.
struct Cut {
    block: Block,
    blocks: i64,
    splits: i64,
    /// Keys per part.
    share: i64,
}

impl Plan {
    fn call<'a>(&self, job: &'a Job<'_>) -> Result<Call<'a>> {
        let (q, k, v) = (job.input(0)?, job.input(1)?, job.input(2)?);
        let mut next = 2;
        let mut optional = |there: bool| {
            next += usize::from(there);
            if there { job.input(next).map(Some) } else { Ok(None) }
        };
        let mask = optional(self.flags & flag::MASKED != 0)?;
        let sinks = optional(self.flags & flag::SINKS != 0)?;
        let lengths = optional(self.flags & flag::LENGTHS != 0)?;
        let (out, lse) = (job.output(0)?, job.output(1)?);
        let unfit = || Failure::invalid("the shapes of attention do not fit");
        let four = |view: &View<'_>| <[i64; 4]>::try_from(view.shape).map_err(|_| unfit());
        let ([b, h, m, d], [kb, kh, n, kd]) = (four(q)?, four(k)?);
        let group = h.checked_div(kh).unwrap_or(1).max(1);
        let e = i64::from(self.attention.value_size);
        let fits = [kb, kh * group, kd] == [b, h, d]
            && d == i64::from(self.head_size)
            && v.shape == [b, kh, n, e]
            && mask.is_none_or(|view| view.shape == [b, h, m, n])
            && sinks.is_none_or(|view| view.shape == [b, h])
            && lengths.is_none_or(|view| view.shape == [b])
            && out.shape == [b, h, m, e]
            && lse.shape == [b, h, m];
        match fits {
            true => {
                Ok(Call { q, k, v, mask, sinks, lengths, out, lse, sizes: [b, h, m, n], group })
            }
            false => Err(unfit()),
        }
    }

    fn cut(&self, job: &Job<'_>, call: &Call<'_>) -> Cut {
        let lines = if call.rows() <= FEW { 1 } else { 4 };
        let units = if lines == 4 { self.units(job, call) } else { None };
        let mut block = Block { lines, split: false, units };
        let blocks = (call.rows() + i64::from(block.rows()) - 1) / i64::from(block.rows());
        let keys = call.sizes[3];
        let (mut splits, mut share) = (1, keys);
        if lines == 1 {
            let wanted = job.device.context.properties.parallelism() / FEW_SIZE;
            let wanted = wanted.div_ceil((call.units() * blocks) as u64) as i64;
            let most = ((keys + PART - 1) / PART).max(1);
            share = (keys + wanted.clamp(1, most) - 1) / wanted.clamp(1, most);
            share = (share as u64).next_multiple_of(KEYS.into()) as i64;
            splits = (keys + share - 1) / share;
            block.split = splits > 1;
        }
        Cut { block, blocks, splits, share }
    }

    /// How matrix units compute the products, if the operands have a suitable layout.
    fn units(&self, job: &Job<'_>, call: &Call<'_>) -> Option<Units> {
        let properties = &job.device.context.properties;
        let size = self.attention.value_size;
        let eights = |view: &View<'_>| {
            let [steps @ .., 1] = view.strides else { return false };
            view.ends_with(EIGHT as u64)
                && steps.iter().chain([&view.offset]).all(|n| n % EIGHT == 0)
        };
        let fits = self.head_size == size
            && units::fits(size, properties.group_memory)
            && [call.q, call.k, call.v].into_iter().all(eights);
        units_of(self.attention.dtype, properties.units).filter(|_| fits)
    }

    fn join(&self, job: &Job<'_>) -> Result<Arc<Kernel>> {
        self.join.get_or_init(|| job.device.programs.get(self.attention.join())).clone()
    }
}

impl Work for Plan {
    /// For each part of a row, its largest score, its total and its sums.
    fn workspace(&self, job: &Job<'_>) -> Result<u64> {
        let call = self.call(job)?;
        let cut = self.cut(job, &call);
        let parts = (call.units() * call.rows() * cut.splits) as u64;
        Ok(if cut.splits > 1 { parts * 4 * u64::from(self.attention.value_size + 2) } else { 0 })
    }

    fn run(&self, job: &Job<'_>) -> Result<()> {
        let call = self.call(job)?;
        let Cut { block, blocks, splits, share } = self.cut(job, &call);
        let [_, h, m, n] = call.sizes;
        let scale = f64::from_bits(job.scalar(0)?) as f32;
        let sizes = [h, call.group, m, n, call.span(), blocks, splits, share];
        let mut words: Vec<u32> = sizes.map(|n| n as u32).into();
        let value_size = self.attention.value_size;
        words.extend([scale.to_bits(), self.flags, self.head_size, value_size]);
        for (view, rank) in [
            (Some(call.q), 4),
            (Some(call.k), 4),
            (Some(call.v), 4),
            (Some(call.out), 4),
            (call.mask, 4),
            (Some(call.lse), 4),
            (call.sinks, 3),
            (call.lengths, 1),
        ] {
            let at = words.len();
            words.extend(view.into_iter().flat_map(|view| {
                [view.offset].into_iter().chain(view.strides.iter().copied()).map(|n| n as u32)
            }));
            words.resize(at + 1 + rank, 0);
        }
        // The driver counts all loop iterations of an invocation.
        let most = i64::from(job.device.context.properties.iterations);
        if n * 8 > most {
            return Err(Failure::new(format!(
                "attention to {n} keys, for which the driver's loops are too short"
            )));
        }
        let source = |block: &Block| match block.units {
            Some(how) => units::source(self.attention, how),
            None => self.attention.source(*block),
        };
        let kernel = self.kernels.get(job.device, block, source)?;
        // Absent operands are bound to the queries, because something has to be bound; kernels do
        // not read them.
        let or_queries = |view: Option<&View<'_>>| view.unwrap_or(call.q).block.clone();
        let [mask, sinks, lengths] = [call.mask, call.sinks, call.lengths].map(or_queries);
        let (out, lse) = (&call.out.block, &call.lse.block);
        let own = [&call.q.block, &call.k.block, &call.v.block];
        let others = [&mask, &sinks, &lengths, out, lse];
        let mut all = match block.units {
            Some(_) => [&others[..], &own].concat(),
            None => [&own[..], &others].concat(),
        };
        let groups = count([call.units(), blocks, splits])?;
        if splits == 1 {
            return job.launch_groups(&kernel, &all, groups, &words);
        }
        let partial = job.scratch()?;
        all.push(&partial);
        job.launch_groups(&kernel, &all, groups, &words)?;
        let few = [&call.v.block, &sinks, out, lse, &partial];
        let elements = count([call.units(), call.rows(), self.attention.value_size.into()])?;
        job.launch(&self.join(job)?, &few, elements, &words)
    }
}
