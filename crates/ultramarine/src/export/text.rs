//! The program of a file as JSON text. These types have the structure of the JSON.

use crate::dtype::Dtype;
use crate::graph::attribute_json::Json;
use crate::shape::{self, Shape};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The version that is written, and the newest version that can be read.
pub(super) const VERSION: u32 = 1;

/// All traces of a function.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProgramText {
    pub version: u32,
    pub traces: Vec<TraceText>,
}

/// Only the version, which every version of the format has.
#[derive(Deserialize)]
pub(super) struct VersionText {
    pub version: u32,
}

/// One trace. Values are numbered: the positional arguments, the keyword arguments in the order of their names, then
/// the steps.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TraceText {
    pub positional: Vec<TypeText>,
    pub keywords: BTreeMap<String, TypeText>,
    pub shapeless: bool,
    pub steps: Vec<StepText>,
    /// The numbers of the results.
    pub outputs: Vec<u32>,
}

/// A dtype and a shape.
#[derive(Serialize, Deserialize)]
pub(super) struct TypeText(String, Vec<usize>);

impl TypeText {
    pub fn new(shape: &[usize], dtype: Dtype) -> TypeText {
        TypeText(dtype.name().into(), shape.into())
    }

    /// Returns the shape and the dtype, or a text that describes the error in them.
    pub fn read(&self) -> Result<(Shape, Dtype), String> {
        let TypeText(dtype, sizes) = self;
        let dtype =
            Dtype::from_name(dtype).ok_or_else(|| format!("there is no dtype `{dtype}`"))?;
        shape::check("import_function", sizes).map_err(|e| e.to_string())?;
        Ok((Shape::from_slice(sizes), dtype))
    }
}

/// A value that is not an argument.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub(super) enum StepText {
    /// The stored array of that name beside the program.
    Constant(String),
    Op(OpText),
    /// A result of an operation that has several results, or forwards operands.
    Result {
        of: u32,
        index: usize,
    },
}

/// An operation.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OpText {
    pub name: String,
    /// Version of the attributes.
    #[serde(default = "first", skip_serializing_if = "is_first")]
    pub version: u32,
    /// The numbers of the operands.
    pub of: Vec<u32>,
    /// The types of the results.
    pub gives: Vec<TypeText>,
    #[serde(default = "none", skip_serializing_if = "is_none")]
    pub attributes: Json,
}

fn first() -> u32 {
    1
}

fn is_first(version: &u32) -> bool {
    *version == 1
}

fn none() -> Json {
    Json::Object(serde_json::Map::new())
}

fn is_none(attributes: &Json) -> bool {
    attributes.as_object().is_some_and(|fields| fields.is_empty())
}
