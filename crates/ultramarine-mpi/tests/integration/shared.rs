//! MPI that another part of the process has started, as mpi4py does.

use crate::launch::BOTH;
use crate::values::run;
use libloading::Library;
use std::ffi::{c_char, c_int};
use ultramarine_mpi::{Dtype, Error, Kind};

const SINGLE: c_int = 0;
const MULTIPLE: c_int = 3;

/// The other part.
struct Other(Library);

impl Other {
    /// Starts MPI at a thread level.
    fn start(level: c_int) -> Other {
        let found = ultramarine_mpi::find().unwrap();
        // SAFETY: MPI's library, which is open already.
        let library = unsafe { Library::new(&found.path) }.unwrap();
        type Init =
            unsafe extern "C" fn(*mut c_int, *mut *mut *mut c_char, c_int, *mut c_int) -> c_int;
        let mut granted = 0;
        // SAFETY: the type is that of MPI's standard; MPI was not started.
        let code = unsafe {
            let init = library.get::<Init>(b"MPI_Init_thread\0").unwrap();
            init(std::ptr::null_mut(), std::ptr::null_mut(), level, &raw mut granted)
        };
        assert_eq!((code, granted), (0, level));
        Other(library)
    }

    fn is_finalized(&self) -> bool {
        let mut flag = 0;
        // SAFETY: the type is that of MPI's standard, which allows the call at any time.
        unsafe {
            let function =
                self.0.get::<unsafe extern "C" fn(*mut c_int) -> c_int>(b"MPI_Finalized\0");
            function.unwrap()(&raw mut flag);
        }
        flag != 0
    }

    fn finalize(&self) {
        // SAFETY: as above; MPI runs.
        unsafe { self.0.get::<unsafe extern "C" fn() -> c_int>(b"MPI_Finalize\0").unwrap()() };
    }
}

#[test]
fn mpi_of_another_part_is_used_and_left_to_it() {
    for mpi in BOTH {
        if let Some(job) = mpi.run(2, "shared", &[]) {
            job.assert_right(2);
        }
    }
}

pub fn program() {
    let other = Other::start(MULTIPLE);
    let world = ultramarine_mpi::world().unwrap();
    assert_eq!(run(&world, Kind::AllSum, Dtype::Int16, &[1, 1], 2).unwrap(), [2, 2]);
    ultramarine_mpi::finalize();
    assert!(!other.is_finalized());
    let error = run(&world, Kind::AllSum, Dtype::Int16, &[1, 1], 2).unwrap_err();
    assert!(matches!(error, Error::Finished), "{error}");
    other.finalize();
}

/// The other part ends MPI before the process exits: there is nothing left to be ended.
#[test]
fn mpi_may_end_before_the_process() {
    for mpi in BOTH {
        if let Some(job) = mpi.run(2, "ended", &[]) {
            job.assert_right(2);
        }
    }
}

pub fn ended() {
    let other = Other::start(MULTIPLE);
    let world = ultramarine_mpi::world().unwrap();
    run(&world, Kind::AllMax, Dtype::Int8, &[5], 1).unwrap();
    other.finalize();
}

#[test]
fn a_lower_thread_level_is_an_error() {
    for mpi in BOTH {
        if let Some(job) = mpi.run(2, "single", &[]) {
            job.assert_right(2);
        }
    }
}

pub fn single() {
    let other = Other::start(SINGLE);
    let text = ultramarine_mpi::world().unwrap_err().to_string();
    assert!(text.contains("thread level 0") && text.contains("mpi4py.rc.thread_level"), "{text}");
    other.finalize();
}

#[test]
fn mpi_that_has_ended_is_an_error() {
    for mpi in BOTH {
        if let Some(job) = mpi.run(2, "over", &[]) {
            job.assert_right(2);
        }
    }
}

pub fn over() {
    Other::start(MULTIPLE).finalize();
    let error = ultramarine_mpi::world().unwrap_err();
    assert!(matches!(error, Error::Finished), "{error}");
}
