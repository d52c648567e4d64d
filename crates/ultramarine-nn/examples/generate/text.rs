//! Text and tokens: a folder's tokenizer, the tokens that end an answer, and prompts of chats.

use super::config::Json;
use std::path::Path;
use tokenizers::Tokenizer;
use ultramarine::{Error, Result};

/// The beginning and the end of a message in ChatML.
const START: &str = "<|im_start|>";
const END: &str = "<|im_end|>";

/// A tokenizer, with what a folder says about its use.
pub struct Text {
    tokenizer: Tokenizer,
    ends: Vec<u32>,
    /// The chat template, in Jinja.
    template: Option<String>,
}

fn wrong(text: impl std::fmt::Display) -> Error {
    Error::value("generate", text)
}

impl Text {
    /// Reads `tokenizer.json`, and what there is of `generation_config.json`, `tokenizer_config.json` and
    /// `chat_template.jinja`.
    pub fn read(folder: &Path) -> Result<Text> {
        let path = folder.join("tokenizer.json");
        if !path.is_file() {
            let text = "is missing. Pass a folder with a tokenizer in this format.";
            return Err(wrong(format!("{} {text}", path.display())));
        }
        let tokenizer = Tokenizer::from_file(&path);
        let tokenizer = tokenizer.map_err(|e| wrong(format!("{}: {e}", path.display())))?;

        let mut ends = Vec::new();
        for name in ["config.json", "generation_config.json"] {
            ends.extend(Json::optional(&folder.join(name))?.tokens("eos_token_id")?);
        }
        let options = Json::optional(&folder.join("tokenizer_config.json"))?;
        ends.extend(options.token_text("eos_token").and_then(|t| tokenizer.token_to_id(t)));
        let template = match std::fs::read_to_string(folder.join("chat_template.jinja")) {
            Ok(template) => Some(template),
            Err(_) => options.template(),
        };
        Ok(Text { tokenizer, ends, template })
    }

    /// The tokens of a prompt: of a chat, if the model has a template and `raw` is not set.
    pub fn encode(&self, prompt: &str, raw: bool, system: Option<&str>) -> Result<Vec<u32>> {
        let encoded = match &self.template {
            Some(template) if !raw => {
                let chat = chat(template, prompt, system)?;
                self.tokenizer.encode_fast(chat, false)
            }
            _ => self.tokenizer.encode_fast(prompt, true),
        };
        Ok(encoded.map_err(wrong)?.get_ids().to_vec())
    }

    /// True of a token that ends an answer.
    pub fn is_end(&self, token: u32) -> bool {
        self.ends.contains(&token)
    }

    /// Text that comes token by token.
    pub fn stream(&self) -> Pieces<'_> {
        Pieces { tokenizer: &self.tokenizer, tokens: Vec::new(), shown: 0 }
    }
}

/// Text that comes token by token. Characters whose bytes are not all there are held back.
pub struct Pieces<'a> {
    tokenizer: &'a Tokenizer,
    /// Tokens from the last piece but one on: what decoding depends on.
    tokens: Vec<u32>,
    /// Of these, how many are in pieces that were handed out.
    shown: usize,
}

impl Pieces<'_> {
    /// The text that a token completes, if there is any.
    pub fn step(&mut self, token: u32) -> Result<Option<String>> {
        self.tokens.push(token);
        let decode = |tokens: &[u32]| self.tokenizer.decode(tokens, true).map_err(wrong);
        let before = decode(&self.tokens[..self.shown])?;
        let text = decode(&self.tokens)?;
        if text.len() <= before.len() || text.ends_with('\u{fffd}') {
            return Ok(None);
        }
        let piece = text.get(before.len()..).unwrap_or_default().to_owned();
        self.tokens.drain(..self.shown);
        self.shown = self.tokens.len();
        Ok(Some(piece))
    }
}

/// A prompt as a chat in ChatML, of which an answer is next.
fn chat(template: &str, prompt: &str, system: Option<&str>) -> Result<String> {
    if !template.contains(START) {
        let text = format!(
            "the chat template of the model is not in ChatML ({START}), the only one here. Pass --raw to continue the prompt."
        );
        return Err(wrong(text));
    }
    let mut chat = String::new();
    let mut say = |role: &str, content: &str| {
        chat += &format!("{START}{role}\n{content}{END}\n");
    };
    if let Some(system) = system.or_else(|| default_system(template)) {
        say("system", system);
    }
    say("user", prompt);
    Ok(chat + START + "assistant\n")
}

/// The system message that a template has for chats without one: a literal of its own, as SmolLM2's and Qwen2.5's have it.
fn default_system(template: &str) -> Option<&str> {
    let begins = template
        .match_indices("<|im_start|>system")
        .map(|(at, found)| &template[at + found.len()..]);
    let mut texts = begins.filter_map(|rest| {
        let rest = rest.strip_prefix("\\n").or_else(|| rest.strip_prefix('\n'))?;
        let (text, _) = rest.split_once(END)?;
        (!text.is_empty() && !text.contains(['\'', '"', '{', '\\'])).then_some(text)
    });
    texts.next()
}
