//! The source around a body: prelude, header, and a signature generated from names and dtypes.

mod c;
mod threads;
mod wgsl;

use super::{Definition, Template, prelude};
use crate::error::{Error, Result};
use crate::{dtype::Dtype, shape::Shape};
use std::fmt::Write;

/// A language for which signatures are generated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Language {
    OpenCl,
    Cuda,
    Metal,
    Wgsl,
}

impl Language {
    pub fn of(name: &str) -> Option<Language> {
        Some(match name {
            "opencl-c" => Language::OpenCl,
            "cuda-c" => Language::Cuda,
            "msl" => Language::Metal,
            "wgsl" => Language::Wgsl,
            _ => return None,
        })
    }

    pub fn name(self) -> &'static str {
        match self {
            Language::OpenCl => "opencl-c",
            Language::Cuda => "cuda-c",
            Language::Metal => "msl",
            Language::Wgsl => "wgsl",
        }
    }
}

/// An argument of the kernel, in the order of its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slot {
    Input(usize),
    /// The sizes of an input, as int32.
    Shape(usize),
    /// Its strides in elements, as int64; as int32 in WGSL, which has no 64-bit integers.
    Strides(usize),
    /// The number of its axes, as int32.
    Ndim(usize),
    Output(usize),
    /// The total number of threads along an axis, as uint32.
    Grid(usize),
    /// The total number of threads along all three axes, as an array.
    Grids,
}

/// Inputs of the generation of a signature.
pub(super) struct Signature<'a> {
    pub definition: &'a Definition,
    pub body: &'a str,
    pub header: &'a str,
    pub language: Language,
    pub inputs: &'a [(usize, Dtype)],
    pub outputs: &'a [(Shape, Dtype)],
    pub template: &'a [(String, Template)],
    /// The threads of a group.
    pub group: [u32; 3],
    /// True if some threads of a group are beyond the grid.
    pub guarded: bool,
}

/// A kernel's source, without the body.
#[derive(Debug)]
pub(super) struct Generated {
    pub language: Language,
    pub head: String,
    pub tail: String,
    pub entry: String,
    pub slots: Vec<Slot>,
}

/// Type names in sources, as the preludes define them.
fn type_name(dtype: Dtype) -> String {
    format!("um_{}", dtype.name())
}

/// True if `text` contains `name` as a whole word.
pub(super) fn names(text: &str, name: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(name).any(|(at, _)| {
        !text[..at].chars().next_back().is_some_and(part)
            && !text[at + name.len()..].chars().next().is_some_and(part)
    })
}

/// True if `text` is a valid name in every language.
pub(super) fn is_name(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

impl Signature<'_> {
    /// True if the body contains `name`.
    fn named(&self, name: &str) -> bool {
        names(self.body, name)
    }

    /// The kernel's name with a prefix, made a valid identifier in these languages.
    fn entry(&self, prefix: &str) -> String {
        let part = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
        self.definition.name.chars().fold(prefix.to_owned(), |mut name, c| {
            name.push(part(c));
            name
        })
    }

    fn refuse(&self, text: impl std::fmt::Display) -> Error {
        Error::value(self.definition.name, text)
    }

    /// The arguments of the kernel, in order.
    fn slots(&self) -> Vec<Slot> {
        let mut slots = Vec::new();
        for (i, name) in self.definition.input_names.iter().enumerate() {
            slots.push(Slot::Input(i));
            let loc = self.language == Language::Wgsl && self.named(&format!("um_loc_{name}"));
            if loc || self.named(&format!("{name}_shape")) {
                slots.push(Slot::Shape(i));
            }
            if loc || self.named(&format!("{name}_strides")) {
                slots.push(Slot::Strides(i));
            }
            // In WGSL it is a constant in the source.
            if self.language != Language::Wgsl && self.named(&format!("{name}_ndim")) {
                slots.push(Slot::Ndim(i));
            }
        }
        slots.extend((0..self.outputs.len()).map(Slot::Output));
        if self.guarded || threads::wants_grid(self) {
            match self.language {
                Language::Wgsl => slots.push(Slot::Grids),
                _ => slots.extend((0..3).map(Slot::Grid)),
            }
        }
        slots
    }

    /// The prelude, and the user's header.
    fn begin(&self) -> String {
        let mut head = prelude(self.language.name()).unwrap_or("").to_owned();
        let label = self.entry("");
        if !self.header.is_empty() {
            if self.language != Language::Wgsl {
                let _ = writeln!(head, "#line 1 \"{label}_header\"");
            }
            head.push_str(self.header);
            if !head.ends_with('\n') {
                head.push('\n');
            }
        }
        if self.language != Language::Wgsl {
            let _ = writeln!(head, "#line 1 \"{label}_signature\"");
        }
        head
    }

    /// Generates the source around the body.
    ///
    /// # Errors
    /// [`Error::Value`] for features that the language does not have.
    pub fn generate(&self) -> Result<Generated> {
        match self.language {
            Language::Wgsl => wgsl::generate(self),
            _ => c::generate(self),
        }
    }
}
