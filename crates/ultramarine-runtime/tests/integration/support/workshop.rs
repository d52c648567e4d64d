//! Makes plugins for tests and the bench: real libraries, compiled from `tests/misbehaving/plugin.c`
//! with the C compiler, kept by the hash of their sources and definitions.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::io::{Error, Result};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Where plugins are made, and kept for the next run.
pub struct Workshop {
    kept: PathBuf,
}

impl Workshop {
    /// A workshop that keeps what it made in `kept`.
    pub fn new(kept: impl Into<PathBuf>) -> Result<Workshop> {
        let kept = kept.into();
        std::fs::create_dir_all(&kept)?;
        Ok(Workshop { kept })
    }

    /// The one of the tests, in cargo's target directory.
    pub fn of_tests() -> Result<Workshop> {
        Workshop::new(target().join("plugins"))
    }

    /// `plugin.c` with these definitions, as the file `to`.
    pub fn c(&self, flags: &[&str], to: &Path) -> Result<()> {
        self.build("plugin.c", "cc", &["-std=gnu11"], flags, to)
    }

    /// `throwing.cpp` with these definitions, as the file `to`.
    pub fn cpp(&self, flags: &[&str], to: &Path) -> Result<()> {
        self.build("throwing.cpp", "c++", &["-std=c++17"], flags, to)
    }

    /// A plugin that behaves, called `name`, in `directory`.
    pub fn good(&self, name: &str, flags: &[&str], directory: &Path) -> Result<PathBuf> {
        let to = directory.join(file_name(name));
        let (name, variant) = name.split_once('-').unwrap_or((name, ""));
        let named = [format!("-DNAME=\"{name}\""), format!("-DVARIANT=\"{variant}\"")];
        let flags = [&[named[0].as_str(), named[1].as_str()], flags].concat();
        self.c(&flags, &to)?;
        Ok(to)
    }

    fn build(
        &self,
        source: &str,
        cc: &str,
        always: &[&str],
        flags: &[&str],
        to: &Path,
    ) -> Result<()> {
        let source = tests().join("misbehaving").join(source);
        let headers = tests().join("../../ultramarine-abi/include");
        let mut files = files_in(&headers.join("ultramarine"))?;
        files.push(source.clone());
        let kept = self.kept.join(format!("{}.so", fingerprint(&files, (always, flags))?));
        once(&kept, |own| {
            let mut command = Command::new(cc);
            command.args(always).args(["-O1", "-Wall", "-Werror", "-shared", "-fPIC"]);
            // A plugin whose entry points are left out on purpose uses nothing of itself.
            command.args(["-Wno-unused-function", "-Wno-unused-const-variable"]);
            command.args(["-fvisibility=hidden", "-I"]).arg(&headers);
            // Behind the source, so that libraries among the flags are searched for it.
            run(command.arg("-o").arg(own).arg(&source).args(flags))
        })?;
        std::fs::copy(&kept, to).map(drop)
    }
}

/// The directory `tests` of the crate.
fn tests() -> PathBuf {
    // The core's tests and the bench share this file, in crates of their own.
    let above = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let mut all = above.map(|path| path.join("crates/ultramarine-runtime/tests"));
    all.find(|path| path.is_dir()).expect("the repository has the tests")
}

/// The directory for files of tests, in cargo's target directory.
pub fn target() -> PathBuf {
    option_env!("CARGO_TARGET_TMPDIR").map_or_else(std::env::temp_dir, PathBuf::from)
}

/// Makes the file `kept` once for all processes: `make` writes another file, which is then renamed.
pub fn once(kept: &Path, make: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    if kept.is_file() {
        return Ok(());
    }
    if let Some(directory) = kept.parent() {
        std::fs::create_dir_all(directory)?;
    }
    // Other threads and processes may make the same: each writes its own, the rename is atomic.
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let n = COUNT.fetch_add(1, Ordering::Relaxed);
    let own = kept.with_extension(format!("{}-{n}", std::process::id()));
    make(&own)?;
    std::fs::rename(&own, kept)
}

/// A name for a file that is made from these files and `options`.
pub fn fingerprint(files: &[PathBuf], options: impl Hash) -> Result<String> {
    let mut hasher = DefaultHasher::new();
    options.hash(&mut hasher);
    for file in files {
        std::fs::read(file)?.hash(&mut hasher);
    }
    Ok(format!("{:016x}", hasher.finish()))
}

/// The files of a directory in the order of their names, without those of directories in it.
pub fn files_in(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        files.push(entry?.path());
    }
    files.retain(|file| file.is_file());
    files.sort();
    Ok(files)
}

/// Runs a command that has to succeed.
pub fn run(command: &mut Command) -> Result<()> {
    let output = command.output()?;
    if output.status.success() {
        return Ok(());
    }
    let complaints = String::from_utf8_lossy(&output.stderr);
    Err(Error::other(format!(
        "{command:?}: {}
{complaints}",
        output.status
    )))
}

/// The file of a backend called `name` or `name-variant`.
pub fn file_name(name: &str) -> String {
    format!("libultramarine-{name}.so")
}

/// An empty directory of this process, removed at the end of its test.
pub struct Scratch(PathBuf);

impl Scratch {
    /// A new one, which only we may write to.
    pub fn new(name: &str) -> Result<Scratch> {
        let path = target().join(format!("{name}-{}", std::process::id()));
        if path.exists() {
            std::fs::remove_dir_all(&path)?;
        }
        std::fs::create_dir_all(&path)?;
        Ok(Scratch(path.canonicalize()?))
    }

    /// Its absolute path.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Runs `cargo build` with these arguments and environment variables in the profile of this program, and
/// returns that profile's directory.
pub fn cargo_build(arguments: &[&str], variables: &[(&str, &str)]) -> Result<PathBuf> {
    // This program is target/PROFILE/deps/NAME.
    let own = std::env::current_exe()?;
    let directory = own.ancestors().nth(2).ok_or_else(|| Error::other("not built by cargo"))?;
    let profile = match directory.file_name().and_then(|name| name.to_str()) {
        Some("debug") => "dev",
        Some(name) => name,
        None => return Err(Error::other("not built by cargo")),
    };
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "--profile", profile]).args(arguments);
    if let Some(target) = directory.parent() {
        cargo.arg("--target-dir").arg(target);
    }
    run(cargo.current_dir(tests()).envs(variables.iter().copied()))?;
    Ok(directory.to_owned())
}

/// `ultramarine-abi/examples/panicking.rs`, built by cargo: a Rust backend by the helper.
pub fn panicking() -> Result<Vec<u8>> {
    let built = cargo_build(&["-p", "ultramarine-abi", "--example", "panicking"], &[])?;
    std::fs::read(built.join("examples/libpanicking.so"))
}

/// Overwrites every place where bytes stand with others of the same length; at least one.
pub fn patch(bytes: &mut [u8], from: &[u8], to: &[u8]) {
    assert_eq!(from.len(), to.len());
    let places: Vec<usize> = (0..bytes.len().saturating_sub(from.len()))
        .filter(|i| bytes[*i..].starts_with(from))
        .collect();
    assert!(!places.is_empty(), "nothing to overwrite");
    for place in places {
        bytes[place..place + from.len()].copy_from_slice(to);
    }
}
