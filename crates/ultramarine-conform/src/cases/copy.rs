//! COPY: within a dtype, and conversions.

use super::{Case, OpUnderTest, Scope, case, case_name, none, placements, shapes};
use crate::compare::Expected;
use crate::dtype::{DType, Num};
use crate::reference::copy as reference;
use crate::tensor::{Array, Layout, Placed};
use crate::values::{Rng, edges, ordinary};
use ultramarine_abi::schema::op;

/// COPY: every pair of stored dtypes.
pub fn copy(scope: &Scope) -> Vec<OpUnderTest> {
    let rng = &mut Rng::new(1);
    let dtypes = scope.dtypes(op::COPY, None);
    let mut ops = Vec::new();
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
                    case_name(&shape, layout),
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
            ops.push(OpUnderTest { family: op::COPY, code, dtype: *from, need, cases });
        }
    }
    ops
}

/// Copies are required for all stored dtypes, conversions for the dtypes with arithmetic.
fn copy_need(scope: &Scope, from: DType, to: DType) -> &'static str {
    let computed = [from, to].iter().all(|d| d.in_mask(scope.arithmetic));
    match () {
        () if from != to && !computed => "optional",
        () if [from, to].contains(&DType::F32) => "basic",
        () => "complete",
    }
}

fn converted(from: DType, to: DType, values: &[Num]) -> Vec<Expected> {
    values
        .iter()
        .map(|v| match reference::cast(from, to, *v) {
            Some(value) => {
                Expected { signed_zero: from.is_float() && to.is_float(), ..Expected::exact(value) }
            }
            None => Expected::ANY,
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
