//! Transports: the libraries that move data among the processes of a group.
//!
//! A transport has one of two engines. A host engine takes addresses in the host's memory (some, of GPUs, too) and returns when the work is
//! done; the group's stream is a stream of the CPU, whose thread waits. A device engine encodes the work on a stream of
//! its device and returns at once; the group's stream is a stream of that device. Either way the evaluator brings operands
//! to the stream's device, row-major, in the order of the group's chain.

use crate::backend::{Exec, Operand};
use crate::{device::Device, dtype::Dtype, error::Error, error::Result};
use std::fmt::{self, Debug};
use std::sync::Arc;

/// A reduction over the processes of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Reduction {
    /// The sum; of bools the logical or.
    Sum,
    /// The maximum.
    Max,
    /// The minimum.
    Min,
}

/// A collective operation or a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// A reduction of equally shaped arrays, for all processes.
    AllReduce(Reduction),
    /// Arrays of all processes behind one another, in the order of ranks.
    AllGather,
    /// Part `rank` of the sum, which has as many equal parts as there are processes.
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
    /// The name of the function that calls it.
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

/// One operation on the host's memory.
pub(crate) struct HostWork<'a> {
    /// The operation.
    pub kind: Kind,
    /// Dtype of input and output: none of the storage dtypes.
    pub dtype: Dtype,
    /// The operand, row-major. Dangling for [`Kind::Receive`], and where `count` is 0.
    pub input: *const u8,
    /// The result, row-major. Dangling for [`Kind::Send`], and where it has no elements.
    pub output: *mut u8,
    /// Number of elements of the operand; of the result for [`Kind::Receive`].
    pub count: usize,
    /// Operation, dtype and shape, for reports of what a process waits for.
    pub description: &'a str,
}

impl Debug for HostWork<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.description)
    }
}

/// Operands in a GPU's memory.
pub(crate) struct Lent {
    /// Address of the operand; dangling where it has no elements.
    pub input: *const u8,
    /// Address of the result, likewise.
    pub output: *mut u8,
    /// The GPU in CUDA's numbering.
    pub device: i32,
    /// Holds both.
    pub owner: Box<dyn Send>,
}

/// A failure of a host engine.
#[derive(Debug)]
pub(crate) struct Failure {
    pub error: Error,
    /// The library may still read and write the operation's memory, which is therefore never freed.
    pub keeps_memory: bool,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure { error, keeps_memory: false }
    }
}

/// A transport over the host's memory.
pub(crate) trait HostEngine: Send + Sync {
    /// Runs one operation, and returns when it is done. Calls of a group come one after the other, from any thread. A
    /// message may be returned from before its receiver has it, if the engine has copied it.
    ///
    /// # Errors
    /// [`Error::Runtime`](crate::Error::Runtime) with the operation's description: the library failed, or a process
    /// did not answer in time.
    ///
    /// # Safety
    /// `input` and `output` hold as many elements as the operation reads and writes, do not overlap, and stay until the
    /// call returns; after a failure that says so, until the process ends.
    unsafe fn run(&self, work: &HostWork<'_>) -> Result<(), Failure>;

    /// As [`HostEngine::run`], on a GPU's memory, for kinds that [`Transport::takes_device_memory`] admits. A message that is
    /// returned from before its receiver has it keeps `lent.owner`.
    ///
    /// # Errors
    /// As [`HostEngine::run`].
    ///
    /// # Safety
    /// As [`HostEngine::run`], with addresses on the GPU, where nothing else uses them.
    unsafe fn run_on_device(&self, work: &HostWork<'_>, lent: Lent) -> Result<(), Failure> {
        let text = format!(
            "{} cannot use memory of GPU {}. Copy the array to the CPU",
            work.description, lent.device
        );
        Err(Error::runtime(work.kind.name(), text).into())
    }
}

/// A transport over a device's memory.
pub(crate) trait DeviceEngine: Send + Sync {
    /// Encodes one operation on the stream of `exec`, behind the work there, without waiting for it. Operands are row-major
    /// and on the device; there is no input for [`Kind::Receive`] and no output for [`Kind::Send`].
    ///
    /// # Errors
    /// Those of the backend. Failures on the way are those of the device's stream.
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

/// The processes of a group, as their library knows them.
pub(crate) trait Transport: Send + Sync {
    /// Name of the library as `init` takes it: "mpi", "nccl".
    fn name(&self) -> &'static str;

    /// Number of the calling process in the group.
    fn rank(&self) -> usize;

    /// Number of processes.
    fn size(&self) -> usize;

    /// Device of the group's stream: the CPU for a host engine.
    fn device(&self) -> Device;

    /// The transport of those processes that give the same color, in the order of `key`, then of rank. All processes call
    /// it.
    ///
    /// # Errors
    /// [`Error::Runtime`](crate::Error::Runtime) if the library fails.
    fn split(&self, color: i32, key: i32) -> Result<Arc<dyn Transport>>;

    fn engine(&self) -> Engine<'_>;

    /// Returns true if a host engine runs operations of a kind on the memory of a device.
    fn takes_device_memory(&self, _device: Device, _kind: Kind) -> bool {
        false
    }

    /// Of a device's engine: gathers of bytes beside it, by which debug mode compares operations; `None` if it has none.
    fn beside(&self) -> Option<&dyn HostEngine> {
        None
    }
}
