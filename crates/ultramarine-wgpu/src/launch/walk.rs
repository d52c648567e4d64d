//! Kernels that walk tensors of one shape.

use super::{Axes, Device, Forms, Once, places};
use crate::context::lock;
use crate::dtype::Wgsl;
use crate::program::Kernel;
use crate::shader::source::Source;
use crate::shader::vector::{FOUR, elements, vector, vector_of};
use crate::shader::{Program, Tensor};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex};
use ultramarine_abi::helper::Result;

/// Returns true for a program so short that memory is its limit. Of a long one, four copies would take long to compile.
pub fn is_short(program: &Source) -> bool {
    program.text.len() < 4096
}

/// A kernel in its forms: its last tensor is a function of the others.
pub struct Walk {
    forms: Forms<Kernel>,
    /// The forms of [`Vectors`].
    vectors: Mutex<HashMap<Vectors, Arc<Kernel>>>,
    program: Program<'static>,
    tensors: Vec<Tensor>,
    more: u32,
    value: String,
    /// Memory is the limit.
    short: bool,
}

/// The tensors that are read and written 4 elements at once, as bits; the others are one element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Vectors(u32);

impl Vectors {
    /// The vectors of inputs and outputs that lie in one piece: all of them, but inputs that are one element.
    pub fn of<const K: usize>(axes: &Axes<K>, inputs: usize, tensors: usize) -> Option<Self> {
        let [(n, strides)] = axes.list[..] else { return None };
        let mut vectors = 0;
        for (k, (stride, offset)) in strides.into_iter().zip(axes.offsets).enumerate().take(tensors)
        {
            match stride {
                0 => {}
                1 if offset % FOUR == 0 => vectors |= 1 << k,
                _ => return None,
            }
        }
        let whole = (inputs..tensors).all(|k| vectors >> k & 1 == 1);
        (n % FOUR == 0 && whole).then_some(Self(vectors))
    }

    /// All tensors are.
    pub fn all(tensors: usize) -> Self {
        Self((1 << tensors) - 1)
    }

    /// Tensor `k` is read in vectors.
    pub fn has(self, k: usize) -> bool {
        self.0 >> k & 1 == 1
    }

    /// Items in their order of bindings: single elements first.
    pub fn sorted<T: Copy>(self, items: &[T]) -> Vec<T> {
        let of = |wanted: bool| {
            let items = items.iter().enumerate();
            items.filter(move |(k, _)| self.has(*k) == wanted).map(|(_, item)| *item)
        };
        of(false).chain(of(true)).collect()
    }
}

impl Walk {
    /// The kernels of a program that walks tensors, 4 at most, with `more` words in front of the layout. `value` is what
    /// the last of them becomes, from elements `x0`, `x1` ... of the others and from their number `i`.
    pub fn new(
        device: &Device,
        program: Program<'static>,
        (tensors, more): (&[Tensor], u32),
        value: &str,
    ) -> Result<Self> {
        let mut walk = Self {
            forms: Forms::default(),
            vectors: Mutex::default(),
            program,
            tensors: tensors.to_vec(),
            more,
            value: value.to_owned(),
            short: false,
        };
        walk.short = is_short(&walk.scalar(Some(1)).build());
        // An error now if its usual kernel does not compile.
        match walk.short && device.context.properties.gpu_kernels {
            true => walk.of_vectors(device, Vectors::all(tensors.len()))?,
            false => walk.form(device, 1)?,
        };
        Ok(walk)
    }

    fn table(&self) -> String {
        format!("im.base + {}u", self.more + 1)
    }

    /// The program of an element for each invocation.
    fn scalar(&self, axes: Option<usize>) -> Program<'static> {
        let n = self.tensors.len();
        let (once, mut body) = places(&self.table(), (n, n), axes);
        for (k, tensor) in self.tensors[..n - 1].iter().enumerate() {
            _ = writeln!(body, "let x{k} = load_{}(at{k});", tensor.name);
        }
        _ = write!(body, "store_{}(at{}, {});", self.tensors[n - 1].name, n - 1, self.value);
        let program = self.program.clone().tensors(&self.tensors).prologue(&Once::lets(&once));
        program.body(&body)
    }

    /// The program of 4 elements for each invocation.
    fn vector(&self, vectors: Vectors) -> Program<'static> {
        let n = self.tensors.len();
        let fours = Fours { tensors: &self.tensors, inputs: n - 1, vectors, table: self.table() };
        let program = fours.declared(self.program.clone()).prologue(&fours.origins());
        program.body(&fours.body(|c, inputs, outputs| {
            let mut text = format!("let i = 4u * four + {c}u;\n");
            for (k, input) in inputs.iter().enumerate() {
                _ = writeln!(text, "let x{k} = {input};");
            }
            text + &format!("{} = {};\n", outputs[0], self.value)
        }))
    }

    fn form(&self, device: &Device, axes: usize) -> Result<Arc<Kernel>> {
        self.forms.get(axes, |axes| device.programs.get(self.scalar(axes).build()))
    }

    /// The vectors that are used for these axes, if any are.
    pub fn vectors<const K: usize>(&self, device: &Device, axes: &Axes<K>) -> Option<Vectors> {
        let wanted = self.short && device.context.properties.gpu_kernels;
        Vectors::of(axes, K - 1, K).filter(|_| wanted)
    }

    /// The form for these axes.
    pub fn kernel<const K: usize>(
        &self,
        device: &Device,
        axes: &Axes<K>,
        vectors: Option<Vectors>,
    ) -> Result<Arc<Kernel>> {
        match vectors {
            Some(vectors) => self.of_vectors(device, vectors),
            None => self.form(device, axes.list.len()),
        }
    }

    fn of_vectors(&self, device: &Device, vectors: Vectors) -> Result<Arc<Kernel>> {
        if let Some(kernel) = lock(&self.vectors).get(&vectors) {
            return Ok(kernel.clone());
        }
        let made = device.programs.get(self.vector(vectors).build())?;
        Ok(lock(&self.vectors).entry(vectors).or_insert(made).clone())
    }
}

/// The text of kernels that read and write 4 elements at once, where the layout has one axis.
pub struct Fours<'a> {
    /// Inputs, and outputs behind them.
    pub tensors: &'a [Tensor],
    /// Number of inputs.
    pub inputs: usize,
    /// Those that are vectors.
    pub vectors: Vectors,
    /// Where the layout is.
    pub table: String,
}

impl Fours<'_> {
    /// Gives a program the tensors, in the order of [`Vectors::sorted`].
    pub fn declared<'a>(&self, mut program: Program<'a>) -> Program<'a> {
        for (k, tensor) in self.tensors.iter().enumerate() {
            program = match self.vectors.has(k) {
                true => program.array(tensor.name, vector_of(tensor.dtype)),
                false => program.tensors(&[*tensor]),
            };
        }
        program
    }

    /// The values that all invocations share.
    pub fn origins(&self) -> String {
        let mut text = format!("let table = {};\n", self.table);
        for k in 0..self.tensors.len() {
            let unit = if self.vectors.has(k) { " / 4u" } else { "" };
            _ = writeln!(text, "let place{k} = words[table + {}u]{unit};", k + 1);
        }
        text
    }

    /// The body for invocation `four`. `each` gives the lines for an element of 4: from its number there, the inputs'
    /// values and the variables that the outputs are assigned to.
    pub fn body(&self, each: impl Fn(usize, &[String], &[String]) -> String) -> String {
        let (inputs, outputs) = self.tensors.split_at(self.inputs);
        let mut text = "let four = i;\n".to_owned();
        for (k, Tensor { name, .. }) in inputs.iter().enumerate() {
            match self.vectors.has(k) {
                true => _ = writeln!(text, "let w{k} = {name}[place{k} + four];"),
                false => _ = writeln!(text, "let w{k} = load_{name}(place{k});"),
            }
        }
        for c in 0..4 {
            let part = |(k, tensor): (usize, &Tensor)| match self.vectors.has(k) {
                true => elements(tensor.dtype, &format!("w{k}"))[c].clone(),
                false => format!("w{k}"),
            };
            let values: Vec<_> = inputs.iter().enumerate().map(part).collect();
            let results: Vec<_> = (0..outputs.len()).map(|k| format!("y{k}_{c}")).collect();
            for (result, output) in results.iter().zip(outputs) {
                _ = writeln!(text, "var {result}: {};", output.dtype.register());
            }
            _ = write!(text, "{{\n{}}}\n", each(c, &values, &results));
        }
        for (k, Tensor { name, dtype }) in outputs.iter().enumerate() {
            let value = vector(*dtype, &[0, 1, 2, 3].map(|c| format!("y{k}_{c}")));
            _ = writeln!(text, "{name}[place{} + four] = {value};", self.inputs + k);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_read_in_vectors() {
        let of = |offsets, n, strides| {
            let axes = Axes::<3>::join(offsets, [(n, strides)]);
            Vectors::of(&axes, 2, 3).map(|vectors| vectors.0)
        };
        assert_eq!(of([4, 0, 8], 8, [1, 1, 1]), Some(0b111));
        assert_eq!(of([3, 0, 8], 8, [0, 1, 1]), Some(0b110));
        assert_eq!(of([0, 0, 0], 7, [1, 1, 1]), None);
        assert_eq!(of([0, 1, 0], 8, [1, 1, 1]), None);
        assert_eq!(of([0, 0, 0], 8, [2, 1, 1]), None);
        assert_eq!(of([0, 0, 0], 8, [1, 1, 0]), None);
        assert_eq!(Vectors(0b101).sorted(&['a', 'b', 'c']), ['b', 'a', 'c']);
    }
}
