//! Signatures in WGSL: bindings of group 0, in the order of the arguments.

use super::{Generated, Signature, Slot, threads};
use crate::{dtype::Dtype, error::Result, fast::Template};
use std::fmt::Write;

/// The type of elements in a binding. Elements for which WGSL has no type are stored in words.
fn stored(dtype: Dtype) -> &'static str {
    match dtype {
        Dtype::Float32 => "f32",
        Dtype::Int32 => "i32",
        Dtype::Complex64 => "um_complex64",
        // Two words for each element.
        Dtype::Uint64 | Dtype::Int64 | Dtype::Float64 => "vec2<u32>",
        _ => "u32",
    }
}

/// The type to compute with.
fn computed(dtype: Dtype) -> Option<&'static str> {
    Some(match dtype {
        Dtype::Float32 | Dtype::Float16 | Dtype::Bfloat16 => "f32",
        Dtype::Int32 | Dtype::Int16 | Dtype::Int8 => "i32",
        Dtype::Uint32 | Dtype::Uint16 | Dtype::Uint8 => "u32",
        Dtype::Bool => "bool",
        Dtype::Complex64 => "um_complex64",
        _ => return None,
    })
}

fn binding(s: &Signature<'_>, slot: Slot) -> Result<String> {
    let d = s.definition;
    let read = |name: &str, of: &str| format!("var<storage, read> {name}: array<{of}>;");
    Ok(match slot {
        Slot::Input(i) => read(&d.input_names[i], stored(s.inputs[i].1)),
        Slot::Shape(i) => read(&format!("{}_shape", d.input_names[i]), "i32"),
        Slot::Strides(i) => read(&format!("{}_strides", d.input_names[i]), "i32"),
        // A constant, declared below.
        Slot::Ndim(_) | Slot::Grid(_) => String::new(),
        Slot::Output(i) => {
            let (name, dtype) = (&d.output_names[i], s.outputs[i].1);
            let of = stored(dtype);
            let of = match (d.atomic_outputs, dtype) {
                (false, _) => of.to_owned(),
                (true, Dtype::Int32 | Dtype::Uint32) => format!("atomic<{of}>"),
                (true, other) => {
                    let text = format!(
                        "Atomic outputs in WGSL must be int32 or uint32, not {other}. Choose one of these."
                    );
                    return Err(s.refuse(text));
                }
            };
            format!("var<storage, read_write> {name}: array<{of}>;")
        }
        Slot::Grids => "var<storage, read> um_grid: array<u32, 3>;".to_owned(),
    })
}

pub(super) fn generate(s: &Signature<'_>) -> Result<Generated> {
    let d = s.definition;
    if d.shared_memory > 0 {
        return Err(s.refuse(
            "WGSL has no shared memory whose size is given at the launch. Declare a var<workgroup>.",
        ));
    }
    let slots = s.slots();
    let entry = s.entry("um_kernel_");
    let mut head = s.begin();
    for (name, value) in s.template {
        let _ = match value {
            Template::Int(v) => writeln!(head, "const {name}: i32 = {v};"),
            Template::Bool(v) => writeln!(head, "const {name}: bool = {v};"),
            Template::Dtype(dtype) => match computed(*dtype) {
                Some(of) => writeln!(head, "alias {name} = {of};"),
                None => {
                    let text = format!(
                        "WGSL does not compute with {dtype}, the type of {name}. Choose another type."
                    );
                    return Err(s.refuse(text));
                }
            },
        };
    }
    for (index, slot) in slots.iter().enumerate() {
        let _ = writeln!(head, "@group(0) @binding({index}) {}", binding(s, *slot)?);
    }
    for (name, (ndim, _)) in d.input_names.iter().zip(s.inputs) {
        if s.named(&format!("{name}_ndim")) {
            let _ = writeln!(head, "const {name}_ndim: i32 = {ndim};");
        }
        if s.named(&format!("um_loc_{name}")) {
            let _ = write!(
                head,
                "fn um_loc_{name}(elem: u32) -> i32 {{
  var rest = i32(elem);
  var at = 0;
  for (var d = {}; d >= 0; d -= 1) {{
    let next = rest / {name}_shape[d];
    at += (rest - next * {name}_shape[d]) * {name}_strides[d];
    rest = next;
  }}
  return at;
}}
",
                *ndim as isize - 1
            );
        }
    }
    let [x, y, z] = s.group;
    for name in ["threads_per_threadgroup", "dispatch_threads_per_threadgroup"] {
        if s.named(name) {
            let _ = writeln!(head, "const {name} = vec3<u32>({x}u, {y}u, {z}u);");
        }
    }
    let position = "thread_position_in_grid";
    let mut parameters = Vec::new();
    for name in threads::NAMES.iter().filter(|n| !n.wgsl.is_empty()) {
        if s.named(name.name) || (s.guarded && name.name == position) {
            let kind = if name.wide { "vec3<u32>" } else { "u32" };
            parameters.push(format!("@builtin({}) {}: {kind}", name.wgsl, name.name));
        }
    }
    let _ = writeln!(
        head,
        "@compute @workgroup_size({x}, {y}, {z})\nfn {entry}({}) {{",
        parameters.join(", ")
    );
    for name in threads::NAMES.iter().map(|n| n.name).filter(|n| threads::is_grid(n)) {
        if s.named(name) {
            let _ = writeln!(head, "  let {name} = vec3<u32>(um_grid[0], um_grid[1], um_grid[2]);");
        }
    }
    if s.guarded {
        let _ = writeln!(
            head,
            "  if ({position}.x >= um_grid[0] || {position}.y >= um_grid[1] || {position}.z >= um_grid[2]) {{ return; }}"
        );
    }
    Ok(Generated { language: s.language, head, tail: "}\n".to_owned(), entry, slots })
}
