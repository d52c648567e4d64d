//! The command line.

use crate::plugin::Source;
use std::path::PathBuf;
use std::time::Duration;

/// A level of conformance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grade {
    /// Functions right; the float32 core native.
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

/// A process that is one of several, which the kit starts for collectives.
#[derive(Clone, Debug)]
pub struct Rank {
    pub rank: u32,
    pub size: u32,
    /// A folder where the ranks leave each other files.
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
    pub grade: Grade,
    pub device: u32,
    pub full: bool,
    pub large: bool,
    pub verbose: bool,
    pub limit: Duration,
    /// Groups at a time.
    pub jobs: Option<usize>,
    /// A child's: the group to run, where to write, which check to go on after.
    pub child: Option<(String, PathBuf)>,
    pub after: Option<String>,
    pub rank: Option<Rank>,
}

pub const HELP: &str = "\
usage: ultramarine-conform [OPTIONS] PLUGIN
       ultramarine-conform [OPTIONS] --builtin

Checks from a backend's binary alone that it keeps the contract, and reports what it can do.

  --builtin         the CPU backend that is linked into this program
  --grade GRADE     basic (default) or complete: what the exit status demands
  --group NAME      only this group; can be given several times. 'ops' is all groups of ops
  --check TEXT      only checks whose name contains TEXT
  --device INDEX    the backend's device to test (default 0)
  --full            every combination of op, dtype and layout instead of a sample
  --large           also tensors of more than 2^31 elements
  --json FILE       write everything that was found to FILE
  --time-limit S    seconds that a group may take (default 120)
  --jobs N          groups that run at once (default: as many as cores, 4 at most)
  --verbose         list what passed, and every op in the capability sheet
  --list            list the groups

Exit status: 0 the backend conforms at the demanded grade, 1 it does not, 2 wrong usage.
";

/// The reason to stop without options.
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
        grade: Grade::Basic,
        device: 0,
        full: false,
        large: false,
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
            Long("verbose") | Short('v') => options.verbose = true,
            Long("jobs") => options.jobs = Some(parser.value()?.parse()?),
            Long("time-limit") => {
                options.limit = Duration::from_secs(parser.value()?.parse::<u32>()?.into());
            }
            Long("grade") => {
                options.grade = match parser.value()?.string()?.as_str() {
                    "basic" => Grade::Basic,
                    "complete" => Grade::Complete,
                    other => return Err(Stop::Wrong(format!("no grade {other:?}"))),
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
