//! Attributes of operations: their declarations, and the values of a call.

use super::Operation;
use crate::error::{Error, Result, bail};
use crate::extension::boundary::{list, text};
use crate::{dtype::Dtype, extension::types};
use std::fmt::{self, Display, Formatter};
use ultramarine_abi::extension::{Attribute, attribute};

/// Type of an attribute.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Kind {
    Integer,
    Flag,
    Number,
    /// A list of integers, or a single integer.
    Integers,
    Dtype,
    Text,
}

impl Display for Kind {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Integer => "integer",
            Kind::Flag => "flag",
            Kind::Number => "number",
            Kind::Integers => "integers",
            Kind::Dtype => "dtype",
            Kind::Text => "text",
        })
    }
}

/// An attribute that an operation takes.
pub(super) struct Spec {
    pub name: &'static str,
    pub kind: Kind,
    /// Default, as text; `None`: the attribute is required.
    pub default: Option<&'static str>,
}

impl Spec {
    /// The row for the documentation page.
    pub fn markdown(&self) -> String {
        match self.default {
            None => format!("`{}` ({})", self.name, self.kind),
            Some(default) => format!("`{}` ({}; {default})", self.name, self.kind),
        }
    }
}

impl Display for Spec {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.default {
            None => write!(f, "{} ({})", self.name, self.kind),
            Some(default) => write!(f, "{} ({}; {default})", self.name, self.kind),
        }
    }
}

/// The given value.
#[derive(Clone)]
enum Value<'a> {
    Integer(i64),
    Number(f64),
    Integers(&'a [i64]),
    Dtype(Dtype),
    Text(&'a str),
}

impl Value<'_> {
    fn is(&self, kind: Kind) -> bool {
        match self {
            Value::Integer(_) => matches!(kind, Kind::Integer | Kind::Number | Kind::Integers),
            Value::Number(_) => kind == Kind::Number,
            Value::Integers(_) => kind == Kind::Integers,
            Value::Dtype(_) => kind == Kind::Dtype,
            Value::Text(_) => kind == Kind::Text,
        }
    }

    fn kind(&self) -> Kind {
        match self {
            Value::Integer(_) => Kind::Integer,
            Value::Number(_) => Kind::Number,
            Value::Integers(_) => Kind::Integers,
            Value::Dtype(_) => Kind::Dtype,
            Value::Text(_) => Kind::Text,
        }
    }
}

/// The attributes of a call. They have the declared kinds, and all required ones are present.
pub(super) struct Values<'a> {
    of: &'static str,
    given: Vec<(&'static str, Value<'a>)>,
}

impl<'a> Values<'a> {
    pub fn new(operation: &Operation, attributes: &'a [Attribute]) -> Result<Values<'a>> {
        let of = operation.name;
        let mut given = Vec::with_capacity(attributes.len());
        for attribute in attributes {
            // SAFETY: the pointers of an attribute are valid during the call, by contract.
            let (name, value) = unsafe { taken(of, attribute)? };
            let spec = operation.attributes.iter().find(|s| s.name == name);
            let Some(spec) = spec else {
                return Err(wrong(operation, format!("There is no attribute `{name}`")));
            };
            let fits = match (spec.kind, &value) {
                (Kind::Flag, Value::Integer(n)) => matches!(n, 0 | 1),
                (kind, value) => value.is(kind),
            };
            if !fits {
                let text = format!("Attribute `{name}` is not of kind {}", value.kind());
                return Err(wrong(operation, text));
            }
            if given.iter().any(|(n, _)| *n == spec.name) {
                return Err(wrong(operation, format!("Attribute `{name}` is given twice")));
            }
            given.push((spec.name, value));
        }
        let missing = |s: &&Spec| s.default.is_none() && given.iter().all(|(n, _)| *n != s.name);
        if let Some(spec) = operation.attributes.iter().find(missing) {
            return Err(wrong(operation, format!("Attribute `{}` is missing", spec.name)));
        }
        Ok(Values { of, given })
    }

    fn get(&self, name: &str) -> Option<&Value<'a>> {
        self.given.iter().find(|(n, _)| *n == name).map(|(_, v)| v)
    }

    /// Returns the integer attribute `name`; `None` if it was not given.
    pub fn integer(&self, name: &str) -> Option<isize> {
        match self.get(name)? {
            Value::Integer(n) => Some(*n as isize),
            _ => None,
        }
    }

    /// Returns the integer attribute `name`, or `default` if it was not given.
    pub fn integer_or(&self, name: &str, default: isize) -> isize {
        self.integer(name).unwrap_or(default)
    }

    /// Returns the size attribute `name`; `None` if it was not given.
    ///
    /// # Errors
    /// [`Error::Value`] for a negative number.
    pub fn size(&self, name: &str) -> Result<Option<usize>> {
        let negative = |_| Error::value(self.of, format!("`{name}` is negative. Pass 0 or more."));
        self.integer(name).map(|n| usize::try_from(n).map_err(negative)).transpose()
    }

    /// Returns the flag `name`, or `default` if it was not given.
    pub fn flag(&self, name: &str, default: bool) -> bool {
        self.integer(name).map_or(default, |n| n != 0)
    }

    /// Returns the number attribute `name`; `None` if it was not given.
    pub fn number(&self, name: &str) -> Option<f64> {
        match self.get(name)? {
            Value::Integer(n) => Some(*n as f64),
            Value::Number(n) => Some(*n),
            _ => None,
        }
    }

    /// Returns the list of integers `name`; `None` if it was not given.
    pub fn integers(&self, name: &str) -> Option<Vec<isize>> {
        match self.get(name)? {
            Value::Integer(n) => Some(vec![*n as isize]),
            Value::Integers(all) => Some(all.iter().map(|n| *n as isize).collect()),
            _ => None,
        }
    }

    /// Returns the list of sizes `name`; empty if it was not given.
    ///
    /// # Errors
    /// [`Error::Value`] for a negative number.
    pub fn sizes(&self, name: &str) -> Result<Vec<usize>> {
        let all = self.integers(name).unwrap_or_default();
        let negative = |_| {
            Error::value(
                self.of,
                format!("`{name}` has a negative size: {all:?}. Pass sizes of 0 or more."),
            )
        };
        all.iter().map(|n| usize::try_from(*n).map_err(negative)).collect()
    }

    /// Returns the dtype attribute `name`; `None` if it was not given.
    pub fn dtype(&self, name: &str) -> Option<Dtype> {
        match self.get(name)? {
            Value::Dtype(dtype) => Some(*dtype),
            _ => None,
        }
    }

    /// Returns the text attribute `name`; `None` if it was not given.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.get(name)? {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }
}

/// Name and value of an attribute.
///
/// # Safety
/// Its pointers are NULL, or valid for `'a`.
unsafe fn taken<'a>(of: &str, a: &'a Attribute) -> Result<(&'a str, Value<'a>)> {
    // SAFETY: by this function's contract.
    unsafe {
        let name = text(of, "the name of an attribute", a.name)?;
        let value = match a.kind {
            attribute::INT => Value::Integer(a.integer),
            attribute::FLOAT => Value::Number(a.real),
            attribute::INTS => Value::Integers(list(of, name, a.integers, a.count)?),
            attribute::DTYPE => Value::Dtype(types::dtype(of, a.dtype)?),
            attribute::TEXT => Value::Text(text(of, name, a.text)?),
            other => {
                bail!(
                    of,
                    "Attribute `{name}` has kind {other}, which does not exist. Use one of UM_ATTRIBUTE_INT, UM_ATTRIBUTE_FLOAT, UM_ATTRIBUTE_TEXT, UM_ATTRIBUTE_INTS and UM_ATTRIBUTE_DTYPE."
                );
            }
        };
        Ok((name, value))
    }
}

#[cold]
fn wrong(operation: &Operation, text: String) -> Error {
    let takes: Vec<_> = operation.attributes.iter().map(Spec::to_string).collect();
    let takes = match takes.len() {
        0 => "it takes none".to_owned(),
        _ => format!("it takes {}", takes.join(", ")),
    };
    Error::value(operation.name, format!("{text}; {takes}."))
}
