//! Programs that run in the kernel that makes random bits, and overwrite these bits: uniform and normal numbers,
//! dropout.

use super::program::Program;
use super::source::{
    FUNCTIONS, MOVES, constants, function, functions_and, make_function, pointers,
};
use crate::launch::{Dtype, Job, View};
use crate::ops::{headers, random};
use crate::program::{Source, index};
use std::fmt::Write;

const HEADERS: &[&str] =
    &functions_and::<3, { FUNCTIONS + 3 }>([headers::WALK, MOVES, random::HEADER]);
/// Maximum number of inputs.
const INPUTS: usize = 8;

/// The kernel of a program.
#[derive(Clone, Copy, PartialEq)]
pub struct Variant {
    /// The input that contains the random bits.
    pub bits: usize,
    /// True for 64-bit indices.
    pub wide: bool,
}

/// The input that contains the random bits of the previous command, if the program has one output, which uses the bits'
/// memory. All tensors have to be contiguous.
pub fn bits_of(program: &Program, first: &Job<'_>, job: &Job<'_>) -> Option<usize> {
    let bits = first.outputs.first()?;
    let [out] = &job.outputs[..] else { return None };
    let mut those = job.inputs.iter().enumerate().filter(|(_, v)| v.address == bits.address);
    let (k, input) = those.next()?;
    let in_fours = |v: &View<'_>| v.is_aligned((4 * v.dtype.bytes()).min(16));
    let fits = those.next().is_none()
        && input.dtype == Dtype::Uint32
        && job.inputs.len() == program.inputs
        && job.inputs.len() <= INPUTS
        && job.scalars.len() == program.constants
        && (out.address, out.len()) == (bits.address, bits.len())
        && out.dtype.bytes() == bits.dtype.bytes()
        && job.inputs.iter().chain([out]).all(in_fours);
    fits.then_some(k)
}

fn arguments(program: &Program, Variant { bits, wide }: Variant) -> String {
    format!("{} {bits} {}", program.name(), index(wide))
}

/// The name of the source.
pub fn name(program: &Program, variant: Variant) -> String {
    format!("fused_random {}", arguments(program, variant))
}

/// The source: `random_line` passes the bits to the program's function.
pub fn source(program: &Program, variant: Variant) -> Source {
    let (inputs, tensors) = (program.inputs, program.tensors());
    let list = |given: &str, one: &dyn Fn(usize) -> String| {
        let of = |k: usize| if k == variant.bits { given.to_owned() } else { one(k) };
        (0..=inputs).map(of).collect::<Vec<_>>().join(", ")
    };
    let (each, all) =
        (list("bits", &|k| format!("p{k}[i]")), list("bits[v]", &|k| format!("x{k}.at[v]")));
    let mut text = String::from("struct FusedLine {\n");
    for (k, dtype) in tensors.iter().enumerate() {
        let constness = if k < inputs { "const " } else { "" };
        let _ = writeln!(text, "  {constness}{}::T *p{k};", dtype.tag());
    }
    let _ = writeln!(
        text,
        "  FusedFunction f;
  __device__ __forceinline__ void one(i64 i, u32 bits) const {{ f({each}); }}
  __device__ __forceinline__ void four(i64 i, const u32 (&bits)[4]) const {{"
    );
    for (k, dtype) in tensors.iter().enumerate().filter(|(k, _)| *k != variant.bits) {
        let load = if k < inputs { format!(" fused_load(x{k}, p{k}, i);") } else { String::new() };
        let _ = writeln!(text, "    FusedPack<{}::T, 4> x{k};{load}", dtype.tag());
    }
    let _ = writeln!(
        text,
        "#pragma unroll
    for (int v = 0; v < 4; v++) f({all});
    fused_store(x{inputs}, p{inputs}, i);
  }}
}};"
    );
    let members: Vec<String> = (0..=inputs).map(|k| format!("p{k}")).collect();
    let parameters = format!(
        "{}const u32 *key, const i64 step, const i64 words, const i64 fourths, {}",
        pointers(program),
        constants(program)
    );
    let body = format!(
        "\n{}  const FusedLine to = {{{}, f}};
  random_line<{}>(key, step, words, fourths != 0, to);\n",
        make_function(program),
        members.join(", "),
        index(variant.wide)
    );
    Source::with_body(HEADERS, "fused_random", arguments(program, variant), parameters, body)
        .define(function(program) + &text)
        .bounded("FUSED_THREADS")
}
