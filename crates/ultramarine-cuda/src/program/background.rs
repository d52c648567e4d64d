//! Background jobs: compilations that no thread waits for, and the closing of communicators.
//!
//! The few threads are started when there is work, and end when no work is left. When the
//! process tears libraries down, no thread may be inside NVRTC or NCCL, because a running call
//! would use objects that were already destroyed. A forked child has none of the threads. It never
//! gets here, because its devices refuse every call before.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, Once};

/// Maximum number of threads.
const WORKERS: usize = 2;
/// Maximum time to wait for these threads when the process exits.
#[cfg(not(windows))]
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(20);
/// Maximum time to wait for jobs that themselves wait for other processes.
#[cfg(not(windows))]
const FAREWELL: std::time::Duration = std::time::Duration::from_secs(5);

type Job = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct State {
    queue: VecDeque<Job>,
    workers: usize,
    /// Number of threads started by [`spawn_apart`].
    apart: usize,
    closed: bool,
}

struct Pool {
    state: Mutex<State>,
    ended: Condvar,
}

static POOL: Pool = Pool {
    state: Mutex::new(State { queue: VecDeque::new(), workers: 0, apart: 0, closed: false }),
    ended: Condvar::new(),
};

impl Pool {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// The loop of a worker thread.
    fn work(&self) {
        loop {
            let job = {
                let mut state = self.lock();
                match state.queue.pop_front() {
                    Some(job) if !state.closed => job,
                    _ => {
                        state.workers -= 1;
                        self.ended.notify_all();
                        return;
                    }
                }
            };
            // If the job panics, waiting callers find no result and ask again.
            let _ = catch_unwind(AssertUnwindSafe(job));
        }
    }
}

/// Runs `job` later. Returns `false` if the job is dropped, because the process exits or no thread
/// can be started.
pub fn spawn(job: impl FnOnce() + Send + 'static) -> bool {
    register();
    let mut state = POOL.lock();
    if state.closed {
        return false;
    }
    state.queue.push_back(Box::new(job));
    if state.workers < WORKERS {
        let named = std::thread::Builder::new().name("ultramarine-nvrtc".to_owned());
        match named.spawn(|| POOL.work()) {
            Ok(_) => state.workers += 1,
            Err(_) if state.workers == 0 => {
                state.queue.clear();
                return false;
            }
            Err(_) => {}
        }
    }
    true
}

/// Runs `job`, which may wait for other processes, on a new thread. The exit waits for it, but not for long. Returns
/// `false` if the job is dropped, as [`spawn`] does.
pub fn spawn_apart(job: impl FnOnce() + Send + 'static) -> bool {
    register();
    let mut state = POOL.lock();
    if state.closed {
        return false;
    }
    let named = std::thread::Builder::new().name("ultramarine-nccl".to_owned());
    let run = move || {
        let _ = catch_unwind(AssertUnwindSafe(job));
        POOL.lock().apart -= 1;
        POOL.ended.notify_all();
    };
    // The thread cannot decrement the counter before the increment below, because we hold the lock.
    let begun = named.spawn(run).is_ok();
    state.apart += usize::from(begun);
    begun
}

/// Makes the exit of the process wait, from the first job on.
fn register() {
    // This runs after NVRTC was opened, so that this exit handler runs before NVRTC's.
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(at_exit);
    watch_main_thread();
}

/// Waits until all jobs are done; for tests.
#[cfg(test)]
pub fn drain() {
    let mut state = POOL.lock();
    while state.workers > 0 {
        state = POOL.ended.wait(state).unwrap_or_else(|e| e.into_inner());
    }
}

/// Drops jobs that have not started, and waits for running compilations and for communicators that
/// are closing.
#[cfg(not(windows))]
extern "C" fn close() {
    if crate::context::forked() {
        return;
    }
    let mut state = POOL.lock();
    let first = !std::mem::replace(&mut state.closed, true);
    let dropped = std::mem::take(&mut state.queue);
    let waited = POOL.ended.wait_timeout_while(state, PATIENCE, |s| s.workers > 0);
    let (state, _) = waited.unwrap_or_else(|e| e.into_inner());
    if first {
        let _ = POOL.ended.wait_timeout_while(state, FAREWELL, |s| s.apart > 0);
    }
    drop(dropped);
}

/// Makes the exit of the process wait for running compilations. (On Windows, all threads have ended
/// before exit handlers are called.)
fn at_exit() {
    #[cfg(not(windows))]
    {
        unsafe extern "C" {
            fn atexit(handler: extern "C" fn()) -> core::ffi::c_int;
        }
        // SAFETY: a plain function of this library, which stays loaded; it does not unwind.
        unsafe { atexit(close) };
    }
}

/// If the calling thread is the main thread, makes the exit wait before any handler of the C library runs.
/// The exit handler alone comes too late, because a running compiler registers its own handlers, which run
/// before those registered earlier.
pub fn watch_main_thread() {
    #[cfg(target_os = "linux")]
    {
        let place = std::fs::read_link("/proc/thread-self").unwrap_or_default();
        if place.file_name().is_some_and(|id| id == std::process::id().to_string().as_str()) {
            watch_this_thread();
        }
    }
}

/// A thread-local value of the main thread. The exit first drops the thread-local values of the
/// thread that calls it.
#[cfg(target_os = "linux")]
fn watch_this_thread() {
    struct Last;
    impl Drop for Last {
        fn drop(&mut self) {
            close();
        }
    }
    thread_local! {
        static LAST: Last = const { Last };
    }
    // The access fails in a thread that is ending.
    let _ = LAST.try_with(|_| ());
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    unsafe extern "C" {
        fn atexit(handler: extern "C" fn()) -> core::ffi::c_int;
    }

    /// The exit handler of a library that was registered while the library works. After it has run,
    /// the library's state is gone.
    extern "C" fn tear_down() {
        if let Some(place) = std::env::var_os("ULTRAMARINE_TEST_EXIT") {
            let _ = std::fs::write(std::path::Path::new(&place).join("gone"), "");
        }
    }

    /// In a child process: exits while a job is running.
    #[test]
    fn exits_while_at_work() {
        let Some(place) = std::env::var_os("ULTRAMARINE_TEST_EXIT") else { return };
        let gone = std::path::Path::new(&place).join("gone");
        for i in 0..6 {
            let (place, gone) = (std::path::Path::new(&place).join(i.to_string()), gone.clone());
            spawn(move || {
                std::fs::write(&place, "begun").unwrap();
                // SAFETY: a plain function that does not unwind.
                unsafe { atexit(tear_down) };
                std::thread::sleep(Duration::from_millis(200));
                let end = match cfg!(target_os = "linux") && gone.exists() {
                    true => "too late",
                    false => "done",
                };
                std::fs::write(&place, end).unwrap();
            });
        }
        // This thread acts as the main thread, because it is the one that exits.
        #[cfg(target_os = "linux")]
        watch_this_thread();
        while std::fs::read_dir(&place).unwrap().count() == 0 {
            std::thread::yield_now();
        }
        std::process::exit(0);
    }

    #[cfg(not(windows))]
    #[test]
    fn the_exit_waits_for_what_has_begun_and_for_nothing_else() {
        let name = format!("ultramarine-background-{}", std::process::id());
        let place = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&place).unwrap();
        let child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "program::background::tests::exits_while_at_work"])
            .env("ULTRAMARINE_TEST_EXIT", &place)
            .output()
            .unwrap();
        assert!(child.status.success(), "{child:?}");
        let mut files: Vec<_> = std::fs::read_dir(&place).unwrap().flatten().collect();
        files.retain(|file| file.file_name() != "gone");
        assert!((1..=WORKERS).contains(&files.len()), "{} jobs were begun", files.len());
        for file in files {
            assert_eq!(std::fs::read_to_string(file.path()).unwrap(), "done");
        }
        std::fs::remove_dir_all(&place).unwrap();
    }

    /// In a child process: exits while a communicator is closing.
    #[test]
    fn exits_while_one_ends() {
        let Some(place) = std::env::var_os("ULTRAMARINE_TEST_FAREWELL") else { return };
        #[cfg(target_os = "linux")]
        watch_this_thread();
        assert!(spawn_apart(move || {
            std::thread::sleep(Duration::from_millis(300));
            std::fs::write(&place, "done").unwrap();
        }));
        std::process::exit(0);
    }

    #[cfg(not(windows))]
    #[test]
    fn the_exit_waits_for_a_communicator_that_ends() {
        let name = format!("ultramarine-farewell-{}", std::process::id());
        let place = std::env::temp_dir().join(name);
        let child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "program::background::tests::exits_while_one_ends"])
            .env("ULTRAMARINE_TEST_FAREWELL", &place)
            .output()
            .unwrap();
        assert!(child.status.success(), "{child:?}");
        assert_eq!(std::fs::read_to_string(&place).unwrap(), "done");
        std::fs::remove_file(&place).unwrap();
    }

    #[test]
    fn all_is_done_by_few_threads() {
        let (done, now, most) = <(Arc<AtomicUsize>, Arc<AtomicUsize>, Arc<AtomicUsize>)>::default();
        for i in 0..20 {
            let (done, now, most) = (done.clone(), now.clone(), most.clone());
            assert!(spawn(move || {
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                std::thread::sleep(Duration::from_millis(2));
                now.fetch_sub(1, Ordering::SeqCst);
                done.fetch_add(1, Ordering::SeqCst);
                assert!(i != 7, "a job that panics takes nobody with it");
            }));
        }
        drain();
        assert_eq!(done.load(Ordering::SeqCst), 20);
        assert!(most.load(Ordering::SeqCst) <= WORKERS);
    }
}
