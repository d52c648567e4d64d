//! The kernel of ATTENTION with matrix units: `attention_units.wgsl`, with the parts that depend on
//! the size of heads.

use super::source::{Attention, variables};
use crate::dtype::Dtype;
use crate::hal::Units;
use crate::ops::units::{self, Load, MEET, SIDE as UNIT};
use crate::shader::source::Source;
use std::fmt::Write as _;

const TEXT: &str = include_str!("../../../../kernels/native/attention_units.wgsl");

/// Invocations of a workgroup, and its rows.
const THREADS: u32 = 128;
const ROWS: u32 = 64;
/// Supported sizes of heads: multiples of the first number, up to the second.
const SIZES: (u32, u32) = (32, 128);
/// Vectors between rows of powers: 32 keys, and 8 elements of padding.
const POWERS: u32 = 5;
/// Elements between units of sums in `meet`, and the total, with two units for each subgroup.
const APART: u32 = UNIT * MEET + UNIT;
const KEPT: u32 = 4 * 2 * APART;

/// Vectors between lines of queries, keys and values.
fn pitch(size: u32) -> u32 {
    size / 8 + 1
}

/// True for heads of a supported size, on devices with enough shared memory.
pub fn fits(size: u32, group_memory: u32) -> bool {
    let vectors = ROWS * (pitch(size) + POWERS);
    let some = 64;
    size.is_multiple_of(SIZES.0)
        && size <= SIZES.1
        && 16 * vectors + 4 * KEPT + some <= group_memory
}

/// The kernel for heads whose queries and values have the same size. Queries, keys and values are bound last, in vectors
/// of 8.
pub fn source(attention: Attention, how: Units) -> Source {
    let size = attention.value_size;
    let (line, parts) = (pitch(size), size / UNIT);
    let [mut held, mut scores, mut declare, mut reset, mut values, mut store] =
        [const { String::new() }; 6];
    let two = UNIT / 8;
    let load = |name, array, left, pitch, rows| Load { name, array, left, pitch, rows };
    let loads = [
        load("queries", "lines", true, line, true),
        load("keys", "lines", false, line, false),
        load("values", "lines", false, line, true),
        load("powers", "powers", true, POWERS, true),
    ];
    let [queries, keys, value, powers] = loads;
    for d in 0..parts {
        let at = format!("queries + {}u", two * d);
        _ = writeln!(held, "let q{d} = {};", queries.unit(how, &at));
        for n in 0..2 {
            let sums = if d == 0 { "Sums()".to_owned() } else { format!("c{n}_{}", d - 1) };
            let key = keys.unit(how, &format!("{}u", UNIT * n * line + two * d));
            let product = units::multiplied(how, &format!("q{d}"), &key, &sums);
            _ = writeln!(scores, "let c{n}_{d} = {product};");
        }
        _ = writeln!(declare, "var o{d} = Sums();");
        _ = writeln!(reset, "o{d} = Sums();");
    }
    for n in 0..2 {
        let at = format!("warp * {}u + {}u", 2 * APART, APART * n);
        scores += &(units::kept(how, &format!("c{n}_{}", parts - 1), &at) + "\n");
        let at = format!("from_powers + {}u", two * n);
        _ = writeln!(values, "let p{n} = {};", powers.unit(how, &at));
        for d in 0..parts {
            let value = value.unit(how, &format!("{}u", (32 + UNIT * n) * line + two * d));
            let product = units::multiplied(how, &format!("p{n}"), &value, &format!("o{d}"));
            _ = writeln!(values, "o{d} = {product};");
        }
    }
    for d in 0..parts {
        _ = writeln!(
            store,
            "{}\nworkgroupBarrier();\n\
             if (here) {{ store_results(warp, {}u, joined.x, total); }}\nworkgroupBarrier();",
            units::kept(how, &format!("o{d}"), &format!("warp * {}u", 2 * APART)),
            UNIT * d
        );
    }
    let scores = format!("{{\n{scores}}}");
    // All loads of a step come before the first store, without branches around them, because compilers wait at
    // branches.
    let [mut fetch_keys, mut fetch_values, mut put_keys, mut put_values] =
        [const { String::new() }; 4];
    for i in 0..(32 * size / 8).div_ceil(THREADS) {
        let v = format!("(local + {}u)", i * THREADS);
        let (line, part) = (format!("{v} / EIGHTS"), format!("{v} % EIGHTS"));
        for (name, fetch, put, first) in [
            ("key", &mut fetch_keys, &mut put_keys, 0),
            ("value", &mut fetch_values, &mut put_values, 32),
        ] {
            _ = writeln!(declare, "var {name}{i} = Eight();");
            _ = writeln!(fetch, "{name}{i} = fetch_{name}(key + {line}, end, {part});");
            _ = writeln!(
                put,
                "if ({v} < 32u * EIGHTS) {{ put_inside({first}u + {line}, {part}, {name}{i}, key + {line} < end); }}"
            );
        }
    }
    let text = TEXT
        .replace("QUERIES_HELD", &held)
        .replace("SCORES", &scores)
        .replace("FETCH_KEYS", &fetch_keys)
        .replace("FETCH_VALUES", &fetch_values)
        .replace("PUT_KEYS", &put_keys)
        .replace("PUT_VALUES", &put_values)
        .replace("DECLARE", &declare)
        .replace("RESET", &reset)
        .replace("      VALUES\n", &values)
        .replace("  STORE\n", &store);
    let arrays = [("lines", ROWS * line), ("powers", ROWS * POWERS)];
    let program = attention.program(|name| !["q", "k", "v"].contains(&name));
    let program = units::declared(program, (how, attention.dtype), (&arrays, &loads), KEPT);
    let items = format!(
        "var<workgroup> again: u32;\n{}const LINE: u32 = {line}u;\nconst EIGHTS: u32 = {}u;\nconst LINES: u32 = 1u;\n{}{}\
         fn value_element(key: u32, e: u32) -> f32 {{\n\
         return half_of(v[place(V, batch, key_head, key) / 8u + e / 8u], e % 8u);\n}}\n{text}",
        weights(attention.dtype),
        size / 8,
        attention.masks(),
        variables(&["key_end", "batch", "first_head", "key_head", "seen", "head_of", "query_of"]),
    );
    let program =
        ["q", "k", "v"].into_iter().fold(program, |program, name| program.array(name, "Eight"));
    super::source::with_functions(program.item(&items))
        .group_body(THREADS, "attend_units(g, local);")
        .build()
}

/// The function `eight_weights`, which rounds non-negative numbers to the half dtype, and the limit of a step's sum of weights
/// above which one of the weights may overflow it. NaN is not handled here, because the rows' totals contain it.
fn weights(dtype: Dtype) -> String {
    let (highest, bits) = match dtype {
        Dtype::Bfloat16 => ("1e20", "return (bits + 0x7fffu + ((bits >> 16u) & 1u)) >> 16u;"),
        // In [0.5, 1), float32's unit in the last place is 2^-24, which is the step between
        // float16's subnormals.
        _ => (
            "32768.0",
            "let normal = ((bits + 0xfffu + ((bits >> 13u) & 1u)) >> 13u) - 0x1c000u;\n\
             return select(normal, bitcast<u32>(x + 0.5) - 0x3f000000u, x < 6.103515625e-5);",
        ),
    };
    let pair =
        |x: &str, y: &str| format!("(weight_bits({x}) & 0xffffu) | (weight_bits({y}) << 16u)");
    let pairs = [("x.x", "x.y"), ("x.z", "x.w"), ("y.x", "y.y"), ("y.z", "y.w")];
    let pairs = pairs.map(|(x, y)| pair(x, y)).join(", ");
    format!(
        "const HIGHEST: f32 = {highest};\n\
         fn weight_bits(x: f32) -> u32 {{\nlet bits = bitcast<u32>(x);\n{bits}\n}}\n\
         fn eight_weights(x: vec4<f32>, y: vec4<f32>) -> Eight {{ return bitcast<Eight>(vec4<u32>({pairs})); }}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shader::{compile, halves, narrow};

    #[test]
    fn attention_by_units_compiles() {
        for (dtype, how, size) in [
            (Dtype::Float16, Units::Native, 128),
            (Dtype::Float16, Units::Native, 64),
            (Dtype::Bfloat16, Units::Native, 128),
            (Dtype::Bfloat16, Units::Emulated, 32),
        ] {
            let attention = Attention { dtype, bools: size == 64, value_size: size };
            let source = source(attention, how);
            let module = compile::compile(&source.text).unwrap_or_else(|why| panic!("{why}"));
            halves::made(&narrow::narrow(&module, &source.bytes).unwrap()).unwrap();
        }
    }

    #[test]
    fn heads_fit_into_shared_memory() {
        assert!(fits(128, 49152) && fits(64, 32768) && fits(96, 49152));
        // Too large for the device's memory; not a multiple of 32; above the maximum.
        assert!(!fits(128, 32768) && !fits(80, 49152) && !fits(160, 65536));
    }
}
