//! MPI in this process: its start, and its end at exit.

use crate::board::{self, Board};
use crate::communicator::Communicator;
use crate::engine::{Engine, Job, Place, Ticket, lock};
use crate::error::Error;
use crate::find;
use crate::launcher::{Flavour, launcher};
use crate::table::Address;
use crate::worker;
use std::ffi::c_int;
use std::sync::{Arc, Mutex, Once, OnceLock};
use std::time::Duration;

/// The state of MPI. The first [`world`] that finds a library sets it.
static ENGINE: OnceLock<Arc<Engine>> = OnceLock::new();

/// The exit status of a job that this crate ends.
const STATUS: i32 = 1;

/// Starts MPI and returns the communicator of all processes of the job. MPI is started only once in
/// a process, and each call returns the same communicator. All processes have to call this
/// function, because the start of MPI waits for them.
///
/// A process that no launcher started is the only process of its job.
/// [`launcher`](crate::launcher()) detects this without starting MPI, for which Open MPI would
/// start a daemon.
///
/// If another part of the process (mpi4py) has started MPI, it is used, and this part has to end
/// it. Otherwise MPI ends when the process exits, or by [`finalize`].
///
/// # Errors
/// Those of [`find`](crate::find). [`Error::Unusable`] if MPI cannot be started, or if another part
/// of the process started it with a thread level other than `MPI_THREAD_MULTIPLE`.
/// [`Error::Argument`] if `ULTRAMARINE_DISTRIBUTED_TIMEOUT` is not a number of seconds.
/// [`Error::Timeout`] if the start takes longer than that.
pub fn world() -> Result<Communicator, Error> {
    static WORLD: Mutex<Option<Result<Communicator, Error>>> = Mutex::new(None);
    if let Some(engine) = ENGINE.get() {
        // Check this first, because another thread of the parent may hold the lock.
        engine.here()?;
    }
    let mut world = lock(&WORLD);
    if let Some(world) = &*world {
        return world.clone();
    }
    let limit = board::limit()?;
    // Do not cache a failure: the program may name a missing library before it tries again.
    let opened = find::open()?;
    needs_remote_shell(&opened)?;
    let made = start(limit, opened);
    *world = Some(made.clone());
    made
}

/// Open MPI 4 ends a process without a launcher if it finds no remote shell for its daemon,
/// although the daemon does not need one. This returns an error instead.
fn needs_remote_shell(opened: &find::Opened) -> Result<(), Error> {
    let found = &opened.found;
    if found.flavour != Flavour::OpenMpi || !found.version.starts_with("Open MPI v4.") {
        return Ok(());
    }
    let set = |name: &str| std::env::var_os(name).is_some();
    let there = |name: &str| {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).any(|folder| folder.join(name).is_file())
    };
    let settings = ["OMPI_MCA_plm", "OMPI_MCA_plm_rsh_agent", "PMIX_RANK"];
    if launcher().is_some()
        || settings.into_iter().any(set)
        || ["ssh", "rsh"].into_iter().any(there)
    {
        return Ok(());
    }
    Err(Error::Unusable(format!(
        "{} does not start in a process by itself without ssh. Start the program by mpirun, install ssh (apt-get install \
         openssh-client), or set OMPI_MCA_plm=isolated",
        found.version
    )))
}

fn start(limit: Option<Duration>, opened: find::Opened) -> Result<Communicator, Error> {
    let engine = Arc::new(Engine::new(Board::new(limit)));
    let _ = ENGINE.set(engine.clone());
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(|| {
        // SAFETY: the handler takes no arguments and does not unwind.
        unsafe { libc::atexit(at_exit) };
    });
    let ticket = Arc::new(Ticket::default());
    let watched =
        engine.board.watch("init: the start of MPI, which waits for all processes of the job");
    let (engine_, ticket_) = (engine.clone(), ticket.clone());
    let body = move || {
        let find::Opened { library, found } = opened;
        // SAFETY: the flavour determines the library's type of handles.
        unsafe {
            match found.flavour {
                Flavour::OpenMpi => worker::serve::<Address>(engine_, library, &found, &ticket_),
                Flavour::Mpich => worker::serve::<c_int>(engine_, library, &found, &ticket_),
            }
        }
    };
    let thread = std::thread::Builder::new().name("ultramarine-mpi".to_owned());
    thread.spawn(body).map_err(|error| {
        Error::Unusable(format!("the thread that talks to MPI cannot be started: {error}"))
    })?;
    let place = engine.wait(&ticket, watched)?;
    engine.board.remove(watched);
    let none = || Error::Unusable("MPI gave no communicator".to_owned());
    Ok(Communicator::new(engine, place.ok_or_else(none)?))
}

/// Sets the longest time that a request of this process may take; `None` means no limit. Without
/// this call the limit is that of `ULTRAMARINE_DISTRIBUTED_TIMEOUT`, which also applies to the
/// start of MPI.
///
/// # Errors
/// [`Error::Argument`] before [`world`], or for a limit of zero.
pub fn set_timeout(limit: Option<Duration>) -> Result<(), Error> {
    let engine = ENGINE.get();
    let Some(engine) = engine.filter(|_| limit.is_none_or(|limit| !limit.is_zero())) else {
        return Err(Error::Argument(format!(
            "[set_timeout] the limit {limit:?} cannot be set. Call `world` before, and give more than zero, or `None` for no limit"
        )));
    };
    engine.here()?;
    engine.board.set_limit(limit);
    Ok(())
}

/// Ends MPI after all messages are delivered, and waits for the other ranks. After a failure it
/// ends the job instead, because the other ranks may wait for this one. Without MPI, and at a
/// second call, it does nothing. It is called at exit. A program that has to end MPI earlier, for
/// example before mpi4py does, calls it itself.
pub fn finalize() {
    let Some(engine) = ENGINE.get() else { return };
    if engine.here().is_err() || engine.is_own_thread() {
        return;
    }
    if let Some(why) = engine.board.broken() {
        end_job(engine, &why);
        return;
    }
    if engine.ends.get().is_none() || engine.usable().is_err() {
        return;
    }
    let world = Place { index: 0, rank: 0, size: 1 };
    let (ticket, _) =
        engine.submit(world, Job::Finish, "the end of MPI, which waits for all ranks");
    let look = engine.board.limit().unwrap_or(Duration::MAX).min(Duration::from_secs(3600));
    let mut reported = engine.board.limit().is_none();
    while ticket.wait_for(look.max(Duration::from_millis(100))).is_none() {
        if let Some(why) = engine.board.broken() {
            end_job(engine, &why);
            return;
        }
        if !std::mem::replace(&mut reported, true) {
            board::say(&format!(
                "{} is done and waits in MPI_Finalize for other ranks, which are still at work or have ended without it",
                engine.board.place()
            ));
        }
    }
}

/// Makes the process end its job when it exits, instead of waiting for other ranks, which may wait
/// for this one. It is for programs that exit because of a failure. Without MPI it does nothing.
pub fn abort_at_exit(reason: &str) {
    if let Some(engine) = ENGINE.get()
        && engine.usable().is_ok()
    {
        engine.board.give_up(reason);
    }
}

/// Ends all processes of the job with this exit status. The reason is written to standard error,
/// with this process's rank. Without MPI, only this process ends.
pub fn abort(status: i32, reason: &str) -> ! {
    if let Some(engine) = ENGINE.get().filter(|engine| engine.usable().is_ok()) {
        engine.board.give_up(reason);
        end(engine, status, reason);
    } else {
        board::say(reason);
    }
    std::process::exit(status);
}

fn end_job(engine: &Engine, why: &str) {
    if engine.board.is_expired() {
        // Wait, because other ranks may reach their limits now, and write reports of their own.
        std::thread::sleep(Duration::from_secs(1));
    }
    end(engine, STATUS, why.lines().next().unwrap_or_default());
}

fn end(engine: &Engine, status: i32, why: &str) {
    use std::sync::atomic::{AtomicBool, Ordering};
    static ENDING: AtomicBool = AtomicBool::new(false);
    if ENDING.swap(true, Ordering::AcqRel) {
        return;
    }
    board::say(&format!("{} ends the job: {why}", engine.board.place()));
    // Do not wait longer for a thread that hangs in MPI.
    engine.halt(Duration::from_secs(2));
    if let Some(ends) = engine.ends.get() {
        ends.abort(status);
    }
    // MPI hangs in its start, or its MPI_Abort has returned. Write buffered output, but skip the
    // other exit handlers.
    // SAFETY: both may be called at exit.
    unsafe {
        #[cfg(unix)]
        libc::fflush(std::ptr::null_mut());
        libc::_exit(status);
    }
}

extern "C" fn at_exit() {
    // A panic must not leave the exit handler. Ignore it, because the process is ending.
    let _ = std::panic::catch_unwind(finalize);
}
