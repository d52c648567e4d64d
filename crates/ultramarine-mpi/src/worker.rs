//! The thread of MPI: it takes commands from the engine (`engine.rs`), posts them as non-blocking
//! calls, and completes them. It is the only thread that calls MPI, except for `MPI_Abort`.

use crate::board;
use crate::call::Call;
use crate::cuda;
use crate::engine::{Command, Ends, Engine, Job, LONGEST_NAP, Place, Ticket};
use crate::error::Error;
use crate::find::Found;
use crate::launcher::launcher;
use crate::table::{Handle, Status, THREAD_MULTIPLE, Table};
use libloading::Library;
use std::ffi::{c_int, c_void};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Environment variable that overrides MPI's report about CUDA memory: 0 or 1.
const DEVICE_MEMORY: &str = "ULTRAMARINE_MPI_DEVICE_MEMORY";

/// If more bytes of undelivered messages than this are kept, a sender waits.
const KEPT: usize = 1 << 30;

/// If a test of a request works for longer than this, it has moved data, and the next test follows
/// at once.
const BUSY: Duration = Duration::from_micros(4);

/// The most tests in a row without yielding the processor.
const MOST_RUN: u32 = 100;

struct Aborts<H: Handle> {
    abort: unsafe extern "C" fn(H, c_int) -> c_int,
    world: H,
}

impl<H: Handle> Ends for Aborts<H> {
    fn abort(&self, code: i32) {
        // SAFETY: MPI runs, and its own thread makes no more calls.
        unsafe { (self.abort)(self.world, code) };
    }
}

/// A command whose calls are posted.
struct Active<H> {
    command: Command,
    calls: Vec<(Call, H)>,
    /// Bytes of the message that are kept for MPI.
    kept: usize,
    /// The words that the exchange before a split fills.
    words: Vec<u64>,
}

/// The state of the thread.
struct Worker<H: Handle> {
    engine: Arc<Engine>,
    table: Table<H>,
    comms: Vec<H>,
    active: Vec<Active<H>>,
    /// True if this crate has started MPI, and so has to end it.
    owns: bool,
    kept: usize,
    finish: Option<Command>,
}

/// Starts MPI, completes `ticket` with the communicator of all processes, and serves until MPI ends.
///
/// # Safety
/// The library has handles of the type `H`.
pub unsafe fn serve<H: Handle>(
    engine: Arc<Engine>,
    library: &'static Library,
    found: &Found,
    ticket: &Ticket,
) {
    engine.enter();
    // SAFETY: by this function's contract; the library is never closed.
    let started = unsafe { Table::<H>::load(library) }
        .and_then(|table| start(&engine, table, library, found));
    match started {
        Ok((mut worker, place)) => {
            engine.board.set_place(place.rank, place.size);
            ticket.complete(Ok(Some(place)));
            worker.serve();
        }
        Err(error) => {
            engine.finish();
            ticket.complete(Err(error));
        }
    }
}

fn start<H: Handle>(
    engine: &Arc<Engine>,
    mut table: Table<H>,
    library: &Library,
    found: &Found,
) -> Result<(Worker<H>, Place), Error> {
    let failed = |call: &'static str| {
        move |text: String| Error::Unusable(format!("{call} of {} failed: {text}", found.version))
    };
    if table.flag(table.functions.finalized) {
        return Err(Error::Finished);
    }
    let owns = !table.flag(table.functions.initialized);
    let mut level = 0;
    if owns {
        let none = std::ptr::null_mut();
        // SAFETY: MPI has not been started. It gets no arguments of the program.
        let code = unsafe {
            (table.functions.init_thread)(
                none,
                std::ptr::null_mut(),
                THREAD_MULTIPLE,
                &raw mut level,
            )
        };
        // Any thread level suffices, because only this thread calls MPI.
        table.check(code).map_err(failed("MPI_Init_thread"))?;
    } else {
        // SAFETY: MPI runs.
        let code = unsafe { (table.functions.query_thread)(&raw mut level) };
        table.check(code).map_err(failed("MPI_Query_thread"))?;
        if level < THREAD_MULTIPLE {
            return Err(Error::Unusable(format!(
                "MPI was started by another part of this process at thread level {level}, and ultramarine calls it from a thread \
                 of its own, which wants MPI_THREAD_MULTIPLE ({THREAD_MULTIPLE}). With mpi4py, set \
                 mpi4py.rc.thread_level = \"multiple\" before `from mpi4py import MPI`, or call ultramarine's init first"
            )));
        }
    }
    let (abort, world) = (table.functions.abort, table.constants.world);
    let _ = engine.ends.set(Box::new(Aborts { abort, world }));
    let mut comm = H::ZERO;
    // SAFETY: MPI runs; all processes come here.
    let code = unsafe { (table.functions.comm_dup)(world, &raw mut comm) };
    table.check(code).map_err(failed("MPI_Comm_dup"))?;
    // Make MPI return errors instead of ending the process. MPI attributes errors without a
    // communicator to the first two communicators, whose error handlers mpi4py may have set.
    let all = [comm, world, table.constants.own];
    for comm in &all[..if owns { 3 } else { 1 }] {
        // SAFETY: as above.
        let code =
            unsafe { (table.functions.set_errhandler)(*comm, table.constants.errors_return) };
        table.check(code).map_err(failed("MPI_Comm_set_errhandler"))?;
    }
    table.create_operations().map_err(failed("MPI_Op_create"))?;
    engine.device_memory.store(takes_device_memory(library), Ordering::Release);
    let place = place(&table, comm, 0).map_err(failed("MPI_Comm_rank"))?;
    if let Some(launcher) = launcher().filter(|launcher| launcher.size > 1 && place.size == 1) {
        if owns {
            // SAFETY: nothing is pending, and this thread has started MPI.
            unsafe { (table.functions.finalize)() };
        }
        return Err(Error::Unusable(format!(
            "the environment says {}, but {} ({}) knows one process. Start the program by this library's own mpirun, or set \
             ULTRAMARINE_MPI_LIBRARY to the library of the launcher",
            launcher.mark,
            found.version,
            found.path.display()
        )));
    }
    let engine = engine.clone();
    let (comms, active) = (vec![comm], Vec::new());
    Ok((Worker { engine, table, comms, active, owns, kept: 0, finish: None }, place))
}

/// Returns true if MPI accepts addresses of CUDA memory. MPI's own report counts, unless the
/// environment variable overrides it.
fn takes_device_memory(library: &Library) -> bool {
    match std::env::var(DEVICE_MEMORY).as_deref().map(str::trim) {
        Ok("1") => return true,
        Ok("0") => return false,
        _ => {}
    }
    // Open MPI and MPICH have the same name and type for it.
    // SAFETY: an extension without arguments, which may be called once MPI runs.
    unsafe {
        library
            .get::<unsafe extern "C" fn() -> c_int>(b"MPIX_Query_cuda_support\0")
            .is_ok_and(|query| query() == 1)
    }
}

/// Returns the processor time of this thread.
#[cfg(unix)]
fn thread_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the clock of the calling thread, and a pointer that is valid for writing the time.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    let whole = Duration::from_secs(time.tv_sec.try_into().unwrap_or(0));
    whole + Duration::from_nanos(time.tv_nsec.try_into().unwrap_or(0))
}

/// Returns the time on the clock, so that a test that yields the processor counts as busy.
#[cfg(not(unix))]
fn thread_time() -> Duration {
    static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    START.get_or_init(Instant::now).elapsed()
}

/// Returns the rank of this process in a communicator, and the communicator's size.
fn place<H: Handle>(table: &Table<H>, comm: H, index: usize) -> Result<Place, String> {
    let (mut rank, mut size) = (0, 0);
    // SAFETY: MPI runs.
    unsafe {
        table.check((table.functions.comm_rank)(comm, &raw mut rank))?;
        table.check((table.functions.comm_size)(comm, &raw mut size))?;
    }
    let number = |n: c_int| usize::try_from(n).map_err(|_| format!("MPI gave {n}"));
    Ok(Place { index, rank: number(rank)?, size: number(size)? })
}

impl<H: Handle> Worker<H> {
    fn serve(&mut self) {
        let engine = self.engine.clone();
        let mut eager = Instant::now();
        let mut nap = Duration::from_micros(20);
        let mut looked = Instant::now();
        let (mut run, mut warm) = (0, false);
        loop {
            for command in engine.take() {
                eager = Instant::now() + self.begin(command);
                nap = Duration::from_micros(20);
            }
            if engine.stop.load(Ordering::Acquire) {
                break;
            }
            let start = Instant::now();
            let worked = warm.then(thread_time);
            let completed = self.poll();
            let now = Instant::now();
            let slow = now - start > BUSY;
            // A test may yield the processor to other threads, so only the thread's own processor
            // time counts.
            let busy = slow && worked.is_some_and(|worked| thread_time() - worked > BUSY);
            if completed || busy {
                eager = eager.max(now + Duration::from_millis(1));
                nap = Duration::from_micros(20);
            }
            if self.active.is_empty() {
                if let Some(command) = self.finish.take() {
                    self.finish(&command);
                    return;
                }
                engine.sleep(None);
                continue;
            }
            if now - looked > Duration::from_millis(100) {
                looked = now;
                engine.board.expire();
            }
            if let Some(error) = engine.board.abandoned() {
                // No more tests are made, so that nothing is written to memory whose owner was told
                // that its request failed.
                for active in self.active.drain(..) {
                    active.command.ticket.complete(Err(error.clone()));
                    // Leak the memory, because MPI may still read or write it.
                    std::mem::forget((active.command, active.words));
                }
                continue;
            }
            if slow && !warm {
                // The first test after a nap runs with cold caches, so only the next one counts.
                warm = true;
                continue;
            }
            if busy && run < MOST_RUN {
                // Data moves, so the other rank is working too.
                run += 1;
                continue;
            }
            (run, warm) = (0, false);
            if now < eager {
                std::thread::yield_now();
            } else {
                engine.sleep(Some(nap));
                nap = (nap * 3 / 2).min(LONGEST_NAP);
            }
        }
        engine.stopped.store(true, Ordering::Release);
    }

    /// Posts a command's calls. Returns how long to test them without sleeping.
    fn begin(&mut self, command: Command) -> Duration {
        if let Err(error) = self.engine.board.usable()
            && !matches!(command.job, Job::Finish)
        {
            command.ticket.complete(Err(error));
            return Duration::ZERO;
        }
        let mut words = Vec::new();
        let mut kept = 0;
        let calls = match &command.job {
            Job::Calls(calls) => calls.clone(),
            Job::Send { calls, kept: memory } => {
                kept = memory.bytes;
                calls.clone()
            }
            Job::UseDevice(device) => {
                let made = cuda::make_current(*device).map_err(|why| {
                    Error::Unusable(format!(
                        "MPI's thread cannot use GPU {device}: {why}. Set {DEVICE_MEMORY}=0 to have arrays go through the host"
                    ))
                });
                self.engine.board.remove(command.watched);
                command.ticket.complete(made.map(|()| None));
                return Duration::ZERO;
            }
            Job::Split { .. } => {
                // MPI_Comm_split blocks. All ranks first meet here, so that it blocks only for the
                // time that it needs itself.
                words = vec![0u64; command.comm.size + 1];
                let buffer = words.as_mut_ptr().cast::<u8>();
                let input = buffer.wrapping_add(8 * command.comm.size);
                vec![Call::AllGather { input, output: buffer, bytes: 8 }]
            }
            Job::Finish => {
                self.finish = Some(command);
                return Duration::ZERO;
            }
        };
        let comm = self.comms[command.comm.index];
        let mut posted = Vec::with_capacity(calls.len());
        let bytes: usize = calls.iter().map(Call::bytes).sum();
        for call in calls {
            let mut request = H::ZERO;
            // SAFETY: the submitter keeps the memory until the ticket is complete, and after
            // failures as the contract requires.
            let code = unsafe { call.post(&self.table, comm, &mut request) };
            if let Err(text) = self.table.check(code) {
                let error = self.failure(&command, &call, text);
                self.give_up(&error);
                command.ticket.complete(Err(error));
                std::mem::forget((command, words));
                return Duration::ZERO;
            }
            posted.push((call, request));
        }
        self.kept += kept;
        if matches!(command.job, Job::Send { .. }) && self.kept <= KEPT {
            command.ticket.complete(Ok(None));
        }
        self.active.push(Active { command, calls: posted, kept, words });
        Duration::from_millis(1) + Duration::from_nanos(4 * bytes as u64)
    }

    /// Tests all requests once. Returns true if one is complete.
    fn poll(&mut self) -> bool {
        let mut completed = false;
        let mut i = 0;
        while i < self.active.len() {
            match self.test(i) {
                Ok(false) => i += 1,
                outcome => {
                    completed = true;
                    let active = self.active.remove(i);
                    self.complete(active, outcome.map(|_| ()));
                }
            }
        }
        completed
    }

    /// Tests the calls of a command. Returns true if all are complete.
    fn test(&mut self, index: usize) -> Result<bool, Error> {
        let active = &mut self.active[index];
        while let Some((call, request)) = active.calls.first_mut() {
            let (mut flag, mut status): (c_int, Status) = (0, [0; 8]);
            let into: *mut c_void = if matches!(call, Call::Receive { .. }) {
                status.as_mut_ptr().cast()
            } else {
                self.table.constants.no_status
            };
            // SAFETY: a request of this library that is not complete.
            let code = unsafe { (self.table.functions.test)(request, &raw mut flag, into) };
            let call = *call;
            if code != 0 {
                let command = &self.active[index].command;
                return Err(self.failed_test(command, &call, code));
            }
            if flag == 0 {
                return Ok(false);
            }
            if let Call::Receive { bytes, from, .. } = call {
                let mut count = 0;
                // SAFETY: the status of a message of bytes.
                unsafe {
                    (self.table.functions.get_count)(
                        into,
                        self.table.constants.byte,
                        &raw mut count,
                    );
                }
                if count != bytes {
                    let description = active.command.description.clone();
                    let (sent, expected) = (count.to_string(), bytes as usize);
                    return Err(Error::Length { description, from: from as usize, sent, expected });
                }
            }
            active.calls.remove(0);
        }
        Ok(true)
    }

    fn failed_test(&self, command: &Command, call: &Call, code: c_int) -> Error {
        if let Call::Receive { bytes, from, .. } = *call
            && self.table.is_truncation(code)
        {
            let description = command.description.clone();
            let (sent, expected) = (format!("more than {bytes}"), bytes as usize);
            return Error::Length { description, from: from as usize, sent, expected };
        }
        let text = self.table.check(code).err().unwrap_or_default();
        self.failure(command, call, text)
    }

    fn failure(&self, command: &Command, call: &Call, text: String) -> Error {
        let (rank, description) = (command.comm.rank, command.description.clone());
        Error::Mpi { call: call.name(), rank, description, text }
    }

    /// After MPI's own failures its state is unknown, and other ranks may wait for this one.
    fn give_up(&self, error: &Error) {
        if matches!(error, Error::Mpi { .. }) {
            self.engine.board.give_up(&error.to_string());
        }
    }

    /// Passes a command's result on to its submitter.
    fn complete(&mut self, active: Active<H>, outcome: Result<(), Error>) {
        let Active { command, calls, kept, words, .. } = active;
        self.kept -= kept;
        self.engine.board.remove(command.watched);
        match outcome {
            Ok(()) => {
                let result = match command.job {
                    Job::Split { color, key } => self.split(&command, color, key).map(Some),
                    _ => Ok(None),
                };
                command.ticket.complete(result);
            }
            Err(error) => {
                self.give_up(&error);
                if matches!(command.job, Job::Send { .. }) {
                    // The submitter may no longer wait, so report the error here.
                    board::say(&format!("{}: {error}", self.engine.board.place()));
                }
                command.ticket.complete(Err(error));
                // Leak the memory, because other calls of the command may still be in progress.
                std::mem::forget((command, calls, words));
            }
        }
    }

    /// Divides a communicator, after all ranks have met.
    fn split(&mut self, command: &Command, color: i32, key: i32) -> Result<Place, Error> {
        let comm = self.comms[command.comm.index];
        let mut made = H::ZERO;
        // SAFETY: a communicator of this library; all its ranks call this.
        let code = unsafe { (self.table.functions.comm_split)(comm, color, key, &raw mut made) };
        let place =
            self.table.check(code).and_then(|()| place(&self.table, made, self.comms.len()));
        match place {
            Ok(place) => {
                self.comms.push(made);
                Ok(place)
            }
            Err(text) => {
                let (rank, description) = (command.comm.rank, command.description.clone());
                let error = Error::Mpi { call: "MPI_Comm_split", rank, description, text };
                self.give_up(&error);
                Err(error)
            }
        }
    }

    /// Ends MPI, unless another part of the process has to do that.
    fn finish(&mut self, command: &Command) {
        self.engine.board.remove(command.watched);
        let healthy = self.engine.board.broken().is_none();
        if self.owns && healthy && !self.table.flag(self.table.functions.finalized) {
            // SAFETY: nothing is pending, and this thread has started MPI.
            unsafe { (self.table.functions.finalize)() };
        }
        self.engine.finish();
        command.ticket.complete(Ok(None));
    }
}
