//! The loader's state: the directories that were added, the files that it loaded, and its report.
//! The lock is held only briefly, and never while a plugin's code runs. It is also held during a
//! fork.

use super::report::{Candidate, Directory};
use super::search::SearchPath;
use crate::fork::{self, ForkStage, Hook};
use crate::sync;
use std::cell::RefCell;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

/// The identity of a file, independent of its path: device and inode.
pub(super) type FileId = (u64, u64);

pub(super) struct State {
    /// Directories added by [`super::search::add_search_directory`].
    pub(super) added: Vec<SearchPath>,
    /// Directories that replace all others.
    pub(super) set: Option<Vec<PathBuf>>,
    /// The files that were loaded, with the names of their backends.
    pub(super) loaded: Vec<(FileId, String)>,
    pub(super) directories: Vec<Directory>,
    pub(super) candidates: Vec<Candidate>,
    /// The command that tries a file in a child process: a program and its first arguments.
    pub(super) probe_command: Option<Vec<OsString>>,
    pub(super) probe_timeout: Duration,
}

static STATE: Mutex<State> = Mutex::new(State {
    added: Vec::new(),
    set: None,
    loaded: Vec::new(),
    directories: Vec::new(),
    candidates: Vec::new(),
    probe_command: None,
    probe_timeout: Duration::from_secs(10),
});

thread_local! {
    static HELD: RefCell<Option<MutexGuard<'static, State>>> = const { RefCell::new(None) };
}

static FORK_HOOK: Hook = Hook {
    prepare: || {
        let guard = sync::lock(&STATE);
        fork::keep(&HELD, guard);
    },
    parent: release,
    child: release,
};

fn release() {
    drop(fork::take(&HELD));
}

pub(super) fn lock() -> MutexGuard<'static, State> {
    fork::register(ForkStage::Loader, &FORK_HOOK);
    sync::lock(&STATE)
}
