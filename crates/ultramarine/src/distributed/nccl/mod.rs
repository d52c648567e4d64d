//! Groups of GPUs: a transport that uses the backend's collectives (`ultramarine.collective/1`).
//! For CUDA, they are NCCL's.
//!
//! Each process has one GPU. Rank 0 makes the id of a group, and sends it over a connection to the
//! address that MLX's launcher specifies (`rendezvous.rs`), or by MPI under `mpirun`. Opening a
//! group waits for all processes. Operations are only enqueued, and the watchdog (`watchdog.rs`)
//! aborts operations that wait for a process that has ended.

#[cfg(feature = "distributed")]
mod by_mpi;
mod control;
mod rendezvous;
mod watchdog;

use super::debug;
use super::group::Group;
use super::init::Started;
use super::transport::{
    DeviceEngine, Engine, Failure, HostEngine, HostWork, Kind, Reduction, Transport,
};
use crate::backend::{CollectiveGroup, CollectiveWork, Collectives, Exec, Operand};
use crate::device::{Device, DeviceType};
use crate::error::{Error, Result};
use crate::{devices, shape, stream, sync::lock};
use control::Control;
use rendezvous::Meeting;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use ultramarine_abi::interface::collective::kind;
use ultramarine_runtime::log::{self, Level};
use watchdog::{Watched, limit};

/// Time between two checks whether a group is open.
const PAUSE: Duration = Duration::from_millis(2);

/// Variables of MLX's launcher.
const RANK: &str = "MLX_RANK";
const SIZE: &str = "MLX_WORLD_SIZE";
const HOST: &str = "NCCL_HOST_IP";
const PORT: &str = "NCCL_PORT";

/// Variables of MPI launchers that contain the rank among the processes of this host.
const LOCAL_RANKS: &[&str] = &["OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "PMI_LOCAL_RANK"];

/// GPUs whose backend has collectives, in the order of their indices.
fn gpus() -> Vec<Collectives> {
    // The call loads the backends.
    let count = devices::device_count(DeviceType::Gpu) as u16;
    let all = (0..count).filter_map(|index| devices::get(Device::gpu(index)).ok());
    let mut found: Vec<Collectives> = all.filter_map(|device| device.collectives()).collect();
    // Ranks correspond to the devices of a single backend.
    if let Some(first) = found.first().map(|c| c.device().backend.clone()) {
        found.retain(|c| c.device().backend == first);
    }
    found
}

/// Returns true if a GPU's backend finds its library for collectives.
pub(super) fn is_there() -> bool {
    gpus().first().is_some_and(|gpu| gpu.check_library().is_ok())
}

/// Returns true if a launcher set the variables that contain rank 0's address.
pub(super) fn is_launched() -> bool {
    [RANK, SIZE, HOST, PORT].iter().all(|name| variable(name).is_some())
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.trim().is_empty())
}

/// A variable as a number.
fn parsed<T: std::str::FromStr>(name: &str) -> Result<Option<T>> {
    let Some(value) = variable(name) else { return Ok(None) };
    match value.trim().parse() {
        Ok(number) => Ok(Some(number)),
        Err(_) => Err(Error::value("init", format!("{name} is {value:?}. Set it to a number."))),
    }
}

/// Returns the meeting that the launcher's variables describe. `None` if this process was not
/// started as one of several.
fn meeting() -> Result<Option<Meeting>> {
    let (rank, size) = (parsed::<usize>(RANK)?, parsed::<usize>(SIZE)?);
    let (Some(rank), Some(size)) = (rank, size) else { return Ok(None) };
    if rank >= size {
        return Err(Error::value(
            "init",
            format!("{RANK} is {rank} and {SIZE} is {size}. Set a rank from 0 to the size - 1."),
        ));
    }
    let (host, port) = (variable(HOST), parsed::<u16>(PORT)?);
    match (host, port) {
        (Some(host), Some(port)) => {
            Ok(Some(Meeting { rank, size, host: host.trim().to_owned(), port, limit: limit() }))
        }
        _ => Err(Error::value(
            "init",
            format!(
                "{RANK} and {SIZE} are set, but {HOST} and {PORT} are not, where processes connect to rank 0. Start them by \
                 `python -m ultramarine.launch --backend nccl`, or set an address and a free port of rank 0's host."
            ),
        )),
    }
}

/// Starts the group of all processes on their GPUs. The process's GPU becomes the default device.
///
/// # Errors
/// [`Error::Value`] for invalid variables; [`Error::Runtime`] if a process does not arrive, or the
/// backend fails.
pub(super) fn start() -> Result<Started> {
    let all = gpus();
    let Some(first) = all.first() else {
        return Ok(Started::No(
            "No loaded backend of a GPU has collectives. Install a backend that has them (docs/distributed.md), and NCCL."
                .to_owned(),
        ));
    };
    if let Err(why) = first.check_library() {
        return Ok(Started::No(format!("{why}.")));
    }
    let (rank, size, local, id, control, beside) = match meeting()? {
        Some(meeting) => {
            let (id, control) = meeting.meet(|| first.make_id())?;
            let control = Arc::new(control);
            *lock(&OF_ALL) = Some((meeting.rank, control.clone()));
            let beside = Beside::Links(Comparisons::new(control.clone()));
            (meeting.rank, meeting.size, meeting.rank, id, Some(control), beside)
        }
        None => match by_mpi(first)? {
            Some((id, world)) => {
                let local = LOCAL_RANKS.iter().find_map(|name| variable(name)?.parse().ok());
                let (rank, size) = (world.rank(), world.size());
                (rank, size, local.unwrap_or(rank), id, None, Beside::Transport(world))
            }
            None => {
                return Ok(Started::No(format!(
                    "This process was not started as one of several: {RANK}, {SIZE}, {HOST} and {PORT} are not set, and it \
                     does not run under mpirun. Start it by `python -m ultramarine.launch --backend nccl -n 2 program.py`."
                )));
            }
        },
    };
    let gpu = all[local % all.len()];
    let group = gpu.open(&id, rank, size)?;
    let transport = Gpus::ready(group, control, Some(beside))?;
    let device = gpu.device().device;
    stream::set_default_device(device)?;
    Ok(Started::Group(Group::of(Arc::new(transport))?))
}

/// A group's id, and a transport over MPI for the same processes.
type ByMpi = (Vec<u8>, Arc<dyn Transport>);

#[cfg(feature = "distributed")]
fn by_mpi(gpu: &Collectives) -> Result<Option<ByMpi>> {
    let shared = by_mpi::share(|| gpu.make_id())?;
    Ok(shared.map(|shared| (shared.id, Arc::new(super::mpi::Mpi(shared.world)) as _)))
}

#[cfg(not(feature = "distributed"))]
fn by_mpi(_: &Collectives) -> Result<Option<ByMpi>> {
    Ok(None)
}

/// Tells the other processes why this one exits with a failure. They notice its end anyway, but not
/// the reason.
pub(super) fn end_at_exit(reason: &str) {
    if let Some((rank, control)) = &*lock(&OF_ALL) {
        control.report(&format!("rank {rank} exits after a failure: {reason}"));
    }
}

/// This process's rank, and its connections.
static OF_ALL: Mutex<Option<(usize, Arc<Control>)>> = Mutex::new(None);

/// GPUs of several processes, as a transport.
struct Gpus {
    watched: Arc<Watched>,
    rank: usize,
    size: usize,
    control: Option<Arc<Control>>,
    /// Used by debug mode to compare operations.
    beside: Option<Beside>,
}

/// The means by which debug mode compares operations.
enum Beside {
    /// The processes' connections. They exist only for the group of all processes, because they go
    /// through its rank 0.
    Links(Comparisons),
    /// A transport over MPI for the same processes.
    Transport(Arc<dyn Transport>),
}

impl Beside {
    /// Makes the comparisons for a part of the group. All processes have to call it.
    fn split(&self, color: i32, key: i32) -> Result<Option<Beside>> {
        if !debug::is_on() {
            return Ok(None);
        }
        match self {
            Beside::Transport(all) => Ok(Some(Beside::Transport(all.split(color, key)?))),
            Beside::Links(_) => {
                log::log(
                    Level::Warning,
                    "ULTRAMARINE_DISTRIBUTED_DEBUG compares operations of the group of all processes only. To compare \
                     groups that split() made, too, start the program by mpirun.",
                );
                Ok(None)
            }
        }
    }
}

impl Gpus {
    /// Waits until a group is open.
    fn ready(
        group: Arc<CollectiveGroup>,
        control: Option<Arc<Control>>,
        beside: Option<Beside>,
    ) -> Result<Gpus> {
        let start = Instant::now();
        while !group.is_ready()? {
            let bad = control.as_ref().and_then(|control| control.bad());
            let late = limit().is_some_and(|limit| start.elapsed() >= limit);
            if bad.is_some() || late {
                group.abort();
                let why = match bad {
                    Some(bad) => bad.text,
                    None => format!(
                        "the other processes did not arrive within {limit:?}",
                        limit = start.elapsed()
                    ),
                };
                return Err(Error::runtime(
                    "init",
                    format!(
                        "The group did not open: {why}. Check that all processes run and call init."
                    ),
                ));
            }
            std::thread::sleep(PAUSE);
        }
        let (rank, size) = group.place()?;
        let watched = Watched::new(group, (rank, size), control.clone());
        Ok(Gpus { watched, rank, size, control, beside })
    }
}

impl Transport for Gpus {
    fn name(&self) -> &'static str {
        "nccl"
    }

    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn device(&self) -> Device {
        self.watched.group.device().device
    }

    fn split(&self, color: i32, key: i32) -> Result<Arc<dyn Transport>> {
        self.watched.check("split")?;
        let part = self.watched.group.split(color as u32, key)?;
        let beside = self.beside.as_ref().map(|beside| beside.split(color, key)).transpose()?;
        Ok(Arc::new(Gpus::ready(part, self.control.clone(), beside.flatten())?))
    }

    fn engine(&self) -> Engine<'_> {
        Engine::Device(self)
    }

    fn beside(&self) -> Option<&dyn HostEngine> {
        match self.beside.as_ref()? {
            Beside::Links(links) => Some(links),
            Beside::Transport(transport) => match transport.engine() {
                Engine::Host(engine) => Some(engine),
                Engine::Device(_) => None,
            },
        }
    }
}

fn code(kind: Kind) -> (u32, usize) {
    match kind {
        Kind::AllReduce(Reduction::Sum) => (kind::SUM, 0),
        Kind::AllReduce(Reduction::Max) => (kind::MAX, 0),
        Kind::AllReduce(Reduction::Min) => (kind::MIN, 0),
        Kind::AllGather => (kind::GATHER, 0),
        Kind::SumScatter => (kind::SUM_SCATTER, 0),
        Kind::Send { to } => (kind::SEND, to),
        Kind::Receive { from } => (kind::RECEIVE, from),
    }
}

impl DeviceEngine for Gpus {
    fn encode(
        &self,
        exec: &Exec,
        kind: Kind,
        input: Option<&Operand<'_>>,
        output: Option<&Operand<'_>>,
        description: &str,
    ) -> Result<()> {
        self.watched.check(kind.name())?;
        let Some(of) = input.or(output) else { return Ok(()) };
        let count = shape::size(of.shape);
        if count == 0 {
            return Ok(());
        }
        let (kind, peer) = code(kind);
        let work = CollectiveWork { kind, dtype: of.dtype, peer, count, input, output };
        self.watched.watch(description, || {
            exec.collectives(&self.watched.group, &[work])?;
            Ok(exec.position())
        })
    }
}

/// Debug mode's comparisons: gathers of bytes over the processes' connections.
struct Comparisons {
    control: Arc<Control>,
    next: AtomicU64,
}

impl Comparisons {
    fn new(control: Arc<Control>) -> Comparisons {
        Comparisons { control, next: AtomicU64::new(0) }
    }
}

impl HostEngine for Comparisons {
    unsafe fn run(&self, work: &HostWork<'_>) -> Result<(), Failure> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        // SAFETY: by this function's contract, the input has `count` bytes.
        let bytes = unsafe { std::slice::from_raw_parts(work.input, work.count) };
        let parts = self.control.gather(number, bytes, limit())?.concat();
        if parts.len() != work.count * self.control.size() {
            let text = "A process sent an unexpected message. Run the same version of ultramarine in all processes.";
            return Err(Error::runtime("distributed", text).into());
        }
        // SAFETY: by this function's contract, the output has `count` bytes for each process.
        let place = unsafe { std::slice::from_raw_parts_mut(work.output, parts.len()) };
        place.copy_from_slice(&parts);
        Ok(())
    }
}
