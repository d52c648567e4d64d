//! Attributes as JSON, for files of functions.
//!
//! - A struct is an object of its fields.
//! - A variant of an enum is its name, or an object that maps the name to an object of the
//!   variant's fields.
//! - Lists and options are arrays.
//! - A dtype is its name.
//! - A float that JSON cannot represent is a string: `inf`, `-inf`, or the bits of a NaN.

use serde_json::{Map, Value, json};
use std::fmt::Display;

/// A JSON value.
pub(crate) type Json = Value;

/// The reason why a value is not a valid attribute.
#[derive(Debug)]
pub(crate) struct Malformed(pub String);

impl Malformed {
    /// The error for a value where something else was expected.
    pub fn wanted(wanted: impl Display, given: &Json) -> Malformed {
        // Show only the beginning of a long value.
        let text: String = given.to_string().chars().take(40).collect();
        Malformed(format!("{text} instead of {wanted}"))
    }
}

/// Converts a float to JSON.
pub(crate) fn from_float(value: f64) -> Json {
    match value {
        v if v.is_finite() => json!(v),
        v if v.is_nan() => json!(format!("nan:{:016x}", v.to_bits())),
        v => json!(if v > 0.0 { "inf" } else { "-inf" }),
    }
}

/// Undoes [`from_float`].
pub(crate) fn to_float(value: &Json) -> Result<f64, Malformed> {
    let text = |text: &str| match text {
        "inf" => Some(f64::INFINITY),
        "-inf" => Some(f64::NEG_INFINITY),
        _ => {
            let bits = text.strip_prefix("nan:").filter(|bits| bits.len() == 16)?;
            let float = f64::from_bits(u64::from_str_radix(bits, 16).ok()?);
            float.is_nan().then_some(float)
        }
    };
    let found = match value {
        Value::String(s) => text(s),
        _ => value.as_f64().filter(|v| v.is_finite()),
    };
    found.ok_or_else(|| Malformed::wanted("a float", value))
}

/// The elements of an array.
pub(crate) fn list(value: &Json) -> Result<&[Json], Malformed> {
    let all = value.as_array().ok_or_else(|| Malformed::wanted("a list", value))?;
    Ok(all)
}

/// The fields of a struct or a variant. Their names are exactly the expected ones.
pub(crate) struct Fields<'a>(Option<&'a Map<String, Json>>);

impl<'a> Fields<'a> {
    /// The fields of a struct.
    pub fn of(value: &'a Json, names: &[&str]) -> Result<Fields<'a>, Malformed> {
        let map = value.as_object().ok_or_else(|| Malformed::wanted("an object", value))?;
        Fields(Some(map)).named(names)
    }

    /// Name and fields of a variant.
    pub fn variant(value: &'a Json) -> Result<(&'a str, Fields<'a>), Malformed> {
        let named = match value {
            Value::String(name) => Some((name.as_str(), Fields(None))),
            Value::Object(map) if map.len() == 1 => map.iter().next().and_then(|(name, fields)| {
                Some((name.as_str(), Fields(Some(fields.as_object()?))))
            }),
            _ => None,
        };
        named.ok_or_else(|| Malformed::wanted("a variant", value))
    }

    /// Checks that there are the fields of these names, and no others.
    pub fn named(self, names: &[&str]) -> Result<Fields<'a>, Malformed> {
        let given = self.0.map_or(0, Map::len);
        let missing = names.iter().find(|name| self.0.is_none_or(|map| !map.contains_key(**name)));
        match missing {
            Some(name) => Err(Malformed(format!("attribute `{name}` is missing"))),
            None if given > names.len() => {
                Err(Malformed(format!("{given} attributes, expected {}", names.join(", "))))
            }
            None => Ok(self),
        }
    }

    /// The field of a name, read by `read`.
    pub fn get<T>(
        &self,
        name: &str,
        read: impl FnOnce(&Json) -> Result<T, Malformed>,
    ) -> Result<T, Malformed> {
        let value = self.0.and_then(|map| map.get(name)).unwrap_or(&Value::Null);
        read(value).map_err(|Malformed(text)| Malformed(format!("{name}: {text}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_exact() {
        let numbers = [0.0, -0.0, 0.1, 5e-324, f64::MAX, f64::MIN_POSITIVE, 1.0 / 3.0];
        let others = [f64::INFINITY, f64::NEG_INFINITY, f64::NAN, -f64::NAN];
        let odd = f64::from_bits(0x7ff4_0000_0000_0001);
        for value in numbers.into_iter().chain(others).chain([odd]) {
            let text = from_float(value).to_string();
            let read = to_float(&serde_json::from_str(&text).expect("JSON")).expect("a float");
            assert_eq!(read.to_bits(), value.to_bits(), "{text}");
        }
        for wrong in ["\"nan\"", "\"nan:7ff0000000000000\"", "\"infinity\"", "[1.0]", "null"] {
            let value = serde_json::from_str(wrong).expect("JSON");
            assert!(to_float(&value).is_err(), "{wrong}");
        }
    }
}
