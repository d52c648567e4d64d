//! The model of the example `generate`, with random weights in folders that the tests write.

#[path = "../../examples/generate/cache.rs"]
mod cache;
#[path = "../../examples/generate/config.rs"]
mod config;
#[path = "../../examples/generate/generation.rs"]
mod generation;
#[path = "../../examples/generate/model.rs"]
mod model;
#[path = "../../examples/generate/sampling.rs"]
mod sampling;
#[path = "../../examples/generate/text.rs"]
mod text;
#[path = "../../examples/generate/weights.rs"]
mod weights;

use crate::support::values;
use config::Config;
use generation::generate;
use model::LanguageModel;
use sampling::Sampler;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use text::Text;
use ultramarine::io::safetensors;
use ultramarine::random::{key, normal};
use ultramarine::{Array, Dtype, Quantization, Result};
use ultramarine_nn::{Module, Parameters, quantize_where};

const GREEDY: Sampler = Sampler { temperature: 0.0, top_p: 1.0 };

/// A folder with a model, which is removed in the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("nn-model-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).expect("a folder");
        Folder(path)
    }

    /// A folder with a configuration and a model of it. The weights are random, and far enough from 0 to matter.
    fn with_model(name: &str, config: &Value) -> Result<Folder> {
        let folder = Folder::new(name);
        folder.write("config.json", config);
        let config = Config::read(&folder.0)?;
        let mut model = LanguageModel::new(&config)?;
        let mut weights = Parameters::new();
        for (number, (name, array)) in model.parameters().into_iter().enumerate() {
            let mean = if name.ends_with("norm.weight") { 1.0 } else { 0.0 };
            let key = key(number as u64)?;
            let drawn = normal(array.shape(), mean, 0.3, Dtype::Float32, Some(&key))?;
            weights.insert(name, drawn);
        }
        model.update_all(&weights)?;
        if let Some(quantized) = &config.quantized {
            quantize_where(&mut model, |path, _| {
                quantized.layers.get(path).copied().unwrap_or(Some(quantized.how))
            })?;
        }
        folder.save(&model.parameters())?;
        Ok(folder)
    }

    /// Writes weights, as two files with an index.
    fn save(&self, weights: &Parameters) -> Result<()> {
        let mut files = [Parameters::new(), Parameters::new()];
        let mut index = serde_json::Map::new();
        for (number, (name, array)) in weights.iter().enumerate() {
            files[number % 2].insert(name.clone(), array.clone());
            index.insert(name.clone(), part(number % 2).into());
        }
        for (number, arrays) in files.iter().enumerate() {
            safetensors::save(self.0.join(part(number)), arrays, None)?;
        }
        self.write("model.safetensors.index.json", &json!({ "weight_map": index }));
        Ok(())
    }

    fn write(&self, name: &str, json: &Value) {
        fs::write(self.0.join(name), json.to_string()).expect("a file");
    }

    fn load(&self) -> Result<LanguageModel> {
        weights::load(&self.0)
    }

    /// The error of loading.
    #[track_caller]
    fn refusal(&self) -> String {
        match self.load() {
            Ok(_) => panic!("the folder is loaded"),
            Err(error) => error.to_string(),
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn part(number: usize) -> String {
    format!("model-{:05}-of-00002.safetensors", number + 1)
}

/// A small model's configuration, with other keys in place of the usual ones.
fn config(other: Value) -> Value {
    let mut config = json!({
        "model_type": "llama", "vocab_size": 41, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "rms_norm_eps": 1e-5, "rope_theta": 1e4,
        "tie_word_embeddings": false,
    });
    for (key, value) in other.as_object().expect("an object") {
        config[key] = value.clone();
    }
    config
}

fn prompt(length: usize) -> Vec<u32> {
    (0..length as u32).map(|i| (i * i + 3 * i + 1) % 41).collect()
}

/// Logits at all positions, computed at once, without a cache.
fn logits(model: &LanguageModel, tokens: &[u32]) -> Result<Array> {
    let tokens = Array::from_slice(tokens, &[1, tokens.len()])?;
    model.logits(&model.hidden(&tokens, None)?)
}

/// Checks that tokens generated with caches are those that the logits without caches say.
fn check_generation(name: &str, model: &LanguageModel, length: usize) -> Result<()> {
    let mut tokens = prompt(length);
    let generated: Vec<u32> = generate(model, &tokens, 12, GREEDY)?.collect::<Result<_>>()?;
    assert_eq!(generated.len(), 12, "{name}");
    tokens.extend(&generated);
    let best = logits(model, &tokens[..tokens.len() - 1])?.argmax(-1)?.to_vec::<u32>()?;
    assert_eq!(generated, best[length - 1..], "{name}, after {length} tokens");
    assert!(generated.iter().any(|t| *t != generated[0]), "{name}: one token again and again");
    Ok(())
}

#[test]
fn caches_change_nothing() -> Result<()> {
    let llama3 = json!({
        "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 32,
    });
    let cases = [
        ("llama", json!({ "attention_bias": true, "mlp_bias": true, "rope_scaling": llama3 })),
        (
            "linear",
            json!({ "tie_word_embeddings": true, "rope_scaling": { "type": "linear", "factor": 4.0 } }),
        ),
        ("qwen2", json!({ "model_type": "qwen2", "tie_word_embeddings": true })),
        ("qwen3", json!({ "model_type": "qwen3", "head_dim": 32 })),
    ];
    for (name, other) in cases {
        let folder = Folder::with_model(name, &config(other))?;
        let model = folder.load()?;
        // Within one step of the cache, over the end of one, and for a prompt in two parts.
        for length in [5, 250, 515] {
            check_generation(name, &model, length)?;
        }
    }
    Ok(())
}

/// Few bits, in one layer other ones, and in two layers floats.
#[test]
fn quantised_models_generate() -> Result<()> {
    let other = json!({
        "model_type": "qwen2",
        "quantization": {
            "group_size": 32, "bits": 4, "mode": "affine",
            "model.layers.0.self_attn.q_proj": { "group_size": 64, "bits": 8, "mode": "affine" },
            "model.layers.1.mlp.up_proj": false, "lm_head": false,
        },
    });
    let folder = Folder::with_model("quantised", &config(other.clone()))?;
    let model = folder.load()?;
    let parameters = model.parameters();
    let shape = |name: &str| parameters[name].shape().to_vec();
    assert_eq!(shape("model.embed_tokens.weight"), [41, 64 * 4 / 32]);
    assert_eq!(shape("model.layers.0.self_attn.q_proj.weight"), [64, 64 * 8 / 32]);
    assert_eq!(shape("model.layers.1.self_attn.q_proj.scales"), [64, 64 / 32]);
    assert_eq!(shape("model.layers.1.mlp.up_proj.weight"), [96, 64]);
    check_generation("quantised", &model, 20)?;

    // Layers without scales are floats, if the configuration does not name them, too.
    let mut other = other;
    let named = other["quantization"].as_object_mut().expect("an object");
    named.retain(|name, _| !name.ends_with("up_proj") && name != "lm_head");
    folder.write("config.json", &config(other));
    let again = folder.load()?;
    let tokens = prompt(20);
    assert_eq!(values(&logits(&again, &tokens)?), values(&logits(&model, &tokens)?));
    Ok(())
}

/// Halves stay halves, and logits are near those of floats.
#[test]
fn bfloat16_is_kept() -> Result<()> {
    let folder = Folder::with_model("bfloat16", &config(json!({ "model_type": "qwen3" })))?;
    let floats = folder.load()?;
    let halves = floats.parameters().into_iter().map(|(n, a)| (n, a.astype(Dtype::Bfloat16)));
    folder.save(&halves.collect())?;
    let model = folder.load()?;
    let (near, exact) = (logits(&model, &prompt(9))?, logits(&floats, &prompt(9))?);
    assert_eq!(near.dtype(), Dtype::Bfloat16);
    let difference = (&near.astype(Dtype::Float32) - &exact)?.abs()?.max(..)?;
    let size = exact.abs()?.max(..)?.item::<f32>()?;
    assert!(difference.item::<f32>()? < 0.1 * size, "{difference:?} of {size}");
    check_generation("bfloat16", &model, 7)
}

/// At a temperature tokens are drawn: the same ones with the same seed. Among few tokens, the most probable ones are drawn.
#[test]
fn sampling_follows_probabilities() -> Result<()> {
    let probabilities = [0.05f32, 0.5, 0.15, 0.3];
    let logits = Array::from_slice(&probabilities, &[1, 4])?.log()?;
    let logits = logits.broadcast_to(&[4000, 4])?;
    let frequencies = |temperature: f64, top_p: f64| -> Result<Vec<f64>> {
        ultramarine::random::seed(7)?;
        let drawn = Sampler { temperature, top_p }.sample(&logits)?.to_vec::<u32>()?;
        let count = |token: u32| drawn.iter().filter(|t| **t == token).count();
        Ok((0..4).map(|token| count(token) as f64 / 4000.0).collect())
    };
    let check = |temperature: f64, top_p: f64, want: [f64; 4]| -> Result<()> {
        let found = frequencies(temperature, top_p)?;
        let near = found.iter().zip(want).all(|(f, w)| (f - w).abs() < 0.03);
        assert!(near, "{temperature} {top_p}: {found:?} for {want:?}");
        Ok(())
    };
    check(0.0, 1.0, [0.0, 1.0, 0.0, 0.0])?;
    check(1.0, 1.0, [0.05, 0.5, 0.15, 0.3])?;
    check(1.0, 0.7, [0.0, 0.625, 0.0, 0.375])?;
    check(1.0, 0.1, [0.0, 1.0, 0.0, 0.0])?;
    // Squares of the probabilities.
    check(0.5, 1.0, [0.0068, 0.6849, 0.0616, 0.2466])
}

#[test]
fn generation_ends_and_refuses() -> Result<()> {
    let folder = Folder::with_model("ends", &config(json!({})))?;
    let model = folder.load()?;
    for limit in 0..3 {
        assert_eq!(generate(&model, &[1, 2], limit, GREEDY)?.count(), limit);
    }
    let refusal = |tokens: &[u32]| generate(&model, tokens, 3, GREEDY).err().map(|e| e.to_string());
    let text = refusal(&[]).expect("no tokens are refused");
    assert!(text.contains("the prompt has no tokens"), "{text}");
    let text = refusal(&[1, 41]).expect("an unknown token is refused");
    assert!(text.contains("the token 41, and the model 41 tokens"), "{text}");
    Ok(())
}

#[test]
fn folders_that_do_not_fit_are_refused() -> Result<()> {
    let folder = Folder::with_model("errors", &config(json!({})))?;
    let good = folder.load()?.parameters();

    let check = |other: Value, parts: &[&str]| {
        folder.write("config.json", &config(other));
        let text = folder.refusal();
        assert!(text.contains("errors"), "no folder in {text}");
        parts.iter().for_each(|part| assert!(text.contains(part), "{text} lacks {part}"));
    };
    check(json!({ "model_type": "mamba" }), &["\"mamba\"", "llama, qwen2, qwen3"]);
    check(json!({ "hidden_act": "gelu" }), &["\"gelu\""]);
    check(json!({ "vocab_size": null }), &["\"vocab_size\" is missing"]);
    check(json!({ "hidden_size": -1 }), &["\"hidden_size\" is -1, not a positive integer"]);
    check(json!({ "num_key_value_heads": 3 }), &["4 heads of 16 elements with 3"]);
    check(json!({ "rope_scaling": { "rope_type": "yarn" } }), &["\"yarn\"", "llama3"]);
    check(json!({ "layer_types": ["sliding_attention"] }), &["sliding attention"]);
    check(
        json!({ "quantization_config": { "quant_method": "gptq" } }),
        &["\"gptq\"", "convert -q"],
    );
    check(json!({ "quantization": { "group_size": 32 } }), &["\"bits\" is missing"]);
    check(json!({ "quantization": { "group_size": 32, "bits": 4, "mode": "x" } }), &["mode 'x'"]);
    check(json!({ "num_hidden_layers": 3 }), &["missing: model.layers.2."]);
    check(json!({ "num_hidden_layers": 1 }), &["not parameters of the model: model.layers.1."]);
    check(
        json!({ "intermediate_size": 80 }),
        &[
            "not of the shape of their parameters",
            "model.layers.0.mlp.up_proj.weight [96, 64] for [80, 64]",
        ],
    );

    folder.write("config.json", &config(json!({})));
    assert!(folder.load().is_ok(), "the folder is as it was");
    fs::remove_file(folder.0.join(part(1))).expect("a file to remove");
    let text = folder.refusal();
    assert!(text.contains(&part(1)) && text.contains("is missing"), "{text}");
    fs::remove_file(folder.0.join("model.safetensors.index.json")).expect("a file to remove");
    assert!(folder.refusal().contains("missing: "), "half of the weights are enough");
    fs::remove_file(folder.0.join(part(0))).expect("a file to remove");
    assert!(folder.refusal().contains("no model*.safetensors"), "no weights are enough");

    // One file, with the embedding a second time and rope's frequencies, which old files have.
    folder.write("config.json", &config(json!({ "tie_word_embeddings": true })));
    let mut weights = good;
    let name = "model.layers.0.self_attn.rotary_emb.inv_freq".to_owned();
    weights.insert(name, Array::zeros(&[8], Dtype::Float32)?);
    safetensors::save(folder.0.join("model.safetensors"), &weights, None)?;
    let loaded = folder.load()?.parameters();
    assert_eq!(loaded.len(), weights.len() - 2);

    fs::write(folder.0.join("config.json"), "[1]").expect("a file");
    assert!(folder.refusal().contains("config.json: contains no JSON object"));
    fs::write(folder.0.join("config.json"), "{").expect("a file");
    assert!(folder.refusal().contains("config.json: no JSON"));
    let text = weights::load(Path::new("nowhere")).err().map(|e| e.to_string()).expect("an error");
    assert!(text.contains("config.json is missing"), "{text}");
    Ok(())
}

/// The wrong bits for the words in the file are refused, not decoded.
#[test]
fn quantisation_has_to_fit_the_file() -> Result<()> {
    let bits = |bits: usize| json!({ "quantization": { "group_size": 32, "bits": bits } });
    let folder = Folder::with_model("bits", &config(bits(4)))?;
    assert_eq!(
        Config::read(&folder.0)?.quantized.map(|q| q.how),
        Some(Quantization::affine(4, 32))
    );
    folder.write("config.json", &config(bits(8)));
    let text = folder.refusal();
    assert!(
        text.contains("not of the shape of their parameters")
            && text.contains("[41, 8] for [41, 16]"),
        "{text}"
    );
    Ok(())
}

/// A tokenizer whose tokens are bytes and, behind them, `<|im_start|>` and `<|im_end|>`.
fn byte_tokenizer() -> Value {
    let vocabulary: serde_json::Map<String, Value> =
        (0..256).map(|byte| (format!("<0x{byte:02X}>"), byte.into())).collect();
    let special = |id: u32, content: &str| {
        json!({
            "id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false,
            "special": true,
        })
    };
    json!({
        "version": "1.0", "added_tokens": [special(256, "<|im_start|>"), special(257, "<|im_end|>")],
        "decoder": { "type": "Sequence", "decoders": [{ "type": "ByteFallback" }, { "type": "Fuse" }] },
        "model": { "type": "BPE", "byte_fallback": true, "vocab": vocabulary, "merges": [] },
    })
}

/// The tokens of a text for this tokenizer.
fn bytes(text: &str) -> Vec<u32> {
    let begins = text.split("<|im_start|>").map(|part| {
        let parts: Vec<Vec<u32>> =
            part.split("<|im_end|>").map(|p| p.bytes().map(u32::from).collect()).collect();
        parts.join(&257)
    });
    begins.collect::<Vec<_>>().join(&256)
}

#[test]
fn text_comes_in_whole_characters() -> Result<()> {
    let folder = Folder::new("stream");
    folder.write("tokenizer.json", &byte_tokenizer());
    let text = Text::read(&folder.0)?;
    assert_eq!(text.encode("h\u{e9}", false, None)?, [0x68, 0xc3, 0xa9]);
    let mut pieces = text.stream();
    let tokens = [0x68, 0xc3, 0xa9, 257, 0xe2, 0x82, 0xac, 0x21];
    let found: Vec<Option<String>> =
        tokens.iter().map(|t| pieces.step(*t)).collect::<Result<_>>()?;
    let found: Vec<&str> = found.iter().map(|p| p.as_deref().unwrap_or("-")).collect();
    assert_eq!(found, ["h", "-", "\u{e9}", "-", "-", "-", "\u{20ac}", "!"]);

    fs::remove_file(folder.0.join("tokenizer.json")).expect("a file to remove");
    let error = Text::read(&folder.0).err().map(|e| e.to_string()).expect("an error");
    assert!(error.contains("tokenizer.json is missing"), "{error}");
    Ok(())
}

#[test]
fn chats_are_written_as_the_template_has_them() -> Result<()> {
    let folder = Folder::new("chat");
    folder.write("tokenizer.json", &byte_tokenizer());
    folder.write("config.json", &json!({ "eos_token_id": 5 }));
    folder.write("generation_config.json", &json!({ "eos_token_id": [6, 7] }));
    let user = "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n";
    let cases = [
        ("{{ '<|im_start|>' + message['role'] }}", ""),
        ("{{ '<|im_start|>system\\nBe kind.<|im_end|>\\n' }}", "Be kind."),
        (
            "{{ '<|im_start|>system\n' }}{{ '<|im_start|>system\nBe brief.<|im_end|>\n' }}",
            "Be brief.",
        ),
    ];
    for (template, system) in cases {
        let token = json!({ "content": "<|im_end|>" });
        folder.write(
            "tokenizer_config.json",
            &json!({ "chat_template": template, "eos_token": token }),
        );
        let text = Text::read(&folder.0)?;
        let with = |system: &str| match system {
            "" => bytes(user),
            _ => bytes(&format!("<|im_start|>system\n{system}<|im_end|>\n{user}")),
        };
        assert_eq!(text.encode("Hi", false, None)?, with(system), "{template}");
        assert_eq!(text.encode("Hi", false, Some("Sing"))?, with("Sing"), "{template}");
        assert_eq!(text.encode("Hi", true, None)?, bytes("Hi"), "{template}");
        let ends: Vec<u32> = (0..258).filter(|t| text.is_end(*t)).collect();
        assert_eq!(ends, [5, 6, 7, 257]);
    }

    fs::write(folder.0.join("chat_template.jinja"), "[INST]").expect("a file");
    let text = Text::read(&folder.0)?;
    let error = text.encode("Hi", false, None).err().map(|e| e.to_string()).expect("an error");
    assert!(error.contains("--raw"), "{error}");
    assert_eq!(text.encode("Hi", true, None)?, bytes("Hi"));
    Ok(())
}
