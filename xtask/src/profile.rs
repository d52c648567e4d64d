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

    /// `cargo {command}` of the whole workspace, with further arguments. Commands that select the same packages and
    /// features share what they build, so all that tests run is built by way of this.
    pub fn workspace(self, command: &str, args: &[&str]) -> Command {
        let mut cargo = sh::cargo(&[command, "--workspace", &self.argument()]);
        // Otherwise the Python modules would want a library of Python to link with.
        cargo.args(["--features", "ultramarine-python/extension-module"]).args(args);
        cargo
    }

    /// `cargo build` of all libraries of the workspace.
    pub fn libraries(self) -> Command {
        // A small test beside them: only so have dependencies the features that those of tests ask for, and are not
        // built a second time.
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

    /// The folder of what cargo builds with it.
    pub fn folder(self) -> PathBuf {
        sh::root().join("target").join(self.name())
    }
}
