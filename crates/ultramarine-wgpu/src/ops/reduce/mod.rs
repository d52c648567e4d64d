//! REDUCE and ARG_REDUCE.

mod fold;
mod steps;

use crate::dtype::{Dtype, Wgsl};
use crate::hal::COHERENT;
use crate::launch::{Device, Job, OpRequest, View, Work};
use crate::memory::Block;
use crate::program::Deferred;
use crate::shader::library::Library;
use crate::shader::source::Source;
use crate::shader::vector::{FOUR, pick, vector_of};
use crate::shader::{Program, Tensor};
use fold::{Allowed, Fold, GROUP};
use std::sync::Arc;
use steps::{Steps, extreme_items};
use ultramarine_abi::helper::{Failure, Result};
use ultramarine_abi::schema::{self, ArgReduceAttrs, OpId, ReduceAttrs, arg_reduce, op};

pub use steps::limits;

const FOLD: &str = include_str!("../../../kernels/reduce/fold.wgsl");
const ARG: &str = include_str!("../../../kernels/reduce/arg.wgsl");
const SHARED: &str = include_str!("../../../kernels/reduce/group.wgsl");

/// The work of REDUCE and ARG_REDUCE: kernels that reduce segments, and kernels that merge the
/// segments of an output.
pub struct Reduce {
    /// Reduces segments, each by an invocation or by the lanes of a workgroup.
    each: Deferred,
    /// Likewise, with lanes that read vectors of a tensor.
    vectors: Option<Deferred>,
    /// Merges an output's segments by one invocation.
    merge: Deferred,
    /// Merges an output's segments by a workgroup.
    merge_many: Option<Deferred>,
    /// Reduces segments by one workgroup each; the last workgroup merges them.
    single: Option<Single>,
    allowed: Allowed,
    axes: u64,
    /// Bytes of a partial result; for ARG_REDUCE, bytes of an index.
    partial: u64,
    /// True if the merge reads the elements again.
    rereads: bool,
}

/// A reduction in one pass.
struct Single {
    /// Reads single elements, or values.
    elements: Deferred,
    /// Reads vectors.
    vectors: Option<Deferred>,
}

/// Generates the programs of a reduction from programs with its tensors.
struct Texts<'a> {
    /// Functions and declarations for the dtype and the code.
    items: &'a [String],
    libraries: &'a [&'static str],
    /// Type of partial results, and the declarations of those in shared memory.
    partial: &'static str,
    shared: &'static str,
    /// Dtype of the elements.
    dtype: Dtype,
}

impl Texts<'_> {
    fn program<'b>(&self, mut program: Program<'b>, single: bool) -> Program<'b> {
        program = match single {
            true => program.coherent_array("partial", self.partial).array("tickets", "atomic<u32>"),
            false => program.array("partial", self.partial),
        };
        for library in self.libraries {
            program = program.library(library);
        }
        for item in self.items {
            program = program.item(item);
        }
        program
    }

    /// A program with one call per invocation.
    fn serial(&self, program: Program<'_>, call: &str) -> Source {
        self.program(program, false).body(call).build()
    }

    /// A program with one call per workgroup. It reads no elements, single elements, or tensor `a` as an
    /// array of vectors.
    fn grouped(&self, program: Program<'_>, call: &str, reads: Reads) -> Source {
        let (take, form, vectors) = match reads {
            Reads::Nothing => ("", "", false),
            Reads::Elements => ("take", "tensor", false),
            Reads::Vectors => ("take_vector", "tensor", true),
            Reads::Values => ("", "values", false),
        };
        let mut library = Library::default();
        library.add(SHARED);
        // The step that folds a value is only included if the kernel uses it.
        let single = call.contains("single");
        let steps = match call.starts_with("fold_group") || call.starts_with("fold_single") {
            true => ["step", "fold"].map(|what| format!("{what}_{form}")),
            false => Default::default(),
        };
        let own = library.used_by(&format!("{call} {take} {} {}", steps[0], steps[1]));
        let own = own.replace("TAKE(", &format!("{take}("));
        let own = own.replace("STEP(", &format!("{}(", steps[0]));
        let own = own.replace("FOLD(", &format!("{}(", steps[1]));
        let mut program = self.program(program, single).item(LANE).item(self.shared);
        if single {
            program = program.item("var<workgroup> arrived: u32;");
        }
        if !take.is_empty() {
            let register = self.dtype.register();
            let four = format!("struct Q {{ x: {0}, y: {0}, z: {0}, w: {0} }}", register);
            program = program.item(&four).item(&pick("a", self.dtype, vectors));
            if single && vectors {
                program = program.item(&format!(
                    "fn load_a(at: u32) -> {register} {{\nlet v = pick_a(at, 1u, 4u);\nlet k = at % 4u;\n\
                     return select(select(v.w, v.z, k == 2u), select(v.y, v.x, k == 0u), k < 2u);\n}}"
                ));
            }
        }
        program.item(&own).group_body(GROUP, call).build()
    }
}

/// How a kernel reads the reduced tensor.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reads {
    Nothing,
    Elements,
    Vectors,
    /// Values that `load_a` returns.
    Values,
}

/// The result type of `lane_of`.
const LANE: &str = "struct Lane { lane: u32, lanes: u32, apart: u32, item: u32, here: bool }";

/// The plan of REDUCE.
pub fn prepare(request: &OpRequest<'_>) -> Result<Box<dyn Work>> {
    request.elementwise(1)?;
    let attributes: ReduceAttrs = request.attributes()?;
    let (dtype, out) = (request.input(0)?.dtype, request.output(0)?.dtype);
    request.computes(&[dtype])?;
    Ok(Box::new(Reduce::new(request.device, attributes.op, attributes.axes, (dtype, out))?))
}

/// The plan of ARG_REDUCE.
pub fn prepare_arg(request: &OpRequest<'_>) -> Result<Box<dyn Work>> {
    request.elementwise(1)?;
    let attributes: ArgReduceAttrs = request.attributes()?;
    let (input, out) = (request.input(0)?, request.output(0)?.dtype);
    check(request.op, attributes.op, input.dtype, out)?;
    request.computes(&[input.dtype])?;
    if attributes.axis as usize >= input.ndim {
        return Err(Failure::invalid(format!("axis {} of {}", attributes.axis, input.ndim)));
    }
    let dtype = input.dtype;
    let properties = &request.device.context.properties;
    // The order of complex numbers ignores imaginary NaNs, so their reductions cannot be split.
    let cuts = dtype != Dtype::Complex64;
    let texts = Texts {
        items: &extreme_items(dtype, attributes.op == arg_reduce::ARGMAX),
        libraries: &[FOLD, ARG],
        partial: "u32",
        shared: "var<workgroup> meet: array<A, 256>;\nvar<workgroup> meet_index: array<u32, 256>;",
        dtype,
    };
    let (a, out) = (Tensor { name: "a", dtype }, Tensor { name: "out", dtype: out });
    let allowed = Allowed { cuts, grouped: cuts && properties.gpu_kernels };
    let both = || Program::new(&[a, out]);
    let (each, merge) = ("arg_group(g, local);", "arg_merge_group(g, local);");
    let (each, vectors, merge_many) = match allowed.grouped {
        true => (
            texts.grouped(both(), each, Reads::Elements),
            Some(texts.grouped(of_vectors(a, out), each, Reads::Vectors)),
            Some(texts.grouped(both(), merge, Reads::Nothing)),
        ),
        false => (texts.serial(both(), "arg_each(i);"), None, None),
    };
    let one = "arg_single(g, local);";
    let single = (allowed.grouped && COHERENT).then(|| Single {
        elements: Deferred::new(texts.grouped(both(), one, Reads::Elements)),
        vectors: Some(Deferred::new(texts.grouped(of_vectors(a, out), one, Reads::Vectors))),
    });
    let reduce = Reduce {
        each: Deferred::new(each),
        vectors: vectors.map(Deferred::new),
        merge: Deferred::new(texts.serial(both(), "arg_merge(i);")),
        merge_many: merge_many.map(Deferred::new),
        single,
        allowed,
        axes: 1 << attributes.axis,
        partial: 4,
        rereads: true,
    };
    Ok(Box::new(reduce.compiled(request.device)?))
}

/// A program that reads a tensor as vectors.
fn of_vectors(a: Tensor, out: Tensor) -> Program<'static> {
    Program::new(&[out]).array(a.name, vector_of(a.dtype, FOUR as usize))
}

/// Refuses codes and dtypes that are not in the schema.
fn check(op: OpId, code: u32, dtype: Dtype, out: Dtype) -> Result<()> {
    let unknown = || Failure::unsupported(format!("reduction {code} of {}", dtype.name()));
    let row = schema::find(op).ok_or_else(unknown)?;
    let known = row.code(code).filter(|known| {
        known.dtypes & dtype.bit() != 0 && row.output_of(Some(known), dtype as usize) == out.bit()
    });
    known.map(|_| ()).ok_or_else(unknown)
}

impl Reduce {
    /// The reduction by a code over a mask of axes, from one dtype to another.
    pub fn new(
        device: &Device,
        code: u32,
        axes: u64,
        (dtype, out): (Dtype, Dtype),
    ) -> Result<Self> {
        let (a, output) = (Tensor { name: "a", dtype }, Tensor { name: "out", dtype: out });
        let values = Program::new(&[a, output]);
        Self::of(device, (code, axes), (dtype, out), values, Some(of_vectors(a, output)))
    }

    /// Likewise, for the values that the program's `load_a` returns. Its last tensor is `out`.
    pub fn of_values(
        device: &Device,
        code: (u32, u64),
        dtypes: (Dtype, Dtype),
        values: Program<'_>,
    ) -> Result<Self> {
        Self::of(device, code, dtypes, values, None)
    }

    fn of(
        device: &Device,
        (code, axes): (u32, u64),
        (dtype, out): (Dtype, Dtype),
        values: Program<'_>,
        vectors: Option<Program<'_>>,
    ) -> Result<Self> {
        check(op::REDUCE, code, dtype, out)?;
        let properties = &device.context.properties;
        let steps = Steps::of(code, dtype, properties.float64);
        let texts = Texts {
            items: &steps.items,
            libraries: &[FOLD, steps::SUMS],
            partial: "W",
            shared: "var<workgroup> meet: array<W, 256>;",
            dtype,
        };
        let only_out = || Program::new(&[Tensor { name: "out", dtype: out }]);
        let allowed = Allowed { cuts: true, grouped: properties.gpu_kernels };
        let fold = "fold_group(g, local);";
        let merge = "fold_merge_group(g, local);";
        let grouped = allowed.grouped;
        let reads = if vectors.is_some() { Reads::Elements } else { Reads::Values };
        let each = match grouped {
            true => texts.grouped(values.clone(), fold, reads),
            false => texts.serial(values.clone(), "fold_each(i);"),
        };
        let one = "fold_single(g, local);";
        let vectors = vectors.filter(|_| grouped);
        let of_vectors = |call: &str| {
            let program = vectors.clone();
            program.map(|program| Deferred::new(texts.grouped(program, call, Reads::Vectors)))
        };
        let single = (grouped && COHERENT).then(|| Single {
            elements: Deferred::new(texts.grouped(values, one, reads)),
            vectors: of_vectors(one),
        });
        let merge_many = grouped.then(|| texts.grouped(only_out(), merge, Reads::Nothing));
        let reduce = Self {
            each: Deferred::new(each),
            vectors: of_vectors(fold),
            merge: Deferred::new(texts.serial(only_out(), "fold_merge(i);")),
            merge_many: merge_many.map(Deferred::new),
            single,
            allowed,
            axes,
            partial: steps.wide_bytes,
            rereads: false,
        };
        reduce.compiled(device)
    }

    /// Compiles the usual kernel now, so that errors are reported early.
    fn compiled(self, device: &Device) -> Result<Self> {
        self.vectors.as_ref().unwrap_or(&self.each).get(&device.programs)?;
        Ok(self)
    }

    /// Bytes of workspace.
    pub fn workspace_of(&self, device: &Device, views: (&View<'_>, &View<'_>)) -> Result<u64> {
        let fold = Fold::of(device, views, self.axes, self.allowed)?;
        Ok(match fold.segments {
            1 => 0,
            n => u64::from(n) * u64::from(fold.outputs) * self.partial,
        })
    }

    /// Enqueues the reduction of a tensor; partial results go to the command's workspace.
    pub fn run_views(&self, job: &Job<'_>, views: (&View<'_>, &View<'_>)) -> Result<()> {
        self.run_values(job, &[&views.0.block], views, &[])
    }

    /// Likewise, for values. The kernel reads the given tensors, and `more` words after those of the reduction. Values
    /// are numbered as the elements of the view.
    pub fn run_values(
        &self,
        job: &Job<'_>,
        tensors: &[&Arc<Block>],
        views: (&View<'_>, &View<'_>),
        more: &[u32],
    ) -> Result<()> {
        let fold = Fold::of(job.device, views, self.axes, self.allowed)?;
        let out = &views.1.block;
        let mut words = fold.words();
        words.extend_from_slice(more);
        // With a single segment, partial results are not accessed.
        let partial = if fold.segments == 1 { out.clone() } else { job.scratch()? };
        let all = [tensors, &[out, &partial]].concat();
        let programs = &job.device.programs;
        // The words and the tickets need bindings, too.
        let room = all.len() + 2 <= job.device.context.properties.buffers as usize;
        if let Some(single) = self.single.as_ref().filter(|_| room && fold.is_single()) {
            let tickets = job.device.tickets();
            let (kernel, blocks) = match &single.vectors {
                Some(vectors) if fold.vectors => {
                    (vectors, [&[out], tensors, &[&partial, tickets]].concat())
                }
                _ => (&single.elements, [&all[..], &[tickets]].concat()),
            };
            return job.launch_groups(&kernel.get(programs)?, &blocks, fold.groups(), &words);
        }
        match (&self.vectors, self.allowed.grouped) {
            (Some(vectors), true) if fold.vectors => {
                let blocks = [&[out], tensors, &[&partial]].concat();
                job.launch_groups(&vectors.get(programs)?, &blocks, fold.groups(), &words)?;
            }
            (_, true) => {
                job.launch_groups(&self.each.get(programs)?, &all, fold.groups(), &words)?
            }
            (_, false) => {
                let items = fold.outputs * fold.segments;
                job.launch(&self.each.get(programs)?, &all, items, &words)?;
            }
        }
        if fold.segments == 1 {
            return Ok(());
        }
        let merged = if self.rereads { &all } else { &all[tensors.len()..] };
        match &self.merge_many {
            Some(many) if fold.merges_many() => {
                job.launch_groups(&many.get(programs)?, merged, fold.outputs, &words)
            }
            _ => job.launch(&self.merge.get(programs)?, merged, fold.outputs, &words),
        }
    }
}

impl Work for Reduce {
    fn workspace(&self, job: &Job<'_>) -> Result<u64> {
        self.workspace_of(job.device, (job.input(0)?, job.output(0)?))
    }

    fn run(&self, job: &Job<'_>) -> Result<()> {
        self.run_views(job, (job.input(0)?, job.output(0)?))
    }
}
