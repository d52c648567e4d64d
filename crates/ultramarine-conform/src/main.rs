//! The conformance kit. Using only a backend's binary, it checks that the backend keeps
//! Ultramarine's contract, and reports what the backend can do.
//!
//! The parent reads the file (`file`), runs every group of checks in a child process (`parent`,
//! `groups`), and prints the children's findings (`report`). Checks call the backend through
//! `device`. The results of ops are compared (`compare`) with the kit's own references
//! (`reference`), on cases (`cases`) that the contract's schema and `rules` require.

#![allow(clippy::print_stdout, reason = "the report is this program's output")]

#[macro_use(ensure)]
extern crate ultramarine_abi;

mod bench;
mod cases;
mod claims;
mod compare;
mod device;
mod dtype;
mod file;
mod groups;
mod host;
mod limit;
mod options;
mod parent;
mod plugin;
mod record;
mod reference;
mod report;
mod rules;
mod run;
mod tensor;
mod values;

use options::{Options, Stop};
use plugin::Source;
use record::Recorder;
use std::fs::OpenOptions;
use std::process::ExitCode;

const FAILED: u8 = 1;
const USAGE: u8 = 2;
const CANNOT_RUN: u8 = 3;
const BELOW_GRADE: u8 = 4;
const UNFINISHED: u8 = 5;

fn main() -> ExitCode {
    let options = match options::parse() {
        Ok(options) => options,
        Err(Stop::Help) => {
            print!("{}", options::HELP);
            return ExitCode::SUCCESS;
        }
        Err(Stop::List) => {
            groups::names().iter().for_each(|name| println!("{name}"));
            return ExitCode::SUCCESS;
        }
        Err(Stop::Wrong(text)) => {
            eprintln!("ultramarine-conform: {text}\n\n{}", options::HELP);
            return ExitCode::from(USAGE);
        }
    };
    let result = match &options.child {
        _ if let Some(rank) = &options.rank => {
            groups::run_rank(&options, rank).map(|()| ExitCode::SUCCESS)
        }
        Some(child) => run_child(&options, &child.0, &child.1),
        None => run_parent(&options),
    };
    match result {
        Ok(code) => code,
        Err(text) => {
            eprintln!("ultramarine-conform: {text}");
            ExitCode::from(USAGE)
        }
    }
}

/// A child: one group.
fn run_child(options: &Options, group: &str, output: &std::path::Path) -> Result<ExitCode, String> {
    let file = OpenOptions::new().append(true).open(output);
    let file = file.map_err(|e| format!("{}: {e}", output.display()))?;
    let mut recorder = Recorder::new(file, options.check.clone(), options.after.clone());
    if groups::run(group, &mut recorder, options) {
        Ok(ExitCode::SUCCESS)
    } else {
        Err(format!("no group {group:?}"))
    }
}

/// Returns the groups that the options select.
fn chosen(options: &Options) -> Result<Vec<&'static str>, String> {
    let mut all = groups::names();
    if !options.large {
        all.retain(|name| *name != "large" || options.groups.iter().any(|g| g == "large"));
    }
    if options.groups.is_empty() {
        return Ok(all);
    }
    let fits = |name: &str, asked: &str| {
        name == asked || name.strip_prefix(asked).is_some_and(|rest| rest.starts_with('.'))
    };
    if let Some(unknown) = options.groups.iter().find(|g| !all.iter().any(|name| fits(name, g))) {
        return Err(format!("no group {unknown:?}; --list names them"));
    }
    all.retain(|name| options.groups.iter().any(|g| fits(name, g)));
    Ok(all)
}

fn run_parent(options: &Options) -> Result<ExitCode, String> {
    let mut groups = chosen(options)?;
    let mut early = parent::Findings::default();
    let mut loadable = true;
    if groups.contains(&"file") {
        groups.retain(|name| *name != "file");
        if let Source::File(path) = &options.source {
            loadable = file::check(path, &mut early);
        }
    }
    // The file is not a library, or is for another machine, so none of it can be run.
    if let Some(check) = options.check.as_ref().filter(|_| loadable) {
        let (chosen, others) = early.checks.into_iter().partition(|c| c.name.contains(check));
        early.checks = chosen;
        let others: Vec<parent::Check> = others;
        early.left_out = others.into_iter().map(|c| c.name).collect();
    }
    let mut findings = parent::Findings::default();
    if loadable && !groups.is_empty() {
        let load = parent::run(options, &[groups::LOAD])?;
        let can_run = load.property(groups::CANNOT_RUN).is_none() && !load.failed();
        if options.bench && can_run {
            let found = bench::run(options)?;
            return Ok(if found.failed() {
                report_failures(options, &found)
            } else {
                ExitCode::SUCCESS
            });
        }
        if let Some(reason) = load.property(groups::CANNOT_RUN).and_then(|r| r.as_str()) {
            let text = format!("cannot run here (score 0): {reason}");
            if !early.failed() {
                println!("{}: {text}", options.source);
                return Ok(ExitCode::from(CANNOT_RUN));
            }
            findings.add(groups::LOAD, "load/score", "skip", &text);
            groups.clear();
        }
        if load.failed() {
            // A mistake in loading would fail in every group. The group with the details of tables
            // and structs says more, if it is selected.
            groups.retain(|name| options.is_part() && *name == "abi" && load.crashes == 0);
            if groups.is_empty() {
                findings = load;
            }
        }
        let part = parent::run(options, &groups)?;
        findings.append(part);
    }
    findings.checks.splice(0..0, early.checks);
    findings.left_out.splice(0..0, early.left_out);
    if options.check.is_some() && findings.checks.is_empty() {
        return Err(report::nothing_selected(options, &findings.left_out));
    }
    if !options.is_part() {
        claims::arithmetic(&mut findings);
    }
    findings.properties.splice(0..0, early.properties);
    if let Source::File(path) = &options.source
        && loadable
        && options.check.is_none()
    {
        note_agrees(path, &mut findings);
    }
    let verdict = report::verdict(&findings);
    print!("{}", report::text(options, &findings, &verdict));
    if let Some(path) = &options.json {
        let mut json = findings.json();
        json["plugin"] = options.source.to_string().into();
        json["contract"] = match verdict.outcome(options, &findings) {
            report::Outcome::Breaks => "broken",
            report::Outcome::Unfinished => "unfinished",
            _ => "kept",
        }
        .into();
        json["grade"] = verdict.grade.map_or("none", |g| g.name()).into();
        json["missing"] = verdict.missing.iter().map(ToString::to_string).collect();
        std::fs::write(path, format!("{json:#}\n"))
            .map_err(|e| format!("{}: {e}", path.display()))?;
    }
    Ok(match verdict.outcome(options, &findings) {
        report::Outcome::Conforms => ExitCode::SUCCESS,
        report::Outcome::Breaks => ExitCode::from(FAILED),
        report::Outcome::BelowGrade => ExitCode::from(BELOW_GRADE),
        report::Outcome::Unfinished => ExitCode::from(UNFINISHED),
    })
}

/// Prints the failures that occurred during measurements.
fn report_failures(options: &Options, found: &parent::Findings) -> ExitCode {
    print!("\n{}", report::failed(options, found));
    ExitCode::from(FAILED)
}

/// Compares the note with the info of the entry point, as children reported it.
fn note_agrees(path: &std::path::Path, findings: &mut parent::Findings) {
    let Some(reported) =
        findings.property("abi info bytes").and_then(|v| v.as_str()).map(str::to_owned)
    else {
        return;
    };
    let Some(note) = std::fs::read(path).ok().and_then(|data| file::abi_note(&data).ok()) else {
        return;
    };
    let same = groups::info_bytes(&note) == reported;
    let (result, text) =
        if same { ("pass", "") } else { ("fail", "abi_info() and the note differ") };
    findings.add("file", "file/note agrees with abi_info", result, text);
    findings.properties.retain(|f| f.0 != "abi info bytes");
}
