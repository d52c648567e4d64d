//! Reads and checks the schema file.

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use std::collections::BTreeMap;

/// The whole file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schema {
    /// Name, type code of DLPack, bits.
    pub dtypes: Vec<(String, String, u32)>,
    /// Named sets of dtypes.
    pub sets: BTreeMap<String, Vec<String>>,
    /// Rules for every op: heading and text.
    pub rules: Vec<(String, String)>,
    /// Shape rules by name, as text.
    pub shapes: BTreeMap<String, String>,
    /// Code tables by the name of their module.
    pub codes: toml::Table,
    /// Attribute structs.
    pub attributes: Vec<Attributes>,
    /// Operations.
    pub op: Vec<Op>,
    /// `codes`, decoded, in the order of the file.
    #[serde(skip)]
    pub tables: Vec<(String, Codes)>,
}

/// A code table.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Codes {
    /// The description, for Rust's documentation and for C's.
    pub rust: String,
    pub c: String,
    pub list: Vec<Code>,
}

/// One code.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Code {
    pub id: u32,
    pub name: String,
    pub doc: String,
    pub dtypes: String,
    #[serde(default = "main")]
    pub output: String,
    #[serde(default)]
    pub ulps: u32,
    #[serde(default)]
    pub sums: bool,
    #[serde(default = "any")]
    pub domain: String,
    #[serde(default = "basic")]
    pub grade: String,
    /// The op that does not have this code of its table.
    pub not_in: Option<String>,
}

/// An attribute struct.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attributes {
    pub name: String,
    pub doc: String,
    pub fields: Vec<Field>,
}

/// One of its fields.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Field {
    pub name: String,
    #[serde(rename = "type")]
    pub kind: String,
    pub code: Option<String>,
    pub doc: Option<String>,
}

/// One operation.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Op {
    pub id: u32,
    pub name: String,
    pub family: String,
    #[serde(default = "one")]
    pub revision: u32,
    /// Description of the results, in a sentence or two.
    pub doc: String,
    /// The same as lines of code.
    #[serde(default)]
    pub formula: String,
    pub attributes: String,
    pub grade: String,
    pub shape: String,
    pub inputs: Vec<Input>,
    /// Name, shape and meaning of each output.
    pub results: Vec<Output>,
    #[serde(default)]
    pub scalars: Vec<String>,
    /// Meaning of each scalar, or one text for all.
    #[serde(default)]
    pub scalar_docs: Vec<String>,
    pub dtypes: String,
    pub output: String,
    #[serde(default)]
    pub more_outputs: Vec<String>,
    /// Results at the edges.
    #[serde(default)]
    pub edges: Vec<String>,
    /// Accuracy.
    #[serde(default)]
    pub numbers: Vec<String>,
    /// Inputs whose memory the output may have.
    #[serde(default)]
    pub in_place: Vec<String>,
    #[serde(default)]
    pub sums: bool,
    /// Whatever the result's bits depend on in addition to the operands, as the end of "may depend
    /// on ...".
    #[serde(default)]
    pub order: String,
    #[serde(default)]
    pub ulps: u32,
    /// The codes of its attributes' table that the op has; `None` means all except those with
    /// `not_in`.
    pub codes: Option<Vec<String>>,
}

/// One input of an op.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Input {
    pub name: String,
    pub dtype: String,
    #[serde(default)]
    pub many: bool,
    #[serde(default)]
    pub optional: bool,
    pub shape: String,
    #[serde(default)]
    pub doc: String,
}

/// One output of an op.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Output {
    pub name: String,
    pub shape: String,
    #[serde(default)]
    pub doc: String,
}

fn main() -> String {
    "main".into()
}
fn any() -> String {
    "any".into()
}
fn basic() -> String {
    "basic".into()
}
fn one() -> u32 {
    1
}

impl Field {
    /// The description with Rust's links.
    pub fn doc(&self) -> String {
        match (&self.doc, &self.code) {
            (Some(doc), _) => doc.clone(),
            (None, Some(code)) => {
                let article = if code.starts_with(['a', 'e', 'i', 'o']) { "An" } else { "A" };
                format!("{article} [`{code}`] code.")
            }
            (None, None) => String::new(),
        }
    }

    /// Elements of an array of bytes.
    pub fn bytes(&self) -> Option<u32> {
        self.kind.strip_prefix("u8[")?.strip_suffix(']')?.parse().ok()
    }
}

impl Schema {
    /// The families, in the order of their first operations.
    pub fn families(&self) -> Vec<&str> {
        let mut all: Vec<&str> = Vec::new();
        for op in &self.op {
            if !all.contains(&op.family.as_str()) {
                all.push(&op.family);
            }
        }
        all
    }

    /// The attribute struct of an op.
    pub fn attributes_of(&self, op: &Op) -> Option<&Attributes> {
        self.attributes.iter().find(|a| a.name == op.attributes)
    }

    /// Returns the code table of an op, and the codes that the op has.
    pub fn codes_of(&self, op: &Op) -> Option<(&str, Vec<&Code>)> {
        let field = self.attributes_of(op)?.fields.iter().find(|f| f.name == "op")?;
        let (name, table) =
            self.tables.iter().find(|(name, _)| Some(name) == field.code.as_ref())?;
        let has = |code: &&Code| match &op.codes {
            Some(some) => some.contains(&code.name),
            None => code.not_in.as_ref() != Some(&op.name),
        };
        Some((name, table.list.iter().filter(has).collect()))
    }
}

/// Reads the file and checks that it is consistent.
pub fn schema(text: &str) -> Result<Schema> {
    let mut schema: Schema = toml::from_str(text)?;
    // Read the tables in the order of their headings, which TOML's tables do not keep.
    let mut tables = Vec::new();
    for (name, value) in std::mem::take(&mut schema.codes) {
        let place =
            text.find(&format!("[codes.{name}]")).context("a code table without heading")?;
        let codes: Codes = value.try_into().with_context(|| format!("codes.{name}"))?;
        tables.push((place, name, codes));
    }
    tables.sort_by_key(|(place, ..)| *place);
    schema.tables = tables.into_iter().map(|(_, name, codes)| (name, codes)).collect();

    for (name, table) in &schema.tables {
        for (i, code) in table.list.iter().enumerate() {
            ensure!(code.id as usize == i, "codes.{name}: {} is not number {i}", code.name);
            check_set(&schema, &code.dtypes).with_context(|| code.name.clone())?;
        }
    }
    for attributes in &schema.attributes {
        let mut offset = 4;
        for field in &attributes.fields {
            let (size, align) = match (field.kind.as_str(), field.bytes()) {
                ("u32", _) => (4, 4),
                ("u64", _) => (8, 8),
                (_, Some(n)) => (n, 1),
                _ => bail!("{}.{}: type {}", attributes.name, field.name, field.kind),
            };
            ensure!(offset % align == 0, "{}.{}: hidden padding", attributes.name, field.name);
            offset += size;
            if let Some(code) = &field.code {
                ensure!(schema.tables.iter().any(|(name, _)| name == code), "no codes {code}");
            }
        }
    }
    for (i, op) in schema.op.iter().enumerate() {
        ensure!(op.id as usize == i, "op {} is not number {i}", op.name);
        ensure!(schema.attributes_of(op).is_some(), "{}: no attributes {}", op.name, op.attributes);
        ensure!(schema.shapes.contains_key(&op.shape), "{}: no shapes {}", op.name, op.shape);
        ensure!(op.results.len() == 1 + op.more_outputs.len(), "{}: results", op.name);
        let described = op.scalar_docs.len();
        ensure!(described == op.scalars.len() || described == 1, "{}: scalar_docs", op.name);
        for input in &op.in_place {
            ensure!(op.inputs.iter().any(|i| i.name == *input), "{}: no input {input}", op.name);
        }
        ensure!(op.output != "code" || schema.codes_of(op).is_some(), "{}: no codes", op.name);
        check_set(&schema, &op.dtypes).with_context(|| op.name.clone())?;
        for input in op.inputs.iter().filter(|i| i.dtype != "main") {
            check_set(&schema, &input.dtype).with_context(|| op.name.clone())?;
        }
    }
    Ok(schema)
}

fn check_set(schema: &Schema, set: &str) -> Result<()> {
    for name in set.split('+') {
        let Some(members) = schema.sets.get(name) else { bail!("no set {name}") };
        for dtype in members {
            ensure!(schema.dtypes.iter().any(|(n, ..)| n == dtype), "no dtype {dtype}");
        }
    }
    Ok(())
}
