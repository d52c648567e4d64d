//! The header.

use super::read::Schema;
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

/// `include/ultramarine/schema.h`.
pub fn header(schema: &Schema) -> String {
    let mut out = String::from(
        "/* The operations of the contract: ids, codes, attributes, number rules. Generated from schema.toml by
 * `cargo xtask generate`; do not edit. */
#ifndef ULTRAMARINE_SCHEMA_H
#define ULTRAMARINE_SCHEMA_H

#include <stdint.h>

/* Operations a full backend provides; everything else has a decomposition. */\n",
    );
    // Writing to a String cannot fail.
    let mut line = |text: std::fmt::Arguments<'_>| {
        let _ = writeln!(out, "{text}");
    };
    for op in &schema.op {
        let doc = format!("{} {}.", plain(&op.doc), op.attributes);
        let (name, id, doc) = (op.name.to_uppercase(), op.id, doc.trim());
        line(format_args!("#define UM_OP_{name} {id}u /* {doc} */"));
    }
    line(format_args!("#define UM_OP_COUNT {}u\n", schema.op.len()));
    line(format_args!("/* `X(NAME, family)` for each operation. */\n#define UM_EACH_OP(X) \\"));
    for (i, op) in schema.op.iter().enumerate() {
        let end = if i + 1 < schema.op.len() { " \\" } else { "\n" };
        line(format_args!("  X({}, {}){end}", op.name.to_uppercase(), op.family));
    }
    for (module, table) in &schema.tables {
        let module = module.to_uppercase();
        line(format_args!("/* {} */", table.c));
        for code in &table.list {
            let (name, id, doc) = (code.name.to_uppercase(), code.id, plain(&code.doc));
            line(format_args!("#define UM_{module}_{name} {id}u /* {doc} */"));
        }
        line(format_args!("#define UM_{module}_COUNT {}u\n", table.list.len()));
    }
    for attributes in &schema.attributes {
        let name = struct_name(&attributes.name);
        line(format_args!("/* {} */\ntypedef struct {name} {{\n  uint32_t size;", attributes.doc));
        for field in &attributes.fields {
            let doc = plain(&field.doc());
            match field.bytes() {
                Some(n) => line(format_args!("  uint8_t {}[{n}]; /* {doc} */", field.name)),
                None => {
                    line(format_args!(
                        "  {}int{}_t {}; /* {doc} */",
                        &field.kind[..1],
                        &field.kind[1..],
                        field.name
                    ));
                }
            }
        }
        line(format_args!("}} {name};\n"));
    }
    line(format_args!("/* Dtypes, in the order of the device masks' bits. */"));
    for (i, (name, ..)) in schema.dtypes.iter().enumerate() {
        line(format_args!("#define UM_DTYPE_{} {i}u", name.to_uppercase()));
    }
    line(format_args!("#define UM_DTYPE_COUNT {}u\n\n#endif", schema.dtypes.len()));
    out
}
