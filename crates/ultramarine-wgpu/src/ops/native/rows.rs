//! Operations along rows, by `rows.wgsl`: how rows are divided among invocations and walked.

use crate::dtype::{Dtype, Wgsl};
use crate::functions;
use crate::hal::Properties;
use crate::launch::{Axes, Job, Once, View, places, split_axes};
use crate::memory::Block;
use crate::program::Kernel;
use crate::shader::vector::{FOUR, elements, vector, vector_of};
use crate::shader::{Program, Tensor};
use std::fmt::Write as _;
use std::sync::Arc;
use ultramarine_abi::helper::{Failure, Result};
use ultramarine_abi::status;

const ROWS: &str = include_str!("../../../kernels/native/rows.wgsl");
/// Functions of teams.
pub const TEAM: &str = include_str!("../../../kernels/native/team.wgsl");

/// Maximum number of tensors of an operation.
pub const TENSORS: usize = 4;
/// The index of the first word after the layout of the rows.
pub const BEHIND: &str = "14u + 5u * word(9u)";
/// Vectors per member that stay in registers; the second number is for small teams if there are few
/// rows.
const HELD: u32 = 8;
const HELD_FEW: u32 = 4;
/// Invocations of a small, a middle, a large, and the largest team. Workgroups have at least as many as a
/// large team.
const TEAMS: [u32; 4] = [32, 128, 256, 1024];
/// Elements of rows that are too long for one invocation, even if barriers are slow; and for a large team.
const LONG: u32 = 4096;
const MOST: u32 = 65536;
/// Loops over a row in an operation, and additional iterations for the team.
const PASSES: u32 = 3;
const MORE_TURNS: u32 = 100;

/// The invocations that share a row, and the way in which they read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Team {
    /// Invocations per row.
    pub members: u32,
    /// Invocations of a workgroup. If each row has a single member, it is the usual number.
    pub size: u32,
    /// Vectors of 4 elements per member that stay in registers. 0 means that elements are read
    /// again.
    pub held: u32,
    /// True if all walked tensors are read and written in vectors.
    pub vectors: bool,
    /// True if the elements of a row extend along several axes.
    pub walked: bool,
}

impl Team {
    /// The team for a command's rows. Fails if the driver limits loops to too few iterations.
    pub fn of(properties: &Properties, rows: &Rows) -> Result<Self> {
        let most = 1 << properties.group_size.max(1).ilog2();
        let [small, middle, large, largest] = TEAMS.map(|members| members.min(most));
        // If adjacent rows are contiguous in memory, each invocation has its own row, and adjacent
        // invocations have adjacent rows.
        let alone = rows.lie_together() && u64::from(rows.rows) * 4 >= properties.parallelism();
        let vectors_of = |members: u32| rows.elements.div_ceil(FOUR as u32 * members);
        // Members of smaller teams wait less for each other, and have more loads in flight.
        let many = |members: u32| {
            u64::from(rows.rows) * u64::from(members) * 2 >= properties.parallelism()
        };
        let holding = [small, middle, large].into_iter().find(|members| {
            let most = if many(*members) || *members == large { HELD } else { HELD_FEW };
            vectors_of(*members) <= most && (many(*members) || *members != middle)
        });
        let (members, held) = match (properties.gpu_kernels && !alone, rows.elements, holding) {
            (false, n, _) if n <= LONG => (1, 0),
            (.., Some(members)) => (members, vectors_of(members).next_power_of_two()),
            (_, n, _) if n <= MOST => (large, 0),
            _ => (largest, 0),
        };
        if rows.elements.div_ceil(members) > (properties.iterations - MORE_TURNS) / PASSES {
            let text = format!(
                "rows of {} elements, for which the driver's loops are too short",
                rows.elements
            );
            return Err(Failure { code: status::OUT_OF_MEMORY, text });
        }
        let size = large.max(members);
        Ok(Self { members, size, held, vectors: false, walked: rows.walked() })
    }

    /// The same team. It reads and writes the first tensors in vectors if their rows allow it.
    pub fn with_vectors(self, rows: &Rows, tensors: usize) -> Self {
        Self { vectors: self.held > 0 && rows.in_vectors(tensors), ..self }
    }

    /// Adds the walked tensors to a program, declared as vectors or as elements.
    pub fn tensors<'a>(self, program: Program<'a>, tensors: &[Tensor]) -> Program<'a> {
        match self.vectors {
            true => tensors.iter().fold(program, |program, tensor| {
                program.array(tensor.name, vector_of(tensor.dtype, FOUR as usize))
            }),
            false => program.tensors(tensors),
        }
    }

    /// Functions `take_NAME`, which return 4 elements of a row from an index on, for tensors and their locations; and
    /// `give_out`, if `out` is written.
    pub fn takes(self, dtype: Dtype, read: &[(&str, u32)], out: bool) -> String {
        let mut text = String::new();
        let parts = ["x", "y", "z", "w"];
        for (name, t) in read {
            _ = writeln!(
                text,
                "fn take_{name}(j: u32, live: bool) -> vec4<R> {{\nlet n = word(2u);"
            );
            if self.vectors {
                let values = elements(dtype, "w", FOUR as usize).join(", ");
                _ = writeln!(
                    text,
                    "let w = {name}[(row_begin[{t}] + min(j, n - 4u)) / 4u];\nreturn vec4<R>({values});\n}}"
                );
                continue;
            }
            text += "var v = vec4<R>();\n";
            for (c, part) in parts.iter().enumerate() {
                _ = writeln!(
                    text,
                    "if (live && j + {c}u < n) {{ v.{part} = R(load_{name}(place({t}u, j + {c}u))); }}"
                );
            }
            text += "return v;\n}\n";
        }
        if out {
            text += "fn give_out(j: u32, live: bool, v: vec4<R>) {\nlet n = word(2u);\n";
            match self.vectors {
                true => {
                    let value = vector(dtype, &parts.map(|part| format!("v.{part}")));
                    _ = writeln!(
                        text,
                        "if (live && j < n) {{ out[(row_begin[1] + j) / 4u] = {value}; }}"
                    );
                }
                false => {
                    for (c, part) in parts.iter().enumerate() {
                        _ = writeln!(
                            text,
                            "if (live && j + {c}u < n) {{ store_out(place(1u, j + {c}u), v.{part}); }}"
                        );
                    }
                }
            }
            text += "}\n";
        }
        text
    }

    /// Adds everything to a program that it needs to call `function` for each row. `tensors` are the
    /// walked ones.
    pub fn program<'a>(
        self,
        program: Program<'a>,
        dtype: Dtype,
        tensors: usize,
        function: &str,
    ) -> Program<'a> {
        let walk = |name: &str, table: &str| {
            let (found, text) = places(table, (tensors, TENSORS), None);
            let at: Vec<String> = (0..TENSORS)
                .map(|t| if t < tensors { format!("at{t}") } else { "0u".into() })
                .collect();
            let (found, at) = (Once::lets(&found), at.join(", "));
            format!("fn {name}(i: u32) -> vec4<u32> {{\n{found}{text}return vec4<u32>({at});\n}}\n")
        };
        let walks = walk("row_places", "9u") + &walk("places_along", "word(5u)");
        let Self { members, size, held, walked, .. } = self;
        let wide = dtype == Dtype::Float64;
        let number = match wide {
            true => "bitcast<f64>((u64(word(4u)) << 32u) | u64(word(3u)))",
            false => "bitcast<f32>(word(3u))",
        };
        let items = format!(
            "{}\
             const HELD: u32 = {held}u;\nconst WALKED: bool = {walked};\n\
             var<private> own_sum: R;\nvar<private> own_part: R;\n\
             var<private> row_begin: vec4<u32>;\nvar<private> row_step: vec4<u32>;\n\
             var<private> held: array<vec4<R>, {}>;\n\
             {walks}\
             fn number() -> R {{ return {number}; }}\n",
            team_items(members, size),
            held.max(1),
        );
        let program = functions_of(program, dtype).library(ROWS).library(TEAM).item(&items);
        if members == 1 {
            return program.body(&format!("{function}(i, 0u, true, local);"));
        }
        let text = format!(
            "let row = g * {}u + local / TEAM;\n\
             {function}(min(row, word(1u) - 1u), local % TEAM, row < word(1u), local);",
            size / members
        );
        program.group_body(size, &text)
    }

    /// Enqueues a kernel for rows, with a scalar for it, and `more` words after the others.
    pub fn launch(
        self,
        job: &Job<'_>,
        kernel: &Arc<Kernel>,
        blocks: &[&Arc<Block>],
        (rows, number): (&Rows, u64),
        more: &[u32],
    ) -> Result<()> {
        let mut words = rows.words(number);
        words.extend_from_slice(more);
        match self.members {
            1 => job.launch(kernel, blocks, rows.rows, &words),
            n => job.launch_groups(kernel, blocks, rows.rows.div_ceil(self.size / n), &words),
        }
    }
}

/// Adds the register type R to a program, and its exponential and logarithm.
pub fn functions_of(mut program: Program<'_>, dtype: Dtype) -> Program<'_> {
    let wide = dtype == Dtype::Float64;
    let functions: Vec<_> =
        if wide { functions::float64().collect() } else { functions::float32().collect() };
    for text in functions {
        program = program.library(text);
    }
    let bits = if wide { "f64" } else { "f32" };
    program.item(&format!(
        "alias R = {};\nfn exp_of(x: R) -> R {{ return exp_{bits}(x); }}\n\
         fn log_of(x: R) -> R {{ return log_{bits}(x); }}\n",
        dtype.register()
    ))
}

/// The declarations that `team_sum` and `team_max` need in addition to the type R.
pub fn team_items(members: u32, size: u32) -> String {
    let parts = 1 << (members.ilog2() / 2);
    format!(
        "const TEAM: u32 = {members}u;\nconst PARTS: u32 = {parts}u;\n\
         var<workgroup> room: array<R, {size}>;\nvar<workgroup> parts: array<R, {}>;\n",
        size / members * parts
    )
}

/// The rows of a command's tensors, of which there are at most [`TENSORS`].
pub struct Rows {
    /// Number of rows.
    pub rows: u32,
    /// Elements of a row.
    pub elements: u32,
    /// The axes across rows, with the rows' first elements.
    kept: Axes<TENSORS>,
    /// The axes along a row.
    along: Axes<TENSORS>,
}

impl Rows {
    /// The rows of tensors of one shape along the axes of a mask.
    pub fn of(shape: &[i64], tensors: &[&View<'_>], mask: u64) -> Result<Self> {
        let all = |of: &dyn Fn(&View<'_>) -> i64| {
            let mut all = [0; TENSORS];
            all.iter_mut().zip(tensors).for_each(|(to, view)| *to = of(view));
            all
        };
        let axes: Vec<_> =
            shape.iter().enumerate().map(|(d, n)| (*n, all(&|view| view.strides[d]))).collect();
        let (along, kept) = split_axes(&axes, mask);
        let kept = Axes::join(all(&|view| view.offset), kept);
        let along = Axes::join([0; TENSORS], along);
        Ok(Self { rows: kept.elements()?, elements: along.elements()?, kept, along })
    }

    /// The words after the first. Words that are appended to them begin at [`BEHIND`], unless the rows are
    /// walked.
    fn words(&self, number: u64) -> Vec<u32> {
        let mut words = vec![self.rows, self.elements, number as u32, (number >> 32) as u32];
        let steps = self.along.list.first().map_or([0; TENSORS], |(_, steps)| *steps);
        words.extend(steps.map(|step| step as u32));
        self.kept.words(&mut words);
        if self.walked() {
            // The index in words is one higher, because word 0 is the number of workgroups.
            words[4] = words.len() as u32 + 1;
            self.along.words(&mut words);
        }
        words
    }

    /// True if adjacent rows of the first tensor are contiguous, but the elements of a row are not.
    fn lie_together(&self) -> bool {
        let step = |axes: &Axes<TENSORS>| axes.list.last().map(|(_, steps)| steps[0].abs());
        step(&self.kept) == Some(1) && step(&self.along).is_some_and(|step| step > 1)
    }

    /// True if the rows of the first `tensors` tensors are contiguous, and aligned to 4 elements.
    fn in_vectors(&self, tensors: usize) -> bool {
        let fours = |n: i64| n % FOUR == 0;
        let [(n, steps)] = self.along.list[..] else { return false };
        fours(n)
            && (0..tensors).all(|t| {
                let rows = || self.kept.list.iter().all(|(_, steps)| fours(steps[t]));
                steps[t] == 1 && fours(self.kept.offsets[t]) && rows()
            })
    }

    fn walked(&self) -> bool {
        self.along.list.len() > 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::native::{cross_entropy, norm, softmax};
    use crate::shader::compile;
    use crate::shader::source::Source;

    fn compiles(source: &Source) {
        compile::compile(&source.text).unwrap_or_else(|why| panic!("{why}"));
    }

    #[test]
    fn rows_compile_for_all_teams() {
        for dtype in [Dtype::Float32, Dtype::Float16, Dtype::Float64] {
            compiles(&cross_entropy::gradient(dtype));
            for (members, held) in [(1, 0), (32, 2), (256, 8), (256, 0)] {
                let team = Team { members, size: 256, held, vectors: false, walked: false };
                for more in [(false, false), (false, true), (held > 0, false)] {
                    let team = Team { vectors: more.0, walked: more.1, ..team };
                    compiles(&softmax::source(dtype, true, team));
                    compiles(&softmax::source(dtype, false, team));
                }
                compiles(&cross_entropy::source(dtype, team));
                for bias in [false, true] {
                    let tensors = ["a", "out", "weight", "bias"].map(|name| Tensor { name, dtype });
                    for vectors in [false, held > 0] {
                        let team = Team { vectors, ..team };
                        let program = team.tensors(Program::new(&[]), &tensors);
                        compiles(&norm::source(program, dtype, bias, team));
                    }
                }
            }
        }
    }
}
