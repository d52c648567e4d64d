//! The types and functions of reductions, by code and dtype.

use crate::dtype::{Dtype, Wgsl};
use ultramarine_abi::schema::reduce;

pub(super) const SUMS: &str = include_str!("../../../kernels/reduce/sums.wgsl");

/// The functions of `fold.wgsl` that depend on the dtype and the code.
pub(super) struct Steps {
    pub items: Vec<String>,
    /// Bytes of a wide accumulator.
    pub wide_bytes: u64,
}

/// The lowest and the highest value of a dtype in its register type. Not for complex64.
pub fn limits(dtype: Dtype) -> (String, String) {
    let bits = 8 * dtype.bytes();
    match dtype {
        Dtype::Bool => ("0u".into(), "1u".into()),
        Dtype::Float64 => ("-inf64()".into(), "inf64()".into()),
        _ if dtype.is_real() => ("-inf32()".into(), "inf32()".into()),
        Dtype::Uint64 => ("0lu".into(), format!("{}lu", u64::MAX)),
        Dtype::Int64 => ("bitcast<i64>(0x8000000000000000lu)".into(), format!("{}li", i64::MAX)),
        _ if dtype.is_signed() => {
            let high = (1_i64 << (bits - 1)) - 1;
            (format!("(-{high}i - 1i)"), format!("{high}i"))
        }
        _ => ("0u".into(), format!("{}u", (1_u64 << bits) - 1)),
    }
}

impl Steps {
    /// The functions of a code.
    pub fn of(op: u32, dtype: Dtype, float64: bool) -> Self {
        match op {
            reduce::ALL | reduce::ANY => Self::logic(op == reduce::ALL, dtype),
            _ if dtype == Dtype::Complex64 => Self::complex(op, float64),
            _ if dtype.is_real() => Self::real(op, dtype, float64),
            _ => Self::integer(op, dtype),
        }
    }

    fn logic(all: bool, dtype: Dtype) -> Self {
        let (neutral, step) = if all { (1, "&") } else { (0, "|") };
        let value = match dtype {
            Dtype::Complex64 => "x.x != 0.0 || x.y != 0.0".to_owned(),
            _ => format!("x != {}(0)", dtype.register()),
        };
        let items = [
            "alias N = u32;\nalias W = u32;".to_owned(),
            format!(
                "fn read_value(x: {}) -> N {{ return select(0u, 1u, {value}); }}",
                dtype.register()
            ),
            format!("fn neutral() -> N {{ return {neutral}u; }}"),
            format!("fn step_narrow(a: N, x: N) -> N {{ return a {step} x; }}"),
            block("step_narrow"),
            PLAIN.to_owned(),
        ];
        Self { items: items.into(), wide_bytes: 4 }
    }

    fn integer(op: u32, dtype: Dtype) -> Self {
        let (low, high) = limits(dtype);
        let register = dtype.register();
        let (neutral, step) = match op {
            reduce::SUM => (format!("{register}(0)"), "a + x"),
            reduce::PROD => (format!("{register}(1)"), "a * x"),
            reduce::MIN => (high, "select(a, x, x < a)"),
            _ => (low, "select(a, x, x > a)"),
        };
        let items = [
            format!("alias N = {register};\nalias W = {register};"),
            "fn read_value(x: N) -> N { return x; }".to_owned(),
            format!("fn neutral() -> N {{ return {neutral}; }}"),
            format!("fn step_narrow(a: N, x: N) -> N {{ return {step}; }}"),
            block("step_narrow"),
            PLAIN.to_owned(),
        ];
        Self { items: items.into(), wide_bytes: dtype.bytes().max(4) }
    }

    fn real(op: u32, dtype: Dtype, float64: bool) -> Self {
        let narrow = dtype.register();
        let wide = if float64 { "f64" } else { narrow };
        let nan = |ty: &str| if ty == "f64" { "isnan64" } else { "isnan32" };
        let (low, high) = limits(dtype);
        let step = |ty: &str| match op {
            reduce::SUM => "a + x".to_owned(),
            reduce::PROD => "a * x".to_owned(),
            reduce::MIN => format!("select(a, x, x < a || {}(x))", nan(ty)),
            _ => format!("select(a, x, x > a || {}(x))", nan(ty)),
        };
        let neutral = match op {
            // -0, which preserves the sign of zero.
            reduce::SUM if narrow == "f64" => "-zero64()".to_owned(),
            reduce::SUM => "-zero32()".to_owned(),
            reduce::PROD => format!("{narrow}(1)"),
            reduce::MIN => high,
            _ => low,
        };
        let sums = op == reduce::SUM;
        let finish = match dtype {
            Dtype::Float16 | Dtype::Bfloat16 if float64 => "f32_to_odd(total)".to_owned(),
            _ => format!("{narrow}(total)"),
        };
        let items = [
            format!("alias N = {narrow};\nalias W = {wide};\nalias S = {wide};"),
            "fn read_value(x: N) -> N { return x; }".to_owned(),
            format!("fn neutral() -> N {{ return {neutral}; }}"),
            format!("fn step_narrow(a: N, x: N) -> N {{ return {}; }}", step(narrow)),
            format!("fn step_wide(a: W, x: W) -> W {{ return {}; }}", step(wide)),
            "fn widen(x: N) -> W { return W(x); }".to_owned(),
            if sums { compensated("lost_part(*total, sum, x)") } else { block("step_wide") },
            close(if sums { "regained(total, lost)" } else { "total" }),
            format!("fn finish(total: W) -> N {{ return {finish}; }}"),
        ];
        Self { items: items.into(), wide_bytes: if wide == "f64" { 8 } else { 4 } }
    }

    fn complex(op: u32, float64: bool) -> Self {
        let part = if float64 { "f64" } else { "f32" };
        let wide = format!("vec2<{part}>");
        let names = |wide: bool| match wide && float64 {
            true => ("less_wide", "nan_wide"),
            false => ("less_complex", "nan_complex"),
        };
        let step = |ty: &str, wide: bool| {
            let (less, nan) = names(wide);
            match op {
                reduce::SUM => format!("{ty}(a.x + x.x, a.y + x.y)"),
                reduce::PROD => format!("{ty}(a.x * x.x - a.y * x.y, a.x * x.y + a.y * x.x)"),
                reduce::MIN => format!("select(a, x, !{nan}(a) && ({nan}(x) || {less}(x, a)))"),
                _ => format!("select(a, x, !{nan}(a) && ({nan}(x) || {less}(a, x)))"),
            }
        };
        let neutral = match op {
            reduce::SUM => "-zero32(), -zero32()",
            reduce::PROD => "1.0, zero32()",
            reduce::MIN => "inf32(), inf32()",
            _ => "-inf32(), -inf32()",
        };
        let sums = op == reduce::SUM;
        let lost = "W(lost_part((*total).x, sum.x, x.x), lost_part((*total).y, sum.y, x.y))";
        let closed = "W(regained(total.x, lost.x), regained(total.y, lost.y))";
        let items = [
            format!("alias N = vec2<f32>;\nalias W = {wide};\nalias S = {part};"),
            "fn read_value(x: N) -> N { return x; }".to_owned(),
            format!("fn neutral() -> N {{ return N({neutral}); }}"),
            format!("fn step_narrow(a: N, x: N) -> N {{ return {}; }}", step("N", false)),
            format!("fn step_wide(a: W, x: W) -> W {{ return {}; }}", step("W", true)),
            "fn widen(x: N) -> W { return W(S(x.x), S(x.y)); }".to_owned(),
            if sums { compensated(lost) } else { block("step_wide") },
            close(if sums { closed } else { "total" }),
            "fn finish(total: W) -> N { return N(f32(total.x), f32(total.y)); }".to_owned(),
        ];
        Self { items: items.into(), wide_bytes: if float64 { 16 } else { 8 } }
    }
}

/// For types whose accumulators all have the same type.
const PLAIN: &str = "fn widen(x: N) -> W { return x; }\n\
                     fn fold_close(total: W, lost: W) -> W { return total; }\n\
                     fn finish(total: W) -> N { return total; }";

/// Adds a value to the total by a function.
fn block(step: &str) -> String {
    format!(
        "fn fold_block(total: ptr<function, W>, lost: ptr<function, W>, x: W) {{ *total = {step}(*total, x); }}"
    )
}

/// Adds a value to a sum, and the rounding error to `lost`.
fn compensated(lost: &str) -> String {
    format!(
        "fn fold_block(total: ptr<function, W>, lost: ptr<function, W>, x: W) {{\n\
         let sum = step_wide(*total, x);\n*lost += {lost};\n*total = sum;\n}}"
    )
}

fn close(total: &str) -> String {
    format!("fn fold_close(total: W, lost: W) -> W {{ return {total}; }}")
}

/// The functions of `arg.wgsl` that depend on the dtype.
pub(super) fn extreme_items(dtype: Dtype, max: bool) -> Vec<String> {
    let register = dtype.register();
    let better = match (dtype, max) {
        (Dtype::Complex64, true) => "less_complex(old, value)",
        (Dtype::Complex64, false) => "less_complex(value, old)",
        (_, true) => "old < value",
        (_, false) => "value < old",
    };
    // The first NaN is kept. For complex numbers, only a NaN in the real part counts.
    let beats = match dtype {
        Dtype::Complex64 => format!("({better} || isnan32(value.x)) && !isnan32(old.x)"),
        Dtype::Float64 => format!("({better} || isnan64(value)) && !isnan64(old)"),
        _ if dtype.is_real() => format!("({better} || isnan32(value)) && !isnan32(old)"),
        _ => better.to_owned(),
    };
    vec![
        format!("alias A = {register};"),
        format!("fn beats(value: A, old: A) -> bool {{ return {beats}; }}"),
    ]
}
