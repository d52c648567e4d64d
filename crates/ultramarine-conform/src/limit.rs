//! The time limit of a child process. Seconds on the clock say little on a loaded machine, so a child that works is given the
//! limit in processor time. It works if it runs, waits for its turn to run, or ends checks.

use std::path::Path;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

/// The end of a child process.
#[derive(Clone, Copy, Debug)]
pub enum End {
    Exit(ExitStatus),
    /// Killed: it did not work any more.
    Hang,
    /// Killed: it was still working.
    Slow,
}

/// Times the limit on the clock after which a child is killed, whatever it does.
const MOST: u32 = 20;
/// A working child's part of a processor at least, or of the time that its threads wait for one.
const WORKING: f64 = 0.02;

/// Waits for a child that writes to `output` when it ends a check. It is killed if it has used the limit on the clock, and either
/// has not worked lately or has used the limit in processor time.
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
                // It cannot be told apart here.
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
    // The name of the program may hold anything, and ends with the last parenthesis.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<u64>().ok();
    let ticks = ticks()? + ticks()?;
    // SAFETY: no preconditions.
    let rate =
        u64::try_from(unsafe { libc::sysconf(libc::_SC_CLK_TCK) }).ok().filter(|r| *r > 0)?;
    Some(Duration::from_millis(ticks * 1000 / rate))
}

/// Time for which the threads of a process were ready to run and others ran.
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
