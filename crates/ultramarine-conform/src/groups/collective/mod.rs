//! Collectives among processes. The kit starts itself once for each device, for up to three
//! devices, and each of these processes is a rank. With one device there is one rank, and cases
//! that need two are skipped.

mod cases;
mod rank;

use super::with_device;
use crate::device::Device;
use crate::options::{Options, Rank};
use crate::plugin::Source;
use crate::record::{PASSED, Recorder, Result, skip};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use ultramarine_abi::interface::collective::{self, CollectiveInterface};

/// Most ranks.
const MOST_RANKS: u32 = 3;

/// Time that the ranks get in all.
const LIMIT: Duration = Duration::from_secs(100);

pub fn run(recorder: &mut Recorder, options: &Options, _source: &Source) {
    with_device(recorder, options, "collective", |recorder, device| {
        let mut outcome = None;
        for name in cases::NAMES {
            recorder.check(&format!("collective/{name}"), || {
                match outcome.get_or_insert_with(|| all_ranks(options, device)) {
                    Ok(Ranks::Ran(ranks)) => of_ranks(ranks, name),
                    Ok(Ranks::Not(why)) => skip(why.clone()),
                    Err(why) => Err(why.clone()),
                }
            });
        }
    });
}

/// A rank as a process: the entry of the program.
pub fn run_rank(options: &Options, rank: &Rank) -> Result<(), String> {
    rank::run(options, rank)
}

/// The outcome of each rank: its cases, and how it ended.
struct Ended {
    cases: BTreeMap<String, String>,
    ending: String,
}

/// The ranks of a run.
enum Ranks {
    Ran(Vec<Ended>),
    /// The backend has no such interface, or no library for it here.
    Not(String),
}

/// Text of a case that passed, and the beginning of that of one that does not apply.
const PASS: &str = "pass";
const SKIP: &str = "skip: ";

/// The result of a case over the ranks.
fn of_ranks(ranks: &[Ended], name: &str) -> Result {
    for (rank, ended) in ranks.iter().enumerate() {
        match ended.cases.get(name).map(String::as_str) {
            Some(PASS) => {}
            Some(text) => match text.strip_prefix(SKIP) {
                Some(why) => return skip(why),
                None => return Err(format!("rank {rank} of {}: {text}", ranks.len())),
            },
            None => {
                let (of, ending) = (ranks.len(), &ended.ending);
                return Err(format!("rank {rank} of {of} did not get there: it {ending}"));
            }
        }
    }
    PASSED
}

/// Runs all ranks.
fn all_ranks(options: &Options, device: &Device<'_>) -> Result<Ranks, String> {
    // SAFETY: the id's own struct.
    let found = unsafe { device.interface::<CollectiveInterface>(collective::INTERFACE) };
    let Some(interface) = found else { return Ok(Ranks::Not("not offered".into())) };
    if let Some(why) = rank::lacks_library(device, &interface)? {
        return Ok(Ranks::Not(why));
    }
    // SAFETY: the backend's own pointer.
    let count =
        device.backend.table.device_count.map_or(1, |f| unsafe { f(device.backend.table.backend) });
    let size = count.saturating_sub(device.index).clamp(1, MOST_RANKS);
    let directory = std::env::temp_dir().join(format!("ultramarine-ranks-{}", std::process::id()));
    std::fs::create_dir_all(&directory).map_err(|e| format!("{}: {e}", directory.display()))?;
    let ranks = run_ranks(options, device.index, size, &directory);
    // A file that cannot be removed stays among the temporary ones.
    let _ = std::fs::remove_dir_all(&directory);
    ranks.map(Ranks::Ran)
}

fn run_ranks(
    options: &Options,
    device: u32,
    size: u32,
    directory: &Path,
) -> Result<Vec<Ended>, String> {
    let output = |rank: u32| -> PathBuf { directory.join(format!("rank{rank}")) };
    let mut children = Vec::new();
    for rank in 0..size {
        let me = std::env::current_exe().map_err(|e| format!("cannot find this program: {e}"))?;
        let mut command = Command::new(me);
        command.arg("--rank").arg(format!("{rank}/{size}")).arg("--meeting").arg(directory);
        command.arg("--child-output").arg(output(rank));
        command.arg("--device").arg((device + rank).to_string());
        match &options.source {
            Source::Builtin => command.arg("--builtin"),
            Source::File(path) => command.arg("--").arg(path),
        };
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let child = command.spawn().map_err(|e| format!("cannot start a rank: {e}"))?;
        children.push(child);
    }
    let until = Instant::now() + LIMIT;
    let mut ended = Vec::new();
    for (rank, mut child) in (0..).zip(children) {
        let ending = ending(&mut child, until);
        let text = std::fs::read_to_string(output(rank)).unwrap_or_default();
        let cases = text.lines().filter_map(|line| line.split_once('\t'));
        let cases = cases.map(|(name, text)| (name.to_owned(), text.to_owned())).collect();
        ended.push(Ended { cases, ending });
    }
    Ok(ended)
}

/// Waits for a rank, and says how it ended.
fn ending(child: &mut Child, until: Instant) -> String {
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return format!("ended with {status}"),
            Ok(None) if Instant::now() < until => std::thread::sleep(Duration::from_millis(10)),
            Ok(None) => {
                let _ = child.kill();
                let _ = child.wait();
                return format!("was ended after {} s", LIMIT.as_secs());
            }
            Err(why) => return format!("could not be waited for: {why}"),
        }
    }
}
