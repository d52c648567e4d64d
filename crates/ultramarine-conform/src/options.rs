//! The command line.

use crate::plugin::Source;
use std::path::PathBuf;
use std::time::Duration;

/// A grade: how much a backend computes itself. For every grade the backend has to keep the
/// contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grade {
    /// All offered functions are correct, and the float32 core is native.
    Basic,
    /// All families native for every dtype in the device's arithmetic mask.
    Complete,
}

impl Grade {
    pub fn name(self) -> &'static str {
        match self {
            Grade::Basic => "basic",
            Grade::Complete => "complete",
        }
    }
}

/// One of several processes that the kit starts for collectives.
#[derive(Clone, Debug)]
pub struct Rank {
    pub rank: u32,
    pub size: u32,
    /// A directory through which the ranks exchange files.
    pub meeting: PathBuf,
    /// Where to write.
    pub output: PathBuf,
}

/// The options of a run.
#[derive(Clone, Debug)]
pub struct Options {
    pub source: Source,
    pub json: Option<PathBuf>,
    /// Groups to run; all if empty. A prefix stands for all groups that begin with it.
    pub groups: Vec<String>,
    pub check: Option<String>,
    /// The grade that the exit status requires in addition to the contract, if any.
    pub grade: Option<Grade>,
    pub device: u32,
    pub full: bool,
    pub large: bool,
    /// True for measurements instead of checks.
    pub bench: bool,
    pub verbose: bool,
    pub limit: Duration,
    /// The most groups that run at the same time.
    pub jobs: Option<usize>,
    /// For a child: the group to run, the file to write to, and the check after which to continue.
    pub child: Option<(String, PathBuf)>,
    pub after: Option<String>,
    pub rank: Option<Rank>,
}

impl Options {
    /// True if only a part of the kit is run, which has no grade.
    pub fn is_part(&self) -> bool {
        !self.groups.is_empty() || self.check.is_some()
    }
}

pub const HELP: &str = "\
usage: ultramarine-conform [OPTIONS] PLUGIN
       ultramarine-conform [OPTIONS] --builtin

Checks from a backend's binary alone that it keeps the contract, and reports what it can do.

  --builtin         the CPU backend that is linked into this program
  --grade GRADE     none (default), basic or complete: the operations that the exit status demands
  --group NAME      only this group; can be given several times. 'ops' is all groups of ops
  --check TEXT      only checks whose name contains TEXT
  --device INDEX    the backend's device to test (default 0)
  --full            every combination of op, dtype and layout instead of a sample
  --large           also tensors of more than 2^31 elements
  --bench           figures instead of checks: launch cost and bandwidth, beside the built-in CPU backend's
  --json FILE       write everything that was found to FILE
  --time-limit S    seconds that a group may take (default 120); of processor time while it works
  --jobs N          groups that run at once (default: as many as cores, 4 at most)
  --verbose         list what passed, and every op in the capability sheet
  --list            list the groups

Exit status: 0 the backend keeps the contract and has the demanded grade, 1 it breaks the contract, 2 wrong
usage, 3 it says that it cannot run here (score 0), 4 it keeps the contract below the demanded grade, 5 a group
took longer than the time limit, and no check failed.
";

/// The reason to stop before anything runs.
pub enum Stop {
    Help,
    List,
    Wrong(String),
}

impl From<lexopt::Error> for Stop {
    fn from(error: lexopt::Error) -> Self {
        Stop::Wrong(error.to_string())
    }
}

/// Reads the command line.
pub fn parse() -> Result<Options, Stop> {
    use lexopt::prelude::*;
    let mut source = None;
    let mut options = Options {
        source: Source::Builtin,
        json: None,
        groups: Vec::new(),
        check: None,
        grade: None,
        device: 0,
        full: false,
        large: false,
        bench: false,
        verbose: false,
        limit: Duration::from_secs(120),
        jobs: None,
        child: None,
        after: None,
        rank: None,
    };
    let (mut child, mut output, mut rank, mut meeting) = (None, None, None, None);
    let mut parser = lexopt::Parser::from_env();
    while let Some(arg) = parser.next()? {
        match arg {
            Long("builtin") => source = Some(Source::Builtin),
            Long("json") => options.json = Some(parser.value()?.into()),
            Long("group") => options.groups.push(parser.value()?.string()?),
            Long("check") => options.check = Some(parser.value()?.string()?),
            Long("device") => options.device = parser.value()?.parse()?,
            Long("full") => options.full = true,
            Long("large") => options.large = true,
            Long("bench") => options.bench = true,
            Long("verbose") | Short('v') => options.verbose = true,
            Long("jobs") => options.jobs = Some(parser.value()?.parse()?),
            Long("time-limit") => {
                options.limit = Duration::from_secs(parser.value()?.parse::<u32>()?.into());
            }
            Long("grade") => {
                options.grade = match parser.value()?.string()?.as_str() {
                    "none" => None,
                    "basic" => Some(Grade::Basic),
                    "complete" => Some(Grade::Complete),
                    other => {
                        let known = "none, basic and complete";
                        return Err(Stop::Wrong(format!("no grade {other:?}: there are {known}")));
                    }
                };
            }
            // A group's child process; internal.
            Long("child") => child = Some(parser.value()?.string()?),
            Long("child-output") => output = Some(PathBuf::from(parser.value()?)),
            Long("child-after") => options.after = Some(parser.value()?.string()?),
            // A rank of collectives; internal.
            Long("rank") => rank = Some(parser.value()?.string()?),
            Long("meeting") => meeting = Some(PathBuf::from(parser.value()?)),
            Long("list") => return Err(Stop::List),
            Long("help") | Short('h') => return Err(Stop::Help),
            Value(path) if source.is_none() => source = Some(Source::File(path.into())),
            other => return Err(other.unexpected().into()),
        }
    }
    options.source =
        source.ok_or_else(|| Stop::Wrong("a plugin, or --builtin, is missing".into()))?;
    let place = rank.as_deref().and_then(|r| r.split_once('/'));
    let place = place.and_then(|(rank, size)| rank.parse().ok().zip(size.parse().ok()));
    if let (Some((rank, size)), Some(meeting), Some(output)) = (place, meeting, &output) {
        options.rank = Some(Rank { rank, size, meeting, output: output.clone() });
    }
    options.child = child.zip(output);
    Ok(options)
}
