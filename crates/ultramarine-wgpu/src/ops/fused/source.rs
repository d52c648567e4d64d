//! Generates the WGSL of programs. Each instruction calls the same function as the operation's own kernel and rounds to
//! its dtype, so results are bitwise identical.

use super::program::{Program, Step};
use crate::dtype::{Dtype, Wgsl};
use crate::launch::{Fours, Once, Vectors, places};
use crate::ops::copy::{LIBRARY, convert};
use crate::ops::elementwise::narrowed;
use crate::shader::source::Source;
use crate::shader::{Program as Text, Tensor};
use std::fmt::Write as _;

/// Maximum number of tensors of a program.
pub const TENSORS: usize = 16;

const NAMES: [&str; TENSORS] = [
    "p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7", "p8", "p9", "p10", "p11", "p12", "p13", "p14",
    "p15",
];

/// The kernel of a program, for layouts with the given number of axes, or for any layout without a number. Its words
/// are the number of invocations, two words for each constant, the layout and, with a number of axes, the layout's
/// divisors.
pub fn source(program: &Program, axes: Option<usize>) -> Source {
    let dtypes = program.tensors();
    let tensors: Vec<Tensor> = NAMES
        .into_iter()
        .zip(&dtypes)
        .map(|(name, dtype)| Tensor { name, dtype: *dtype })
        .collect();
    let (once, mut body) = layout(program, "1u", tensors.len(), axes);
    body += &(loads(program) + &steps(program, true));
    for (k, output) in (program.inputs..).zip(&program.outputs) {
        _ = writeln!(body, "store_{}(at{k}, v{output});", NAMES[k]);
    }
    let text = Text::new(&tensors).library(LIBRARY).item(&functions(program));
    text.prologue(&Once::lets(&once)).body(&body).build()
}

/// The same, with one vector per invocation.
pub fn vectors(program: &Program, vectors: Vectors) -> Source {
    let dtypes = program.tensors();
    let tensors = NAMES.into_iter().zip(&dtypes);
    let tensors: Vec<_> = tensors.map(|(name, dtype)| Tensor { name, dtype: *dtype }).collect();
    let table = (format!("q + {}u", 2 * program.constants), tensors.len());
    let fours = Fours { tensors: &tensors, inputs: program.inputs, vectors, table };
    let functions = functions(program);
    let steps = steps(program, true);
    let length = functions.len() + steps.len() + LIBRARY.len();
    let text = Text::new(&[]).library(LIBRARY).item(&functions);
    let once = constants(program, "1u");
    let text = fours.complete(text, once, length, |_, inputs, outputs| {
        let mut body = String::new();
        for (i, input) in inputs.iter().enumerate() {
            _ = writeln!(body, "let v{i} = {input};");
        }
        body += &steps;
        for (variable, output) in outputs.iter().zip(&program.outputs) {
            _ = writeln!(body, "{variable} = v{output};");
        }
        body
    });
    text.build()
}

/// The values for a reduction of output 0, which must be the only output. The tensors are the inputs and `out`; the
/// function `load_a` takes an element's index. The words are those of the reduction, followed by those of [`source`].
pub fn operand(program: &Program, out: Dtype, axes: Option<usize>) -> Text<'static> {
    // The words after the layout of the reduced axes.
    let base = "word(5u) + 2u + 2u * word(word(5u))";
    element(program, 0, &[Tensor { name: "out", dtype: out }], base, axes)
}

/// The function `load_a` of an element's index. It returns output 0 and writes the last `written` outputs. The tensors
/// are the inputs, these outputs, and `more`. `base` is the location of the words after the first one of [`source`].
pub fn element(
    program: &Program,
    written: usize,
    more: &[Tensor],
    base: &str,
    axes: Option<usize>,
) -> Text<'static> {
    let outputs = &program.outputs[program.outputs.len() - written..];
    let dtypes = program.dtypes[..program.inputs].iter().copied();
    let dtypes = dtypes.chain(outputs.iter().map(|o| program.dtypes[*o]));
    let tensors = NAMES.into_iter().zip(dtypes).map(|(name, dtype)| Tensor { name, dtype });
    let mut tensors: Vec<Tensor> = tensors.collect();
    let (once, body) = layout(program, base, tensors.len(), axes);
    tensors.extend(more);
    let value = program.outputs[0];
    let (mut items, mut prologue) = (functions(program), String::new());
    for Once { name, kind, value } in &once {
        _ = writeln!(items, "var<private> {name}: {kind};");
        _ = writeln!(prologue, "{name} = {value};");
    }
    let kind = program.dtypes[value].register();
    let mut stores = String::new();
    for (k, output) in (program.inputs..).zip(outputs) {
        _ = writeln!(stores, "store_{}(at{k}, v{output});", NAMES[k]);
    }
    _ = write!(
        items,
        "fn load_a(i: u32) -> {kind} {{\n{body}{}{}{stores}return v{value};\n}}\n",
        loads(program),
        steps(program, false)
    );
    Text::new(&tensors).library(LIBRARY).item(&items).prologue(&prologue)
}

/// Returns true if a program's functions contain loops.
pub fn has_loops(program: &Program) -> bool {
    functions(program).contains("loop {")
}

/// The functions that a program calls. The dtype's name is added to the functions' names.
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

/// Constants from the words at `base`, and the code that computes the offsets of tensors.
fn layout(
    program: &Program,
    base: &str,
    tensors: usize,
    axes: Option<usize>,
) -> (Vec<Once>, String) {
    let table = format!("q + {}u", 2 * program.constants);
    let (found, body) = places(&table, (tensors, tensors), axes);
    let mut once = constants(program, base);
    once.extend(found);
    (once, body)
}

/// The location `q` of constants, and their values.
fn constants(program: &Program, base: &str) -> Vec<Once> {
    let mut once = vec![Once::index("q", base.to_owned())];
    once.extend((0..program.constants).map(|i| {
        let value = program.inputs + i;
        let dtype = program.dtypes[value];
        let (name, kind) = (format!("v{value}"), dtype.register());
        Once { name, kind, value: constant(dtype, 2 * i) }
    }));
    once
}

/// Loads the inputs into values `v0`, `v1` ...
fn loads(program: &Program) -> String {
    let inputs = NAMES.into_iter().enumerate().take(program.inputs);
    inputs.map(|(i, name)| format!("let v{i} = load_{name}(at{i});\n")).collect()
}

/// Computes the instructions into the next values. If all outputs are stored, values that no instruction reads are
/// only rounded by the store.
fn steps(program: &Program, stored: bool) -> String {
    let read = |value: usize| program.steps.iter().any(|step| step.operands().contains(&value));
    let mut text = String::new();
    for (i, step) in program.steps.iter().enumerate() {
        let value = program.first() + i;
        let to = program.dtypes[value];
        let later = stored && to.is_real() && !read(value);
        _ = writeln!(text, "let v{value} = {};", instruction(program, step, (to, later)));
    }
    text
}

/// The value of an instruction. It is rounded to its dtype, unless it is rounded `later`.
fn instruction(program: &Program, step: &Step, (to, later): (Dtype, bool)) -> String {
    let dtype = |value: usize| program.dtypes[value];
    let narrowed = |to, value: &str| if later { value.to_owned() } else { narrowed(to, value) };
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
    let (low, high) = (format!("word(q + {at}u)"), format!("word(q + {}u)", at + 1));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::{AXES, Axes};
    use crate::ops::elementwise::{Functions, function_of};
    use crate::shader::{compile, narrow, patch};
    use ultramarine_abi::schema::{binary, op};

    /// `select(a < c, a, b) + c` of two inputs and a constant, converted to `to`.
    fn program(dtype: Dtype, to: Dtype) -> Program {
        let call = |code, of: &[usize]| {
            let function = function_of(op::BINARY, code, dtype).unwrap();
            Step::Call(function, of.to_vec())
        };
        Program {
            inputs: 2,
            constants: 1,
            steps: vec![
                call(binary::LESS, &[0, 2]),
                Step::Select(3, 0, 1),
                call(binary::ADD, &[4, 2]),
                Step::Cast(5),
            ],
            dtypes: vec![dtype, dtype, dtype, Dtype::Bool, dtype, dtype, to],
            outputs: vec![6],
            reduce: None,
            functions: [(dtype, Functions::of(dtype, true))].into(),
        }
    }

    fn compiles(source: &Source) {
        let module = compile::compile(&source.text).unwrap();
        let module = narrow::narrow(&module, &source.bytes).unwrap();
        patch::patch(&module, &Default::default()).unwrap();
    }

    #[test]
    fn programs_of_all_dtypes_compile_for_all_numbers_of_axes() {
        for (i, dtype) in crate::dtype::ALL.into_iter().enumerate() {
            let program = program(dtype, crate::dtype::ALL[(i + 5) % 14]);
            let pieces = [(3, [8, 0, 8]), (8, [1, (i % 2) as i64, 1])];
            for outer in [0, 1] {
                let axes = Axes::<3>::join([0; 3], pieces[outer..].iter().copied());
                let mut found = Vectors::of(&axes, 2, &program.tensors()).unwrap();
                for turns in [1, 4] {
                    found.turns = turns;
                    compiles(&vectors(&program, found));
                }
            }
            for axes in [None, Some(1), Some(2), Some(AXES)] {
                compiles(&source(&program, axes));
                let values = operand(&program, program.dtypes[6], axes);
                compiles(&values.body("store_out(i, load_a(i));").build());
            }
        }
    }

    #[test]
    fn loops_are_seen() {
        let mut program = program(Dtype::Float32, Dtype::Float32);
        assert!(!has_loops(&program));
        let remainder = function_of(op::BINARY, binary::REMAINDER, Dtype::Float32).unwrap();
        program.steps[2] = Step::Call(remainder, vec![4, 2]);
        assert!(has_loops(&program));
    }
}
