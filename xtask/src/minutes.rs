//! The duration of each step of a command, printed at the command's end. `test` begins the list and
//! `lint` continues it, so that a run of continuous integration ends with the complete list.

use crate::sh;
use anyhow::{Context, Result};
use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// The most minutes that `.ci/run` may take; see the ledger in CONTRIBUTING.md.
const LIMIT: f64 = 60.0;

/// The file of the list. It has a line per step: the beginning in seconds of the Unix epoch, the
/// duration in seconds, the name.
fn file() -> PathBuf {
    sh::root().join("target/minutes.tsv")
}

/// Begins a new list.
pub fn begin() -> Result<()> {
    let file = file();
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(&file, "").with_context(|| format!("cannot write {}", file.display()))
}

/// Runs a step and records its duration, even if it fails.
pub fn step<T>(name: &str, work: impl FnOnce() -> T) -> T {
    let began = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    let started = Instant::now();
    let result = work();
    let line = format!("{began:.1}\t{:.1}\t{name}\n", started.elapsed().as_secs_f64());
    // Each line is written with one append, because steps run at the same time.
    let file = OpenOptions::new().create(true).append(true).open(file());
    let written = file.and_then(|mut file| file.write_all(line.as_bytes()));
    if let Err(error) = written {
        eprintln!("the step's time is lost: {error}");
    }
    result
}

/// Prints the list in the order in which the steps began.
pub fn show() -> Result<()> {
    let text = std::fs::read_to_string(file()).unwrap_or_default();
    let mut steps: Vec<(f64, f64, &str)> = text.lines().filter_map(parse).collect();
    steps.sort_by(|a, b| a.0.total_cmp(&b.0));
    let Some(&(first, ..)) = steps.first() else { return Ok(()) };
    sh::say("minutes");
    println!("{:>8} {:>8}  step", "begin", "minutes");
    for (began, seconds, name) in &steps {
        println!("{:8.1} {:8.1}  {name}", (began - first) / 60.0, seconds / 60.0);
    }
    let end = steps.iter().fold(first, |end, (began, seconds, _)| end.max(began + seconds));
    let total = (end - first) / 60.0;
    println!("{:8} {total:8.1}  in all (steps overlap)", "");
    if total > LIMIT {
        println!(
            "more than {LIMIT} minutes: move a step to `cargo xtask test --full`, see CONTRIBUTING.md"
        );
    }
    Ok(())
}

fn parse(line: &str) -> Option<(f64, f64, &str)> {
    let mut fields = line.splitn(3, '\t');
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?, fields.next()?))
}

#[cfg(test)]
mod tests {
    #[test]
    fn lines_are_read() {
        assert_eq!(super::parse("1.5\t60.0\tclippy"), Some((1.5, 60.0, "clippy")));
        assert_eq!(super::parse("1.5\t60.0"), None);
    }
}
