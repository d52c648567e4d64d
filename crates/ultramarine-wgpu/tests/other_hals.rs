//! Programs as the other hals have them. `ULTRAMARINE_WGPU_SOURCES` names the directory to which a run with this variable
//! wrote them, of the conformance kit say; without it the test says that it is skipped.

use std::path::PathBuf;
use ultramarine_wgpu::shader::compile::{Zeros, parse};
use ultramarine_wgpu::shader::{hlsl, msl};

/// The texts and the bindings whose elements are bytes.
fn programs() -> Vec<(PathBuf, String, Vec<u32>)> {
    let Some(directory) = std::env::var_os("ULTRAMARINE_WGPU_SOURCES") else {
        #[allow(clippy::print_stderr, reason = "a test that does not run says so")]
        {
            eprintln!("SKIPPED: ULTRAMARINE_WGPU_SOURCES is not set");
        }
        return Vec::new();
    };
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "wgsl") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let (_, bytes) = text.rsplit_once("// bytes: ").expect("the line of bytes");
        let bytes = bytes.trim().trim_matches(['[', ']']).split(", ");
        let bytes = bytes.filter(|b| !b.is_empty()).map(|b| b.parse().unwrap()).collect();
        found.push((path, text, bytes));
    }
    assert!(!found.is_empty(), "a directory without programs");
    found
}

/// Those hals have no float64, and no backend of theirs says that it has.
fn has_float64(text: &str) -> bool {
    text.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| word == "f64")
}

#[test]
fn all_programs_are_written_in_msl_and_hlsl() {
    let mut wrong = Vec::new();
    let mut written = 0;
    for (path, text, bytes) in programs() {
        if has_float64(&text) {
            continue;
        }
        let parsed = parse(&text).unwrap();
        let mut keep = |extension: &str, made: Result<String, String>| match made {
            Ok(source) => std::fs::write(path.with_extension(extension), source).unwrap(),
            Err(why) => wrong.push(format!("{} in {extension}: {why}", path.display())),
        };
        keep("metal", msl::write(&parsed, "main", Zeros::Left, &bytes).map(|text| text.source));
        keep("hlsl", hlsl::write(&parsed, "main", Zeros::Left).map(|text| text.source));
        written += 1;
    }
    assert!(wrong.is_empty(), "{} of {written}:\n{}", wrong.len(), wrong.join("\n"));
}
