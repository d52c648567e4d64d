//! `cargo xtask demo`: the project's main job on real data.

use crate::python::Venv;
use crate::sh;
use anyhow::Result;

/// Programs that run, in this order. Each says where it leaves what it has learnt.
const EXAMPLES: [&str; 2] = ["examples/digits.py", "examples/text.py"];

/// Builds, makes `.venv`, and trains two models: one of handwritten digits, one of a book's text.
pub fn run() -> Result<()> {
    let venv = Venv::open(".venv")?;
    venv.require("demo")?;
    venv.install_wheel()?;
    for example in EXAMPLES {
        sh::say(example);
        sh::run(venv.python(&[example]))?;
    }
    Ok(())
}
