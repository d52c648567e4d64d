//! COPY, FILL, ARANGE, UNARY, BINARY, SELECT, RANDOM_BITS.

use super::{Case, Scope, Subject, case, none, numbers, placements, shapes};
use crate::compare::Want;
use crate::device::words;
use crate::dtype::{DType, Num};
use crate::reference::{elementwise as reference, order, threefry, want};
use crate::rules;
use crate::run::Request;
use crate::tensor::{Array, Layout, Placed, size};
use crate::values::{Rng, edges, ordinary, unary_operands};
use ultramarine_abi::schema::{BinaryAttrs, UnaryAttrs, binary, op, unary};

/// Name of a case: its shape and layout.
fn name(shape: &[i64], layout: Layout) -> String {
    format!("{shape:?} {}", layout.name())
}

/// COPY: every pair of stored dtypes.
pub fn copy(scope: &Scope) -> Vec<Subject> {
    let rng = &mut Rng::new(1);
    let dtypes = scope.dtypes(op::COPY, None);
    let mut subjects = Vec::new();
    for from in &dtypes {
        for (n, to) in dtypes.iter().enumerate() {
            let mut values = edges(*from, scope.subnormals);
            values.extend(ordinary(*from, 30, rng));
            let wide = from == to && *from == DType::F32;
            let mut places = placements(scope, n, values.len(), wide);
            if from == to {
                for layout in Layout::STRIDED {
                    places.extend(shapes(layout, values.len()).into_iter().map(|s| (layout, s)));
                }
            }
            let mut cases = Vec::new();
            for (layout, shape) in places {
                let input = Array::cycle(*from, &shape, &values);
                cases.push(case(
                    name(&shape, layout),
                    (op::COPY, none()),
                    vec![(input, layout)],
                    (*to, shape),
                    |arrays| converted(*from, *to, &arrays[0].values),
                ));
            }
            if from == to {
                cases.extend(strided_outputs(*from, &values));
            }
            let code = if from == to { String::new() } else { format!("to {}", to.name()) };
            let need = copy_need(scope, *from, *to);
            subjects.push(Subject { family: op::COPY, code, dtype: *from, need, cases });
        }
    }
    subjects
}

/// Moving is asked of what is stored, converting of what is computed with.
fn copy_need(scope: &Scope, from: DType, to: DType) -> &'static str {
    let computed = [from, to].iter().all(|d| d.in_mask(scope.arithmetic));
    match () {
        () if from != to && !computed => "optional",
        () if [from, to].contains(&DType::F32) => "basic",
        () => "complete",
    }
}

fn converted(from: DType, to: DType, values: &[Num]) -> Vec<Want> {
    values
        .iter()
        .map(|v| match reference::cast(from, to, *v) {
            Some(value) => {
                Want { signed_zero: from.is_float() && to.is_float(), ..Want::exact(value) }
            }
            None => Want::ANY,
        })
        .collect()
}

/// Copies into outputs that have strides.
fn strided_outputs(dtype: DType, values: &[Num]) -> Vec<Case> {
    [Layout::Transposed, Layout::Gaps, Layout::Negative]
        .into_iter()
        .map(|layout| {
            let shape = vec![3, 5, 4];
            let input = Array::cycle(dtype, &shape, values);
            let mut made = case(
                format!("to an output {}", layout.name()),
                (op::COPY, none()),
                vec![(input, Layout::Contiguous)],
                (dtype, shape.clone()),
                |arrays| converted(dtype, dtype, &arrays[0].values),
            );
            made.request.output = Placed::output(dtype, &shape, layout);
            made.plain = false;
            made
        })
        .collect()
}

/// FILL.
pub fn fill(scope: &Scope) -> Vec<Subject> {
    scope
        .dtypes(op::FILL, None)
        .into_iter()
        .map(|dtype| {
            let mut values = edges(dtype, scope.subnormals);
            values.truncate(if scope.full { usize::MAX } else { 6 });
            let mut cases = Vec::new();
            for (n, value) in values.into_iter().enumerate() {
                let shape = [vec![], vec![1], vec![1000], vec![7, 1, 5]][n % 4].clone();
                let wants = vec![Want::exact(value); size(&shape)];
                let what = format!("{value} in {shape:?}");
                let mut made =
                    case(what, (op::FILL, none()), Vec::new(), (dtype, shape), |_| wants);
                made.request.scalars = vec![dtype.scalar(value)];
                cases.push(made);
            }
            Subject::new(scope, op::FILL, None, dtype, cases)
        })
        .collect()
}

/// ARANGE.
pub fn arange(scope: &Scope) -> Vec<Subject> {
    scope
        .dtypes(op::ARANGE, None)
        .into_iter()
        .filter(|d| d.is_int() || d.is_float())
        .map(|dtype| {
            let mut cases = Vec::new();
            for (n, start, step) in
                [(100, 3.0, 1.0), (1, -2.0, 1.0), (37, 0.5, -0.25), (64, 5.0, 2.0)]
            {
                let numbers = if dtype.is_float() {
                    [Num::Real(start), Num::Real(step)]
                } else {
                    [start, step * 4.0].map(|x: f64| Num::Int(x as i128))
                };
                let [start, step] = numbers;
                let what = format!("{n} from {start} by {step}");
                let wide = if dtype.is_float() { DType::F64 } else { DType::I64 };
                let mut made =
                    case(what, (op::ARANGE, none()), Vec::new(), (dtype, vec![n]), |_| {
                        order::arange(dtype, n, start, step)
                    });
                made.request.scalars = vec![wide.scalar(start), wide.scalar(step)];
                cases.push(made);
            }
            Subject::new(scope, op::ARANGE, None, dtype, cases)
        })
        .collect()
}

/// UNARY: every code for every dtype.
pub fn unary(scope: &Scope) -> Vec<Subject> {
    let rng = &mut Rng::new(2);
    let mut subjects = Vec::new();
    for code in 0..unary::NAMES.len() as u32 {
        for (n, dtype) in scope.dtypes(op::UNARY, Some(code)).into_iter().enumerate() {
            let values = unary_operands(code, dtype, scope.subnormals, rng);
            let to = reference::unary_dtype(code, dtype);
            let attributes = words(&UnaryAttrs::new(code));
            let mut cases = Vec::new();
            let wide = code == unary::EXP && dtype == DType::F32;
            for (layout, shape) in placements(scope, n + code as usize, values.len(), wide) {
                let input = Array::cycle(dtype, &shape, &values);
                cases.push(case(
                    name(&shape, layout),
                    (op::UNARY, attributes.clone()),
                    vec![(input, layout)],
                    (to, shape),
                    |arrays| unary_wants(code, dtype, &arrays[0].values),
                ));
            }
            if to == dtype {
                cases.push(donated(&cases[0]));
            }
            subjects.push(Subject::new(scope, op::UNARY, Some(code), dtype, cases));
        }
    }
    subjects
}

/// The case once more, with the output in the place of its first input.
fn donated(case: &Case) -> Case {
    Case {
        what: format!("{} in place", case.what),
        request: Request {
            donated: Some(0),
            output: case.request.inputs[0].clone(),
            ..case.request.clone()
        },
        wants: case.wants.clone(),
        check: None,
        operands: case.operands.clone(),
        plain: case.plain,
    }
}

fn unary_wants(code: u32, dtype: DType, values: &[Num]) -> Vec<Want> {
    let ulps = rules::ulps(op::UNARY, Some(code));
    let to = reference::unary_dtype(code, dtype);
    values
        .iter()
        .map(|x| match reference::unary(code, dtype, *x) {
            // The argument's own rounding is magnified where a function oscillates.
            _ if is_wild(code, x.real(), dtype) => Want::ANY,
            Some(value) => {
                let at = value.complex().norm();
                let want = want(ulps, if to == DType::BOOL { to } else { dtype }, value, at);
                Want { signed_zero: dtype.is_float() && reference::zero_sign_counts(code), ..want }
            }
            None => Want::ANY,
        })
        .collect()
}

/// Trigonometric functions of numbers beyond what all libraries reduce exactly.
fn is_wild(code: u32, x: f64, dtype: DType) -> bool {
    let oscillates = matches!(code, unary::SIN | unary::COS | unary::TAN);
    oscillates && dtype.is_float() && x.is_finite() && x.abs() > 1e5
}

/// Every pair of two lists' values.
fn pairs(values: &[Num]) -> (Vec<Num>, Vec<Num>) {
    let first = values.iter().flat_map(|a| values.iter().map(move |_| *a)).collect();
    let second = values.iter().flat_map(|_| values.iter().copied()).collect();
    (first, second)
}

/// BINARY: every code for every dtype.
pub fn binary(scope: &Scope) -> Vec<Subject> {
    let rng = &mut Rng::new(3);
    let mut subjects = Vec::new();
    for code in 0..binary::NAMES.len() as u32 {
        for (n, dtype) in scope.dtypes(op::BINARY, Some(code)).into_iter().enumerate() {
            let mut values = edges(dtype, scope.subnormals);
            if !dtype.is_float() && matches!(code, binary::LEFT_SHIFT | binary::RIGHT_SHIFT) {
                values.extend(numbers(&[4, 5, 8, 15, 31, 63]).iter().map(|v| dtype.value(*v)));
            }
            let (mut first, mut second) = pairs(&values);
            first.extend(ordinary(dtype, 60, rng));
            second.extend(ordinary(dtype, 60, rng));
            let to = reference::binary_dtype(code, dtype);
            let attributes = words(&BinaryAttrs::new(code));
            let mut cases = Vec::new();
            let wide = code == binary::ADD && dtype == DType::F32;
            for (layout, shape) in placements(scope, n + code as usize, first.len(), wide) {
                let a = Array::cycle(dtype, &shape, &first);
                let b = Array::cycle(dtype, &shape, &second);
                // One of the two lies as named; the other is plain.
                let other = if layout == Layout::Broadcast { Layout::Contiguous } else { layout };
                cases.push(case(
                    name(&shape, layout),
                    (op::BINARY, attributes.clone()),
                    vec![(a, layout), (b, other)],
                    (to, shape),
                    |arrays| binary_wants(code, dtype, &arrays[0].values, &arrays[1].values),
                ));
            }
            if to == dtype {
                cases.push(donated(&cases[0]));
            }
            subjects.push(Subject::new(scope, op::BINARY, Some(code), dtype, cases));
        }
    }
    subjects
}

fn binary_wants(code: u32, dtype: DType, first: &[Num], second: &[Num]) -> Vec<Want> {
    let ulps = rules::ulps(op::BINARY, Some(code));
    let to = reference::binary_dtype(code, dtype);
    let pairs = first.iter().zip(second);
    pairs
        .map(|(x, y)| {
            let Some(value) = reference::binary(code, dtype, *x, *y) else { return Want::ANY };
            if to == DType::BOOL {
                return Want::exact(value);
            }
            let norms = [x.complex().norm(), y.complex().norm(), value.complex().norm()];
            let at = match code {
                // Both parts of a complex sum or product carry the error of the whole.
                binary::MULTIPLY if dtype.is_complex() => norms[0] * norms[1],
                binary::LOGADDEXP => norms.into_iter().fold(1.0, f64::max),
                binary::REMAINDER => norms[1].max(norms[2]),
                _ => norms[2],
            };
            if dtype.is_complex() && !value.complex().is_finite() {
                return Want::ANY;
            }
            // A quotient near a whole number may be rounded to either side.
            if code == binary::FLOOR_DIVIDE && dtype.is_float() {
                return quotient(dtype, x.real(), y.real(), value);
            }
            if dtype.is_complex() && code == binary::POWER {
                return want(ulps, dtype, value, 8.0 * at);
            }
            want(ulps, dtype, value, at)
        })
        .collect()
}

/// A floor of a quotient: beyond the numbers that have fractions it is the quotient, with
/// its error.
fn quotient(dtype: DType, x: f64, y: f64, value: Num) -> Want {
    let exact = x / y;
    let margin = 2.5 * dtype.ulp(exact);
    if !exact.is_finite() {
        return Want::exact(value);
    }
    if margin >= 0.5 {
        return Want::near(value, 2.0 * margin);
    }
    let close = (exact - exact.round()).abs() <= margin && exact.round() != exact;
    if close { Want::ANY } else { Want::exact(value) }
}

/// SELECT.
pub fn select(scope: &Scope) -> Vec<Subject> {
    let rng = &mut Rng::new(4);
    let mut subjects = Vec::new();
    for (n, dtype) in scope.dtypes(op::SELECT, None).into_iter().enumerate() {
        let mut cases = Vec::new();
        for layout in scope.layouts(n) {
            for shape in shapes(layout, 60) {
                let truth = Array::cycle(DType::BOOL, &shape, &numbers(&[0, 1, 1, 0, 1]));
                let mut values = ordinary(dtype, 60, rng);
                let b = Array::cycle(dtype, &shape, &values);
                values.reverse();
                values.extend(edges(dtype, scope.subnormals));
                let c = Array::cycle(dtype, &shape, &values);
                let inputs = vec![(truth, Layout::Contiguous), (b, layout), (c, layout)];
                cases.push(case(
                    name(&shape, layout),
                    (op::SELECT, none()),
                    inputs,
                    (dtype, shape),
                    |arrays| {
                        let [truth, b, c] = [0, 1, 2].map(|i| &arrays[i].values);
                        let pick = |i: usize| if truth[i].truth() { b[i] } else { c[i] };
                        (0..truth.len()).map(|i| Want::exact(pick(i))).collect()
                    },
                ));
            }
        }
        subjects.push(Subject::new(scope, op::SELECT, None, dtype, cases));
    }
    subjects
}

/// RANDOM_BITS.
pub fn random_bits(scope: &Scope) -> Vec<Subject> {
    if !DType::U32.in_mask(scope.storage) {
        return Vec::new();
    }
    let keys = [0i64, 7, 0xdead_beef, 0xcafe, 256, 5];
    scope
        .dtypes(op::RANDOM_BITS, None)
        .into_iter()
        .map(|dtype| {
            let mut cases = Vec::new();
            for n in [1i64, 2, 3, 7, 64, 1001] {
                let input = Array::cycle(DType::U32, &[3, 2], &numbers(&keys));
                cases.push(case(
                    format!("3 keys, {n} numbers each"),
                    (op::RANDOM_BITS, none()),
                    vec![(input, Layout::Contiguous)],
                    (dtype, vec![3, n]),
                    |arrays| random_wants(dtype, n as usize, &arrays[0]),
                ));
            }
            Subject::new(scope, op::RANDOM_BITS, None, dtype, cases)
        })
        .collect()
}

fn random_wants(dtype: DType, n: usize, keys: &Array) -> Vec<Want> {
    let width = dtype.size();
    let mut wants = Vec::new();
    for key in keys.values.chunks(2) {
        let key = [key[0].int() as u32, key[1].int() as u32];
        let bytes = threefry::bytes(key, n * width);
        wants.extend(bytes.chunks(width).map(|b| Want::exact(dtype.read(b))));
    }
    wants
}
