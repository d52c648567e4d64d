//! Signatures in OpenCL C, CUDA C++ and the Metal Shading Language.

use super::{Generated, Language, Signature, Slot, threads, type_name};
use crate::{dtype::Dtype, error::Result, fast::Template};
use std::fmt::Write;

/// Parameters of the kernel, and the arguments that it passes to a function that it calls.
#[derive(Default)]
struct Parameters {
    list: Vec<String>,
    names: Vec<String>,
}

impl Parameters {
    fn add(&mut self, name: &str, declared: String) {
        self.names.push(name.to_owned());
        self.list.push(declared);
    }
}

fn parameter(s: &Signature<'_>, slot: Slot, index: usize) -> (String, String) {
    let d = s.definition;
    let language = s.language;
    let at = match language {
        Language::Metal => format!(" [[buffer({index})]]"),
        _ => String::new(),
    };
    let constants = |name: String, kind: [&str; 3]| match language {
        Language::OpenCl => (name.clone(), format!("__global const {} *{name}", kind[0])),
        Language::Cuda => (format!("um_{name}"), format!("const {} *um_{name}", kind[1])),
        _ => (name.clone(), format!("const constant {} *{name}{at}", kind[2])),
    };
    let scalar = |name: String, kind: &str| match language {
        Language::Metal => (name.clone(), format!("const constant {kind} &{name}{at}")),
        _ => (name.clone(), format!("const {kind} {name}")),
    };
    match slot {
        Slot::Input(i) => {
            let (name, kind) = (&d.input_names[i], type_name(s.inputs[i].1));
            let text = match language {
                Language::OpenCl => format!("__global const {kind} *{name}"),
                Language::Cuda => format!("const {kind} *{name}"),
                // As in MLX, an input without axes is a reference.
                _ if s.inputs[i].0 == 0 => format!("const constant {kind} &{name}{at}"),
                _ => format!("const device {kind} *{name}{at}"),
            };
            (name.clone(), text)
        }
        Slot::Shape(i) => constants(format!("{}_shape", d.input_names[i]), ["int"; 3]),
        Slot::Strides(i) => {
            constants(format!("{}_strides", d.input_names[i]), ["long", "long long", "int64_t"])
        }
        Slot::Ndim(i) => scalar(format!("{}_ndim", d.input_names[i]), "int"),
        Slot::Output(i) => {
            let (name, kind) = (&d.output_names[i], type_name(s.outputs[i].1));
            let text = match (language, d.atomic_outputs) {
                (Language::OpenCl, true) => format!("volatile __global {kind} *{name}"),
                (Language::OpenCl, false) => format!("__global {kind} *{name}"),
                (Language::Cuda, _) => format!("{kind} *{name}"),
                (_, true) => format!("device atomic<{kind}> *{name}{at}"),
                (_, false) => format!("device {kind} *{name}{at}"),
            };
            (name.clone(), text)
        }
        Slot::Grid(axis) => scalar(format!("um_grid_{}", ["x", "y", "z"][axis]), "unsigned int"),
        Slot::Grids => scalar("um_grid".to_owned(), "unsigned int"),
    }
}

/// Template parameters and arguments of C++.
fn templates(s: &Signature<'_>) -> (String, String) {
    let (mut declared, mut given) = (Vec::new(), Vec::new());
    for (name, value) in s.template {
        let (kind, value) = match value {
            Template::Dtype(dtype) => ("typename", type_name(*dtype)),
            Template::Int(v) => ("int", v.to_string()),
            Template::Bool(v) => ("bool", v.to_string()),
        };
        declared.push(format!("{kind} {name}"));
        given.push(value);
    }
    (declared.join(", "), given.join(", "))
}

/// Names that MLX's headers define and bodies for MLX use.
const MLX_METAL: &str = "#define elem_to_loc um_elem_to_loc
typedef half float16_t;
typedef bfloat bfloat16_t;
typedef um_complex64 complex64_t;
";
const MLX_CUDA: &str = "#define elem_to_loc um_elem_to_loc
typedef um_complex64 complex64_t;
#define inf __int_as_float(0x7f800000)
";

pub(super) fn generate(s: &Signature<'_>) -> Result<Generated> {
    let language = s.language;
    if language == Language::Metal {
        let dtypes = s.inputs.iter().map(|i| i.1).chain(s.outputs.iter().map(|o| o.1));
        if dtypes.into_iter().any(|d| d == Dtype::Float64) {
            return Err(s.refuse("Metal has no float64. Convert with astype(float32)."));
        }
    }
    let slots = s.slots();
    let entry = s.entry("um_kernel_");
    let mut parameters = Parameters::default();
    for (index, slot) in slots.iter().enumerate() {
        let (name, declared) = parameter(s, *slot, index);
        parameters.add(&name, declared);
    }
    if language == Language::OpenCl && s.definition.shared_memory > 0 {
        parameters.add("um_shared", "__local uchar *um_shared".to_owned());
    }
    let mut head = s.begin();
    if s.definition.mlx {
        // The names come before the header, because the header may use them.
        let names = if language == Language::Metal { MLX_METAL } else { MLX_CUDA };
        let end = super::prelude(language.name()).map_or(0, str::len);
        head.insert_str(end, names);
    }
    let (declared, given) = templates(s);
    let (of_template, body_name) = (!declared.is_empty(), s.entry("um_body_"));
    match language {
        Language::OpenCl => {
            for (name, value) in s.template {
                let value = match value {
                    Template::Dtype(dtype) => type_name(*dtype),
                    Template::Int(v) if *v < 0 => format!("({v})"),
                    Template::Int(v) => v.to_string(),
                    Template::Bool(v) => (*v as u8).to_string(),
                };
                let _ = writeln!(head, "#define {name} {value}");
            }
            let _ = write!(head, "__kernel void {entry}(");
        }
        Language::Cuda if of_template => {
            let _ =
                write!(head, "template <{declared}>\n__device__ __forceinline__ void {body_name}(");
        }
        Language::Cuda => {
            let _ = write!(head, "extern \"C\" __global__ void {entry}(");
        }
        _ if of_template => {
            let _ = write!(head, "template <{declared}>\n[[kernel]] void {body_name}(");
        }
        _ => {
            let _ = write!(head, "[[kernel]] void {entry}(");
        }
    }
    let position = "thread_position_in_grid";
    let mut attributes = Vec::new();
    if language == Language::Metal {
        let named = |n: &&threads::Name| s.named(n.name) && !threads::is_grid(n.name);
        for name in threads::NAMES.iter().filter(named) {
            let kind = if name.wide { "uint3" } else { "uint" };
            attributes.push(format!("{kind} {0} [[{0}]]", name.name));
        }
        if s.guarded && !s.named(position) {
            attributes.push(format!("uint3 um_position [[{position}]]"));
        }
    }
    let all: Vec<&str> = parameters.list.iter().chain(&attributes).map(String::as_str).collect();
    let _ = write!(head, "\n    {}) {{\n", all.join(",\n    "));
    inside(s, position, &mut head);
    let mut tail = "}\n".to_owned();
    if of_template {
        match language {
            Language::Cuda => {
                let _ = write!(
                    tail,
                    "extern \"C\" __global__ void {entry}(\n    {}) {{\n  {body_name}<{given}>({});\n}}\n",
                    parameters.list.join(",\n    "),
                    parameters.names.join(", ")
                );
            }
            Language::Metal => {
                let _ = writeln!(
                    tail,
                    "template [[host_name(\"{entry}\")]] [[kernel]] decltype({body_name}<{given}>) {body_name}<{given}>;"
                );
            }
            _ => {}
        }
    }
    Ok(Generated { language: s.language, head, tail, entry, slots })
}

/// Declarations inside the function, before the body.
fn inside(s: &Signature<'_>, position: &str, head: &mut String) {
    let position = if s.named(position) { position } else { "um_position" };
    if s.guarded {
        let at = match s.language {
            Language::OpenCl => {
                ["get_global_id(0)", "get_global_id(1)", "get_global_id(2)"].map(str::to_owned)
            }
            Language::Cuda => {
                ["x", "y", "z"].map(|d| format!("blockIdx.{d} * blockDim.{d} + threadIdx.{d}"))
            }
            _ => ["x", "y", "z"].map(|d| format!("{position}.{d}")),
        };
        let [x, y, z] = at;
        let _ = writeln!(
            head,
            "  if ({x} >= um_grid_x || {y} >= um_grid_y || {z} >= um_grid_z) return;"
        );
    }
    if s.language == Language::Cuda {
        for name in &s.definition.input_names {
            for (part, kind) in [("shape", "int"), ("strides", "long long")] {
                if s.named(&format!("{name}_{part}")) {
                    let _ = writeln!(
                        head,
                        "  const um_list<{kind}> {name}_{part} = {{um_{name}_{part}}};"
                    );
                }
            }
        }
    }
    match s.language {
        Language::Metal => {
            for name in ["threads_per_grid", "grid_size"] {
                if s.named(name) {
                    let _ = writeln!(
                        head,
                        "  const uint3 {name} = uint3(um_grid_x, um_grid_y, um_grid_z);"
                    );
                }
            }
        }
        _ => threads::declare(s, head),
    }
}
