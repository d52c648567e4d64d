//! Rules of the unary and binary codes: the result's dtype, and the weight for kernels.

use crate::launch::Dtype;
use ultramarine_abi::schema::{self, OpId, Output, op};

/// The kind of a function's result, which decides how kernels round and store it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// A value of the operands' dtype, which the caller rounds.
    Value,
    /// A bool.
    Test,
    /// The real or imaginary part, or the magnitude, of a complex number: float32.
    RealPart,
}

impl Rule {
    /// The dtype of the result for operands of `dtype`.
    pub const fn output(self, dtype: Dtype) -> Dtype {
        match self {
            Rule::Value => dtype,
            Rule::Test => Dtype::Bool,
            Rule::RealPart => Dtype::Float32,
        }
    }
}

/// The result of a unary code for a dtype. `None` if the code is not defined for the dtype.
pub fn unary_rule(dtype: Dtype, code: u32) -> Option<Rule> {
    rule(op::UNARY, dtype, code)
}

/// The result of a binary code for a dtype. `None` if the code is not defined for the dtype.
pub fn binary_rule(dtype: Dtype, code: u32) -> Option<Rule> {
    rule(op::BINARY, dtype, code)
}

/// The schema's name for a unary code. In the kernels, the function of NAME is `un_NAME`.
pub fn unary_name(code: u32) -> &'static str {
    schema::unary::NAMES.get(code as usize).copied().unwrap_or("")
}

/// The schema's name for a binary code. In the kernels, the function of NAME is `bi_NAME`.
pub fn binary_name(code: u32) -> &'static str {
    schema::binary::NAMES.get(code as usize).copied().unwrap_or("")
}

fn rule(id: OpId, dtype: Dtype, code: u32) -> Option<Rule> {
    let row = schema::find(id)?.code(code)?;
    if row.dtypes & dtype.bit() == 0 {
        return None;
    }
    match row.output {
        Output::Main => Some(Rule::Value),
        Output::Bool => Some(Rule::Test),
        Output::Real if dtype.is_complex() => Some(Rule::RealPart),
        Output::Real => Some(Rule::Value),
        _ => None,
    }
}

/// The amount of code of a function. It limits the number of copies in a kernel, because long code
/// compiles slowly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// A few instructions.
    Light,
    /// Tens of instructions.
    Middle,
    /// Hundreds of instructions, for example because it is evaluated in float64 or reduces
    /// arguments of any size.
    Heavy,
}

/// The weight of a unary function.
pub fn unary_weight(dtype: Dtype, code: u32) -> Weight {
    use schema::unary as u;
    match code {
        u::SIN | u::COS | u::TAN => Weight::Heavy,
        u::SIGN | u::RECIPROCAL if dtype.is_complex() => Weight::Heavy,
        u::ABS if dtype.is_complex() => Weight::Middle,
        u::SQRT..=u::SIGMOID if dtype.is_complex() => Weight::Heavy,
        u::SQRT | u::RSQRT | u::RECIPROCAL => Weight::Light,
        u::EXP..=u::SIGMOID => Weight::Middle,
        _ => Weight::Light,
    }
}

/// The weight of a binary function.
pub fn binary_weight(dtype: Dtype, code: u32) -> Weight {
    use schema::binary as b;
    match code {
        b::DIVIDE | b::FLOOR_DIVIDE | b::REMAINDER if dtype.is_complex() => Weight::Heavy,
        b::POWER if dtype == Dtype::Bool => Weight::Light,
        b::POWER | b::LOGADDEXP | b::ARCTAN2 | b::REMAINDER => Weight::Heavy,
        b::DIVIDE | b::FLOOR_DIVIDE => Weight::Middle,
        _ => Weight::Light,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schema::{binary, unary};
    use ultramarine_abi::helper::dtype::ALL;

    #[test]
    fn rules_are_the_schemas() {
        use Dtype::*;
        assert_eq!(unary_rule(Float16, unary::EXP), Some(Rule::Value));
        assert_eq!(unary_rule(Int8, unary::EXP), None);
        assert_eq!(unary_rule(Complex64, unary::ABS), Some(Rule::RealPart));
        assert_eq!(unary_rule(Float32, unary::ABS), Some(Rule::Value));
        assert_eq!(unary_rule(Uint64, unary::ISNAN), Some(Rule::Test));
        assert_eq!(binary_rule(Bool, binary::LEFT_SHIFT), None);
        assert_eq!(binary_rule(Complex64, binary::LESS), Some(Rule::Test));
        assert_eq!(binary_rule(Float64, 1000), None);
    }

    #[test]
    fn every_code_has_a_function_in_the_kernels() {
        let text = include_str!("../../../kernels/elementwise/functions.cuh");
        let has = |macros: &[&str], name: &str| {
            macros.iter().any(|m| {
                text.contains(&format!("\n{m}({name})")) || text.contains(&format!("\n{m}({name},"))
            })
        };
        for name in unary::NAMES {
            assert!(has(&["UNARY", "FLOATING", "REALS", "ROUNDING"], name), "un_{name}");
        }
        for name in binary::NAMES {
            assert!(has(&["BINARY"], name), "bi_{name}");
        }
        assert!(!has(&["UNARY", "BINARY"], "nothing"));
    }

    #[test]
    fn what_is_defined_for_every_dtype_has_a_rule() {
        for dtype in ALL {
            assert!(binary_rule(dtype, binary::EQUAL).is_some());
            assert!(unary_rule(dtype, unary::CONJUGATE).is_some());
        }
    }
}
