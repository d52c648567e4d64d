//! Loads and stores of 4 elements at once, in buffers that are declared as arrays of such vectors.

use crate::dtype::Dtype;

/// Elements of a vector.
pub const FOUR: i64 = 4;

/// Limit on the bytes of a vector whose elements have at most 2 bytes.
pub const PACKED: usize = 16;

/// Returns the WGSL type of this many elements in a buffer: 4, or more if they have at most 2
/// bytes.
pub fn vector_of(dtype: Dtype, width: usize) -> &'static str {
    match (dtype, width * dtype.bytes() as usize) {
        (Dtype::Uint32, _) => "vec4<u32>",
        (Dtype::Int32, _) => "vec4<i32>",
        (Dtype::Float32, _) => "vec4<f32>",
        (Dtype::Uint64, _) => "vec4<u64>",
        (Dtype::Int64, _) => "vec4<i64>",
        (Dtype::Float64, _) => "vec4<f64>",
        (Dtype::Complex64, _) => "array<vec2<f32>, 4>",
        (_, 4) => "u32",
        (_, 8) => "vec2<u32>",
        _ => "vec4<u32>",
    }
}

/// The words of packed vector `w`.
fn words(dtype: Dtype, w: &str, width: usize) -> Vec<String> {
    match width * dtype.bytes() as usize / 4 {
        1 => vec![w.to_owned()],
        n => ["x", "y", "z", "w"].iter().take(n).map(|part| format!("{w}.{part}")).collect(),
    }
}

/// Expressions for the elements of vector `w`, in registers.
pub fn elements(dtype: Dtype, w: &str, width: usize) -> Vec<String> {
    if dtype == Dtype::Complex64 {
        return (0..width).map(|i| format!("{w}[{i}]")).collect();
    }
    if dtype.bytes() >= 4 {
        return ["x", "y", "z", "w"].map(|part| format!("{w}.{part}")).to_vec();
    }
    let bits = 8 * dtype.bytes();
    let part = |word: &str, shift: u64| match dtype {
        // The highest bits are shifted with their sign.
        Dtype::Int8 | Dtype::Int16 => {
            format!("(bitcast<i32>({word} << {}u) >> {}u)", 32 - bits - shift, 32 - bits)
        }
        _ => {
            let value = match shift + bits {
                32 => format!("({word} >> {shift}u)"),
                _ => format!("(({word} >> {shift}u) & {}u)", (1 << bits) - 1),
            };
            match dtype {
                Dtype::Float16 => format!("f16_up({value})"),
                Dtype::Bfloat16 => format!("bf16_up({value})"),
                _ => value,
            }
        }
    };
    let words = words(dtype, w, width);
    let parts = |word: &String| (0..32 / bits).map(|i| part(word, i * bits)).collect::<Vec<_>>();
    words.iter().flat_map(parts).collect()
}

/// An expression for a vector of values in registers.
pub fn vector(dtype: Dtype, values: &[String]) -> String {
    let kind = vector_of(dtype, values.len());
    if dtype.bytes() >= 4 {
        return format!("{kind}({})", values.join(", "));
    }
    let size = 8 * dtype.bytes() as usize;
    let bits = |(i, value): (usize, &String)| {
        let bits = match dtype {
            Dtype::Float16 => format!("f16_down({value})"),
            Dtype::Int8 | Dtype::Int16 => format!("(bitcast<u32>({value}) & {}u)", (1 << size) - 1),
            _ => format!("({value} & {}u)", (1 << size) - 1),
        };
        if i == 0 { bits } else { format!("({bits} << {}u)", i * size) }
    };
    let word = |values: &[String]| match (dtype, values) {
        (Dtype::Bfloat16, [low, high]) => format!("bf16_pair({low}, {high})"),
        _ => values.iter().enumerate().map(bits).collect::<Vec<_>>().join(" | "),
    };
    let words: Vec<_> = values.chunks(32 / size).map(word).collect();
    if words.len() == 1 { words.concat() } else { format!("{kind}({})", words.join(", ")) }
}

/// Returns the function `pick_NAME(at, step, room)`: 4 elements from a position on, as a `Q` with
/// parts `x` to `w`. Elements from `room` on are zeros, or arbitrary in a buffer of vectors.
pub fn pick(name: &str, dtype: Dtype, vectors: bool) -> String {
    let head = format!("fn pick_{name}(at: u32, step: u32, room: u32) -> Q {{\n");
    head + &match vectors {
        false => format!(
            "var v = Q();\nif (room > 0u) {{ v.x = load_{name}(at); }}\n\
             if (room > 1u) {{ v.y = load_{name}(at + step); }}\n\
             if (room > 2u) {{ v.z = load_{name}(at + 2u * step); }}\n\
             if (room > 3u) {{ v.w = load_{name}(at + 3u * step); }}\nreturn v;\n}}\n"
        ),
        true => format!(
            "let w = {name}[at / 4u];\nreturn Q({});\n}}\n",
            elements(dtype, "w", FOUR as usize).join(", ")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::Wgsl;
    use crate::shader::{Program, Tensor, compile, patch};

    #[test]
    fn vectors_of_every_dtype_are_loaded_and_stored() {
        for dtype in crate::dtype::ALL {
            let register = dtype.register();
            let item = format!("struct Q {{ x: {0}, y: {0}, z: {0}, w: {0} }}\n", register);
            let parts = ["x", "y", "z", "w"].map(|part| format!("v.{part}"));
            let body =
                format!("let v = pick_a(4u * i, 1u, 4u);\nb[i] = {};", vector(dtype, &parts));
            let source = Program::new(&[] as &[Tensor])
                .array("a", vector_of(dtype, 4))
                .array("b", vector_of(dtype, 4))
                .item(&(item + &pick("a", dtype, true)))
                .body(&body)
                .build();
            compiles(&source.text);
        }
    }

    #[test]
    fn short_elements_are_packed_in_wider_vectors() {
        let short = crate::dtype::ALL.into_iter().filter(|dtype| dtype.bytes() <= 2);
        for (dtype, width) in short.flat_map(|d| [(d, 8), (d, PACKED / d.bytes() as usize)]) {
            let kind = vector_of(dtype, width);
            let value = vector(dtype, &elements(dtype, "w", width));
            let body = format!("let w = a[i];\nb[i] = {value};");
            let program = Program::new(&[] as &[Tensor]).array("a", kind).array("b", kind);
            compiles(&program.body(&body).build().text);
        }
    }

    fn compiles(text: &str) {
        let module = compile::compile(text).unwrap();
        patch::patch(&module, &Default::default()).unwrap();
    }
}
