//! C and C++ of these tests, compiled against the contract's headers.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs a command that must succeed.
pub fn run(command: &mut Command) {
    let done = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    assert!(done.status.success(), "{command:?}\n{}", String::from_utf8_lossy(&done.stderr));
}

/// Compiles `tests/integration/{source}` with more flags, to a library of its own name.
pub fn library(source: &str, name: &str, flags: &[&str]) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let to = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("libultramarine-{name}.so"));
    let (variable, compiler, standard) = match source.ends_with(".cpp") {
        true => ("CXX", "c++", "-std=c++11"),
        false => ("CC", "cc", "-std=c11"),
    };
    let compiler = std::env::var(variable).unwrap_or_else(|_| compiler.into());
    let mut command = Command::new(compiler);
    command.args([standard, "-O1", "-Wall", "-Wextra", "-Werror", "-pedantic"]);
    command.args(["-fPIC", "-shared", "-fvisibility=hidden", "-pthread"]).args(flags);
    command.arg("-I").arg(root.join("include"));
    run(command.arg(root.join("tests/integration").join(source)).arg("-o").arg(&to));
    to
}
