//! Programs as WGSL: each instruction calls the function that the operation's own kernel calls, and rounds to its dtype,
//! so results are bitwise identical.

use super::program::{Program, Step};
use crate::dtype::Dtype;
use crate::ops::copy::{LIBRARY, convert};
use crate::ops::elementwise::narrowed;
use crate::shader::source::Source;
use crate::shader::{Program as Text, Tensor};
use std::fmt::Write as _;

/// Tensors of a program at most; layouts have places for so many.
pub const TENSORS: usize = 16;

const NAMES: [&str; TENSORS] = [
    "p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7", "p8", "p9", "p10", "p11", "p12", "p13", "p14",
    "p15",
];

/// Axes of a layout that a kernel is made for at most. With more of them it walks a list.
pub const AXES: usize = 4;

/// The kernel of a program, for layouts with so many axes or, without a number, for any. Words: invocations, two for
/// each constant, the layout, and with a number the layout's divisors.
pub fn source(program: &Program, axes: Option<usize>) -> Source {
    let dtypes = program.tensors();
    let tensors: Vec<Tensor> = NAMES
        .into_iter()
        .zip(&dtypes)
        .map(|(name, dtype)| Tensor { name, dtype: *dtype })
        .collect();
    let (prologue, mut body) = places("im.base + 1u", program.constants, tensors.len(), axes);
    let prologue = format!("{prologue}{}", constants(program));
    body += &values(program);
    for (k, output) in (program.inputs..).zip(&program.outputs) {
        _ = writeln!(body, "store_{}(at{k}, v{output});", NAMES[k]);
    }
    let text = Text::new(&tensors).library(LIBRARY).item(&functions(program));
    text.prologue(&prologue).body(&body).build()
}

/// The functions that a program calls, those of each dtype with its name behind theirs.
fn functions(program: &Program) -> String {
    let mut items = String::new();
    for (dtype, functions) in &program.functions {
        let names = program.steps.iter().filter_map(|step| match step {
            Step::Call(function, of) if program.dtypes[of[0]] == *dtype => Some(&*function.name),
            _ => None,
        });
        let names: Vec<&str> = names.collect();
        items += &functions.with_suffix(&names.join(" "), &format!("_{}", dtype.name()));
    }
    items
}

/// Constants, from the words at `q`.
fn constants(program: &Program) -> String {
    let mut text = String::new();
    for i in 0..program.constants {
        let value = program.inputs + i;
        _ = writeln!(text, "let v{value} = {};", constant(program.dtypes[value], 2 * i));
    }
    text
}

/// Inputs and instructions, as values `v0`, `v1` ...
fn values(program: &Program) -> String {
    let mut text = String::new();
    for (i, name) in NAMES.into_iter().enumerate().take(program.inputs) {
        _ = writeln!(text, "let v{i} = load_{name}(at{i});");
    }
    for (i, step) in program.steps.iter().enumerate() {
        let value = program.first() + i;
        let to = program.dtypes[value];
        _ = writeln!(text, "let v{value} = {};", instruction(program, step, to));
    }
    text
}

fn instruction(program: &Program, step: &Step, to: Dtype) -> String {
    let dtype = |value: usize| program.dtypes[value];
    match step {
        Step::Call(function, of) => {
            let operands: Vec<_> = of.iter().map(|value| format!("v{value}")).collect();
            let suffix = dtype(of[0]).name();
            let value = format!("{}_{suffix}({})", function.name, operands.join(", "));
            match function.is_test {
                true => format!("select(0u, 1u, {value})"),
                false => narrowed(to, &value),
            }
        }
        Step::Select(a, b, c) => format!("select(v{c}, v{b}, v{a} != 0u)"),
        Step::Cast(a) if dtype(*a) == to => format!("v{a}"),
        Step::Cast(a) => narrowed(to, &convert(&format!("v{a}"), dtype(*a), to)),
    }
}

/// A constant from the two words at `q + at`.
fn constant(dtype: Dtype, at: usize) -> String {
    let (low, high) = (format!("words[q + {at}u]"), format!("words[q + {}u]", at + 1));
    let wide = format!("(u64({low}) | (u64({high}) << 32u))");
    match dtype {
        Dtype::Bool | Dtype::Uint8 | Dtype::Uint16 | Dtype::Uint32 => narrowed(dtype, &low),
        Dtype::Int8 | Dtype::Int16 | Dtype::Int32 => {
            narrowed(dtype, &format!("bitcast<i32>({low})"))
        }
        Dtype::Uint64 => wide,
        Dtype::Int64 | Dtype::Float64 => format!("bitcast<{}>({wide})", dtype.register()),
        Dtype::Float16 => format!("f16_up({low} & 0xffffu)"),
        Dtype::Bfloat16 => format!("bf16_up({low} & 0xffffu)"),
        Dtype::Float32 => format!("bitcast<f32>({low})"),
        Dtype::Complex64 => format!("vec2<f32>(bitcast<f32>({low}), bitcast<f32>({high}))"),
    }
}

/// What finds the places `at0`, `at1` ... of the tensors: before the body, and at its beginning. At `base` are the
/// constants and the layout.
fn places(base: &str, constants: usize, tensors: usize, axes: Option<usize>) -> (String, String) {
    // A layout has the strides of all tensors that there may be.
    let width = TENSORS + 1;
    let (mut once, mut each) = (format!("let q = {base};\n"), String::new());
    _ = writeln!(once, "let table = q + {}u;", 2 * constants);
    for k in 0..tensors {
        _ = writeln!(once, "let first{k} = words[table + {}u];", k + 1);
    }
    let Some(axes) = axes else {
        for k in 0..tensors {
            _ = writeln!(each, "var at{k} = first{k};");
        }
        _ = write!(
            each,
            "var axes = words[table];\nvar w = table + {width}u;\nvar rest = i;\n\
             loop {{\nif (axes == 0u) {{ break; }}\naxes -= 1u;\nvar index = rest;\n\
             if (axes != 0u) {{\nlet size = words[w];\nrest = rest / size;\nindex -= rest * size;\n}}\n"
        );
        for k in 0..tensors {
            _ = writeln!(each, "at{k} += index * words[w + {}u];", k + 1);
        }
        _ = writeln!(each, "w += {width}u;\n}}");
        return (once, each);
    };
    let mut sums: Vec<String> = (0..tensors).map(|k| format!("first{k}")).collect();
    let mut rest = "i".to_owned();
    for axis in 0..axes {
        let at = width * (axis + 1);
        let mut index = rest.clone();
        if axis + 1 < axes {
            let divisor = width * (axes + 1) + 2 * axis;
            _ = writeln!(once, "let size{axis} = words[table + {at}u];");
            _ = writeln!(once, "let factor{axis} = words[table + {divisor}u];");
            _ = writeln!(once, "let shift{axis} = words[table + {}u];", divisor + 1);
            _ = writeln!(each, "let rest{axis} = divide({rest}, factor{axis}, shift{axis});");
            _ = writeln!(each, "let index{axis} = {rest} - rest{axis} * size{axis};");
            (index, rest) = (format!("index{axis}"), format!("rest{axis}"));
        }
        for (k, sum) in sums.iter_mut().enumerate() {
            _ = writeln!(once, "let step{k}_{axis} = words[table + {}u];", at + k + 1);
            _ = write!(sum, " + {index} * step{k}_{axis}");
        }
    }
    for (k, sum) in sums.iter().enumerate() {
        _ = writeln!(each, "let at{k} = {sum};");
    }
    (once, each)
}
