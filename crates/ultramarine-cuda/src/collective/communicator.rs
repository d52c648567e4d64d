//! A communicator. It is opened on a separate thread, because NCCL takes seconds to open it and waits for the
//! other ranks.
//!
//! NCCL allows only one call at a time on a communicator, and an `abort` may come at any time. So every call takes the lock, and
//! then checks the abort flag. A call that waits for NCCL polls.

use crate::context::{self, Context, lock};
use crate::program::background;
use crate::sys::nccl::{self, Code, Config, Handle, Nccl, UniqueId, code};
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, TryLockError};
use std::time::{Duration, Instant};
use ultramarine_abi::helper::{Failure, Result, panic_message};

/// Time limit for closing a communicator in order, if NCCL's calls do not block.
const FAREWELL: Duration = Duration::from_secs(5);
/// Time that an abort waits for a call in progress.
const GRACE: Duration = Duration::from_secs(2);
/// Time that a call polls NCCL without sleeping; after it, the call sleeps between polls.
const CLOSE_WATCH: Duration = Duration::from_millis(2);

/// True if NCCL's calls return only when their work is enqueued, which is the default. Non-blocking calls cost 40
/// microseconds more, because NCCL starts a thread for each operation. `ULTRAMARINE_NCCL_BLOCKING=0` selects them.
fn is_blocking() -> bool {
    static BLOCKING: OnceLock<bool> = OnceLock::new();
    *BLOCKING.get_or_init(|| {
        std::env::var("ULTRAMARINE_NCCL_BLOCKING").map_or(true, |v| v.trim() != "0")
    })
}

/// Environment variable with the maximum number of thread blocks (CTAs) of NCCL's kernels. It limits how many multiprocessors a
/// group takes from concurrent computations. It is read whenever a group is made, so groups may have different limits.
const MAX_CTAS: &str = "ULTRAMARINE_NCCL_MAX_CTAS";

/// Parses the maximum number of thread blocks; `None` leaves the choice to NCCL.
fn max_ctas(text: Option<&str>) -> Result<Option<i32>> {
    let Some(text) = text.map(str::trim).filter(|text| !text.is_empty()) else { return Ok(None) };
    match text.parse() {
        Ok(0) => Ok(None),
        Ok(number @ 1..=64) => Ok(Some(number)),
        _ => Err(Failure::invalid(format!(
            "{MAX_CTAS}={text}: give a number of thread blocks from 1 to 64, or 0 for NCCL's own choice"
        ))),
    }
}

/// The maximum number of thread blocks for a group that is made now.
fn max_ctas_now() -> Result<Option<i32>> {
    max_ctas(std::env::var(MAX_CTAS).ok().as_deref())
}

fn config(max_ctas: Option<i32>) -> Config {
    let mut config = Config::new(is_blocking());
    if let Some(most) = max_ctas {
        config.max_blocks = most;
    }
    config
}

/// The state of a communicator that threads share.
struct Shared {
    context: Arc<Context>,
    nccl: &'static Nccl,
    /// NULL before the communicator is opened, and after it was destroyed or aborted.
    handle: AtomicPtr<core::ffi::c_void>,
    /// Held during NCCL's calls.
    calls: Mutex<()>,
    /// The result of opening it.
    opened: OnceLock<Result<()>>,
    ready: AtomicBool,
    /// Rank and size, once they were queried.
    place: OnceLock<(u32, u32)>,
    aborted: AtomicBool,
}

/// An NCCL communicator: the group of GPUs that a rank is a member of. It is opened and destroyed
/// in the background, so that a missing rank blocks no thread of the host.
pub struct Communicator {
    shared: Arc<Shared>,
    /// The communicator that this one was split from, held until this one is ready.
    whole: Mutex<Option<Arc<Shared>>>,
    /// The maximum number of thread blocks of its kernels; `None` leaves the choice to NCCL.
    max_ctas: Option<i32>,
}

impl Shared {
    fn new(context: Arc<Context>, nccl: &'static Nccl) -> Arc<Self> {
        Arc::new(Self {
            context,
            nccl,
            handle: AtomicPtr::default(),
            calls: Mutex::default(),
            opened: OnceLock::new(),
            ready: AtomicBool::new(false),
            place: OnceLock::new(),
            aborted: AtomicBool::new(false),
        })
    }

    fn handle(&self) -> Handle {
        self.handle.load(Ordering::Acquire)
    }

    fn is_aborted(&self) -> bool {
        self.aborted.load(Ordering::Acquire)
    }

    /// Fails if the communicator was aborted.
    fn alive(&self) -> Result<()> {
        match self.is_aborted() {
            true => Err(Failure::new("the group was ended. Open another")),
            false => Ok(()),
        }
    }

    /// Makes the failure of a call.
    fn failure(&self, call: &str, code: Code) -> Failure {
        Failure::new(format!("{call} failed with {}", self.nccl.describe(code)))
    }

    /// NCCL's state of the communicator. The caller holds the lock.
    fn state(&self) -> Code {
        let (handle, mut state) = (self.handle(), code::SUCCESS);
        if handle.is_null() {
            return code::IN_PROGRESS;
        }
        // SAFETY: a communicator, which is alive while the lock is held.
        match unsafe { (self.nccl.state)(handle, &mut state) } {
            code::SUCCESS => state,
            failed => failed,
        }
    }

    /// Waits for the result of a call that may still be in progress when it returns. The caller
    /// holds the lock.
    fn settle(&self, call: &str, answer: Code) -> Result<()> {
        let (start, mut state) = (Instant::now(), answer);
        while state == code::IN_PROGRESS {
            self.alive()?;
            match start.elapsed() < CLOSE_WATCH {
                true => std::thread::yield_now(),
                false => std::thread::sleep(Duration::from_micros(100)),
            }
            state = self.state();
        }
        match state {
            code::SUCCESS => Ok(()),
            failed => Err(self.failure(call, failed)),
        }
    }

    /// Aborts the communicator, and with it any work that waits on the device. The caller holds the lock, or the
    /// lock's holder is stuck in a call.
    fn end(&self) {
        let handle = self.handle.swap(std::ptr::null_mut(), Ordering::AcqRel);
        if !handle.is_null()
            && let Ok(_entered) = self.context.enter()
        {
            // SAFETY: a communicator; the swap above makes sure that it is aborted only once.
            unsafe { (self.nccl.abort)(handle) };
        }
    }

    /// Closes the communicator in order, together with the other ranks.
    fn close(&self) {
        let _calls = lock(&self.calls);
        let Ok(_entered) = self.context.enter() else { return };
        let (handle, until) = (self.handle(), Instant::now() + FAREWELL);
        if handle.is_null() {
            return;
        }
        // SAFETY: a live communicator; its commands have completed, as the contract guarantees.
        let mut state = unsafe { (self.nccl.finalize)(handle) };
        while state == code::IN_PROGRESS && Instant::now() < until {
            std::thread::sleep(Duration::from_micros(100));
            state = self.state();
        }
        match state {
            code::SUCCESS => {
                self.handle.store(std::ptr::null_mut(), Ordering::Release);
                // SAFETY: as above; it is given back once.
                unsafe { (self.nccl.destroy)(handle) };
            }
            _ => self.end(),
        }
    }

    /// Runs `body`, which opens the communicator, on a new thread.
    fn open(
        self: &Arc<Self>,
        body: impl FnOnce(&Self) -> Result<()> + Send + 'static,
    ) -> Result<()> {
        let shared = self.clone();
        let run = move || {
            let opening = std::panic::AssertUnwindSafe(|| {
                let _entered = shared.context.enter()?;
                body(&shared)
            });
            let outcome = std::panic::catch_unwind(opening).unwrap_or_else(|payload| {
                Err(Failure::new(panic_message(&*payload).unwrap_or("panicked").to_owned()))
            });
            let _ = shared.opened.set(outcome);
            // An abort before this point found no communicator to end, so it is ended here.
            if shared.is_aborted() {
                let _calls = lock(&shared.calls);
                shared.end();
            }
        };
        let thread = std::thread::Builder::new().name("ultramarine-nccl".to_owned());
        let begun = thread.spawn(run).map(drop);
        begun.map_err(|why| Failure::new(format!("cannot start the thread that opens a communicator: {why}. Raise the limit of threads")))
    }
}

impl Communicator {
    /// Fails if NCCL is not available.
    pub fn check_library() -> Result<()> {
        nccl::nccl().map(drop).map_err(Failure::unsupported)
    }

    /// Makes the id of a new communicator.
    pub fn make_id(context: &Context) -> Result<Vec<u8>> {
        let nccl = nccl::nccl().map_err(Failure::unsupported)?;
        let _entered = context.enter()?;
        let mut id = UniqueId([0; 128]);
        // SAFETY: the output pointer is valid.
        match unsafe { (nccl.unique_id)(&mut id) } {
            code::SUCCESS => Ok(id.0.to_vec()),
            failed => Err(Failure::new(format!("ncclGetUniqueId: {}", nccl.describe(failed)))),
        }
    }

    /// Starts to open a communicator.
    pub fn open(context: &Arc<Context>, id: &[u8], rank: u32, n_ranks: u32) -> Result<Self> {
        let nccl = nccl::nccl().map_err(Failure::unsupported)?;
        let wrong = |_| {
            Failure::invalid(format!(
                "the id has {} bytes, and NCCL's 128. Use the id of rank 0",
                id.len()
            ))
        };
        let id = UniqueId(id.try_into().map_err(wrong)?);
        let (Ok(rank), Ok(size)) = (i32::try_from(rank), i32::try_from(n_ranks)) else {
            return Err(Failure::invalid(format!(
                "rank {rank} is not below the number of ranks, {n_ranks}"
            )));
        };
        let most = max_ctas_now()?;
        let shared = Shared::new(context.clone(), nccl);
        shared.open(move |shared| {
            let (mut handle, mut config) = (std::ptr::null_mut(), config(most));
            // SAFETY: the output pointers are valid; the device's context is current.
            let code = unsafe { (shared.nccl.open)(&mut handle, size, id, rank, &mut config) };
            shared.handle.store(handle, Ordering::Release);
            match code {
                code::SUCCESS | code::IN_PROGRESS => Ok(()),
                failed => Err(shared.failure("ncclCommInitRankConfig", failed)),
            }
        })?;
        Ok(Self { shared, whole: Mutex::default(), max_ctas: most })
    }

    /// Starts to open a part of a communicator.
    pub fn split(&self, color: u32, key: i32) -> Result<Self> {
        let color = i32::try_from(color).map_err(|_| {
            Failure::invalid(format!(
                "the color is {color}, above the maximum {}. Number groups from 0 on",
                i32::MAX
            ))
        })?;
        if !self.is_ready()? {
            return Err(Failure::invalid("the group is not open yet"));
        }
        // With NULL settings, the part inherits the settings of the whole. Otherwise the part uses
        // only its own.
        let most = max_ctas_now()?;
        let same = most == self.max_ctas;
        let (whole, part) =
            (self.shared.clone(), Shared::new(self.shared.context.clone(), self.shared.nccl));
        let of = whole.clone();
        part.open(move |part| {
            let _calls = lock(&of.calls);
            of.alive()?;
            // NCCL may write the handle as late as when the whole communicator has settled, so the pointer has to
            // live as long as the part.
            let place = part.handle.as_ptr();
            let mut own = config(most);
            let settings = if same { std::ptr::null_mut() } else { &raw mut own };
            // SAFETY: the whole is alive while its lock is held; the output pointers are valid.
            let code = unsafe { (of.nccl.split)(of.handle(), color, key, place, settings) };
            of.settle("ncclCommSplit", code)
        })?;
        Ok(Self { shared: part, whole: Mutex::new(Some(whole)), max_ctas: most })
    }

    /// Returns true once the communicator is open, or an error if opening failed.
    pub fn is_ready(&self) -> Result<bool> {
        context::not_forked()?;
        let shared = &*self.shared;
        shared.alive()?;
        match shared.opened.get() {
            None => return Ok(false),
            Some(outcome) => outcome.clone()?,
        }
        let ready = shared.ready.load(Ordering::Acquire);
        let calls = match shared.calls.try_lock() {
            Ok(calls) => calls,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            // Another call is in progress, and reports errors itself.
            Err(TryLockError::WouldBlock) => return Ok(ready),
        };
        let state = shared.state();
        drop(calls);
        match state {
            code::SUCCESS => {
                if !ready {
                    shared.ready.store(true, Ordering::Release);
                    lock(&self.whole).take();
                }
                Ok(true)
            }
            code::IN_PROGRESS => Ok(ready),
            failed => Err(shared.failure("the group", failed)),
        }
    }

    /// Returns rank and size.
    pub fn place(&self) -> Result<(u32, u32)> {
        if let Some(place) = self.shared.place.get() {
            return Ok(*place);
        }
        let (nccl, calls) = self.enter()?;
        let (mut rank, mut size) = (0, 0);
        let handle = calls.handle;
        // SAFETY: a communicator that is alive and ready; the output pointers are valid.
        let codes = unsafe { [(nccl.rank)(handle, &mut rank), (nccl.size)(handle, &mut size)] };
        match codes.into_iter().find(|code| *code != code::SUCCESS) {
            None => Ok(*self.shared.place.get_or_init(|| (rank as u32, size as u32))),
            Some(failed) => Err(self.shared.failure("ncclCommUserRank", failed)),
        }
    }

    fn enter(&self) -> Result<(&'static Nccl, Calls<'_>)> {
        let shared = &*self.shared;
        // Once the communicator is open, its state is not queried here, because a query costs as much as a small call. NCCL's
        // calls report errors themselves, and the host queries the state from time to time.
        context::not_forked()?;
        if !shared.ready.load(Ordering::Acquire) && !self.is_ready()? {
            return Err(Failure::invalid("the group is not open yet"));
        }
        let guard = lock(&shared.calls);
        shared.alive()?;
        Ok((shared.nccl, Calls { handle: shared.handle(), _guard: guard }))
    }

    /// Enqueues the calls that `body` makes on the communicator as one NCCL group. The device's context is
    /// current.
    pub fn together(
        &self,
        mut body: impl FnMut(&Nccl, Handle) -> (&'static str, Code),
        count: usize,
    ) -> Result<()> {
        let (nccl, calls) = self.enter()?;
        // SAFETY: NCCL groups are per thread, and every start is followed by an end.
        let code = unsafe { (nccl.begin)() };
        if code != code::SUCCESS {
            return Err(self.shared.failure("ncclGroupStart", code));
        }
        let taken = |code| matches!(code, code::SUCCESS | code::IN_PROGRESS);
        let asked = (0..count).map(|_| body(nccl, calls.handle)).find(|(_, code)| !taken(*code));
        // SAFETY: as above.
        let ended = unsafe { (nccl.end)() };
        if let Some((call, failed)) = asked {
            let _ = self.shared.settle("ncclGroupEnd", ended);
            return Err(self.shared.failure(call, failed));
        }
        self.shared.settle("ncclGroupEnd", ended)
    }

    /// Aborts the communicator, and with it any work that waits on the device.
    pub fn abort(&self) {
        let shared = &*self.shared;
        if context::forked() || shared.aborted.swap(true, Ordering::AcqRel) {
            return;
        }
        let until = Instant::now() + GRACE;
        loop {
            match shared.calls.try_lock() {
                Err(TryLockError::WouldBlock) if Instant::now() < until => {
                    std::thread::sleep(Duration::from_millis(1));
                }
                // The lock is free, or its holder is stuck inside NCCL and will return when the
                // communicator is aborted.
                _held => return shared.end(),
            }
        }
    }
}

/// The lock for calls of a communicator.
struct Calls<'a> {
    handle: Handle,
    _guard: MutexGuard<'a, ()>,
}

impl Drop for Communicator {
    fn drop(&mut self) {
        let shared = &*self.shared;
        if context::forked() || shared.is_aborted() {
            return;
        }
        if !self.is_ready().is_ok_and(|ready| ready) {
            // If the communicator is still opening, the opening thread sees the abort and ends it.
            // Otherwise it has failed.
            return self.abort();
        }
        // Closing runs on another thread, because NCCL waits for the host's other ranks, which may close theirs much later.
        // If no thread can be started, as at exit, the communicator is leaked.
        let shared = self.shared.clone();
        background::spawn_apart(move || shared.close());
    }
}

#[cfg(test)]
mod tests {
    use super::max_ctas;

    #[test]
    fn thread_blocks_by_a_variable() {
        let of = |text| max_ctas(text).ok();
        assert_eq!([of(None), of(Some(" ")), of(Some("0"))], [Some(None); 3]);
        assert_eq!([of(Some("1")), of(Some(" 16 "))], [Some(Some(1)), Some(Some(16))]);
        for wrong in ["65", "-1", "four", "1.5"] {
            assert!(max_ctas(Some(wrong)).is_err(), "{wrong}");
        }
    }
}
