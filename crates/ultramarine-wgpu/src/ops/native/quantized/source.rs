//! The kernels of QUANTIZED_MATMUL.
//!
//! The words after the first are, by the names of constants: the sizes; the offset and the matrix, row and column
//! strides of each tensor; the offset, stride and number of the indices.

use super::Format;
use crate::dtype::Dtype;
use crate::ops::native::CHOSEN;
use crate::ops::native::rows::{TEAM, team_items};
use crate::shader::source::Source;
use crate::shader::{Program, Tensor};
use std::fmt::Write as _;

const QUANTIZED: &str = include_str!("../../../../kernels/native/quantized.wgsl");
const TILES: &str = include_str!("../../../../kernels/native/quantized_tiles.wgsl");

/// Rows and columns of a tile.
pub const TILE: u32 = 64;
/// Invocations of a workgroup.
pub const SIZE: u32 = 256;
/// Bytes of workgroup memory of tiles.
pub const ROOM: u32 = 4 * (64 * 33 + 32 * 65);

/// The family of a kernel of QUANTIZED_MATMUL, by what computes a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A team of `members` invocations computes `rows` rows of a column. Rows of words are columns of
    /// the factor.
    Dots { rows: u32, members: u32 },
    /// An invocation computes `rows` rows of a chunk of columns. Rows of words are rows of the
    /// factor.
    Sums { rows: u32 },
    /// A workgroup computes a tile.
    Tiles,
}

/// The properties of a request that are constants in its kernels.
#[derive(Clone, Copy, Debug)]
pub struct Product {
    pub format: Format,
    pub dtype: Dtype,
    pub transpose: bool,
    pub global: bool,
    pub lhs: bool,
    pub rhs: bool,
}

/// The indices of each tensor's words.
const WORDS: &str = "const M: u32 = 1u;\nconst N: u32 = 2u;\nconst K: u32 = 3u;\nconst BLOCKS: u32 = 4u;\nconst BELOW: u32 = 5u;\n\
    const X: u32 = 6u;\nconst PACKED: u32 = 10u;\nconst SCALES: u32 = 14u;\nconst BIASES: u32 = 18u;\nconst OUT: u32 = 22u;\n\
    const GLOBAL: u32 = 26u;\nconst LHS: u32 = 28u;\nconst RHS: u32 = 31u;\n\
    fn start(t: u32, matrix: u32) -> u32 { return word(t) + matrix * word(t + 1u); }\n";

impl Product {
    /// The kernel of a kind.
    pub fn source(self, kind: Kind) -> Source {
        let Self { format, dtype, .. } = self;
        let mut tensors =
            vec![("x", dtype), ("packed", Dtype::Uint32), ("scales", format.scales(dtype))];
        tensors.extend(format.is_affine().then_some(("biases", dtype)));
        tensors.extend(self.global.then_some(("global", Dtype::Float32)));
        tensors.extend(self.lhs.then_some(("lhs", Dtype::Int32)));
        tensors.extend(self.rhs.then_some(("rhs", Dtype::Int32)));
        tensors.push(("out", dtype));
        let tensors: Vec<Tensor> =
            tensors.into_iter().map(|(name, dtype)| Tensor { name, dtype }).collect();
        let index = |there: bool, name: &str, at: &str| match there {
            true => {
                format!("chosen(load_{name}(word({at}) + item * word({at} + 1u)), word({at} + 2u))")
            }
            false => "item".to_owned(),
        };
        let global = match self.global {
            true => "R(load_global(word(GLOBAL) + matrix * word(GLOBAL + 1u))) / R(2688)",
            false => "R(1)",
        };
        let items = format!(
            "{}\n{WORDS}fn first_of(item: u32) -> u32 {{ return {}; }}\nfn second_of(item: u32) -> u32 {{ return {}; }}\n\
             fn global_of(matrix: u32) -> R {{ return {global}; }}\n",
            format.items(dtype),
            index(self.lhs, "lhs", "LHS"),
            index(self.rhs, "rhs", "RHS"),
        );
        let program = Program::new(&tensors).library(QUANTIZED).library(CHOSEN).item(&items);
        match kind {
            Kind::Dots { rows, members: 1 } => program
                .item(&team_items(1, 1))
                .library(TEAM)
                .item(&self.dots(rows))
                .body("dots(i, 0u, true, local);")
                .build(),
            Kind::Dots { rows, members } => program
                .item(&team_items(members, SIZE))
                .library(TEAM)
                .item(&self.dots(rows))
                .group_body(
                    SIZE,
                    &format!(
                        "let team = g * {}u + local / TEAM;\n\
                         dots(min(team, word(BELOW) - 1u), local % TEAM, team < word(BELOW), local);",
                        SIZE / members
                    ),
                )
                .build(),
            Kind::Sums { rows } => program.body(&self.sums(rows)).build(),
            Kind::Tiles => program
                .library(TILES)
                .item(&self.tile_items())
                .group_body(SIZE, "tile(g, local);")
                .build(),
        }
    }

    /// Sums of products along rows of words.
    fn dots(self, rows: u32) -> String {
        let format = self.format;
        let mut text = format!(
            "fn dots(team: u32, lane: u32, live: bool, local: u32) {{\n\
             let column = team % word(N);\nlet rest = team / word(N);\nlet item = rest / word(BLOCKS);\n\
             let row = (rest - item * word(BLOCKS)) * {rows}u;\n\
             let matrix = second_of(item);\nlet step = word(X + 3u);\n\
             let packed_row = start(PACKED, matrix) + column * word(PACKED + 2u);\n\
             let scale_row = start(SCALES, matrix) + column * word(SCALES + 2u);\n\
             let bias_row = start(BIASES, matrix) + column * word(BIASES + 2u);\n\
             let x = start(X, first_of(item));\n"
        );
        for r in 0..rows {
            _ = writeln!(
                text,
                "let x{r} = x + min(row + {r}u, word(M) - 1u) * word(X + 2u);\nvar s{r} = R();"
            );
        }
        _ = writeln!(
            text,
            "for (var c = lane; c < word(K) / {}u; c += TEAM) {{\nlet g = c / {}u;\n\
             let at = packed_row + c * {}u * word(PACKED + 3u);\nlet along = c * {}u * step;\n\
             let scale = scale_of(scale_row + g * word(SCALES + 3u));\nlet bias = bias_of(bias_row + g * word(BIASES + 3u));",
            format.chunk(),
            format.group / format.chunk(),
            format.words(),
            format.chunk()
        );
        text += &format.unpack("at", "word(PACKED + 3u)");
        for r in 0..rows {
            _ = writeln!(text, "var p{r} = R();\nvar t{r} = R();");
            for e in 0..format.chunk() {
                _ = writeln!(
                    text,
                    "let v{r}_{e} = R(load_x(x{r} + along + {e}u * step));\np{r} += q{e} * v{r}_{e};"
                );
                if format.is_affine() {
                    _ = writeln!(text, "t{r} += v{r}_{e};");
                }
            }
            let bias = if format.is_affine() { format!(" + bias * t{r}") } else { String::new() };
            _ = writeln!(text, "s{r} += scale * p{r}{bias};");
        }
        text += "}\nlet to = start(OUT, item) + column * word(OUT + 3u);\n";
        for r in 0..rows {
            _ = writeln!(
                text,
                "s{r} = team_sum(s{r}, local) * global_of(matrix);\n\
                 if (live && lane == 0u && row + {r}u < word(M)) {{ store_out(to + (row + {r}u) * word(OUT + 2u), s{r}); }}"
            );
        }
        text + "}\n"
    }

    /// Sums of rows of words, each multiplied by an element of x.
    fn sums(self, rows: u32) -> String {
        let format = self.format;
        let mut text = format!(
            "let chunks = word(N) / {}u;\nlet c = i % chunks;\nlet rest = i / chunks;\n\
             let item = rest / word(BLOCKS);\nlet row = (rest - item * word(BLOCKS)) * {rows}u;\nlet g = c / {}u;\n\
             let matrix = second_of(item);\nlet x = start(X, first_of(item));\n\
             let packed_at = start(PACKED, matrix) + c * {}u * word(PACKED + 3u);\n\
             let scale_at = start(SCALES, matrix) + g * word(SCALES + 3u);\n\
             let bias_at = start(BIASES, matrix) + g * word(BIASES + 3u);\n",
            format.chunk(),
            format.group / format.chunk(),
            format.words()
        );
        for r in 0..rows {
            _ = writeln!(text, "let x{r} = x + min(row + {r}u, word(M) - 1u) * word(X + 2u);");
            for e in 0..format.chunk() {
                _ = writeln!(text, "var s{r}_{e} = R();");
            }
        }
        text += "for (var k = 0u; k < word(K); k++) {\nlet at = packed_at + k * word(PACKED + 2u);\n\
             let scale = scale_of(scale_at + k * word(SCALES + 2u));\nlet bias = bias_of(bias_at + k * word(BIASES + 2u));\n";
        text += &format.unpack("at", "word(PACKED + 3u)");
        for r in 0..rows {
            _ = writeln!(text, "let v{r} = R(load_x(x{r} + k * word(X + 3u)));");
        }
        for e in 0..format.chunk() {
            let bias = if format.is_affine() { " + bias" } else { "" };
            _ = writeln!(text, "let y{e} = q{e} * scale{bias};");
            for r in 0..rows {
                _ = writeln!(text, "s{r}_{e} += v{r} * y{e};");
            }
        }
        _ = writeln!(
            text,
            "}}\nlet to = start(OUT, item) + c * {}u * word(OUT + 3u);\nlet global = global_of(matrix);",
            format.chunk()
        );
        for r in 0..rows {
            _ = writeln!(
                text,
                "if (row + {r}u < word(M)) {{\nlet row_at = to + (row + {r}u) * word(OUT + 2u);"
            );
            for e in 0..format.chunk() {
                _ = writeln!(text, "store_out(row_at + {e}u * word(OUT + 3u), s{r}_{e} * global);");
            }
            text += "}\n";
        }
        text
    }

    /// The code that loads a tile's part of the second factor into workgroup memory.
    fn tile_items(self) -> String {
        let format = self.format;
        let chunk = format.chunk();
        // In chunks: those parts of a row of words that belong to a tile.
        let (rows, chunks) = if self.transpose { (TILE, 32 / chunk) } else { (32, TILE / chunk) };
        let (row, line, limits) = match self.transpose {
            true => ("column + r", format!("first + c * {chunk}u"), ["word(N)", "word(K)"]),
            false => ("first + r", format!("column + c * {chunk}u"), ["word(K)", "word(N)"]),
        };
        let place = |e: u32| match self.transpose {
            true => format!("(c * {chunk}u + {e}u) * 65u + r"),
            false => format!("r * 65u + c * {chunk}u + {e}u"),
        };
        let mut text = format!(
            "fn load_tile(matrix: u32, column: u32, first: u32, local: u32) {{\n\
             let step = word(PACKED + 3u);\n\
             for (var l = local; l < {}u; l += {SIZE}u) {{\n\
             let r = l / {chunks}u;\nlet c = l - r * {chunks}u;\nlet row = {row};\nlet along = {line};\n\
             if (row < {} && along < {}) {{\n\
             let at = start(PACKED, matrix) + row * word(PACKED + 2u) + along / {chunk}u * {}u * step;\n\
             let g = along / {}u;\n\
             let scale = scale_of(start(SCALES, matrix) + row * word(SCALES + 2u) + g * word(SCALES + 3u));\n\
             let bias = bias_of(start(BIASES, matrix) + row * word(BIASES + 2u) + g * word(BIASES + 3u));\n{}",
            rows * chunks,
            limits[0],
            limits[1],
            format.words(),
            format.group,
            format.unpack("at", "step")
        );
        let bias = if format.is_affine() { " + bias" } else { "" };
        for e in 0..chunk {
            _ = writeln!(text, "room_b[{}] = q{e} * scale{bias};", place(e));
        }
        text += "} else {\n";
        for e in 0..chunk {
            _ = writeln!(text, "room_b[{}] = R();", place(e));
        }
        text + "}\n}\n}\nvar<workgroup> room_a: array<R, 2112>;\nvar<workgroup> room_b: array<R, 2080>;\n"
    }
}

#[cfg(test)]
mod tests {
    use super::super::dequantize;
    use super::*;
    use crate::shader::{compile, narrow};
    use ultramarine_abi::schema::quantization;

    fn compiles(source: &Source) {
        let module = compile::compile(&source.text).unwrap_or_else(|why| panic!("{why}"));
        narrow::narrow(&module, &source.bytes).unwrap();
    }

    #[test]
    fn products_compile_for_all_formats() {
        let affine = [1, 2, 3, 4, 5, 6, 8].map(|bits| (quantization::AFFINE, bits, 64));
        let others = [
            (quantization::MXFP4, 4, 32),
            (quantization::MXFP8, 8, 32),
            (quantization::NVFP4, 4, 16),
        ];
        for (i, (mode, bits, group)) in affine.into_iter().chain(others).enumerate() {
            let dtype = [Dtype::Float32, Dtype::Bfloat16, Dtype::Float16][i % 3];
            let biases = mode == quantization::AFFINE;
            let format = Format::of(mode, bits, group, biases, dtype).unwrap();
            compiles(&dequantize::source(format, dtype, !biases));
            for transpose in [false, true] {
                let (global, lhs, rhs) = (!biases, i % 2 == 0, i % 3 == 0);
                let product = Product { format, dtype, transpose, global, lhs, rhs };
                compiles(&product.source(Kind::Dots { rows: 2, members: 1 }));
                compiles(&product.source(Kind::Dots { rows: 4, members: 32 }));
                compiles(&product.source(Kind::Sums { rows: 2 }));
                compiles(&product.source(Kind::Tiles));
            }
        }
    }
}
