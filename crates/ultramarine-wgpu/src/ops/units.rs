//! Units: 16 by 16 matrices of a half dtype. A subgroup of 32 multiplies two of them at once, with sums in float32. Devices
//! have instructions for this (`VK_KHR_cooperative_matrix`, naga's cooperative matrices). Without these, the same kernels
//! run on functions that do the same, so that they can be tested anywhere.
//!
//! Elements are stored in vectors of 16 bytes, in buffers and in shared memory, so that units are loaded from whole rows of
//! banks. naga derives the type of a unit from the array that it is loaded from; `shader::halves` changes this type to a
//! half dtype.

use crate::dtype::Dtype;
use crate::hal::Units;
use crate::shader::Program;
use std::fmt::Write as _;

const EMULATED: &str = include_str!("../../kernels/units.wgsl");

/// Elements of a unit's side.
pub const SIDE: u32 = 16;
/// Elements of a vector.
pub const EIGHT: i64 = 8;
/// Elements between rows of sums in `meet`.
pub const MEET: u32 = 20;

/// Describes loads of units from an array of vectors in shared memory.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Name of the load.
    pub name: &'static str,
    /// The array.
    pub array: &'static str,
    /// True for the left operand of a product, false for the right.
    pub left: bool,
    /// Vectors between lines.
    pub pitch: u32,
    /// True if lines are rows, false if they are columns.
    pub rows: bool,
}

impl Load {
    /// The expression for the unit that begins at a vector of the array.
    pub fn unit(&self, how: Units, at: &str) -> String {
        let Self { name, array, left, pitch, rows } = self;
        if how == Units::Emulated {
            return format!("unit_{name}({at})");
        }
        let kind = if *left { "UnitA" } else { "UnitB" };
        let load = if *rows { "coopLoadT" } else { "coopLoad" };
        format!("{load}<{kind}>(&{array}[{at}], {pitch}u)")
    }
}

/// The sums of units plus the product of two units. It is not a WGSL function, because drivers generate calls
/// for functions with the device's units.
pub fn multiplied(how: Units, a: &str, b: &str, sums: &str) -> String {
    let function = if how == Units::Native { "coopMultiplyAdd" } else { "multiply_units" };
    format!("{function}({a}, {b}, {sums})")
}

/// A statement that stores sums in `meet`, from an offset on.
pub fn kept(how: Units, sums: &str, at: &str) -> String {
    match how {
        Units::Native => format!("coopStoreT({sums}, &meet[{at}], {MEET}u);"),
        Units::Emulated => format!("keep_unit({sums}, {at});"),
    }
}

/// How units of a dtype are multiplied, given the support for float16 and bfloat16.
pub fn of(dtype: Dtype, [float16, bfloat16]: [Option<Units>; 2]) -> Option<Units> {
    match dtype {
        Dtype::Float16 => float16,
        Dtype::Bfloat16 => bfloat16,
        _ => None,
    }
}

/// Adds declarations to a program: the type Eight of 8 half-precision numbers with `half_of` and `eight_of`, arrays with
/// the given numbers of vectors, `meet` for the given number of sums, and the types of units: `UnitA`, `UnitB`, `Sums`.
pub fn declared<'a>(
    program: Program<'a>,
    (how, dtype): (Units, Dtype),
    (arrays, loads): (&[(&str, u32)], &[Load]),
    meet: u32,
) -> Program<'a> {
    let native = how == Units::Native;
    let kind = if dtype == Dtype::Bfloat16 { "bf16" } else { "f16" };
    // The types by which `shader::halves` distinguishes them.
    let word = if native && dtype == Dtype::Bfloat16 { "i32" } else { "u32" };
    let mut text = format!(
        "const MEET: u32 = {MEET}u;\nalias Eight = vec4<{word}>;\n\
         var<private> lane: u32;\nvar<workgroup> meet: array<f32, {meet}>;\n\
         fn half_of(x: Eight, e: u32) -> f32 {{\n\
         return {kind}_up((bitcast<u32>(x[e / 2u]) >> (16u * (e % 2u))) & 0xffffu);\n}}\n\
         fn two_of(x: f32, y: f32) -> {word} {{ return bitcast<{word}>({kind}_down(x) | ({kind}_down(y) << 16u)); }}\n\
         fn eight_of(x: vec4<f32>, y: vec4<f32>) -> Eight {{\n\
         return Eight(two_of(x.x, x.y), two_of(x.z, x.w), two_of(y.x, y.y), two_of(y.z, y.w));\n}}\n"
    );
    for (name, size) in arrays {
        _ = writeln!(text, "var<workgroup> {name}: array<Eight, {size}>;");
    }
    if native {
        text += "alias UnitA = coop_mat16x16<f16, A>;\nalias UnitB = coop_mat16x16<f16, B>;\n\
                 alias Sums = coop_mat16x16<f32, C>;\n";
        return program.enable(", f16, wgpu_cooperative_matrix").item(&text);
    }
    // A right-hand unit consists of the index of its load and its start.
    text += "struct UnitA { x: vec4<f32>, y: vec4<f32>, z: vec4<f32>, w: vec4<f32> }\n\
             alias UnitB = vec2<u32>;\nstruct Sums { x: vec4<f32>, y: vec4<f32> }\n";
    let mut element = String::new();
    for (number, Load { name, array, left, pitch, rows }) in loads.iter().enumerate() {
        let unit = format!("vec2<u32>({number}u, at)");
        _ = match left {
            true => {
                writeln!(text, "fn unit_{name}(at: u32) -> UnitA {{ return left_unit({unit}); }}")
            }
            false => writeln!(text, "fn unit_{name}(at: u32) -> UnitB {{ return {unit}; }}"),
        };
        let (line, along) = if *rows { ("row", "column") } else { ("column", "row") };
        _ = writeln!(
            element,
            "if (unit.x == {number}u) {{ return half_of({array}[unit.y + {line} * {pitch}u + {along} / 8u], {along} % 8u); }}"
        );
    }
    _ = writeln!(
        text,
        "fn unit_element(unit: vec2<u32>, row: u32, column: u32) -> f32 {{\n{element}return 0.0;\n}}"
    );
    program.item(&text).library(EMULATED)
}
