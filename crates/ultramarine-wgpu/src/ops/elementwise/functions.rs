//! The functions of a dtype in WGSL: `unary_NAME` and `binary_NAME` for the schema's codes. A code without a function is
//! refused.

use crate::dtype::Dtype;
use crate::functions;
use crate::shader::Program;

macro_rules! text {
    ($name:literal) => {
        include_str!(concat!("../../../kernels/elementwise/", $name, ".wgsl"))
    };
}

/// Gives a program the functions of a dtype. `A` is its type of registers.
pub fn with_functions<'a>(program: Program<'a>, dtype: Dtype) -> Program<'a> {
    let program = program.item(&format!("alias A = {};", dtype.register()));
    match dtype {
        Dtype::Bool => program.library(text!("bool")),
        Dtype::Complex64 => {
            functions::complex64().fold(program, |program, text| program.library(text))
        }
        Dtype::Float64 => {
            let program = program.library(text!("float64")).library(text!("real"));
            let program = program.item("fn rounded(x: A) -> A { return x; }");
            functions::float64().fold(program, |program, text| program.library(text))
        }
        Dtype::Float32 | Dtype::Float16 | Dtype::Bfloat16 => {
            let rounded = match dtype {
                Dtype::Float16 => "f16_up(f16_down(x))",
                Dtype::Bfloat16 => "bf16_up(bf16_down(x))",
                _ => "x",
            };
            let rounded = format!("fn rounded(x: A) -> A {{ return {rounded}; }}");
            let program = program.library(text!("float32")).library(text!("real")).item(&rounded);
            functions::float32().fold(program, |program, text| program.library(text))
        }
        _ => {
            let own = if dtype.is_signed() { text!("signed") } else { text!("unsigned") };
            let bits = format!("const BITS: u32 = {}u;", 8 * dtype.bytes());
            program.library(text!("integer")).library(own).item(&bits)
        }
    }
}
