//! Ranks that end, hang, fork or disagree.

use crate::launch::{BOTH, OPEN_MPI};
use crate::values::run;
use std::time::{Duration, Instant};
use ultramarine_mpi::{Communicator, Dtype, Error, Kind};

/// Longest time of a job that fails, on a machine that does much else; ranks that come too late sleep for longer.
const SOON: f64 = 60.0;
const LATE: Duration = Duration::from_secs(150);

/// MPI, with a limit for its requests. Its start may take long on a busy machine.
fn world_with_limit(seconds: f64) -> Communicator {
    let world = ultramarine_mpi::world().unwrap();
    ultramarine_mpi::set_timeout(Some(Duration::from_secs_f64(seconds))).unwrap();
    world
}

fn sum(group: &Communicator) -> Result<Vec<u8>, Error> {
    run(group, Kind::AllSum, Dtype::Float32, &[0; 16], 16)
}

/// A rank that comes too late: the others fail with a report of all that they wait for, and end the job.
#[test]
fn a_late_rank_is_reported() {
    for mpi in BOTH {
        let Some(job) = mpi.run(3, "late_rank", &[]) else { continue };
        job.assert_failed(&[
            " of 3 has waited for other ranks for ",
            "(1 s). It waits for:",
            "all_sum(float32, (4,))",
            "recv(int8, (3,))",
            "of 3 ends the job",
            "checked: the error",
        ]);
        assert!(job.seconds < SOON, "{job:#?}");
    }
}

pub fn late_rank() {
    let world = world_with_limit(1.0);
    if world.rank() == 0 {
        // The others end the job before.
        std::thread::sleep(LATE);
        return;
    }
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let from = Kind::Receive { from: 0 };
            let error = run(&world, from, Dtype::Int8, &[], 3).unwrap_err();
            assert!(matches!(error, Error::Timeout(_)) && error.keeps_memory(), "{error}");
        });
        let error = sum(&world).unwrap_err();
        assert!(matches!(error, Error::Timeout(_)), "{error}");
        assert!(error.keeps_memory() && error.to_string().contains("all_sum(float32, (4,))"));
    });
    let error = sum(&world).unwrap_err();
    assert!(matches!(error, Error::Broken(_)) && !error.keeps_memory(), "{error}");
    assert!(world.split(0, 0).is_err());
    eprintln!("checked: the error");
}

/// A rank that exits by a failure, and says so, ends the job at once.
#[test]
fn a_rank_that_exits_by_a_failure_ends_the_job() {
    for mpi in BOTH {
        let Some(job) = mpi.run(3, "exit_by_failure", &[]) else { continue };
        job.assert_failed(&["rank 1 of 3 ends the job: ValueError: shapes differ"]);
        assert!(job.seconds < SOON, "{job:#?}");
    }
}

pub fn exit_by_failure() {
    let world = ultramarine_mpi::world().unwrap();
    if world.rank() == 1 {
        ultramarine_mpi::abort_at_exit("ValueError: shapes differ");
        std::process::exit(1);
    }
    let _ = sum(&world);
    unreachable!("the sum has no third rank");
}

/// A rank that is gone without a word: the launcher or the watchdog ends the job.
#[test]
fn a_rank_that_vanishes_ends_the_job() {
    for mpi in BOTH {
        let Some(job) = mpi.run(2, "exit_without_mpi", &[]) else {
            continue;
        };
        job.assert_failed(&[]);
        assert!(job.seconds < SOON, "{job:#?}");
    }
}

pub fn exit_without_mpi() {
    let world = world_with_limit(3.0);
    if world.rank() == 1 {
        // SAFETY: it ends the process.
        unsafe { libc::_exit(3) };
    }
    panic!("{}", sum(&world).unwrap_err());
}

/// A rank that leaves without its last collective waits for the others in MPI's end; their watchdogs end the job.
#[test]
fn a_rank_that_leaves_early_is_reported() {
    for mpi in BOTH {
        let Some(job) = mpi.run(2, "leave", &[]) else { continue };
        job.assert_failed(&["rank 0 of 2 has waited", "rank 0 of 2 ends the job"]);
        assert!(job.seconds < SOON, "{job:#?}");
    }
}

pub fn leave() {
    let world = world_with_limit(1.0);
    if world.rank() == 0 {
        panic!("{}", sum(&world).unwrap_err());
    }
    std::process::exit(4);
}

/// MPI's start waits for all processes.
#[test]
fn a_process_that_does_not_start_mpi_is_reported() {
    // MPICH's start does not wait for processes of the same host.
    let limit = ("ULTRAMARINE_DISTRIBUTED_TIMEOUT", "2");
    let Some(job) = OPEN_MPI.run(2, "missing_in_start", &[limit]) else { return };
    job.assert_failed(&["init: the start of MPI, which waits for all processes of the job"]);
    assert!(job.seconds < SOON, "{job:#?}");
}

pub fn missing_in_start() {
    if std::env::var("OMPI_COMM_WORLD_RANK").as_deref() == Ok("1") {
        std::thread::sleep(LATE);
    }
    panic!("{}", ultramarine_mpi::world().unwrap_err());
}

/// Ranks that finish early wait for those that are at work, without an end of the job.
#[test]
fn ranks_that_are_done_wait_for_the_others() {
    for mpi in BOTH {
        let Some(job) = mpi.run(2, "wait_in_the_end", &[]) else {
            continue;
        };
        job.assert_right(2);
    }
}

pub fn wait_in_the_end() {
    let world = world_with_limit(0.5);
    sum(&world).unwrap();
    if world.rank() == 1 {
        std::thread::sleep(Duration::from_secs(2));
    }
}

/// MPI does not work in forked children: they get errors, and their exit leaves MPI alone.
#[test]
fn forked_children_get_errors() {
    for mpi in BOTH {
        let Some(job) = mpi.run(2, "fork", &[]) else { continue };
        job.assert_right(2);
    }
}

pub fn fork() {
    let world = ultramarine_mpi::world().unwrap();
    sum(&world).unwrap();
    // SAFETY: the child makes calls that take no lock of another thread, and ends.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let start = Instant::now();
        let errors = [
            sum(&world).unwrap_err(),
            world.split(0, 0).unwrap_err(),
            ultramarine_mpi::world().unwrap_err(),
        ];
        let right = errors.iter().all(|error| matches!(error, Error::Forked { .. }));
        ultramarine_mpi::finalize();
        let quick = start.elapsed() < Duration::from_secs(5);
        std::process::exit(if right && quick { 0 } else { 1 });
    }
    let mut status = 0;
    // SAFETY: the child of this process.
    unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert!(
        libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0,
        "the child's status is {status}"
    );
    sum(&world).unwrap();
    ultramarine_mpi::finalize();
    assert!(matches!(sum(&world).unwrap_err(), Error::Finished));
    ultramarine_mpi::finalize();
}
