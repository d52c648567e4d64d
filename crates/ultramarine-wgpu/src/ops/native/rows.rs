//! Operations along rows, by `rows.wgsl`: how rows are shared and walked.

use crate::dtype::{Dtype, Wgsl};
use crate::functions;
use crate::hal::Properties;
use crate::launch::{Axes, Job, Once, View, places, split_axes};
use crate::memory::Block;
use crate::program::Kernel;
use crate::shader::Program;
use std::sync::Arc;
use ultramarine_abi::helper::{Failure, Result};
use ultramarine_abi::status;

const ROWS: &str = include_str!("../../../kernels/native/rows.wgsl");
/// Functions of teams.
pub const TEAM: &str = include_str!("../../../kernels/native/team.wgsl");

/// Tensors of an operation at most.
pub const TENSORS: usize = 4;
/// Where the words behind the layout of the rows begin.
pub const BEHIND: &str = "im.base + 14u + 5u * words[im.base + 9u]";
/// Turns of a team whose elements stay in registers.
const HELD: u32 = 16;
/// Invocations of a small, a large, and the largest team; groups have those of a large one at least.
const TEAMS: [u32; 3] = [32, 256, 1024];
/// Elements of rows that are too many for one invocation, also where barriers are dear.
const LONG: u32 = 4096;
/// Loops over a row in an operation, and some turns for the team's.
const PASSES: u32 = 3;
const MORE_TURNS: u32 = 100;

/// How rows are shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Team {
    /// Invocations of a row.
    pub members: u32,
    /// Invocations of a group; of members alone as many as elsewhere.
    pub size: u32,
    /// Elements of each that stay in registers; 0: they are read again.
    pub held: u32,
    /// The elements of a row lie along several axes.
    pub walked: bool,
}

impl Team {
    /// The team for a command's rows. Refuses those for which the driver's loops are too short.
    pub fn of(properties: &Properties, rows: &Rows) -> Result<Self> {
        let [small, large, largest] = TEAMS;
        let most = 1 << properties.group_size.max(1).ilog2();
        let (large, largest) = (large.min(most), largest.min(most));
        // Neighbours with a row each, where it is they that lie together.
        let alone = rows.lie_together() && u64::from(rows.rows) * 4 >= properties.parallelism();
        let (members, held) = match (properties.gpu_kernels && !alone, rows.elements) {
            (false, n) if n <= LONG => (1, 0),
            (_, n) if n <= small * HELD => (small, HELD),
            (_, n) if n <= large * HELD => (large, HELD),
            (_, n) if n <= LONG * HELD => (large, 0),
            _ => (largest, 0),
        };
        if rows.elements.div_ceil(members) > (properties.iterations - MORE_TURNS) / PASSES {
            let text = format!(
                "rows of {} elements, for which the driver's loops are too short",
                rows.elements
            );
            return Err(Failure { code: status::OUT_OF_MEMORY, text });
        }
        Ok(Self { members, size: large.max(members), held, walked: rows.walked() })
    }

    /// Gives a program what it needs to call `function` for each row. `tensors` are those that are walked.
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
        let walks =
            walk("row_places", "im.base + 9u") + &walk("places_along", "im.base + word(5u)");
        let Self { members, size, held, walked } = self;
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
             var<private> held: array<R, {}>;\n\
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

    /// Enqueues a kernel for rows, with a number for it, and `more` words behind the others.
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

/// Gives a program the type R of registers, and the exponential and the logarithm of it.
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

/// The items that `team_sum` and `team_max` need besides the type R.
pub fn team_items(members: u32, size: u32) -> String {
    format!("const TEAM: u32 = {members}u;\nvar<workgroup> room: array<R, {size}>;\n")
}

/// The rows of a command's tensors, of which there are [`TENSORS`] at most.
pub struct Rows {
    /// Number of rows.
    pub rows: u32,
    /// Elements of a row.
    pub elements: u32,
    /// Rows, by their first elements.
    kept: Axes<TENSORS>,
    /// A row.
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

    /// The words behind the first; what is appended to them begins at [`BEHIND`] unless the rows are walked.
    fn words(&self, number: u64) -> Vec<u32> {
        let mut words = vec![self.rows, self.elements, number as u32, (number >> 32) as u32];
        let steps = self.along.list.first().map_or([0; TENSORS], |(_, steps)| *steps);
        words.extend(steps.map(|step| step as u32));
        self.kept.words(&mut words);
        if self.walked() {
            // Word 0 is the number of groups.
            words[4] = words.len() as u32 + 1;
            self.along.words(&mut words);
        }
        words
    }

    /// The rows of the first tensor lie together, but the elements of a row do not.
    fn lie_together(&self) -> bool {
        let step = |axes: &Axes<TENSORS>| axes.list.last().map(|(_, steps)| steps[0].abs());
        step(&self.kept) == Some(1) && step(&self.along).is_some_and(|step| step > 1)
    }

    fn walked(&self) -> bool {
        self.along.list.len() > 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::native::{cross_entropy, norm, softmax};
    use crate::shader::source::Source;
    use crate::shader::{Tensor, compile};

    fn compiles(source: &Source) {
        compile::compile(&source.text).unwrap_or_else(|why| panic!("{why}"));
    }

    #[test]
    fn rows_compile_for_all_teams() {
        for dtype in [Dtype::Float32, Dtype::Float16, Dtype::Float64] {
            compiles(&cross_entropy::gradient(dtype));
            for (members, held) in [(1, 0), (32, HELD), (256, HELD), (256, 0)] {
                for walked in [false, true] {
                    let team = Team { members, size: 256, held, walked };
                    compiles(&softmax::source(dtype, true, team));
                    compiles(&softmax::source(dtype, false, team));
                }
                compiles(&cross_entropy::source(
                    dtype,
                    Team { members, size: 256, held, walked: false },
                ));
                for bias in [false, true] {
                    let tensors = ["a", "out", "weight", "bias"].map(|name| Tensor { name, dtype });
                    let team = Team { members, size: 256, held, walked: false };
                    compiles(&norm::source(Program::new(&tensors), dtype, bias, team));
                }
            }
        }
    }
}
