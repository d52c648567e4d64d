//! MPI as a transport, by [`ultramarine_mpi`]: for host memory, and for messages and gathers of GPU
//! memory if MPI accepts it.

use super::Group;
use super::device_memory;
use super::init::Started;
use super::transport::{Engine, Failure, HostEngine, HostWork, Kind, Lent, Reduction, Transport};
use crate::device::Device;
use crate::dtype::Dtype;
use crate::error::{Error, Result};
use std::sync::Arc;
use ultramarine_mpi::{Communicator, Request};

/// Returns true if an MPI library can be found.
pub(super) fn is_there() -> bool {
    ultramarine_mpi::find().is_ok()
}

/// As [`super::end_at_exit`].
pub(super) fn end_at_exit(reason: &str) {
    ultramarine_mpi::abort_at_exit(reason);
}

/// Starts the group of all processes that an MPI launcher started. In a process that was started
/// alone, MPI is not started.
pub(super) fn start() -> Result<Started> {
    if ultramarine_mpi::launcher().is_none_or(|launcher| launcher.size <= 1) {
        let text = "This process was not started as one of several. Start it by mpirun or python -m ultramarine.launch.";
        return Ok(Started::No(text.to_owned()));
    }
    match ultramarine_mpi::world() {
        Ok(world) => Ok(Started::Group(Group::of(Arc::new(Mpi(world)))?)),
        Err(error @ ultramarine_mpi::Error::NotFound(_)) => Ok(Started::No(sentence(&error))),
        Err(error) => Err(Error::runtime("init", sentence(&error))),
    }
}

/// The text of an error, with a full stop.
fn sentence(error: &ultramarine_mpi::Error) -> String {
    let text = error.to_string();
    if text.ends_with('.') { text } else { format!("{text}.") }
}

pub(super) struct Mpi(pub Communicator);

impl Transport for Mpi {
    fn name(&self) -> &'static str {
        "mpi"
    }

    fn rank(&self) -> usize {
        self.0.rank()
    }

    fn size(&self) -> usize {
        self.0.size()
    }

    fn device(&self) -> Device {
        Device::CPU
    }

    fn split(&self, color: i32, key: i32) -> Result<Arc<dyn Transport>> {
        match self.0.split(color, key) {
            Ok(part) => Ok(Arc::new(Mpi(part))),
            Err(error) => Err(Error::runtime("split", sentence(&error))),
        }
    }

    fn engine(&self) -> Engine<'_> {
        Engine::Host(self)
    }

    fn takes_device_memory(&self, device: Device, kind: Kind) -> bool {
        self.0.takes_device_memory(kind_of(kind)) && device_memory::has_addresses(device)
    }
}

fn dtype_of(dtype: Dtype) -> Option<ultramarine_mpi::Dtype> {
    ultramarine_mpi::Dtype::ALL.into_iter().find(|known| known.name() == dtype.name())
}

fn kind_of(kind: Kind) -> ultramarine_mpi::Kind {
    match kind {
        Kind::AllReduce(Reduction::Sum) => ultramarine_mpi::Kind::AllSum,
        Kind::AllReduce(Reduction::Max) => ultramarine_mpi::Kind::AllMax,
        Kind::AllReduce(Reduction::Min) => ultramarine_mpi::Kind::AllMin,
        Kind::AllGather => ultramarine_mpi::Kind::AllGather,
        Kind::SumScatter => ultramarine_mpi::Kind::SumScatter,
        Kind::Send { to } => ultramarine_mpi::Kind::Send { to },
        Kind::Receive { from } => ultramarine_mpi::Kind::Receive { from },
    }
}

/// The request for an operation on these addresses.
fn request<'a>(
    work: &HostWork<'a>,
    input: *const u8,
    output: *mut u8,
) -> Result<Request<'a>, Failure> {
    let Some(dtype) = dtype_of(work.dtype) else {
        let text =
            format!("MPI cannot transfer {}. View the array as uint8, or convert it", work.dtype);
        return Err(Error::runtime(work.kind.name(), text).into());
    };
    let (kind, count, description) = (kind_of(work.kind), work.count, work.description);
    Ok(Request { kind, dtype, input, output, count, description })
}

fn failure(work: &HostWork<'_>, error: &ultramarine_mpi::Error) -> Failure {
    Failure {
        keeps_memory: error.keeps_memory(),
        error: Error::runtime(work.kind.name(), sentence(error)),
    }
}

impl HostEngine for Mpi {
    unsafe fn run(&self, work: &HostWork<'_>) -> Result<(), Failure> {
        let request = request(work, work.input, work.output)?;
        // SAFETY: the caller keeps this function's contract. If a failure says that MPI keeps the
        // memory, it is not freed.
        unsafe { self.0.run(&request) }.map_err(|error| failure(work, &error))
    }

    unsafe fn run_on_device(&self, work: &HostWork<'_>, lent: Lent) -> Result<(), Failure> {
        let request = request(work, lent.input, lent.output)?;
        // SAFETY: as above.
        unsafe { self.0.run_on_device(&request, lent.device, lent.owner) }
            .map_err(|error| failure(work, &error))
    }
}
