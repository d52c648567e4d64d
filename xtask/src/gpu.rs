//! `cargo xtask gpu`: makes the bundle in `target/gpu`. With it, a machine with a GPU but without
//! Rust checks and times the CUDA backend and the Vulkan backend.

use crate::plugins::{self, Built};
use crate::profile::Profile;
use crate::python::{DLPACK_CHECK, ULTRAMARINE, Venv};
use crate::sh;
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};

/// The most bytes of bundle and tree together, which is the limit of a transfer to the GPU machine.
const MOST: u64 = 64 << 20;

/// Python packages for the machine, as wheels.
const WHEELS: &str = "testing/gpu-checks/wheels.txt";

/// The programs of bench/native that the machine runs. Those that contain the whole core are too
/// large for the bundle.
const BENCHES: [&str; 2] = ["limits", "gemm"];

/// Builds with the profile `release` and lays out the bundle.
pub fn run() -> Result<()> {
    let to = sh::root().join("target/gpu");
    if to.exists() {
        std::fs::remove_dir_all(&to).context("cannot remove the old target/gpu")?;
    }
    programs(&to)?;
    packages(&to)?;
    pack(&to)?;
    wheels(&to.join("wheels"))?;
    std::fs::write(to.join("commit"), commit()?)?;
    let (bundle, tree) = (size(&to)?, tree_size()?);
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    println!("target/gpu: {:.1} MiB; the tree: {:.1} MiB", mib(bundle), mib(tree));
    if bundle + tree > MOST {
        bail!("more than {:.0} MiB together. Leave out wheels or programs.", mib(MOST));
    }
    println!("Bring both to a machine with a GPU, and run there");
    println!("    python3 testing/gpu-checks/check.py --out DIR");
    Ok(())
}

/// The plugins, the kit and the native benchmarks.
fn programs(to: &Path) -> Result<()> {
    // The Vulkan backend is in a separate directory, so that usual runs have only one backend for
    // the GPU.
    for (built, place) in [
        (plugins::cuda(Profile::Release)?, "backends/libultramarine-cuda.so"),
        (plugins::vulkan(Profile::Release)?, "vulkan/libultramarine-vulkan.so"),
    ] {
        let Built::At(plugin) = built else { bail!("{place} was not built") };
        copy_stripped(&plugin, &to.join(place))?;
    }
    for program in ["ultramarine-conform"].iter().chain(&BENCHES) {
        copy_stripped(&Profile::Release.folder().join(program), &to.join("bin").join(program))?;
    }
    Ok(())
}

/// Python packages with their extension modules: ultramarine, the DLPack checks, the example axpby.
fn packages(to: &Path) -> Result<()> {
    for package in [ULTRAMARINE, DLPACK_CHECK] {
        let folder = to.join("site").join(package.import_name());
        strip(&package.copy_to(&folder, Profile::Release)?)?;
    }
    let axpby = sh::root().join("examples/extensions/axpby");
    let mut extension = sh::cargo(&["build", "--release", "--quiet", "--target-dir", "target"]);
    extension.current_dir(&axpby);
    sh::run(extension)?;
    let package = to.join("site/ultramarine_axpby");
    sh::copy_tree(&axpby.join("python/ultramarine_axpby"), &package)?;
    copy_stripped(&axpby.join("target/release/lib_native.so"), &package.join("_native.abi3.so"))
}

/// Packs programs and packages, which are most of the bundle, into one compressed file. The check
/// on the machine unpacks it.
fn pack(to: &Path) -> Result<()> {
    const PARTS: [&str; 4] = ["backends", "bin", "site", "vulkan"];
    let (folder, file) = (to.to_string_lossy(), to.join("programs.tar.gz"));
    let words = ["-C", &folder, "-czf", &file.to_string_lossy()];
    sh::run(sh::cmd("tar", &[&words[..], &PARTS].concat()))?;
    PARTS.iter().try_for_each(|part| {
        std::fs::remove_dir_all(to.join(part)).with_context(|| format!("cannot remove {part}"))
    })
}

/// Downloads the wheels that the machine may lack. Wheels of an earlier call are reused.
fn wheels(to: &Path) -> Result<()> {
    let kept = sh::root().join("target/gpu-wheels");
    let venv = Venv::open(".venv")?;
    let download = || {
        if kept.exists() {
            std::fs::remove_dir_all(&kept)?;
        }
        let folder = kept.to_string_lossy();
        let what = ["-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"];
        let python = ["--python-version", "3.12", "--implementation", "cp"];
        let place = ["--dest", &folder, "-r", WHEELS];
        let mut args = [&what[..], &python, &place].concat();
        // pip needs the exact name of a platform.
        let platforms: Vec<String> =
            [39, 35, 34, 28, 27, 17].iter().map(|n| format!("manylinux_2_{n}_x86_64")).collect();
        for platform in platforms.iter().map(String::as_str).chain(["manylinux2014_x86_64"]) {
            args.extend(["--platform", platform]);
        }
        sh::run(venv.python(&args))
    };
    match kept.is_dir() {
        true => venv.once_for("gpu-wheels", |file| file == Path::new(WHEELS), download)?,
        false => download()?,
    }
    sh::copy_tree(&kept, to)
}

/// Returns the commit, followed by `-changed` if files differ, in the format of `bench/record.py`.
fn commit() -> Result<String> {
    let hash = sh::read(sh::cmd("git", &["rev-parse", "--short=9", "HEAD"]))?;
    let changed = sh::read(sh::cmd("git", &["status", "--porcelain", "--untracked-files=no"]))?;
    let suffix = if changed.trim().is_empty() { "" } else { "-changed" };
    Ok(format!("{}{suffix}\n", hash.trim()))
}

fn copy_stripped(from: &Path, to: &Path) -> Result<()> {
    sh::copy(from, to)?;
    strip(to)
}

/// Removes the symbols of a program or a library, which take most of its space.
fn strip(file: &Path) -> Result<()> {
    sh::run(sh::cmd("strip", &["--strip-unneeded", &file.to_string_lossy()]))
}

fn list(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries =
        std::fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    entries.map(|entry| Ok(entry?.path())).collect()
}

/// The bytes of all files in a folder.
fn size(folder: &Path) -> Result<u64> {
    list(folder)?.iter().try_fold(0, |sum, path| {
        Ok(sum + if path.is_dir() { size(path)? } else { std::fs::metadata(path)?.len() })
    })
}

/// Returns the bytes of the files that git tracks or would add.
fn tree_size() -> Result<u64> {
    let sizes = sh::tree()?.into_iter().map(|file| std::fs::metadata(sh::root().join(file)));
    sizes.map(|about| Ok(about?.len())).sum()
}
