//! A command that is being enqueued. A [`Job`] holds its tensors in the form in which kernels
//! address them, its scalars, its workspace and its stream. The families in [`crate::ops`] launch
//! their kernels through it.

use super::{Device, View};
use crate::context::failure::{self, cuda};
use crate::graph::Writer;
use crate::memory::Buffer;
use crate::streams::Stream;
use crate::sys::driver::{CopyNode, FillNode, StreamHandle};
use core::any::Any;
use smallvec::{SmallVec, smallvec};
use std::sync::Arc;
use ultramarine_abi::helper::{CommandRef, Failure, Result};

/// Tensors of a command. Up to the usual number of tensors is stored on the stack, because each allocation takes a
/// twentieth of a launch's time.
pub type Views<'a> = SmallVec<[View<'a>; 4]>;

/// A command that is being enqueued: its tensors and scalars in the form in which kernels address
/// them, and the stream it runs on. It is passed to [`Work::run`].
///
/// [`Work::run`]: super::Work::run
pub struct Job<'a> {
    /// The device, whose context is current.
    pub device: &'a Device,
    /// The stream; `None` while the workspace size is queried.
    pub stream: Option<&'a Stream>,
    /// The graph that launches are added to, in place of the stream.
    pub graph: Option<&'a Writer<'a>>,
    /// Inputs.
    pub inputs: Views<'a>,
    /// Outputs.
    pub outputs: Views<'a>,
    /// Scalars, each the little-endian bits of its dtype.
    pub scalars: SmallVec<[[u64; 2]; 4]>,
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
        let views = |n: u32, tensor: &dyn Fn(u32) -> Result<View<'a>>| -> Result<Views<'a>> {
            let mut views = Views::with_capacity(n as usize);
            for i in 0..n {
                views.push(tensor(i)?);
            }
            Ok(views)
        };
        let n_scalars = command.raw().n_scalars;
        // SAFETY: by the contract, the handle of a buffer of this device, or NULL.
        let workspace = unsafe { command.workspace().cast::<Buffer>().as_ref() };
        Ok(Self {
            device,
            stream,
            graph: None,
            inputs: views(command.n_inputs(), &|i| View::of(&command.input(i)?))?,
            outputs: views(command.n_outputs(), &|i| View::of(&command.output(i)?))?,
            scalars: (0..n_scalars).map(|i| command.scalar(i)).collect::<Result<_>>()?,
            workspace: workspace.map_or(0, Buffer::address),
        })
    }

    /// Returns true if two commands may run at the same time, because neither writes memory that
    /// the other one reads or writes.
    pub fn is_apart(&self, other: &Job<'_>) -> bool {
        let meet = |a: &View<'_>, b: &View<'_>| {
            let (a, b) = (a.range(), b.range());
            a.start < b.end && b.start < a.end
        };
        let writes = |a: &Job<'_>, b: &Job<'_>| {
            a.outputs.iter().any(|w| b.inputs.iter().chain(&b.outputs).any(|v| meet(w, v)))
        };
        !writes(self, other) && !writes(other, self)
    }

    /// Returns true if no command of the job's graph writes the tensor, so that kernels may load it before the previous
    /// kernels have ended.
    pub fn is_there_early(&self, view: &View<'_>) -> bool {
        self.device.properties.starts_early()
            && self.graph.is_some_and(|graph| graph.leaves(&view.range()))
    }

    /// A command with one input and one output, with everything else taken from this command.
    pub fn part<'b>(&'b self, input: View<'b>, output: View<'b>, workspace: u64) -> Job<'b> {
        Job {
            device: self.device,
            stream: self.stream,
            graph: self.graph,
            inputs: smallvec![input],
            outputs: smallvec![output],
            scalars: SmallVec::new(),
            workspace,
        }
    }

    /// The driver's stream. Only code that also handles graphs may enqueue to it directly.
    pub(super) fn queue(&self) -> StreamHandle {
        self.stream.map_or(std::ptr::null_mut(), Stream::handle)
    }

    /// Enqueues a fill: `count` repetitions of the low 1, 2 or 4 bytes of `value`.
    ///
    /// # Safety
    /// The memory is of this device, and long enough.
    pub unsafe fn fill(&self, to: u64, value: u32, bytes: u32, count: usize) -> Result<()> {
        let (driver, queue) = (self.device.driver, self.queue());
        // SAFETY: by this function's contract.
        unsafe {
            if let Some(graph) = self.graph {
                let node =
                    FillNode { to, pitch: 0, value, element: bytes, width: count, height: 1 };
                return graph.fill(&node);
            }
            match bytes {
                1 => cuda!(driver.set_8(to, value as u8, count, queue)),
                2 => cuda!(driver.set_16(to, value as u16, count, queue)),
                _ => cuda!(driver.set_32(to, value, count, queue)),
            }
        }
    }

    /// Enqueues a copy of bytes.
    ///
    /// # Safety
    /// Both memories are of this device, and long enough.
    pub unsafe fn copy(&self, to: u64, from: u64, bytes: usize) -> Result<()> {
        let driver = self.device.driver;
        // SAFETY: by this function's contract.
        unsafe {
            match self.graph {
                Some(graph) => graph.copy(&CopyNode::of(to, from, bytes)),
                None => cuda!(driver.copy_within(to, from, bytes, self.queue())),
            }
        }
    }

    /// Waits for all earlier work of the stream, and reads a word. Not allowed while a graph is
    /// made.
    ///
    /// # Safety
    /// The word is in this device's memory.
    pub unsafe fn read_word(&self, from: u64) -> Result<u32> {
        let (Some(stream), mut word) = (self.stream, 0_u32) else {
            return Err(Failure::new("a word is read where nothing runs"));
        };
        let (driver, to) = (self.device.driver, (&raw mut word).cast());
        // SAFETY: by this function's contract. The target outlives the copy, because the copy is waited for even after a
        // failure.
        let begun = unsafe { cuda!(driver.copy_to_host(to, from, 4, stream.handle())) };
        let drained = stream.drain();
        begun.and(drained)?;
        Ok(word)
    }

    /// Enqueues the work that a library enqueues to the stream that it is given. `taken` decides
    /// from the library's answer whether it did enqueue the work.
    pub fn library<T>(
        &self,
        enqueue: impl FnOnce(StreamHandle) -> T,
        taken: impl FnOnce(&T) -> bool,
    ) -> Result<T> {
        match self.graph {
            Some(graph) => graph.library(enqueue, taken),
            None => Ok(enqueue(self.queue())),
        }
    }

    /// The fault of an earlier kernel, if there is one. Libraries report such a fault by codes of
    /// their own.
    #[cold]
    pub fn fault(&self) -> Option<Failure> {
        let (driver, stream) = (self.device.driver, self.stream?.handle());
        // SAFETY: the stream is the device's, whose context is current.
        let result = unsafe { (driver.stream_query)(stream) };
        failure::is_sticky(result).then(|| failure::of(driver, "cuStreamQuery", result))
    }

    /// Keeps an object that a library's call uses alive for as long as the call may run again.
    pub fn keep(&self, object: &Arc<impl Any + Send + Sync>) {
        if let Some(graph) = self.graph {
            graph.keep(object.clone());
        }
    }

    /// Input `i`.
    pub fn input(&self, i: usize) -> Result<&View<'a>> {
        self.inputs.get(i).ok_or_else(|| Failure::invalid(format!("a command without input {i}")))
    }

    /// Output `i`.
    pub fn output(&self, i: usize) -> Result<&View<'a>> {
        self.outputs.get(i).ok_or_else(|| Failure::invalid(format!("a command without output {i}")))
    }

    /// The low 64 bits of scalar `i`, which hold the whole value for every dtype that is used here.
    pub fn scalar(&self, i: usize) -> Result<u64> {
        let found = self.scalars.get(i).map(|words| words[0]);
        found.ok_or_else(|| Failure::invalid(format!("a command without scalar {i}")))
    }

    /// The address of the workspace that the plan asked for.
    pub fn scratch(&self) -> Result<u64> {
        match self.workspace {
            0 => Err(Failure::invalid("a command without the workspace that its plan asked for")),
            address => Ok(address),
        }
    }
}
