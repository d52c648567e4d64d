//! The contract is the same in Rust, C and C++, and the same as it was: sizes and offsets of
//! every struct against `layout.golden`, and every constant of the headers against Rust's.
//!
//! A wanted change is written to the golden file by
//! `ULTRAMARINE_WRITE_GOLDEN=1 cargo test --profile checked -p ultramarine-abi layout`.

mod constants;
mod structs;

use std::path::{Path, PathBuf};
use std::process::Command;

/// A C and a C++ compiler, with the standards that the headers keep to.
const COMPILERS: [(&str, &str, &[&str]); 2] =
    [("CC", "cc", &["-std=c11", "-x", "c"]), ("CXX", "c++", &["-std=c++11", "-x", "c++"])];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Compiles a program against the headers, runs it, and gives what it prints.
fn output(variable: &str, compiler: &str, flags: &[&str], name: &str, source: &str) -> String {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let file = folder.join(format!("{name}-{compiler}.c"));
    let program = folder.join(format!("{name}-{compiler}"));
    std::fs::write(&file, source).unwrap();
    let compiler = std::env::var(variable).unwrap_or_else(|_| compiler.into());
    let made = Command::new(&compiler)
        .args(["-Wall", "-Wextra", "-Werror", "-pedantic"])
        .args(flags)
        .arg("-I")
        .arg(root().join("include"))
        .arg(&file)
        .arg("-o")
        .arg(&program)
        .output()
        .unwrap_or_else(|e| panic!("{compiler}: {e}"));
    assert!(made.status.success(), "{compiler}:\n{}", String::from_utf8_lossy(&made.stderr));
    let ran = Command::new(&program).output().unwrap();
    assert!(ran.status.success());
    String::from_utf8(ran.stdout).unwrap()
}

/// The first lines in which two texts differ.
fn difference(want: &str, got: &str) -> String {
    let (want, got): (Vec<_>, Vec<_>) = (want.lines().collect(), got.lines().collect());
    let missing = want.iter().filter(|l| !got.contains(l)).map(|l| format!("- {l}"));
    let new = got.iter().filter(|l| !want.contains(l)).map(|l| format!("+ {l}"));
    missing.chain(new).take(20).collect::<Vec<_>>().join("\n")
}

#[test]
fn layouts_are_what_they_were() {
    let golden = root().join("tests/integration/layout/layout.golden");
    let rust = structs::rust();
    if std::env::var_os("ULTRAMARINE_WRITE_GOLDEN").is_some() {
        std::fs::write(&golden, &rust).unwrap();
    }
    let want = std::fs::read_to_string(&golden).unwrap();
    assert!(rust == want, "Rust differs from the golden file:\n{}", difference(&want, &rust));
    for (variable, compiler, flags) in COMPILERS {
        let got = output(variable, compiler, flags, "structs", &structs::c());
        assert!(got == want, "{compiler} differs:\n{}", difference(&want, &got));
    }
}

#[test]
fn constants_are_those_of_the_headers() {
    let table = constants::all();
    // Every constant of the headers is in the table, so none can be forgotten there.
    let defined = constants::defined(&root().join("include/ultramarine"));
    let known: Vec<&str> = table.iter().map(|(name, _)| name.as_str()).collect();
    let unknown: Vec<_> = defined.iter().filter(|d| !known.contains(&d.as_str())).collect();
    assert!(unknown.is_empty(), "not compared with Rust: {unknown:?}");
    assert!(defined.len() > 150, "{}", defined.len());

    let want = constants::lines(&table);
    for (variable, compiler, flags) in COMPILERS {
        let got = output(variable, compiler, flags, "constants", &constants::c(&table));
        assert!(got == want, "{compiler} differs:\n{}", difference(&want, &got));
    }
}

#[test]
fn entry_points_are_declared_under_their_symbols() {
    use ultramarine_abi::symbol;
    let text = |s: &std::ffi::CStr| s.to_str().unwrap().to_owned();
    let source = format!(
        "#include <ultramarine/backend.h>
typedef um_status (*um_info_fn)(um_backend_abi_info *);
typedef um_status (*um_score_fn)(um_backend_score *);
typedef um_status (*um_init_fn)(const um_host_table *, um_backend_table *, um_error **);
um_status {info}(um_backend_abi_info *info) {{ (void)info; return 0; }}
um_status {score}(um_backend_score *score) {{ (void)score; return 0; }}
um_status {init}(const um_host_table *host, um_backend_table *table, um_error **error) {{
  (void)host, (void)table, (void)error;
  return 0;
}}
int main(void) {{
  um_info_fn info = {info};
  um_score_fn score = {score};
  um_init_fn init = {init};
  return info(0) + score(0) + init(0, 0, 0);
}}
",
        info = text(symbol::ABI_INFO),
        score = text(symbol::SCORE),
        init = text(symbol::INIT),
    );
    for (variable, compiler, flags) in COMPILERS {
        output(variable, compiler, flags, "symbols", &source);
    }
}

#[test]
fn a_header_of_dlpack_itself_goes_first() {
    // Any that is found, whatever is in it: here one with another type of tensors.
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("another-dlpack");
    std::fs::create_dir_all(folder.join("dlpack")).unwrap();
    let text = "#define DLPACK_DLPACK_H_\ntypedef int DLTensor;\n";
    std::fs::write(folder.join("dlpack/dlpack.h"), text).unwrap();
    let include = format!("-I{}", folder.display());
    let rest = "#include <ultramarine/dlpack.h>\n#include <ultramarine/dlpack.h>
int main(void) { DLTensor tensor = 0; return tensor; }\n";
    for (variable, compiler, flags) in COMPILERS {
        let found = [flags, &[&include]].concat();
        output(variable, compiler, &found, "dlpack-found", rest);
        // Under another name, before ours.
        let before = format!("#include \"{}/dlpack/dlpack.h\"\n{rest}", folder.display());
        output(variable, compiler, flags, "dlpack-before", &before);
    }
}
