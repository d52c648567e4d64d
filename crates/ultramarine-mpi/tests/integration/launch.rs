//! Starts this test program as the ranks of a job.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Variable with the name of the program that a rank runs.
pub const PROGRAM: &str = "ULTRAMARINE_MPI_TEST";

/// Line of a rank whose checks were right.
pub const RIGHT: &str = "right: all that this rank checked";

/// The longest that a job may take.
const LIMIT: Duration = Duration::from_secs(240);

/// A launcher with its arguments.
#[derive(Clone, Copy, Debug)]
pub struct Mpi {
    pub name: &'static str,
    program: &'static str,
    arguments: &'static [&'static str],
}

pub const OPEN_MPI: Mpi = Mpi {
    name: "Open MPI",
    program: "mpirun.openmpi",
    arguments: &["--allow-run-as-root", "--oversubscribe"],
};

pub const MPICH: Mpi = Mpi { name: "MPICH", program: "mpirun.mpich", arguments: &[] };

pub const BOTH: [Mpi; 2] = [OPEN_MPI, MPICH];

/// A job that has ended.
#[derive(Debug)]
pub struct Job {
    pub status: Option<i32>,
    /// Standard output and standard error of all ranks.
    pub text: String,
    pub seconds: f64,
}

impl Job {
    /// Fails unless all of `ranks` ranks were right.
    #[track_caller]
    pub fn assert_right(&self, ranks: usize) {
        let right = self.text.matches(RIGHT).count();
        assert!(self.status == Some(0) && right == ranks, "{right} of {ranks} ranks: {self:#?}");
    }

    /// Fails unless the job failed, with all these texts.
    #[track_caller]
    pub fn assert_failed(&self, texts: &[&str]) {
        assert!(self.status != Some(0), "the job did not fail: {self:#?}");
        for text in texts {
            assert!(self.text.contains(text), "{text:?} is missing: {self:#?}");
        }
    }
}

impl Mpi {
    /// Runs a program on `ranks` ranks; `None` where the launcher is missing.
    pub fn run(&self, ranks: usize, program: &str, variables: &[(&str, &str)]) -> Option<Job> {
        let Some(path) = find(self.program) else {
            eprintln!("skipped: {} is not installed ({})", self.name, self.program);
            return None;
        };
        let test = std::env::current_exe().expect("a test program knows its path");
        let mut command = Command::new(path);
        command.args(self.arguments).args(["-n", &ranks.to_string()]).arg(test);
        command.args(["--exact", "program", "--nocapture", "--test-threads=1"]);
        command.env(PROGRAM, program).envs(variables.iter().copied());
        // More ranks than cores; a container's user is root.
        command
            .env("OMPI_MCA_rmaps_base_oversubscribe", "1")
            .env("OMPI_MCA_mpi_yield_when_idle", "1");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let start = Instant::now();
        let mut child = command.spawn().expect("the launcher starts");
        let output = read(child.stdout.take());
        let errors = read(child.stderr.take());
        let status = loop {
            if let Some(status) = child.try_wait().expect("a child's status") {
                break status;
            }
            if start.elapsed() > LIMIT {
                // The launcher ends its ranks.
                let _ = Command::new("kill").arg(child.id().to_string()).status();
                let _ = child.wait();
                let text = format!("{}\n{}", join(output), join(errors));
                panic!("{} with {ranks} ranks of {program} hung:\n{text}", self.name);
            }
            std::thread::sleep(Duration::from_millis(10));
        };
        let text = format!("{}\n{}", join(output), join(errors));
        Some(Job { status: status.code(), text, seconds: start.elapsed().as_secs_f64() })
    }
}

type Reader = std::thread::JoinHandle<String>;

fn read(pipe: Option<impl std::io::Read + Send + 'static>) -> Reader {
    let mut pipe = pipe.expect("a pipe");
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = pipe.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

fn join(reader: Reader) -> String {
    reader.join().expect("a reader does not panic")
}

/// A program of the search path.
fn find(name: &str) -> Option<std::path::PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
}
