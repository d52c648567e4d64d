//! Kernels that walk tensors of one shape.

use super::{Axes, Device, Forms, Fours, Once, Vectors, places};
use crate::context::lock;
use crate::dtype::Dtype;
use crate::program::Kernel;
use crate::shader::{Program, Tensor};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex};
use ultramarine_abi::helper::Result;

/// A kernel that walks tensors of one shape: each element of the last tensor is a function of the
/// corresponding elements of the others. It is compiled for each layout that occurs.
pub struct Walk {
    forms: Forms<Kernel>,
    /// The kernels by [`Vectors`].
    vectors: Mutex<HashMap<Vectors, Arc<Kernel>>>,
    program: Program<'static>,
    tensors: Vec<Tensor>,
    more: u32,
    value: String,
}

impl Walk {
    /// The kernels of a program that walks at most 4 tensors, with `more` words before the layout. `value` is the
    /// expression for the last tensor's elements, from the elements `x0`, `x1` ... of the others and their index `i`.
    pub fn new(
        device: &Device,
        program: Program<'static>,
        (tensors, more): (&[Tensor], u32),
        value: &str,
    ) -> Result<Self> {
        let walk = Self {
            forms: Forms::default(),
            vectors: Mutex::default(),
            program,
            tensors: tensors.to_vec(),
            more,
            value: value.to_owned(),
        };
        // Compiling the usual kernel now reports errors early.
        match device.context.properties.gpu_kernels {
            true => walk.of_vectors(device, Vectors::all(&walk.dtypes()))?,
            false => walk.form(device, 1)?,
        };
        Ok(walk)
    }

    fn table(&self) -> String {
        format!("{}u", self.more + 1)
    }

    /// The program with one element per invocation.
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

    /// The program with one vector per invocation.
    fn vector(&self, vectors: Vectors) -> Program<'static> {
        let n = self.tensors.len();
        let table = (self.table(), n);
        let fours = Fours { tensors: &self.tensors, inputs: n - 1, vectors, table };
        let length = self.scalar(Some(1)).build().text.len();
        fours.complete(self.program.clone(), Vec::new(), length, |c, inputs, outputs| {
            let mut text = format!("let i = {}u * number + {c};\n", vectors.width);
            for (k, input) in inputs.iter().enumerate() {
                _ = writeln!(text, "let x{k} = {input};");
            }
            text + &format!("{} = {};\n", outputs[0], self.value)
        })
    }

    fn form(&self, device: &Device, axes: usize) -> Result<Arc<Kernel>> {
        self.forms.get(axes, |axes| device.programs.get(self.scalar(axes).build()))
    }

    fn dtypes(&self) -> Vec<Dtype> {
        self.tensors.iter().map(|tensor| tensor.dtype).collect()
    }

    /// The vectors for these axes, if they can be used.
    pub fn vectors<const K: usize>(&self, device: &Device, axes: &Axes<K>) -> Option<Vectors> {
        let wanted = device.context.properties.gpu_kernels;
        Vectors::of(axes, K - 1, &self.dtypes()).filter(|_| wanted)
    }

    /// The kernel for these axes.
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
