//! `cargo xtask generate`: generates the C header, the Rust constants, the table of operations for
//! tools, and their documentation from `crates/ultramarine-abi/schema.toml`.

mod c;
mod docs;
mod read;
mod rust;

use crate::sh;
use anyhow::{Context, Result, bail};
use std::path::Path;

const SCHEMA: &str = "crates/ultramarine-abi/schema.toml";

/// Path and content of every generated file.
fn files() -> Result<Vec<(&'static str, String)>> {
    let path = sh::root().join(SCHEMA);
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {SCHEMA}"))?;
    let schema = read::schema(&text).with_context(|| format!("in {SCHEMA}"))?;
    Ok(vec![
        ("crates/ultramarine-abi/include/ultramarine/schema.h", c::header(&schema)),
        ("crates/ultramarine-abi/src/schema/attribute_structs.rs", rust::attributes(&schema)),
        ("crates/ultramarine-abi/src/schema/codes.rs", rust::codes(&schema)),
        ("crates/ultramarine-abi/src/schema/table.rs", rust::table(&schema)),
        ("docs/operations.md", docs::page(&schema)),
    ])
}

/// Writes the files that differ.
pub fn run() -> Result<()> {
    for (name, text) in files()? {
        let path = sh::root().join(name);
        if std::fs::read_to_string(&path).is_ok_and(|old| old == text) {
            println!("unchanged  {name}");
            continue;
        }
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        std::fs::write(&path, text).with_context(|| format!("cannot write {name}"))?;
        println!("written    {name}");
    }
    Ok(())
}

/// Fails if a generated file differs from the schema.
pub fn check() -> Result<()> {
    let stale: Vec<_> = files()?
        .into_iter()
        .filter(|(name, text)| {
            let path: &Path = &sh::root().join(name);
            !std::fs::read_to_string(path).is_ok_and(|old| old == *text)
        })
        .map(|(name, _)| name)
        .collect();
    if !stale.is_empty() {
        bail!("not what {SCHEMA} gives (run `cargo xtask generate`):\n  {}", stale.join("\n  "));
    }
    Ok(())
}
