//! A command during its submission. A [`Job`] has its tensors in the form for kernels, its scalars,
//! its workspace and its stream. The families in [`crate::ops`] launch their kernels through it.

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

/// Tensors of a command. Up to four, which is usually enough, are stored inline, because each
/// allocation costs a twentieth of a launch.
pub type Views<'a> = SmallVec<[View<'a>; 4]>;

/// A command during its submission: its tensors and scalars in the form for kernels, and its
/// destination. [`Work::run`] gets it.
///
/// [`Work::run`]: super::Work::run
pub struct Job<'a> {
    /// The device, whose context is current.
    pub device: &'a Device,
    /// The stream. `None` while the size of the workspace is queried.
    pub stream: Option<&'a Stream>,
    /// The graph that receives the launches instead of the stream.
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
        // SAFETY: the handle of a buffer of this device, or NULL, by the contract.
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

    /// Returns true if the job's graph does not write a tensor, so that a kernel may load it before
    /// earlier kernels have ended.
    pub fn is_there_early(&self, view: &View<'_>) -> bool {
        self.device.properties.starts_early()
            && self.graph.is_some_and(|graph| graph.leaves(&view.range()))
    }

    /// Makes a job with one input and one output that replaces this one.
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

    /// Returns the driver's stream. Only code that handles graphs may enqueue to it.
    pub(super) fn queue(&self) -> StreamHandle {
        self.stream.map_or(std::ptr::null_mut(), Stream::handle)
    }

    /// Enqueues a fill with `count` copies of the low `bytes` bytes of `value`: 1, 2 or 4.
    ///
    /// # Safety
    /// The memory belongs to this device, and has that length.
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
    /// Both memories belong to this device, and have that length.
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

    /// Waits for all earlier work, and reads a word. Not allowed while a graph is made.
    ///
    /// # Safety
    /// The word lies in this device's memory.
    pub unsafe fn read_word(&self, from: u64) -> Result<u32> {
        let (Some(stream), mut word) = (self.stream, 0_u32) else {
            return Err(Failure::new("a word is read where nothing runs"));
        };
        let (driver, to) = (self.device.driver, (&raw mut word).cast());
        // SAFETY: by this function's contract; the target is there until the copy is done, which is waited for also after a
        // failure.
        let begun = unsafe { cuda!(driver.copy_to_host(to, from, 4, stream.handle())) };
        let drained = stream.drain();
        begun.and(drained)?;
        Ok(word)
    }

    /// Enqueues the work of a library's call on a given stream. `taken` returns, for the call's
    /// result, whether the library accepted the call.
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

    /// Returns the fault of an earlier kernel, if there is one, because libraries report it as
    /// their own failure.
    #[cold]
    pub fn fault(&self) -> Option<Failure> {
        let (driver, stream) = (self.device.driver, self.stream?.handle());
        // SAFETY: the stream is the device's, whose context is current.
        let result = unsafe { (driver.stream_query)(stream) };
        failure::is_sticky(result).then(|| failure::of(driver, "cuStreamQuery", result))
    }

    /// Keeps an object that a library's call uses, as long as the call may run again.
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

    /// Returns the first 64 bits of scalar `i`, which is enough for every dtype here.
    pub fn scalar(&self, i: usize) -> Result<u64> {
        let found = self.scalars.get(i).map(|words| words[0]);
        found.ok_or_else(|| Failure::invalid(format!("a command without scalar {i}")))
    }

    /// Returns the workspace that the plan requested.
    pub fn scratch(&self) -> Result<u64> {
        match self.workspace {
            0 => Err(Failure::invalid("a command without the workspace that its plan asked for")),
            address => Ok(address),
        }
    }
}
