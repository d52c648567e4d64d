//! Running other programs, and the few paths that every command needs.

use anyhow::{Context, Result, bail};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The repository's root.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// Says what comes next.
pub fn say(what: &str) {
    println!("\n== {what}");
}

/// A program with its arguments, to be run in the repository's root.
pub fn cmd<S: AsRef<std::ffi::OsStr>>(program: S, args: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(args).current_dir(root());
    command
}

/// `cargo` with arguments: the one that runs us.
pub fn cargo(args: &[&str]) -> Command {
    cmd(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()), args)
}

/// The compiler's name for this machine.
pub fn host() -> Result<String> {
    let told = read(cmd("rustc", &["-vV"]))?;
    let host = told.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).context("rustc -vV does not say its host")
}

/// The command as one would type it, for messages.
fn shown(command: &Command) -> String {
    let mut text = command.get_program().to_string_lossy().into_owned();
    for arg in command.get_args() {
        text.push(' ');
        text.push_str(&arg.to_string_lossy());
    }
    text
}

/// Runs a command with our own output; an error unless it succeeds.
pub fn run(mut command: Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot run {}", shown(&command)))?;
    if !status.success() {
        bail!("{} failed ({status})", shown(&command));
    }
    Ok(())
}

/// Runs a command and returns what it printed; an error, with its complaints, unless it succeeds.
pub fn read(mut command: Command) -> Result<String> {
    let output = command.output().with_context(|| format!("cannot run {}", shown(&command)))?;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        bail!("{} failed ({})\n{}", shown(&command), output.status, complaint.trim_end());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs a command, shows its standard output as it comes, and hands each line to `seen`.
/// Returns whether it succeeded.
pub fn follow(mut command: Command, mut seen: impl FnMut(&str)) -> Result<bool> {
    command.stdout(Stdio::piped());
    let mut child = command.spawn().with_context(|| format!("cannot run {}", shown(&command)))?;
    if let Some(out) = child.stdout.take() {
        for line in BufReader::new(out).split(b'\n') {
            let line = line?;
            let line = String::from_utf8_lossy(&line);
            println!("{line}");
            seen(&line);
        }
    }
    Ok(child.wait()?.success())
}

/// The files of the tree that git knows or would add, relative to the root.
pub fn tree() -> Result<Vec<PathBuf>> {
    let args = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    let list = read(cmd("git", &args))?;
    let mut files: Vec<PathBuf> =
        list.split('\0').filter(|f| !f.is_empty()).map(PathBuf::from).collect();
    files.retain(|f| root().join(f).is_file());
    files.sort();
    files.dedup();
    Ok(files)
}

/// The number that stands before `word` in a line such as `ok. 12 passed; 0 failed`.
pub fn count_before(line: &str, word: &str) -> u64 {
    let words: Vec<&str> = line.split([' ', ';', '.']).filter(|w| !w.is_empty()).collect();
    words.windows(2).find(|pair| pair[1] == word).and_then(|pair| pair[0].parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::count_before;

    #[test]
    fn totals_are_read_from_the_harness() {
        let line =
            " ok. 12 passed; 3 failed; 1 ignored; 0 measured; 4 filtered out; finished in 0.5s";
        assert_eq!(count_before(line, "passed"), 12);
        assert_eq!(count_before(line, "failed"), 3);
        assert_eq!(count_before(line, "ignored"), 1);
        assert_eq!(count_before(line, "absent"), 0);
    }
}
