//! Models in several safetensors files. An index beside them maps each tensor to its file, as Hugging Face writes it:
//! `{"metadata": {...}, "weight_map": {"tensor": "file"}}`.

use super::source::Source;
use super::{Arrays, At, Metadata, safetensors};
use crate::error::Result;
use serde_json::{Map, Value};
use std::collections::btree_map::{BTreeMap, Entry};
use std::path::{Component, Path, PathBuf};

/// The longest index that is read, enough for a million tensors.
const MAX_INDEX: u64 = 256 << 20;

/// Loads the arrays of all files that an index (`model.safetensors.index.json`) names, and the index's metadata as
/// text. Each array's data is read when the array is evaluated. Paths of files are relative to the index and must stay
/// in its folder.
///
/// # Errors
/// Errors of [`safetensors::load`] for each file. [`crate::Error::Runtime`] if the index is malformed, names a file
/// outside of its folder, or names a tensor that its file does not contain.
pub fn load(path: impl AsRef<Path>) -> Result<(Arrays, Metadata)> {
    let path = path.as_ref();
    let name = path.display().to_string();
    let at = At { op: "load", name: &name };
    let file = at.open(path)?;
    if file.bytes() > MAX_INDEX {
        return Err(
            at.runtime(format!("An index of {} bytes is too long. Check the path.", file.bytes()))
        );
    }
    let text = Source::of_file(&file, at).text(file.bytes(), "the index")?;
    let index: Map<String, Value> =
        serde_json::from_slice(&text).map_err(|e| at.runtime(format!("bad index: {e}.")))?;
    let Some(Value::Object(weight_map)) = index.get("weight_map") else {
        return Err(at.runtime(
            "Not an index of safetensors files: it has no object 'weight_map'. Check the path.",
        ));
    };
    let mut wanted: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (tensor, file) in weight_map {
        let Value::String(file) = file else {
            return Err(at.runtime(format!("The file of tensor '{tensor}' should be a string but is {file}. Save the index again.")));
        };
        wanted.entry(file).or_default().push(tensor);
    }
    let mut all = Arrays::new();
    for (file, tensors) in &wanted {
        let shard = beside(path, file).ok_or_else(|| {
            at.runtime(format!(
                "'{file}' is outside the index's folder. Name files in that folder."
            ))
        })?;
        let (arrays, _) = safetensors::load(&shard)?;
        if let Some(missing) = tensors.iter().find(|tensor| !arrays.contains_key(**tensor)) {
            return Err(at.runtime(format!(
                "{file} has no tensor '{missing}', which the index names. Download both again."
            )));
        }
        for (tensor, array) in arrays {
            // Another file may contain a leftover tensor of the same name.
            let own = weight_map.get(&tensor).and_then(Value::as_str) == Some(*file);
            match all.entry(tensor) {
                Entry::Vacant(entry) => drop(entry.insert(array)),
                Entry::Occupied(mut entry) if own => drop(entry.insert(array)),
                Entry::Occupied(_) => {}
            }
        }
    }
    Ok((all, metadata(&index)))
}

/// The metadata as text. Values that are not text are written as JSON.
fn metadata(index: &Map<String, Value>) -> Metadata {
    let Some(Value::Object(metadata)) = index.get("metadata") else { return Metadata::new() };
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    metadata.iter().map(|(key, value)| (key.clone(), text(value))).collect()
}

/// The path of a file in the index's folder, or below it.
fn beside(index: &Path, file: &str) -> Option<PathBuf> {
    // Reject separators of other systems too, because files come from everywhere.
    let plain = !file.is_empty() && !file.contains(['\\', '\0', ':']);
    let inside = Path::new(file).components().all(|part| matches!(part, Component::Normal(_)));
    (plain && inside).then(|| index.with_file_name(file))
}
