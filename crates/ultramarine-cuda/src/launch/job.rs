//! A command under way.

use super::{Device, View};
use crate::memory::Buffer;
use crate::streams::Stream;
use crate::sys::driver::StreamHandle;
use ultramarine_abi::helper::{CommandRef, Failure, Result};

/// A command's tensors and scalars, and where it runs.
pub struct Job<'a> {
    /// The device, whose context is current.
    pub device: &'a Device,
    /// The stream; `None` while the workspace is asked for.
    pub stream: Option<&'a Stream>,
    /// Inputs.
    pub inputs: Vec<View<'a>>,
    /// Outputs.
    pub outputs: Vec<View<'a>>,
    /// Scalars, each the little-endian bits of its dtype.
    pub scalars: Vec<[u64; 2]>,
    /// Address of the workspace, or 0.
    pub workspace: u64,
}

impl<'a> Job<'a> {
    /// Decodes a command.
    pub fn of(
        device: &'a Device,
        stream: Option<&'a Stream>,
        command: &CommandRef<'a, Device>,
    ) -> Result<Self> {
        let views = |n: u32, tensor: &dyn Fn(u32) -> Result<View<'a>>| -> Result<Vec<View<'a>>> {
            let mut views = Vec::with_capacity(n as usize);
            for i in 0..n {
                views.push(tensor(i)?);
            }
            Ok(views)
        };
        let n_scalars = command.raw().n_scalars;
        // SAFETY: the handle of a buffer of this device, or NULL, by the contract.
        let workspace = unsafe { command.workspace().cast::<Buffer>().as_ref() };
        Ok(Self {
            device,
            stream,
            inputs: views(command.n_inputs(), &|i| View::of(&command.input(i)?))?,
            outputs: views(command.n_outputs(), &|i| View::of(&command.output(i)?))?,
            scalars: (0..n_scalars).map(|i| command.scalar(i)).collect::<Result<_>>()?,
            workspace: workspace.map_or(0, Buffer::address),
        })
    }

    /// The driver's stream.
    pub fn queue(&self) -> StreamHandle {
        self.stream.map_or(std::ptr::null_mut(), Stream::handle)
    }

    /// Input `i`.
    pub fn input(&self, i: usize) -> Result<&View<'a>> {
        self.inputs.get(i).ok_or_else(|| Failure::invalid(format!("a command without input {i}")))
    }

    /// Output `i`.
    pub fn output(&self, i: usize) -> Result<&View<'a>> {
        self.outputs.get(i).ok_or_else(|| Failure::invalid(format!("a command without output {i}")))
    }

    /// The first 64 bits of scalar `i`, which are all of every dtype here.
    pub fn scalar(&self, i: usize) -> Result<u64> {
        let found = self.scalars.get(i).map(|words| words[0]);
        found.ok_or_else(|| Failure::invalid(format!("a command without scalar {i}")))
    }

    /// The workspace, which a plan asked for.
    pub fn scratch(&self) -> Result<u64> {
        match self.workspace {
            0 => Err(Failure::invalid("a command without the workspace that its plan asked for")),
            address => Ok(address),
        }
    }
}
