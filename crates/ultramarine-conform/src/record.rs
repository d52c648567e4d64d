//! Messages of a child process to its parent: one JSON object a line, written as soon as it
//! is known, so that a crash leaves the name of the check that was running.

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
    /// Does not apply; why.
    Skipped(String),
}

/// A check's result, or that of a part of it; an error is the failure, with how to see it again.
pub type Result<T = Outcome, E = String> = std::result::Result<T, E>;

/// The check passed.
pub const PASSED: Result = Ok(Outcome::Passed);

/// The check does not apply.
pub fn skip(why: impl Into<String>) -> Result {
    Ok(Outcome::Skipped(why.into()))
}

/// The file of the child's messages, for [`note`].
static NOTES: OnceLock<Mutex<File>> = OnceLock::new();

/// No notes are written: they would take time where time is measured.
static SILENT: AtomicBool = AtomicBool::new(false);

/// Writes no more notes.
pub fn without_notes() {
    SILENT.store(true, Ordering::Relaxed);
}

/// Writes what is about to be called, so that the parent can name it if the call takes the process.
pub fn note(call: impl FnOnce() -> String) {
    let Some(file) = NOTES.get().filter(|_| !SILENT.load(Ordering::Relaxed)) else { return };
    let line = json!({ "call": call() });
    // The parent does without a note that is lost.
    let _ = writeln!(file.lock().unwrap_or_else(PoisonError::into_inner), "{line}");
}

thread_local! {
    /// The next call of this thread has a note that names its operation.
    static NAMED: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// A [`note`] of the next submit, which stands before [`note_unnamed`]'s.
pub fn note_named(call: impl FnOnce() -> String) {
    note(call);
    NAMED.set(true);
}

/// A [`note`] of a submit by its tensors, unless it has one that names the operation.
pub fn note_unnamed(call: impl FnOnce() -> String) {
    if !NAMED.replace(false) {
        note(call);
    }
}

/// Runs checks and writes what became of them.
pub struct Recorder {
    file: File,
    /// Only checks whose name contains this.
    only: Option<String>,
    /// Checks up to and with this one were run by an earlier child.
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
        // The parent notices a file that ends early.
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

    /// A name that `--check` does not select, for the message if nothing was selected.
    pub fn left_out(&mut self, name: &str) {
        self.line(&json!({ "left out": name }));
    }

    /// A property for the capability sheet.
    pub fn property(&mut self, key: &str, value: Value) {
        if self.after.is_none() {
            self.line(&json!({ "fact": key, "value": value }));
        }
    }

    /// One cell of the matrix of ops and dtypes.
    pub fn cell(&mut self, cell: &Cell) {
        self.line(&json!({ "cell": cell.family, "code": cell.code, "dtype": cell.dtype,
            "need": cell.need, "plain": cell.plain, "strided": cell.strided, "ulp": cell.ulp }));
    }

    /// The group is through.
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
    /// The grade that asks for it: `basic`, `complete` or `optional`.
    pub need: &'static str,
    /// For contiguous inputs: `native`, `refused` or `wrong`.
    pub plain: &'static str,
    /// For strided inputs: `native`, `contiguous` (the host has to copy), `refused`, or empty.
    pub strided: &'static str,
    /// The largest error seen, in units of the last place.
    pub ulp: f64,
}
