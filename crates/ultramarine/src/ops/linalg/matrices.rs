//! Parts that all matrix decompositions share: checks, shapes, and the batching rule.
//!
//! Matrices occupy the last two axes. All leading axes are batch axes, so a mapped axis becomes the first batch axis.

use crate::error::{Error, Result, ensure};
use crate::ops::{Draft, Vmap, rules::batching::batched};
use crate::shape::{Shape, Show};
use crate::{array::Array, dtype::Dtype, placement::follow, scalar::Scalar};

/// Rejects arrays that are not stacks of matrices in a dtype that decompositions support.
pub(crate) fn check(op: &str, a: &Array) -> Result<()> {
    check_rank(op, a)?;
    ensure!(
        solved(a.dtype()),
        op,
        "Arrays must have type float32, float64 or complex64. Received array with type {}. Convert it with astype(float32).",
        a.dtype()
    );
    Ok(())
}

/// As [`check`], and rejects matrices that are not square.
pub(crate) fn check_square(op: &str, a: &Array) -> Result<()> {
    check(op, a)?;
    check_sides(op, a)
}

/// Rejects arrays of fewer than two axes.
pub(crate) fn check_rank(op: &str, a: &Array) -> Result<()> {
    ensure!(
        a.ndim() >= 2,
        op,
        "Arrays must have >= 2 dimensions. Received array with {} dimensions. Reshape or expand it.",
        a.ndim()
    );
    Ok(())
}

/// Rejects matrices that are not square.
pub(crate) fn check_sides(op: &str, a: &Array) -> Result<()> {
    let (m, n) = sizes(a);
    let shape = Show(a.shape());
    ensure!(
        m == n,
        op,
        "Only defined for square matrices. Received array with shape {shape}. Pass as many rows as columns."
    );
    Ok(())
}

/// True if decompositions support the dtype.
pub(crate) fn solved(dtype: Dtype) -> bool {
    matches!(dtype, Dtype::Float32 | Dtype::Float64 | Dtype::Complex64)
}

/// Rows and columns of the matrices.
pub(crate) fn sizes(a: &Array) -> (usize, usize) {
    (a.shape()[a.ndim() - 2], a.shape()[a.ndim() - 1])
}

/// The shape of the batch, followed by `last`.
pub(crate) fn with_last(a: &Array, last: &[usize]) -> Shape {
    let mut shape = Shape::from_slice(&a.shape()[..a.ndim() - 2]);
    shape.extend_from_slice(last);
    shape
}

/// The batch, rows, columns and dtype of a decomposition's only operand. `None` if there are more operands, or the
/// operand is invalid.
pub(crate) fn operand<'a>(node: &Draft<'a>) -> Option<(&'a [usize], [usize; 2], Dtype)> {
    let [(shape, dtype)] = *node.inputs else { return None };
    let [batch @ .., m, n] = shape else { return None };
    (solved(dtype) && node.is_computable()).then_some((batch, [*m, *n], dtype))
}

/// The shape of a batch, followed by `last`.
pub(crate) fn stacked(batch: &[usize], last: &[usize]) -> Shape {
    [batch, last].concat().into()
}

/// float32 for complex64, else the dtype itself.
pub(crate) fn real_of(dtype: Dtype) -> Dtype {
    if dtype.is_complex() { Dtype::Float32 } else { dtype }
}

/// Identity matrices of `n` rows, in the batch and the dtype of `a`.
pub(crate) fn identities(a: &Array, n: usize) -> Result<Array> {
    let _home = follow(&[a]);
    Array::identity(n, a.dtype())?.broadcast_to(&with_last(a, &[n, n]))
}

/// Zeros with the batch of `a` and these last axes.
pub(crate) fn nothing(a: &Array, last: &[usize], dtype: Dtype) -> Result<Array> {
    let _home = follow(&[a]);
    Array::full(&with_last(a, last), Scalar::from_i64(dtype, 0))
}

/// The operand with the mapped axis first.
pub(crate) fn mapped(v: &Vmap<'_>) -> Result<Array> {
    batched(&v.inputs[0], v.axes[0], v.size)
}

/// Marks results whose first axis is the mapped one.
pub(crate) fn first<const N: usize>(results: [Array; N]) -> Vec<(Array, Option<usize>)> {
    results.into_iter().map(|a| (a, Some(0))).collect()
}

/// The results of an operation that has exactly `N` results.
pub(crate) fn exactly<const N: usize>(op: &str, results: Vec<Array>) -> Result<[Array; N]> {
    <[Array; N]>::try_from(results).map_err(|_| Error::runtime(op, "other results than expected"))
}

/// The rules of a decomposition with one result: its name, its kernel with these attributes, the check of its types,
/// and its batching rule, which adds a mapped axis to the batch.
macro_rules! kernel {
    ($name:literal: $op:ident, $attributes:expr, $admits:expr) => {
        fn name(&self) -> &'static str {
            $name
        }

        fn admits(&self, node: &crate::ops::Draft<'_>) -> bool {
            let admits: fn(&Self, &crate::ops::Draft<'_>) -> Option<bool> = $admits;
            admits(self, node) == Some(true)
        }

        fn eval(
            &self,
            exec: &crate::backend::Exec,
            call: &crate::ops::Call<'_>,
        ) -> Result<crate::node::Value> {
            let attributes: fn(&Self) -> _ = $attributes;
            call.run(exec, op::$op, &attributes(self), &[])
        }

        fn vmap(&self, v: &crate::ops::Vmap<'_>) -> Result<(Array, Option<usize>)> {
            Ok((self.of(&matrices::mapped(v)?)?, Some(0)))
        }
    };
}
pub(crate) use kernel;

/// The rules of a decomposition with several results: its kernel with these attributes, the check of its types, its
/// derivatives by these functions, and its batching rule, which adds a mapped axis to the batch.
macro_rules! decomposition {
    (
        impl MultiOutputRules for $rules:ident = $name:literal: $op:ident,
        $attributes:expr, $admits:expr, $vjp:ident, $jvp:ident
    ) => {
        impl crate::ops::rules::multi_output::MultiOutputRules for $rules {
            fn name(&self) -> &'static str {
                $name
            }

            fn admits(&self, node: &crate::ops::Draft<'_>) -> bool {
                let admits: fn(&Self, &crate::ops::Draft<'_>) -> Option<bool> = $admits;
                admits(self, node) == Some(true)
            }

            fn eval(
                &self,
                exec: &crate::backend::Exec,
                call: &crate::ops::Call<'_>,
                results: &[(Shape, crate::dtype::Dtype)],
            ) -> Result<Vec<crate::node::Value>> {
                let attributes: fn(&$rules) -> _ = $attributes;
                call.run_multi_output(exec, op::$op, &attributes(self), &[], results)
            }

            fn vjp(
                &self,
                v: &crate::ops::rules::multi_output::MultiOutputVjp<'_>,
            ) -> Result<crate::ops::Cotangents> {
                $vjp(v)
            }

            fn jvp(
                &self,
                j: &crate::ops::rules::multi_output::MultiOutputJvp<'_>,
            ) -> Result<Vec<Option<Array>>> {
                $jvp(j)
            }

            fn vmap(&self, v: &crate::ops::Vmap<'_>) -> Result<Vec<(Array, Option<usize>)>> {
                Ok(matrices::first(self.of(&matrices::mapped(v)?)?))
            }
        }
    };
}
pub(crate) use decomposition;
