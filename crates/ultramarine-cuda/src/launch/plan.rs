//! Requests decoded, and what is made of them.

use super::{Device, Dtype, Job};
use crate::graph::Writer;
use std::sync::Arc;
use ultramarine_abi::helper::{CommandRef, Failure, Plain, Request, Result};
use ultramarine_abi::{MAX_NDIM, TensorDesc, layout, schema};

/// A tensor as `prepare` knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Desc {
    /// Element type.
    pub dtype: Dtype,
    /// Rank.
    pub ndim: usize,
    /// Row-major without gaps; else it may have any strides.
    pub contiguous: bool,
}

impl Desc {
    /// Decodes a description.
    pub fn of(desc: &TensorDesc) -> Result<Self> {
        let dtype = Dtype::of(desc.dtype).ok_or_else(|| {
            Failure::unsupported(format!("dtype {:?} is unknown here", desc.dtype))
        })?;
        let ndim = usize::try_from(desc.ndim).ok().filter(|n| *n <= MAX_NDIM);
        let ndim =
            ndim.ok_or_else(|| Failure::invalid(format!("a tensor of rank {}", desc.ndim)))?;
        Ok(Self { dtype, ndim, contiguous: desc.layout == layout::CONTIGUOUS })
    }
}

/// A request of `prepare`.
pub struct OpRequest<'a> {
    /// The device, whose context is current.
    pub device: &'a Device,
    /// A constant of [`schema::op`].
    pub op: schema::OpId,
    /// Inputs.
    pub inputs: Vec<Desc>,
    /// Outputs.
    pub outputs: Vec<Desc>,
    request: &'a Request<'a>,
}

impl<'a> OpRequest<'a> {
    /// Decodes a request.
    pub fn of(device: &'a Device, request: &'a Request<'a>) -> Result<Self> {
        let decode = |list: &[TensorDesc]| list.iter().map(Desc::of).collect::<Result<Vec<_>>>();
        let (inputs, outputs) = (decode(&request.inputs)?, decode(&request.outputs)?);
        Ok(Self { device, op: request.op, inputs, outputs, request })
    }

    /// The request of an op without attributes that is a part of this one.
    pub fn part(&self, op: schema::OpId, inputs: Vec<Desc>, outputs: Vec<Desc>) -> Self {
        Self { op, inputs, outputs, ..*self }
    }

    /// The op's attributes.
    pub fn attributes<A: Plain>(&self) -> Result<A> {
        self.request.attributes()
    }

    /// Input `i`.
    pub fn input(&self, i: usize) -> Result<Desc> {
        let found = self.inputs.get(i).copied();
        found.ok_or_else(|| Failure::invalid(format!("a request without input {i}")))
    }

    /// Output `i`.
    pub fn output(&self, i: usize) -> Result<Desc> {
        let found = self.outputs.get(i).copied();
        found.ok_or_else(|| Failure::invalid(format!("a request without output {i}")))
    }

    /// Checks the number of inputs, and that each has output 0's rank.
    pub fn elementwise(&self, inputs: usize) -> Result<()> {
        let rank = self.output(0)?.ndim;
        match self.inputs.len() == inputs && self.inputs.iter().all(|d| d.ndim == rank) {
            true => Ok(()),
            false => Err(Failure::invalid(format!(
                "{} inputs of ranks {:?}, expected {inputs} of the output's rank {rank}",
                self.inputs.len(),
                self.inputs.iter().map(|d| d.ndim).collect::<Vec<_>>()
            ))),
        }
    }
}

/// A kind of commands that may run together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// Most commands of a launch.
    pub most: usize,
    /// Tells it from the other kinds of the plan.
    pub number: u64,
}

/// The work of a plan.
pub trait Work: Send + Sync {
    /// Returns true if commands may want a workspace; only then [`Work::workspace`] is asked. Decoding a command for
    /// the answer takes as long as all else before its launch.
    fn has_workspace(&self) -> bool {
        false
    }

    /// Bytes of workspace for a command.
    fn workspace(&self, job: &Job<'_>) -> Result<u64> {
        let _ = job;
        Ok(0)
    }

    /// Enqueues a command.
    fn run(&self, job: &Job<'_>) -> Result<()>;

    /// The kind of a command that may run together with others, as one launch: commands of one kind, with the same scalars, of
    /// plans of one name.
    fn kind(&self, job: &Job<'_>) -> Option<Kind> {
        let _ = job;
        None
    }

    /// Enqueues such commands, which do not use each other's results, as one launch. `false`: not now, they run alone.
    fn run_together(&self, jobs: &[Job<'_>]) -> Result<bool> {
        let _ = jobs;
        Ok(false)
    }

    /// Returns true if a program that comes next and writes over the command's result may run in the same launch.
    fn leads(&self, job: &Job<'_>) -> bool {
        let _ = job;
        false
    }

    /// Returns true for such a program, behind such a command.
    fn follows(&self, first: &Job<'_>, job: &Job<'_>) -> bool {
        let _ = (first, job);
        false
    }

    /// Enqueues both as one launch. `false`: not now, they run alone.
    fn run_behind(&self, first: &Job<'_>, job: &Job<'_>) -> Result<bool> {
        let _ = (first, job);
        Ok(false)
    }
}

/// A prepared op.
pub struct Plan {
    name: Arc<str>,
    work: Box<dyn Work>,
}

impl Plan {
    /// A plan that people know by that name.
    pub fn new(name: String, work: Box<dyn Work>) -> Self {
        Self { name: name.into(), work }
    }

    /// The name in errors and profiles.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Bytes of workspace for a command.
    pub fn workspace(&self, device: &Device, command: &CommandRef<'_, Device>) -> u64 {
        if !self.work.has_workspace() {
            return 0;
        }
        // What is wrong with a command is said when it is submitted.
        Job::of(device, None, command).and_then(|job| self.work.workspace(&job)).unwrap_or(0)
    }

    /// As [`Work::kind`].
    pub fn kind(&self, job: &Job<'_>) -> Option<Kind> {
        self.work.kind(job)
    }

    /// As [`Work::leads`].
    pub fn leads(&self, job: &Job<'_>) -> bool {
        self.work.leads(job)
    }

    /// Returns true if a command may run in the launch of the one before it, whose result it writes over.
    pub fn follows(&self, job: &Job<'_>, (first, before): (&Plan, &Job<'_>)) -> bool {
        first.leads(before) && self.work.follows(before, job)
    }

    /// As [`Work::run_behind`].
    pub(super) fn run_behind(
        &self,
        device: &Device,
        first: &Job<'_>,
        job: &Job<'_>,
    ) -> Result<bool> {
        self.named(device, self.work.run_behind(first, job))
    }

    /// As [`Work::run_together`].
    pub(super) fn run_together(&self, device: &Device, jobs: &[Job<'_>]) -> Result<bool> {
        self.named(device, self.work.run_together(jobs))
    }

    /// Enqueues a decoded command. The context is current.
    pub(super) fn run_job(&self, device: &Device, job: &Job<'_>) -> Result<()> {
        self.named(device, self.work.run(job))
    }

    /// Enqueues a command into a graph; its workspace begins so many bytes into the command's. The
    /// context is current.
    pub fn record(
        &self,
        device: &Device,
        graph: &Writer<'_>,
        command: &CommandRef<'_, Device>,
        workspace: u64,
    ) -> Result<()> {
        self.run_job(device, &self.recorded(device, graph, command, workspace)?)
    }

    /// A command that goes into a graph.
    fn recorded<'a>(
        &self,
        device: &'a Device,
        graph: &'a Writer<'a>,
        command: &CommandRef<'a, Device>,
        workspace: u64,
    ) -> Result<Job<'a>> {
        let mut job = Job::of(device, None, command)?;
        job.graph = Some(graph);
        if job.workspace != 0 {
            job.workspace += workspace;
        }
        Ok(job)
    }

    /// Enqueues commands of plans of this one's name into a graph, in one launch where they fit one. The context is current.
    pub fn record_together<'a>(
        &self,
        device: &'a Device,
        graph: &'a Writer<'a>,
        commands: &[CommandRef<'a, Device>],
    ) -> Result<()> {
        let jobs = commands
            .iter()
            .map(|command| self.recorded(device, graph, command, 0))
            .collect::<Result<Vec<_>>>()?;
        match self.run_together(device, &jobs)? {
            true => Ok(()),
            false => jobs.iter().try_for_each(|job| self.run_job(device, job)),
        }
    }

    /// Enqueues a command behind the one before it into a graph, as one launch if that is ready. The context is current.
    pub fn record_behind<'a>(
        &self,
        device: &'a Device,
        graph: &'a Writer<'a>,
        (first, before): (&Plan, &CommandRef<'a, Device>),
        command: &CommandRef<'a, Device>,
    ) -> Result<()> {
        let before = first.recorded(device, graph, before, 0)?;
        let job = self.recorded(device, graph, command, 0)?;
        match self.run_behind(device, &before, &job)? {
            true => Ok(()),
            false => first.run_job(device, &before).and_then(|()| self.run_job(device, &job)),
        }
    }

    fn named<T>(&self, device: &Device, result: Result<T>) -> Result<T> {
        result.map_err(|failure| match device.context.usable() {
            Ok(()) => {
                Failure { code: failure.code, text: format!("{}: {}", self.name, failure.text) }
            }
            // The fault is another's.
            Err(lost) => lost,
        })
    }
}
