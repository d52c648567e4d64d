//! Running other programs, and the few paths that every command needs.

use crate::failures::Failures;
use anyhow::{Context, Result, bail};
use std::cell::RefCell;
use std::io::{BufRead, BufReader, PipeReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

thread_local! {
    /// The output of this thread and its commands, which is kept until [`captured`] returns it.
    /// `None`: output is printed.
    static KEPT: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs `work`. Returns its result, and the output of `work` and its commands. So steps that run at
/// the same time do not mix their lines.
pub fn captured<T>(work: impl FnOnce() -> T) -> (T, String) {
    KEPT.set(Some(String::new()));
    let result = work();
    (result, KEPT.take().unwrap_or_default())
}

/// Prints a line, or keeps it.
pub fn print(line: &str) {
    KEPT.with_borrow_mut(|kept| match kept {
        Some(text) => text.extend([line, "\n"]),
        None => println!("{line}"),
    });
}

/// The repository's root.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// Announces the next step.
pub fn say(what: &str) {
    print(&format!("\n== {what}"));
}

/// A program with its arguments, to be run in the repository's root.
pub fn cmd<S: AsRef<std::ffi::OsStr>>(program: S, args: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(args).current_dir(root());
    command
}

/// Returns `cargo` with arguments. It is the cargo that runs this program.
pub fn cargo(args: &[&str]) -> Command {
    cmd(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()), args)
}

/// The compiler's name for this machine.
pub fn host() -> Result<String> {
    let printed = read(cmd("rustc", &["-vV"]))?;
    let host = printed.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).context("rustc -vV does not say its host")
}

/// Returns the command as a user would type it, for messages.
fn shown(command: &Command) -> String {
    let mut text = command.get_program().to_string_lossy().into_owned();
    for arg in command.get_args() {
        text.push(' ');
        text.push_str(&arg.to_string_lossy());
    }
    text
}

/// Starts a command. Its standard output comes through the pipe, and so do its errors if output is
/// kept.
fn start(command: &mut Command) -> Result<(Child, PipeReader)> {
    let (out, into) = std::io::pipe().context("no pipe")?;
    if KEPT.with_borrow(Option::is_some) {
        command.stderr(into.try_clone().context("no pipe")?);
    }
    command.stdout(into);
    let child = command.spawn().with_context(|| format!("cannot run {}", shown(command)))?;
    // Close this process's ends of the pipe, because otherwise the pipe would never end.
    command.stdout(Stdio::null()).stderr(Stdio::inherit());
    Ok((child, out))
}

/// Runs a command with this process's own output. Returns an error unless it succeeds.
pub fn run(mut command: Command) -> Result<()> {
    let status = if KEPT.with_borrow(Option::is_some) {
        let (mut child, out) = start(&mut command)?;
        lines(out, |_| {})?;
        child.wait()
    } else {
        command.status()
    };
    let status = status.with_context(|| format!("cannot run {}", shown(&command)))?;
    if !status.success() {
        bail!("{} failed ({status})", shown(&command));
    }
    Ok(())
}

/// Runs a command and returns its output. Unless it succeeds, returns an error with its standard
/// error.
pub fn read(mut command: Command) -> Result<String> {
    let output = command.output().with_context(|| format!("cannot run {}", shown(&command)))?;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        bail!("{} failed ({})\n{}", shown(&command), output.status, complaint.trim_end());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs a command, shows its standard output as it arrives, and passes each line to `seen`. Returns
/// true if it succeeded. The failed tests are kept for the end.
pub fn follow(mut command: Command, mut seen: impl FnMut(&str)) -> Result<bool> {
    let (mut child, out) = start(&mut command)?;
    let mut failures = Failures::default();
    lines(out, |line| {
        failures.see(line);
        seen(line);
    })?;
    let succeeded = child.wait()?.success();
    if !succeeded {
        failures.keep(&shown(&command));
    }
    Ok(succeeded)
}

/// Runs a `cargo test` command. Returns if it succeeded, and the totals over all its binaries in
/// words.
pub fn test_totals(command: Command) -> Result<(bool, String)> {
    let (mut totals, mut in_details) = ([0u64; 3], false);
    let succeeded = follow(command, |line| {
        // The output of a failed test may contain the results of a test program that it ran.
        in_details ^= line == "failures:";
        if let Some(result) = line.strip_prefix("test result:").filter(|_| !in_details) {
            for (total, word) in totals.iter_mut().zip(["passed", "failed", "ignored"]) {
                *total += count_before(result, word);
            }
        }
    })?;
    let [passed, failed, ignored] = totals;
    Ok((succeeded, format!("{passed} passed, {failed} failed, {ignored} ignored")))
}

/// Prints lines as they arrive, or keeps them, and passes each to `seen`.
fn lines(out: PipeReader, mut seen: impl FnMut(&str)) -> Result<()> {
    for line in BufReader::new(out).split(b'\n') {
        let line = line?;
        let line = String::from_utf8_lossy(&line);
        print(&line);
        seen(&line);
    }
    Ok(())
}

/// Copies a file, and makes the directory that it goes to.
pub fn copy(from: &Path, to: &Path) -> Result<()> {
    if let Some(folder) = to.parent() {
        std::fs::create_dir_all(folder)?;
    }
    // Remove the old file first, so that programs that have it open keep it.
    let _ = std::fs::remove_file(to);
    std::fs::copy(from, to).with_context(|| format!("cannot copy {}", from.display()))?;
    Ok(())
}

/// Copies the files of a Python package, without the files that Python and builds leave there.
pub fn copy_tree(from: &Path, to: &Path) -> Result<()> {
    let entries =
        std::fs::read_dir(from).with_context(|| format!("cannot list {}", from.display()))?;
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name == "__pycache__" || name.ends_with(".so") {
            continue;
        }
        match path.is_dir() {
            true => copy_tree(&path, &to.join(name))?,
            false => copy(&path, &to.join(name))?,
        }
    }
    Ok(())
}

/// Returns the files that git tracks or would add, relative to the root.
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
