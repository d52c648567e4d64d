//! The time limit of a child process. Wall-clock time means little on a busy machine, so a child
//! that makes progress may use the limit as processor time. A child makes progress if it runs, is
//! ready to run, or completes checks.

use std::path::Path;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

/// The end of a child process.
#[derive(Clone, Copy, Debug)]
pub enum End {
    Exit(ExitStatus),
    /// The child was killed because it made no progress.
    Hang,
    /// The child was killed although it still made progress.
    Slow,
}

/// A child is killed after this multiple of the limit in wall-clock time, even if it makes
/// progress.
const MOST: u32 = 20;
/// The smallest share of a processor that a child with progress uses, or for which its threads are
/// ready to run.
const WORKING: f64 = 0.02;

/// Waits for a child that writes to `output` when it completes a check. The child is killed once it
/// has used the limit in wall-clock time, and either makes no progress or has used the limit in
/// processor time.
pub fn wait(child: &mut Child, limit: Duration, output: &Path) -> Result<End, String> {
    let start = Instant::now();
    let window = (limit / 8).clamp(Duration::from_millis(500), Duration::from_secs(10));
    let mut since = start;
    let (mut work_before, mut written_before) = (Duration::ZERO, 0);
    let mut works = true;
    let mut pause = Duration::from_millis(1);
    loop {
        match child.try_wait() {
            Err(e) => return Err(format!("cannot wait for a child process: {e}")),
            Ok(Some(status)) => return Ok(End::Exit(status)),
            Ok(None) => {}
        }
        let used = processor_time(child.id());
        if since.elapsed() >= window {
            let work = used.unwrap_or_default() + waiting_time(child.id());
            let part = work.saturating_sub(work_before).as_secs_f64() / window.as_secs_f64();
            let written = std::fs::metadata(output).map_or(0, |file| file.len());
            works = part > WORKING || written > written_before;
            (since, work_before, written_before) = (Instant::now(), work, written);
        }
        if start.elapsed() > limit {
            let end = match used {
                // On this system, the two cases cannot be distinguished.
                None => Some(End::Slow),
                Some(_) if !works => Some(End::Hang),
                Some(used) if used > limit || start.elapsed() > limit * MOST => Some(End::Slow),
                Some(_) => None,
            };
            if let Some(end) = end {
                let _ = child.kill();
                let _ = child.wait();
                return Ok(end);
            }
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

/// Processor time that a process has used, where the system says it.
#[cfg(target_os = "linux")]
fn processor_time(id: u32) -> Option<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The program's name may contain anything; it ends with the last parenthesis.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<u64>().ok();
    let ticks = ticks()? + ticks()?;
    // SAFETY: no preconditions.
    let rate =
        u64::try_from(unsafe { libc::sysconf(libc::_SC_CLK_TCK) }).ok().filter(|r| *r > 0)?;
    Some(Duration::from_millis(ticks * 1000 / rate))
}

/// Returns the time for which threads of a process were ready to run while others ran.
#[cfg(target_os = "linux")]
fn waiting_time(id: u32) -> Duration {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{id}/task")) else { return Duration::ZERO };
    let of_thread = |thread: std::fs::DirEntry| -> Option<u64> {
        // Nanoseconds on a processor, and nanoseconds of waiting for one.
        let stat = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
        stat.split_whitespace().nth(1)?.parse().ok()
    };
    Duration::from_nanos(threads.flatten().filter_map(of_thread).sum())
}

#[cfg(not(target_os = "linux"))]
fn waiting_time(_: u32) -> Duration {
    Duration::ZERO
}

#[cfg(not(target_os = "linux"))]
fn processor_time(_: u32) -> Option<Duration> {
    None
}
