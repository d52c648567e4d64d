//! Environment variables by which launchers announce that there are several processes.

use std::env;

/// The variables by which MLX's launcher announces that this is one of several processes. `None` if
/// there is only one process.
pub(super) fn by_mlx() -> Option<String> {
    let get = |name: &str| env::var(name).unwrap_or_default();
    let (rank, size, hosts) = (get("MLX_RANK"), get("MLX_WORLD_SIZE"), get("MLX_HOSTFILE"));
    let mut found = Vec::new();
    if !rank.is_empty() && rank != "0" {
        found.push(format!("MLX_RANK={rank}"));
    }
    if !size.is_empty() && size != "1" {
        found.push(format!("MLX_WORLD_SIZE={size}"));
    }
    if !rank.is_empty() && !hosts.is_empty() && processes(&hosts) != Some(1) {
        found.push(format!("MLX_HOSTFILE={hosts}"));
    }
    (!found.is_empty()).then(|| found.join(", "))
}

/// Returns the number of processes in a host file. `None` if the file cannot be read.
fn processes(path: &str) -> Option<usize> {
    let text = std::fs::read_to_string(path).ok()?;
    let hosts: serde_json::Value = serde_json::from_str(&text).ok()?;
    hosts.as_array().map(Vec::len)
}

/// The variable by which an MPI launcher announces that this is one of several processes.
pub(super) fn by_mpi() -> Option<String> {
    #[cfg(feature = "distributed")]
    {
        let launcher = ultramarine_mpi::launcher()?;
        (launcher.size > 1).then_some(launcher.mark)
    }
    #[cfg(not(feature = "distributed"))]
    {
        let get = |name| env::var(name).ok().filter(|n| n != "1").map(|n| format!("{name}={n}"));
        get("OMPI_COMM_WORLD_SIZE").or_else(|| get("PMI_SIZE"))
    }
}
