//! The WGSL functions of a dtype: `unary_NAME` and `binary_NAME` for the schema's codes. Codes without a function are
//! refused.

use crate::dtype::{Dtype, Wgsl};
use crate::functions;
use crate::shader::Program;
use crate::shader::library::{Library, renamed};
use ultramarine_abi::schema::{self, OpId, Output, op};

macro_rules! text {
    ($name:literal) => {
        include_str!(concat!("../../../kernels/elementwise/", $name, ".wgsl"))
    };
}

/// The functions of a dtype, and the declarations that they need: the alias `A` of its register type, the width of
/// integers, and the rounding of floats.
#[derive(Clone)]
pub struct Functions {
    library: Library<'static>,
    items: String,
}

impl Functions {
    /// The functions of a dtype, on a device with or without float64 arithmetic.
    pub fn of(dtype: Dtype, float64: bool) -> Self {
        let mut library = Library::default();
        let mut items = format!("alias A = {};\n", dtype.register());
        let mut add = |text: &'static str| library.add(text);
        match dtype {
            Dtype::Bool => add(text!("bool")),
            Dtype::Complex64 => {
                functions::complex64().for_each(&mut add);
                if float64 {
                    add(text!("complex_wide"));
                }
            }
            Dtype::Float64 => {
                [text!("float64"), text!("real")].into_iter().for_each(&mut add);
                functions::float64().for_each(add);
                items += "fn rounded(x: A) -> A { return x; }\n";
            }
            Dtype::Float32 | Dtype::Float16 | Dtype::Bfloat16 => {
                [text!("float32"), text!("real")].into_iter().for_each(&mut add);
                functions::float32().for_each(&mut add);
                if dtype == Dtype::Bfloat16 {
                    add(text!("bfloat16"));
                }
                let value = narrowed(dtype, "x");
                items += &format!("fn rounded(x: A) -> A {{ return {value}; }}\n");
            }
            _ => {
                add(text!("integer"));
                add(if dtype.is_signed() { text!("signed") } else { text!("unsigned") });
                items += &format!("const BITS: u32 = {}u;\n", 8 * dtype.bytes());
            }
        }
        Self { library, items }
    }

    /// Returns true if there is a function of that name.
    pub fn has(&self, name: &str) -> bool {
        self.library.has(name)
    }

    /// The source of the named functions with everything that they need. A suffix is added to every name, so that a
    /// program can contain the functions of several dtypes.
    pub fn with_suffix(&self, names: &str, suffix: &str) -> String {
        let used = self.library.used_by(&format!("{names}\n{}", self.items));
        let own = |word: &str| self.library.has(word) || ["A", "BITS", "rounded"].contains(&word);
        renamed(&format!("{}{used}", self.items), own, suffix)
    }
}

/// Adds the functions of a dtype to a program.
pub fn with_functions(program: Program<'_>, dtype: Dtype, float64: bool) -> Program<'_> {
    let functions = Functions::of(dtype, float64);
    program.item(&functions.items).with_library(functions.library)
}

/// A value in a dtype's register type as it would be after a store and a load: rounded, or reduced
/// to its bits.
pub fn narrowed(dtype: Dtype, value: &str) -> String {
    match dtype {
        Dtype::Float16 => format!("f16_rounded({value})"),
        Dtype::Bfloat16 => format!("bf16_rounded({value})"),
        Dtype::Uint8 => format!("(({value}) & 0xffu)"),
        Dtype::Uint16 => format!("(({value}) & 0xffffu)"),
        Dtype::Int8 => format!("((({value}) << 24u) >> 24u)"),
        Dtype::Int16 => format!("((({value}) << 16u) >> 16u)"),
        _ => value.to_owned(),
    }
}

/// The library's function that computes a code for a dtype.
#[derive(Clone)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// True if it returns WGSL's bool.
    pub is_test: bool,
    /// Dtype of the result.
    pub output: Dtype,
}

/// The function of a code of UNARY or BINARY for a dtype, if the schema has it.
pub fn function_of(op: OpId, code: u32, dtype: Dtype) -> Option<Function> {
    let row = schema::find(op)?;
    let code = row.code(code).filter(|code| code.dtypes & dtype.bit() != 0)?;
    let outputs = row.output_of(Some(code), dtype as usize);
    let output = crate::dtype::ALL.into_iter().find(|output| outputs == output.bit())?;
    let kind = if op == op::UNARY { "unary" } else { "binary" };
    let is_test = code.output == Output::Bool;
    Some(Function { name: format!("{kind}_{}", code.name), is_test, output })
}
