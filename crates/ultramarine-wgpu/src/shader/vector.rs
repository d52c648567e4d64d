//! Loads and stores of 4 elements at once, from and to buffers that are declared as arrays of such vectors.

use crate::dtype::Dtype;

/// Elements of a vector.
pub const FOUR: i64 = 4;

/// The WGSL type of 4 elements in a buffer.
pub fn vector_of(dtype: Dtype) -> &'static str {
    match dtype {
        Dtype::Bool | Dtype::Uint8 | Dtype::Int8 => "u32",
        Dtype::Uint16 | Dtype::Int16 | Dtype::Float16 | Dtype::Bfloat16 => "vec2<u32>",
        Dtype::Uint32 => "vec4<u32>",
        Dtype::Int32 => "vec4<i32>",
        Dtype::Float32 => "vec4<f32>",
        Dtype::Uint64 => "vec4<u64>",
        Dtype::Int64 => "vec4<i64>",
        Dtype::Float64 => "vec4<f64>",
        Dtype::Complex64 => "array<vec2<f32>, 4>",
    }
}

/// Expressions for the 4 elements of vector `w`, in registers.
pub fn elements(dtype: Dtype, w: &str) -> [String; 4] {
    let parts = ["x", "y", "z", "w"];
    let halves = [("x", 0), ("x", 16), ("y", 0), ("y", 16)];
    let bits = halves.map(|(part, shift)| match shift {
        0 => format!("({w}.{part} & 0xffffu)"),
        _ => format!("({w}.{part} >> 16u)"),
    });
    match dtype {
        Dtype::Bool | Dtype::Uint8 => [0, 8, 16, 24].map(|by| format!("(({w} >> {by}u) & 0xffu)")),
        Dtype::Int8 => [24, 16, 8, 0].map(|by| format!("(bitcast<i32>({w} << {by}u) >> 24u)")),
        Dtype::Uint16 => bits,
        Dtype::Int16 => bits.map(|bits| format!("(bitcast<i32>({bits} << 16u) >> 16u)")),
        Dtype::Float16 => bits.map(|bits| format!("f16_up({bits})")),
        Dtype::Bfloat16 => bits.map(|bits| format!("bf16_up({bits})")),
        Dtype::Complex64 => [0, 1, 2, 3].map(|i| format!("{w}[{i}]")),
        _ => parts.map(|part| format!("{w}.{part}")),
    }
}

/// An expression for a vector of 4 values in registers.
pub fn vector(dtype: Dtype, values: &[String; 4]) -> String {
    let bits = |value: &String| match dtype {
        Dtype::Float16 => format!("f16_down({value})"),
        Dtype::Bfloat16 => format!("bf16_down({value})"),
        Dtype::Int8 | Dtype::Int16 => format!("bitcast<u32>({value})"),
        _ => value.clone(),
    };
    match dtype {
        Dtype::Bool | Dtype::Uint8 | Dtype::Int8 => {
            let part = |i: usize| format!("(({} & 0xffu) << {}u)", bits(&values[i]), 8 * i);
            [0, 1, 2, 3].map(part).join(" | ")
        }
        _ if dtype.bytes() == 2 => {
            let pair = |i: usize| {
                format!("({} & 0xffffu) | ({} << 16u)", bits(&values[i]), bits(&values[i + 1]))
            };
            format!("vec2<u32>({}, {})", pair(0), pair(2))
        }
        _ => format!("{}({})", vector_of(dtype), values.join(", ")),
    }
}

/// The function `pick_NAME(at, step, room)`: 4 elements from a place on, as `Q`, whose parts are `x` to `w`. Those behind
/// `room` are zeros, or of a buffer of vectors anything.
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
            elements(dtype, "w").join(", ")
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
                .array("a", vector_of(dtype))
                .array("b", vector_of(dtype))
                .item(&(item + &pick("a", dtype, true)))
                .body(&body)
                .build();
            let module = compile::compile(&source.text).unwrap();
            patch::patch(&module, &Default::default()).unwrap();
        }
    }
}
