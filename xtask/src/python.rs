//! Python: finding it, making environments, installing packages and our own package in them.

use crate::sh;
use anyhow::{Context, Result, bail};
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::UNIX_EPOCH;

const NO_PYTHON: &str = "\
Python 3.11 or newer is needed and none was found (tried python3, python3.11 to python3.15).
  Debian, Ubuntu:  apt install python3 python3-venv
  Fedora:          dnf install python3
  macOS:           brew install python3
  elsewhere:       https://www.python.org/downloads/";

const NO_VENV: &str = "\
this Python cannot make virtual environments: its module `ensurepip` is missing.
  Debian, Ubuntu:  apt install python3-venv
Then run the command again.";

/// A Python interpreter of 3.11 or newer, and whether it brings `ensurepip` and `pip`.
struct Base {
    program: PathBuf,
    ensurepip: bool,
    pip: bool,
}

/// The first usable interpreter on the path.
fn find() -> Result<Base> {
    const PROBE: &str = "import sys, importlib.util as u; assert sys.version_info >= (3, 11); \
        print(sys.executable); print(*(u.find_spec(m) is not None for m in ('ensurepip', 'pip')))";
    let names = std::iter::once("python3".to_owned())
        .chain((11..=15).map(|minor| format!("python3.{minor}")));
    for name in names {
        let Ok(told) = sh::read(sh::cmd(&name, &["-c", PROBE])) else {
            continue;
        };
        let mut words = told.split_whitespace();
        let (Some(program), Some(ensurepip), Some(pip)) =
            (words.next(), words.next(), words.next())
        else {
            continue;
        };
        return Ok(Base {
            program: program.into(),
            ensurepip: ensurepip == "True",
            pip: pip == "True",
        });
    }
    bail!(NO_PYTHON)
}

/// A virtual environment in the repository.
pub struct Venv {
    dir: PathBuf,
}

impl Venv {
    /// The environment `name` under the root, made where it is missing.
    pub fn open(name: &str) -> Result<Venv> {
        let venv = Venv { dir: sh::root().join(name) };
        let usable = sh::read(sh::cmd(venv.program("python"), &["-m", "pip", "--version"]));
        if usable.is_err() {
            sh::say(&format!("making {name}"));
            venv.make()?;
        }
        Ok(venv)
    }

    /// The same, made afresh.
    pub fn fresh(name: &str) -> Result<Venv> {
        let dir = sh::root().join(name);
        if dir.exists() {
            std::fs::remove_dir_all(&dir)
                .with_context(|| format!("cannot remove {}", dir.display()))?;
        }
        Venv::open(name)
    }

    fn make(&self) -> Result<()> {
        let base = find()?;
        let dir = self.dir.to_string_lossy();
        if base.ensurepip {
            return sh::run(sh::cmd(base.program, &["-m", "venv", "--clear", &dir]));
        }
        if !base.pip {
            bail!(NO_VENV);
        }
        // A Python without ensurepip but with pip: pip can put itself into the environment.
        let venv = ["-m", "venv", "--clear", "--without-pip", &dir];
        sh::run(sh::cmd(&base.program, &venv))?;
        let python = self.program("python");
        let python = python.to_string_lossy();
        let pip = ["-m", "pip", "--python", &python, "install", "--quiet", "pip"];
        sh::run(sh::cmd(&base.program, &pip)).context(NO_VENV)
    }

    /// The path of a program of the environment.
    pub fn program(&self, name: &str) -> PathBuf {
        self.dir.join("bin").join(name)
    }

    /// The environment's Python with arguments. Programs installed beside it, such as maturin,
    /// are found first.
    pub fn python(&self, args: &[&str]) -> Command {
        let mut command = sh::cmd(self.program("python"), args);
        let others = std::env::var_os("PATH").unwrap_or_default();
        let paths = std::iter::once(self.dir.join("bin")).chain(std::env::split_paths(&others));
        if let Ok(path) = std::env::join_paths(paths) {
            command.env("PATH", path);
        }
        command.env("PYTHONUNBUFFERED", "1");
        command
    }

    /// `pip install`, quietly.
    pub fn pip_install(&self, args: &[&str]) -> Result<()> {
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
        sh::run(self.python(&[&pip[..], args].concat()))
    }

    /// Installs the pinned packages of `python/requirements/{list}.txt`, unless this very
    /// list is installed already.
    pub fn require(&self, list: &str) -> Result<()> {
        self.require_with(list, &[])
    }

    /// The same, tried again once: for large packages, whose download may break off. They are not
    /// compiled to bytecode; most of it is never imported.
    pub fn require_large(&self, list: &str) -> Result<()> {
        let install = || self.require_with(list, &["--no-compile"]);
        install().or_else(|_| install())
    }

    fn require_with(&self, list: &str, options: &[&str]) -> Result<()> {
        let file = format!("python/requirements/{list}.txt");
        let text = std::fs::read_to_string(sh::root().join(&file))
            .with_context(|| format!("cannot read {file}"))?;
        self.once(list, hash(&text), || {
            sh::say(&format!("installing the Python packages of {file}"));
            self.pip_install(&[options, &["-r", &file]].concat())
        })
    }

    /// Builds our package and installs it, unless nothing that goes into it has changed.
    /// The build uses cargo's own target directory, so what the Rust tests built is not built again.
    pub fn install_ours(&self) -> Result<()> {
        self.once("ultramarine", hash(&sources()?), || {
            sh::say("building and installing the Python package ultramarine");
            self.pip_install(&["--no-build-isolation", "--no-deps", "--force-reinstall", "."])
        })
    }

    /// Runs `work` unless it was done for the files of the tree that `goes_in` picks, as they are now.
    pub fn once_for(
        &self,
        name: &str,
        goes_in: impl Fn(&Path) -> bool,
        work: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        self.once(name, hash(&files(goes_in)?), work)
    }

    /// Runs `work` unless the stamp `name` says that it was done for this very `state`.
    fn once(&self, name: &str, state: u64, work: impl FnOnce() -> Result<()>) -> Result<()> {
        let stamp = self.dir.join(format!("{name}.stamp"));
        let state = format!("{state:016x}");
        if std::fs::read_to_string(&stamp).is_ok_and(|was| was == state) {
            return Ok(());
        }
        work()?;
        std::fs::write(&stamp, state).with_context(|| format!("cannot write {}", stamp.display()))
    }
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// A file with its size and its time of change.
type Seen = (PathBuf, u64, u128);

/// Every file that goes into the Python package.
fn sources() -> Result<Vec<Seen>> {
    files(|f| {
        let tests = f.starts_with("python/tests") || f.starts_with("python/requirements");
        let code = f.starts_with("crates") || f.starts_with("python");
        let manifest =
            ["Cargo.toml", "Cargo.lock", "pyproject.toml"].iter().any(|m| f == Path::new(m));
        (code && !tests) || manifest
    })
}

/// The files of the tree that `goes_in` picks.
fn files(goes_in: impl Fn(&Path) -> bool) -> Result<Vec<Seen>> {
    let mut list = Vec::new();
    for file in sh::tree()?.into_iter().filter(|f| goes_in(f)) {
        let about = std::fs::metadata(sh::root().join(&file))?;
        let changed = about.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
        list.push((file, about.len(), changed.as_nanos()));
    }
    Ok(list)
}
