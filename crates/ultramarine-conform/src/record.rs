//! Messages of a child process to its parent: one JSON object per line. Each is written at once, so
//! that after a crash the parent knows which check was running.

use crate::host;
use serde_json::{Value, json};
use std::fs::File;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use ultramarine_abi::helper::panic_message;

/// The outcome of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Passed,
    /// The check does not apply. The text is the reason.
    Skipped(String),
}

/// The result of a check or of a part of it. An error is a description of the failure, with the way
/// to reproduce it.
pub type Result<T = Outcome, E = String> = std::result::Result<T, E>;

/// The check passed.
pub const PASSED: Result = Ok(Outcome::Passed);

/// The check does not apply.
pub fn skip(why: impl Into<String>) -> Result {
    Ok(Outcome::Skipped(why.into()))
}

/// The file of the child's messages, for [`note`].
static NOTES: OnceLock<Mutex<File>> = OnceLock::new();

/// True if no notes are written, because they would distort measurements.
static SILENT: AtomicBool = AtomicBool::new(false);

/// Writes no more notes.
pub fn without_notes() {
    SILENT.store(true, Ordering::Relaxed);
}

/// Writes the call that is about to be made, so that the parent can name it if the call crashes the
/// process.
pub fn note(call: impl FnOnce() -> String) {
    let Some(file) = NOTES.get().filter(|_| !SILENT.load(Ordering::Relaxed)) else { return };
    let line = json!({ "call": call() });
    // Ignore errors, because the parent can do without a note.
    let _ = writeln!(file.lock().unwrap_or_else(PoisonError::into_inner), "{line}");
}

thread_local! {
    /// True if the next call of this thread has a note that names its operation.
    static NAMED: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Writes a [`note`] for the next submit. It replaces that of [`note_unnamed`].
pub fn note_named(call: impl FnOnce() -> String) {
    note(call);
    NAMED.set(true);
}

/// Writes a [`note`] for a submit that describes its tensors, unless there is a note that names the
/// operation.
pub fn note_unnamed(call: impl FnOnce() -> String) {
    if !NAMED.replace(false) {
        note(call);
    }
}

/// Runs checks and writes their results.
pub struct Recorder {
    file: File,
    /// If set, only checks whose name contains this are run.
    only: Option<String>,
    /// An earlier child has run all checks up to and including this one.
    after: Option<String>,
}

impl Recorder {
    pub fn new(file: File, only: Option<String>, after: Option<String>) -> Self {
        if let Ok(file) = file.try_clone() {
            let _ = NOTES.set(Mutex::new(file));
        }
        Recorder { file, only, after }
    }

    fn line(&mut self, value: &Value) {
        // Ignore errors, because the parent notices a truncated file.
        let _ = writeln!(self.file, "{value}").and_then(|()| self.file.flush());
    }

    /// True if a check of this name is to be run.
    fn selects(&mut self, name: &str) -> bool {
        if let Some(after) = &self.after {
            if after == name {
                self.after = None;
            }
            return false;
        }
        self.only.as_ref().is_none_or(|only| name.contains(only.as_str()))
    }

    /// Runs a check.
    pub fn check(&mut self, name: &str, f: impl FnOnce() -> Result) {
        let left_out = self.after.is_none();
        if !self.selects(name) {
            if left_out {
                self.left_out(name);
            }
            return;
        }
        self.line(&json!({ "begin": name }));
        host::take_violations();
        let result = catch_unwind(AssertUnwindSafe(f)).unwrap_or_else(|panic| {
            Err(format!("the kit panicked: {}", panic_message(&*panic).unwrap_or("?")))
        });
        let mut violations = host::take_violations();
        let (result, text) = match (result, violations.is_empty()) {
            (Err(text), true) => ("fail", text),
            (Err(text), false) => ("fail", format!("{text}; {}", violations.join("; "))),
            (Ok(_), false) => {
                violations.dedup();
                ("fail", violations.join("; "))
            }
            (Ok(Outcome::Passed), true) => ("pass", String::new()),
            (Ok(Outcome::Skipped(why)), true) => ("skip", why),
        };
        self.line(&json!({ "end": name, "result": result, "text": text }));
    }

    /// Records the name of a check that `--check` does not select, for the message if no check is
    /// selected.
    pub fn left_out(&mut self, name: &str) {
        self.line(&json!({ "left out": name }));
    }

    /// A property for the capability sheet.
    pub fn property(&mut self, key: &str, value: Value) {
        if self.after.is_none() {
            self.line(&json!({ "fact": key, "value": value }));
        }
    }

    /// Writes one cell of the matrix of ops and dtypes.
    pub fn cell(&mut self, cell: &Cell) {
        self.line(&json!({ "cell": cell.family, "code": cell.code, "dtype": cell.dtype,
            "need": cell.need, "plain": cell.plain, "strided": cell.strided, "ulp": cell.ulp }));
    }

    /// Records that the group is complete.
    pub fn done(&mut self) {
        self.line(&json!({ "done": true }));
    }
}

/// The findings on an op for a dtype.
#[derive(Clone, Debug, Default)]
pub struct Cell {
    pub family: String,
    /// The code within the family, or empty.
    pub code: String,
    pub dtype: String,
    /// The grade that requires the op: `basic`, `complete` or `optional`.
    pub need: &'static str,
    /// For contiguous inputs: `native`, `refused` or `wrong`.
    pub plain: &'static str,
    /// For strided inputs: `native`, `contiguous` (the host has to copy), `refused`, or empty.
    pub strided: &'static str,
    /// The largest error seen, in units of the last place.
    pub ulp: f64,
}
