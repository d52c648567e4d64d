//! Generates kernels that read and write vectors.

use super::{Once, Vectors, places};
use crate::dtype::Wgsl;
use crate::shader::source::GROUP;
use crate::shader::vector::{elements, vector, vector_of};
use crate::shader::{Program, Tensor};
use std::fmt::Write as _;

/// Maximum length of source that is copied for each element of a vector. Longer source becomes a loop over the elements,
/// because drivers would take long to compile the copies.
const MOST: usize = 40960;
/// Likewise, for source that is copied for each vector of an invocation.
const SHORT: usize = 16384;

/// Generates kernels in which each invocation reads and writes vectors; see [`Vectors`].
pub struct Fours<'a> {
    /// The inputs, followed by the outputs.
    pub tensors: &'a [Tensor],
    /// Number of inputs.
    pub inputs: usize,
    /// The tensors that are accessed as vectors.
    pub vectors: Vectors,
    /// The location of the layout, as in `Vectors::axes_of`, and the number of tensors that it has
    /// room for.
    pub table: (String, usize),
}

impl Fours<'_> {
    /// Adds the tensors to a program, in the order of [`Vectors::sorted`].
    fn declared<'a>(&self, mut program: Program<'a>) -> Program<'a> {
        for (k, tensor) in self.tensors.iter().enumerate() {
            program = match self.vectors.has(k) {
                true => program.array(tensor.name, vector_of(tensor.dtype, self.vectors.width)),
                false => program.tensors(&[*tensor]),
            };
        }
        program
    }

    /// Sets the program's prologue and body. `each` generates the lines for one element of a vector, from an expression
    /// for the element's index, the inputs' values, and the variables that receive the outputs. `once` are values that all
    /// invocations share. `length` is the approximate length of the source, including all functions that it calls.
    pub fn complete<'a>(
        &self,
        program: Program<'a>,
        mut once: Vec<Once>,
        length: usize,
        each: impl Fn(&str, &[String], &[String]) -> String,
    ) -> Program<'a> {
        let (table, most) = &self.table;
        let axes = self.vectors.axes;
        let (found, places) = places(table, (self.tensors.len(), *most), Some(axes));
        once.extend(found);
        let values = match length * self.vectors.width <= MOST {
            true => self.copies(&each),
            false => self.turns(&each),
        };
        let program = self.declared(program).prologue(&Once::lets(&once));
        if self.vectors.turns == 1 {
            let text =
                format!("{places}let number = i;\n{}{values}{}", self.loads(""), self.stores());
            return program.body(&text);
        }
        // The loads of all vectors come first, so that they are in flight together.
        let behind = (most + 1) * (axes + 1) + 2 * (axes - 1);
        let mut text = format!(
            "let total = word(table + {behind}u);\nlet first = g * {}u + local;\n",
            self.vectors.turns * GROUP
        );
        let turns = self.vectors.turns;
        let names: Vec<_> = (0..self.tensors.len())
            .map(|k| if k < self.inputs { format!("w{k}") } else { format!("at{k}") })
            .collect();
        for turn in 0..turns {
            for (k, (name, tensor)) in names.iter().zip(self.tensors).enumerate() {
                let kind = match (k < self.inputs, self.vectors.has(k)) {
                    (false, _) => "u32",
                    (true, true) => vector_of(tensor.dtype, self.vectors.width),
                    (true, false) => tensor.dtype.register(),
                };
                _ = writeln!(text, "var {name}_{turn}: {kind};");
            }
            let number = turn * GROUP;
            let loads = self.loads(&format!("_{turn}"));
            _ = write!(text, "{{\nlet i = min(first + {number}u, total - 1u);\n{places}{loads}");
            for name in &names[self.inputs..] {
                _ = writeln!(text, "{name}_{turn} = {name};");
            }
            text += "}\n";
        }
        let stores = self.stores();
        let values = format!("{values}if (number < total) {{\n{stores}}}\n");
        if length * self.vectors.width * turns as usize <= SHORT {
            for turn in 0..turns {
                _ = writeln!(text, "{{\nlet number = first + {}u;", turn * GROUP);
                names.iter().for_each(|name| _ = writeln!(text, "let {name} = {name}_{turn};"));
                _ = writeln!(text, "{values}}}");
            }
        } else {
            _ = writeln!(text, "for (var turn = 0u; turn < {turns}u; turn++) {{");
            _ = writeln!(text, "let number = first + turn * {GROUP}u;");
            for name in &names {
                _ = writeln!(text, "let {name} = {name}_0;");
                (1..turns).for_each(|t| _ = writeln!(text, "{name}_{} = {name}_{t};", t - 1));
            }
            _ = writeln!(text, "{values}}}");
        }
        program.group_body(GROUP, &text)
    }

    /// Loads of all inputs into variables; the suffix is added to their names.
    fn loads(&self, suffix: &str) -> String {
        let mut text = String::new();
        let to = if suffix.is_empty() { "let " } else { "" };
        for (k, Tensor { name, .. }) in self.tensors[..self.inputs].iter().enumerate() {
            match self.vectors.has(k) {
                true => _ = writeln!(text, "{to}w{k}{suffix} = {name}[at{k}];"),
                false => _ = writeln!(text, "{to}w{k}{suffix} = load_{name}(at{k});"),
            }
        }
        text
    }

    /// Stores of all outputs.
    fn stores(&self) -> String {
        let mut text = String::new();
        for (k, Tensor { name, dtype }) in self.tensors[self.inputs..].iter().enumerate() {
            let values: Vec<_> = (0..self.vectors.width).map(|c| format!("y{k}_{c}")).collect();
            let at = self.inputs + k;
            _ = writeln!(text, "{name}[at{at}] = {};", vector(*dtype, &values));
        }
        text
    }

    /// The elements of input `k`'s vector, if it is accessed as a vector.
    fn elements(&self, k: usize) -> Option<Vec<String>> {
        let width = self.vectors.width;
        self.vectors.has(k).then(|| elements(self.tensors[k].dtype, &format!("w{k}"), width))
    }

    /// Repeats the lines for each element.
    fn copies(&self, each: impl Fn(&str, &[String], &[String]) -> String) -> String {
        let parts: Vec<_> = (0..self.inputs).map(|k| self.elements(k)).collect();
        let outputs = &self.tensors[self.inputs..];
        let mut text = String::new();
        for c in 0..self.vectors.width {
            let part = |(k, parts): (usize, &Option<Vec<String>>)| {
                parts.as_ref().map_or_else(|| format!("w{k}"), |parts| parts[c].clone())
            };
            let values: Vec<_> = parts.iter().enumerate().map(part).collect();
            let results: Vec<_> = (0..outputs.len()).map(|k| format!("y{k}_{c}")).collect();
            for (result, output) in results.iter().zip(outputs) {
                _ = writeln!(text, "var {result}: {};", output.dtype.register());
            }
            _ = write!(text, "{{\n{}}}\n", each(&format!("{c}u"), &values, &results));
        }
        text
    }

    /// The lines in a loop. Elements are passed through variables of their vector, because arrays with an index that the
    /// compiler does not know would be stored in memory.
    fn turns(&self, each: impl Fn(&str, &[String], &[String]) -> String) -> String {
        let width = self.vectors.width;
        let outputs = &self.tensors[self.inputs..];
        let (mut text, mut turn, mut behind) = (String::new(), String::new(), String::new());
        let mut values = Vec::new();
        for k in 0..self.inputs {
            let Some(parts) = self.elements(k) else {
                values.push(format!("w{k}"));
                continue;
            };
            for (c, part) in parts.iter().enumerate() {
                _ = writeln!(text, "var e{k}_{c} = {part};");
            }
            _ = writeln!(turn, "let e{k} = e{k}_0;");
            (1..width).for_each(|c| _ = writeln!(turn, "e{k}_{} = e{k}_{c};", c - 1));
            values.push(format!("e{k}"));
        }
        for (k, output) in outputs.iter().enumerate() {
            let register = output.dtype.register();
            (0..width).for_each(|c| _ = writeln!(text, "var y{k}_{c}: {register};"));
            _ = writeln!(turn, "var y{k}: {register};");
            (1..width).for_each(|c| _ = writeln!(behind, "y{k}_{} = y{k}_{c};", c - 1));
            _ = writeln!(behind, "y{k}_{} = y{k};", width - 1);
        }
        let results: Vec<_> = (0..outputs.len()).map(|k| format!("y{k}")).collect();
        let lines = each("c", &values, &results);
        _ = write!(
            text,
            "for (var c = 0u; c < {width}u; c++) {{\n{turn}{{\n{lines}}}\n{behind}}}\n"
        );
        text
    }
}
