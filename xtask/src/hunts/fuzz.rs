//! `cargo xtask fuzz`: runs libFuzzer on the validation of DLPack tensors for a limited time.
//!
//! The target is a crate in the form of cargo-fuzz (`crates/ultramarine-dlpack/fuzz`). If
//! cargo-fuzz and a nightly compiler are installed, `cargo fuzz run header` does the same. Here its
//! flags are passed to the compiler that builds everything else, so that a machine needs only a C++
//! compiler in addition, for libFuzzer itself.
//!
//! The corpus is an archive, `corpus.tar` in that crate. It is unpacked here, and packed again by
//! `--keep`.

use super::sanitize;
use crate::sh;
use crate::test::Outcome;
use anyhow::{Context, Result, bail};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The number of headers that are tried by default.
const RUNS: u64 = 1_000_000;

/// The flags of cargo-fuzz: counters for every edge, traced comparisons, and the address sanitizer.
const FLAGS: &[&str] = &[
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Cllvm-args=-simplifycfg-branch-fold-threshold=0",
    "-Zsanitizer=address",
    "--cfg=fuzzing",
];

/// The archive of inputs that reach different code. Unpacked beside itself, it is the directory
/// that cargo-fuzz uses.
const CORPUS: &str = "crates/ultramarine-dlpack/fuzz/corpus.tar";

/// The folder of inputs in the archive.
const INPUTS: &str = "corpus/header";

const USAGE: &str = "usage: cargo xtask fuzz [--runs N] [--keep]";

/// `cargo xtask fuzz [--runs N] [--keep]`: with `--keep`, inputs that reach more code than those of
/// the repository are added to them.
pub fn run(args: &[String]) -> Result<()> {
    let (mut runs, mut keep) = (RUNS, false);
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match (arg.as_str(), args.as_slice().first()) {
            ("--runs", Some(n)) => {
                runs = n.parse().with_context(|| format!("--runs {n}: a number is wanted"))?;
                args.next();
            }
            ("--keep", _) => keep = true,
            _ => bail!("{USAGE}"),
        }
    }
    all(runs, keep)?.show("fuzzing")
}

/// Builds the target and runs it on this number of headers.
pub fn all(runs: u64, keep: bool) -> Result<Outcome> {
    if !sanitize::HERE {
        return Ok(Outcome::Missing("no address sanitizer for this machine".to_owned()));
    }
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".into());
    if sh::read(sh::cmd(&compiler, &["--version"])).is_err() {
        let what = format!("libFuzzer needs a C++ compiler ({compiler}; Debian: g++)");
        return Ok(Outcome::Missing(what));
    }
    if sh::read(sh::cmd("tar", &["--version"])).is_err() {
        let what = format!("{CORPUS} is unpacked by `tar`, which is not installed (Debian: tar)");
        return Ok(Outcome::Missing(what));
    }
    sh::say(&format!("fuzzing the validation of DLPack tensors: {runs} headers"));
    let program = build()?;
    let out = sh::root().join("target/fuzz");
    // Start without the findings of earlier runs, so that runs are the same everywhere.
    let (found, failures) = (out.join("corpus"), out.join("failures"));
    for folder in [&found, &failures] {
        let _ = std::fs::remove_dir_all(folder);
        std::fs::create_dir_all(folder)
            .with_context(|| format!("cannot make {}", folder.display()))?;
    }
    let archive = sh::root().join(CORPUS);
    let corpus = unpack(&archive, &out.join("seeds"))?;
    let mut fuzzer = sh::cmd(&program, &[&format!("-runs={runs}"), "-seed=1", "-max_len=512"]);
    // Progress is printed rarely. A header that takes longer than the time limit is a failure.
    fuzzer.args(["-timeout=10", "-rss_limit_mb=2048", "-print_final_stats=1"]);
    fuzzer.arg(format!("-artifact_prefix={}/", failures.display())).args([&found, &corpus]);
    let (right, summary) = follow(fuzzer)?;
    if !right {
        let again = format!("{} FILE in {}", program.display(), failures.display());
        return Ok(Outcome::Wrong(format!("{summary}; again with {again}")));
    }
    if keep {
        sh::run(sh::cmd(&program, &["-merge=1", &text(&corpus), &text(&found)]))?;
        let inputs = pack(&corpus, &archive)?;
        println!("{CORPUS} holds {inputs} inputs");
    }
    Ok(Outcome::Right(summary))
}

/// The fuzz target, built as cargo-fuzz builds it.
fn build() -> Result<PathBuf> {
    let target = sh::host()?;
    let (out, manifest) = ("target/fuzz", "crates/ultramarine-dlpack/fuzz/Cargo.toml");
    let build = ["build", "--release", "--quiet", "--bin", "header"];
    let places = ["--manifest-path", manifest, "--target-dir", out, "--target", &target];
    let mut cargo = sh::cargo(&[&build[..], &places].concat());
    // This makes the stable compiler, which is the same as nightly's, accept unstable flags.
    cargo.env("RUSTC_BOOTSTRAP", "1").env("CARGO_ENCODED_RUSTFLAGS", FLAGS.join("\x1f"));
    sh::run(cargo)?;
    Ok(sh::root().join(out).join(target).join("release/header"))
}

/// Runs the fuzzer, shows its output, and returns its totals.
fn follow(mut fuzzer: Command) -> Result<(bool, String)> {
    let mut child = fuzzer.stderr(Stdio::piped()).spawn().context("cannot run the fuzzer")?;
    let (mut last, mut done) = (String::new(), String::new());
    if let Some(out) = child.stderr.take() {
        for line in BufReader::new(out).split(b'\n') {
            let line = String::from_utf8_lossy(&line?).into_owned();
            // Skip the lines for new inputs, of which there are hundreds, and those for words of a
            // dictionary.
            let common = line.contains("\tNEW  ") || line.contains("\tREDUCE ");
            if !common && !line.starts_with('"') && !line.starts_with("######") {
                println!("{line}");
            }
            if line.contains("cov: ") {
                line.trim().clone_into(&mut last);
            }
            let wrong = line.contains("ERROR") || line.contains("panicked");
            if done.is_empty() && (wrong || line.starts_with("Done ")) {
                line.trim().clone_into(&mut done);
            }
        }
    }
    let right = child.wait()?.success();
    let covered = last.split("cov: ").nth(1).and_then(|rest| rest.split(" lim").next());
    Ok((right, format!("{done}; cov: {}", covered.unwrap_or("unknown"))))
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Unpacks the archive into an emptied folder, and returns the folder of inputs in it.
fn unpack(archive: &Path, folder: &Path) -> Result<PathBuf> {
    let _ = std::fs::remove_dir_all(folder);
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    sh::run(sh::cmd("tar", &["-xf", &text(archive), "-C", &text(folder)]))?;
    Ok(folder.join(INPUTS))
}

/// Writes the files of a directory to the archive, and returns their number. Equal files give
/// bitwise identical archives: they are sorted by name, and times and owners are 0. The options of
/// `tar` for this differ between systems, so the format (POSIX ustar) is written here.
fn pack(folder: &Path, archive: &Path) -> Result<usize> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort_unstable();
    let mut out = Vec::new();
    for name in &names {
        let data = std::fs::read(folder.join(name))?;
        let path = format!("{INPUTS}/{name}");
        if path.len() > 100 {
            bail!("{path}: names in the archive have at most 100 bytes");
        }
        let mut header = [0u8; 512];
        let mut put = |at: usize, text: &str| (&mut header[at..]).write_all(text.as_bytes());
        put(0, &path)?;
        put(100, "0000644")?; // mode
        put(108, "0000000")?; // user
        put(116, "0000000")?; // group
        put(124, &format!("{:011o}", data.len()))?;
        put(136, "00000000000")?; // time
        put(148, "        ")?; // the checksum's place, which counts as spaces
        put(156, "0ustar\x0000")?;
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
        out.extend_from_slice(&header);
        out.extend_from_slice(&data);
        out.resize(out.len().next_multiple_of(512), 0);
    }
    // The end: two blocks of zeros.
    out.resize(out.len() + 1024, 0);
    std::fs::write(archive, out).with_context(|| format!("cannot write {}", archive.display()))?;
    Ok(names.len())
}

#[cfg(test)]
mod tests {
    use super::{CORPUS, INPUTS, pack, unpack};
    use crate::sh;

    #[test]
    fn archives_hold_what_was_packed() {
        let folder =
            std::env::temp_dir().join(format!("ultramarine-corpus-{}", std::process::id()));
        let (from, archive) = (folder.join("from"), folder.join("corpus.tar"));
        std::fs::create_dir_all(&from).unwrap();
        let files = [("b", 0), ("a", 1), ("c", 512), ("d", 513)];
        for (name, bytes) in files {
            std::fs::write(from.join(name), vec![name.as_bytes()[0]; bytes]).unwrap();
        }
        assert_eq!(pack(&from, &archive).unwrap(), files.len());
        let inputs = unpack(&archive, &folder.join("to")).unwrap();
        assert!(inputs.ends_with(INPUTS));
        assert_eq!(std::fs::read_dir(&inputs).unwrap().count(), files.len());
        for (name, bytes) in files {
            assert_eq!(std::fs::read(inputs.join(name)).unwrap(), vec![name.as_bytes()[0]; bytes]);
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn packing_the_corpus_again_changes_nothing() {
        let folder = std::env::temp_dir().join(format!("ultramarine-again-{}", std::process::id()));
        let archive = sh::root().join(CORPUS);
        let inputs = unpack(&archive, &folder).unwrap();
        let again = folder.join("corpus.tar");
        assert!(pack(&inputs, &again).unwrap() > 300);
        let same = std::fs::read(&archive).unwrap() == std::fs::read(&again).unwrap();
        assert!(same, "{CORPUS} was not written by `cargo xtask fuzz --keep`");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
