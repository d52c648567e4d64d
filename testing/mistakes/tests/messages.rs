//! The compiler's messages about likely mistakes: each program of `cases` fails with the message beside it, and the table
//! of docs/rust.md has them all. After a change that is meant, write the messages anew:
//!
//! ```sh
//! TRYBUILD=overwrite cargo test -p ultramarine-mistakes
//! ```
//!
//! Messages differ from one compiler to the next, so they are compared with the workspace's `rust-version` alone.

use std::path::Path;
use std::process::Command;
use ultramarine::transforms::grad;
use ultramarine::{Array, Dtype, Result, concatenate, eval, index};
use ultramarine_nn::{Layer, Linear, Param};

const PAGE: &str = include_str!("../../../docs/rust.md");

#[test]
fn messages() {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = Command::new(rustc).arg("--version").output().expect("rustc starts").stdout;
    let version = String::from_utf8_lossy(&version);
    if !version.starts_with(concat!("rustc ", env!("CARGO_PKG_RUST_VERSION"), ".")) {
        eprintln!("SKIPPED: the messages are those of Rust {}", env!("CARGO_PKG_RUST_VERSION"));
        return;
    }
    trybuild::TestCases::new().compile_fail("tests/cases/*/*.rs");
}

/// The rows of the page's table: three cells each.
fn rows() -> Vec<[String; 3]> {
    let (_, section) = PAGE.split_once("| the compiler says |").expect("the table's head");
    let rows = section.lines().skip(2).take_while(|line| line.starts_with('|'));
    rows.map(|row| {
        let row = row.replace("\\|", "\0");
        let cells = row.trim_matches('|').split('|').map(|cell| cell.trim().replace('\0', "|"));
        cells.collect::<Vec<_>>().try_into().expect("three cells")
    })
    .collect()
}

/// The page has the first line of each message, with short names of types.
#[test]
fn page_has_the_messages() {
    let rows = rows();
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let folders = std::fs::read_dir(cases).expect("the cases").map(|folder| folder.unwrap().path());
    let files = folders.flat_map(|folder| std::fs::read_dir(folder).unwrap());
    let mut found = 0;
    for file in files
        .map(|file| file.unwrap().path())
        .filter(|path| path.extension() == Some("stderr".as_ref()))
    {
        for line in std::fs::read_to_string(&file).unwrap().lines() {
            let Some((_, message)) = line.strip_prefix("error").and_then(|l| l.split_once(": "))
            else {
                continue;
            };
            let left_out = ["ultramarine::", "std::ops::", " in the current scope"];
            let message = left_out.iter().fold(message.to_owned(), |m, part| m.replace(part, ""));
            assert!(
                rows.iter().any(|[says, ..]| says.contains(&message)),
                "docs/rust.md lacks `{message}` of {}",
                file.display()
            );
            found += 1;
        }
    }
    assert!(found >= 20, "{found} messages");
}

/// The page's remedies compile: they are lines of [`remedies`].
#[test]
fn remedies_compile() {
    let here = include_str!("messages.rs");
    for [says, _, write] in rows() {
        for remedy in write.split('`').skip(1).step_by(2) {
            assert!(here.contains(remedy), "no line of this file for {says}: {remedy}");
        }
    }
    remedies().unwrap();
}

#[rustfmt::skip]
#[allow(clippy::print_stdout)] // A mistake to show is about printing.
fn remedies() -> Result<()> {
    let x = Array::ones(&[2, 3], Dtype::Float32)?;
    (&x * 2.0)?.reshape(&[6])?;
    (&x * 2.0)?.sum(..)?;
    ((&x * 2.0)? + 1.0)?;
    ((&x * 2.0)? + &x * 3.0)?;
    (&x * 2.0f32)?;
    (2.0 * &x)?;
    (&x + Array::from_slice(&[1.0f32, 2.0, 3.0], &[3])?)?;
    (&x + 1.0)?;
    let mut y = x.clone();
    if x.array_equal(&y, false)?.item::<bool>()? { eval([&y])?; }
    y = (y + 1.0)?;
    Linear::new(3, 2)?.forward(&(&x * 2.0)?)?;
    println!("{}", (&x + &y)?);
    x.index(index![0])?;
    x.index(index![0..2])?;
    x.index(index![0..2, ..])?;
    x.sum(0)?;
    concatenate([&x, &x], 0)?;
    eval([&x])?;
    Array::from_slice(&[1.0f32, 2.0, 3.0, 4.0], &[2, 2])?;
    x.sum(..)?.item::<f32>()?;
    for i in 0..2 { x.index(index![i])?; }
    grad(|x: &Array| x.square()?.sum(..))(&x)?;
    let scale: Param = Param::from(x);
    eval([&scale])?;
    Ok(())
}
