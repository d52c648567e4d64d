//! Primitives in C and C++ against the headers, with a fake host: exceptions end at the boundary, handles are released.

use crate::compile;
use std::path::{Path, PathBuf};
use std::process::Command;

#[test]
fn exceptions_end_at_the_boundary_and_handles_are_released() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("extension-in-cpp");
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".into());
    let mut command = Command::new(compiler);
    command.args([
        "-std=c++11",
        "-O1",
        "-g",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-pedantic",
        "-pthread",
    ]);
    command.arg("-I").arg(root.join("include"));
    compile::run(
        command.arg(root.join("tests/integration/extension/in_cpp.cpp")).arg("-o").arg(&program),
    );
    compile::run(&mut Command::new(&program));
}
