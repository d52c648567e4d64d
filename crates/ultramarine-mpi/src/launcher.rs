//! MPI launchers, recognised by the environment variables that they set.

/// The binary interface of an MPI implementation. A program that was compiled for one cannot use
/// the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavour {
    /// Open MPI: handles are addresses of objects in the library.
    OpenMpi,
    /// MPICH and those that share its binary interface (Intel MPI, MVAPICH2, Cray MPICH): handles are integers.
    Mpich,
}

impl std::fmt::Display for Flavour {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Flavour::OpenMpi => "Open MPI",
            Flavour::Mpich => "MPICH",
        })
    }
}

/// The launcher that started this process; [`launcher`] finds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launcher {
    /// The implementation that its processes have to load. `None` if both are possible (Slurm with
    /// PMIx).
    pub flavour: Option<Flavour>,
    /// The number of processes.
    pub size: usize,
    /// The environment variable by which the launcher was recognised, with its value, such as
    /// `OMPI_COMM_WORLD_SIZE=4`.
    pub mark: String,
}

/// Returns the MPI launcher that started this process, according to the environment. Returns `None`
/// if no launcher started it.
pub fn launcher() -> Option<Launcher> {
    from(|name| std::env::var(name).ok())
}

fn from(variable: impl Fn(&str) -> Option<String>) -> Option<Launcher> {
    let found = |name: &str, flavour| {
        let text = variable(name)?;
        let size = text.trim().parse().ok().filter(|size| *size > 0)?;
        Some(Launcher { flavour, size, mark: format!("{name}={text}") })
    };
    // Slurm's own launcher supports PMI and PMIx, with either implementation.
    let slurm = variable("SLURM_STEP_ID").is_some();
    found("OMPI_COMM_WORLD_SIZE", Some(Flavour::OpenMpi))
        .or_else(|| found("PMI_SIZE", (!slurm).then_some(Flavour::Mpich)))
        .or_else(|| variable("PMIX_RANK").and_then(|_| found("SLURM_NTASKS", None)))
}

#[cfg(test)]
mod tests {
    use super::{Flavour, from};

    fn with(pairs: &[(&str, &str)]) -> Option<super::Launcher> {
        let find = |name: &str| pairs.iter().find(|(n, _)| *n == name).map(|(_, v)| v.to_string());
        from(find)
    }

    #[test]
    fn marks_of_launchers() {
        assert_eq!(with(&[]), None);
        let ours = with(&[("OMPI_COMM_WORLD_SIZE", "4"), ("PMIX_RANK", "1")]).unwrap();
        assert_eq!((ours.flavour, ours.size), (Some(Flavour::OpenMpi), 4));
        let mpich = with(&[("PMI_RANK", "0"), ("PMI_SIZE", "3")]).unwrap();
        assert_eq!((mpich.flavour, mpich.size), (Some(Flavour::Mpich), 3));
        assert_eq!(mpich.mark, "PMI_SIZE=3");
        let slurm = with(&[("PMIX_RANK", "0"), ("SLURM_NTASKS", "8")]).unwrap();
        assert_eq!((slurm.flavour, slurm.size), (None, 8));
        let either = with(&[("SLURM_STEP_ID", "0"), ("PMI_SIZE", "2")]).unwrap();
        assert_eq!((either.flavour, either.size), (None, 2));
        // The shell of a batch job is not a process of an MPI program.
        assert_eq!(with(&[("SLURM_NTASKS", "8")]), None);
        assert_eq!(with(&[("PMI_SIZE", "x")]), None);
    }
}
