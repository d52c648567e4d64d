//! Metadata: values by key.

use super::super::source::Source;
use super::header::{number, string};
use crate::array::Array;
use crate::dtype::Dtype;
use crate::error::{Error, Result};
use std::collections::BTreeMap;

/// Metadata of a file: [`Value`]s by key, such as `general.architecture`.
pub type Metadata = BTreeMap<String, Value>;

/// A value of a file's [`Metadata`].
#[derive(Clone, Debug)]
pub enum Value {
    /// A number (an array without axes), or a 1-d array of numbers: bool, integers of 8 to 64 bits, float32 or float64.
    Array(Array),
    /// Text.
    Text(String),
    /// Text that is not UTF-8.
    Bytes(Vec<u8>),
    /// A list of texts, lists or 1-d arrays.
    List(Vec<Value>),
}

impl Value {
    /// Returns the text, if the value is one.
    ///
    /// ```
    /// use ultramarine::io::gguf::Value;
    /// assert_eq!(Value::from("llama").as_text(), Some("llama"));
    /// ```
    pub fn as_text(&self) -> Option<&str> {
        if let Value::Text(text) = self { Some(text) } else { None }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::Text(text.to_owned())
    }
}

impl From<Array> for Value {
    fn from(array: Array) -> Value {
        Value::Array(array)
    }
}

/// Type codes of numbers, and their dtypes.
const NUMBERS: &[(u32, Dtype)] = &[
    (0, Dtype::Uint8),
    (1, Dtype::Int8),
    (2, Dtype::Uint16),
    (3, Dtype::Int16),
    (4, Dtype::Uint32),
    (5, Dtype::Int32),
    (6, Dtype::Float32),
    (7, Dtype::Bool),
    (10, Dtype::Uint64),
    (11, Dtype::Int64),
    (12, Dtype::Float64),
];
const TEXT: u32 = 8;
const ARRAY: u32 = 9;

/// Largest nesting depth of arrays that is read; deeper nesting would need a deep stack.
const MAX_DEPTH: usize = 16;
/// Largest number of arrays inside one value. An array takes 12 bytes in a file, and many times that in memory.
const MAX_ARRAYS: usize = 1 << 16;

/// Reads the value of a key.
pub(super) fn read(source: &mut Source<'_>, key: &str) -> Result<Value> {
    let what = format!("the value of '{key}'");
    let code = number(source, &what)?;
    Reader { source, what: &what, arrays: 0 }.value(code, 0)
}

struct Reader<'r, 's> {
    source: &'r mut Source<'s>,
    what: &'r str,
    /// Number of arrays read so far.
    arrays: usize,
}

impl Reader<'_, '_> {
    fn refused(&self, text: &str) -> Error {
        self.source.at.runtime(format!("{} {text}.", self.what))
    }

    fn value(&mut self, code: u32, depth: usize) -> Result<Value> {
        match code {
            TEXT => {
                let bytes = string(self.source, self.what)?;
                let text = String::from_utf8(bytes).map(Value::Text);
                Ok(text.unwrap_or_else(|e| Value::Bytes(e.into_bytes())))
            }
            ARRAY => self.array(depth),
            _ => self.numbers(code, None),
        }
    }

    fn array(&mut self, depth: usize) -> Result<Value> {
        let code = number(self.source, self.what)?;
        let length = u64::from_le_bytes(self.source.bytes(self.what)?);
        self.arrays += 1;
        if depth == MAX_DEPTH || self.arrays > MAX_ARRAYS {
            return Err(
                self.refused("has arrays that are nested too deeply. Convert the model again")
            );
        }
        if !matches!(code, TEXT | ARRAY) {
            return self.numbers(code, Some(length));
        }
        // Each text takes at least the bytes of its length.
        self.source.need(length.saturating_mul(8), self.what)?;
        Ok(Value::List((0..length).map(|_| self.value(code, depth + 1)).collect::<Result<_>>()?))
    }

    /// A number, or an array of `length` numbers.
    fn numbers(&mut self, code: u32, length: Option<u64>) -> Result<Value> {
        let Some((_, dtype)) = NUMBERS.iter().find(|(own, _)| *own == code) else {
            return Err(
                self.refused(&format!("has type {code}, which is unknown. Update ultramarine"))
            );
        };
        let bytes = length.unwrap_or(1).saturating_mul(dtype.size() as u64);
        let bytes = self.source.text(bytes, self.what)?;
        let length = length.map(|length| length as usize);
        Ok(Value::Array(Array::from_bytes(&bytes, length.as_slice(), *dtype)?))
    }
}

/// Appends the bytes of a key's value, preceded by its type.
pub(super) fn write(key: &str, value: &Value, out: &mut Vec<u8>) -> Result<()> {
    let writer = Writer { key };
    out.extend(writer.code(value)?.to_le_bytes());
    writer.body(value, out, 0)
}

struct Writer<'a> {
    key: &'a str,
}

impl Writer<'_> {
    fn refused(&self, text: &str) -> Error {
        Error::runtime("save_gguf", format!("metadata '{}': {text}.", self.key))
    }

    /// The type code of a value.
    fn code(&self, value: &Value) -> Result<u32> {
        Ok(match value {
            Value::Text(_) | Value::Bytes(_) => TEXT,
            Value::List(_) => ARRAY,
            Value::Array(array) if array.ndim() == 0 => self.number_code(array)?,
            Value::Array(_) => ARRAY,
        })
    }

    fn number_code(&self, array: &Array) -> Result<u32> {
        let found = NUMBERS.iter().find(|(_, dtype)| *dtype == array.dtype());
        found.map(|(code, _)| *code).ok_or_else(|| {
            let (key, dtype) = (self.key, array.dtype());
            let remedy = "Convert it to bool, an integer type or float32";
            let text = format!("metadata '{key}': array type {dtype} not supported. {remedy}.");
            Error::value("save_gguf", text)
        })
    }

    /// Appends the bytes of a value, without its type.
    fn body(&self, value: &Value, out: &mut Vec<u8>, depth: usize) -> Result<()> {
        match value {
            Value::Text(text) => counted(text.as_bytes(), out),
            Value::Bytes(bytes) => counted(bytes, out),
            Value::List(values) => {
                if depth == MAX_DEPTH {
                    return Err(self.refused("lists are nested too deeply. Nest fewer"));
                }
                let own = values.first().map_or(Ok(TEXT), |value| self.code(value))?;
                for value in values {
                    if !matches!(own, TEXT | ARRAY) || self.code(value)? != own {
                        let text = "a list mixes strings with arrays. Pass strings only, or lists and one-dimensional arrays only";
                        return Err(self.refused(text));
                    }
                }
                out.extend(own.to_le_bytes());
                out.extend((values.len() as u64).to_le_bytes());
                for value in values {
                    self.body(value, out, depth + 1)?;
                }
            }
            Value::Array(array) => {
                if array.ndim() > 1 {
                    return Err(
                        self.refused("Cannot save arrays with more than one dimension. Flatten it")
                    );
                }
                if array.ndim() == 1 {
                    out.extend(self.number_code(array)?.to_le_bytes());
                    out.extend((array.size() as u64).to_le_bytes());
                }
                array.with_bytes(|bytes| out.extend(bytes))?;
            }
        }
        Ok(())
    }
}

/// Appends bytes, preceded by their number.
pub(super) fn counted(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend((bytes.len() as u64).to_le_bytes());
    out.extend(bytes);
}
