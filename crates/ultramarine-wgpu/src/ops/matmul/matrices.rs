//! The text of products of halves by units: `matrices.wgsl` with what depends on tiles.

use super::operand::Reading;
use crate::dtype::Dtype;
use crate::hal::Units;
use crate::ops::units::{self, Load, MEET, SIDE as UNIT};
use crate::shader::{Program, Tensor};
use std::fmt::Write as _;

const TEXT: &str = include_str!("../../../kernels/matmul/matrices.wgsl");

/// Invocations of a workgroup.
pub const THREADS: u32 = 128;
/// Steps of k between barriers.
const DEPTH: u32 = 32;
/// Halves of a vector in shared memory, and that rows there are longer.
const FOUR: u32 = 4;
const APART: u32 = 8;

/// How units of a tile are loaded, and the vectors of a tile.
fn tile(name: &'static str, left: bool, along_k: bool, side: u32) -> (Load, u32) {
    let (lines, length) = if along_k { (side, DEPTH) } else { (DEPTH, side) };
    let pitch = (length + APART) / FOUR;
    (Load { name, array: name, left, pitch, rows: left == along_k }, lines * pitch)
}

/// Elements of `meet`: a unit for each subgroup.
const KEPT: u32 = THREADS / 32 * UNIT * MEET;

/// Bytes of shared memory: both matrices along k, which takes the most, and the sums that are stored.
pub fn bytes(side: u32) -> u32 {
    let (_, size) = tile("tile_a", true, true, side);
    // Two matrices, each twice: one tile is filled while the other is read.
    2 * 2 * size * FOUR * 2 + KEPT * 4
}

/// The program, without `job_of` of `words.wgsl`, for matrices of a dtype that are read along k or across it. They are bound
/// behind the output.
pub fn program(
    (dtype, out): (Dtype, Dtype),
    reading: [Reading; 2],
    side: u32,
    how: Units,
) -> Program<'static> {
    let [along_a, along_b] = reading.map(|reading| reading.along_k);
    let (a, size_a) = tile("tile_a", true, along_a, side);
    let (b, size_b) = tile("tile_b", false, along_b, side);
    // Units of a subgroup's side, vectors that an invocation brings.
    let (units, each) = (side / 2 / UNIT, side * DEPTH / 8 / THREADS);
    let [mut declare, mut fetch, mut put, mut multiply, mut store] = [const { String::new() }; 5];
    let mut items = format!(
        "const SIDE: u32 = {side}u;\nconst SIZE_A: u32 = {size_a}u;\nconst SIZE_B: u32 = {size_b}u;\n"
    );
    for (name, along_k, tile) in [("a", along_a, a), ("b", along_b, b)] {
        // Vectors of a line.
        let line = if along_k { DEPTH / 8 } else { side / 8 };
        let (outer, inner) = match along_k {
            true => (format!("v / {line}u"), format!("8u * (v % {line}u)")),
            false => (format!("8u * (v % {line}u)"), format!("v / {line}u")),
        };
        let (outer_eight, inner_eight) = if along_k { (1, 8) } else { (8, 1) };
        let pitch = tile.pitch;
        _ = write!(
            items,
            "fn fetch_{name}(at: u32, steps: vec2<u32>, outer: u32, k: u32, end: u32, v: u32) -> Eight {{\n\
             let r = min({outer}, outer - {outer_eight}u);\nlet kk = min(k + {inner}, end - {inner_eight}u);\n\
             return {name}[(at + r * steps.x + kk * steps.y) / 8u];\n}}\n\
             fn inside_{name}(k: u32, end: u32, v: u32) -> bool {{ return k + {inner} < end; }}\n\
             fn first_{name}(half: u32) -> u32 {{ return half * {}u; }}\n",
            if along_k { side / 2 * pitch } else { side / 2 / FOUR }
        );
        let outer = if name == "a" { "a_rows" } else { "b_columns" };
        for i in 0..each {
            let v = format!("local + {}u", i * THREADS);
            _ = writeln!(declare, "var next_{name}{i}: Eight;");
            _ = writeln!(
                fetch,
                "next_{name}{i} = fetch_{name}({name}_at, {name}_steps, {outer}, k, job.end, {v});"
            );
            let size = format!("side * SIZE_{}", name.to_uppercase());
            let at = format!("{size} + ({v}) / {line}u * {pitch}u + 2u * (({v}) % {line}u)");
            let inside = format!("inside_{name}(k, job.end, {v})");
            for (half, part) in ["x", "y"].iter().enumerate() {
                _ = writeln!(
                    put,
                    "tile_{name}[{at} + {half}u] = select(Four(), next_{name}{i}.{part}, {inside});"
                );
            }
        }
    }
    // Where unit `i` of a subgroup's side begins at step `k`.
    let place = |tile: Load, along_k: bool, i: u32, k: u32| match along_k {
        true => UNIT * i * tile.pitch + k / FOUR,
        false => k * tile.pitch + UNIT / FOUR * i,
    };
    for k in (0..DEPTH).step_by(UNIT as usize) {
        multiply += "{\n";
        for i in 0..units {
            let (at_a, at_b) = (place(a, along_a, i, k), place(b, along_b, i, k));
            let unit = |load: Load, at: String| load.unit(how, &at);
            _ = writeln!(multiply, "let a{i} = {};", unit(a, format!("from_a + {at_a}u")));
            _ = writeln!(multiply, "let b{i} = {};", unit(b, format!("from_b + {at_b}u")));
        }
        for (i, j) in pairs(units) {
            let [a, b, sums] = [format!("a{i}"), format!("b{j}"), format!("s{i}_{j}")];
            _ = writeln!(multiply, "{sums} = {};", units::multiplied(how, &a, &b, &sums));
        }
        multiply += "}\n";
    }
    for (i, j) in pairs(units) {
        _ = writeln!(declare, "var s{i}_{j} = Sums();");
        _ = writeln!(
            store,
            "{}\nworkgroupBarrier();\n\
             store_unit(job.place.z, row + {}u, column + {}u, warp);\nworkgroupBarrier();",
            units::kept(how, &format!("s{i}_{j}"), &format!("warp * {}u", UNIT * MEET)),
            UNIT * i,
            UNIT * j
        );
    }
    let text = TEXT
        .replace("DECLARE", &declare)
        .replace("FETCH", &fetch)
        .replace("PUT", &put)
        .replace("MULTIPLY", &multiply)
        .replace("STORE", &store);
    let program = Program::new(&[Tensor { name: "out", dtype: out }]);
    let arrays = [(a.array, 2 * size_a), (b.array, 2 * size_b)];
    let program = units::declared(program, (how, dtype), (&arrays, &[a, b]), KEPT);
    program
        .array("a", "Eight")
        .array("b", "Eight")
        .item(&(items + &text))
        .group_body(THREADS, "matrices(g, local);")
}

/// The units of a subgroup, by row and column.
fn pairs(units: u32) -> impl Iterator<Item = (u32, u32)> {
    (0..units).flat_map(move |i| (0..units).map(move |j| (i, j)))
}
