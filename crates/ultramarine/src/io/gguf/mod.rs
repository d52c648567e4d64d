//! The GGUF format: metadata, the tensors' names, shapes and types, and their data.
//!
//! Versions 2 and 3 are read and version 3 is written, little-endian. Tensors in blocks become quantised arrays where
//! MLX returns them, or wherever a quantised array holds the same numbers. Otherwise they are decoded to floats
//! ([`Options`]). See docs/gguf.md for the types.
//!
//! ```
//! use ultramarine::{Array, io::gguf::{self, Metadata}};
//! let path = std::env::temp_dir().join("ultramarine-example.gguf");
//! let arrays = [("w.weight".into(), Array::from_slice(&[1.0f32, 2.0], &[2])?)].into();
//! let metadata = Metadata::from([
//!     ("general.architecture".into(), "llama".into()),
//!     ("llama.block_count".into(), Array::scalar(30u32).into()),
//! ]);
//! gguf::save(&path, &arrays, &metadata)?;
//! let (arrays, metadata) = gguf::load(&path)?;
//! assert_eq!(arrays["w.weight"].to_vec::<f32>()?, [1.0, 2.0]);
//! assert_eq!(metadata["general.architecture"].as_text(), Some("llama"));
//! # std::fs::remove_file(&path)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod blocks;
mod formats;
mod header;
mod metadata;
mod packed;
mod repack;
mod save;

pub use metadata::{Metadata, Value};
pub use save::{save, write};

use super::decode::{Decode, Layout};
use super::source::Source;
use super::{Arrays, At, ReadSeek};
use crate::array::Array;
use crate::dtype::Dtype;
use crate::error::{Error, Result};
use crate::shape::Shape;
use formats::{BlockFormat, Encoding};
use header::{Header, TensorInfo};
use packed::PackedFormat;
use std::io::BufReader;
use std::path::Path;
use std::sync::Arc;

/// The form in which [`load_with`] returns tensors that a file stores in blocks of few-bit numbers. The default is
/// MLX's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Selects the tensors that become quantised arrays.
    pub packing: Packing,
    /// Dtype of the other tensors: float16, bfloat16 or float32. Numbers are computed in float32 and rounded once.
    pub dtype: Dtype,
}

/// Selects the tensors in blocks that become quantised arrays. The words have the tensor's name; `.scales` and
/// `.biases` replace its `.weight`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// No tensors.
    Never,
    /// Tensors of types Q4_0, Q4_1 and Q8_0, as in MLX.
    Common,
    /// Also tensors of types Q5_0, Q5_1, Q4_K, Q5_K, MXFP4 and NVFP4.
    Lossless,
}

impl Packing {
    /// The packing with that name: `never`, `common` or `lossless`.
    ///
    /// # Errors
    /// [`Error::Value`] for an unknown name.
    pub fn from_name(name: &str) -> Result<Packing> {
        match name {
            "never" => Ok(Packing::Never),
            "common" => Ok(Packing::Common),
            "lossless" => Ok(Packing::Lossless),
            _ => {
                let text =
                    format!("Unknown packing '{name}'. Use 'never', 'common' or 'lossless'.");
                Err(Error::value("load_gguf", text))
            }
        }
    }

    fn takes(self, format: &PackedFormat) -> bool {
        match self {
            Packing::Never => false,
            Packing::Common => format.common,
            Packing::Lossless => true,
        }
    }
}

impl Default for Options {
    /// The options that match MLX.
    fn default() -> Options {
        Options { packing: Packing::Common, dtype: Dtype::Float16 }
    }
}

/// Loads the arrays and the metadata of a file. The data of an array is read and decoded when the array is evaluated.
///
/// # Errors
/// [`Error::Io`] when the file cannot be opened, [`Error::Runtime`] when it is truncated, damaged or not a GGUF file,
/// or has a tensor of an unknown type.
pub fn load(path: impl AsRef<Path>) -> Result<(Arrays, Metadata)> {
    load_with(path, Options::default())
}

/// Loads a file with options.
///
/// # Errors
/// As [`load`]; [`Error::Value`] for a dtype to which blocks are not decoded.
pub fn load_with(path: impl AsRef<Path>, options: Options) -> Result<(Arrays, Metadata)> {
    let name = path.as_ref().display().to_string();
    let at = At { op: "load_gguf", name: &name };
    read_from(&mut Source::of_file(&at.open(path.as_ref())?, at), options)
}

/// Reads from the reader's present position to its end. `name` stands for the reader in errors.
///
/// # Errors
/// As [`load_with`].
pub fn read(reader: &mut dyn ReadSeek, options: Options, name: &str) -> Result<(Arrays, Metadata)> {
    let mut reader = BufReader::with_capacity(1 << 16, reader);
    read_from(&mut Source::to_end(&mut reader, At { op: "load_gguf", name })?, options)
}

fn read_from(source: &mut Source<'_>, options: Options) -> Result<(Arrays, Metadata)> {
    if !matches!(options.dtype, Dtype::Float16 | Dtype::Bfloat16 | Dtype::Float32) {
        let text =
            format!("Blocks cannot become {}. Pass float16, bfloat16 or float32.", options.dtype);
        return Err(Error::value(source.at.op, text));
    }
    let header = Header::read(source)?;
    let mut arrays = Arrays::new();
    for tensor in header.tensors {
        for (name, array) in read_tensor(source, &tensor, options)? {
            if arrays.contains_key(&name) {
                let text = format!(
                    "Two arrays have the name '{name}', one of them a part of a quantised tensor. Load the file with packing 'never'."
                );
                return Err(source.at.runtime(text));
            }
            arrays.insert(name, array);
        }
    }
    Ok((arrays, header.metadata))
}

/// The arrays for a tensor, by name.
fn read_tensor(
    source: &mut Source<'_>,
    tensor: &TensorInfo,
    options: Options,
) -> Result<Vec<(String, Array)>> {
    let what = format!("tensor '{}'", tensor.name);
    let mut part = |name: String, shape: Shape, dtype: Dtype, decode: Decode| {
        // An empty tensor may lie beyond the end of a file that is not padded.
        if tensor.bytes > 0 {
            source.seek(tensor.start, &what)?;
        }
        let array = source.array(Layout::rows(dtype, shape), decode, &what)?;
        Ok((name, array))
    };
    let (name, shape) = (tensor.name.clone(), tensor.shape.clone());
    let format = match tensor.encoding {
        Encoding::Plain(dtype) => return Ok(vec![part(name, shape, dtype, Decode::Same)?]),
        Encoding::Blocks(format) => format,
    };
    let Some(packed) = format.packed.filter(|packed| options.packing.takes(packed)) else {
        let dtype = options.dtype;
        let decode = move |from: &[u8], to: &mut [u8]| (format.decode)(from, to, dtype);
        let decode = blocks(format, format.elements * dtype.size(), decode);
        return Ok(vec![part(name, shape, dtype, decode)?]);
    };
    let row = |size: &dyn Fn(usize) -> usize| {
        let mut shape = shape.clone();
        if let Some(row) = shape.last_mut() {
            *row = size(*row);
        }
        shape
    };
    let (groups, prefix) = (format.elements / packed.group_size, prefix(&name).to_owned());
    let words = row(&|n| n * packed.bits / 32);
    let scales = row(&|n| n / packed.group_size);
    let decode = blocks(format, format.elements * packed.bits / 8, packed.words);
    let mut arrays = vec![part(name, words, Dtype::Uint32, decode)?];
    for (suffix, decode) in [("scales", Some(packed.scales)), ("biases", packed.biases)] {
        let Some(decode) = decode else { continue };
        let decode = blocks(format, groups * packed.scale.size(), decode);
        arrays.push(part(format!("{prefix}.{suffix}"), scales.clone(), packed.scale, decode)?);
    }
    Ok(arrays)
}

/// A decoder from a format's blocks to `made` bytes each.
fn blocks(
    format: &BlockFormat,
    made: usize,
    decode: impl Fn(&[u8], &mut [u8]) + Send + Sync + 'static,
) -> Decode {
    Decode::Blocks { stored: format.bytes, made, decode: Arc::new(decode) }
}

/// The name of a quantised tensor without `.weight`, to which `.scales` is appended. As in MLX the last seven bytes are
/// removed, whatever they are.
fn prefix(name: &str) -> &str {
    let end = name.len().checked_sub(".weight".len());
    end.and_then(|end| name.get(..end)).unwrap_or(name)
}
