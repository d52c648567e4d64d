//! Requests decoded, and what is made of them.

use super::{Device, Job};
use crate::dtype::Dtype;
use crate::streams::Batch;
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
    /// The device.
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

    /// Refuses dtypes that the device cannot compute with.
    pub fn computes(&self, dtypes: &[Dtype]) -> Result<()> {
        match dtypes.contains(&Dtype::Float64) && !self.device.context.properties.float64 {
            true => Err(Failure::unsupported("the device has no arithmetic of float64")),
            false => Ok(()),
        }
    }

    /// The refusal of a code, or of the whole operation.
    pub fn unknown(&self, code: Option<u32>) -> Failure {
        let row = schema::find(self.op);
        let name = row.map_or("", |row| row.name);
        let code = row.zip(code).and_then(|(row, code)| row.code(code));
        let code = code.map_or(String::new(), |code| format!(" {}", code.name));
        Failure::unsupported(format!("op {} {name}{code} is unknown here", self.op))
    }
}

/// The work of a plan.
pub trait Work: Send + Sync {
    /// Bytes of workspace for a command.
    fn workspace(&self, job: &Job<'_>) -> Result<u64> {
        let _ = job;
        Ok(0)
    }

    /// Appends a command's actions.
    fn run(&self, job: &Job<'_>) -> Result<()>;
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

    /// Bytes of workspace for a command.
    pub fn workspace(&self, device: &Device, command: &CommandRef<'_, Device>) -> u64 {
        let mut none = Batch::default();
        // A command that is wrong is refused when it is submitted.
        Job::of(device, command, &mut none).and_then(|job| self.work.workspace(&job)).unwrap_or(0)
    }

    /// Appends a command's actions. A failure leaves the batch as it was.
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
