//! The contents of `config.json`, and JSON files with errors that name them.

use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use ultramarine::{Error, Quantization, Result};

/// Architectures, which differ in little: the name in `model_type`; whether queries, keys and values have biases, and the
/// projection behind attention has one (`None`: as `attention_bias` says); norms of queries and keys; the base of rope.
const FAMILIES: [Family; 3] = [
    Family { name: "llama", qkv_bias: None, out_bias: None, head_norms: false, base: 1e4 },
    Family {
        name: "qwen2",
        qkv_bias: Some(true),
        out_bias: Some(false),
        head_norms: false,
        base: 1e6,
    },
    Family { name: "qwen3", qkv_bias: None, out_bias: None, head_norms: true, base: 1e6 },
];

struct Family {
    name: &'static str,
    qkv_bias: Option<bool>,
    out_bias: Option<bool>,
    head_norms: bool,
    base: f64,
}

/// Sizes and options of a model.
#[derive(Clone, Debug)]
pub struct Config {
    pub vocabulary: usize,
    pub dims: usize,
    pub hidden: usize,
    pub layers: usize,
    pub heads: usize,
    pub kv_heads: usize,
    pub head_dims: usize,
    pub eps: f64,
    /// The embedding is the last layer, too.
    pub tied: bool,
    pub qkv_bias: bool,
    pub out_bias: bool,
    pub mlp_bias: bool,
    /// Queries and keys of each head are normalised.
    pub head_norms: bool,
    pub rotary: Rotary,
    pub quantized: Option<Quantized>,
}

/// Rotary position embeddings.
#[derive(Clone, Copy, Debug)]
pub struct Rotary {
    pub base: f64,
    pub scaling: Scaling,
}

/// The stretching of rotations for more positions than a model was first trained on.
#[derive(Clone, Copy, Debug)]
pub enum Scaling {
    None,
    /// All by a factor.
    Linear {
        factor: f64,
    },
    /// Those that turn fewer than `low` times in so many positions by a factor, those that turn more than `high` times not.
    Llama3 {
        factor: f64,
        low: f64,
        high: f64,
        positions: f64,
    },
}

/// The weights of few bits.
#[derive(Clone, Debug)]
pub struct Quantized {
    /// Their format, unless a layer says otherwise.
    pub how: Quantization,
    /// Layers that say otherwise, by path; `None` for floats.
    pub layers: BTreeMap<String, Option<Quantization>>,
}

impl Config {
    /// Reads `config.json` of a folder.
    ///
    /// # Errors
    /// For a file that is missing or no JSON object, keys that are missing or of another kind, and models that this program
    /// does not know.
    pub fn read(folder: &Path) -> Result<Config> {
        let json = Json::read(&folder.join("config.json"))?;
        let family = family(&json)?;
        let activation = json.text("hidden_act").unwrap_or("silu");
        if activation != "silu" {
            return Err(json.wrong(format!("hidden_act is {activation:?}. Only \"silu\" is here.")));
        }
        let sliding = json.object.get("layer_types").and_then(Value::as_array);
        if sliding.is_some_and(|types| types.iter().any(|t| t != "full_attention"))
            || json.flag("use_sliding_window")?
        {
            let text = "the model has layers of sliding attention, which are not supported.";
            return Err(json.wrong(text));
        }
        let (dims, heads) = (json.size("hidden_size")?, json.size("num_attention_heads")?);
        let config = Config {
            vocabulary: json.size("vocab_size")?,
            dims,
            hidden: json.size("intermediate_size")?,
            layers: json.size("num_hidden_layers")?,
            heads,
            kv_heads: json.size_or("num_key_value_heads", heads)?,
            head_dims: json.size_or("head_dim", dims / heads)?,
            eps: json.number_or("rms_norm_eps", 1e-6)?,
            tied: json.flag("tie_word_embeddings")?,
            qkv_bias: family.qkv_bias.map_or_else(|| json.flag("attention_bias"), Ok)?,
            out_bias: family.out_bias.map_or_else(|| json.flag("attention_bias"), Ok)?,
            mlp_bias: json.flag("mlp_bias")?,
            head_norms: family.head_norms,
            rotary: rotary(&json, family)?,
            quantized: quantized(&json)?,
        };
        let Config { kv_heads, head_dims, .. } = config;
        if heads % kv_heads != 0 || head_dims == 0 || head_dims % 2 != 0 {
            let text = format!(
                "{heads} heads of {head_dims} elements with {kv_heads} of keys and values do not fit. Check the file."
            );
            return Err(json.wrong(text));
        }
        Ok(config)
    }
}

fn family(json: &Json) -> Result<&'static Family> {
    let name = json.text("model_type").unwrap_or_default();
    FAMILIES.iter().find(|f| f.name == name).ok_or_else(|| {
        let known: Vec<&str> = FAMILIES.iter().map(|f| f.name).collect();
        json.wrong(format!("model_type is {name:?}. Pass a model of type {}.", known.join(", ")))
    })
}

fn rotary(json: &Json, family: &Family) -> Result<Rotary> {
    // Transformers 5 writes all of rope's parameters in one object.
    let nested = json.part("rope_parameters")?;
    let base = nested.as_ref().map_or(Ok(family.base), |n| n.number_or("rope_theta", family.base));
    let base = json.number_or("rope_theta", base?)?;
    let scaling = match nested {
        Some(nested) => Some(nested),
        None => json.part("rope_scaling")?,
    };
    let Some(scaling) = scaling else { return Ok(Rotary { base, scaling: Scaling::None }) };
    let scaling = match scaling.text("rope_type").or(scaling.text("type")).unwrap_or("default") {
        "default" => Scaling::None,
        "linear" => Scaling::Linear { factor: scaling.number("factor")? },
        "llama3" => Scaling::Llama3 {
            factor: scaling.number("factor")?,
            low: scaling.number_or("low_freq_factor", 1.0)?,
            high: scaling.number_or("high_freq_factor", 4.0)?,
            positions: scaling.number_or("original_max_position_embeddings", 8192.0)?,
        },
        other => {
            let text = format!("rope is of type {other:?}. Supported are default, linear, llama3.");
            return Err(scaling.wrong(text));
        }
    };
    Ok(Rotary { base, scaling })
}

fn quantized(json: &Json) -> Result<Option<Quantized>> {
    let Some(found) = json.part("quantization")? else {
        let foreign = json.part("quantization_config")?;
        let Some(method) = foreign.as_ref().and_then(|f| f.text("quant_method")) else {
            return Ok(None);
        };
        let text = format!(
            "weights are quantised by {method:?}. Pass a model that `mlx_lm convert -q` wrote, or one of floats."
        );
        return Err(json.wrong(text));
    };
    let how = how(&found)?;
    let mut layers = BTreeMap::new();
    for (name, value) in &found.object {
        match value {
            Value::Bool(false) => {
                layers.insert(name.clone(), None);
            }
            Value::Object(_) => {
                layers.insert(name.clone(), found.part(name)?.as_ref().map(self::how).transpose()?);
            }
            _ => {}
        }
    }
    Ok(Some(Quantized { how, layers }))
}

fn how(json: &Json) -> Result<Quantization> {
    let mode = json.text("mode").unwrap_or("affine");
    let (group, bits) = (json.size("group_size")? as isize, json.size("bits")? as isize);
    let how = Quantization::from_options("generate", mode, Some(group), Some(bits));
    how.map_err(|error| json.wrong(error))
}

/// An object in a JSON file.
pub struct Json {
    path: PathBuf,
    object: serde_json::Map<String, Value>,
}

impl Json {
    /// Reads a file.
    pub fn read(path: &Path) -> Result<Json> {
        let bytes = fs::read(path).map_err(|error| match error.kind() {
            ErrorKind::NotFound => {
                let text = "is missing. Pass a folder in Hugging Face's layout.";
                Error::value("generate", format!("{} {text}", path.display()))
            }
            _ => Error::io(format!("[generate] {}", path.display()), error),
        })?;
        let (path, object) = (path.to_owned(), serde_json::Map::new());
        let json = Json { path, object };
        match serde_json::from_slice(&bytes) {
            Ok(Value::Object(object)) => Ok(Json { object, ..json }),
            Ok(_) => Err(json.wrong("contains no JSON object.")),
            Err(error) => Err(json.wrong(format!("no JSON: {error}."))),
        }
    }

    /// Reads a file that may be missing: it is empty then.
    pub fn optional(path: &Path) -> Result<Json> {
        match path.exists() {
            true => Json::read(path),
            false => Ok(Json { path: path.to_owned(), object: serde_json::Map::new() }),
        }
    }

    /// An error that names the file.
    pub fn wrong(&self, text: impl std::fmt::Display) -> Error {
        Error::value("generate", format!("{}: {text}", self.path.display()))
    }

    /// A value that is there and not null.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.object.get(key).filter(|v| !v.is_null())
    }

    /// A text, if the key has one.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.get(key)?.as_str()
    }

    /// The text of a special token: a text, or an object that has it as its content.
    pub fn token_text(&self, key: &str) -> Option<&str> {
        let value = self.get(key)?;
        value.as_str().or_else(|| value.get("content")?.as_str())
    }

    /// The chat template: a text, or a list of named ones.
    pub fn template(&self) -> Option<String> {
        let found = match self.get("chat_template")? {
            Value::Array(named) => {
                let default = named.iter().find(|entry| entry["name"] == "default")?;
                default.get("template")?
            }
            value => value,
        };
        found.as_str().map(str::to_owned)
    }

    /// Tokens: a number, or a list of numbers; empty if there is no such key.
    pub fn tokens(&self, key: &str) -> Result<Vec<u32>> {
        let number = |value: &Value| value.as_u64().and_then(|n| u32::try_from(n).ok());
        let found = match self.get(key) {
            None => Some(Vec::new()),
            Some(Value::Array(list)) => list.iter().map(number).collect(),
            Some(value) => number(value).map(|n| vec![n]),
        };
        found.ok_or_else(|| self.of_another_kind(key, "a token or a list of them"))
    }

    /// Keys and values of an index: the file of each tensor.
    pub fn weight_map(&self) -> Result<BTreeMap<String, String>> {
        let map = self.part("weight_map")?.ok_or_else(|| self.lacks("weight_map"))?;
        let file = |(name, value): (&String, &Value)| match value.as_str() {
            Some(file) => Ok((name.clone(), file.to_owned())),
            None => Err(map.of_another_kind(name, "the name of a file")),
        };
        map.object.iter().map(file).collect()
    }

    /// An object in the object.
    fn part(&self, key: &str) -> Result<Option<Json>> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::Object(o)) => Ok(Some(Json { path: self.path.clone(), object: o.clone() })),
            Some(_) => Err(self.of_another_kind(key, "an object")),
        }
    }

    fn flag(&self, key: &str) -> Result<bool> {
        let value = self.get(key).map_or(Some(false), Value::as_bool);
        value.ok_or_else(|| self.of_another_kind(key, "true or false"))
    }

    fn number(&self, key: &str) -> Result<f64> {
        let value = self.get(key).ok_or_else(|| self.lacks(key))?.as_f64();
        value.ok_or_else(|| self.of_another_kind(key, "a number"))
    }

    fn number_or(&self, key: &str, default: f64) -> Result<f64> {
        self.get(key).map_or(Ok(default), |_| self.number(key))
    }

    fn size(&self, key: &str) -> Result<usize> {
        let value = self.get(key).ok_or_else(|| self.lacks(key))?.as_u64();
        // What a u32 holds multiplies with another one without overflow.
        let value = value.and_then(|n| u32::try_from(n).ok()).filter(|n| *n > 0);
        value.map(|n| n as usize).ok_or_else(|| self.of_another_kind(key, "a positive integer"))
    }

    fn size_or(&self, key: &str, default: usize) -> Result<usize> {
        self.get(key).map_or(Ok(default), |_| self.size(key))
    }

    fn lacks(&self, key: &str) -> Error {
        self.wrong(format!("{key:?} is missing. Check that the file is a model's."))
    }

    fn of_another_kind(&self, key: &str, kind: &str) -> Error {
        let value = self.get(key).unwrap_or(&Value::Null);
        self.wrong(format!("{key:?} is {value}, not {kind}."))
    }
}
