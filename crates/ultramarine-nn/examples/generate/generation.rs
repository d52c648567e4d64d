//! The loop of generation.

use super::cache::Cache;
use super::model::LanguageModel;
use super::sampling::Sampler;
use ultramarine::{Array, Error, Result, async_eval, eval};

/// Tokens of a prompt that are computed at a time: bounds the memory of scores.
const PREFILL: usize = 512;

/// Tokens that follow a prompt, at most `limit`.
///
/// While the device computes a token, the host builds the graph of the next one, and the caller uses the last one.
pub struct Tokens<'a> {
    model: &'a LanguageModel,
    caches: Vec<Cache>,
    sampler: Sampler,
    /// The token that is being computed, `(1)`.
    coming: Option<Array>,
    /// Number of tokens that are still to come.
    left: usize,
}

/// Starts generation.
///
/// # Errors
/// [`Error::Value`] for a prompt without tokens, or with one that the model does not have.
pub fn generate<'a>(
    model: &'a LanguageModel,
    prompt: &[u32],
    limit: usize,
    sampler: Sampler,
) -> Result<Tokens<'a>> {
    if let Some(token) = prompt.iter().find(|t| **t as usize >= model.vocabulary) {
        let text = format!(
            "the prompt has the token {token}, and the model {} tokens. Check that tokenizer.json is the model's.",
            model.vocabulary
        );
        return Err(Error::value("generate", text));
    }
    let mut caches = model.new_caches();
    let mut rest = prompt;
    while rest.len() > PREFILL {
        let (now, later) = rest.split_at(PREFILL);
        model.hidden(&row(now)?, Some(&mut caches))?;
        let written: Vec<&Array> = caches.iter().flat_map(Cache::arrays).collect();
        eval(&written)?;
        rest = later;
    }
    if rest.is_empty() {
        return Err(Error::value("generate", "the prompt has no tokens. Pass a text."));
    }
    let mut tokens = Tokens { model, caches, sampler, coming: None, left: limit };
    if limit > 0 {
        tokens.start(&row(rest)?)?;
    }
    Ok(tokens)
}

/// Tokens as a batch of one.
fn row(tokens: &[u32]) -> Result<Array> {
    Array::from_slice(tokens, &[1, tokens.len()])
}

impl Tokens<'_> {
    /// Starts to compute the token after these, `(1, positions)`.
    fn start(&mut self, tokens: &Array) -> Result<()> {
        let logits = self.model.last(tokens, &mut self.caches)?;
        let next = self.sampler.sample(&logits)?;
        async_eval(&[&next])?;
        self.coming = Some(next);
        Ok(())
    }
}

impl Iterator for Tokens<'_> {
    type Item = Result<u32>;

    fn next(&mut self) -> Option<Result<u32>> {
        let token = self.coming.take()?;
        self.left -= 1;
        if self.left > 0
            && let Err(error) = token.expand_dims(-1).and_then(|t| self.start(&t))
        {
            return Some(Err(error));
        }
        Some(token.item())
    }
}
