//! Records of operations, and of planning.

use crate::{device::Device, dtype::Dtype, shape::Shape, stream::Stream};
use smallvec::SmallVec;
use std::fmt;

/// A tensor's shape and dtype. `Display` writes it as `float32[2,3]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Tensor {
    /// Sizes along the axes.
    pub shape: Shape,
    /// Dtype of the elements.
    pub dtype: Dtype,
}

/// As `float32[2,3]`.
impl fmt::Display for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[", self.dtype)?;
        for (i, n) in self.shape.iter().enumerate() {
            if i > 0 {
                write!(f, ",")?;
            }
            write!(f, "{n}")?;
        }
        write!(f, "]")
    }
}

/// The means by which an operation ran. [`Dispatch::Fallback`] and [`Dispatch::Decomposed`] show
/// operations for which a backend has no kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dispatch {
    /// By the backend's own kernels.
    Native,
    /// By simpler operations on the same device, or as one of them.
    Decomposed,
    /// On the CPU, by way of the host.
    Fallback,
    /// Without a command: another view of its operand, or a result without elements.
    View,
    /// As a call of a compiled function: its operations have events of their own, one deeper.
    Compiled,
}

impl Dispatch {
    /// Returns its name in tables and files: `native`, `decomposed`, `fallback`, `view` or
    /// `compiled`.
    pub fn name(self) -> &'static str {
        match self {
            Dispatch::Native => "native",
            Dispatch::Decomposed => "decomposed",
            Dispatch::Fallback => "fallback",
            Dispatch::View => "view",
            Dispatch::Compiled => "compiled",
        }
    }
}

/// The clock of [`Event::start`] and [`Event::duration`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Clock {
    /// The device noted the times, in the order of its stream.
    Device,
    /// The host's clock around work that is done when it returns.
    Host,
    /// The host's clock around a submission to a device that runs ahead and has no clock: not the time of the work.
    Submission,
}

impl Clock {
    /// Returns its name in tables and files: `device`, `host` or `submission`.
    pub fn name(self) -> &'static str {
        match self {
            Clock::Device => "device",
            Clock::Host => "host",
            Clock::Submission => "submission",
        }
    }
}

/// A task of an evaluation: one operation, or a fused program of several. Times are in nanoseconds
/// since the profile began. [`Report::events`](super::Report::events) has all of a profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// MLX's name of the operation; of a fused program, that of the last.
    pub op: &'static str,
    /// The operations of a fused program, in order; empty for one that ran by itself.
    pub fused: Vec<&'static str>,
    /// Operands. Constants that a program carries are not among them.
    pub inputs: Vec<Tensor>,
    /// Results.
    pub outputs: Vec<Tensor>,
    /// Where it ran; of a fallback, where it should have.
    pub device: Device,
    /// The backend that serves the device.
    pub backend: &'static str,
    /// Index of the stream.
    pub stream: u32,
    /// The means.
    pub dispatch: Dispatch,
    /// Events that it is inside of: operations of a compiled function's call, and parts of a decomposition, are at least 1
    /// deep.
    pub depth: u32,
    /// It is a part of another operation, whose time has its own in it: of a decomposition, or a command of several.
    pub part: bool,
    /// It ran by recorded commands, without nodes and planning; of a call, all of it did.
    pub replayed: bool,
    /// Commands that backends were given for it, parts included.
    pub commands: u64,
    /// Bytes of distinct elements that these read.
    pub bytes_read: u64,
    /// Bytes that they wrote.
    pub bytes_written: u64,
    /// When it began, by [`Event::clock`].
    pub start: u64,
    /// How long it took, by [`Event::clock`].
    pub duration: u64,
    /// Clock of the times.
    pub clock: Clock,
    /// When the host began to prepare and submit it.
    pub host_start: u64,
    /// How long that took; where the clock is the host's, the work included.
    pub host_duration: u64,
    /// The host's thread, counted from 0.
    pub thread: u32,
}

impl Event {
    /// Returns the name of the operation. Those of a fused program are joined by `+`: `exp+add`.
    pub fn operation(&self) -> String {
        if self.fused.is_empty() { self.op.to_owned() } else { self.fused.join("+") }
    }

    /// Returns the shapes and dtypes of operands and results: `float32[2,3], float32[3] ->
    /// float32[2,3]`.
    pub fn tensors(&self) -> String {
        let list =
            |all: &[Tensor]| all.iter().map(Tensor::to_string).collect::<Vec<_>>().join(", ");
        match self.inputs.is_empty() {
            true => format!("-> {}", list(&self.outputs)),
            false => format!("{} -> {}", list(&self.inputs), list(&self.outputs)),
        }
    }

    /// Returns the bytes read and written: [`Event::bytes_read`] and [`Event::bytes_written`]
    /// together.
    pub fn bytes(&self) -> u64 {
        self.bytes_read + self.bytes_written
    }
}

/// The planning of an evaluation on the host: what is fused with what, and what is composed of other operations. Times are
/// in nanoseconds since the profile began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planning {
    /// Lazy operations that the evaluation claimed.
    pub operations: usize,
    /// Tasks that they became.
    pub tasks: usize,
    /// Its beginning.
    pub start: u64,
    /// How long it took.
    pub duration: u64,
    /// The host's thread, as [`Event::thread`].
    pub thread: u32,
}

/// A few tensors.
pub(crate) type Tensors = SmallVec<[Tensor; 3]>;

/// Properties of a task that are known before it runs.
pub(crate) struct Description {
    pub op: &'static str,
    pub fused: Vec<&'static str>,
    pub inputs: Tensors,
    pub outputs: Tensors,
    pub stream: Stream,
    /// It is, or has, a part of an operation that was lowered to simpler ones.
    pub decomposed: bool,
    /// It runs by recorded commands.
    pub replayed: bool,
}
