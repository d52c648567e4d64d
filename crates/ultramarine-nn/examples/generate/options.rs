//! The arguments of the program.

use super::sampling::Sampler;
use lexopt::{Arg, Parser, ValueExt};
use std::io::Read;
use std::path::PathBuf;
use ultramarine::Device;

pub const HELP: &str = "\
Generates text with a language model.

  generate --model DIR [--prompt TEXT]

DIR is a folder in Hugging Face's layout: config.json, tokenizer.json and model*.safetensors. Its model_type is llama,
qwen2 or qwen3. Weights are bfloat16, float16, float32, or of few bits, as mlx-lm's `convert -q` writes them.

  --model DIR        the model's folder
  --prompt TEXT      a question, or the beginning of a text; - reads it from the standard input
  --raw              continue the prompt, without a chat template
  --system TEXT      the system message of a chat; otherwise that of the model's template
  --max-tokens N     tokens to generate at most; 200 by default
  --temperature T    0, the default, takes the most probable token; 1 draws by the model's probabilities
  --top-p P          draw among the most probable tokens that have the probability P together; 1 by default
  --seed N           seed of the draws; 0 by default
  --device NAME      cpu (the default), gpu, or gpu:1 for the second one
  --help             this text

Chat templates are Jinja programs, which this one does not run. It writes a prompt in ChatML (<|im_start|>) for
models whose template does, as those of SmolLM2 and Qwen; a model without a template continues the prompt. Others
need --raw.

The text goes to the standard output, tokens a second to the standard error.
";

/// The user's options.
pub struct Options {
    pub model: PathBuf,
    pub prompt: String,
    pub raw: bool,
    pub system: Option<String>,
    pub max_tokens: usize,
    pub sampler: Sampler,
    pub seed: u64,
    pub device: Device,
}

/// Why there are no options.
pub enum Stop {
    Help,
    Wrong(String),
}

impl From<lexopt::Error> for Stop {
    fn from(error: lexopt::Error) -> Stop {
        Stop::Wrong(error.to_string())
    }
}

impl Options {
    /// The options of the command line.
    pub fn parse() -> Result<Options, Stop> {
        let mut model = None;
        let mut options = Options {
            model: PathBuf::new(),
            prompt: "What is the capital of France?".to_owned(),
            raw: false,
            system: None,
            max_tokens: 200,
            sampler: Sampler { temperature: 0.0, top_p: 1.0 },
            seed: 0,
            device: Device::CPU,
        };
        let mut arguments = Parser::from_env();
        while let Some(argument) = arguments.next()? {
            match argument {
                Arg::Long("model") => model = Some(arguments.value()?.into()),
                Arg::Long("prompt") => options.prompt = arguments.value()?.string()?,
                Arg::Long("raw") => options.raw = true,
                Arg::Long("system") => options.system = Some(arguments.value()?.string()?),
                Arg::Long("max-tokens") => options.max_tokens = arguments.value()?.parse()?,
                Arg::Long("temperature") => {
                    options.sampler.temperature = arguments.value()?.parse()?;
                }
                Arg::Long("top-p") => options.sampler.top_p = arguments.value()?.parse()?,
                Arg::Long("seed") => options.seed = arguments.value()?.parse()?,
                Arg::Long("device") => options.device = arguments.value()?.parse_with(device)?,
                Arg::Short('h') | Arg::Long("help") => return Err(Stop::Help),
                other => return Err(other.unexpected().into()),
            }
        }
        options.model = model.ok_or_else(|| wrong("--model is missing. Pass a folder."))?;
        let Sampler { temperature, top_p } = options.sampler;
        if !(temperature >= 0.0 && temperature.is_finite()) {
            return Err(wrong(format!("--temperature is {temperature}. Pass 0 or more.")));
        }
        if !(top_p > 0.0 && top_p <= 1.0) {
            return Err(wrong(format!("--top-p is {top_p}. Pass more than 0, and at most 1.")));
        }
        if options.max_tokens == 0 {
            return Err(wrong("--max-tokens is 0. Pass 1 or more."));
        }
        if options.prompt == "-" {
            options.prompt.clear();
            let read = std::io::stdin().read_to_string(&mut options.prompt);
            read.map_err(|e| wrong(format!("the prompt cannot be read: {e}")))?;
        }
        Ok(options)
    }
}

fn wrong(text: impl Into<String>) -> Stop {
    Stop::Wrong(text.into())
}

/// A device by its name.
fn device(name: &str) -> Result<Device, String> {
    let index = match (name, name.strip_prefix("gpu:")) {
        ("cpu", _) => return Ok(Device::CPU),
        ("gpu", _) => Some(0),
        (_, index) => index.and_then(|i| i.parse().ok()),
    };
    index.map(Device::gpu).ok_or_else(|| "devices are cpu, gpu and gpu:N".to_owned())
}
