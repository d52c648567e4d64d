//! Plans. `prepare` decodes a request ([`OpRequest`]), asks the family in [`crate::ops`] for its
//! [`Work`], and stores it in a [`Plan`].

use super::{Device, Job};
use crate::graph::Writer;
use std::sync::Arc;
use ultramarine_abi::helper::{self, CommandRef, Failure, Result};

/// A request of `prepare`; the device's context is current.
pub type OpRequest<'a> = helper::OpRequest<'a, Device>;

/// A kind of command. Commands of one kind may run together, as one launch; see [`Work::kind`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// Maximum number of commands in a launch.
    pub most: usize,
    /// Distinguishes this kind from the plan's other kinds.
    pub number: u64,
}

/// The work of a [`Plan`], which a family of operations in [`crate::ops`] implements. `prepare`
/// makes it once for given dtypes and ranks; it then runs with any sizes.
pub trait Work: Send + Sync {
    /// Returns true if commands may need a workspace. Only then [`Work::workspace`] is called, because decoding a
    /// command for it takes as long as everything else before the launch.
    fn has_workspace(&self) -> bool {
        false
    }

    /// Bytes of workspace that a command needs.
    fn workspace(&self, job: &Job<'_>) -> Result<u64> {
        let _ = job;
        Ok(0)
    }

    /// Enqueues a command.
    fn run(&self, job: &Job<'_>) -> Result<()>;

    /// The kind of a command that may run together with others, as one launch. The commands of such a launch have the same
    /// kind and the same scalars, and their plans have the same name.
    fn kind(&self, job: &Job<'_>) -> Option<Kind> {
        let _ = job;
        None
    }

    /// Enqueues such commands, none of which uses another's result, as one launch. Returns `false` if they have to run
    /// one by one this time.
    fn run_together(&self, jobs: &[Job<'_>]) -> Result<bool> {
        let _ = jobs;
        Ok(false)
    }

    /// Returns true if the next command may run in the same launch, if it is a program that overwrites this
    /// command's result.
    fn leads(&self, job: &Job<'_>) -> bool {
        let _ = job;
        false
    }

    /// Returns true if `job` is such a program and may run in the launch of `first`.
    fn follows(&self, first: &Job<'_>, job: &Job<'_>) -> bool {
        let _ = (first, job);
        false
    }

    /// Enqueues both as one launch. Returns `false` if they have to run one by one this time.
    fn run_behind(&self, first: &Job<'_>, job: &Job<'_>) -> Result<bool> {
        let _ = (first, job);
        Ok(false)
    }
}

/// A prepared operation: its name, and its [`Work`].
pub struct Plan {
    name: Arc<str>,
    work: Box<dyn Work>,
}

impl Plan {
    /// A plan with a name for errors and profiles.
    pub fn new(name: String, work: Box<dyn Work>) -> Self {
        Self { name: name.into(), work }
    }

    /// Returns the name for errors and profiles.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Bytes of workspace that a command needs.
    pub fn workspace(&self, device: &Device, command: &CommandRef<'_, Device>) -> u64 {
        if !self.work.has_workspace() {
            return 0;
        }
        // Errors of a command are reported when it is submitted.
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

    /// Returns true if a command may run in the launch of the previous one, whose result it overwrites.
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

    /// Enqueues a command into a graph. Its workspace begins `workspace` bytes into the buffer that
    /// the command names. The context is current.
    pub fn record(
        &self,
        device: &Device,
        graph: &Writer<'_>,
        command: &CommandRef<'_, Device>,
        workspace: u64,
    ) -> Result<()> {
        self.run_job(device, &self.recorded(device, graph, command, workspace)?)
    }

    /// Decodes a command for a graph.
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

    /// Enqueues commands into a graph, as one launch if possible. Their plans have the same name as this one. The context is
    /// current.
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

    /// Enqueues a command and the one before it into a graph, as one launch if its kernel is ready. The context is
    /// current.
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
            // An earlier operation caused the fault.
            Err(lost) => lost,
        })
    }
}
