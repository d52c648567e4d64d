//! Writes files.

use super::super::{Arrays, At, eval_all, with_extension};
use super::formats::Encoding;
use super::header::{MAGIC, MAX_AXES, VERSION, alignment};
use super::metadata::{self, Metadata, counted};
use super::prefix;
use super::repack::Quantized;
use crate::array::Array;
use crate::dtype::Dtype;
use crate::error::Result;
use std::collections::BTreeSet;
use std::io::{self, BufWriter, Read, Write};
use std::path::Path;

/// Saves arrays and metadata. `.gguf` is appended to a path without it. Data is aligned to 32 bytes, or to
/// `general.alignment` if the metadata contains it.
///
/// Arrays have the dtypes float16, bfloat16, float32, float64, int8, int16, int32 or int64. Quantised arrays, as
/// [`super::load`] returns them, become tensors of Q4_0, Q4_1, Q5_0, Q5_1 or Q8_0 without loss: uint32 words with
/// `.scales` and `.biases` of float16, in groups of 32. At 8 bits, the biases have to be -128 times the scales.
///
/// # Errors
/// [`crate::Error::Runtime`] for an array of another dtype or of more than eight axes, for a quantised array that no
/// type can hold, for metadata that the format cannot hold, and when the file cannot be written;
/// [`crate::Error::Value`] for numbers in metadata of a dtype that metadata cannot have; errors of evaluation.
pub fn save<'a>(
    path: impl AsRef<Path>,
    arrays: &Arrays,
    metadata: impl Into<Option<&'a Metadata>>,
) -> Result<()> {
    let path = with_extension(path.as_ref(), ".gguf");
    let name = path.display().to_string();
    let at = At { op: "save_gguf", name: &name };
    let contents = Contents::new(arrays, metadata.into(), at)?;
    at.replace(&path, |file| contents.write(&mut BufWriter::new(file), at))
}

/// Writes arrays to `writer`. `name` stands for the writer in errors.
///
/// # Errors
/// As [`save`].
pub fn write<'a>(
    writer: &mut dyn Write,
    arrays: &Arrays,
    metadata: impl Into<Option<&'a Metadata>>,
    name: &str,
) -> Result<()> {
    let at = At { op: "save_gguf", name };
    Contents::new(arrays, metadata.into(), at)?.write(writer, at)
}

/// A tensor to be written.
struct Tensor<'a> {
    name: &'a str,
    code: u32,
    shape: Vec<usize>,
    bytes: u64,
    data: Data<'a>,
}

enum Data<'a> {
    Array(&'a Array),
    Blocks(Quantized<'a>),
}

/// The contents of a file before it is written. All checks have passed.
struct Contents<'a> {
    head: Vec<u8>,
    tensors: Vec<Tensor<'a>>,
    alignment: u64,
}

impl<'a> Contents<'a> {
    fn new(arrays: &'a Arrays, metadata: Option<&Metadata>, at: At<'_>) -> Result<Contents<'a>> {
        let none = Metadata::new();
        let metadata = metadata.unwrap_or(&none);
        eval_all(arrays)?;
        let alignment = alignment(metadata).map_err(|e| at.runtime(format!("{e}.")))? as u64;
        let tensors = tensors(arrays, at)?;
        let mut head = MAGIC.to_vec();
        head.extend(VERSION.to_le_bytes());
        head.extend((tensors.len() as u64).to_le_bytes());
        head.extend((metadata.len() as u64).to_le_bytes());
        for (key, value) in metadata {
            counted(key.as_bytes(), &mut head);
            metadata::write(key, value, &mut head)?;
        }
        let mut offset = 0u64;
        for tensor in &tensors {
            counted(tensor.name.as_bytes(), &mut head);
            head.extend((tensor.shape.len() as u32).to_le_bytes());
            tensor.shape.iter().rev().for_each(|size| head.extend((*size as u64).to_le_bytes()));
            head.extend(tensor.code.to_le_bytes());
            head.extend(offset.to_le_bytes());
            offset += tensor.bytes.next_multiple_of(alignment);
        }
        Ok(Contents { head, tensors, alignment })
    }

    fn write(&self, writer: &mut dyn Write, at: At<'_>) -> Result<()> {
        let mut put = |bytes: &[u8]| {
            writer.write_all(bytes)?;
            let end = (bytes.len() as u64).next_multiple_of(self.alignment);
            io::copy(&mut io::repeat(0).take(end - bytes.len() as u64), writer)
        };
        put(&self.head).map_err(|e| at.not_written(e))?;
        for tensor in &self.tensors {
            let written = match &tensor.data {
                Data::Array(array) => array.with_bytes(&mut put)?,
                Data::Blocks(parts) => put(&parts.blocks()?),
            };
            written.map_err(|e| at.not_written(e))?;
        }
        writer.flush().map_err(|e| at.not_written(e))
    }
}

/// The tensors as which the arrays are written.
fn tensors<'a>(arrays: &'a Arrays, at: At<'_>) -> Result<Vec<Tensor<'a>>> {
    let mut tensors = Vec::new();
    let mut parts = BTreeSet::new();
    for (name, words) in arrays.iter().filter(|(_, array)| array.dtype() == Dtype::Uint32) {
        let [scales, biases] = ["scales", "biases"].map(|part| format!("{}.{part}", prefix(name)));
        if let (Some(scales), Some(biases)) = (arrays.get(&scales), arrays.get(&biases)) {
            let parts = Quantized::new(name, words, scales, biases, at)?;
            let (code, shape, bytes) = (parts.code(), parts.shape(), parts.bytes() as u64);
            tensors.push(Tensor { name, code, shape, bytes, data: Data::Blocks(parts) });
        } else {
            let text = format!(
                "dtype uint32 of '{name}' is not supported without '{scales}' and '{biases}'. Add these, use astype, or dequantize it."
            );
            return Err(at.runtime(text));
        }
        parts.extend([name.clone(), scales, biases]);
    }
    for (name, array) in arrays.iter().filter(|(name, _)| !parts.contains(*name)) {
        let code = Encoding::code_of(array.dtype()).ok_or_else(|| {
            let have = "float16, bfloat16, float32, float64 and int8 to int64";
            at.runtime(format!(
                "dtype {} of '{name}' is not supported. Convert it with astype: GGUF has {have}.",
                array.dtype()
            ))
        })?;
        let (shape, bytes) = (array.shape().to_vec(), array.nbytes() as u64);
        tensors.push(Tensor { name, code, shape, bytes, data: Data::Array(array) });
    }
    if let Some(tensor) = tensors.iter().find(|tensor| tensor.shape.len() > MAX_AXES) {
        let (name, axes) = (tensor.name, tensor.shape.len());
        return Err(
            at.runtime(format!("'{name}' has {axes} axes, more than {MAX_AXES}. Reshape it."))
        );
    }
    tensors.sort_by_key(|tensor| tensor.name);
    Ok(tensors)
}
