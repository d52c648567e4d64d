//! The kernels of ATTENTION. Sums of a row are variables of their own, which registers hold, so their text is written for
//! each size of values.

use crate::dtype::Dtype;
use crate::functions;
use crate::shader::source::Source;
use crate::shader::{Program, Tensor};
use std::fmt::Write as _;

const ATTENTION: &str = include_str!("../../../../kernels/native/attention.wgsl");
const JOIN: &str = include_str!("../../../../kernels/native/attention_join.wgsl");

/// Keys at a time.
pub const KEYS: u32 = 32;
/// Bytes of workgroup memory of the larger block.
pub const ROOM: u32 = 4 * (64 * 33 + 32 * 33 + 64 * 8 + 64 + 3);

/// Kinds of masks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mask {
    None,
    Bools,
    Numbers,
}

/// Parts of an attention that differ by request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attention {
    pub dtype: Dtype,
    pub mask: Mask,
    pub sinks: bool,
    pub lengths: bool,
    pub causal: bool,
    /// Sizes of a query and of a value.
    pub sizes: [u32; 2],
}

/// A kernel for blocks of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Block {
    /// Rows of an invocation: 4 or 1.
    pub lines: u32,
    /// Only a part of the keys is seen.
    pub split: bool,
}

impl Block {
    /// Rows of a block.
    pub fn rows(self) -> u32 {
        if self.lines == 1 { 8 } else { 64 }
    }

    /// Invocations of its workgroup.
    pub fn size(self) -> u32 {
        8 * self.rows() / self.lines
    }
}

/// The words behind the first: sizes and the scale; offset and strides of each tensor.
const WORDS: [(&str, u32); 16] = [
    ("HEADS", 1),
    ("GROUP", 2),
    ("QUERIES", 3),
    ("KEYS", 4),
    ("SPAN", 5),
    ("BLOCKS", 6),
    ("SPLITS", 7),
    ("SHARE", 8),
    ("SCALE", 9),
    ("Q", 10),
    ("K", 15),
    ("V", 20),
    ("OUT", 25),
    ("MASK", 30),
    ("LSE", 35),
    ("SINK", 40),
];
/// Where the lengths are.
const LENGTHS: u32 = 44;

impl Attention {
    fn tensors(self, joins: bool) -> Vec<Tensor> {
        let mask = match self.mask {
            Mask::Bools => Dtype::Bool,
            _ => self.dtype,
        };
        let mut tensors = vec![("q", self.dtype), ("k", self.dtype), ("v", self.dtype)];
        tensors.extend((self.mask != Mask::None).then_some(("mask", mask)));
        tensors.extend(self.sinks.then_some(("sinks", self.dtype)));
        tensors.extend(self.lengths.then_some(("lengths", Dtype::Int32)));
        tensors.extend([("out", self.dtype), ("lse", Dtype::Float32)]);
        if joins {
            // Those of rows are the only others that joining reads.
            tensors.retain(|(name, _)| ["v", "sinks", "out", "lse"].contains(name));
        }
        tensors.into_iter().map(|(name, dtype)| Tensor { name, dtype }).collect()
    }

    fn items(self) -> String {
        let mut text = String::new();
        for (name, at) in WORDS {
            _ = writeln!(text, "const {name}: u32 = {at}u;");
        }
        let [head, value] = self.sizes;
        _ = writeln!(
            text,
            "const HEAD_SIZE: u32 = {head}u;\nconst VALUE_SIZE: u32 = {value}u;\n\
             const CAUSAL: bool = {};\nconst SINKS: bool = {};",
            self.causal, self.sinks
        );
        let sink = match self.sinks {
            true => "load_sinks(word(SINK) + b * word(SINK + 1u) + h * word(SINK + 2u))",
            false => "0.0",
        };
        _ = writeln!(text, "fn sink_at(b: u32, h: u32) -> f32 {{ return {sink}; }}");
        text
    }

    fn program(self, joins: bool) -> Program<'static> {
        let mut program = Program::new(&self.tensors(joins));
        for text in functions::float32() {
            program = program.library(text);
        }
        program.item(&self.items())
    }

    /// The kernel of a block.
    pub fn source(self, block: Block) -> Source {
        let program = if block.split {
            self.program(false).array("partial", "f32")
        } else {
            self.program(false)
        };
        let keep = if block.split { "partial[at + e] = s;" } else { "" };
        let Block { lines, split } = block;
        let (rows, size) = (block.rows(), block.size());
        let lengths = match self.lengths {
            true => format!("load_lengths(word({LENGTHS}u) + b * word({LENGTHS}u + 1u))"),
            false => "i32(word(KEYS))".to_owned(),
        };
        let mask = match self.mask {
            Mask::None => "score",
            Mask::Bools => "select(-inf32(), score, load_mask(at) != 0u)",
            Mask::Numbers => "lowered(score + load_mask(at))",
        };
        let items = format!(
            "const BLOCK: u32 = {rows}u;\nconst LINES: u32 = {lines}u;\nconst SIZE: u32 = {size}u;\nconst SPLIT: bool = {split};\n\
             fn lengths_at(b: u32) -> i32 {{ return {lengths}; }}\n\
             fn lowered(s: f32) -> f32 {{ return select(s, -inf32(), s <= -bitcast<f32>(0x7f7fffffu)); }}\n\
             fn with_mask(score: f32, at: u32) -> f32 {{ return {mask}; }}\n\
             fn keep_one(at: u32, e: u32, s: f32) {{ {keep} }}\n{}{}",
            variables(),
            self.sums(lines)
        );
        program.item(&items).library(ATTENTION).group_body(size, "attend(g, local);").build()
    }

    /// The kernel that joins parts.
    pub fn join(self) -> Source {
        let program = self.program(true).array("partial", "f32").library(ATTENTION).library(JOIN);
        program.body("join(i);").build()
    }

    /// The sums `o{part}_{line}`, each of 4 elements of a row, every eighth of 32.
    fn sums(self, lines: u32) -> String {
        let value = self.sizes[1];
        let parts = value.div_ceil(32);
        let all = || (0..parts).flat_map(|part| (0..lines).map(move |line| (part, line)));
        let mut text = String::new();
        for (part, line) in all() {
            _ = writeln!(text, "var<private> o{part}_{line}: vec4<f32>;");
        }
        text += "fn scale_sums(factors: vec4<f32>) {\n";
        for (part, line) in all() {
            _ = writeln!(text, "o{part}_{line} *= factors[{line}];");
        }
        text += "}\nfn add_values(key: u32, end: u32, x: u32, y: u32, local: u32) {\n";
        for part in 0..parts {
            _ = writeln!(
                text,
                "workgroupBarrier();\nload_values(key, end, {}u, local);\nworkgroupBarrier();\n\
                 for (var j = 0u; j < 32u; j++) {{\nlet b = value_parts(j, x);",
                part * 32
            );
            for line in 0..lines {
                _ = writeln!(text, "o{part}_{line} += room_a[(y + {line}u) * PITCH + j] * b;");
            }
            text += "}\n";
        }
        text += "}\nfn add_whole(key: u32, x: u32, local: u32) {\n";
        for part in 0..parts {
            _ = writeln!(
                text,
                "workgroupBarrier();\nload_values(key, word(KEYS), {}u, local);\nworkgroupBarrier();\n\
                 for (var j = 0u; j < 32u; j++) {{\nlet b = value_parts(j, x);",
                part * 32
            );
            for line in 0..lines {
                _ = writeln!(text, "if (total[{line}] == 0.0) {{ o{part}_{line} += b; }}");
            }
            text += "}\n";
        }
        text += "}\n";
        // Each element of a line, where it is, and what becomes of it.
        let mut each = |head: &str, what: &dyn Fn(&str, &str) -> String| {
            _ = writeln!(text, "{head} {{");
            for line in 0..lines {
                _ = writeln!(text, "if (i == {line}u) {{");
                for part in 0..parts {
                    for (c, of) in ["x", "y", "z", "w"].into_iter().enumerate() {
                        let e = format!("(x + {}u)", 32 * part + 8 * c as u32);
                        let stored = what(&e, &format!("o{part}_{line}.{of}"));
                        _ = writeln!(text, "if ({e} < VALUE_SIZE) {{ {stored} }}");
                    }
                }
                text += "}\n";
            }
            text += "}\n";
        };
        each("fn store_sums(at: u32, i: u32, x: u32, by: f32)", &|e, sum| {
            format!("store_out(at + {e} * word(OUT + 4u), {sum} / by);")
        });
        each("fn keep_sums(at: u32, i: u32, x: u32)", &|e, sum| {
            format!("keep_one(at, {e}, {sum});")
        });
        text
    }
}

/// The variables of `attention.wgsl`, which are no functions.
fn variables() -> String {
    let lines = ATTENTION.lines().filter(|line| line.starts_with("var<"));
    lines.map(|line| format!("{line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shader::{compile, narrow};

    fn compiles(source: &Source) {
        let module = compile::compile(&source.text).unwrap_or_else(|why| panic!("{why}"));
        narrow::narrow(&module, &source.bytes).unwrap();
    }

    #[test]
    fn attention_compiles_for_all_forms() {
        for (i, mask) in [Mask::None, Mask::Bools, Mask::Numbers].into_iter().enumerate() {
            for (k, dtype) in
                [Dtype::Float32, Dtype::Float16, Dtype::Bfloat16].into_iter().enumerate()
            {
                let attention = Attention {
                    dtype,
                    mask,
                    sinks: i == 1,
                    lengths: k == 1,
                    causal: i != k,
                    sizes: [40, 72],
                };
                for lines in [1, 4] {
                    compiles(&attention.source(Block { lines, split: lines == 1 && i == 0 }));
                }
                compiles(&attention.join());
            }
        }
    }
}
