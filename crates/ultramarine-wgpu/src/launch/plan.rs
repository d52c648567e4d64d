//! Plans. `prepare` decodes a request ([`OpRequest`]), asks the family in [`crate::ops`] for its
//! [`Work`], and stores it in a [`Plan`].

use super::{Device, Job};
use crate::dtype::Dtype;
use crate::streams::Batch;
use core::ops::Deref;
use std::sync::Arc;
use ultramarine_abi::helper::{self, CommandRef, Failure, Request, Result};

/// A request of `prepare`, with its tensors decoded.
pub struct OpRequest<'a>(helper::OpRequest<'a, Device>);

impl<'a> Deref for OpRequest<'a> {
    type Target = helper::OpRequest<'a, Device>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl<'a> OpRequest<'a> {
    /// Decodes a request.
    pub fn of(device: &'a Device, request: &'a Request<'a>) -> Result<Self> {
        helper::OpRequest::of(device, request).map(Self)
    }

    /// Refuses dtypes that the device cannot compute.
    pub fn computes(&self, dtypes: &[Dtype]) -> Result<()> {
        match dtypes.contains(&Dtype::Float64) && !self.device.context.properties.float64 {
            true => Err(Failure::unsupported("the device has no arithmetic of float64")),
            false => Ok(()),
        }
    }
}

/// The work of a [`Plan`], which a family of operations in [`crate::ops`] implements. `prepare`
/// makes it once for given dtypes and ranks; it then runs with any sizes.
pub trait Work: Send + Sync {
    /// Bytes of workspace that a command needs.
    fn workspace(&self, job: &Job<'_>) -> Result<u64> {
        let _ = job;
        Ok(0)
    }

    /// True if no command needs workspace. It is checked before each command, so that commands need not
    /// be decoded for the answer.
    fn has_no_workspace(&self) -> bool {
        false
    }

    /// Appends a command's actions.
    fn run(&self, job: &Job<'_>) -> Result<()>;
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

    /// Bytes of workspace that a command needs.
    pub fn workspace(&self, device: &Device, command: &CommandRef<'_, Device>) -> u64 {
        if self.work.has_no_workspace() {
            return 0;
        }
        let mut none = Batch::default();
        // An invalid command is refused when it is submitted.
        Job::of(device, command, &mut none).and_then(|job| self.work.workspace(&job)).unwrap_or(0)
    }

    /// Appends a command's actions. After a failure, the batch is unchanged.
    pub fn run(
        &self,
        device: &Device,
        command: &CommandRef<'_, Device>,
        batch: &mut Batch,
    ) -> Result<()> {
        let mark = batch.mark();
        let done = Job::of(device, command, batch).and_then(|job| self.work.run(&job));
        if let Err(failure) = done {
            batch.truncate(mark);
            let text = format!("{}: {}", self.name, failure.text);
            return Err(Failure { code: failure.code, text });
        }
        batch.names.push(self.name.clone());
        Ok(())
    }
}
