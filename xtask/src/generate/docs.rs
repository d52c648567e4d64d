//! Generates the page of the documentation.

use super::c::{plain, struct_name};
use super::read::{Code, Input, Op, Schema};
use std::fmt::Write;

/// `docs/operations.md`.
pub fn page(schema: &Schema) -> String {
    let mut out = String::from(
        "<!-- Generated from crates/ultramarine-abi/schema.toml by `cargo xtask generate`; do not edit. -->
# Operations of the backend contract

This page specifies the operations that a backend may be asked for by `prepare` ([backend.h](../crates/ultramarine-abi/include/ultramarine/backend.h)).
The library composes every other operation of these. A backend may refuse any of them with `UM_UNSUPPORTED`; the host then
decomposes the operation, or computes it on the CPU.

The grades are those of the [conformance kit](conformance.md):

* *basic*: needed natively in float32 for the grade basic.
* *complete*: needed natively in every dtype of the device's arithmetic mask for the grade complete, as the basic ones are.
* *extra*: needed for no grade. A backend has them where they are faster than the composition.

[Rules](#rules-for-all-operations) | [Dtypes](#dtypes) | [Determinism](#determinism) | [Attribute structs](#attribute-structs)

",
    );
    index(&mut out, schema);
    out.push_str("\n## Rules for all operations\n\n");
    for (name, text) in &schema.rules {
        let _ = writeln!(out, "* **{name}.** {text}");
    }
    out.push_str(
        "\n## Dtypes\n\nThe masks of a device's info have one bit for each dtype: bit 0 stands for bool.\n\n\
         | bit | dtype | code and bits of `DLDataType` |\n| --- | --- | --- |\n",
    );
    for (i, (name, code, bits)) in schema.dtypes.iter().enumerate() {
        let _ = writeln!(out, "| {i} | {name} | `kDL{}`, {bits} |", dlpack_name(code));
    }
    out.push_str(
        "
The tables below speak of these sets:

* *int*: the integers of 8 to 64 bits, unsigned and signed.
* *float*: float16, float32, float64, bfloat16.
* *complex*: complex64.
* *the op's dtype*: one dtype of the operation's list, the same for all tensors that say so.

## Reading the tables

Shapes name sizes: `(m, k)` and `(k, n)` agree in k. `(s...)` is any shape; `(..., n)` has any number of dimensions before n. In
formulas, indices are those of one output element. Scalars are the command's, 16 bytes each, with the bits in the low bytes.

The column *ulps* is the tolerance of the [rule of accuracy](#rules-for-all-operations); *sum* refers to the rule of sums. Columns of
dtypes list the dtypes of the operands; *same* means that the output has the operands' dtype.
",
    );
    for op in &schema.op {
        operation(&mut out, schema, op);
    }
    for (name, table) in &schema.tables {
        let of_an_op = |op| schema.codes_of(op).is_some_and(|(of, _)| of == name);
        if !schema.op.iter().any(of_an_op) {
            let title = name[..1].to_uppercase() + &name[1..];
            let _ = writeln!(out, "\n## {title} codes\n\n{}\n", plain(&table.c));
            code_table(&mut out, name, &table.list.iter().collect::<Vec<_>>());
        }
    }
    determinism(&mut out, schema);
    out.push_str(
        "\n## Attribute structs\n\nEvery struct begins with `size`, the size in bytes of the struct as its writer knows it. Further \
         fields are only appended.\n",
    );
    for attributes in &schema.attributes {
        let _ = writeln!(out, "\n### {}\n", struct_name(&attributes.name));
        let _ = writeln!(out, "{} In Rust `{}`.\n", attributes.doc, attributes.name);
        out.push_str("| field | type | meaning |\n| --- | --- | --- |\n| `size` | u32 | Size of the writer's struct in bytes. |\n");
        for field in &attributes.fields {
            let doc = cell(&field.doc());
            let _ = writeln!(out, "| `{}` | {} | {doc} |", field.name, field.kind);
        }
    }
    out
}

/// The operations by family, with links.
fn index(out: &mut String, schema: &Schema) {
    out.push_str("| family | operations |\n| --- | --- |\n");
    for family in schema.families() {
        let of = schema.op.iter().filter(|op| op.family == family);
        let links: Vec<String> = of.map(|op| format!("[{0}](#{0})", op.name)).collect();
        let _ = writeln!(out, "| {family} | {} |", links.join(", "));
    }
}

/// Name of a type code in `dlpack.h`, without its prefix.
fn dlpack_name(code: &str) -> String {
    match code {
        "UINT" => "UInt".to_owned(),
        code => code[..1].to_owned() + &code[1..].to_lowercase(),
    }
}

/// Returns the text of a table cell, without Rust's links, and without bars, which would end the
/// cell.
fn cell(text: &str) -> String {
    text.replace("[`", "`").replace("`]", "`").replace('|', "\\|")
}

/// Lists the operations whose results may differ between equal calls.
fn determinism(out: &mut String, schema: &Schema) {
    out.push_str(
        "
## Determinism

Results of the operations below may depend on more than the operands. All other operations are bitwise reproducible.

A device with `UM_DEVICE_DETERMINISTIC` in its info makes these operations reproducible, too: equal commands give bitwise identical
results in one process and in the next, on devices of one kind with one version of all software. On other devices the host refuses
these operations while `set_deterministic` is on ([precision.md](precision.md#repeatability)). The conformance kit runs them twice.

| operation | its bits may depend on |
| --- | --- |
",
    );
    for op in schema.op.iter().filter(|op| !op.order.is_empty()) {
        let _ = writeln!(out, "| [{0}](#{0}) | {1} |", op.name, op.order);
    }
}

/// Returns a rule for dtypes in words. Sets other than the four large ones are listed in full.
fn dtypes(schema: &Schema, rule: &str) -> String {
    match rule {
        "main" => return "the op's dtype".to_owned(),
        "code" => return "given by the code".to_owned(),
        "real" => return "float32 for complex64, else the op's dtype".to_owned(),
        "accumulated" => return "float32 for float16 and bfloat16, else the op's dtype".to_owned(),
        _ => {}
    }
    let named = |set: &str| match schema.sets.get(set) {
        Some(members) if !["bool", "int", "float", "complex"].contains(&set) => members.join(", "),
        _ => set.to_owned(),
    };
    rule.split('+').map(named).collect::<Vec<_>>().join(", ")
}

fn operation(out: &mut String, schema: &Schema, op: &Op) {
    let _ = writeln!(out, "\n## {}\n\n{}\n", op.name, op.doc);
    if !op.formula.is_empty() {
        let _ = writeln!(out, "```text\n{}\n```\n", op.formula.trim());
    }
    tensors(out, schema, op);
    let attributes = struct_name(&op.attributes);
    let _ = writeln!(
        out,
        "\n* **Identity**: id {}, revision {}, attributes [`{attributes}`](#{attributes}), family {}, grade {}.",
        op.id, op.revision, op.family, op.grade
    );
    let _ = writeln!(out, "* **The op's dtype**: {}.", dtypes(schema, &op.dtypes));
    if op.shape != "own" {
        let shape = schema.shapes.get(&op.shape).map_or("", String::as_str);
        let _ = writeln!(out, "* **Shapes**: {shape}");
    }
    if op.ulps > 0 {
        let _ = writeln!(out, "* **Tolerance**: {} ulps.", op.ulps);
    }
    let list = |out: &mut String, name: &str, all: &[String]| {
        if !all.is_empty() {
            let _ = writeln!(out, "* **{name}**: {}", all.join(" "));
        }
    };
    list(out, "Edges", &op.edges);
    list(out, "Accuracy", &op.numbers);
    let names: Vec<String> = op.in_place.iter().map(|name| format!("`{name}`")).collect();
    match &names[..] {
        [] => {}
        [only] => {
            let _ = writeln!(out, "* **In place**: the output may be the memory of {only}.");
        }
        [first @ .., last] => {
            let first = first.join(", ");
            let _ =
                writeln!(out, "* **In place**: the output may be the memory of {first} or {last}.");
        }
    }
    if let Some((table, codes)) = schema.codes_of(op) {
        out.push('\n');
        code_table(out, table, &codes);
    }
}

/// Inputs, outputs and scalars.
fn tensors(out: &mut String, schema: &Schema, op: &Op) {
    out.push_str("| | name | shape | dtype | meaning |\n| --- | --- | --- | --- | --- |\n");
    let numbered = |kind: &str, i: usize, all: usize| match all {
        1 => kind.to_owned(),
        _ => format!("{kind} {i}"),
    };
    for (i, input) in op.inputs.iter().enumerate() {
        let place = numbered("input", i, op.inputs.len());
        let dtype = dtypes(schema, &input.dtype);
        let (name, shape, doc) = (&input.name, &input.shape, meaning(input));
        let _ = writeln!(out, "| {place} | `{name}` | `{shape}` | {dtype} | {doc} |");
    }
    let rules = std::iter::once(&op.output).chain(&op.more_outputs);
    for (i, (output, rule)) in op.results.iter().zip(rules).enumerate() {
        let (place, rule) = (numbered("output", i, op.results.len()), dtypes(schema, rule));
        let shape = output.shape.replace('`', "");
        let doc = cell(&output.doc);
        let _ = writeln!(out, "| {place} | `{}` | `{shape}` | {rule} | {doc} |", output.name);
    }
    for (i, scalar) in op.scalars.iter().enumerate() {
        let dtype = match scalar.as_str() {
            "main" => "the op's dtype",
            "float64_or_int64" => "float64 or int64",
            other => other,
        };
        match &op.scalar_docs[..] {
            [all] if op.scalars.len() > 1 => {
                let last = op.scalars.len() - 1;
                let _ = writeln!(out, "| scalars 0 to {last} | | | {dtype} | {all} |");
                return;
            }
            each => {
                let place = numbered("scalar", i, op.scalars.len());
                let _ = writeln!(out, "| {place} | | | {dtype} | {} |", cell(&each[i]));
            }
        }
    }
}

fn meaning(input: &Input) -> String {
    let doc = cell(&input.doc);
    match (input.many, input.optional) {
        (_, true) if doc.is_empty() => "optional".to_owned(),
        (_, true) => format!("optional; {doc}"),
        _ => doc,
    }
}

fn code_table(out: &mut String, table: &str, codes: &[&Code]) {
    let prefix = table.to_uppercase();
    let _ = writeln!(out, "Codes `UM_{prefix}_...`:\n");
    out.push_str("| code | name | result | dtypes | output | ulps | grade |\n| --- | --- | --- | --- | --- | --- | --- |\n");
    for code in codes {
        let output = match code.output.as_str() {
            "main" => "same",
            "real" => "same; complex: float32",
            other => other,
        };
        let doc = cell(&code.doc);
        let ulps = match (code.sums, code.ulps) {
            (true, 0) => "sum".to_owned(),
            (true, ulps) => format!("sum, {ulps}"),
            (false, ulps) => ulps.to_string(),
        };
        let dtypes = code.dtypes.replace('+', ", ").replace("single", "float32");
        let _ = writeln!(
            out,
            "| {} | {} | {doc} | {dtypes} | {output} | {ulps} | {} |",
            code.id,
            code.name.to_uppercase(),
            code.grade,
        );
    }
}
