//! Python: finding it, making environments, and installing packages and the project's own package
//! in them.

use crate::profile::Profile;
use crate::sh;
use anyhow::{Context, Result, bail};
use std::collections::hash_map::DefaultHasher;
use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
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

/// A Python interpreter of version 3.11 or newer, and if it has `ensurepip` and `pip`.
struct Base {
    program: PathBuf,
    ensurepip: bool,
    pip: bool,
}

/// Finds the first usable interpreter on the path.
fn find() -> Result<Base> {
    const PROBE: &str = "import sys, importlib.util as u; assert sys.version_info >= (3, 11); \
        print(sys.executable); print(*(u.find_spec(m) is not None for m in ('ensurepip', 'pip')))";
    let names = std::iter::once("python3".to_owned())
        .chain((11..=15).map(|minor| format!("python3.{minor}")));
    for name in names {
        let Ok(printed) = sh::read(sh::cmd(&name, &["-c", PROBE])) else {
            continue;
        };
        let mut words = printed.split_whitespace();
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

/// A Python package of this repository with a module in Rust.
pub struct Package {
    /// Its name in a package index.
    name: &'static str,
    /// Its Python files, in a directory with the name that is imported.
    folder: &'static str,
    /// The library that cargo builds.
    library: &'static str,
    /// The module's file in the package.
    module: &'static str,
}

/// The package of this project.
pub const ULTRAMARINE: Package = Package {
    name: "ultramarine",
    folder: "python/ultramarine",
    library: "_core",
    module: "_core.abi3.so",
};

/// The DLPack checks for any library.
pub const DLPACK_CHECK: Package = Package {
    name: "ultramarine-dlpack-check",
    folder: "crates/ultramarine-dlpack-check/python/ultramarine_dlpack_check",
    library: "_lab",
    module: "_lab.abi3.so",
};

impl Package {
    /// Returns the module that cargo has built.
    pub fn built(&self, profile: Profile) -> PathBuf {
        let name = [DLL_PREFIX, self.library, DLL_SUFFIX].concat();
        profile.folder().join(name)
    }

    /// The name that it is imported by.
    pub fn import_name(&self) -> &str {
        self.folder.rsplit('/').next().unwrap_or(self.folder)
    }

    /// Writes the metadata of an installed package beside its directory, because other packages may
    /// depend on it.
    fn describe(&self, folder: &Path) -> Result<()> {
        let about = format!("{}-{}.dist-info", self.import_name(), env!("CARGO_PKG_VERSION"));
        let name = self.import_name();
        let metadata = format!(
            "Metadata-Version: 2.1\nName: {}\nVersion: {}\n",
            self.name,
            env!("CARGO_PKG_VERSION")
        );
        // The files that pip removes. The directory itself is removed with its content.
        let files = format!("{name}/__init__.py,,\n{about}/METADATA,,\n{about}/RECORD,,\n");
        let about = folder.with_file_name(about);
        std::fs::create_dir_all(&about)?;
        std::fs::write(about.join("METADATA"), metadata)?;
        std::fs::write(about.join("RECORD"), files)
            .with_context(|| format!("cannot write to {}", about.display()))
    }

    /// Copies the files in Python and the module to the folder `to`. Returns the module's path.
    pub fn copy_to(&self, to: &Path, profile: Profile) -> Result<PathBuf> {
        sh::copy_tree(&sh::root().join(self.folder), to)?;
        let module = to.join(self.module);
        sh::copy(&self.built(profile), &module)?;
        Ok(module)
    }
}

/// A virtual environment in the repository.
pub struct Venv {
    dir: PathBuf,
}

impl Venv {
    /// Opens the environment `name` under the root, and makes it if it is missing.
    pub fn open(name: &str) -> Result<Venv> {
        let venv = Venv { dir: sh::root().join(name) };
        let usable = sh::read(sh::cmd(venv.program("python"), &["-m", "pip", "--version"]));
        if usable.is_err() {
            sh::say(&format!("making {name}"));
            venv.make()?;
        }
        Ok(venv)
    }

    /// Makes the environment `name` anew.
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
        // If a Python has pip but no ensurepip, its pip can install itself into the environment.
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
        sh::run(self.pip(args))
    }

    /// `pip install`, using only the package index in a directory.
    pub fn pip_install_from(&self, index: &Path, packages: &[String]) -> Result<()> {
        let packages: Vec<&str> = packages.iter().map(String::as_str).collect();
        let mut pip = self.pip(&packages);
        pip.env("PIP_INDEX_URL", format!("file://{}", index.display()));
        pip.env_remove("PIP_EXTRA_INDEX_URL").env_remove("PIP_FIND_LINKS");
        sh::run(pip)
    }

    fn pip(&self, args: &[&str]) -> Command {
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
        self.python(&[&pip[..], args].concat())
    }

    /// Installs the pinned packages of `python/requirements/{list}.txt`, unless exactly this list
    /// is installed already.
    pub fn require(&self, list: &str) -> Result<()> {
        self.require_with(list, &[])
    }

    /// Like [`Venv::require`], but tries once more after a failure, because downloads of large
    /// packages may break off. The packages are not compiled to bytecode, because most of it is
    /// never imported.
    pub fn require_large(&self, list: &str) -> Result<()> {
        let install = || self.require_with(list, &["--no-compile"]);
        install().or_else(|_| install())
    }

    /// Like [`Venv::require`], but without the packages' dependencies.
    pub fn require_alone(&self, list: &str) -> Result<()> {
        let install = || self.require_with(list, &["--no-compile", "--no-deps"]);
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

    /// Builds the wheel of `ultramarine` as a user does and installs it, unless its inputs are
    /// unchanged.
    pub fn install_wheel(&self) -> Result<()> {
        self.once("ultramarine", hash(&("release", files_where(goes_in)?)), || {
            sh::say("building and installing the Python package ultramarine");
            self.remove(&ULTRAMARINE)?;
            self.pip_install(&["--no-build-isolation", "--no-deps", "--force-reinstall", "."])
        })
    }

    /// Lays out a package for the tests, with the module that `cargo build` left in the profile's
    /// directory. maturin would build the whole workspace again, because it selects other packages
    /// and therefore other features.
    pub fn lay_out(&self, package: &Package, profile: Profile) -> Result<()> {
        let built = package.built(profile);
        let about = std::fs::metadata(&built)
            .with_context(|| format!("cargo build left no {}", built.display()))?;
        let state = (profile.name(), about.len(), about.modified()?, files(package.folder)?);
        self.once(package.name, hash(&state), || {
            let folder = self.remove(package)?;
            package.copy_to(&folder, profile)?;
            package.describe(&folder)
        })
    }

    /// Removes an installed package, however it was installed. Returns the directory that it has
    /// when installed.
    fn remove(&self, package: &Package) -> Result<PathBuf> {
        let pip = ["-m", "pip", "uninstall", "--quiet", "--yes", package.name];
        sh::read(self.python(&[&pip[..], &["--disable-pip-version-check"]].concat()))?;
        const SITE: &str = "import sysconfig; print(sysconfig.get_path('platlib'))";
        let site = sh::read(self.python(&["-c", SITE]))?;
        let folder = Path::new(site.trim()).join(package.import_name());
        if folder.exists() {
            std::fs::remove_dir_all(&folder)
                .with_context(|| format!("cannot remove {}", folder.display()))?;
        }
        Ok(folder)
    }

    /// Runs `work`, unless it was done already for the present content of the files that `goes_in`
    /// picks.
    pub fn once_for(
        &self,
        name: &str,
        goes_in: impl Fn(&Path) -> bool,
        work: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        self.once(name, hash(&files_where(goes_in)?), work)
    }

    /// Runs `work`, unless the stamp `name` shows that it was done for exactly this `state`.
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

/// A file with its size and its modification time.
type Seen = (PathBuf, u64, u128);

/// Returns true if a file of the tree goes into the wheel.
fn goes_in(file: &Path) -> bool {
    let tests = file.components().any(|folder| folder.as_os_str() == "tests");
    let code = file.starts_with("crates") || file.starts_with("python");
    let manifest =
        ["Cargo.toml", "Cargo.lock", "pyproject.toml"].iter().any(|m| file == Path::new(m));
    (code && !tests) || manifest
}

/// The files of the tree in a folder.
fn files(folder: &str) -> Result<Vec<Seen>> {
    files_where(|file| file.starts_with(folder))
}

/// The files of the tree that `goes_in` picks.
fn files_where(goes_in: impl Fn(&Path) -> bool) -> Result<Vec<Seen>> {
    let mut list = Vec::new();
    for file in sh::tree()?.into_iter().filter(|f| goes_in(f)) {
        let about = std::fs::metadata(sh::root().join(&file))?;
        let changed = about.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
        list.push((file, about.len(), changed.as_nanos()));
    }
    Ok(list)
}
