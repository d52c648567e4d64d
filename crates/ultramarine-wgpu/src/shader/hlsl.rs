//! Kernels in the High-Level Shader Language, written by naga, with these corrections:
//!
//! * Results of floating-point arithmetic are `precise`, because compilers contract and reassociate
//!   other results, as if there were no NaN.
//! * All buffers are declared as writable, to match the hal's layouts. Otherwise naga would request
//!   another kind of binding.
//! * 64-bit integers change their signedness by a conversion, because naga writes nothing for a
//!   bitcast of that width.
//!
//! Bytes are in words of 32 bits here ([`BYTES`](super::source::BYTES)).

use super::compile::{Parsed, Zeros, without_float64};
use super::text::Text;
use naga::back::hlsl::{self, BindTarget, ShaderModel};
use naga::valid::FunctionInfo;
use naga::{
    AddressSpace, BinaryOperator, Expression, Function, Handle, MathFunction, Module, Scalar,
    ScalarKind, StorageAccess, TypeInner, UnaryOperator,
};

/// Name of the exact variables. No program's source contains this name.
const EXACT: &str = "exact";

/// Writes the kernel of an entry point. The locations match the hal's: immediates are `b0`, binding
/// `i` of group 0 is `u{i}`, and the number of groups is `b1` of space 1.
pub fn write(parsed: &Parsed, entry: &str, zeros: Zeros) -> Result<Text, String> {
    let mut module = parsed.module.clone();
    for (_, variable) in module.global_variables.iter_mut() {
        if let AddressSpace::Storage { access } = &mut variable.space {
            *access |= StorageAccess::LOAD | StorageAccess::STORE;
        }
    }
    for (handle, function) in module.functions.iter_mut() {
        prepare(function, &parsed.info[handle], &parsed.module);
    }
    for (i, point) in module.entry_points.iter_mut().enumerate() {
        prepare(&mut point.function, parsed.info.get_entry_point(i), &parsed.module);
    }
    let parsed = without_float64(module)?;
    let target = |space, register| BindTarget { space, register, ..Default::default() };
    let globals = parsed.module.global_variables.iter();
    let bindings = globals.filter_map(|(_, variable)| variable.binding);
    let options = hlsl::Options {
        shader_model: ShaderModel::V6_2,
        binding_map: bindings.map(|binding| (binding, target(0, binding.binding))).collect(),
        fake_missing_bindings: false,
        special_constants_binding: Some(target(1, 1)),
        immediates_target: Some(target(0, 0)),
        zero_initialize_workgroup_memory: zeros == Zeros::Handled,
        restrict_indexing: false,
        force_loop_bounding: false,
        ..Default::default()
    };
    let pipeline =
        hlsl::PipelineOptions { entry_point: Some((naga::ShaderStage::Compute, entry.to_owned())) };
    let mut source = String::new();
    let names = hlsl::Writer::new(&mut source, &options, &pipeline)
        .write(&parsed.module, &parsed.info, None)
        .map_err(|e| e.to_string())?;
    let name = match names.entry_point_names.into_iter().next() {
        Some(name) => name.map_err(|e| e.to_string())?,
        None => return Err(format!("there is no kernel {entry}")),
    };
    let (group, written) = (parsed.group(entry), parsed.written(entry));
    Ok(Text { source: precise(&source), entry: name, group, written })
}

/// Names the results of floating-point arithmetic, so that they become variables in the source, and
/// converts between 64-bit integers.
fn prepare(function: &mut Function, info: &FunctionInfo, module: &Module) {
    let scalar_of = |handle: Handle<Expression>| {
        let inner = info[handle].ty.inner_with(&module.types);
        match inner {
            TypeInner::Scalar(scalar) | TypeInner::Vector { scalar, .. } => Some(*scalar),
            _ => None,
        }
    };
    let (mut exact, mut converted) = (Vec::new(), Vec::new());
    for (handle, expression) in function.expressions.iter() {
        let is_float = scalar_of(handle).is_some_and(|s| s.kind == ScalarKind::Float);
        match expression {
            _ if is_float && is_arithmetic(expression) => exact.push(handle),
            Expression::As { expr, kind: ScalarKind::Sint | ScalarKind::Uint, convert: None } => {
                let of = scalar_of(*expr);
                if let Some(Scalar { kind: ScalarKind::Sint | ScalarKind::Uint, width: 8 }) = of {
                    converted.push(handle);
                }
            }
            _ => {}
        }
    }
    for handle in exact {
        function.named_expressions.insert(handle, EXACT.to_owned());
    }
    for handle in converted {
        if let Expression::As { convert, .. } = &mut function.expressions[handle] {
            *convert = Some(8);
        }
    }
}

/// Returns true for arithmetic whose result compilers may change.
fn is_arithmetic(expression: &Expression) -> bool {
    use BinaryOperator::{Add, Divide, Modulo, Multiply, Subtract};
    use MathFunction::{Dot, Fma, Sqrt};
    match expression {
        Expression::Binary { op, .. } => {
            matches!(op, Add | Subtract | Multiply | Divide | Modulo)
        }
        Expression::Unary { op, .. } => *op == UnaryOperator::Negate,
        Expression::Math { fun, .. } => matches!(fun, Dot | Fma | Sqrt),
        _ => false,
    }
}

/// Returns the source with `precise` at the declarations of the exact variables.
fn precise(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    for line in text.split_inclusive('\n') {
        let code = line.trim_start();
        let declares = code
            .split_once(' ')
            .is_some_and(|(kind, rest)| is_float(kind) && rest.starts_with(EXACT));
        if declares {
            out.push_str(&line[..line.len() - code.len()]);
            out.push_str("precise ");
            out.push_str(code);
        } else {
            out.push_str(line);
        }
    }
    out
}

/// Returns true for HLSL's float types and vectors of them.
fn is_float(kind: &str) -> bool {
    let scalar = kind.trim_end_matches(['2', '3', '4']);
    matches!(scalar, "half" | "float" | "double")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shader::compile::parse;

    const TEXT: &str = "
        struct Immediates { base: u32, zero: u32 }
        var<immediate> im: Immediates;
        @group(0) @binding(0) var<storage, read> words: array<u32>;
        @group(0) @binding(1) var<storage, read_write> a: array<f32>;
        @group(0) @binding(2) var<storage, read_write> b: array<u64>;
        fn two(x: f32) -> vec2<f32> { return vec2<f32>(x, -x) * 2.0; }
        @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) g: vec3<u32>, @builtin(num_workgroups) n: vec3<u32>) {
            a[g.x] = a[g.x] * a[g.y] + two(a[n.x]).x;
            b[g.x] = bitcast<u64>(bitcast<i64>(b[g.y]) >> (words[im.base] & 63u));
        }";

    #[test]
    fn arithmetic_is_exact_and_all_buffers_are_written() {
        let text = write(&parse(TEXT).unwrap(), "main", Zeros::Left).unwrap();
        let source = &text.source;
        assert_eq!(source.matches("precise float ").count(), 3, "{source}");
        assert_eq!(source.matches("precise float2 ").count(), 1, "{source}");
        for register in
            ["register(u0)", "register(u1)", "register(u2)", "register(b0)", "register(b1, space1)"]
        {
            assert_eq!(source.matches(register).count(), 1, "{register} in\n{source}");
        }
        assert!(source.contains("int64_t(") && source.contains("uint64_t("), "{source}");
    }
}
