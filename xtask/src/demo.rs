//! `cargo xtask demo`: the project's main job on real data.

use crate::python::Venv;
use crate::sh;
use anyhow::Result;

/// The programs, in the order in which they run. Each prints where it stores its trained model.
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
