//! Sources of programs: declarations of tensors, library functions, and a body that runs once for
//! each invocation.

use super::library::Library;
use crate::dtype::{Dtype, Wgsl};
use std::fmt::Write as _;

/// Invocations of a workgroup.
pub const GROUP: u32 = 64;

/// Number of a command's words that are passed as immediates. Further words are in memory, where
/// loads wait for each other. With two more words, they fill the 128 bytes of immediates that every
/// Vulkan device supports. In HLSL, each array element would take 16 bytes, so there all words are
/// in memory.
pub const INLINE: usize = if cfg!(windows) { 0 } else { 30 };
/// Number of words of a kernel's immediates: the position of the command's words in memory, a zero
/// that compilers cannot know, and the command's first words.
pub const IMMEDIATES: usize = 2 + INLINE;

/// Functions that all programs may use.
const NUMBERS: &str = include_str!("../../kernels/numbers.wgsl");
const WALK: &str = include_str!("../../kernels/walk.wgsl");

/// The representation of byte elements in buffers. WGSL has no 8-bit integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bytes {
    /// The source declares 16 bits, which a pass changes to 8.
    Narrowed,
    /// The source uses words of 32 bits. A store changes a part of a word atomically.
    Words,
}

/// The representation for this build's hal. HLSL does not support bytes either.
pub const BYTES: Bytes = if cfg!(windows) { Bytes::Words } else { Bytes::Narrowed };

/// A tensor of a [`Program`]: a binding, with functions that load and store its elements.
#[derive(Clone, Copy, Debug)]
pub struct Tensor {
    /// Its name; `load_NAME(at)` and `store_NAME(at, value)` read and write an element of its buffer.
    pub name: &'static str,
    /// Element type.
    pub dtype: Dtype,
}

/// A program under construction: its tensors, the functions that it uses, and its body. It is built
/// into a [`Source`].
#[derive(Clone)]
pub struct Program<'a> {
    tensors: Vec<Tensor>,
    arrays: Vec<(&'static str, &'static str)>,
    /// The array in which workgroups see other workgroups' writes after barriers.
    coherent: &'static str,
    library: Library<'a>,
    /// Enabled language features, each followed by a comma.
    enabled: &'static str,
    items: String,
    prologue: String,
    body: String,
    /// Invocations of a workgroup that cooperates.
    together: Option<u32>,
}

/// A program's source, and the data that its compilation needs. Kernels are cached by it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Source {
    /// WGSL.
    pub text: String,
    /// Bindings with one-byte elements.
    pub bytes: Vec<u32>,
    /// Number of tensors.
    pub tensors: usize,
}

impl<'a> Program<'a> {
    /// A program with these tensors, in the order of the bindings.
    pub fn new(tensors: &[Tensor]) -> Self {
        let mut library = Library::default();
        library.add(NUMBERS);
        library.add(WALK);
        let [items, prologue, body] = [const { String::new() }; 3];
        let (enabled, coherent) = ("", "");
        let (tensors, arrays) = (tensors.to_vec(), Vec::new());
        Self { tensors, arrays, coherent, library, enabled, items, prologue, body, together: None }
    }

    /// Adds tensors after the existing ones.
    pub fn tensors(mut self, tensors: &[Tensor]) -> Self {
        self.tensors.extend_from_slice(tensors);
        self
    }

    /// Adds a buffer of a WGSL type after the tensors, for values inside the operation.
    pub fn array(mut self, name: &'static str, element: &'static str) -> Self {
        self.arrays.push((name, element));
        self
    }

    /// Adds a buffer in which workgroups see other workgroups' writes after storage barriers.
    pub fn coherent_array(self, name: &'static str, element: &'static str) -> Self {
        Self { coherent: name, ..self.array(name, element) }
    }

    /// Enables language features, each followed by a comma.
    pub fn enable(mut self, features: &'static str) -> Self {
        self.enabled = features;
        self
    }

    /// Adds functions that the program may use.
    pub fn library(mut self, text: &'a str) -> Self {
        self.library.add(text);
        self
    }

    /// Adds the functions of a library.
    pub fn with_library(mut self, library: Library<'a>) -> Self {
        self.library.join(library);
        self
    }

    /// Adds declarations: aliases, constants, and the program's own functions.
    pub fn item(mut self, text: &str) -> Self {
        self.items.push_str(text);
        self.items.push('\n');
        self
    }

    /// Sets the code for an invocation. `i` is its index, which is below word 0 of the command.
    pub fn body(mut self, text: &str) -> Self {
        self.body = text.to_owned();
        self
    }

    /// Sets the code for the cooperating invocations of a workgroup. `g` is the index of the
    /// workgroup, which is below word 0 of the command, and `local` the index of the invocation in
    /// the workgroup.
    pub fn group_body(mut self, invocations: u32, text: &str) -> Self {
        self.together = Some(invocations);
        self.body(text)
    }

    /// Sets the code that an invocation runs once, before the body.
    pub fn prologue(mut self, text: &str) -> Self {
        self.prologue = text.to_owned();
        self
    }

    /// Builds the complete source.
    pub fn build(self) -> Source {
        self.build_with(BYTES)
    }

    /// Builds the complete source with this representation of bytes.
    pub fn build_with(self, how: Bytes) -> Source {
        let mut own = self.items;
        let mut bytes = Vec::new();
        for (binding, Tensor { name, dtype }) in (1..).zip(&self.tensors) {
            let (storage, register) = (dtype.storage(), dtype.register());
            if dtype.bytes() == 1 && how == Bytes::Words {
                own.push_str(&bytes_in_words(binding, name, *dtype));
                continue;
            }
            if dtype.bytes() == 1 {
                bytes.push(binding);
            }
            let load = match dtype {
                Dtype::Float16 => format!("f16_up(u32({name}[at]))"),
                Dtype::Bfloat16 => format!("bf16_up(u32({name}[at]))"),
                _ if storage == register => format!("{name}[at]"),
                _ => format!("{register}({name}[at])"),
            };
            let store = match dtype {
                Dtype::Float16 => "u16(f16_down(value))".to_owned(),
                Dtype::Bfloat16 => "u16(bf16_down(value))".to_owned(),
                _ if storage == register => "value".to_owned(),
                _ => format!("{storage}(value)"),
            };
            let declared = "var<storage, read_write>";
            _ = write!(
                own,
                "@group(0) @binding({binding}) {declared} {name}: array<{storage}>;\n\
                 fn load_{name}(at: u32) -> {register} {{ return {load}; }}\n\
                 fn store_{name}(at: u32, value: {register}) {{ {name}[at] = {store}; }}\n"
            );
        }
        for (binding, (name, element)) in (self.tensors.len() + 1..).zip(&self.arrays) {
            let declared = match *name == self.coherent {
                true => "@coherent var<storage, read_write>",
                false => "var<storage, read_write>",
            };
            _ = writeln!(own, "@group(0) @binding({binding}) {declared} {name}: array<{element}>;");
        }
        let size = self.together.unwrap_or(GROUP);
        let number = match self.together {
            None => format!("let i = g * {GROUP}u + local;\n"),
            Some(_) => String::new(),
        };
        let counted = if self.together.is_none() { "i" } else { "g" };
        _ = write!(
            own,
            "@compute @workgroup_size({size})\n\
             fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,\n\
             @builtin(local_invocation_index) local: u32) {{\n\
             let g = group.y * groups.x + group.x;\n{number}\
             {}\nif ({counted} < word(0u)) {{\n{}\n}}\n}}\n",
            self.prologue, self.body
        );
        let used = self.library.used_by(&own);
        let text = format!(
            "enable wgpu_int16{};\n\
             {}\
             @group(0) @binding(0) var<storage, read> words: array<u32>;\n\
             {used}{own}",
            self.enabled,
            words(),
        );
        Source { text, bytes, tensors: self.tensors.len() + self.arrays.len() }
    }
}

/// Returns the immediates, and the function `word` that returns a word by its index.
fn words() -> String {
    let (member, first) = match INLINE {
        0 => Default::default(),
        n => (
            format!(", first: array<u32, {n}>"),
            format!("if (k < {n}u) {{ return im.first[k]; }}\n"),
        ),
    };
    format!(
        "struct Immediates {{ base: u32, zero: u32{member} }}\nvar<immediate> im: Immediates;\n\
         fn word(k: u32) -> u32 {{\n{first}return words[im.base + k];\n}}\n"
    )
}

/// Declares a tensor of bytes in words. Invocations may write different bytes of a word at the same
/// time.
fn bytes_in_words(binding: u32, name: &str, dtype: Dtype) -> String {
    let register = dtype.register();
    let loaded =
        format!("{register}(atomicLoad(&{name}[at >> 2u]) << (24u - 8u * (at & 3u))) >> 24u");
    format!(
        "@group(0) @binding({binding}) var<storage, read_write> {name}: array<atomic<u32>>;\n\
         fn load_{name}(at: u32) -> {register} {{ return {loaded}; }}\n\
         fn store_{name}(at: u32, value: {register}) {{\n\
         let shift = 8u * (at & 3u);\n\
         atomicAnd(&{name}[at >> 2u], ~(255u << shift));\n\
         atomicOr(&{name}[at >> 2u], (u32(value) & 255u) << shift);\n}}\n"
    )
}

/// Returns the workgroups for this many invocations. `most` is the limit on each dimension.
pub fn groups_for(invocations: u64, most: [u32; 3]) -> [u32; 3] {
    grid_of(invocations.div_ceil(u64::from(GROUP)), most)
}

/// Returns a grid of at least this many workgroups.
pub fn grid_of(groups: u64, most: [u32; 3]) -> [u32; 3] {
    let groups = groups.max(1);
    let rows = groups.div_ceil(u64::from(most[0].max(1)));
    let columns = groups.div_ceil(rows);
    [columns as u32, rows as u32, 1]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shader::{compile, narrow, patch};

    #[test]
    fn every_dtype_is_loaded_and_stored() {
        for dtype in crate::dtype::ALL {
            let tensors = [Tensor { name: "a", dtype }, Tensor { name: "out", dtype }];
            let body = "let at = locate2(1u, i);\nstore_out(at.y, load_a(at.x));";
            let source = Program::new(&tensors).body(body).build();
            let module = compile::compile(&source.text).unwrap();
            assert_eq!(source.bytes.len(), if dtype.bytes() == 1 { 2 } else { 0 });
            let module = narrow::narrow(&module, &source.bytes).unwrap();
            patch::patch(&module, &Default::default()).unwrap();
        }
    }

    #[test]
    fn grids_cover_all_invocations() {
        assert_eq!(groups_for(1, [65535; 3]), [1, 1, 1]);
        assert_eq!(groups_for(65535 * 64, [65535; 3]), [65535, 1, 1]);
        for n in [65535 * 64 + 1, u64::from(u32::MAX)] {
            let [x, y, _] = groups_for(n, [65535; 3]);
            assert!(x <= 65535 && u64::from(x) * u64::from(y) * 64 >= n, "{n}: {x} {y}");
        }
    }
}
