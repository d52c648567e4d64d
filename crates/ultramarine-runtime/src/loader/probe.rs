//! Trying candidates in child processes, so that a candidate that crashes or hangs does no harm to
//! this process.
//!
//! The child is a new process that calls [`probe_here`], because a fork of a process with threads
//! could execute very little. The child reports each stage before the stage begins, and its verdict
//! at the end. It writes them on lines of its standard output that begin with [`MARK`]; other
//! output of a plugin is ignored.

use super::reason::{Code, Reason};
use super::report::{self, Outcome, Stage};
use super::search::{elevated, own_file};
use super::{probe_cache, state};
use serde_json::Value;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

const MARK: &str = "ultramarine-probe: ";
/// The most children at one time.
const AT_ONCE: usize = 8;

/// True if this process is a child that reports its progress.
static CHILD: AtomicBool = AtomicBool::new(false);

/// Sets the command that tries a file in a child process: a program and its first arguments, to
/// which the file's path is appended. `None` means `ultramarine-probe`: the path in
/// `ULTRAMARINE_PROBE`, or the program beside the library (or beside the program that the library
/// is linked into).
pub fn set_probe_command(command: Option<Vec<OsString>>) {
    state::lock().probe_command = command.filter(|c| !c.is_empty());
}

/// Sets the time that one child process may take. The default is ten seconds.
pub fn set_probe_timeout(limit: Duration) {
    state::lock().probe_timeout = limit;
}

/// Returns true if the environment requests probes.
pub(super) fn is_requested() -> bool {
    std::env::var_os("ULTRAMARINE_BACKEND_PROBE").is_some_and(|v| v == "1")
}

/// Called in the child: loads a file, reports the verdict, and ends the process at once, so that
/// none of the plugin's exit handlers run.
pub fn probe_here(path: &Path) {
    CHILD.store(true, Ordering::Relaxed);
    #[cfg(unix)]
    // SAFETY: a valid limit. A crash is possible here, and must not leave a core file.
    unsafe {
        libc::setrlimit(libc::RLIMIT_CORE, &libc::rlimit { rlim_cur: 0, rlim_max: 0 })
    };
    let _ = super::load(path);
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let candidate = report::report().candidates.into_iter().find(|c| c.path == path);
    if let Some(candidate) = candidate {
        write_line(&report::candidate(&candidate).to_string());
    }
    #[cfg(unix)]
    // SAFETY: no preconditions.
    unsafe {
        libc::_exit(0)
    };
    #[cfg(not(unix))]
    std::process::exit(0);
}

/// In a child process, reports the next stage to the parent.
pub(super) fn progress(stage: Stage) {
    if CHILD.load(Ordering::Relaxed) {
        write_line(stage.name());
    }
}

fn write_line(line: &str) {
    let mut out = std::io::stdout().lock();
    // Ignore failed writes, because the parent may have ended.
    let _ = writeln!(out, "{MARK}{line}").and_then(|()| out.flush());
}

/// The result of a probe.
pub(super) struct Verdict {
    pub milliseconds: f64,
    /// The stage at which the candidate was left out, and the reason.
    pub result: Result<(), (Stage, Reason)>,
}

/// Probes files, several at a time. Each file is given by the path under which it was found and its
/// resolved path.
pub(super) fn run_all(files: &[(PathBuf, PathBuf)]) -> Vec<Verdict> {
    let command = match command() {
        Ok(command) => command,
        Err(reason) => {
            let failed =
                || Verdict { milliseconds: 0.0, result: Err((Stage::Probe, reason.clone())) };
            return files.iter().map(|_| failed()).collect();
        }
    };
    let limit = state::lock().probe_timeout;
    let cache = Mutex::new(probe_cache::ProbeCache::open());
    let verdicts: Vec<OnceLock<Verdict>> = files.iter().map(|_| OnceLock::new()).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(((path, real), place)) = {
            let i = next.fetch_add(1, Ordering::Relaxed);
            files.get(i).zip(verdicts.get(i))
        } {
            let start = Instant::now();
            let result = probe_file(&command, path, real, limit, &cache);
            let milliseconds = start.elapsed().as_secs_f64() * 1e3;
            let _ = place.set(Verdict { milliseconds, result });
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..files.len().min(AT_ONCE) {
            // If a thread cannot be started, the other threads do its work.
            let _ = std::thread::Builder::new().spawn_scoped(scope, work);
        }
        work();
    });
    cache.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner).save();
    let unprobed = || {
        let reason = Reason::new(Code::ProbeFailed, "the child process did not report on it");
        Verdict { milliseconds: 0.0, result: Err((Stage::Probe, reason)) }
    };
    verdicts.into_iter().map(|v| v.into_inner().unwrap_or_else(unprobed)).collect()
}

fn probe_file(
    command: &[OsString],
    path: &Path,
    real: &Path,
    limit: Duration,
    cache: &Mutex<probe_cache::ProbeCache>,
) -> Result<(), (Stage, Reason)> {
    let key = probe_cache::key(path, real);
    if let Some(known) = key.as_ref().and_then(|key| crate::sync::lock(cache).get(key)) {
        return known.map_err(|reason| (Stage::Probe, reason));
    }
    let result = run_child(command, path, limit);
    // Only verdicts about the file itself are cached, because the machine's devices may change.
    let own = match &result {
        Ok(()) => Some(None),
        Err((_, r)) if matches!(r.code, Code::ProbeCrashed | Code::ProbeHung) => Some(Some(r)),
        Err(_) => None,
    };
    if let Some((key, verdict)) = key.zip(own) {
        crate::sync::lock(cache).put(key, verdict);
    }
    result
}

/// Runs a child for a file.
fn run_child(command: &[OsString], path: &Path, limit: Duration) -> Result<(), (Stage, Reason)> {
    let failed = |text: String| (Stage::Probe, Reason::new(Code::ProbeFailed, text));
    let (program, arguments) =
        command.split_first().ok_or_else(|| failed("the probe's command is empty".to_owned()))?;
    let mut child = Command::new(program);
    child
        .args(arguments)
        .arg(path)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    child.env("ULTRAMARINE_BACKEND_AUTOLOAD", "0").env("ULTRAMARINE_BACKEND_PROBE", "0");
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut child, 0);
    let child = child.spawn().map_err(|e| {
        failed(format!("the probe {} does not start: {e}", program.to_string_lossy()))
    })?;
    let mut child = Guard(child, false);
    let deadline = Instant::now() + limit;
    let Some(out) = child.0.stdout.take() else {
        return Err(failed("the probe has no output".into()));
    };
    let (sender, lines) = channel();
    let reader = std::thread::Builder::new().spawn(move || {
        for line in BufReader::new(out).split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line).into_owned();
            if let Some(at) = line.find(MARK)
                && sender.send(line[at + MARK.len()..].to_owned()).is_err()
            {
                break;
            }
        }
    });
    if let Err(error) = reader {
        return Err(failed(format!(
            "cannot start a thread that reads the probe's answer: {error}"
        )));
    }
    let mut stage = Stage::File;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        match lines.recv_timeout(left) {
            Ok(line) => match Stage::named(line.trim()) {
                Some(next) => stage = next,
                None => return answer(&line).map_err(|e| e.unwrap_or_else(|| failed(line))),
            },
            Err(RecvTimeoutError::Timeout) => return Err(hung(stage, limit)),
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    // The child closed its output without an answer, most likely because it has ended.
    match child.end(deadline) {
        Some(status) => Err(crashed(stage, status)),
        None => Err(hung(stage, limit)),
    }
}

/// Parses the child's verdict. `Err(None)` means that the line is not a verdict.
fn answer(line: &str) -> Result<(), Option<(Stage, Reason)>> {
    let reported: Value = serde_json::from_str(line).map_err(|_| None)?;
    if reported["outcome"] == Outcome::Loaded.name() {
        return Ok(());
    }
    let text = |key: &str| reported["reason"][key].as_str().map(str::to_owned);
    let stage = reported["stage"].as_str().and_then(Stage::named).ok_or(None)?;
    let code = text("code").and_then(|c| Code::named(&c)).ok_or(None)?;
    let reason = Reason::new(code, text("text").ok_or(None)?);
    Err(Some((stage, reason.with_remedy(text("remedy").ok_or(None)?))))
}

fn hung(stage: Stage, limit: Duration) -> (Stage, Reason) {
    let text = format!(
        "it did not finish in a child process within {} s, at the stage {}",
        limit.as_secs_f64(),
        stage.name()
    );
    (Stage::Probe, Reason::new(Code::ProbeHung, text))
}

fn crashed(stage: Stage, status: ExitStatus) -> (Stage, Reason) {
    #[cfg(unix)]
    let signal = std::os::unix::process::ExitStatusExt::signal(&status);
    #[cfg(not(unix))]
    let signal: Option<i32> = None;
    let how = match (signal, status.code()) {
        (Some(signal), _) => format!("it was ended by signal {signal}{}", name_of(signal)),
        (None, code) => format!("it ended the process (exit status {})", code.unwrap_or(-1)),
    };
    let text = format!("in a child process {how}, at the stage {}", stage.name());
    let reason = Reason::new(Code::ProbeCrashed, text);
    let reason = match stage {
        // No function of the contract was called yet.
        Stage::Open => reason.with_remedy(
            "look at its constructors and static objects, which run when the library is opened, or report it to its authors",
        ),
        _ => reason,
    };
    (Stage::Probe, reason)
}

fn name_of(signal: i32) -> &'static str {
    #[cfg(unix)]
    {
        let names = [
            (libc::SIGSEGV, " (SIGSEGV)"),
            (libc::SIGABRT, " (SIGABRT)"),
            (libc::SIGILL, " (SIGILL)"),
            (libc::SIGBUS, " (SIGBUS)"),
            (libc::SIGFPE, " (SIGFPE)"),
            (libc::SIGTRAP, " (SIGTRAP)"),
            (libc::SIGKILL, " (SIGKILL)"),
        ];
        names.iter().find(|(s, _)| *s == signal).map_or("", |(_, name)| name)
    }
    #[cfg(not(unix))]
    {
        let _ = signal;
        ""
    }
}

/// A child, and if it has ended. Dropping this kills the child and its own children.
struct Guard(Child, bool);

impl Guard {
    /// Waits for the end of the child.
    fn end(&mut self, deadline: Instant) -> Option<ExitStatus> {
        let mut pause = Duration::from_micros(200);
        loop {
            if let Ok(Some(status)) = self.0.try_wait() {
                self.1 = true;
                return Some(status);
            }
            if Instant::now() >= deadline {
                return None;
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(20));
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if self.1 {
            return;
        }
        #[cfg(unix)]
        // SAFETY: the child has not been waited for, so its process group cannot belong to another
        // process.
        unsafe {
            libc::kill(-(self.0.id() as i32), libc::SIGKILL)
        };
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns the command that tries files.
fn command() -> Result<Vec<OsString>, Reason> {
    if let Some(set) = state::lock().probe_command.clone() {
        return Ok(set);
    }
    if let Some(program) = std::env::var_os("ULTRAMARINE_PROBE").filter(|_| !elevated()) {
        return Ok(vec![program]);
    }
    let program = format!("ultramarine-probe{}", std::env::consts::EXE_SUFFIX);
    let own = own_file().unwrap_or_default();
    let beside = own.parent().unwrap_or(Path::new("/"));
    // Cargo puts tests into `deps`, one directory below the programs.
    let above = beside.parent().filter(|_| beside.ends_with("deps"));
    [Some(beside), above]
        .into_iter()
        .flatten()
        .map(|directory| directory.join(&program))
        .find(|path| path.is_file())
        .map(|path| vec![path.into_os_string()])
        .ok_or_else(|| {
            let text = format!("there is no {program} in {}", beside.display());
            Reason::new(Code::ProbeFailed, text)
        })
}
