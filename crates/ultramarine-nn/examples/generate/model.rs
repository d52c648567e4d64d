//! The architecture of Llama, with what Qwen2 and Qwen3 add to it. Fields are named as parameters in Hugging Face's files.

use super::cache::Cache;
use super::config::{Config, Rotary, Scaling};
use std::f64::consts::PI;
use ultramarine::fast::{AttentionMask, Rope, rope, scaled_dot_product_attention};
use ultramarine::{Array, Result, index};
use ultramarine_nn::{Embedding, Layer, Linear, MaybeQuantized, Module, RMSNorm, silu};

/// A language model: from tokens to scores of the next ones.
#[derive(Module)]
pub struct LanguageModel {
    model: Decoder,
    /// The last layer; absent where the embedding is used instead.
    lm_head: Option<MaybeQuantized<Linear>>,
    /// Number of tokens that there are.
    pub vocabulary: usize,
}

impl LanguageModel {
    /// A model of random weights.
    pub fn new(config: &Config) -> Result<LanguageModel> {
        let &Config { vocabulary, dims, .. } = config;
        let lm_head = match config.tied {
            true => None,
            false => Some(linear(dims, vocabulary, false)?),
        };
        Ok(LanguageModel { model: Decoder::new(config)?, lm_head, vocabulary })
    }

    /// Empty caches, one for each layer.
    pub fn new_caches(&self) -> Vec<Cache> {
        self.model.layers.iter().map(|_| Cache::default()).collect()
    }

    /// From tokens `(batch, positions)` to the output of the last layer but one, `(batch, positions, dims)`. With caches, the
    /// tokens follow those that the caches have.
    pub fn hidden(&self, tokens: &Array, caches: Option<&mut [Cache]>) -> Result<Array> {
        self.model.forward(tokens, caches)
    }

    /// Scores of all tokens to be next, `(..., vocabulary)`, by the output of [`LanguageModel::hidden`].
    pub fn logits(&self, hidden: &Array) -> Result<Array> {
        match &self.lm_head {
            Some(head) => head.forward(hidden),
            None => self.model.embed_tokens.as_linear(hidden),
        }
    }

    /// Scores after the last position alone, `(batch, vocabulary)`.
    pub fn last(&self, tokens: &Array, caches: &mut [Cache]) -> Result<Array> {
        self.logits(&self.hidden(tokens, Some(caches))?.index(index![.., -1])?)
    }
}

#[derive(Module)]
struct Decoder {
    embed_tokens: MaybeQuantized<Embedding>,
    layers: Vec<Block>,
    norm: RMSNorm,
}

impl Decoder {
    fn new(config: &Config) -> Result<Decoder> {
        let layers = (0..config.layers).map(|_| Block::new(config));
        Ok(Decoder {
            embed_tokens: Embedding::new(config.vocabulary, config.dims)?.into(),
            layers: layers.collect::<Result<_>>()?,
            norm: RMSNorm::new(config.dims)?.eps(config.eps),
        })
    }

    fn forward(&self, tokens: &Array, mut caches: Option<&mut [Cache]>) -> Result<Array> {
        let mut x = self.embed_tokens.forward(tokens)?;
        for (i, layer) in self.layers.iter().enumerate() {
            x = layer.forward(&x, caches.as_mut().map(|c| &mut c[i]))?;
        }
        self.norm.forward(&x)
    }
}

/// Attention and MLP, each behind a norm and added to its input.
#[derive(Module)]
struct Block {
    self_attn: Attention,
    mlp: Mlp,
    input_layernorm: RMSNorm,
    post_attention_layernorm: RMSNorm,
}

impl Block {
    fn new(config: &Config) -> Result<Block> {
        Ok(Block {
            self_attn: Attention::new(config)?,
            mlp: Mlp::new(config)?,
            input_layernorm: RMSNorm::new(config.dims)?.eps(config.eps),
            post_attention_layernorm: RMSNorm::new(config.dims)?.eps(config.eps),
        })
    }

    fn forward(&self, x: &Array, cache: Option<&mut Cache>) -> Result<Array> {
        let x = (x + self.self_attn.forward(&self.input_layernorm.forward(x)?, cache)?)?;
        &x + self.mlp.forward(&self.post_attention_layernorm.forward(&x)?)?
    }
}

/// Causal attention, in which several heads of queries share one of keys and values.
#[derive(Module)]
struct Attention {
    q_proj: MaybeQuantized<Linear>,
    k_proj: MaybeQuantized<Linear>,
    v_proj: MaybeQuantized<Linear>,
    o_proj: MaybeQuantized<Linear>,
    /// Norms of each head's queries and keys, which Qwen3 has.
    q_norm: Option<RMSNorm>,
    k_norm: Option<RMSNorm>,
    heads: usize,
    kv_heads: usize,
    head_dims: usize,
    #[module(skip)]
    rotation: Rotation,
}

impl Attention {
    fn new(config: &Config) -> Result<Attention> {
        let &Config { dims, heads, kv_heads, head_dims, qkv_bias, out_bias, .. } = config;
        let norm = || {
            let norm = config.head_norms.then(|| RMSNorm::new(head_dims)).transpose();
            norm.map(|norm| norm.map(|n| n.eps(config.eps)))
        };
        Ok(Attention {
            q_proj: linear(dims, heads * head_dims, qkv_bias)?,
            k_proj: linear(dims, kv_heads * head_dims, qkv_bias)?,
            v_proj: linear(dims, kv_heads * head_dims, qkv_bias)?,
            o_proj: linear(heads * head_dims, dims, out_bias)?,
            q_norm: norm()?,
            k_norm: norm()?,
            heads,
            kv_heads,
            head_dims,
            rotation: Rotation::new(config.rotary, head_dims)?,
        })
    }

    /// From `(batch, positions, heads * size)` to `(batch, heads, positions, size)`.
    fn split(&self, y: &Array, heads: usize, norm: Option<&RMSNorm>) -> Result<Array> {
        let mut y = y.unflatten(-1, &[heads, self.head_dims])?;
        if let Some(norm) = norm {
            y = norm.forward(&y)?;
        }
        y.swapaxes(1, 2)
    }

    fn forward(&self, x: &Array, cache: Option<&mut Cache>) -> Result<Array> {
        let q = self.split(&self.q_proj.forward(x)?, self.heads, self.q_norm.as_ref())?;
        let k = self.split(&self.k_proj.forward(x)?, self.kv_heads, self.k_norm.as_ref())?;
        let mut v = self.split(&self.v_proj.forward(x)?, self.kv_heads, None)?;
        let start = cache.as_ref().map_or(0, |c| c.len());
        let (q, mut k) = (self.rotation.of(&q, start)?, self.rotation.of(&k, start)?);
        if let Some(cache) = cache {
            (k, v) = cache.append(&k, &v)?;
        }
        let mask = if x.shape()[1] > 1 { AttentionMask::Causal } else { AttentionMask::None };
        let scale = 1.0 / (self.head_dims as f64).sqrt();
        let y = scaled_dot_product_attention(&q, &k, &v, scale, mask, None, None)?;
        self.o_proj.forward(&y.swapaxes(1, 2)?.flatten(-2, -1)?)
    }
}

/// Two projections, one of which gates the other, and one back (SwiGLU; Shazeer, 2020).
#[derive(Module)]
struct Mlp {
    gate_proj: MaybeQuantized<Linear>,
    up_proj: MaybeQuantized<Linear>,
    down_proj: MaybeQuantized<Linear>,
}

impl Mlp {
    fn new(config: &Config) -> Result<Mlp> {
        let &Config { dims, hidden, mlp_bias, .. } = config;
        Ok(Mlp {
            gate_proj: linear(dims, hidden, mlp_bias)?,
            up_proj: linear(dims, hidden, mlp_bias)?,
            down_proj: linear(hidden, dims, mlp_bias)?,
        })
    }
}

impl Layer for Mlp {
    fn forward(&self, x: &Array) -> Result<Array> {
        let gated = silu(&self.gate_proj.forward(x)?)? * self.up_proj.forward(x)?;
        self.down_proj.forward(&gated?)
    }
}

/// Rotary position embeddings.
struct Rotation {
    how: Rope,
    /// Positions in which each pair turns by the angle 1, if they are not powers of the base.
    wavelengths: Option<Array>,
}

impl Rotation {
    fn new(rotary: Rotary, head_dims: usize) -> Result<Rotation> {
        let Rotary { base, scaling } = rotary;
        let dims = head_dims as isize;
        let mut how = Rope { dims, traditional: false, base: Some(base), scale: 1.0 };
        let mut wavelengths = None;
        match scaling {
            Scaling::None => {}
            Scaling::Linear { factor } => how.scale = 1.0 / factor,
            Scaling::Llama3 { factor, low, high, positions } => {
                how.base = None;
                let half = head_dims / 2;
                // Slow turns are stretched by the factor, fast ones stay, and those between go smoothly from one to the
                // other (Llama 3.1, section 3.4 and its published code).
                let stretched = (0..half).map(|i| {
                    let plain = base.powf(i as f64 / half as f64);
                    let turns = positions / (2.0 * PI * plain);
                    let kept = ((turns - low) / (high - low)).clamp(0.0, 1.0);
                    (1.0 / (kept / plain + (1.0 - kept) / (plain * factor))) as f32
                });
                let stretched: Vec<f32> = stretched.collect();
                wavelengths = Some(Array::from_slice(&stretched, &[half])?);
            }
        }
        Ok(Rotation { how, wavelengths })
    }

    /// Rotates `(batch, heads, positions, size)`, whose first position is `start`.
    fn of(&self, x: &Array, start: usize) -> Result<Array> {
        rope(x, self.how, &Array::scalar(start as i32), self.wavelengths.as_ref())
    }
}

fn linear(inputs: usize, outputs: usize, bias: bool) -> Result<MaybeQuantized<Linear>> {
    let layer =
        if bias { Linear::new(inputs, outputs) } else { Linear::without_bias(inputs, outputs) };
    Ok(layer?.into())
}
