//! The stages of a load, in their order, from files to registered backends.

use super::abi_compatibility::{self, BackendProperties, DeviceProperties};
use super::library::{self, Plugin};
use super::reason::{Code, Reason};
use super::report::{Candidate, Directory, Outcome, Stage};
use super::search::{self, FileName, Rule};
use super::state::FileId;
use super::{Filter, LoadOptions, binary_header, file_permissions, probe, state};
use crate::backend::registration::Registration;
use crate::backend::registry::{self, BackendInfo};
use crate::backend::start::{self, StartError};
use crate::device::DeviceType;
use crate::error::{Error, Result};
use crate::host_table::MUTE;
use glob::Pattern;
use std::path::{Path, PathBuf};
use std::time::Instant;
use ultramarine_abi::negotiate::Host;
use ultramarine_abi::{BackendAbiInfo, DeviceIdentity};

/// A backend that can run on this machine and is not initialised yet. A [`Filter`](super::Filter)
/// gets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Its file.
    pub path: PathBuf,
    /// The properties that it declares.
    pub properties: BackendProperties,
    /// Its score.
    pub score: u32,
    /// CPU or GPU.
    pub device_type: DeviceType,
    /// The devices that its score function reported. May be empty.
    pub devices: Vec<DeviceProperties>,
}

/// A file that the loader has to examine.
pub(super) struct Found {
    pub path: PathBuf,
    pub rule: Rule,
}

/// The validated options of a load.
#[derive(Default)]
pub(super) struct Wanted<'a> {
    allowed: Option<Vec<Pattern>>,
    blocked: Vec<Pattern>,
    filter: Option<&'a Filter<'a>>,
    duplicates: bool,
    probe: bool,
}

impl<'a> Wanted<'a> {
    pub fn new(options: &LoadOptions<'a>) -> Result<Wanted<'a>> {
        let patterns = |globs: &[&str]| {
            let pattern = |glob: &&str| {
                Pattern::new(glob).map_err(|e| {
                    Error::Value(format!("[load_all] {glob:?} is not a glob: {}. Write patterns such as \"name*\".", e.msg).into())
                })
            };
            globs.iter().map(pattern).collect::<Result<Vec<_>>>()
        };
        Ok(Wanted {
            allowed: options.allowed.map(patterns).transpose()?,
            blocked: patterns(options.blocked)?,
            filter: options.filter,
            duplicates: options.duplicates,
            probe: options.probe.unwrap_or_else(probe::is_requested),
        })
    }

    /// Returns the options that load everything the environment allows.
    pub fn all() -> Wanted<'a> {
        Wanted { probe: probe::is_requested(), ..Wanted::default() }
    }

    fn check_globs(&self, file: &FileName) -> Result<(), Reason> {
        let full = file.full();
        let matching = |globs: &[Pattern]| {
            globs.iter().find(|g| g.matches(&file.name) || g.matches(&full)).map(Pattern::to_string)
        };
        if let Some(glob) = matching(&self.blocked) {
            return Err(Reason::new(
                Code::Blocked,
                format!("the pattern {glob:?} in `blocked` matches {full}"),
            ));
        }
        match &self.allowed {
            Some(allowed) if matching(allowed).is_none() => {
                let text = format!("no pattern in `allowed` matches {full}");
                Err(Reason::new(Code::NotAllowed, text))
            }
            _ => Ok(()),
        }
    }
}

/// Returns the candidates in the search directories. If `name` is given, only the candidates with
/// that name.
pub(super) fn found(name: Option<&str>) -> Vec<Found> {
    let mut all = Vec::new();
    let mut directories: Vec<Directory> = Vec::new();
    for place in search::search_paths() {
        if directories.iter().any(|d| d.path == place.path) {
            continue;
        }
        let files = search::files(&place.path);
        directories.push(Directory {
            path: place.path.clone(),
            rule: place.rule.clone(),
            found: files.as_ref().map(Vec::len).map_err(ToString::to_string),
        });
        let wanted = |path: &PathBuf| match name {
            None => true,
            Some(name) => matches!(FileName::of(path), Some(Ok(file)) if file.name == name),
        };
        let files = files.unwrap_or_default().into_iter().filter(wanted);
        all.extend(files.map(|path| Found { path, rule: place.rule.clone() }));
    }
    let mut state = state::lock();
    for directory in directories {
        match state.directories.iter_mut().find(|d| d.path == directory.path) {
            Some(before) => *before = directory,
            None => state.directories.push(directory),
        }
    }
    all
}

/// Returns the backend that was loaded from a file, even if the file was loaded under another name.
pub(super) fn loaded_file(path: &Path) -> Option<BackendInfo> {
    let id = file_permissions::validate(path, true).ok()?.id;
    let name = state::lock().loaded.iter().find(|(i, _)| *i == id)?.1.clone();
    registry::loaded(&name)
}

/// A candidate during the load.
struct LoadAttempt {
    record: Candidate,
    id: Option<FileId>,
    /// Set once the candidate has passed the validation that runs none of its code.
    checked: Option<Checked>,
    /// The open plugin, once it is validated and scored.
    plugin: Option<(Plugin, BackendAbiInfo)>,
    identities: Vec<DeviceIdentity>,
}

struct Checked {
    name: FileName,
    real: PathBuf,
    note: Option<BackendAbiInfo>,
}

/// Runs a stage of an attempt and adds up its time.
fn stage<T>(
    attempt: &mut LoadAttempt,
    stage: Stage,
    f: impl FnOnce(&mut LoadAttempt) -> Result<T, Reason>,
) -> Option<T> {
    probe::progress(stage);
    let start = Instant::now();
    attempt.record.stage = stage;
    let result = f(attempt);
    attempt.record.milliseconds += start.elapsed().as_secs_f64() * 1e3;
    match result {
        Ok(value) => Some(value),
        Err(reason) => {
            attempt.record.leave_out(reason);
            None
        }
    }
}

/// Validates, probes and scores all candidates, and loads the best of each name. Returns the loaded backends.
pub(super) fn run(
    registration: &Registration,
    found: Vec<Found>,
    wanted: &Wanted<'_>,
) -> Vec<BackendInfo> {
    let host = library::host();
    let mut attempts: Vec<LoadAttempt> = found.into_iter().map(LoadAttempt::new).collect();
    let mut seen: Vec<(FileId, PathBuf)> = Vec::new();
    for attempt in &mut attempts {
        attempt.checked = validate_file(attempt, wanted, &host, &mut seen);
    }
    if wanted.probe {
        probe_all(&mut attempts);
    }
    for attempt in &mut attempts {
        if let Some(checked) = attempt.checked.take() {
            attempt.plugin = open_and_score(attempt, checked, &host);
        }
    }
    for attempt in attempts.iter_mut().filter(|a| a.plugin.is_some()) {
        if let Some(filter) = wanted.filter {
            stage(attempt, Stage::Callback, |attempt| apply_filter(attempt, filter));
        }
        if attempt.record.reason.is_some() {
            attempt.plugin = None;
        }
    }
    let loaded = start_best(registration, &mut attempts, wanted);
    for attempt in attempts {
        attempt.record.log();
        attempt.record.record();
    }
    loaded
}

impl LoadAttempt {
    fn new(found: Found) -> LoadAttempt {
        let record = Candidate {
            path: found.path,
            name: String::new(),
            variant: String::new(),
            rule: found.rule,
            stage: Stage::File,
            outcome: Outcome::Skipped,
            reason: None,
            properties: None,
            score: None,
            found_devices: Vec::new(),
            winner: false,
            devices: Vec::new(),
            milliseconds: 0.0,
        };
        LoadAttempt { record, id: None, checked: None, plugin: None, identities: Vec::new() }
    }
}

/// Runs the stages that execute none of the candidate's code: name, permissions, header and
/// filters. Returns `None` if the candidate was left out.
fn validate_file(
    attempt: &mut LoadAttempt,
    wanted: &Wanted<'_>,
    host: &Host,
    seen: &mut Vec<(FileId, PathBuf)>,
) -> Option<Checked> {
    let (name, file) = stage(attempt, Stage::File, |attempt| {
        let name = match FileName::of(&attempt.record.path) {
            Some(Ok(name)) => name,
            Some(Err(())) | None => {
                let file = attempt.record.path.file_name().unwrap_or_default();
                let text =
                    format!("its file name {} is not that of a backend", file.to_string_lossy());
                return Err(Reason::new(Code::FileName, text));
            }
        };
        attempt.record.name.clone_from(&name.name);
        attempt.record.variant.clone_from(&name.variant);
        let explicit = attempt.record.rule == Rule::Explicit;
        Ok((name, file_permissions::validate(&attempt.record.path, explicit)?))
    })?;
    attempt.id = Some(file.id);
    let note = stage(attempt, Stage::Note, |attempt| {
        let note = binary_header::read(&file.file)?;
        if let Some(info) = &note {
            attempt.record.properties = Some(BackendProperties::of(info, true));
            abi_compatibility::validate(info, &name, host)?;
        }
        Ok(note)
    })?;
    stage(attempt, Stage::Filter, |attempt| {
        wanted.check_globs(&name)?;
        unloaded(&name, file.id)?;
        if let Some((_, twin)) = seen.iter().find(|(id, _)| *id == file.id) {
            let text = format!("it is the same file as {}", twin.display());
            return Err(Reason::new(Code::SameFile, text));
        }
        seen.push((file.id, attempt.record.path.clone()));
        Ok(())
    })?;
    Some(Checked { name, real: file.real, note })
}

/// Probes the remaining candidates in child processes, and leaves out those that fail.
fn probe_all(attempts: &mut [LoadAttempt]) {
    let mut left: Vec<&mut LoadAttempt> =
        attempts.iter_mut().filter(|a| a.checked.is_some()).collect();
    let files = left.iter().filter_map(|a| a.checked.as_ref().map(|c| c.real.clone()));
    let paths: Vec<(PathBuf, PathBuf)> =
        left.iter().map(|a| a.record.path.clone()).zip(files).collect();
    for (attempt, verdict) in left.iter_mut().zip(probe::run_all(&paths)) {
        attempt.record.stage = Stage::Probe;
        attempt.record.milliseconds += verdict.milliseconds;
        if let Err((at, reason)) = verdict.result {
            attempt.checked = None;
            attempt.record.stage = at;
            attempt.record.leave_out(reason);
        }
    }
}

/// Opens a candidate, and reads its ABI info and its score.
fn open_and_score(
    attempt: &mut LoadAttempt,
    checked: Checked,
    host: &Host,
) -> Option<(Plugin, BackendAbiInfo)> {
    let plugin = stage(attempt, Stage::Open, |_| Plugin::open(&checked.real))?;
    let info = stage(attempt, Stage::Abi, |attempt| {
        let info = plugin.info()?;
        attempt.record.properties.get_or_insert_with(|| BackendProperties::of(&info, false));
        match &checked.note {
            Some(note) => abi_compatibility::validate_note(note, &info)?,
            None => abi_compatibility::validate(&info, &checked.name, host)?,
        }
        Ok(info)
    })?;
    let scored = stage(attempt, Stage::Score, |attempt| {
        let (score, identities) = plugin.score()?;
        attempt.record.score = Some(score);
        attempt.record.found_devices = identities.iter().map(DeviceProperties::of).collect();
        attempt.identities = identities;
        Ok(())
    });
    if scored.is_some() {
        return Some((plugin, info));
    }
    if attempt.record.reason.as_ref().is_some_and(|r| r.code == Code::ScoreZero) {
        attempt.record.score = Some(0);
    }
    None
}

/// Checks that neither the file nor another backend with its name is loaded already.
fn unloaded(name: &FileName, id: FileId) -> Result<(), Reason> {
    if let Some((_, loaded)) = state::lock().loaded.iter().find(|(i, _)| *i == id) {
        let text = format!("the file is loaded already, as backend {loaded}");
        return Err(Reason::new(Code::SameFile, text));
    }
    match registry::loaded(&name.name) {
        Some(info) => {
            let place = match &info.path {
                Some(path) => format!("from {}", path.display()),
                None => "linked into the program".to_owned(),
            };
            let text = format!("a backend named {} is in use already, {place}", name.name);
            Err(Reason::new(Code::NameTaken, text))
        }
        None => Ok(()),
    }
}

/// Leaves the candidate out if the caller's filter returns false.
fn apply_filter(attempt: &mut LoadAttempt, filter: &Filter<'_>) -> Result<(), Reason> {
    let Some(properties) = attempt.record.properties.clone() else { return Ok(()) };
    let offer = Offer {
        path: attempt.record.path.clone(),
        device_type: registry::kind_of(properties.device_type),
        properties,
        score: attempt.record.score.unwrap_or(0),
        devices: attempt.record.found_devices.clone(),
    };
    match filter(&offer) {
        Ok(true) => Ok(()),
        Ok(false) => Err(Reason::new(Code::Filtered, "the filter rejected it")),
        Err(error) => Err(Reason::new(Code::FilterFailed, format!("the filter failed: {error}"))),
    }
}

/// Starts the remaining candidates in the order of falling scores. For each name, stops at the
/// first one that starts.
fn start_best(
    registration: &Registration,
    attempts: &mut [LoadAttempt],
    wanted: &Wanted<'_>,
) -> Vec<BackendInfo> {
    let mut order: Vec<usize> =
        (0..attempts.len()).filter(|i| attempts[*i].plugin.is_some()).collect();
    // The sort is stable: among equal scores, the candidate that was found first, in an earlier
    // directory, comes first.
    order.sort_by_key(|i| std::cmp::Reverse(attempts[*i].record.score));
    let mut loaded: Vec<BackendInfo> = Vec::new();
    for i in order {
        let attempt = &mut attempts[i];
        let Some((plugin, info)) = attempt.plugin.take() else { continue };
        let best = loaded.iter().find(|b| b.name == attempt.record.name).cloned();
        let outscored = stage(attempt, Stage::Choice, |attempt| match best {
            Some(best) => Err(outscored(attempt, &best)),
            None => served(attempt, wanted),
        });
        if outscored.is_none() {
            continue;
        }
        let started = stage(attempt, Stage::Init, |attempt| {
            launch(registration, attempt, plugin, &info, wanted)
        });
        if let Some(backend) = started {
            attempt.record.stage = Stage::Registered;
            attempt.record.outcome = Outcome::Loaded;
            attempt.record.winner = true;
            attempt.record.devices.clone_from(&backend.devices);
            if let Some(id) = attempt.id {
                state::lock().loaded.push((id, backend.name.clone()));
            }
            loaded.push(backend);
        }
    }
    loaded
}

fn outscored(attempt: &LoadAttempt, best: &BackendInfo) -> Reason {
    let path = best.path.as_deref().unwrap_or(Path::new("")).display();
    let text = if Some(best.score) == attempt.record.score {
        format!("{path} has the same score, {}, and is found first", best.score)
    } else {
        format!("{path} scores {}", best.score)
    };
    Reason::new(Code::Outscored, text)
}

/// Checks that some of its devices may not be served yet. Otherwise the candidate need not start.
fn served(attempt: &LoadAttempt, wanted: &Wanted<'_>) -> Result<(), Reason> {
    let all = !attempt.identities.is_empty() && attempt.identities.iter().all(registry::serves);
    if all && !wanted.duplicates { Err(duplicate()) } else { Ok(()) }
}

fn duplicate() -> Reason {
    Reason::new(Code::Duplicate, "another backend serves all its devices already")
}

/// The remedy for an init that fails without a message.
const SAY_WHY: &str =
    "return a reason from ultramarine_backend_init: um_fail(host, error, UM_ERROR, \"...\")";

/// Calls init, checks the table that it filled, and registers its devices.
fn launch(
    registration: &Registration,
    attempt: &LoadAttempt,
    plugin: Plugin,
    info: &BackendAbiInfo,
    wanted: &Wanted<'_>,
) -> Result<BackendInfo, Reason> {
    let refused = |refusal: StartError| match refusal {
        StartError::Failed(error) => {
            let reason = Reason::new(Code::InitFailed, format!("init: {error}"));
            // If init gave a message, the message has the remedy.
            let mute = reason.text.contains(MUTE);
            if mute { reason.with_remedy(SAY_WHY) } else { reason }
        }
        StartError::Table(text) => Reason::new(Code::TableDiffers, text),
        StartError::Function(name) => {
            let text = format!("its table lacks the required function {name}");
            let remedy = format!("set it in ultramarine_backend_init: t.{name} = ...");
            Reason::new(Code::TableDiffers, text).with_remedy(remedy)
        }
        StartError::NoDevice => Reason::new(Code::NoDevices, "it found no device on this machine"),
        StartError::Served => duplicate(),
    };
    let started = start::start(plugin.init(), Some(info)).map_err(refused)?;
    if started.devices == 0 {
        return Err(refused(StartError::NoDevice));
    }
    let properties = BackendProperties::of(info, false);
    let backend = BackendInfo {
        name: properties.name,
        variant: properties.variant,
        version: properties.version,
        score: attempt.record.score.unwrap_or(0),
        device_type: registry::kind_of(properties.device_type),
        dlpack_device_type: properties.device_type,
        devices: Vec::new(),
        descriptions: Vec::new(),
        path: Some(attempt.record.path.clone()),
    };
    registry::add(registration, &started, backend, wanted.duplicates).map_err(refused)
}
