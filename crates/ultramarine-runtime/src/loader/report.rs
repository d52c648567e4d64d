//! The load report: the candidates, the stages that they reached, and the reasons why they were
//! left out.

use super::abi_compatibility::{BackendProperties, DeviceProperties};
use super::reason::Reason;
use super::search::{Rule, full_name};
use super::state;
use crate::backend::registry;
use crate::device::Device;
use crate::log::Level;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

macro_rules! named_enum {
    ($(#[$top:meta])* $type:ident: $($(#[$doc:meta])* $variant:ident $name:literal,)*) => {
        $(#[$top])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum $type {
            $($(#[$doc])* $variant,)*
        }

        impl $type {
            /// Returns the name in the JSON report.
            pub fn name(self) -> &'static str {
                match self { $($type::$variant => $name,)* }
            }

            /// Returns the value with a name.
            pub fn named(name: &str) -> Option<$type> {
                match name { $($name => Some($type::$variant),)* _ => None }
            }
        }
    };
}

named_enum! {
    /// The stages of a load. A candidate's stage is the last one that it reached.
    Stage:
    /// Validation of the file: its type, owner and permissions.
    File "file",
    /// Validation of the file's headers and its note.
    Note "note",
    /// Matching the name against the globs.
    Filter "filter",
    /// Trying it in a child process.
    Probe "probe",
    /// Opening the file as a library.
    Open "open",
    /// Checking the plugin's ABI info.
    Abi "abi",
    /// Calling the plugin's score function.
    Score "score",
    /// Applying the caller's filter.
    Callback "callback",
    /// Choosing the best candidate of each name.
    Choice "choice",
    /// Calling the plugin's init, and opening its devices.
    Init "init",
    /// Registered and in use.
    Registered "registered",
}

named_enum! {
    /// The outcome of a candidate.
    Outcome:
    /// Loaded and in use.
    Loaded "loaded",
    /// Left out, although nothing is wrong with the candidate.
    Skipped "skipped",
    /// Left out because something is wrong with the candidate.
    Rejected "rejected",
}

/// True if the program shows the report.
static REPORTED: AtomicBool = AtomicBool::new(false);

/// Announces that the program shows the [`report`] itself, so that the log does not repeat its
/// reasons.
pub fn show_report() {
    REPORTED.store(true, Ordering::Relaxed);
}

/// A file that the loader examined, the last stage that it reached, and its outcome.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// The file.
    pub path: PathBuf,
    /// The name in the file's name.
    pub name: String,
    /// The variant in the file's name.
    pub variant: String,
    /// How it was found.
    pub rule: Rule,
    /// The last stage that it reached.
    pub stage: Stage,
    /// Its outcome.
    pub outcome: Outcome,
    /// The reason why it was left out.
    pub reason: Option<Reason>,
    /// The properties that it declares.
    pub properties: Option<BackendProperties>,
    /// Its score.
    pub score: Option<u32>,
    /// The devices that its score function reported.
    pub found_devices: Vec<DeviceProperties>,
    /// True if the candidate is the best of its name.
    pub winner: bool,
    /// The backend's devices, by their global names.
    pub devices: Vec<Device>,
    /// Time spent on the candidate.
    pub milliseconds: f64,
}

/// A directory that the loader searched, and what it found there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directory {
    /// The directory.
    pub path: PathBuf,
    /// The reason why it was searched.
    pub rule: Rule,
    /// The number of files in it that are named like backends, or the reason why it cannot be read.
    pub found: Result<usize, String>,
}

/// The load report: all directories and candidates since the program started. [`report`] returns
/// it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// The directories.
    pub directories: Vec<Directory>,
    /// The candidates, in the order in which they were found. If a candidate was examined several
    /// times, this has the last time, unless the candidate is in use.
    pub candidates: Vec<Candidate>,
}

/// Returns the outcomes of all candidates so far. It does not load backends.
pub fn report() -> Report {
    let state = state::lock();
    Report { directories: state.directories.clone(), candidates: state.candidates.clone() }
}

/// Returns the [`report`] as JSON.
pub fn report_json() -> String {
    let report = report();
    let directories: Vec<Value> = report.directories.iter().map(directory).collect();
    let listed = |c: &Candidate| {
        let mut listed = candidate(c);
        if c.outcome == Outcome::Loaded {
            listed["library_report"] = json!(registry::library_report(&c.path));
        }
        listed
    };
    let candidates: Vec<Value> = report.candidates.iter().map(listed).collect();
    let all = json!({ "directories": directories, "candidates": candidates });
    serde_json::to_string_pretty(&all).unwrap_or_default()
}

fn directory(directory: &Directory) -> Value {
    let (found, error) = match &directory.found {
        Ok(n) => (Some(n), None),
        Err(message) => (None, Some(message)),
    };
    json!({
        "path": directory.path.to_string_lossy(),
        "rule": directory.rule.to_string(),
        "found": found,
        "error": error,
    })
}

pub(super) fn candidate(c: &Candidate) -> Value {
    let devices: Vec<String> = c.devices.iter().map(ToString::to_string).collect();
    let found: Vec<Value> = c
        .found_devices
        .iter()
        .map(|d| json!({ "name": d.name, "memory": d.memory, "uuid": d.uuid, "pci": d.pci }))
        .collect();
    json!({
        "path": c.path.to_string_lossy(),
        "name": c.name,
        "variant": c.variant,
        "rule": c.rule.to_string(),
        "stage": c.stage.name(),
        "outcome": c.outcome.name(),
        "reason": c.reason.as_ref().map(|r| json!({
            "code": r.code.name(),
            "text": r.text,
            "remedy": r.remedy,
        })),
        "properties": c.properties.as_ref().map(properties),
        "score": c.score,
        "found_devices": found,
        "winner": c.winner,
        "devices": devices,
        "milliseconds": c.milliseconds,
    })
}

fn properties(f: &BackendProperties) -> Value {
    json!({
        "from_note": f.from_note,
        "name": f.name,
        "variant": f.variant,
        "version": f.version,
        "abi": format!("{}.{}", f.abi.0, f.abi.1),
        "dlpack": format!("{}.{}", f.dlpack.0, f.dlpack.1),
        "table_size": f.table_size,
        "device_type": f.device_type,
        "target": f.target,
        "compiler": f.compiler,
        "cpu_features": f.cpu_features,
        "sanitizers": f.sanitizers,
    })
}

const WITHOUT_NOTE: &str = "its file has no note with the ABI info, so its code ran before the processor and the contract were checked";
const KEEP_NOTE: &str = "use UM_DEFINE_BACKEND, which adds the note, and keep the section .note.ultramarine when stripping";

/// Returns the [`report`] as a table for a terminal: each candidate with its score and devices, or
/// with the reason why it was left out and the remedy.
pub fn report_table() -> String {
    let report = report();
    let mut out = String::from("Searched:\n");
    for d in &report.directories {
        let found = match &d.found {
            Ok(1) => "1 file".to_owned(),
            Ok(n) => format!("{n} files"),
            Err(message) => message.clone(),
        };
        out += &format!("  {}  ({}): {found}\n", d.path.display(), d.rule);
    }
    if report.directories.is_empty() {
        out += "  nothing yet\n";
    }
    if report.candidates.is_empty() {
        return out + "\nNo backend was found beside the built-in one.\n";
    }
    let rows: Vec<[String; 6]> = report.candidates.iter().map(row).collect();
    let titles = ["backend", "version", "score", "result", "devices", "ms"].map(String::from);
    let width = |column: usize| {
        let cells = std::iter::once(&titles).chain(&rows).map(|r| r[column].chars().count());
        cells.max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..titles.len()).map(width).collect();
    let line = |cells: &[String; 6]| {
        let padded: Vec<String> =
            cells.iter().zip(&widths).map(|(cell, w)| format!("{cell:w$}")).collect();
        padded.join("  ").trim_end().to_owned() + "\n"
    };
    out += "\n";
    out += &line(&titles);
    out += &line(&std::array::from_fn(|i| "-".repeat(widths[i])));
    for (candidate, cells) in report.candidates.iter().zip(&rows) {
        out += &line(cells);
        out += &format!("    {}  ({})\n", candidate.path.display(), candidate.rule);
        if let Some((text, remedy)) = candidate.unchecked() {
            out += &format!("    but:    {text}\n    remedy: {remedy}\n");
        }
        if candidate.outcome == Outcome::Loaded {
            for line in registry::library_report(&candidate.path) {
                out += &format!("    with:   {line}\n");
            }
        }
        if let Some(reason) = &candidate.reason {
            out += &format!("    why:    {}\n    remedy: {}\n", reason.text, reason.remedy);
        }
    }
    out
}

fn row(c: &Candidate) -> [String; 6] {
    let devices: Vec<String> = c.devices.iter().map(ToString::to_string).collect();
    let result = match c.outcome {
        Outcome::Loaded => "loaded".to_owned(),
        other => format!("{} at {}", other.name(), c.stage.name()),
    };
    [
        full_name(&c.name, &c.variant),
        c.properties.as_ref().map(|f| f.version.clone()).unwrap_or_default(),
        c.score.map(|s| s.to_string()).unwrap_or_default(),
        result,
        devices.join(" "),
        format!("{:.1}", c.milliseconds),
    ]
}

impl Candidate {
    pub(super) fn leave_out(&mut self, reason: Reason) {
        self.outcome = match reason.code.level() {
            Level::Error | Level::Warning => Outcome::Rejected,
            Level::Info | Level::Debug => Outcome::Skipped,
        };
        self.reason = Some(reason);
    }

    /// Writes the candidate's line to the log. If the caller named the file, it gets the reason as
    /// an error, so the line has the level `Info`.
    pub(super) fn log(&self) {
        let level = |reason: &Reason| match &self.rule {
            Rule::Explicit => Level::Info,
            _ if REPORTED.load(Ordering::Relaxed) => Level::Info,
            _ => reason.code.level(),
        };
        match &self.reason {
            Some(reason) => crate::log::log(
                level(reason),
                format_args!("backend {}: {reason}", self.path.display()),
            ),
            None => crate::log::log(
                Level::Info,
                format_args!(
                    "backend {} loaded, score {}",
                    self.path.display(),
                    self.score.unwrap_or(0)
                ),
            ),
        }
        if let Some((text, remedy)) = self.unchecked() {
            let level = if self.rule == Rule::Explicit { Level::Info } else { Level::Warning };
            let path = self.path.display();
            crate::log::log(level, format_args!("backend {path}: {text} (remedy: {remedy})"));
        }
    }

    /// Returns the risk of a backend that was loaded without a note, and the remedy.
    fn unchecked(&self) -> Option<(&'static str, &'static str)> {
        let bare = self.properties.as_ref().is_some_and(|p| !p.from_note);
        (cfg!(target_os = "linux") && self.outcome == Outcome::Loaded && bare)
            .then_some((WITHOUT_NOTE, KEEP_NOTE))
    }

    /// Adds the candidate to the report.
    pub(super) fn record(self) {
        let mut state = state::lock();
        match state.candidates.iter_mut().find(|c| c.path == self.path) {
            Some(before) if before.outcome == Outcome::Loaded => {}
            Some(before) => *before = self,
            None => state.candidates.push(self),
        }
    }
}
