//! The radix sort of long lanes: `radix.wgsl`.

use super::SORT;
use super::passes::Lanes;
use crate::dtype::{Dtype, Wgsl};
use crate::launch::{Job, count};
use crate::memory::Block;
use crate::program::Deferred;
use crate::shader::library::Library;
use crate::shader::source::Source;
use crate::shader::{Program, Tensor};
use std::fmt::Write as _;
use std::sync::Arc;
use ultramarine_abi::helper::Result;

const TEXT: &str = include_str!("../../../kernels/radix.wgsl");

/// Invocations of a workgroup, elements of its block, and elements of an invocation.
const GROUP: u32 = 256;
const BLOCK: u32 = 4096;
const EACH: u32 = BLOCK / GROUP;
/// Number of values of a digit, bits of a digit, and bits of a key.
const DIGITS: u32 = 256;
const BITS: u32 = 8;
const KEY: u32 = 32;
/// Number of elements of a lane from which the radix sort is worth it.
const LONG: u32 = 1 << 14;

/// The result type of `block_of`: the lane and the number of its blocks, the index of the block among them, its
/// first element, and its length.
const OWN: &str = "struct Block { lane: u32, blocks: u32, block: u32, first: u32, count: u32 }";

/// The kernels: for the first pass, which reads the elements, and for the others.
pub(super) struct Radix {
    first: Kernels,
    others: Kernels,
    sums: Deferred,
    /// The last pass, which writes the output.
    last: Option<Deferred>,
}

struct Kernels {
    count: Deferred,
    moves: Deferred,
}

/// The data that moves with the keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Payload {
    /// The elements' indices.
    Indices,
    /// The elements themselves, if they have 4 bytes; keys are made from them.
    Words,
}

/// Where a pass reads elements, and where it writes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Tensor,
    Workspace,
}

/// The elements from which keys are made.
struct Elements<'a> {
    dtype: Dtype,
    /// The function `key_of`.
    item: &'a str,
    payload: Payload,
}

impl Elements<'_> {
    /// Functions that read an element and write it.
    fn functions(&self, from: Place, to: Place) -> String {
        let words = self.payload == Payload::Words;
        let register = self.dtype.register();
        let from = match (from, words) {
            (Place::Tensor, false) => {
                "fn from_of(lane: u32) -> vec2<u32> { return vec2<u32>(locate2(11u, lane).x, word(2u)); }\n\
                 fn key_at(at: vec2<u32>, j: u32) -> u32 { return key_of(load_a(at.x + j * at.y)); }\n\
                 fn index_at(at: vec2<u32>, j: u32) -> u32 { return j; }\n"
                    .to_owned()
            }
            (Place::Tensor, true) => format!(
                "fn key_of_word(x: u32) -> u32 {{ return key_of(bitcast<{register}>(x)); }}\n\
                 fn from_of(lane: u32) -> vec2<u32> {{ return vec2<u32>(locate2(11u, lane).x, word(2u)); }}\n\
                 fn key_at(at: vec2<u32>, j: u32) -> u32 {{ return key_of(load_a(at.x + j * at.y)); }}\n\
                 fn index_at(at: vec2<u32>, j: u32) -> u32 {{ return bitcast<u32>(load_a(at.x + j * at.y)); }}\n"
            ),
            (Place::Workspace, false) => {
                "fn from_of(lane: u32) -> u32 { return lane * word(1u); }\n\
                 fn key_at(at: u32, j: u32) -> u32 { return keys[word(5u) + at + j]; }\n\
                 fn index_at(at: u32, j: u32) -> u32 { return indices[word(7u) + at + j]; }\n"
                    .to_owned()
            }
            (Place::Workspace, true) => format!(
                "fn key_of_word(x: u32) -> u32 {{ return key_of(bitcast<{register}>(x)); }}\n\
                 fn from_of(lane: u32) -> u32 {{ return lane * word(1u); }}\n\
                 fn key_at(at: u32, j: u32) -> u32 {{ return key_of_word(index_at(at, j)); }}\n\
                 fn index_at(at: u32, j: u32) -> u32 {{ return indices[word(7u) + at + j]; }}\n"
            ),
        };
        let put = match (to, words) {
            (Place::Tensor, _) => "store_out(locate2(11u, lane).y + place * word(3u), index);",
            (Place::Workspace, true) => "indices[word(8u) + lane * word(1u) + place] = index;",
            (Place::Workspace, false) => {
                "keys[word(6u) + lane * word(1u) + place] = key;\n\
                 indices[word(8u) + lane * word(1u) + place] = index;"
            }
        };
        format!("{from}fn put(lane: u32, place: u32, key: u32, index: u32) {{\n{put}\n}}\n")
    }
}

/// The source, with a copy of the lines of EACH for every element.
fn text() -> String {
    let mut text = String::new();
    for line in TEXT.lines() {
        match line.trim_start().strip_prefix("EACH ") {
            Some(each) => {
                (0..EACH).for_each(|k| _ = writeln!(text, "{}", each.replace('#', &k.to_string())));
            }
            None => _ = writeln!(text, "{line}"),
        }
    }
    text
}

/// A kernel of the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Count,
    Sums,
    Move,
}

impl Part {
    /// Its program.
    fn source(self, elements: &Elements<'_>, from: Place, to: Place) -> Source {
        let (call, shared) = match self {
            Self::Count => {
                ("radix_count(g, local);", "var<workgroup> digits: array<atomic<u32>, 256>;")
            }
            Self::Sums => ("radix_sums(g, local);", "var<workgroup> sums: array<u32, 512>;"),
            Self::Move => (
                match elements.payload {
                    Payload::Indices => "radix_move(g, local);",
                    Payload::Words => "radix_move_words(g, local);",
                },
                "var<workgroup> sums: array<u32, 512>;\nvar<workgroup> room: array<u32, 4352>;\n\
                 var<workgroup> columns: array<u32, 2112>;\nvar<workgroup> starts: array<u32, 256>;",
            ),
        };
        let (text, functions) = (text(), elements.functions(from, to));
        let mut library = Library::default();
        library.add(&text);
        library.add(&functions);
        let (a, out) = (
            Tensor { name: "a", dtype: elements.dtype },
            Tensor { name: "out", dtype: Dtype::Uint32 },
        );
        let mut tensors = Vec::new();
        tensors.extend((from == Place::Tensor).then_some(a));
        tensors.extend((to == Place::Tensor).then_some(out));
        let used = library.used_by(call);
        let program = Program::new(&tensors).array("keys", "u32").array("indices", "u32");
        let program = if used.contains("key_of") { program.item(elements.item) } else { program };
        let program = if used.contains("block_of") { program.item(OWN) } else { program };
        program.library(SORT).item(shared).item(&used).group_body(GROUP, call).build()
    }
}

impl Radix {
    /// The kernels for 32-bit keys, which the item makes from elements of a dtype. If `to_output`, the last pass writes
    /// indices or elements to the output.
    pub fn new(dtype: Dtype, item: &str, payload: Payload, to_output: bool) -> Self {
        let elements = Elements { dtype, item, payload };
        let kernel = |part: Part, from, to| Deferred::new(part.source(&elements, from, to));
        let kernels = |from| Kernels {
            count: kernel(Part::Count, from, Place::Workspace),
            moves: kernel(Part::Move, from, Place::Workspace),
        };
        let last = to_output.then(|| kernel(Part::Move, Place::Workspace, Place::Tensor));
        Self {
            first: kernels(Place::Tensor),
            others: kernels(Place::Workspace),
            sums: kernel(Part::Sums, Place::Workspace, Place::Workspace),
            last,
        }
    }

    /// Returns true if lanes are long enough.
    pub fn pays(length: u32) -> bool {
        length >= LONG
    }

    /// Words of workspace for counts and their totals, for `elements` elements in lanes that are long
    /// enough.
    pub fn counts(elements: u64) -> u64 {
        // A lane has at most a fifth more blocks than its elements fill.
        let blocks = elements / u64::from(BLOCK) * 5 / 4 + 4;
        (blocks + elements / u64::from(LONG) + 1) * u64::from(DIGITS)
    }

    /// Enqueues the passes. Keys and indices alternate between two buffers each, whose offsets are in their elements. They
    /// end in the second buffer, or in the output. Counts are stored at another offset.
    pub fn run(
        &self,
        job: &Job<'_>,
        of: &Lanes<'_>,
        (keys, indices, counts): ([u32; 2], [u32; 2], u32),
        out: Option<&Arc<Block>>,
    ) -> Result<()> {
        let lanes = of.lanes.elements()?;
        let blocks = count([lanes.into(), of.length.div_ceil(BLOCK).into()])?;
        let sums = count([lanes.into(), DIGITS.into()])?;
        let totals = counts.wrapping_add(count([blocks.into(), DIGITS.into()])?);
        let (work, programs) = (of.work.0, &job.device.programs);
        let passes = KEY / BITS;
        for pass in 0..passes {
            let to = (pass % 2) as usize;
            let from = 1 - to;
            let mut words = vec![of.length, of.steps[0], of.steps[1], pass * BITS];
            words.extend([keys[from], keys[to], indices[from], indices[to], counts, totals]);
            of.lanes.words(&mut words);
            let own = if pass == 0 { &self.first } else { &self.others };
            let input = (pass == 0).then_some(of.input);
            let read: Vec<_> = input.into_iter().chain([work, work]).collect();
            job.launch_groups(&own.count.get(programs)?, &read, blocks, &words)?;
            job.launch_groups(&self.sums.get(programs)?, &[work, work], sums, &words)?;
            match (&self.last, out) {
                (Some(last), Some(out)) if pass + 1 == passes => {
                    job.launch_groups(&last.get(programs)?, &[out, work, work], blocks, &words)?;
                }
                _ => job.launch_groups(&own.moves.get(programs)?, &read, blocks, &words)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shader::{compile, narrow, patch};

    #[test]
    fn all_kernels_compile() {
        let compiles = |source: Source| {
            let module = compile::compile(&source.text).unwrap_or_else(|why| panic!("{why}"));
            let module = narrow::narrow(&module, &source.bytes).unwrap();
            patch::patch(&module, &Default::default()).unwrap();
        };
        let places = [Place::Tensor, Place::Workspace];
        for (dtype, payload) in [
            (Dtype::Float32, Payload::Words),
            (Dtype::Float32, Payload::Indices),
            (Dtype::Int32, Payload::Words),
            (Dtype::Uint32, Payload::Words),
            (Dtype::Int8, Payload::Indices),
            (Dtype::Bfloat16, Payload::Indices),
        ] {
            let (key, function) = super::super::key_of(dtype);
            let item = super::super::key_item(dtype, key, function);
            let elements = Elements { dtype, item: &item, payload };
            for part in [Part::Count, Part::Sums, Part::Move] {
                for (from, to) in places.into_iter().flat_map(|from| places.map(|to| (from, to))) {
                    compiles(part.source(&elements, from, to));
                }
            }
        }
    }

    #[test]
    fn counts_have_room_for_all_blocks() {
        for length in [LONG, LONG + 1, 5 * BLOCK - 1, 5 * BLOCK + 1, 1 << 20] {
            for lanes in [1, 2, 3, 7, 100] {
                let blocks = u64::from(lanes * length.div_ceil(BLOCK) * DIGITS);
                let all = blocks + u64::from(lanes * DIGITS);
                assert!(all <= Radix::counts(u64::from(lanes * length)), "{lanes} of {length}");
            }
        }
    }
}
