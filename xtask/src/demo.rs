//! `cargo xtask demo`: the project's main job on real data.

use crate::python::Venv;
use crate::sh;
use anyhow::Result;

/// Builds, makes `.venv`, trains on the digits and says where figure and weights are.
pub fn run() -> Result<()> {
    let venv = Venv::open(".venv")?;
    venv.require("demo")?;
    venv.install_wheel()?;
    sh::say("examples/digits.py");
    sh::run(venv.python(&["examples/digits.py"]))
}
