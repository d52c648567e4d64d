//! UNARY and BINARY.

mod map;
pub mod rule;

pub use map::{Map, Spec, in_order_of_output};

use crate::launch::{Dtype, Job, OpRequest, Work};
use crate::ops::headers;
use rule::{Rule, Weight};
use ultramarine_abi::helper::{Failure, Result};
use ultramarine_abi::schema::{BinaryAttrs, UnaryAttrs, op};

/// Headers of the functions for all codes. For a code that the schema calls NAME, the function is
/// `un_NAME` or `bi_NAME`.
pub const FUNCTIONS: &[&str] = &[headers::NUMBER, REAL, INTEGER, COMPLEX, CODES];

/// Functions of real numbers.
pub const REAL: &str = include_str!("../../../kernels/elementwise/real.cuh");
const INTEGER: &str = include_str!("../../../kernels/elementwise/integer.cuh");
/// Functions of complex64; they come after the real ones.
pub const COMPLEX: &str = include_str!("../../../kernels/elementwise/complex.cuh");
const CODES: &str = include_str!("../../../kernels/elementwise/functions.cuh");
/// Maps of tensors, `map_flat` and `map_walked`.
pub const MAP: &str = include_str!("../../../kernels/elementwise/map.cuh");

/// Headers of kernels that call elementwise functions.
const CALLS: &[&str] = &[headers::NUMBER, headers::WALK, REAL, INTEGER, COMPLEX, CODES, MAP];
/// Headers of kernels that only move and convert elements.
pub const MOVES: &[&str] = &[headers::NUMBER, headers::WALK, MAP];

/// The work of UNARY, BINARY and similar operations: a function of `K - 1` inputs.
pub struct Elementwise<const K: usize>(pub Map<K>);

impl<const K: usize> Work for Elementwise<K> {
    fn run(&self, job: &Job<'_>) -> Result<()> {
        let mut views = [*job.output(0)?; K];
        for (i, view) in views[..K - 1].iter_mut().enumerate() {
            *view = *job.input(i)?;
        }
        self.0.run(job, views)
    }
}

fn of_code(request: &OpRequest<'_>, rule: Option<Rule>, code: u32) -> Result<Dtype> {
    let dtype = request.input(0)?.dtype;
    let rule = rule.ok_or_else(|| {
        Failure::unsupported(format!("code {code} is not defined for {}", dtype.name()))
    })?;
    let (found, expected) = (request.output(0)?.dtype, rule.output(dtype));
    match found == expected {
        true => Ok(expected),
        false => Err(Failure::unsupported(format!(
            "an output of {}, expected {}",
            found.name(),
            expected.name()
        ))),
    }
}

/// Makes the work of an operation of the family.
pub fn prepare(request: &OpRequest<'_>) -> Result<Box<dyn Work>> {
    match request.op {
        op::UNARY => prepare_unary(request),
        op::BINARY => prepare_binary(request),
        _ => Err(super::unknown(request)),
    }
}

/// UNARY.
fn prepare_unary(request: &OpRequest<'_>) -> Result<Box<dyn Work>> {
    request.elementwise(1)?;
    let (code, dtype) = (request.attributes::<UnaryAttrs>()?.op, request.input(0)?.dtype);
    let output = of_code(request, rule::unary_rule(dtype, code), code)?;
    let (name, d, o) = (rule::unary_name(code), dtype.tag(), output.tag());
    Ok(Box::new(Elementwise(Map::new(Spec {
        name: format!("{name} {d}"),
        headers: CALLS,
        function: format!("{o}::down(un_{name}<{d}>({d}::up(x)))"),
        dtypes: [dtype, output],
        weight: rule::unary_weight(dtype, code),
    }))))
}

/// BINARY.
fn prepare_binary(request: &OpRequest<'_>) -> Result<Box<dyn Work>> {
    request.elementwise(2)?;
    let (code, dtype) = (request.attributes::<BinaryAttrs>()?.op, request.input(0)?.dtype);
    if request.input(1)?.dtype != dtype {
        return Err(Failure::invalid(format!(
            "operands of {} and {}, expected one dtype",
            dtype.name(),
            request.input(1)?.dtype.name()
        )));
    }
    let output = of_code(request, rule::binary_rule(dtype, code), code)?;
    let (name, d, o) = (rule::binary_name(code), dtype.tag(), output.tag());
    Ok(Box::new(Elementwise(Map::new(Spec {
        name: format!("{name} {d}"),
        headers: CALLS,
        function: format!("{o}::down(bi_{name}<{d}>({d}::up(x), {d}::up(y)))"),
        dtypes: [dtype, dtype, output],
        weight: rule::binary_weight(dtype, code),
    }))))
}

/// The map that converts elements, used by COPY.
pub fn conversion(from: Dtype, to: Dtype) -> Map<2> {
    let (f, t) = (from.tag(), to.tag());
    Map::new(Spec {
        name: format!("convert {f} {t}"),
        headers: MOVES,
        function: if from == to { "x".to_owned() } else { format!("convert<{t}, {f}>(x)") },
        dtypes: [from, to],
        weight: Weight::Light,
    })
}
