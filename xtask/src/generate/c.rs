//! Generates the C header.

use super::read::{Op, Schema};
use std::fmt::Write;

/// Text without the marks of Rust's documentation.
pub fn plain(text: &str) -> String {
    text.replace("[`", "").replace("`]", "").replace('`', "")
}

/// `um_unary_attrs` of `UnaryAttrs`.
pub fn struct_name(name: &str) -> String {
    let mut out = String::from("um");
    for c in name.chars() {
        if c.is_ascii_uppercase() {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}

/// Writes a C comment: at the end of the line if that is short enough, otherwise in lines before
/// it.
fn commented(line: &str, doc: &str) -> String {
    const WIDTH: usize = 118;
    if line.len() + doc.len() + 7 <= WIDTH {
        return format!("{line} /* {doc} */");
    }
    let indent = &line[..line.len() - line.trim_start().len()];
    format!("{}\n{line}", block(indent, doc))
}

/// A comment of C in lines.
fn block(indent: &str, doc: &str) -> String {
    let mut lines = vec![format!("{indent}/*")];
    for word in doc.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.len() + word.len() < 115 => *line = format!("{line} {word}"),
            _ => lines.push(format!("{indent} * {word}")),
        }
    }
    lines.join("\n") + " */"
}

/// Shapes of an op's tensors, as a sentence: `Inputs: x (s...). Output: y (s...).`
pub fn shapes(op: &Op) -> String {
    let joined = |all: Vec<String>| all.join(", ");
    let inputs = op.inputs.iter().map(|i| {
        let mark = match (i.many, i.optional) {
            (true, _) => ", one or more",
            (_, true) => ", optional",
            _ => "",
        };
        format!("{} {}{mark}", i.name, i.shape)
    });
    let inputs = joined(inputs.collect());
    let outputs = joined(op.results.iter().map(|o| format!("{} {}", o.name, o.shape)).collect());
    let inputs = if inputs.is_empty() { String::new() } else { format!("Inputs: {inputs}. ") };
    let name = if op.results.len() > 1 { "Outputs" } else { "Output" };
    format!("{inputs}{name}: {outputs}.")
}

/// `include/ultramarine/schema.h`.
pub fn header(schema: &Schema) -> String {
    let mut out = String::from(
        "/* The operations of the contract: ids, codes and attribute structs. docs/operations.md has their formulas, dtypes,
 * edge cases and accuracy. Generated from schema.toml by `cargo xtask generate`; do not edit. */
#ifndef ULTRAMARINE_SCHEMA_H
#define ULTRAMARINE_SCHEMA_H

#include <stdint.h>

/* Operations that a backend may provide: values of `op` of um_backend_table.prepare. The library composes all others of
 * these. Shapes name sizes; (s...) is any shape, (..., n) has any number of dimensions before n. */\n",
    );
    // Writing to a String cannot fail.
    let mut line = |text: std::fmt::Arguments<'_>| {
        let _ = writeln!(out, "{text}");
    };
    for op in &schema.op {
        let (tensors, attributes) = (plain(&shapes(op)), struct_name(&op.attributes));
        let doc = format!("{} {tensors} Attributes: {attributes}.", plain(&op.doc));
        let define = format!("#define UM_OP_{} {}u", op.name.to_uppercase(), op.id);
        line(format_args!("{}", commented(&define, &doc)));
    }
    line(format_args!("#define UM_OP_COUNT {}u\n", schema.op.len()));
    line(format_args!("/* `X(NAME, family)` for each operation. */\n#define UM_EACH_OP(X) \\"));
    for (i, op) in schema.op.iter().enumerate() {
        let end = if i + 1 < schema.op.len() { " \\" } else { "\n" };
        line(format_args!("  X({}, {}){end}", op.name.to_uppercase(), op.family));
    }
    for (module, table) in &schema.tables {
        let module = module.to_uppercase();
        line(format_args!("{}", block("", &table.c)));
        for code in &table.list {
            let define = format!("#define UM_{module}_{} {}u", code.name.to_uppercase(), code.id);
            line(format_args!("{}", commented(&define, &plain(&code.doc))));
        }
        line(format_args!("#define UM_{module}_COUNT {}u\n", table.list.len()));
    }
    for attributes in &schema.attributes {
        let name = struct_name(&attributes.name);
        line(format_args!(
            "/* {} */\ntypedef struct {name} {{\n  uint32_t size; /* of the struct as its writer knows it, in bytes */",
            attributes.doc
        ));
        for field in &attributes.fields {
            let member = match field.bytes() {
                Some(n) => format!("  uint8_t {}[{n}];", field.name),
                None => format!("  {}int{}_t {};", &field.kind[..1], &field.kind[1..], field.name),
            };
            line(format_args!("{}", commented(&member, &plain(&field.doc()))));
        }
        line(format_args!("}} {name};\n"));
    }
    line(format_args!("/* Dtypes: numbers of the bits in the masks of um_device_info. */"));
    for (i, (name, ..)) in schema.dtypes.iter().enumerate() {
        line(format_args!("#define UM_DTYPE_{} {i}u", name.to_uppercase()));
    }
    line(format_args!("#define UM_DTYPE_COUNT {}u\n\n#endif", schema.dtypes.len()));
    out
}
