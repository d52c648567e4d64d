//! The parent: runs every group in a child process with a time limit, and collects the children's
//! output. If a check crashes or hangs, only this check fails.

use crate::groups;
use crate::limit::{self, End};
use crate::options::Options;
use crate::plugin::Source;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// After this many crashes of a group, its remaining checks are not run.
const CRASHES: usize = 8;

/// The remedy for a group that takes long.
const MORE_TIME: &str =
    "--time-limit SECONDS gives each group more, which helps unless the last call has no end";

/// The most groups that run at the same time by default. More would not make a GPU faster.
const MOST_JOBS: usize = 4;

/// The parent's record of a check.
#[derive(Clone, Debug)]
pub struct Check {
    pub group: String,
    pub name: String,
    /// `pass`, `fail`, `skip`, or `slow` for a check that took longer than the time limit.
    pub result: String,
    pub text: String,
}

/// All findings of a run.
#[derive(Debug, Default)]
pub struct Findings {
    pub checks: Vec<Check>,
    pub properties: Vec<(String, Value)>,
    pub cells: Vec<Value>,
    /// Groups with the time that they took.
    pub times: Vec<(String, Duration)>,
    /// Number of child processes that ended before their checks did.
    pub crashes: usize,
    /// Names that `--check` did not select.
    pub left_out: Vec<String>,
}

impl Findings {
    pub fn add(&mut self, group: &str, name: &str, result: &str, text: &str) {
        self.checks.push(Check {
            group: group.to_owned(),
            name: name.to_owned(),
            result: result.to_owned(),
            text: text.to_owned(),
        });
    }

    /// True if a check failed.
    pub fn failed(&self) -> bool {
        self.checks.iter().any(|c| c.result == "fail")
    }

    /// True if a group took longer than the time limit.
    pub fn slow(&self) -> bool {
        self.checks.iter().any(|c| c.result == "slow")
    }

    /// Adds the findings of other groups.
    pub fn append(&mut self, other: Findings) {
        self.checks.extend(other.checks);
        self.properties.extend(other.properties);
        self.cells.extend(other.cells);
        self.times.extend(other.times);
        self.crashes += other.crashes;
        self.left_out.extend(other.left_out);
    }

    pub fn property(&self, key: &str) -> Option<&Value> {
        self.properties.iter().find(|f| f.0 == key).map(|f| &f.1)
    }

    pub fn json(&self) -> Value {
        let checks: Vec<Value> = self
            .checks
            .iter()
            .map(|c| json!({"group": c.group, "check": c.name, "result": c.result, "text": c.text}))
            .collect();
        let properties: serde_json::Map<String, Value> = self.properties.iter().cloned().collect();
        json!({ "checks": checks, "facts": properties, "ops": self.cells })
    }
}

/// A child's progress, read from its output.
#[derive(Default)]
struct Progress {
    running: Option<String>,
    /// The call that the running check was about to make, if the check named it.
    call: Option<String>,
    last: Option<String>,
    done: bool,
}

/// A directory that is removed with its content.
pub struct Scratch(pub PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        // Files that cannot be removed stay in the directory for temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A new directory for the children's output.
pub fn scratch() -> Result<Scratch, String> {
    let directory =
        std::env::temp_dir().join(format!("ultramarine-conform-{}", std::process::id()));
    std::fs::create_dir_all(&directory).map_err(|e| format!("{}: {e}", directory.display()))?;
    Ok(Scratch(directory))
}

/// Runs groups, a few at a time.
pub fn run(options: &Options, groups: &[&str]) -> Result<Findings, String> {
    let scratch = scratch()?;
    let next = AtomicUsize::new(0);
    let work = || {
        let mut own = Vec::new();
        loop {
            let i = next.fetch_add(1, Ordering::Relaxed);
            let Some(group) = groups.get(i) else { return own };
            let start = Instant::now();
            let mut findings = Findings::default();
            let output = scratch.0.join(group);
            let result = run_group(options, group, &output, &mut findings);
            findings.times.push(((*group).to_owned(), start.elapsed()));
            own.push((i, result.map(|()| findings)));
        }
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let jobs = options.jobs.unwrap_or(cores.min(MOST_JOBS)).max(1);
    let mut all = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..jobs).map(|_| scope.spawn(work)).collect();
        let done = threads.into_iter().map(|t| t.join().unwrap_or_default());
        done.flatten().collect::<Vec<_>>()
    });
    ensure!(all.len() == groups.len(), "a thread of the kit panicked");
    all.sort_by_key(|group| group.0);
    let mut findings = Findings::default();
    for (_, part) in all {
        findings.append(part?);
    }
    Ok(findings)
}

fn run_group(
    options: &Options,
    group: &str,
    output: &Path,
    findings: &mut Findings,
) -> Result<(), String> {
    let mut after = None;
    for crash in 0..CRASHES {
        std::fs::write(output, "").map_err(|e| format!("{}: {e}", output.display()))?;
        let mut child = spawn(options, group, output, after.as_deref())?;
        let ended = limit::wait(&mut child, options.limit, output)?;
        let text = std::fs::read_to_string(output).unwrap_or_default();
        let progress = read(group, &text, findings);
        let why = match ended {
            End::Exit(status) if progress.done && status.success() => return Ok(()),
            End::Exit(status) if progress.done => {
                let text = format!("the process {} after its last check", ending(status));
                findings.add(group, &format!("{group}/exit"), "fail", &text);
                return Ok(());
            }
            End::Exit(status) => format!("the process {}", ending(status)),
            End::Hang => {
                let limit = options.limit.as_secs();
                format!(
                    "no end within {limit} s, and no sign of work at the end of them (processor time, or a check that ended): killed"
                )
            }
            End::Slow => format!("took more than {} s; {MORE_TIME}", options.limit.as_secs()),
        };
        let result = if matches!(ended, End::Slow) { "slow" } else { "fail" };
        findings.crashes += 1;
        match (progress.running, progress.last) {
            (Some(name), _) => {
                let call =
                    progress.call.map_or(String::new(), |call| format!("; last call: {call}"));
                findings.add(group, &name, result, &format!("{why}{call}"));
                after = Some(name);
            }
            (None, Some(last)) => {
                findings.add(group, &format!("{group}/between checks"), result, &why);
                after = Some(last);
            }
            (None, None) => {
                findings.add(group, &format!("{group}/start"), result, &why);
                return Ok(());
            }
        }
        // A hang takes the whole time limit, so stop after one.
        if !matches!(ended, End::Exit(_)) || crash + 1 == CRASHES {
            let text = "ended early; the remaining checks of the group were not run";
            findings.add(group, &format!("{group}/rest"), result, text);
            break;
        }
    }
    Ok(())
}

fn spawn(
    options: &Options,
    group: &str,
    output: &Path,
    after: Option<&str>,
) -> Result<Child, String> {
    let mut command = child_command(options, group, output)?;
    if let Some(after) = after {
        command.arg("--child-after").arg(after);
    }
    match &options.source {
        Source::Builtin => command.arg("--builtin"),
        Source::File(path) => command.arg("--").arg(path),
    };
    command.stdin(Stdio::null());
    command.spawn().map_err(|e| format!("cannot start a child process: {e}"))
}

/// Returns the command of a group's child without the backend, which is appended last.
pub fn child_command(options: &Options, group: &str, output: &Path) -> Result<Command, String> {
    let me = std::env::current_exe().map_err(|e| format!("cannot find this program: {e}"))?;
    let mut command = Command::new(me);
    command.arg("--child").arg(group).arg("--child-output").arg(output);
    command.arg("--device").arg(options.device.to_string());
    if let Some(check) = options.check.as_ref().filter(|_| group != groups::LOAD) {
        command.arg("--check").arg(check);
    }
    if options.full {
        command.arg("--full");
    }
    // Hide the plugin's output, which is not part of the kit's report.
    command.stdout(Stdio::null());
    if !options.verbose {
        command.stderr(Stdio::null());
    }
    Ok(command)
}

#[cfg(unix)]
pub fn ending(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    let Some(signal) = status.signal() else {
        return format!("ended with {status}");
    };
    let name = match signal {
        libc::SIGSEGV => "SIGSEGV, a wild address",
        libc::SIGABRT => "SIGABRT, an abort (a failed assertion, a double free, an exception)",
        libc::SIGBUS => "SIGBUS",
        libc::SIGILL => "SIGILL, an instruction that this machine does not have",
        libc::SIGFPE => "SIGFPE, an integer division by zero",
        libc::SIGKILL => "SIGKILL (out of memory?)",
        libc::SIGTRAP => "SIGTRAP",
        _ => "a signal",
    };
    format!("was ended by signal {signal}: {name}")
}

#[cfg(not(unix))]
pub fn ending(status: ExitStatus) -> String {
    format!("ended with {status}")
}

/// Reads a child's lines.
fn read(group: &str, text: &str, findings: &mut Findings) -> Progress {
    let mut progress = Progress::default();
    for line in text.lines() {
        // Skip lines that a crash has truncated, because they are not valid JSON.
        let Ok(value) = serde_json::from_str::<Value>(line) else { continue };
        let field = |name: &str| value[name].as_str().unwrap_or_default();
        if let Some(name) = value["begin"].as_str() {
            progress.running = Some(name.to_owned());
            progress.call = None;
        } else if let Some(call) = value["call"].as_str() {
            progress.call = Some(call.to_owned());
        } else if let Some(name) = value["end"].as_str() {
            findings.add(group, name, field("result"), field("text"));
            progress.running = None;
            progress.last = Some(name.to_owned());
        } else if let Some(name) = value["left out"].as_str() {
            findings.left_out.push(name.to_owned());
        } else if let Some(key) = value["fact"].as_str() {
            findings.properties.push((key.to_owned(), value["value"].clone()));
        } else if value["cell"].is_string() {
            findings.cells.push(value);
        } else if value["done"].is_boolean() {
            progress.done = true;
        }
    }
    progress
}
