//! Ranks under both implementations. Each test has a launcher start this test program several times; there it runs one of
//! [`programs`], which prints `right` when all that it checked was right. Where a launcher is missing, the test says so and is skipped.

#![cfg(unix)]

mod collectives;
mod faults;
mod groups;
mod launch;
mod messages;
mod shared;
mod values;

/// A program that ranks run.
type Program = fn();

/// All, by name.
const PROGRAMS: &[(&str, Program)] = &[
    ("collectives", collectives::program),
    ("device_memory", messages::device_memory),
    ("ended", shared::ended),
    ("errors", messages::errors),
    ("exit_by_failure", faults::exit_by_failure),
    ("exit_without_mpi", faults::exit_without_mpi),
    ("fork", faults::fork),
    ("groups", groups::program),
    ("idle", groups::idle),
    ("late_rank", faults::late_rank),
    ("missing_in_start", faults::missing_in_start),
    ("leave", faults::leave),
    ("over", shared::over),
    ("ring", messages::ring),
    ("shared", shared::program),
    ("single", shared::single),
    ("undelivered", messages::undelivered),
    ("wait_in_the_end", faults::wait_in_the_end),
];

/// The program of a rank; as a test by itself it does nothing.
#[test]
fn program() {
    let Ok(name) = std::env::var(launch::PROGRAM) else { return };
    let found = PROGRAMS.iter().find(|(program, _)| *program == name);
    found.expect("a program's name").1();
    eprintln!("{}", launch::RIGHT);
}
