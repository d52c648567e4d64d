//! The safetensors format: the length of a JSON header, the header, the tensors.
//!
//! The `safetensors` crate checks the header: tensors must be adjacent without gaps, and their
//! sizes must agree with shapes and dtypes.

use super::decode::{Decode, Layout};
use super::source::Source;
use super::{Arrays, At, Metadata, ReadSeek, eval_all, with_extension};
use crate::error::{Error, Result, bail};
use crate::{array::Array, dtype::Dtype};
use safetensors::tensor::{Dtype as FileDtype, Metadata as Header, TensorInfo};
use std::io::{BufWriter, Write};
use std::path::Path;

/// The longest header that the format's reference library reads.
const MAX_HEADER: u64 = 100_000_000;

/// Saves arrays by name as `.safetensors`, with text metadata if there is any. The extension is
/// appended to a path without it.
///
/// ```
/// use ultramarine::{Array, io::{Arrays, Metadata, safetensors}};
/// let path = std::env::temp_dir().join("ultramarine-save.safetensors");
/// let arrays = Arrays::from([("w".into(), Array::scalar(1.0f32))]);
/// safetensors::save(&path, &arrays, None)?;
/// safetensors::save(&path, &arrays, &Metadata::from([("format".into(), "mlx".into())]))?;
/// let (arrays, metadata) = safetensors::load(&path)?;
/// assert_eq!((arrays["w"].item::<f32>()?, metadata["format"].as_str()), (1.0, "mlx"));
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`Error::Value`] for an array named `__metadata__`, [`Error::Type`] for a dtype that the
/// format does not have, [`Error::Runtime`] when the file cannot be written; errors of
/// evaluation.
pub fn save<'a>(
    path: impl AsRef<Path>,
    arrays: &Arrays,
    metadata: impl Into<Option<&'a Metadata>>,
) -> Result<()> {
    let metadata = metadata.into();
    let path = with_extension(path.as_ref(), ".safetensors");
    eval_all(arrays)?;
    let name = path.display().to_string();
    let at = At { op: "save_safetensors", name: &name };
    at.replace(&path, |file| write_to(&mut BufWriter::new(file), arrays, metadata, at))
}

/// Writes arrays to `writer`, in the format of `.safetensors`. `name` stands for the writer in
/// errors.
///
/// # Errors
/// As [`save`].
pub fn write<'a>(
    writer: &mut dyn Write,
    arrays: &Arrays,
    metadata: impl Into<Option<&'a Metadata>>,
    name: &str,
) -> Result<()> {
    write_to(writer, arrays, metadata.into(), At { op: "save_safetensors", name })
}

/// Loads the arrays of a `.safetensors` file, and its metadata (empty if there is none). Each
/// array's data is read when the array is evaluated.
///
/// # Errors
/// [`Error::Io`] if the file cannot be opened. [`Error::Runtime`] if it is truncated, not a
/// safetensors file, or has a dtype that arrays do not have.
pub fn load(path: impl AsRef<Path>) -> Result<(Arrays, Metadata)> {
    let name = path.as_ref().display().to_string();
    let at = At { op: "load_safetensors", name: &name };
    read_from(&mut Source::of_file(&at.open(path.as_ref())?, at))
}

/// Reads a `.safetensors` file from the reader's present position to its end. `name` stands for the
/// reader in errors.
///
/// # Errors
/// As [`load`].
pub fn read(reader: &mut dyn ReadSeek, name: &str) -> Result<(Arrays, Metadata)> {
    read_from(&mut Source::to_end(reader, At { op: "load_safetensors", name })?)
}

fn read_from(source: &mut Source<'_>) -> Result<(Arrays, Metadata)> {
    let at = source.at;
    let length = u64::from_le_bytes(source.bytes("the header's length")?);
    if length > MAX_HEADER {
        return Err(at.runtime(format!(
            "Not a safetensors file: its header would have {length} bytes. Check the path."
        )));
    }
    let text = source.text(length, "the header")?;
    let header: Header =
        serde_json::from_slice(&text).map_err(|e| at.runtime(format!("bad header: {e}.")))?;
    if header.data_len() as u64 != source.left {
        let (wanted, left) = (header.data_len(), source.left);
        return Err(at.runtime(format!(
            "The tensors take {wanted} bytes, but the file has {left}. Copy or save it again."
        )));
    }
    let mut arrays = Arrays::new();
    for name in header.offset_keys() {
        // The header check ensured that each tensor begins where the previous one ended.
        let Some(info) = header.info(&name) else { continue };
        let dtype = from_file(info.dtype).ok_or_else(|| {
            at.runtime(format!(
                "Unsupported dtype {} of tensor '{name}'. Convert the file with another library.",
                info.dtype
            ))
        })?;
        let shape = info.shape.as_slice().into();
        let what = format!("tensor '{name}'");
        let array = source.array(Layout::rows(dtype, shape), Decode::Same, &what)?;
        arrays.insert(name, array);
    }
    let metadata = header.metadata().iter().flatten();
    Ok((arrays, metadata.map(|(k, v)| (k.clone(), v.clone())).collect()))
}

fn write_to(
    writer: &mut dyn Write,
    arrays: &Arrays,
    metadata: Option<&Metadata>,
    at: At<'_>,
) -> Result<()> {
    if arrays.contains_key("__metadata__") {
        bail!(at.op, "The name __metadata__ is reserved. Rename the array.");
    }
    // Write the widest types first, so that all tensors are aligned.
    let mut order: Vec<(&String, &Array)> = arrays.iter().collect();
    order.sort_by_key(|(_, a)| std::cmp::Reverse(a.itemsize()));
    let mut end = 0;
    // Write the header entry by entry: the crate's own header has no fixed order of the metadata,
    // and equal arrays must give equal files.
    let mut entries = Vec::new();
    if let Some(metadata) = metadata.filter(|metadata| !metadata.is_empty()) {
        entries.push(entry("__metadata__", metadata));
    }
    for (name, a) in &order {
        let dtype = to_file(a.dtype()).ok_or_else(|| unknown(at, a))?;
        let (shape, begin) = (a.shape().to_vec(), end);
        if a.dtype().bits() * a.size() % 8 != 0 {
            bail!(
                at.op,
                "{} numbers of {} do not fill whole bytes. Pad the array, or save its view(uint8).",
                a.size(),
                a.dtype()
            );
        }
        end += a.nbytes();
        entries.push(entry(name, &TensorInfo { dtype, shape, data_offsets: (begin, end) }));
    }
    let entries: Vec<String> =
        entries.into_iter().collect::<Result<_, _>>().map_err(|e| at.not_written(e))?;
    let mut header = format!("{{{}}}", entries.join(",")).into_bytes();
    header.resize(header.len().next_multiple_of(8), b' ');
    if header.len() as u64 > MAX_HEADER {
        return Err(at.runtime(format!(
            "A header of {} bytes is too long. Save fewer arrays or less metadata.",
            header.len()
        )));
    }
    let mut put = |bytes: &[u8]| writer.write_all(bytes).map_err(|e| at.not_written(e));
    put(&(header.len() as u64).to_le_bytes())?;
    put(&header)?;
    for (_, array) in order {
        array.with_bytes(&mut put)??;
    }
    writer.flush().map_err(|e| at.not_written(e))
}

fn entry(name: &str, value: &impl serde::Serialize) -> serde_json::Result<String> {
    Ok(format!("{}:{}", serde_json::to_string(name)?, serde_json::to_string(value)?))
}

fn to_file(dtype: Dtype) -> Option<FileDtype> {
    Some(match dtype {
        Dtype::Bool => FileDtype::BOOL,
        Dtype::Uint8 => FileDtype::U8,
        Dtype::Uint16 => FileDtype::U16,
        Dtype::Uint32 => FileDtype::U32,
        Dtype::Uint64 => FileDtype::U64,
        Dtype::Int8 => FileDtype::I8,
        Dtype::Int16 => FileDtype::I16,
        Dtype::Int32 => FileDtype::I32,
        Dtype::Int64 => FileDtype::I64,
        Dtype::Float16 => FileDtype::F16,
        Dtype::Float32 => FileDtype::F32,
        // MLX rejects this dtype; the format and other programs support it.
        Dtype::Float64 => FileDtype::F64,
        Dtype::Bfloat16 => FileDtype::BF16,
        Dtype::Complex64 => FileDtype::C64,
        Dtype::Float8E4m3fn => FileDtype::F8_E4M3,
        Dtype::Float8E4m3fnuz => FileDtype::F8_E4M3FNUZ,
        Dtype::Float8E5m2 => FileDtype::F8_E5M2,
        Dtype::Float8E5m2fnuz => FileDtype::F8_E5M2FNUZ,
        Dtype::Float8E8m0fnu => FileDtype::F8_E8M0,
        Dtype::Float6E2m3fnPacked => FileDtype::F6_E2M3,
        Dtype::Float6E3m2fnPacked => FileDtype::F6_E3M2,
        Dtype::Float4E2m1fnPacked => FileDtype::F4,
        _ => return None,
    })
}

#[cold]
fn unknown(at: At<'_>, array: &Array) -> Error {
    use Dtype::*;
    let hint = match array.dtype() {
        Float6E2m3fn => "Convert with astype(float6_e2m3fn_packed)",
        Float6E3m2fn => "Convert with astype(float6_e3m2fn_packed)",
        Float4E2m1fn | Float4E2m1fnX2 => "Convert with astype(float4_e2m1fn_packed)",
        _ => "Save its view(uint8)",
    };
    at.no_dtype("safetensors", array, hint)
}

fn from_file(dtype: FileDtype) -> Option<Dtype> {
    Dtype::ALL.into_iter().chain(Dtype::STORAGE).find(|d| to_file(*d) == Some(dtype))
}
