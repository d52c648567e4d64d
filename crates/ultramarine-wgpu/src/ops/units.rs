//! Units: small matrices of halves, 16 by 16, whose products a subgroup of 32 makes at once, summed in float32. Devices have
//! instructions for them (`VK_KHR_cooperative_matrix`, naga's cooperative matrices); without these the same kernels run on
//! functions that do the same, so that tests of them run anywhere.
//!
//! Halves lie in vectors of 16 bytes, in buffers as in shared memory, so that units are loaded by whole rows of banks. naga
//! takes the type of a unit from the array that it is loaded from; `shader::halves` makes it one of halves.

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

/// A load of units from an array of vectors in shared memory, as text.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Its name.
    pub name: &'static str,
    /// The array.
    pub array: &'static str,
    /// Left of a product, or else right.
    pub left: bool,
    /// Vectors between lines.
    pub pitch: u32,
    /// Lines are rows, or else columns.
    pub rows: bool,
}

impl Load {
    /// The unit that begins at a vector of the array.
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

/// The sums of units with a product of two: no function, since drivers call those that take the device's units.
pub fn multiplied(how: Units, a: &str, b: &str, sums: &str) -> String {
    let function = if how == Units::Native { "coopMultiplyAdd" } else { "multiply_units" };
    format!("{function}({a}, {b}, {sums})")
}

/// A statement that puts sums to `meet` from a place on.
pub fn kept(how: Units, sums: &str, at: &str) -> String {
    match how {
        Units::Native => format!("coopStoreT({sums}, &meet[{at}], {MEET}u);"),
        Units::Emulated => format!("keep_unit({sums}, {at});"),
    }
}

/// The units that make products of a dtype, of those of float16 and of bfloat16 that there are.
pub fn of(dtype: Dtype, [float16, bfloat16]: [Option<Units>; 2]) -> Option<Units> {
    match dtype {
        Dtype::Float16 => float16,
        Dtype::Bfloat16 => bfloat16,
        _ => None,
    }
}

/// Gives a program the type Eight of 8 halves with `half_of` and `eight_of`, arrays of so many vectors, `meet` for so many
/// sums, and the types of units: `UnitA`, `UnitB`, `Sums`.
pub fn declared<'a>(
    program: Program<'a>,
    (how, dtype): (Units, Dtype),
    (arrays, loads): (&[(&str, u32)], &[Load]),
    meet: u32,
) -> Program<'a> {
    let native = how == Units::Native;
    let kind = if dtype == Dtype::Bfloat16 { "bf16" } else { "f16" };
    // As `shader::halves` tells them apart.
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
    // A unit on the right is the number of its load, and where it begins.
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
