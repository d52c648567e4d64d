//! Generates the kernels of products: the parts that depend on dtypes and tiles.

use super::choice::{GROUP, Method, depth, sides};
use super::matrices;
use super::operand::Reading;
use crate::dtype::{Dtype, Wgsl};
use crate::shader::source::Source;
use crate::shader::vector::{FOUR, pick, vector_of};
use crate::shader::{Program, Tensor};
use std::fmt::Write as _;

const WORDS: &str = include_str!("../../../kernels/matmul/words.wgsl");
const BLOCK: &str = include_str!("../../../kernels/matmul/block.wgsl");
const TILE: &str = include_str!("../../../kernels/matmul/tile.wgsl");
const FEW: &str = include_str!("../../../kernels/matmul/few.wgsl");

const JOB: &str = "struct Job { row: u32, column: u32, place: vec3<u32>, first: u32, end: u32 }";
const PARTS: [&str; 4] = ["x", "y", "z", "w"];

/// The variant of a product's kernel. Its source is generated at its first use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Variant {
    /// The method.
    pub method: Method,
    /// How both matrices are read.
    pub reading: [Reading; 2],
    /// Dtype of the output, or of the sums of splits.
    pub out: Dtype,
}

/// The dtype in which splits are summed.
pub fn sum_of(dtype: Dtype) -> Dtype {
    match dtype.register() {
        "f32" => Dtype::Float32,
        "u32" => Dtype::Uint32,
        "i32" => Dtype::Int32,
        _ => dtype,
    }
}

/// The kernel that adds the sums of splits.
pub fn merge(dtype: Dtype) -> Source {
    let tensors = [Tensor { name: "part", dtype: sum_of(dtype) }, Tensor { name: "out", dtype }];
    Program::new(&tensors).library(WORDS).item(JOB).body("merge_splits(i);").build()
}

impl Variant {
    /// The matrices that are read as vectors. They are bound after the others.
    pub fn vectors(&self) -> [bool; 2] {
        let vectors = self.reading.map(|reading| reading.vector);
        match (self.method, self.reading[1].along_k) {
            (Method::Block, _) => [false; 2],
            // Across k, the first matrix is read one element at a time.
            (Method::Few { .. }, false) => [false, vectors[1]],
            (Method::Few { .. }, true) => [vectors[0] && self.reading[0].along_k, vectors[1]],
            (Method::Tile { .. }, _) => vectors,
            (Method::Units { .. }, _) => [true; 2],
        }
    }

    /// The program, for matrices of a dtype.
    pub fn source(&self, dtype: Dtype) -> Source {
        if let Method::Units { tile, how } = self.method {
            let program = matrices::program((dtype, self.out), self.reading, tile, how);
            return program.library(WORDS).item(JOB).build();
        }
        let vectors = self.vectors();
        let mut tensors = Vec::new();
        for (name, vector) in ["a", "b"].into_iter().zip(vectors) {
            if !vector {
                tensors.push(Tensor { name, dtype });
            }
        }
        tensors.push(Tensor { name: "out", dtype: self.out });
        let mut program = Program::new(&tensors).library(WORDS).item(JOB);
        for (name, vector) in ["a", "b"].into_iter().zip(vectors) {
            if vector {
                program = program.array(name, vector_of(dtype, FOUR as usize));
            }
            if self.method != Method::Block {
                program = program.item(&pick(name, dtype, vector));
            }
        }
        let register = dtype.register();
        let program = match self.method {
            Method::Block => program.library(BLOCK).item(&parts(dtype)).body("block(i);"),
            Method::Tile { side } => {
                let items = format!("alias Q = vec4<{register}>;\n{}", self.tile(dtype, side));
                program.item(&items).group_body(GROUP, "tile(g, local);")
            }
            Method::Few { rows, .. } => {
                let kernel = if self.reading[1].along_k { "few_dot" } else { "few_columns" };
                let items = format!("alias Q = vec4<{register}>;\n{}", few(dtype, rows, kernel));
                program.item(&items).group_body(GROUP, &format!("{kernel}(g, local);"))
            }
            Method::Units { .. } => program,
        };
        program.build()
    }

    /// `tile.wgsl` for tiles with a given side.
    fn tile(&self, dtype: Dtype, side: u32) -> String {
        let [a, b] = self.reading.map(|reading| reading.along_k);
        let (depth, halves, sides) = (depth(side), side / 64, sides(dtype));
        let (pitch, across) = (depth / 4 + 1, side / 4);
        let size = |along_k: bool| if along_k { side * pitch } else { GROUP };
        let mut text = format!(
            "const SIDE: u32 = {side}u;\nconst DEPTH: u32 = {depth}u;\n\
             const SIZE_A: u32 = {}u;\nconst SIZE_B: u32 = {}u;\nconst APART: u32 = {}u;\n\
             var<workgroup> tile_a: array<Q, {}>;\nvar<workgroup> tile_b: array<Q, {}>;\n",
            size(a),
            size(b),
            if b { 8 } else { 1 },
            sides * size(a),
            sides * size(b),
        );
        let quarters = depth / 4;
        for (name, along_k) in [("a", a), ("b", b)] {
            let (place, step, room, put) = match along_k {
                true => (
                    format!(
                        "let r = local / {quarters}u;\nlet kk = k + 4u * (local % {quarters}u);"
                    ),
                    "steps.y",
                    "end - kk",
                    format!("(local / {quarters}u) * {pitch}u + local % {quarters}u"),
                ),
                false => (
                    format!("let r = 4u * (local % {across}u);\nlet kk = k + local / {across}u;"),
                    "steps.x",
                    "rows - r",
                    "local".to_owned(),
                ),
            };
            _ = write!(
                text,
                "fn fetch_{name}(at: u32, steps: vec2<u32>, rows: u32, local: u32, k: u32, end: u32) -> Q {{\n{place}\n\
                 if (r >= rows || kk >= end) {{ return Q(); }}\n\
                 return pick_{name}(at + r * steps.x + kk * steps.y, {step}, {room});\n}}\n\
                 fn put_{name}(local: u32) -> u32 {{ return {put}; }}\n"
            );
        }
        // Rows of a warp and of its lanes, and likewise their columns.
        let (h, p) = (halves, pitch);
        let function = |name: &str, value: String| {
            format!("fn {name}(warp: u32, lane: u32) -> u32 {{ return {value}; }}\n")
        };
        text += &function(
            "first_a",
            if a {
                format!("({}u * warp + lane) * {p}u", 16 * h)
            } else {
                format!("{}u * warp + lane", 4 * h)
            },
        );
        text += &function(
            "first_b",
            if b {
                format!("({}u * warp + lane) * {p}u", 32 * h)
            } else {
                format!("{}u * warp + lane", 8 * h)
            },
        );
        text +=
            &function("row_of", format!("{}u * warp + {}u * lane", 16 * h, if a { 1 } else { 4 }));
        text += &function(
            "column_of",
            format!("{}u * warp + {}u * lane", 32 * h, if b { 1 } else { 4 }),
        );
        let mut declare = String::new();
        let mut store = String::new();
        for i in 0..4 * h {
            let row = if a { 4 * i } else { i % 4 + 16 * (i / 4) };
            _ = write!(store, "if ({row}u < rows) {{\nlet at = to + {row}u * word(12u);\n");
            for half in 0..h {
                _ = writeln!(declare, "var s{i}_{half} = Q();");
                _ = writeln!(store, "store_row(at, {}u, columns, s{i}_{half});", 32 * half);
            }
            store += "}\n";
        }
        let turn = if sides == 2 { "side = 1u - side;" } else { "workgroupBarrier();" };
        text + &TILE
            .replace("DECLARE", &declare)
            .replace("ACCUMULATE", &accumulate(dtype, (side, a, b)))
            .replace("TURN", turn)
            .replace("STORE", &store)
    }
}

/// `s + a * b`. Floats may be rounded only once, because GPUs compute it in one instruction.
fn fused(dtype: Dtype, s: &str, a: &str, b: &str) -> String {
    match dtype.is_real() {
        true => format!("{s} = fma({a}, {b}, {s});\n"),
        false => format!("{s} = {s} + {a} * {b};\n"),
    }
}

/// The multiply-adds of DEPTH elements of k.
fn accumulate(dtype: Dtype, (side, a, b): (u32, bool, bool)) -> String {
    let (depth, h) = (depth(side), side / 64);
    let (pitch, across) = (depth / 4 + 1, side / 4);
    let mut text = String::new();
    for q in 0..depth / 4 {
        text += "{\n";
        // Vectors along k hold 4 elements of k.
        for i in 0..4 * h {
            if a {
                _ = writeln!(text, "let a{i} = tile_a[from_a + {}u];", 4 * i * pitch + q);
            }
            if b {
                _ = writeln!(text, "let b{i} = tile_b[from_b + {}u];", 8 * i * pitch + q);
            }
        }
        for (kk, part) in PARTS.into_iter().enumerate() {
            let step = (4 * q + kk as u32) * across;
            text += "{\n";
            for half in 0..h {
                if !a {
                    _ = writeln!(text, "let c{half} = tile_a[from_a + {}u];", step + 4 * half);
                }
                match b {
                    true => {
                        let four = (4 * half..4 * half + 4).map(|j| format!("b{j}.{part}"));
                        let four = four.collect::<Vec<_>>().join(", ");
                        _ = writeln!(text, "let d{half} = Q({four});");
                    }
                    false => {
                        _ = writeln!(text, "let d{half} = tile_b[from_b + {}u];", step + 8 * half);
                    }
                }
            }
            for i in 0..4 * h {
                let value = match a {
                    true => format!("Q(a{i}.{part})"),
                    false => format!("Q(c{}.{})", i / 4, PARTS[i as usize % 4]),
                };
                for half in 0..h {
                    text += &fused(dtype, &format!("s{i}_{half}"), &value, &format!("d{half}"));
                }
            }
            text += "}\n";
        }
        text += "}\n";
    }
    text
}

/// `few.wgsl` for a given number of rows.
fn few(dtype: Dtype, rows: u32, kernel: &str) -> String {
    let register = dtype.register();
    let dot = kernel == "few_dot";
    let mut declare = String::new();
    let (mut step, mut meet) = (String::new(), String::new());
    for r in 0..rows {
        _ = writeln!(declare, "var s{r} = Q();");
        _ = writeln!(declare, "let a{r} = a_at + min({r}u, rows - 1u) * word(8u);");
        let sum = format!("s{r}");
        step += &match dot {
            true => {
                let a = format!("pick_a(a{r} + k * word(9u), word(9u), room)");
                fused(dtype, &sum, &a, "b")
            }
            false => fused(dtype, &sum, &format!("Q(load_a(a{r} + k * word(9u)))"), "b"),
        };
        let (shared, first, lanes, apart) = match dot {
            true => (format!("(s{r}.x + s{r}.y) + (s{r}.z + s{r}.w)"), "local % 32u == 0u", 32, 1),
            false => (sum, "local < 32u", 8, 32),
        };
        let (enough, store) = match dot {
            true => ("here", format!("store_out(to + {r}u * word(12u), total);")),
            false => ("room != 0u", format!("store_columns(to + {r}u * word(12u), room, total);")),
        };
        _ = write!(
            meet,
            "sums[local] = {shared};\nworkgroupBarrier();\n\
             if ({first} && {enough} && {r}u < rows) {{\nvar total = sums[local];\n\
             for (var l = 1u; l < {lanes}u; l++) {{ total = total + sums[local + {apart}u * l]; }}\n\
             {store}\n}}\nworkgroupBarrier();\n"
        );
    }
    let (shared, meet_mark, step_mark) = match dot {
        true => (register, "MEET_DOT", "DOT"),
        false => ("Q", "MEET_COLUMNS", "COLUMNS"),
    };
    let text =
        format!("const ROWS: u32 = {rows}u;\nvar<workgroup> sums: array<{shared}, {GROUP}>;\n");
    // The kernel of the other direction is omitted.
    let mut library = crate::shader::library::Library::default();
    library.add(FEW);
    let used = library.used_by(&format!("{kernel} {meet}"));
    text + &used
        .replace(meet_mark, &meet)
        .replace("DECLARE", &declare)
        .replace(&format!("    {step_mark}\n"), &step)
}

/// The vectors of a dtype in `block.wgsl`.
fn parts(dtype: Dtype) -> String {
    let register = dtype.register();
    if dtype == Dtype::Complex64 {
        let mut text = "struct Parts { re: vec4<f32>, im: vec4<f32> }\n\
             fn gathered(x: vec2<f32>, y: vec2<f32>, z: vec2<f32>, w: vec2<f32>) -> Parts {\n\
             return Parts(vec4<f32>(x.x, y.x, z.x, w.x), vec4<f32>(x.y, y.y, z.y, w.y));\n}\n\
             fn added(s: Parts, a: vec2<f32>, b: Parts) -> Parts {\n\
             return Parts(s.re + (a.x * b.re - a.y * b.im), s.im + (a.x * b.im + a.y * b.re));\n}\n"
            .to_owned();
        for (i, part) in PARTS.into_iter().enumerate() {
            text += &format!(
                "fn part{i}(s: Parts) -> vec2<f32> {{ return vec2<f32>(s.re.{part}, s.im.{part}); }}\n"
            );
        }
        return text;
    }
    let mut text = format!(
        "alias Parts = vec4<{register}>;\n\
         fn gathered(x: {register}, y: {register}, z: {register}, w: {register}) -> Parts {{\n\
         return Parts(x, y, z, w);\n}}\n\
         fn added(s: Parts, a: {register}, b: Parts) -> Parts {{ return s + a * b; }}\n"
    );
    for (i, part) in PARTS.into_iter().enumerate() {
        text += &format!("fn part{i}(s: Parts) -> {register} {{ return s.{part}; }}\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hal::Units;
    use crate::ops::matmul::choice::TILES;
    use crate::shader::{compile, halves, narrow, patch, shared};

    #[test]
    fn products_by_units_compile() {
        for (dtype, how, tile) in [
            (Dtype::Float16, Units::Native, TILES[0][0]),
            (Dtype::Float16, Units::Native, TILES[1][0]),
            (Dtype::Float16, Units::Native, TILES[0][1]),
            (Dtype::Bfloat16, Units::Native, TILES[0][0]),
            (Dtype::Float16, Units::Emulated, TILES[0][1]),
            (Dtype::Bfloat16, Units::Emulated, TILES[1][1]),
        ] {
            for along_k in [[true, true], [true, false], [false, true], [false, false]] {
                let method = Method::Units { tile, how };
                let reading = along_k.map(|along_k| Reading { along_k, vector: true });
                let source = Variant { method, reading, out: dtype }.source(dtype);
                let module = compile::compile(&source.text).unwrap_or_else(|why| panic!("{why}"));
                let module = halves::made(&shared::marked(&module).unwrap()).unwrap();
                patch::patch(&module, &Default::default()).unwrap();
            }
        }
    }

    #[test]
    fn every_variant_compiles() {
        let methods = [
            Method::Tile { side: 128 },
            Method::Tile { side: 64 },
            Method::Few { rows: 1, transposed: false },
            Method::Few { rows: 8, transposed: true },
            Method::Block,
        ];
        for dtype in crate::dtype::ALL {
            if dtype == Dtype::Bool {
                continue;
            }
            for (i, method) in methods.into_iter().enumerate() {
                if dtype == Dtype::Complex64 && method != Method::Block {
                    continue;
                }
                for along_k in [[true, true], [true, false], [false, true], [false, false]] {
                    let vector = i != 1;
                    let reading = along_k.map(|along_k| Reading { along_k, vector });
                    let source = Variant { method, reading, out: dtype }.source(dtype);
                    let module = compile::compile(&source.text).unwrap();
                    let module = narrow::narrow(&module, &source.bytes).unwrap();
                    patch::patch(&module, &Default::default()).unwrap();
                }
            }
        }
    }
}
