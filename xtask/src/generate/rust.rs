//! Generates the Rust constants, attribute structs and table. All of the output is in macro calls,
//! which rustfmt leaves unchanged.

use super::read::{Code, Op, Schema};
use std::fmt::Write;

const MARK: &str = "//! Generated from `schema.toml` by `cargo xtask generate`; do not edit.\n";

/// Writes the lines of a documentation comment, at most 100 columns wide. An empty line separates
/// paragraphs. A paragraph that begins with a fence is kept unchanged.
fn comment(out: &mut String, indent: &str, text: &str) {
    for (i, part) in text.split("\n\n").enumerate() {
        if i > 0 {
            let _ = writeln!(out, "{indent}///");
        }
        if part.starts_with("```") {
            part.lines().for_each(|line| {
                let _ = writeln!(out, "{indent}/// {line}");
            });
        } else {
            paragraph(out, indent, part);
        }
    }
}

fn paragraph(out: &mut String, indent: &str, text: &str) {
    let mut line = String::new();
    for word in text.split(' ') {
        if !line.is_empty() && indent.len() + 5 + line.len() + word.len() > 100 {
            let _ = writeln!(out, "{indent}/// {line}");
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    if !line.is_empty() {
        let _ = writeln!(out, "{indent}/// {line}");
    }
}

fn constants<'a>(
    out: &mut String,
    module: &str,
    kind: &str,
    doc: &str,
    list: impl Iterator<Item = (&'a str, u32, String)>,
) {
    let _ = writeln!(out, "\ncode_module! {{");
    comment(out, "    ", doc);
    let _ = writeln!(out, "    pub mod {module}: {kind} {{");
    for (name, id, doc) in list {
        comment(out, "        ", &doc);
        let _ = writeln!(out, "        {} = {id} {name:?},", name.to_uppercase());
    }
    let _ = writeln!(out, "    }}\n}}");
}

/// `src/schema/codes.rs`.
pub fn codes(schema: &Schema) -> String {
    let mut out = format!("{MARK}\nuse super::{{code_module, dtype, families}};\n");
    out.push_str("use ultramarine_dlpack::{DLDataType, type_code};\n\n");
    out.push_str("pub use super::attribute_structs::*;\n");
    let ops = schema.op.iter().map(|op| {
        let tensors = super::c::shapes(op).replace('`', "");
        let formula = match op.formula.trim() {
            "" => String::new(),
            formula => format!("```text\n{formula}\n```\n\n"),
        };
        let (doc, attributes) = (&op.doc, &op.attributes);
        let doc = format!("{doc}\n\n{formula}{tensors} Attributes: [`super::{attributes}`].");
        (op.name.as_str(), op.id, doc)
    });
    let doc = "Operations that a backend may provide: values of `op` of \
               [`BackendTable::prepare`](crate::BackendTable::prepare). The library composes all others of these. \
               `docs/operations.md` has their dtypes, edge cases and accuracy.";
    constants(&mut out, "op", "super::super::OpId", doc, ops);
    for (module, table) in &schema.tables {
        let codes = table.list.iter().map(|c| (c.name.as_str(), c.id, c.doc.clone()));
        constants(&mut out, module, "u32", &table.rust, codes);
    }
    out.push_str("\n/// Names of the constants of each module above.\n");
    out.push_str("pub const NAMES: &[(&str, &[&str])] = &[\n    (\"op\", op::NAMES),\n");
    for (module, _) in &schema.tables {
        let _ = writeln!(out, "    ({module:?}, {module}::NAMES),");
    }
    out.push_str("];\n\nfamilies! {\n");
    for family in schema.families() {
        let _ = writeln!(out, "    {} {family:?},", variant(family));
    }
    out.push_str("}\n\n/// Dtypes of the contract, in the order of the device masks' bits.\n");
    let _ = writeln!(out, "pub const DTYPES: [(&str, DLDataType); {}] = [", schema.dtypes.len());
    for (name, code, bits) in &schema.dtypes {
        let _ = writeln!(out, "    ({name:?}, dtype(type_code::{code}, {bits})),");
    }
    out.push_str("];\n");
    out
}

/// `src/schema/attribute_structs.rs`.
pub fn attributes(schema: &Schema) -> String {
    let mut out = format!("{MARK}\nuse super::attrs;\n\nattrs! {{\n");
    // The code modules are siblings of this module.
    let linked = |doc: String| {
        schema.tables.iter().fold(doc, |doc, (module, _)| {
            doc.replace(&format!("[`{module}`]"), &format!("[`{module}`](super::{module})"))
        })
    };
    for attributes in &schema.attributes {
        comment(&mut out, "    ", &attributes.doc);
        let _ = writeln!(out, "    {} {{", attributes.name);
        for field in &attributes.fields {
            comment(&mut out, "        ", &linked(field.doc()));
            let kind = match field.bytes() {
                Some(n) => format!("[u8; {n}]"),
                None => field.kind.clone(),
            };
            let _ = writeln!(out, "        {}: {kind},", field.name);
        }
        out.push_str("    }\n");
    }
    out.push_str("}\n");
    out
}

/// `unsigned+key` as an expression of the constants of `dtypes`.
fn mask(set: &str) -> String {
    set.split('+').map(|s| format!("dtypes::{}", s.to_uppercase())).collect::<Vec<_>>().join(" | ")
}

/// `axis_reduced` as a variant's name.
fn variant(name: &str) -> String {
    name.split('_').map(|w| w[..1].to_uppercase() + &w[1..]).collect()
}

fn output(rule: &str) -> String {
    match rule {
        "main" | "bool" | "uint32" | "real" | "accumulated" | "code" => {
            format!("Output::{}", variant(rule))
        }
        set => format!("Output::Any({})", mask(set)),
    }
}

fn code_row(out: &mut String, code: &Code) {
    let _ = writeln!(
        out,
        "    {:?} {} [{}] [{}] {}.0 {} {} {} {:?};",
        code.name,
        code.id,
        mask(&code.dtypes),
        output(&code.output),
        code.ulps,
        code.sums,
        variant(&code.domain),
        variant(&code.grade),
        code.doc,
    );
}

fn op_row(out: &mut String, schema: &Schema, op: &Op) {
    let codes = match schema.codes_of(op) {
        Some((table, _)) => format!("Some({table:?}), &{}_CODES", op.name.to_uppercase()),
        None => "None, &[]".into(),
    };
    let inputs: Vec<String> = op
        .inputs
        .iter()
        .map(|i| {
            let dtype = match i.dtype.as_str() {
                "main" => "InputDtype::Main".to_owned(),
                set => format!("InputDtype::Of({})", mask(set)),
            };
            format!("{:?} [{dtype}] {} {}", i.name, i.many, i.optional)
        })
        .collect();
    let scalars: Vec<String> =
        op.scalars.iter().map(|s| format!("Scalar::{}", variant(s))).collect();
    let _ = writeln!(
        out,
        "    {:?} {} {} {} {} {} {} {{
        inputs: {};
        scalars: [{}];
        dtypes: [{}];
        output: [{}];
        more: [{}];
        ulps: {}.0, sums: {}, order: {:?};
        codes: {};
        numbers: {:?};
        doc: {:?};
    }}",
        op.name,
        op.id,
        variant(&op.family),
        op.revision,
        variant(&op.grade),
        variant(&op.shape),
        op.attributes,
        inputs.join(", "),
        scalars.join(", "),
        mask(&op.dtypes),
        output(&op.output),
        op.more_outputs.iter().map(|o| output(o)).collect::<Vec<_>>().join(", "),
        op.ulps,
        op.sums,
        op.order,
        codes,
        op.numbers,
        op.doc,
    );
}

/// `src/schema/table.rs`.
pub fn table(schema: &Schema) -> String {
    let mut out = format!("{MARK}\nuse super::rules::*;\nuse super::*;\n");
    out.push_str(
        "\n/// Sets of dtypes as masks: bit `i` is dtype `i` of [`DTYPES`].\npub mod dtypes {\n",
    );
    for (name, members) in &schema.sets {
        let bits: Vec<String> = members
            .iter()
            .filter_map(|m| schema.dtypes.iter().position(|(n, ..)| n == m))
            .map(|i| format!("1 << {i}"))
            .collect();
        let _ = writeln!(out, "    /// {}.", members.join(", "));
        let _ = writeln!(out, "    pub const {}: u32 = {};", name.to_uppercase(), bits.join(" | "));
    }
    out.push_str("    /// All of them.\n");
    let _ = writeln!(out, "    pub const ALL: u32 = (1 << {}) - 1;\n}}", schema.dtypes.len());

    for op in &schema.op {
        let Some((_, codes)) = schema.codes_of(op) else { continue };
        let _ = writeln!(out, "\ncode_rows! {{ {}_CODES", op.name.to_uppercase());
        for code in codes {
            code_row(&mut out, code);
        }
        out.push_str("}\n");
    }

    out.push_str("\nattribute_rows! {\n");
    for attributes in &schema.attributes {
        let name = &attributes.name;
        let _ = writeln!(out, "    {name} {:?} {{", super::c::struct_name(name));
        for field in &attributes.fields {
            let codes = match &field.code {
                Some(name) => format!("Some({name:?})"),
                None => "None".into(),
            };
            let _ = writeln!(
                out,
                "        {} {:?} [{codes}] {:?};",
                field.name,
                field.kind,
                super::c::plain(&field.doc())
            );
        }
        out.push_str("    }\n");
    }
    out.push_str("}\n\nop_rows! {\n");
    for op in &schema.op {
        op_row(&mut out, schema, op);
    }
    out.push_str("}\n");
    out
}
