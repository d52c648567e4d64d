//! The group of all processes.

use super::{Group, launched, nccl};
use crate::error::{Error, Result, bail};
use crate::eval::eval;
use crate::{array::Array, sync::lock};
use std::sync::{Mutex, OnceLock};

/// MLX's names of backends.
const BACKENDS: &[&str] = &["any", "jaccl", "mpi", "nccl", "ring"];

/// The groups of all processes that exist, by backend, in the order of their creation.
static WORLDS: Mutex<Vec<(&str, Group)>> = Mutex::new(Vec::new());

/// The result of starting a backend.
pub(super) enum Started {
    Group(Group),
    /// The backend is not available, or this process was not started as one of several. Contains
    /// the reason.
    No(String),
}

fn alone() -> Group {
    static ALONE: OnceLock<Group> = OnceLock::new();
    ALONE.get_or_init(Group::alone).clone()
}

/// Returns true if the library of a backend can be found: "mpi" (Open MPI or MPICH), "nccl" (NCCL,
/// for a GPU of this host), or "any". The library may still fail to start, which `init(true,
/// backend)` reports. Returns false for unknown names.
///
/// ```
/// use ultramarine::distributed;
/// assert!(!distributed::is_available("ring"));
/// ```
pub fn is_available(backend: &str) -> bool {
    match backend {
        "any" => is_available("mpi") || is_available("nccl"),
        "mpi" => mpi_is_there(),
        "nccl" => nccl::is_there(),
        _ => false,
    }
}

/// Returns the group of all processes that were started together. Each call returns the same group.
/// `backend` is "any", "mpi", "nccl", or another of MLX's names, whose backends are not available.
/// "any" is NCCL if a launcher set its variables, otherwise MPI.
///
/// With "nccl", each process uses one GPU, which becomes the default device. The GPU follows from
/// the process's rank among the processes of its host.
///
/// A process that was started alone gets a group of one process. If `strict`, this is an error
/// instead.
///
/// # Errors
/// [`Error::Value`] if MLX has no such backend. [`Error::Runtime`] in two cases: `strict` is set,
/// and no launcher of the backend started the process; or the environment says that a launcher
/// started several processes, but they cannot communicate.
///
/// ```
/// use ultramarine::distributed;
/// let group = distributed::init(false, "any")?;
/// assert!(group.rank() < group.size());
/// # Ok::<(), ultramarine::Error>(())
/// ```
pub fn init(strict: bool, backend: &str) -> Result<Group> {
    let Some(backend) = BACKENDS.iter().copied().find(|known| *known == backend) else {
        let known: Vec<String> = BACKENDS.iter().map(|name| format!("'{name}'")).collect();
        bail!("init", "unknown backend '{backend}'. Choose one of {}.", known.join(", "));
    };
    let mut worlds = lock(&WORLDS);
    if let Some((_, group)) = worlds.iter().find(|(name, _)| backend == "any" || *name == backend) {
        return Ok(group.clone());
    }
    let mut reasons = Vec::new();
    for name in candidates(backend) {
        match start(name)? {
            Started::Group(group) => {
                worlds.push((name, group.clone()));
                return Ok(group);
            }
            Started::No(reason) => reasons.push(reason),
        }
    }
    let reasons: String = reasons.iter().map(|reason| format!("{reason} ")).collect();
    if strict {
        return Err(Error::runtime(
            "init",
            format!(
                "communication backend '{backend}' is not available. {reasons}Call init() without strict=True for a group of \
                 this process alone."
            ),
        ));
    }
    if let Some(launched) = launched::by_mlx().or_else(launched::by_mpi) {
        return Err(Error::runtime(
            "init",
            format!(
                "this process was started as one of several ({launched}), which needs a communication backend. {reasons}\
                 Start one process, or unset these variables."
            ),
        ));
    }
    Ok(alone())
}

/// The backends to try, in order.
fn candidates(backend: &'static str) -> &'static [&'static str] {
    match backend {
        "any" if nccl::is_launched() => &["nccl", "mpi"],
        "any" | "mpi" => &["mpi"],
        "nccl" => &["nccl"],
        _ => &[],
    }
}

fn start(backend: &str) -> Result<Started> {
    match backend {
        "mpi" => start_mpi(),
        "nccl" => nccl::start(),
        _ => Ok(Started::No(String::new())),
    }
}

/// Evaluates all operations that were called, of all groups; see [`Group::finish`]. Call it before
/// the program ends, unless all processes evaluate all results.
///
/// # Errors
/// The first error of an evaluation.
pub fn finish() -> Result<()> {
    // Evaluate them together, because another process may wait for any of them first.
    let last: Vec<Array> = Group::all().iter().filter_map(|group| group.chain().last()).collect();
    eval(&last)
}

/// Announces that this process exits with a failure. Other processes may be waiting for it in an
/// operation, so its exit ends them, if MPI can. From now on, waiting operations of this process
/// fail. Does nothing without a group of several processes.
pub fn end_at_exit(reason: &str) {
    #[cfg(feature = "distributed")]
    if lock(&WORLDS).iter().any(|(_, group)| group.size() > 1) {
        super::mpi::end_at_exit(reason);
    }
    nccl::end_at_exit(reason);
}

#[cfg(feature = "distributed")]
use super::mpi::{is_there as mpi_is_there, start as start_mpi};

#[cfg(not(feature = "distributed"))]
fn mpi_is_there() -> bool {
    false
}

#[cfg(not(feature = "distributed"))]
fn start_mpi() -> Result<Started> {
    Ok(Started::No("The crate was built without the feature `distributed`. Enable it.".to_owned()))
}
