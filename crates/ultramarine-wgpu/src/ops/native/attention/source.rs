//! The kernels of ATTENTION. The sums of a row are separate variables, so that they stay in registers. So the source is
//! generated for each size of values.

use crate::dtype::Dtype;
use crate::functions;
use crate::hal::Units;
use crate::shader::source::Source;
use crate::shader::{Program, Tensor};
use std::fmt::Write as _;

const ATTENTION: &str = include_str!("../../../../kernels/native/attention.wgsl");
const JOIN: &str = include_str!("../../../../kernels/native/attention_join.wgsl");

/// Keys per step.
pub const KEYS: u32 = 32;
/// Bytes of workgroup memory of the larger block.
pub const ROOM: u32 = 4 * (64 * 33 + 32 * 33 + 64 * 8 + 64 + 3);

/// The properties of a request that are compiled into the kernel's source. Properties that only affect branches are not
/// included, because compilation is slow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attention {
    pub dtype: Dtype,
    /// True if a mask, if present, consists of bools.
    pub bools: bool,
    /// Size of a value.
    pub value_size: u32,
}

/// The bits of the word FLAGS.
pub mod flag {
    pub const CAUSAL: u32 = 1;
    pub const MASKED: u32 = 2;
    pub const SINKS: u32 = 4;
    pub const LENGTHS: u32 = 8;
    pub const GUESSED: u32 = 16;
}

/// The variant of the kernel for a block of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Block {
    /// Rows per invocation: 4 or 1.
    pub lines: u32,
    /// True if the kernel processes only a part of the keys.
    pub split: bool,
    /// How matrix units compute the products of 64 rows, if they are used.
    pub units: Option<Units>,
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

/// The words after the first: sizes, the scale, flags, and the offset and strides of each tensor.
const WORDS: [(&str, u32); 20] = [
    ("HEADS", 1),
    ("GROUP", 2),
    ("QUERIES", 3),
    ("KEYS", 4),
    ("SPAN", 5),
    ("BLOCKS", 6),
    ("SPLITS", 7),
    ("SHARE", 8),
    ("SCALE", 9),
    ("FLAGS", 10),
    ("HEAD_SIZE", 11),
    ("VALUE_SIZE", 12),
    ("Q", 13),
    ("K", 18),
    ("V", 23),
    ("OUT", 28),
    ("MASK", 33),
    ("LSE", 38),
    ("SINK", 43),
    ("LENGTH", 47),
];

impl Attention {
    /// A program with the required tensors.
    pub(super) fn program(self, wanted: impl Fn(&str) -> bool) -> Program<'static> {
        let mask = if self.bools { Dtype::Bool } else { self.dtype };
        let tensors = [
            ("q", self.dtype),
            ("k", self.dtype),
            ("v", self.dtype),
            ("mask", mask),
            ("sinks", self.dtype),
            ("lengths", Dtype::Int32),
            ("out", self.dtype),
            ("lse", Dtype::Float32),
        ];
        let tensors = tensors.into_iter().filter(|(name, _)| wanted(name));
        let tensors: Vec<Tensor> = tensors.map(|(name, dtype)| Tensor { name, dtype }).collect();
        let mut program = Program::new(&tensors);
        for text in functions::float32() {
            program = program.library(text);
        }
        let flags = [
            ("CAUSAL", flag::CAUSAL),
            ("MASKED", flag::MASKED),
            ("SINKS", flag::SINKS),
            ("LENGTHS", flag::LENGTHS),
            ("GUESSED", flag::GUESSED),
        ];
        let mut items = String::new();
        for (name, number) in WORDS.into_iter().chain(flags) {
            _ = writeln!(items, "const {name}: u32 = {number}u;");
        }
        program.item(&items)
    }

    /// The kernel of a block, without matrix units.
    pub fn source(self, block: Block) -> Source {
        let program = if block.split {
            self.program(|_| true).array("partial", "f32")
        } else {
            self.program(|_| true)
        };
        let keep = if block.split { "partial[at + e] = s;" } else { "" };
        let Block { lines, split, .. } = block;
        let (rows, size) = (block.rows(), block.size());
        let items = format!(
            "const BLOCK: u32 = {rows}u;\nconst LINES: u32 = {lines}u;\nconst SIZE: u32 = {size}u;\nconst SPLIT: bool = {split};\n\
             fn keep_one(at: u32, e: u32, s: f32) {{ {keep} }}\n{}{}{}",
            self.masks(),
            variables(&[]),
            self.sums(lines)
        );
        program.item(&items).library(ATTENTION).group_body(size, "attend(g, local);").build()
    }

    /// The functions that apply a mask to a score.
    pub(super) fn masks(self) -> String {
        let mask = match self.bools {
            true => "select(-inf32(), score, load_mask(at) != 0u)",
            false => "lowered(score + load_mask(at))",
        };
        format!(
            "fn lowered(s: f32) -> f32 {{ return select(s, -inf32(), s <= -bitcast<f32>(0x7f7fffffu)); }}\n\
             fn with_mask(score: f32, at: u32) -> f32 {{ return {mask}; }}\n"
        )
    }

    /// The kernel that joins the results of parts.
    pub fn join(self) -> Source {
        let program = self.program(|name| ["v", "sinks", "out", "lse"].contains(&name));
        let program = program.array("partial", "f32").library(ATTENTION).library(JOIN);
        program.body("join(i);").build()
    }

    /// The sums `o{part}_{line}`. Each holds the 4 of a part's 32 elements that the invocation
    /// computes.
    fn sums(self, lines: u32) -> String {
        let parts = self.value_size.div_ceil(32);
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
        // For each element of a line: its position, and the code for it.
        let mut each = |head: &str, what: &dyn Fn(&str, &str) -> String| {
            _ = writeln!(text, "{head} {{");
            for line in 0..lines {
                _ = writeln!(text, "if (i == {line}u) {{");
                for part in 0..parts {
                    for (c, of) in ["x", "y", "z", "w"].into_iter().enumerate() {
                        let e = format!("(x + {}u)", 32 * part + 8 * c as u32);
                        let stored = what(&e, &format!("o{part}_{line}.{of}"));
                        _ = writeln!(text, "if ({e} < word(VALUE_SIZE)) {{ {stored} }}");
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

/// The variables in `attention.wgsl` outside of functions: those with the given names, or all.
pub(super) fn variables(names: &[&str]) -> String {
    let lines = ATTENTION.lines().filter(|line| line.starts_with("var<"));
    let wanted = |line: &&str| {
        names.is_empty() || names.iter().any(|name| line.contains(&format!(" {name}:")))
    };
    lines.filter(wanted).map(|line| format!("{line}\n")).collect()
}

/// Adds the functions of `attention.wgsl` to a program.
pub(super) fn with_functions(program: Program<'_>) -> Program<'_> {
    program.library(ATTENTION)
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
        for (i, dtype) in [Dtype::Float32, Dtype::Float16, Dtype::Bfloat16].into_iter().enumerate()
        {
            for bools in [false, true] {
                let attention = Attention { dtype, bools, value_size: 40 + 60 * i as u32 };
                for lines in [1, 4] {
                    let split = lines == 1 && bools;
                    compiles(&attention.source(Block { lines, split, units: None }));
                }
                compiles(&attention.join());
            }
        }
    }
}
