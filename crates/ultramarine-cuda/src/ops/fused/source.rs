//! Generates the CUDA C of programs: the function of an element, and the kernels around it.

use super::layout;
use super::program::{Program, Step};
use crate::launch::Dtype;
use crate::ops::elementwise::{self, rule};
use crate::ops::headers;
use crate::ops::nn::{norm, row_kernels};
use crate::ops::reduce::fold;
use crate::program::Source;
use std::fmt::Write;
use ultramarine_abi::schema::{binary, unary};

/// Header that comes after the functions.
pub const MOVES: &str = include_str!("../../../kernels/fused.cuh");
const HEADERS: &[&str] = &functions_and::<1, { FUNCTIONS + 1 }>([MOVES]);
const FOLD_HEADERS: &[&str] = &functions_and::<2, { FUNCTIONS + 2 }>([MOVES, fold::HEADER]);
const NORM_HEADERS: &[&str] = &functions_and::<5, { FUNCTIONS + 5 }>([
    headers::WALK,
    MOVES,
    fold::HEADER,
    row_kernels::HEADER,
    norm::HEADER,
]);
/// Headers of the functions.
pub const FUNCTIONS: usize = elementwise::FUNCTIONS.len();

/// Concatenates the functions and further headers.
pub const fn functions_and<const N: usize, const ALL: usize>(
    more: [&'static str; N],
) -> [&'static str; ALL] {
    assert!(ALL == FUNCTIONS + N);
    let mut all = [""; ALL];
    let mut i = 0;
    while i < ALL {
        all[i] = if i < FUNCTIONS { elementwise::FUNCTIONS[i] } else { more[i - FUNCTIONS] };
        i += 1;
    }
    all
}

/// Maximum number of copies of an element's code in a kernel, times its weight.
const MOST: usize = 512;

/// The kernels of a program. The layouts of a command's tensors determine the variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Variant {
    /// All tensors are contiguous and accessed in packs.
    Flat,
    /// The same, for several commands in one launch.
    Many {
        /// Bit `k`: input `k` has a single element.
        ones: u64,
    },
    /// Any strides.
    Walk {
        /// True for packs along the innermost axis, false for single elements.
        packs: bool,
        /// Number of outer axes that the kernel supports.
        rank: usize,
        /// True for 64-bit indices.
        wide: bool,
    },
}

/// The kernel of a program that ends with a norm; it computes both in one pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NormVariant {
    /// The walk over the program's inputs, its further outputs, the norm's output and its parameters.
    pub fold: fold::Variant,
    /// The threads of a row.
    pub team: row_kernels::Team,
    /// Bit `k`: tensor `k` has one element for a whole row.
    pub one: u64,
    /// True for a layer norm, which has a bias.
    pub bias: bool,
}

/// Elements of a pack: 16 bytes of the narrowest dtype, but at most 32 bytes of the widest, and
/// fewer if the code would get too long.
pub fn pack(program: &Program) -> usize {
    let bytes = || program.tensors().into_iter().map(|d| d.bytes() as usize);
    let (most, least) = (bytes().max().unwrap_or(1), bytes().min().unwrap_or(1));
    let mut pack = (16 / least).min(32 / most).max(1);
    while pack > 1 && pack * most > 4 && pack * program.weight() > MOST {
        pack /= 2;
    }
    pack
}

/// Packs of each tensor that a thread has in flight: about 64 bytes of inputs.
pub fn unrolled(program: &Program, pack: usize) -> usize {
    let inputs = &program.dtypes[..program.inputs];
    let bytes: usize = inputs.iter().map(|d| d.bytes() as usize * pack).sum();
    let most = (MOST / 2 / (pack * program.weight()).max(1)).max(1);
    match (64 / bytes.max(1)).min(most) {
        0 | 1 => 1,
        2 | 3 => 2,
        _ => 4,
    }
}

/// `FusedFunction`: constants are its members, and the operator takes elements in their storage
/// type. Each step has a stored value (`s`) and a value for arithmetic (`v`); the compiler removes
/// unused ones.
pub fn function(program: &Program) -> String {
    let mut text = String::from("struct FusedFunction {\n");
    let tag = |value: usize| program.dtypes[value].tag();
    for value in program.inputs..program.first() {
        let _ = writeln!(text, "  {}::T c{value};", tag(value));
    }
    let inputs = (0..program.inputs).map(|i| format!("const {}::T s{i}", tag(i)));
    let outputs = program.outputs.iter().enumerate().map(|(i, o)| format!("{}::T &o{i}", tag(*o)));
    let parameters: Vec<String> = inputs.chain(outputs).collect();
    let parameters = parameters.join(", ");
    let _ = writeln!(text, "  __device__ __forceinline__ void operator()({parameters}) const {{");
    for value in 0..program.dtypes.len() {
        let d = tag(value);
        let stored = match value.checked_sub(program.first()).map(|i| program.steps[i]) {
            None if value < program.inputs => String::new(),
            None => format!("const {d}::T s{value} = c{value}; "),
            Some(step) => format!("const {d}::T s{value} = {}; ", expression(program, step, d)),
        };
        let _ = writeln!(text, "    {stored}const {d}::A v{value} = {d}::up(s{value});");
    }
    for (i, value) in program.outputs.iter().enumerate() {
        let _ = writeln!(text, "    o{i} = s{value};");
    }
    text.push_str("  }\n");
    if in_pairs(program) {
        text.push_str(&pairs(program));
    }
    text.push_str("};\n");
    text
}

/// True if elements are computed in pairs: all values have the same half dtype, and the program contains
/// operations that are available for pairs.
fn in_pairs(program: &Program) -> bool {
    let first = program.dtypes[0];
    first.is_half()
        && program.dtypes.iter().all(|d| *d == first)
        && program.steps.iter().any(|step| pair_expression(program, *step).is_some())
}

/// The function of two elements at once, as packed words.
fn pairs(program: &Program) -> String {
    let d = program.dtypes[0].tag();
    let inputs = (0..program.inputs).map(|i| format!("const u32 s{i}"));
    let outputs = (0..program.outputs.len()).map(|i| format!("u32 &o{i}"));
    let parameters: Vec<String> = inputs.chain(outputs).collect();
    let mut text =
        format!("  __device__ __forceinline__ void pair({}) const {{\n", parameters.join(", "));
    for value in program.inputs..program.first() {
        let _ =
            writeln!(text, "    const u32 s{value} = c{value}.bits | (u32)c{value}.bits << 16;");
    }
    for (i, step) in program.steps.iter().enumerate() {
        let of = |k: u32| match *step {
            Step::Unary(code, a) => {
                format!("un_{}<{d}>(pair_up<{d}>(s{a}, {k}))", rule::unary_name(code))
            }
            Step::Binary(code, a, b) => {
                let name = rule::binary_name(code);
                format!("bi_{name}<{d}>(pair_up<{d}>(s{a}, {k}), pair_up<{d}>(s{b}, {k}))")
            }
            // Such steps do not occur, because all values have the same dtype.
            Step::Select(_, a, _) | Step::Cast(a) => format!("pair_up<{d}>(s{a}, {k})"),
        };
        let made = pair_expression(program, *step)
            .unwrap_or_else(|| format!("pair_down<{d}>({}, {})", of(0), of(1)));
        let _ = writeln!(text, "    const u32 s{} = {made};", program.first() + i);
    }
    for (i, value) in program.outputs.iter().enumerate() {
        let _ = writeln!(text, "    o{i} = s{value};");
    }
    text.push_str("  }\n");
    text
}

/// The expression of a step that is available for pairs.
fn pair_expression(program: &Program, step: Step) -> Option<String> {
    let d = program.dtypes[0].tag();
    Some(match step {
        Step::Binary(binary::ADD, a, b) => format!("pair_add<{d}>(s{a}, s{b})"),
        Step::Binary(binary::SUBTRACT, a, b) => format!("pair_subtract<{d}>(s{a}, s{b})"),
        Step::Binary(binary::MULTIPLY, a, b) => format!("pair_multiply<{d}>(s{a}, s{b})"),
        Step::Unary(unary::SQUARE, a) => format!("pair_multiply<{d}>(s{a}, s{a})"),
        _ => return None,
    })
}

/// The expression whose value a step stores.
fn expression(program: &Program, step: Step, to: &str) -> String {
    let tag = |value: usize| program.dtypes[value].tag();
    match step {
        Step::Unary(code, a) => {
            format!("{to}::down(un_{}<{}>(v{a}))", rule::unary_name(code), tag(a))
        }
        Step::Binary(code, a, b) => {
            format!("{to}::down(bi_{}<{}>(v{a}, v{b}))", rule::binary_name(code), tag(a))
        }
        Step::Select(a, b, c) => format!("v{a} ? s{b} : s{c}"),
        Step::Cast(a) if tag(a) == to => format!("s{a}"),
        Step::Cast(a) => format!("convert<{to}, {}>(s{a})", tag(a)),
    }
}

/// Pointers of the tensors as parameters, inputs first.
pub fn pointers(program: &Program) -> String {
    let tensors = program.tensors();
    let one = |(k, dtype): (usize, &Dtype)| match k < program.inputs {
        true => format!("const {}::T *p{k}, ", dtype.tag()),
        false => format!("{}::T *p{k}, ", dtype.tag()),
    };
    tensors.iter().enumerate().map(one).collect()
}

/// The parameter with the constants.
pub fn constants(program: &Program) -> String {
    format!("const FusedConstants<{}> constants", program.constants.max(1))
}

/// Constructs the function `f` from the constants' parameter.
pub fn make_function(program: &Program) -> String {
    let mut text = String::from("  FusedFunction f;\n");
    for i in 0..program.constants {
        let value = program.inputs + i;
        let d = program.dtypes[value].tag();
        let _ = writeln!(text, "  f.c{value} = fused_constant<{d}>(constants.bits[{i}]);");
    }
    text
}

/// The loop over the elements of packs named `x0`, `x1` and so on, each indexed with `[u]`.
fn calls(program: &Program, pack: usize) -> String {
    let tensors = program.inputs + program.outputs.len();
    let pairs = pack > 1 && in_pairs(program);
    let (function, part, count) =
        if pairs { ("f.pair", "pair", pack / 2) } else { ("f", "at", pack) };
    let all: Vec<String> = (0..tensors).map(|k| format!("x{k}[u].{part}[v]")).collect();
    format!("for (int v = 0; v < {count}; v++) {function}({});", all.join(", "))
}

/// The name of a variant's source.
pub fn name(program: &Program, variant: Variant) -> String {
    format!("{} {}", template(variant), arguments(program, variant))
}

fn template(variant: Variant) -> &'static str {
    match variant {
        Variant::Flat => "fused_flat",
        Variant::Many { .. } => "fused_many",
        Variant::Walk { .. } => "fused_walk",
    }
}

/// The part of a source's name that identifies a variant among those of its template.
fn arguments(program: &Program, variant: Variant) -> String {
    match variant {
        Variant::Flat => program.name(),
        Variant::Many { ones } => format!("{} {ones:x}", program.name()),
        Variant::Walk { packs, rank, wide } => {
            let (packs, wide) =
                (if packs { "packs" } else { "single" }, if wide { 64 } else { 32 });
            format!("{} {packs} {rank} {wide}", program.name())
        }
    }
}

/// The source of a variant.
pub fn source(program: &Program, variant: Variant) -> Source {
    let tensors = program.tensors();
    let pack = match variant {
        Variant::Walk { packs: false, .. } => 1,
        _ => pack(program),
    };
    let u = unrolled(program, pack);
    let k = tensors.len();
    let walk = match variant {
        Variant::Flat => "const i64 n, const i64 aligned".to_owned(),
        Variant::Many { .. } => format!("const FusedMany<{k}, {}> many", many(program)),
        Variant::Walk { rank, .. } => format!("const FusedWalk<{k}, {rank}> w"),
    };
    let pointers = match variant {
        Variant::Many { .. } => String::new(),
        _ => pointers(program),
    };
    let parameters = format!("{pointers}{walk}, {}", constants(program));
    let mut text = format!("\n{}", make_function(program));
    for (k, dtype) in tensors.iter().enumerate() {
        let _ = writeln!(text, "  FusedPack<{}::T, {pack}> x{k}[{u}];", dtype.tag());
    }
    match variant {
        Variant::Flat => flat(&mut text, program, pack, u, ("blockIdx.x", 0)),
        Variant::Many { ones } => {
            text.push_str("  const int part = fused_part(many);\n");
            text.push_str(
                "  const i64 n = many.part[part].n, aligned = many.part[part].aligned;\n",
            );
            for (k, dtype) in tensors.iter().enumerate() {
                let (constness, d) = (if k < program.inputs { "const " } else { "" }, dtype.tag());
                let _ = writeln!(
                    text,
                    "  {constness}{d}::T *p{k} = ({constness}{d}::T *)many.part[part].at[{k}];"
                );
            }
            flat(&mut text, program, pack, u, ("(blockIdx.x - many.part[part].begin)", ones));
        }
        Variant::Walk { wide, .. } => walked(&mut text, program, pack, u, wide),
    }
    Source::with_body(HEADERS, template(variant), arguments(program, variant), parameters, text)
        .define(function(program))
        .bounded("FUSED_THREADS")
}

/// Number of commands that fit in a kernel's parameters.
pub fn many(program: &Program) -> usize {
    let rest = layout::PARAMETERS - 64 - 8 * program.constants.max(1);
    (rest / (8 * (program.inputs + program.outputs.len() + 2))).min(64)
}

/// All tensors are one contiguous row, except inputs in the mask `ones`, which have a single element. Full blocks have no
/// branches between their loads.
fn flat(text: &mut String, program: &Program, pack: usize, u: usize, (block, ones): (&str, u64)) {
    let tensors = program.inputs + program.outputs.len();
    let (inputs, outputs) = (0..program.inputs, program.inputs..tensors);
    let put = |text: &mut String, function: &str, k: usize, rest: &str| {
        if ones >> k & 1 == 1 {
            let _ = writeln!(text, "      fused_load(x{k}[u], p{k}, (i64)0, false, {pack});");
            return;
        }
        let _ = writeln!(text, "      {function}(x{k}[u], p{k}, i{rest});");
    };
    let every = format!(
        "#pragma unroll
    for (int u = 0; u < {u}; u++) {{
      const i64 i = first + (u * FUSED_THREADS + threadIdx.x) * {pack};
"
    );
    let _ = write!(
        text,
        "  const i64 first = (i64){block} * (FUSED_THREADS * {u} * {pack});
  const bool full = aligned && first + FUSED_THREADS * {u} * {pack} <= n;
  if (full) {{
{every}"
    );
    inputs.clone().for_each(|k| put(text, "fused_load", k, ""));
    let _ = write!(text, "    }}\n  }} else {{\n{every}");
    inputs.for_each(|k| put(text, "fused_load_last", k, ", n"));
    let _ = write!(
        text,
        "    }}
  }}
#pragma unroll
  for (int u = 0; u < {u}; u++) {{
#pragma unroll
    {}
  }}
  if (full) {{
{every}",
        calls(program, pack)
    );
    outputs.clone().for_each(|k| put(text, "fused_store", k, ""));
    let _ = write!(text, "    }}\n  }} else {{\n{every}");
    outputs.for_each(|k| put(text, "fused_store_last", k, ", n"));
    text.push_str("    }\n  }\n");
}

/// Tensors of any strides, in tiles.
fn walked(text: &mut String, program: &Program, pack: usize, u: usize, wide: bool) {
    let tensors = program.inputs + program.outputs.len();
    let index = if wide { "i64" } else { "i32" };
    let _ = write!(
        text,
        "  {index} at[{u}][{tensors}];
  int count[{u}];
#pragma unroll
  for (int u = 0; u < {u}; u++) {{
    {index} row, column;
    count[u] = 0;
    if (fused_pack<{pack}>(w, ({index})blockIdx.x * {u} + u, row, column)) {{
      fused_place(w, row, column, at[u]);
      const {index} rest = ({index})w.columns - column;
      count[u] = rest < {pack} ? (int)rest : {pack};
"
    );
    let place = |k: usize| {
        let whole = format!("count[u] == {pack} && (w.whole >> {k} & 1)");
        format!("(x{k}[u], p{k} + at[u][{k}], ({index})w.inner[{k}], {whole}, count[u]);")
    };
    for k in 0..program.inputs {
        let _ = writeln!(text, "      fused_load{}", place(k));
    }
    let _ = write!(
        text,
        "    }}
  }}
#pragma unroll
  for (int u = 0; u < {u}; u++) {{
    if (count[u] > 0) {{
#pragma unroll
      {}
",
        calls(program, pack)
    );
    for k in program.inputs..tensors {
        let _ = writeln!(text, "      fused_store{}", place(k));
    }
    text.push_str("    }\n  }\n");
}

/// The functor for `reduce.cuh` that returns values of output 0 and writes the other outputs. Its
/// tensors are the inputs, followed by the other outputs.
fn functor(program: &Program, variant: &fold::Variant) -> String {
    let tensors = program.tensors();
    let (inputs, value) = (program.inputs, tensors[program.inputs].tag());
    // Indices in the list of outputs without output 0.
    let others: Vec<(usize, &str)> =
        tensors[inputs + 1..].iter().enumerate().map(|(i, d)| (inputs + i, d.tag())).collect();
    let (count, vector, index) = (inputs + others.len(), variant.vector, variant.index());
    let mut text = String::from("struct FusedFold {\n");
    for (k, dtype) in tensors[..inputs].iter().enumerate() {
        let _ = writeln!(text, "  const {}::T *p{k};", dtype.tag());
    }
    others.iter().for_each(|(k, d)| text.push_str(&format!("  {d}::T *p{k};\n")));
    let list = |one: &dyn Fn(usize) -> String| {
        let mut all: Vec<String> = (0..inputs).map(one).collect();
        all.push("value".to_owned());
        all.extend(others.iter().map(|(k, _)| one(*k)));
        all.join(", ")
    };
    let _ = write!(
        text,
        "  FusedFunction f;
  __device__ __forceinline__ {value}::A operator()(const {index} (&at)[{count}]) const {{
    {value}::T value;
"
    );
    others.iter().for_each(|(k, d)| text.push_str(&format!("    {d}::T e{k};\n")));
    let read = |k: usize| if k < inputs { format!("p{k}[at[{k}]]") } else { format!("e{k}") };
    let _ = writeln!(text, "    f({});", list(&read));
    others.iter().for_each(|(k, _)| text.push_str(&format!("    p{k}[at[{k}]] = e{k};\n")));
    let _ = write!(
        text,
        "    return {value}::up(value);
  }}
  __device__ __forceinline__ void many(const {index} (&at)[{count}], {value}::A (&x)[{vector}]) const {{
"
    );
    for (k, dtype) in tensors[..inputs].iter().enumerate() {
        let whole = variant.unit >> k & 1 == 1;
        let pack = format!("    FusedPack<{}::T, {vector}> x{k}; fused_load", dtype.tag());
        let _ = writeln!(text, "{pack}(x{k}, p{k} + at[{k}], 0, {whole}, {vector});");
    }
    for (k, d) in &others {
        let _ = writeln!(text, "    FusedPack<{d}::T, {vector}> x{k};");
    }
    let _ = write!(
        text,
        "#pragma unroll
    for (int v = 0; v < {vector}; v++) {{
      {value}::T value;
      f({});
      x[v] = {value}::up(value);
    }}
",
        list(&|k| format!("x{k}.at[v]"))
    );
    others.iter().for_each(|(k, _)| {
        text.push_str(&format!("    fused_store(x{k}, p{k}, at[{k}]);\n"));
    });
    text.push_str("  }\n};\n");
    text
}

/// The source of a one-pass epilogue with an operation such as `Sum<F32>`.
pub fn fold_source(program: &Program, op: &str, variant: &fold::Variant) -> Source {
    let tensors = program.tensors();
    let (mut pointers, mut members) = (String::new(), String::new());
    let others = tensors[program.inputs + 1..].iter().enumerate();
    let inputs = tensors[..program.inputs].iter().enumerate().map(|(k, d)| (k, "const ", d));
    for (k, kind, d) in inputs.chain(others.map(|(i, d)| (program.inputs + i, "", d))) {
        let _ = write!(pointers, "{kind}{}::T *p{k}, ", d.tag());
        let _ = write!(members, "p{k}, ");
    }
    let parameters = format!("{pointers}{}, {}", constants(program), variant.parameters(op));
    let body = format!(
        "\n{}  const FusedFold fold = {{{members}f}};\n  {}\n",
        make_function(program),
        variant.call(op, "FusedFold").replace("(f,", "(fold,")
    );
    let arguments = format!("{} {op} {}", program.name(), variant.name());
    Source::with_body(FOLD_HEADERS, variant.template(), arguments, parameters, body)
        .define(function(program) + &functor(program, variant))
        .bounded(256)
}

/// The source of a one-pass norm of output 0, which has the given dtype.
pub fn norm_source(program: &Program, dtype: Dtype, variant: &NormVariant) -> Source {
    let NormVariant { fold, team, one, bias } = variant;
    let tensors = program.tensors();
    let (mut pointers, mut members) = (String::new(), String::new());
    let others = tensors[program.inputs + 1..].iter().enumerate();
    let inputs = tensors[..program.inputs].iter().enumerate().map(|(k, d)| (k, "const ", d));
    for (k, kind, d) in inputs.chain(others.map(|(i, d)| (program.inputs + i, "", d))) {
        let _ = write!(pointers, "{kind}{}::T *p{k}, ", d.tag());
        let _ = write!(members, "p{k}, ");
    }
    let (d, own, index, k) = (dtype.tag(), tensors.len() - 1, fold.index(), fold.tensors);
    let (kept, row_kernels::Team { threads, times, vector }) = (fold.ranks.0, *team);
    let from = format!(
        "struct FusedRow {{
  FusedFold fold;
  __device__ __forceinline__ void operator()(const {index} (&base)[{k}], int at, {d}::A (&x)[{vector}]) const {{
    {index} all[{own}];
#pragma unroll
    for (int k = 0; k < {own}; k++) all[k] = base[k] + ({one}ull >> k & 1 ? 0 : at);
    FoldRead<{vector}>::of(fold, all, x);
  }}
}};
"
    );
    let parameters = format!(
        "{pointers}{}, {d}::T *out, const {d}::T *weight, const {d}::T *bias, const double eps, const Fold<{k}, {kept}, 1> w",
        constants(program)
    );
    let body = format!(
        "\n{}  const FusedRow from = {{{{{members}f}}}};
  norm_rows_of<{d}, FusedRow, {bias}, {k}, {kept}, {index}, {threads}, {times}, {vector}, {one}, {own}>(from, out, weight, bias, eps, w);\n",
        make_function(program)
    );
    let name = fold.name();
    let arguments =
        format!("{} {d} {bias} {name} {threads} {times} {vector} {one:x}", program.name());
    Source::with_body(NORM_HEADERS, "norm_rows_of", arguments, parameters, body)
        .define(function(program) + &functor(program, fold) + &from)
        .bounded(team.block())
}
