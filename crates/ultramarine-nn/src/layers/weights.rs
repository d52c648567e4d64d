//! Reading and writing of parameters.

use super::base::{Module, VisitorMut};
use crate::Parameters;
use std::path::Path;
use ultramarine::io::{self, Format, Loaded};
use ultramarine::{Error, Result};

/// Checks that each array is a parameter and has its shape and, if `complete`, that no parameter is missing. Errors
/// name the function `op` and the file.
pub(crate) fn check(
    present: &Parameters,
    new: &Parameters,
    op: &str,
    file: Option<&Path>,
    complete: bool,
) -> Result<()> {
    let from = file.map(|f| format!("{}: ", f.display())).unwrap_or_default();
    let surplus: Vec<&str> =
        new.keys().filter(|n| !present.contains_key(*n)).map(String::as_str).collect();
    let missing: Vec<&str> = match complete {
        true => present.keys().filter(|n| !new.contains_key(*n)).map(String::as_str).collect(),
        false => Vec::new(),
    };
    let misshapen: Vec<String> = present
        .iter()
        .filter_map(|(name, p)| new.get(name).map(|array| (name, p, array)))
        .filter(|(_, p, array)| p.shape() != array.shape())
        .map(|(name, p, array)| format!("{name} {:?} for {:?}", array.shape(), p.shape()))
        .collect();
    let mut wrong = Vec::new();
    let mut say = |names: &[&str], text: &str| {
        if !names.is_empty() {
            wrong.push(format!("{text}: {}.", listed(names)));
        }
    };
    say(&surplus, "not parameters of the model");
    say(&missing, "missing");
    let misshapen: Vec<&str> = misshapen.iter().map(String::as_str).collect();
    say(&misshapen, "not of the shape of their parameters");
    if wrong.is_empty() {
        return Ok(());
    }
    let remedy = match (file, misshapen.is_empty()) {
        (Some(_), true) => " Check that the file is this model's, or use `load_known_weights`.",
        (Some(_), false) => " Check that the file is this model's.",
        (None, _) => " Compare with the names and shapes of `parameters`.",
    };
    Err(Error::value(op, format!("{from}{}{remedy}", wrong.join(" "))))
}

/// The names as a list. If there are many, only the first are listed.
fn listed(names: &[&str]) -> String {
    const MOST: usize = 20;
    let shown = names[..names.len().min(MOST)].join(", ");
    match names.len() > MOST {
        true => format!("{shown} and {} more", names.len() - MOST),
        false => shown,
    }
}

/// Replaces the parameters that are in `arrays`.
pub(crate) fn assign<M: Module + ?Sized>(module: &mut M, arrays: &Parameters) {
    module.visit_mut(&mut VisitorMut::new(&mut |name, leaf| {
        if let Some(array) = arrays.get(name) {
            leaf.set(array.clone());
        }
    }));
}

/// The arrays of a file.
pub(crate) fn read(op: &str, path: &Path) -> Result<Parameters> {
    match io::load(path)? {
        Loaded::Arrays(arrays) | Loaded::Safetensors(arrays, _) | Loaded::Gguf(arrays, _) => {
            Ok(arrays)
        }
        Loaded::Array(_) => Err(unknown(op, path)),
    }
}

/// Writes a file.
pub(crate) fn write(op: &str, path: &Path, arrays: &Parameters) -> Result<()> {
    match Format::from_path(path) {
        Ok(Format::Npz) => io::npz::save(path, arrays),
        Ok(Format::Safetensors) => io::safetensors::save(path, arrays, None),
        _ => Err(unknown(op, path)),
    }
}

fn unknown(op: &str, path: &Path) -> Error {
    let text = "has an unknown extension. Use .safetensors or .npz.";
    Error::value(op, format!("{} {text}", path.display()))
}
