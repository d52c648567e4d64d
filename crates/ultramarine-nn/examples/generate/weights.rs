//! The weights of a folder.

use super::config::{Config, Json};
use super::model::LanguageModel;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use ultramarine::io::{Loaded, load as load_file};
use ultramarine::{Error, Result};
use ultramarine_nn::{Module, Parameters, quantize_where};

/// Reads a model: a folder with `config.json`, and `model.safetensors` or several files.
///
/// # Errors
/// For files that are missing or damaged, a model that [`Config::read`] refuses, and weights that do not fit its configuration:
/// tensors that are missing, too many, or of another shape.
pub fn load(folder: &Path) -> Result<LanguageModel> {
    let config = Config::read(folder)?;
    let mut model = LanguageModel::new(&config)?;
    let mut weights = Parameters::new();
    for file in files(folder)? {
        match load_file(&file)? {
            Loaded::Safetensors(arrays, _) => weights.extend(arrays),
            _ => return Err(wrong(&file, "no safetensors file. Check its name.")),
        }
    }
    // Old files have rope's frequencies, and some the embedding a second time.
    weights.retain(|name, _| {
        let again = config.tied && name.starts_with("lm_head.");
        !again && !name.ends_with("rotary_emb.inv_freq")
    });
    if let Some(quantized) = &config.quantized {
        quantize_where(&mut model, |path, _| match quantized.layers.get(path) {
            Some(how) => *how,
            None => weights.contains_key(&format!("{path}.scales")).then_some(quantized.how),
        })?;
    }
    model
        .update_all(&weights)
        .map_err(|error| wrong(folder, format!("the weights do not fit config.json. {error}")))?;
    Ok(model)
}

/// The files with the weights: those that the index names, or all that are called so.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let index = folder.join("model.safetensors.index.json");
    let files: Vec<PathBuf> = if index.is_file() {
        let names: BTreeSet<String> = Json::read(&index)?.weight_map()?.into_values().collect();
        names.iter().map(|name| folder.join(name)).collect()
    } else {
        let mut found = Vec::new();
        let failed = |error| Error::io(format!("[generate] {}", folder.display()), error);
        for entry in fs::read_dir(folder).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if name.starts_with("model") && name.ends_with(".safetensors") {
                found.push(path);
            }
        }
        found.sort();
        found
    };
    if files.is_empty() {
        return Err(wrong(folder, "there is no model*.safetensors. Download the weights."));
    }
    if let Some(missing) = files.iter().find(|f| !f.is_file()) {
        let text = "is missing, which the index names. Download the weights again.";
        return Err(Error::value("generate", format!("{} {text}", missing.display())));
    }
    Ok(files)
}

fn wrong(path: &Path, text: impl std::fmt::Display) -> Error {
    Error::value("generate", format!("{}: {text}", path.display()))
}
