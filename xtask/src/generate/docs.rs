//! The page of the documentation.

use super::c::{plain, struct_name};
use super::read::{Op, Schema};
use std::fmt::Write;

/// `docs/operations.md`.
pub fn page(schema: &Schema) -> String {
    let mut out = String::from(
        "<!-- Generated from crates/ultramarine-abi/schema.toml by `cargo xtask generate`; do not edit. -->
# Operations of the backend contract

What a backend's `prepare` is asked for. Everything else that the library offers is composed of these. A backend may
leave out any of them (`UM_UNSUPPORTED`): the op is then decomposed, or computed on the CPU. *basic* and *complete* are
the grades of the conformance kit: the ops marked basic must be there for float32 for the first, all but those marked *extra* for every
dtype that the device computes with for the second. An extra op is one that pays where a device has it, and that no grade asks for.

## Rules for all operations\n\n",
    );
    for (name, text) in &schema.rules {
        let _ = writeln!(out, "* **{name}**: {}", text.as_str().unwrap_or_default());
    }
    out.push_str("\n## Dtypes\n\nIn the order of the bits of the device masks; sets that the tables below speak of:\n\n");
    let names: Vec<&str> = schema.dtypes.iter().map(|(n, ..)| n.as_str()).collect();
    let _ = writeln!(out, "* in order: {}", names.join(", "));
    for (name, members) in &schema.sets {
        let _ = writeln!(out, "* **{name}**: {}", members.join(", "));
    }
    out.push_str("\n## Shapes\n\n");
    for (name, text) in &schema.shapes {
        let _ = writeln!(out, "* **{}**: {text}", name.replace('_', " "));
    }
    for op in &schema.op {
        operation(&mut out, schema, op);
    }
    determinism(&mut out, schema);
    out.push_str("\n## Attribute structs\n");
    for attributes in &schema.attributes {
        let _ = writeln!(out, "\n### `{}` ({})\n", struct_name(&attributes.name), attributes.name);
        out.push_str("| field | type | what |\n| --- | --- | --- |\n| size | u32 | Size of the writer's struct. |\n");
        for field in &attributes.fields {
            let _ = writeln!(out, "| {} | {} | {} |", field.name, field.kind, plain(&field.doc()));
        }
    }
    out
}

/// The operations whose bits may differ between equal calls.
fn determinism(out: &mut String, schema: &Schema) {
    out.push_str(
        "
## Determinism

Results of most ops have the same bits whatever the order in which a device works. Those of the ops below may depend on what the
table says. A device whose info has `UM_DEVICE_DETERMINISTIC` does not let them: there equal commands give equal bits, in one
process and in the next one, on devices of one kind with one version of everything. On any other device these ops are refused
while `set_deterministic` is on ([precision.md](precision.md#repeatability)). The conformance kit runs them twice.

| op | its bits may depend on |
| --- | --- |
",
    );
    for op in schema.op.iter().filter(|op| !op.order.is_empty()) {
        let _ = writeln!(out, "| {} | {} |", op.name, op.order);
    }
}

fn set(name: &str) -> String {
    name.replace('+', ", ")
}

fn operation(out: &mut String, schema: &Schema, op: &Op) {
    let _ = writeln!(out, "\n## {} ({})\n", op.name, op.id);
    if !op.doc.is_empty() {
        let _ = writeln!(out, "{}\n", op.doc);
    }
    let inputs: Vec<String> = op
        .inputs
        .iter()
        .map(|i| {
            let many = match (i.many, i.optional) {
                (true, _) => "one or more ",
                (_, true) => "perhaps ",
                _ => "",
            };
            let dtype = if i.dtype == "main" { "the op's dtype".to_owned() } else { set(&i.dtype) };
            format!("{many}{} ({dtype})", i.name)
        })
        .collect();
    let inputs = if inputs.is_empty() { "none".into() } else { inputs.join(", ") };
    let outputs: Vec<String> = std::iter::once(&op.output)
        .chain(&op.more_outputs)
        .map(|output| match output.as_str() {
            "main" => "the op's dtype".to_owned(),
            "code" => "as the code says".to_owned(),
            other => set(other),
        })
        .collect();
    let _ =
        writeln!(out, "* revision {}, attributes `{}`", op.revision, struct_name(&op.attributes));
    let _ = writeln!(
        out,
        "* family: {}; grade: {}; shapes: {}",
        op.family,
        op.grade,
        op.shape.replace('_', " ")
    );
    let _ = writeln!(out, "* inputs: {inputs}");
    if !op.scalars.is_empty() {
        let _ = writeln!(out, "* scalars: {}", op.scalars.join(", ").replace('_', " "));
    }
    let output = if outputs.len() > 1 { "outputs" } else { "output" };
    let _ = writeln!(out, "* dtypes: {}; {output}: {}", set(&op.dtypes), outputs.join("; "));
    if op.ulps > 0 {
        let _ = writeln!(out, "* tolerance: {} ulps", op.ulps);
    }
    for rule in &op.numbers {
        let _ = writeln!(out, "* {rule}");
    }
    let Some((table, codes)) = schema.codes_of(op) else { return };
    let _ = writeln!(out, "\nCodes `UM_{}_...`:\n", table.to_uppercase());
    out.push_str("| code | name | what | dtypes | output | ulps | grade |\n| --- | --- | --- | --- | --- | --- | --- |\n");
    for code in codes {
        let output = if code.output == "main" { "same" } else { &code.output };
        // The bar would end the cell.
        let doc = plain(&code.doc).replace('|', "\\|");
        let sums = if code.sums { " (of the sum of sizes)" } else { "" };
        let _ = writeln!(
            out,
            "| {} | {} | {doc} | {} | {output} | {}{sums} | {} |",
            code.id,
            code.name,
            set(&code.dtypes),
            code.ulps,
            code.grade,
        );
    }
}
