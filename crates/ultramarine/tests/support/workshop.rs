//! Makes plugins for tests and the bench: real libraries, compiled from `misbehaving/plugin.c`
//! with the C compiler, kept by the hash of what they are made of.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::io::{Error, Result};
use std::path::{Path, PathBuf};
use std::process::Command;

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
        let target =
            option_env!("CARGO_TARGET_TMPDIR").map_or_else(std::env::temp_dir, PathBuf::from);
        Workshop::new(target.join("plugins"))
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
        let source = here().join("misbehaving").join(source);
        let headers = here().join("../../ultramarine-abi/include");
        let mut hasher = DefaultHasher::new();
        (always, flags, std::fs::read(&source)?).hash(&mut hasher);
        for header in std::fs::read_dir(headers.join("ultramarine"))? {
            std::fs::read(header?.path())?.hash(&mut hasher);
        }
        let kept = self.kept.join(format!("{:016x}.so", hasher.finish()));
        if !kept.is_file() {
            // Another test may make the same: each writes its own, the rename is atomic.
            let mine = kept.with_extension(format!(
                "{}.{:?}",
                std::process::id(),
                std::thread::current().id()
            ));
            let mut command = Command::new(cc);
            command.args(always).args(["-O1", "-Wall", "-Werror", "-shared", "-fPIC"]);
            // A plugin whose entry points are left out on purpose uses nothing of itself.
            command.args(["-Wno-unused-function", "-Wno-unused-const-variable"]);
            command
                .args(["-fvisibility=hidden", "-I"])
                .arg(&headers)
                .args(["-o".as_ref(), mine.as_os_str()]);
            // Behind the source, so that libraries among the flags are searched for it.
            let made = command.arg(&source).args(flags).output()?;
            if !made.status.success() {
                let told = String::from_utf8_lossy(&made.stderr).into_owned();
                return Err(Error::other(format!("{cc} {}: {told}", flags.join(" "))));
            }
            std::fs::rename(&mine, &kept)?;
        }
        std::fs::copy(&kept, to).map(drop)
    }
}

/// The directory of the integration tests.
fn here() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../ultramarine/tests")
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
        let root =
            option_env!("CARGO_TARGET_TMPDIR").map_or_else(std::env::temp_dir, PathBuf::from);
        let path = root.join(format!("{name}-{}", std::process::id()));
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

/// `ultramarine-abi/examples/panicking.rs`, built by cargo: a Rust backend by the helper.
pub fn panicking() -> Result<Vec<u8>> {
    // This program is target/PROFILE/deps/NAME.
    let own = std::env::current_exe()?;
    let profile = own.ancestors().nth(2).ok_or_else(|| Error::other("not built by cargo"))?;
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "-p", "ultramarine-abi", "--example", "panicking"]);
    cargo.current_dir(here());
    if profile.file_name().is_some_and(|name| name == "release") {
        cargo.arg("--release");
    }
    if let Some(target) = profile.parent() {
        cargo.arg("--target-dir").arg(target);
    }
    let built = cargo.output()?;
    if !built.status.success() {
        return Err(Error::other(String::from_utf8_lossy(&built.stderr).into_owned()));
    }
    std::fs::read(profile.join("examples/libpanicking.so"))
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
