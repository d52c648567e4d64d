//! The part of the file before the data: metadata, and the position of each tensor.

use super::super::source::Source;
use super::formats::Encoding;
use super::metadata::{self, Metadata, Value};
use crate::dtype::Dtype;
use crate::error::Result;
use crate::shape::Shape;
use std::collections::BTreeSet;

pub(super) const MAGIC: &[u8; 4] = b"GGUF";
/// Version that is written. Version 2 is the same, except that it has no arrays of arrays.
pub(super) const VERSION: u32 = 3;
pub(super) const ALIGNMENT_KEY: &str = "general.alignment";
const ALIGNMENT: u32 = 32;
/// Largest number of axes that arrays of this format may have, also in MLX. llama.cpp allows four.
pub(super) const MAX_AXES: usize = 8;

pub(super) struct TensorInfo {
    pub name: String,
    pub shape: Shape,
    pub encoding: Encoding,
    /// Position of the data in the source.
    pub start: u64,
    pub bytes: u64,
}

pub(super) struct Header {
    pub metadata: Metadata,
    pub tensors: Vec<TensorInfo>,
}

/// The alignment of the data, according to the metadata; the error describes an invalid value.
pub(super) fn alignment(metadata: &Metadata) -> Result<u32, String> {
    let Some(value) = metadata.get(ALIGNMENT_KEY) else { return Ok(ALIGNMENT) };
    let number = match value {
        Value::Array(array) if array.ndim() == 0 && array.dtype() == Dtype::Uint32 => {
            array.item::<u32>().map_err(|e| e.to_string())?
        }
        _ => return Err(format!("{ALIGNMENT_KEY} is not a uint32. Convert the model again")),
    };
    if !number.is_power_of_two() {
        return Err(format!(
            "{ALIGNMENT_KEY} is {number}, not a power of two. Convert the model again"
        ));
    }
    Ok(number)
}

impl Header {
    pub fn read(source: &mut Source<'_>) -> Result<Header> {
        let at = source.at;
        let magic = source.bytes::<4>("the magic number")?;
        if magic != *MAGIC {
            return Err(
                at.runtime(format!("Not a GGUF file: it begins with {magic:?}. Check the path."))
            );
        }
        let version = number(source, "the version")?;
        if (1..=VERSION).contains(&version.swap_bytes()) {
            let remedy = "Convert it with `gguf-convert-endian FILE little`, of the package gguf";
            return Err(at.runtime(format!("The file is big-endian. {remedy}.")));
        }
        if !(2..=VERSION).contains(&version) {
            return Err(at.runtime(format!(
                "The file has version {version} of GGUF, where 2 to {VERSION} are supported. Convert the model again."
            )));
        }
        let tensors = u64::from_le_bytes(source.bytes("the number of tensors")?);
        let values = u64::from_le_bytes(source.bytes("the number of metadata values")?);
        let mut metadata = Metadata::new();
        for index in 0..values {
            let key = text(source, &format!("the key of metadata value {index}"))?;
            let value = metadata::read(source, &key)?;
            if metadata.contains_key(&key) {
                return Err(at.runtime(format!(
                    "Metadata has two values '{key}'. Convert the model again."
                )));
            }
            metadata.insert(key, value);
        }
        let infos = (0..tensors).map(|index| TensorInfo::read(source, index));
        let mut header = Header { tensors: infos.collect::<Result<_>>()?, metadata };
        header.place(source)?;
        Ok(header)
    }

    /// Converts offsets to positions in the source, and checks that each tensor has a unique name and its own bytes.
    fn place(&mut self, source: &Source<'_>) -> Result<()> {
        let at = source.at;
        let alignment = alignment(&self.metadata).map_err(|e| at.runtime(format!("{e}.")))? as u64;
        let end = source.position() + source.left;
        let data = source.position().next_multiple_of(alignment);
        for TensorInfo { name, start, bytes, .. } in &mut self.tensors {
            if !start.is_multiple_of(alignment) {
                let text = format!(
                    "tensor '{name}' begins at byte {start} of the data, no multiple of {alignment}. Convert the model again."
                );
                return Err(at.runtime(text));
            }
            let place = start.checked_add(data).filter(|start| {
                *bytes == 0 || start.checked_add(*bytes).is_some_and(|last| last <= end)
            });
            *start = place.ok_or_else(|| {
                at.runtime(format!(
                    "tensor '{name}' takes {bytes} bytes from byte {start} of the data on, beyond the end of the file. Copy or download it again."
                ))
            })?;
        }
        let names: BTreeSet<&str> = self.tensors.iter().map(|tensor| &*tensor.name).collect();
        let mut order: Vec<&TensorInfo> = self.tensors.iter().filter(|t| t.bytes > 0).collect();
        order.sort_by_key(|tensor| tensor.start);
        if let Some(pair) = order.windows(2).find(|p| p[0].start + p[0].bytes > p[1].start) {
            let text = format!(
                "Tensors '{}' and '{}' overlap. Convert the model again.",
                pair[0].name, pair[1].name
            );
            return Err(at.runtime(text));
        }
        if names.len() < self.tensors.len() {
            return Err(at.runtime("Two tensors have the same name. Convert the model again."));
        }
        Ok(())
    }
}

impl TensorInfo {
    fn read(source: &mut Source<'_>, index: u64) -> Result<TensorInfo> {
        let at = source.at;
        let name = text(source, &format!("the name of tensor {index}"))?;
        let what = format!("tensor '{name}'");
        let axes = number(source, &what)? as usize;
        if axes > MAX_AXES {
            return Err(at.runtime(format!(
                "{what} has {axes} axes, where {MAX_AXES} are supported. Convert the model again."
            )));
        }
        let mut sizes = [0u64; MAX_AXES];
        for size in &mut sizes[..axes] {
            *size = u64::from_le_bytes(source.bytes(&what)?);
        }
        let code = number(source, &what)?;
        let start = u64::from_le_bytes(source.bytes(&what)?);
        let encoding = Encoding::from_code(code)
            .map_err(|reason| at.runtime(format!("{what} has type {code}, {reason}.")))?;
        let sizes = &sizes[..axes];
        let (elements, bytes) = encoding.block();
        if elements > 1 && !sizes.first().is_some_and(|row| row.is_multiple_of(elements as u64)) {
            let name = if let Encoding::Blocks(format) = encoding { format.name } else { "" };
            let row = sizes.first().map_or(1, |row| *row);
            let text = format!(
                "{what} of type {name} has rows of {row} elements, no multiple of {elements}. Convert the model again."
            );
            return Err(at.runtime(text));
        }
        // If one size is 0, the product is 0 and the other sizes may have any value.
        let count =
            (!sizes.contains(&0)).then(|| sizes.iter().try_fold(1u64, |n, s| n.checked_mul(*s)));
        let total = match count {
            None => Some(0),
            Some(count) => count.and_then(|n| (n / elements as u64).checked_mul(bytes as u64)),
        };
        // The file lists the fastest axis first.
        let shape = sizes.iter().rev().map(|size| usize::try_from(*size).ok()).collect();
        match (total, shape) {
            (Some(bytes), Some(shape)) => Ok(TensorInfo { name, shape, encoding, start, bytes }),
            _ => Err(at.runtime(format!(
                "{what} has impossible sizes {sizes:?}. Convert the model again."
            ))),
        }
    }
}

/// A 32-bit number.
pub(super) fn number(source: &mut Source<'_>, what: &str) -> Result<u32> {
    Ok(u32::from_le_bytes(source.bytes(what)?))
}

/// A text, preceded by its length.
fn text(source: &mut Source<'_>, what: &str) -> Result<String> {
    let bytes = string(source, what)?;
    String::from_utf8(bytes)
        .map_err(|_| source.at.runtime(format!("{what} is not UTF-8. Convert the model again.")))
}

/// Bytes, preceded by their number.
pub(super) fn string(source: &mut Source<'_>, what: &str) -> Result<Vec<u8>> {
    let length = u64::from_le_bytes(source.bytes(what)?);
    source.text(length, what)
}
