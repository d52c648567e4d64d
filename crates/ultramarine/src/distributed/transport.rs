//! Transports: the libraries that move data among the processes of a group.
//!
//! A transport has one of two engines:
//!
//! - A host engine takes addresses in host memory, and sometimes in GPU memory. It returns when the
//!   work is done. The group's stream is a stream of the CPU, whose thread waits.
//! - A device engine encodes the work on a stream of its device, and returns at once. The group's
//!   stream is a stream of that device.
//!
//! With both engines, the evaluator brings row-major operands to the stream's device, in the order
//! of the group's chain.

use crate::backend::{Exec, Operand};
use crate::{device::Device, dtype::Dtype, error::Error, error::Result};
use std::fmt::{self, Debug};
use std::sync::Arc;

/// A reduction over the processes of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Reduction {
    /// The sum. For bools, the logical or.
    Sum,
    /// The maximum.
    Max,
    /// The minimum.
    Min,
}

/// A collective operation or a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// A reduction of arrays of the same shape. All processes get the result.
    AllReduce(Reduction),
    /// The concatenated arrays of all processes, in the order of ranks.
    AllGather,
    /// Part `rank` of the sum, which is cut into as many equal parts as there are processes.
    SumScatter,
    /// A message to a process.
    Send {
        /// Rank of the receiver.
        to: usize,
    },
    /// A message from a process.
    Receive {
        /// Rank of the sender.
        from: usize,
    },
}

impl Kind {
    /// The name of the public function for the operation.
    pub fn name(self) -> &'static str {
        match self {
            Kind::AllReduce(Reduction::Sum) => "all_sum",
            Kind::AllReduce(Reduction::Max) => "all_max",
            Kind::AllReduce(Reduction::Min) => "all_min",
            Kind::AllGather => "all_gather",
            Kind::SumScatter => "sum_scatter",
            Kind::Send { .. } => "send",
            Kind::Receive { .. } => "recv",
        }
    }

    /// Returns true if all processes of the group take part.
    pub fn is_collective(self) -> bool {
        !matches!(self, Kind::Send { .. } | Kind::Receive { .. })
    }
}

/// An operation on host memory.
pub(crate) struct HostWork<'a> {
    /// The operation.
    pub kind: Kind,
    /// Dtype of input and output. Not a storage dtype.
    pub dtype: Dtype,
    /// The operand, row-major. Dangling for [`Kind::Receive`], and if `count` is 0.
    pub input: *const u8,
    /// The result, row-major. Dangling for [`Kind::Send`], and if it has no elements.
    pub output: *mut u8,
    /// Number of elements of the operand. For [`Kind::Receive`], number of elements of the result.
    pub count: usize,
    /// Operation, dtype and shape, for reports about waiting operations.
    pub description: &'a str,
}

impl Debug for HostWork<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.description)
    }
}

/// Operands in GPU memory.
pub(crate) struct Lent {
    /// Address of the operand. Dangling if it has no elements.
    pub input: *const u8,
    /// Address of the result. Dangling if it has no elements.
    pub output: *mut u8,
    /// The GPU in CUDA's numbering.
    pub device: i32,
    /// Keeps the memory of both alive.
    pub owner: Box<dyn Send>,
}

/// A failure of a host engine.
#[derive(Debug)]
pub(crate) struct Failure {
    pub error: Error,
    /// True if the library may still read and write the operation's memory. The memory is then
    /// never freed.
    pub keeps_memory: bool,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure { error, keeps_memory: false }
    }
}

/// A transport over host memory.
pub(crate) trait HostEngine: Send + Sync {
    /// Runs one operation, and returns when it is done. Calls for a group are sequential, from any
    /// thread. Sending a message may return before the receiver has it, if the engine has copied
    /// the message.
    ///
    /// # Errors
    /// [`Error::Runtime`](crate::Error::Runtime) with the operation's description: the library
    /// failed, or a process did not answer in time.
    ///
    /// # Safety
    /// `input` and `output` hold as many elements as the operation reads and writes, and do not
    /// overlap. They stay valid until the call returns or, after a failure with `keeps_memory`,
    /// until the process ends.
    unsafe fn run(&self, work: &HostWork<'_>) -> Result<(), Failure>;

    /// Runs an operation like [`HostEngine::run`], on GPU memory, for kinds that
    /// [`Transport::takes_device_memory`] accepts. If sending a message returns before the receiver
    /// has it, the engine keeps `lent.owner`.
    ///
    /// # Errors
    /// As [`HostEngine::run`].
    ///
    /// # Safety
    /// As [`HostEngine::run`], for addresses on the GPU, which nothing else uses meanwhile.
    unsafe fn run_on_device(&self, work: &HostWork<'_>, lent: Lent) -> Result<(), Failure> {
        let text = format!(
            "{} cannot use memory of GPU {}. Copy the array to the CPU",
            work.description, lent.device
        );
        Err(Error::runtime(work.kind.name(), text).into())
    }
}

/// A transport over device memory.
pub(crate) trait DeviceEngine: Send + Sync {
    /// Encodes one operation on the stream of `exec`, after the stream's earlier work, without
    /// waiting. Operands are row-major and on the device. [`Kind::Receive`] has no input, and
    /// [`Kind::Send`] no output.
    ///
    /// # Errors
    /// Those of the backend. Later failures are reported by the device's stream.
    fn encode(
        &self,
        exec: &Exec,
        kind: Kind,
        input: Option<&Operand<'_>>,
        output: Option<&Operand<'_>>,
        description: &str,
    ) -> Result<()>;
}

/// The engine of a transport.
pub(crate) enum Engine<'a> {
    Host(&'a dyn HostEngine),
    #[allow(dead_code, reason = "no transport of a device is in this crate")]
    Device(&'a dyn DeviceEngine),
}

/// The processes of a group, in the form that their library uses.
pub(crate) trait Transport: Send + Sync {
    /// Name of the library for `init`: "mpi", "nccl".
    fn name(&self) -> &'static str;

    /// Rank of the calling process in the group.
    fn rank(&self) -> usize;

    /// Number of processes.
    fn size(&self) -> usize;

    /// Device of the group's stream. For a host engine, the CPU.
    fn device(&self) -> Device;

    /// Makes the transport of the processes that pass the same color, in the order of `key`, then
    /// of rank. All processes have to call it.
    ///
    /// # Errors
    /// [`Error::Runtime`](crate::Error::Runtime) if the library fails.
    fn split(&self, color: i32, key: i32) -> Result<Arc<dyn Transport>>;

    fn engine(&self) -> Engine<'_>;

    /// Returns true if a host engine can run operations of a kind on the memory of a device.
    fn takes_device_memory(&self, _device: Device, _kind: Kind) -> bool {
        false
    }

    /// For a device engine: a host engine that gathers bytes, by which debug mode compares
    /// operations. `None` if there is none.
    fn beside(&self) -> Option<&dyn HostEngine> {
        None
    }
}
