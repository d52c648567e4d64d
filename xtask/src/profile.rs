//! The two profiles that commands build with.

use crate::sh;
use anyhow::Result;
use std::path::PathBuf;
use std::process::Command;

/// A profile of the workspace's Cargo.toml.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// The profile of tests: optimised, with debug assertions and overflow checks.
    Checked,
    /// The profile of packages and benches.
    Release,
}

impl Profile {
    /// The profile's name.
    pub fn name(self) -> &'static str {
        match self {
            Profile::Checked => "checked",
            Profile::Release => "release",
        }
    }

    /// Cargo's argument that chooses the profile.
    pub fn argument(self) -> String {
        format!("--profile={}", self.name())
    }

    /// Returns `cargo {command}` for the whole workspace, with further arguments. Commands that
    /// select the same packages and features share their builds, so everything that tests run is
    /// built by this function.
    pub fn workspace(self, command: &str, args: &[&str]) -> Command {
        let mut cargo = sh::cargo(&[command, "--workspace", &self.argument()]);
        // Without this feature, the Python modules would have to be linked with a library of
        // Python.
        cargo.args(["--features", "ultramarine-python/extension-module"]).args(args);
        cargo
    }

    /// `cargo build` of all libraries of the workspace.
    pub fn libraries(self) -> Command {
        // Also build a small test, so that dependencies get the features that the tests request,
        // and are not built a second time.
        self.workspace("build", &["--quiet", "--lib", "--test", "schema"])
    }

    /// Builds all libraries of the workspace, and the programs that tests and the bundle for GPUs run.
    pub fn build(self) -> Result<()> {
        let mut build = self.libraries();
        for program in ["ultramarine-conform", "ultramarine-probe", "limits", "gemm"] {
            build.args(["--bin", program]);
        }
        sh::run(build)
    }

    /// Returns the directory with the profile's builds.
    pub fn folder(self) -> PathBuf {
        sh::root().join("target").join(self.name())
    }
}
