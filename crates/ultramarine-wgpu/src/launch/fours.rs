//! The text of kernels that read and write vectors.

use super::{Once, Vectors, places};
use crate::dtype::Wgsl;
use crate::shader::vector::{elements, vector, vector_of};
use crate::shader::{Program, Tensor};
use std::fmt::Write as _;

/// Text of a program of which each element of a vector gets a copy, as drivers compile it fast. Of a longer one there is a
/// loop over the elements.
const SHORT: usize = 16384;

/// Kernels whose invocations have a vector each.
pub struct Fours<'a> {
    /// Inputs, and outputs behind them.
    pub tensors: &'a [Tensor],
    /// Number of inputs.
    pub inputs: usize,
    /// Those that are vectors.
    pub vectors: Vectors,
    /// Where the layout is, as [`Vectors::axes_of`] gives it, and the tensors that it has room for.
    pub table: (String, usize),
}

impl Fours<'_> {
    /// Gives a program the tensors, in the order of [`Vectors::sorted`].
    pub fn declared<'a>(&self, mut program: Program<'a>) -> Program<'a> {
        for (k, tensor) in self.tensors.iter().enumerate() {
            program = match self.vectors.has(k) {
                true => program.array(tensor.name, vector_of(tensor.dtype, self.vectors.width)),
                false => program.tensors(&[*tensor]),
            };
        }
        program
    }

    /// The values that all invocations share, and the body. `each` gives the lines for an element of a vector: from an
    /// expression for its number there, the inputs' values and the variables that the outputs are assigned to. `length` is
    /// about that of the text with all that it calls.
    pub fn text(
        &self,
        length: usize,
        each: impl Fn(&str, &[String], &[String]) -> String,
    ) -> (Vec<Once>, String) {
        let (table, most) = &self.table;
        let (once, places) = places(table, (self.tensors.len(), *most), Some(self.vectors.axes));
        let (inputs, outputs) = self.tensors.split_at(self.inputs);
        let mut text = places + "let number = i;\n";
        for (k, Tensor { name, .. }) in inputs.iter().enumerate() {
            match self.vectors.has(k) {
                true => _ = writeln!(text, "let w{k} = {name}[at{k}];"),
                false => _ = writeln!(text, "let w{k} = load_{name}(at{k});"),
            }
        }
        text += &match length * self.vectors.width <= SHORT {
            true => self.copies(&each),
            false => self.turns(&each),
        };
        for (k, Tensor { name, dtype }) in outputs.iter().enumerate() {
            let values: Vec<_> = (0..self.vectors.width).map(|c| format!("y{k}_{c}")).collect();
            _ = writeln!(text, "{name}[at{}] = {};", self.inputs + k, vector(*dtype, &values));
        }
        (once, text)
    }

    /// The elements of input `k`'s vector, if it is one.
    fn elements(&self, k: usize) -> Option<Vec<String>> {
        let width = self.vectors.width;
        self.vectors.has(k).then(|| elements(self.tensors[k].dtype, &format!("w{k}"), width))
    }

    /// A copy of the lines for each element.
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

    /// The lines in a loop. Elements move through variables of their vector, as places in arrays that are not known to the
    /// compiler would be in memory.
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
