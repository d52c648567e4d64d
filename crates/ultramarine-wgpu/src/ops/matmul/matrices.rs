//! Generates the kernels that multiply half dtypes with matrix units: `matrices.wgsl`, with the
//! parts that depend on tiles.

use super::operand::Reading;
use crate::dtype::Dtype;
use crate::hal::Units;
use crate::ops::units::{self, Load, MEET, SIDE as UNIT};
use crate::shader::{Program, Tensor};
use std::fmt::Write as _;

const TEXT: &str = include_str!("../../../kernels/matmul/matrices.wgsl");

/// Elements of a vector. Lines in shared memory are longer by one vector.
const EIGHT: u32 = 8;

/// The tile of results that a workgroup computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tile {
    /// Rows and columns.
    pub sides: [u32; 2],
    /// Subgroups along rows and along columns.
    pub warps: [u32; 2],
    /// Length of k between two barriers.
    pub depth: u32,
    /// Buffers in shared memory. If there are two, one is filled while the other is read.
    pub buffers: u32,
}

impl Tile {
    /// Invocations of a workgroup.
    pub fn threads(self) -> u32 {
        32 * self.warps[0] * self.warps[1]
    }

    /// How units of a matrix are loaded, and the number of its vectors in shared memory.
    fn load(self, name: &'static str, left: bool, along_k: bool) -> (Load, u32) {
        let side = self.sides[usize::from(!left)];
        let (lines, length) = if along_k { (side, self.depth) } else { (self.depth, side) };
        let pitch = length / EIGHT + 1;
        (Load { name, array: name, left, pitch, rows: left == along_k }, lines * pitch)
    }

    /// Elements of `meet`, which has a unit for each subgroup.
    fn kept(self) -> u32 {
        self.threads() / 32 * UNIT * MEET
    }

    /// Bytes of shared memory: both matrices, counted as read along k, which takes the most, and the sums
    /// that are stored.
    pub fn bytes(self) -> u32 {
        let vectors = self.load("tile_a", true, true).1 + self.load("tile_b", false, true).1;
        self.buffers * vectors * EIGHT * 2 + self.kept() * 4
    }
}

/// The program without `job_of` of `words.wgsl`, for matrices of a dtype that are read along k or across it. The matrices
/// are bound after the output.
pub fn program(
    (dtype, out): (Dtype, Dtype),
    reading: [Reading; 2],
    tile: Tile,
    how: Units,
) -> Program<'static> {
    let along = reading.map(|reading| reading.along_k);
    let (a, size_a) = tile.load("tile_a", true, along[0]);
    let (b, size_b) = tile.load("tile_b", false, along[1]);
    let ([rows, columns], [warp_rows, warp_columns]) = (tile.sides, tile.warps);
    let (depth, threads) = (tile.depth, tile.threads());
    // Number of a subgroup's units.
    let units = [rows / warp_rows / UNIT, columns / warp_columns / UNIT];
    let [mut declare, mut fetch, mut clear, mut put, mut multiply, mut store] =
        [const { String::new() }; 6];
    let mut items = format!(
        "const THREADS: u32 = {threads}u;\nconst DEPTH: u32 = {depth}u;\n\
         const ROWS: u32 = {rows}u;\nconst COLUMNS: u32 = {columns}u;\n\
         const WARP_ROWS: u32 = {}u;\nconst WARP_COLUMNS: u32 = {}u;\nconst ACROSS: u32 = {warp_columns}u;\n\
         const SIZE_A: u32 = {size_a}u;\nconst SIZE_B: u32 = {size_b}u;\nconst BUFFERS: u32 = {}u;\n",
        rows / warp_rows,
        columns / warp_columns,
        tile.buffers,
    );
    for (name, side, along_k, load) in [("a", rows, along[0], a), ("b", columns, along[1], b)] {
        // Vectors per line.
        let line = if along_k { depth / EIGHT } else { side / EIGHT };
        let (outer, inner) = match along_k {
            true => (format!("v / {line}u"), format!("8u * (v % {line}u)")),
            false => (format!("8u * (v % {line}u)"), format!("v / {line}u")),
        };
        let outer_eight = if along_k { 1 } else { 8 };
        let pitch = load.pitch;
        let warp = if name == "a" { rows / warp_rows } else { columns / warp_columns };
        _ = write!(
            items,
            "fn start_{name}(at: u32, steps: vec2<u32>, outer: u32, k: u32, v: u32) -> u32 {{\n\
             return (at + min({outer}, outer - {outer_eight}u) * steps.x + (k + {inner}) * steps.y) / 8u;\n}}\n\
             fn inside_{name}(k: u32, end: u32, v: u32) -> bool {{ return k + {inner} < end; }}\n\
             fn first_{name}(part: u32) -> u32 {{ return part * {}u; }}\n",
            if along_k { warp * pitch } else { warp / EIGHT }
        );
        let outer = if name == "a" { "a_rows" } else { "b_columns" };
        for i in 0..side * depth / EIGHT / threads {
            let v = format!("local + {}u", i * threads);
            _ = writeln!(
                declare,
                "var at_{name}{i} = start_{name}({name}_at, {name}_steps, {outer}, k, {v});\n\
                 var next_{name}{i} = {name}[min(at_{name}{i}, last_{name})];"
            );
            _ = writeln!(
                fetch,
                "at_{name}{i} += step_{name};\nnext_{name}{i} = {name}[min(at_{name}{i}, last_{name})];"
            );
            _ = writeln!(
                clear,
                "next_{name}{i} = select(Eight(), next_{name}{i}, inside_{name}(k, job.end, {v}));"
            );
            let size = format!("side * SIZE_{}", name.to_uppercase());
            _ = writeln!(
                put,
                "tile_{name}[{size} + ({v}) / {line}u * {pitch}u + ({v}) % {line}u] = next_{name}{i};"
            );
        }
    }
    // The start of unit `i` of a subgroup's side at step `k`.
    let place = |load: Load, along_k: bool, i: u32, k: u32| match along_k {
        true => UNIT * i * load.pitch + k / EIGHT,
        false => k * load.pitch + UNIT / EIGHT * i,
    };
    for k in (0..depth).step_by(UNIT as usize) {
        multiply += "{\n";
        for (name, load, along_k, count) in
            [("a", a, along[0], units[0]), ("b", b, along[1], units[1])]
        {
            for i in 0..count {
                let at = format!("from_{name} + {}u", place(load, along_k, i, k));
                _ = writeln!(multiply, "let {name}{i} = {};", load.unit(how, &at));
            }
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
        .replace("CLEAR", &clear)
        .replace("PUT", &put)
        .replace("MULTIPLY", &multiply)
        .replace("STORE", &store);
    let program = Program::new(&[Tensor { name: "out", dtype: out }]);
    let arrays = [(a.array, tile.buffers * size_a), (b.array, tile.buffers * size_b)];
    let program = units::declared(program, (how, dtype), (&arrays, &[a, b]), tile.kept());
    program
        .array("a", "Eight")
        .array("b", "Eight")
        .item(&(items + &text))
        .group_body(threads, "matrices(g, local);")
}

/// The units of a subgroup, by row and column index.
fn pairs([rows, columns]: [u32; 2]) -> impl Iterator<Item = (u32, u32)> {
    (0..rows).flat_map(move |i| (0..columns).map(move |j| (i, j)))
}
