//! The id of a group under `mpirun`: an MPI gather distributes the id that rank 0 makes.

use crate::error::{Error, Result};
use ultramarine_abi::interface::collective::MOST_ID_BYTES;
use ultramarine_mpi::{Communicator, Dtype, Kind, Request};

/// Bytes of an id, with its length in front.
const BYTES: usize = MOST_ID_BYTES + 2;

/// The id that rank 0 makes, and a group of the processes that MPI's launcher started.
pub(super) struct Shared {
    pub id: Vec<u8>,
    pub world: Communicator,
}

/// Returns rank 0's id in all processes that MPI's launcher started. `None` if MPI's launcher did
/// not start this process.
///
/// # Errors
/// [`Error::Runtime`] if MPI fails, or rank 0 makes no id.
pub(super) fn share(make_id: impl FnOnce() -> Result<Vec<u8>>) -> Result<Option<Shared>> {
    if ultramarine_mpi::launcher().is_none_or(|launcher| launcher.size < 2) {
        return Ok(None);
    }
    let failed = |why: &dyn std::fmt::Display| Error::runtime("init", format!("{why}."));
    let world = ultramarine_mpi::world().map_err(|why| failed(&why))?;
    let mut own = vec![0u8; BYTES];
    let made = if world.rank() == 0 { make_id() } else { Ok(Vec::new()) };
    if let Ok(id) = &made
        && id.len() <= MOST_ID_BYTES
    {
        own[..2].copy_from_slice(&(id.len() as u16).to_le_bytes());
        own[2..2 + id.len()].copy_from_slice(id);
    }
    let mut all = vec![0u8; BYTES * world.size()];
    let request = Request {
        kind: Kind::AllGather,
        dtype: Dtype::Uint8,
        input: own.as_ptr(),
        output: all.as_mut_ptr(),
        count: BYTES,
        description: "the id of a group of GPUs",
    };
    // SAFETY: the input has BYTES elements, and the output BYTES for each process.
    if let Err(why) = unsafe { world.run(&request) } {
        if why.keeps_memory() {
            std::mem::forget((own, all));
        }
        return Err(failed(&why));
    }
    // Return the error only here, so that the other processes were informed even if making the id
    // failed.
    made?;
    let length = usize::from(u16::from_le_bytes([all[0], all[1]])).min(MOST_ID_BYTES);
    if length == 0 {
        return Err(failed(&"rank 0 could not make the id of a group of GPUs"));
    }
    Ok(Some(Shared { id: all[2..2 + length].to_vec(), world }))
}
